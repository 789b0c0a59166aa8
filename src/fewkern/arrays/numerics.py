"""Guards against overflow, underflow and NaN; spread, range and size of every feature; integrals of Gaussians."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

import array_api_compat
import numpy as np
import scipy.special

from fewkern.arrays.namespace import Array, asarray_like, device, eps, float_dtype, is_sparse, namespace, to_numpy

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
    """The limit up to which squares and sums of squares neither overflow nor, of its inverse, underflow, for ``x``."""
    return float(namespace(x).finfo(float_dtype(x)).max) ** _SQUARE


def power_of_two(value: float) -> float:
    """Largest power of two up to a positive ``value``, and one for zero: dividing by it rounds nothing."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0 else 1.0


def largest_power(X: Array) -> float:
    """A power of two near the largest entry: in such units no square overflows, and nothing is rounded."""
    entries = X.data if is_sparse(X) else X
    xp = namespace(entries)
    if 0 in entries.shape:
        return 1.0
    # two passes that write nothing are quicker than absolute values
    return power_of_two(max(float(xp.max(entries)), -float(xp.min(entries))))


def normal_cdf(x: Array) -> Array:
    """Distribution function of the standard normal distribution, entry by entry."""
    if array_api_compat.is_numpy_array(x):
        return scipy.special.ndtr(x)
    if array_api_compat.is_torch_array(x):
        # torch's own ndtr loses the digits of the left tail
        return 0.5 * namespace(x).special.erfc(-x / math.sqrt(2.0))
    return asarray_like(scipy.special.ndtr(to_numpy(x)), x, dtype=x.dtype)


# A feature is constant if it varies by less than this many rounding errors of its largest value.
_ROUNDING = 8.0


def column_sizes(X: Array) -> Array:
    """Largest absolute value of every feature, in float64."""
    if is_sparse(X):
        return _dense_row(abs(X).max(axis=0))
    xp = namespace(X)
    return xp.astype(xp.max(xp.abs(X), axis=0), xp.float64)


def column_ranges(X: Array) -> Array:
    """Largest minus smallest value of every feature, in float64; zero where that is rounding."""
    xp = namespace(X)
    if is_sparse(X):
        found = _dense_row(X.max(axis=0)) - _dense_row(X.min(axis=0))
    else:
        found = xp.astype(xp.max(X, axis=0), xp.float64) - xp.astype(xp.min(X, axis=0), xp.float64)
    return _unless_constant(found, X)


def column_spreads(X: Array, weights: Array | None = None) -> Array:
    """Standard deviation of every feature, in float64; zero where that is rounding. No square over- or underflows."""
    xp = namespace(X)
    if is_sparse(X):
        return _unless_constant(_sparse_spreads(X, weights), X)
    X64 = xp.astype(X, xp.float64, copy=False)
    share = xp.full((X.shape[0],), 1.0 / X.shape[0], dtype=xp.float64, device=device(X))
    if weights is not None:
        share = xp.astype(weights, xp.float64, copy=False)
        share = share / xp.sum(share)
    gap = X64 - share @ X64
    reach = xp.max(xp.abs(gap), axis=0)
    gap = gap / xp.where(reach > 0, reach, xp.ones_like(reach))
    return _unless_constant(reach * xp.sqrt(share @ (gap * gap)), X)


def divide_columns(X: Array, units: Array) -> Array:
    """``X`` with every feature divided by its unit; sparse samples stay sparse, and keep their dtype."""
    if is_sparse(X):
        return X.multiply(1.0 / to_numpy(units)).tocsr().astype(X.dtype)
    return X / asarray_like(units, X)


def _unless_constant(found: Array, X: Array) -> Array:
    """``found``, but zero where it is no more than the rounding of the numbers."""
    return unless_rounding(found, column_sizes(X), eps(X) if float_dtype(X) == X.dtype else None)


def unless_rounding(found: Array, sizes: Array, unit: float | None = None) -> Array:
    """``found``, but zero where it is no more than rounding of numbers of these ``sizes``, of round-off ``unit``."""
    xp, unit = namespace(found), eps(found) if unit is None else unit
    return xp.where(found <= _ROUNDING * unit * sizes, xp.zeros_like(found), found)


def interpolated(X: Array, places: Array, values: Array) -> Array:
    """Interpolate every column of ``X`` in its own table: linearly between ``places``, constant beyond them."""
    host, at, tables = to_numpy(X), to_numpy(places), to_numpy(values)
    out = np.empty(host.shape)
    for a in range(host.shape[1]):
        out[:, a] = np.interp(host[:, a], at[:, a], tables[:, a])
    return asarray_like(out, X, dtype=X.dtype)


def looked_up(table: Array, places: Array) -> Array:
    """``table[places]`` for whole numbers of any shape."""
    if type(table) is np.ndarray:
        return np.take(table, places)
    xp = namespace(table)
    return xp.reshape(xp.take(table, xp.reshape(places, (-1,))), places.shape)


def sums_at(places: Array, values: Array, size: int) -> Array:
    """Sums of the values at the places ``0, ..., size - 1``; ``places`` are whole numbers, one per value."""
    if type(values) is np.ndarray:
        return np.bincount(places.ravel(), values.ravel(), size)
    places, values = places.reshape(-1), values.reshape(-1)
    if array_api_compat.is_torch_array(values):
        return namespace(values).zeros(size, dtype=values.dtype, device=device(values)).index_add(0, places, values)
    return asarray_like(np.bincount(to_numpy(places), to_numpy(values), size), values, dtype=values.dtype)


