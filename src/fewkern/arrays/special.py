"""Special functions that the Array API standard lacks."""

from __future__ import annotations

import math

import array_api_compat
import scipy.special

from fewkern.arrays.namespace import Array, asarray_like, namespace, to_numpy

__all__ = ["normal_cdf"]


def normal_cdf(x: Array) -> Array:
    """Distribution function of the standard normal law, entry by entry."""
    if array_api_compat.is_numpy_array(x):
        return scipy.special.ndtr(x)
    if array_api_compat.is_torch_array(x):
        # torch's own ndtr loses the figures of the left tail
        return 0.5 * namespace(x).special.erfc(-x / math.sqrt(2.0))
    return asarray_like(scipy.special.ndtr(to_numpy(x)), x, dtype=x.dtype)
