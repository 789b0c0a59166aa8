"""Numbers that are too large, too small, or none at all."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array, asarray_like, float_dtype, is_sparse, namespace

__all__ = ["all_finite", "largest_power", "power_of_two", "powers_of_two", "quiet", "squarable"]

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