def _dense_row(row: Any) -> np.ndarray[Any, Any]:
    return np.asarray(row.todense(), dtype=np.float64).ravel()


def _sparse_spreads(X: Any, weights: Array | None) -> np.ndarray[Any, Any]:
    """Standard deviations from the stored entries and the number of the others: no difference of large squares."""
    n, d = X.shape
    entries = X.tocoo()
    column, values = entries.col, entries.data.astype(np.float64)
    # in units of a power of two near the largest entry: exact, and no square over- or underflows
    unit = largest_power(values)
    values = values / unit
    share = np.full(n, 1.0 / n) if weights is None else to_numpy(weights) / float(to_numpy(weights).sum())
    part = share[entries.row]
    mean: np.ndarray[Any, Any] = np.bincount(column, part * values, minlength=d)
    stored = np.bincount(column, part, minlength=d)
    # shares add up to one but for rounding, which is no missing entry
    missing = np.where(np.bincount(column, minlength=d) == n, 0.0, np.maximum(1.0 - stored, 0.0))
    mean = mean + np.bincount(column, part * (values - mean[column]), minlength=d) - missing * mean  # less rounding
    square = np.bincount(column, part * (values - mean[column]) ** 2, minlength=d)
    return unit * np.sqrt(square + missing * mean**2)


# Below this a, differences lose more than two digits (in C, in single precision, below 0.1), and eight nodes of
# Gauss-Legendre are exact.
_LEAST_SQUARED_LENGTH = 0.01
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
# (1 + z) erfcx(z / sqrt(2)) of z from zero to infinity as a polynomial in (z - k) / (z + k), from the highest power on:
# with this k and degree, relative errors are below 1e-14. In NumPy it takes a quarter of the time of SciPy's function.
_MIDDLE, _DEGREE = 4.0, 20


def _tail_polynomial() -> Array:
    def values(t: Array) -> Array:
        z = _MIDDLE * (1.0 + t) / (1.0 - t)
        return (1.0 + z) * scipy.special.erfcx(z * math.sqrt(0.5))

    chebyshev = np.polynomial.chebyshev
    return chebyshev.cheb2poly(chebyshev.chebinterpolate(values, _DEGREE))[::-1]


_TAIL = _tail_polynomial()


def line_integrals(a: Array, c: Array, g: Array, start: Array, end: Array) -> tuple[Array, Array]:
    r"""Integrals of Gaussians along segments, in closed form and without cancellation; NumPy only.

    .. math:: I_k = \int_0^1 t^k e^{-(a t^2 + 2 c t + g) / 2}\,dt, \qquad k = 0, 1

    All arrays broadcast to the shape of ``a``.

    Parameters
    ----------
    a, c, g : arrays
        Squared length of the segment, inner product of the segment with the vector from the Gaussian's centre to its
        start, and squared length of that vector, all in widths of the Gaussian; ``c**2 <= a * g``.
    start, end : arrays
        Values of the Gaussian at both ends, ``exp(-g / 2)`` and ``exp(-(a + 2 c + g) / 2)``.

    Notes
    -----
    With ``l = c / sqrt(a)`` and ``h = l + sqrt(a)``, the ends in units along the segment,
    :math:`I_0 = \sqrt{\pi / 2a}\,(2 p\,[l < 0 \le h] + \operatorname{sgn}(l)\,k_0\, e(|l|) -
    \operatorname{sgn}(h)\,k_1\, e(|h|))` with the peak :math:`p = e^{-(g - l^2) / 2}` and
    :math:`e(z) = \operatorname{erfcx}(z / \sqrt 2)`, in which nothing overflows. ``I1`` follows from
    ``a I1 + c I0 = k0 - k1``, which so holds whatever the rounding of ``I0``.
    """
    root = np.sqrt(a)
    with quiet():  # of segments without a length, which come below
        low = c / root
        high = low + root
        inside = np.signbit(low) & ~np.signbit(high)  # as copysign sees them, zeros too
        peak = np.where(inside, np.exp(np.minimum(low * low - g, 0.0) * 0.5), 0.0)
        first = start * _scaled_tail(np.abs(low))
        last = end * _scaled_tail(np.abs(high))
        zeroth = (2.0 * peak + np.copysign(first, low) - np.copysign(last, high)) * (_ROOT_HALF_PI / root)
        once = (start - end - c * zeroth) / a
    short = a < _LEAST_SQUARED_LENGTH
    if short.any():
        zeroth[short], once[short] = _by_nodes(*(np.broadcast_to(one, a.shape)[short] for one in (a, c, g)))
    return zeroth, once


def _scaled_tail(z: Array) -> Array:
    """``erfcx(z / sqrt(2))`` of numbers from zero on, which may be written into."""
    t = 1.0 - 2.0 * _MIDDLE / (z + _MIDDLE)
    value = np.full_like(t, _TAIL[0])
    for coefficient in _TAIL[1:]:
        value *= t
        value += coefficient
    z += 1.0
    value /= z
    return value


def _by_nodes(a: Array, c: Array, g: Array) -> tuple[Array, Array]:
    zeroth, once = np.zeros_like(a), np.zeros_like(a)
    for node, weight in zip(0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS):
        value = weight * np.exp(np.minimum((a * node + 2.0 * c) * node + g, 1e300) * -0.5)
        zeroth += value
        once += node * value
    return zeroth, once
