"""Special functions that the Array API standard lacks."""

from __future__ import annotations

import array_api_compat
import scipy.special

from fewkern.backend.namespace import Array, asarray_like, namespace, to_numpy

__all__ = ["normal_cdf"]


def normal_cdf(x: Array) -> Array:
    """Distribution function of the standard normal law, entry by entry."""
    if array_api_compat.is_numpy_array(x):
        return scipy.special.ndtr(x)
    if array_api_compat.is_torch_array(x):
        return namespace(x).special.ndtr(x)
    return asarray_like(scipy.special.ndtr(to_numpy(x)), x, dtype=x.dtype)
