"""Numbers that are too large, too small or none at all, and special functions that the Array API standard lacks."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import array_api_compat
import numpy as np
import scipy.special

from fewkern.arrays.namespace import Array, asarray_like, float_dtype, is_sparse, namespace, to_numpy

__all__ = ["all_finite", "largest_power", "normal_cdf", "power_of_two", "powers_of_two", "quiet", "squarable"]

# Power of the largest number: 1e140 in double precision, 3e17 in single precision.
_SQUARE = 0.4541


def quiet() -> AbstractContextManager[Any]:
    """No warnings of NumPy inside; for code that looks at its result with :func:`all_finite`."""
    return np.errstate(all="ignore")


def all_finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite, dense or sparse."""
    x = x.data if is_sparse(x) else x
    xp = namespace(x)
    with quiet():
        # NaN and infinity survive a sum, which needs no memory; finite numbers may overflow in it
        return bool(xp.isfinite(xp.sum(x))) or bool(xp.all(xp.isfinite(x)))


def squarable(x: Array) -> float:
    """A number whose square is one, in the dtype to compute with for ``x``, and that of its inverse; sums too."""
    return float(namespace(x).finfo(float_dtype(x)).max) ** _SQUARE


def power_of_two(value: float) -> float:
    """The power of two at or below a positive ``value``, and one for zero: a unit in which nothing is rounded."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0 else 1.0


def largest_power(X: Array) -> float:
    """A power of two near the largest entry: in such units no square over- or underflows, and nothing is rounded."""
    entries = X.data if is_sparse(X) else X
    xp = namespace(entries)
    if 0 in entries.shape:
        return 1.0
    # two passes that write nothing are quicker than absolute values
    return power_of_two(max(float(xp.max(entries)), -float(xp.min(entries))))


def powers_of_two(values: Array) -> Array:
    """:func:`power_of_two` of every entry of a short array."""
    return asarray_like([power_of_two(float(value)) for value in values], values, dtype=values.dtype)


def normal_cdf(x: Array) -> Array:
    """Distribution function of the standard normal law, entry by entry."""
    if array_api_compat.is_numpy_array(x):
        return scipy.special.ndtr(x)
    if array_api_compat.is_torch_array(x):
        # torch's own ndtr loses the figures of the left tail
        return 0.5 * namespace(x).special.erfc(-x / math.sqrt(2.0))
    return asarray_like(scipy.special.ndtr(to_numpy(x)), x, dtype=x.dtype)
