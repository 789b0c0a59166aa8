"""Length scales of kernels: a number, one number per feature, or a rule that looks at the samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from fewkern.arrays.columns import column_ranges, column_sizes, column_spreads, divide_columns
from fewkern.arrays.linalg import kth_smallest, manhattan, neg_squared_distances, squared_norms
from fewkern.arrays.namespace import Array, asarray_like, eps, float_dtype, is_sparse, namespace
from fewkern.arrays.numerics import largest_power

__all__ = [
    "UNITS",
    "Unit",
    "city_block",
    "euclidean",
    "feature_units",
    "positive",
    "resolve_width",
    "total_variance",
]

Unit: TypeAlias = Literal["auto", "spread", "range", "common"]
UNITS: tuple[Unit, ...] = ("auto", "spread", "range", "common")
# Rows looked at to turn a rule such as "median" into a number.
_RULE_ROWS = 1000
# Length scales up to this one, and their inverses, can be multiplied by the factors of a search.
_WIDEST = 1e305


def resolve_width(owner: str, length_scale: Any, unit: str, X: Array, distances: Callable[[Array], Array]) -> Any:
    """One length scale as a float, or one per feature as an array: what was given, or the result of its rule.

    Parameters
    ----------
    owner : str
        The kernel, for messages.
    length_scale : float, array of shape (n_features,), "median" or "scale"
    unit : {"auto", "spread", "range", "common"}
        What a rule measures the features in (:func:`feature_units`); "auto" is "spread", and "common" gives one length
        scale.
    X : array of shape (n, n_features)
    distances : callable
        From samples to the distances between all pairs of them, of which "median" takes the median.
    """
    if unit not in UNITS:
        raise ValueError(f"{owner}: unit must be one of {', '.join(map(repr, UNITS))}, got {unit!r}.")
    if not isinstance(length_scale, str):
        return _in_range(owner, _given(owner, length_scale, X))
    if unit == "common":
        return _in_range(owner, _by_rule(owner, length_scale, X, distances))
    units = feature_units(X, unit)
    if length_scale == "median":
        X = _sample(X)
    return _in_range(owner, _by_rule(owner, length_scale, divide_columns(X, units), distances) * units)


def _in_range(owner: str, width: Any) -> Any:
    """The length scale, or length scales, unless a search could not multiply them."""
    xp = namespace(width)
    low, high = (width, width) if isinstance(width, float) else (float(xp.min(width)), float(xp.max(width)))
    if not (1 / _WIDEST < low and high < _WIDEST):
        found = high if low > 1 / _WIDEST else low
        raise ValueError(
            f"{owner}: the length scale is {found:.3g}, but must lie between {1 / _WIDEST:g} and {_WIDEST:g}; "
            "multiply the samples by one number."
        )
    return width


def feature_units(X: Array, unit: str, weights: Array | None = None) -> Array:
    """The unit of every feature: its standard deviation ("spread"), or largest minus smallest value ("range").

    A constant feature says nothing. Its unit is its size (one if it is zero), so that it can do no harm.
    """
    found = column_ranges(X) if unit == "range" else column_spreads(X, weights)
    xp = namespace(found)
    size = column_sizes(X)
    return xp.where(found > 0, found, xp.where(size > 0, size, xp.ones_like(size)))


def _given(owner: str, width: Any, X: Array) -> Any:
    xp = namespace(X)
    widths = asarray_like(width, X, dtype=float_dtype(X))
    if widths.ndim == 0:
        return positive(owner, "length_scale", width)
    if widths.shape != (X.shape[1],):
        raise ValueError(
            f"{owner}: length_scale must be one number or one per feature, got shape {tuple(widths.shape)} "
            f"for {X.shape[1]} features."
        )
    if not bool(xp.all(xp.isfinite(widths) & (widths > 0))):
        raise ValueError(f"{owner}: every entry of length_scale must be a positive number.")
    return widths


def _by_rule(owner: str, rule: str, X: Array, distances: Callable[[Array], Array]) -> float:
    if rule == "median":
        return _median(distances(_sample(X)))
    if rule == "scale":
        # scikit-learn's gamma = 1 / (d var) in exp(-gamma |x - y|^2), as a standard deviation
        unit = largest_power(X)
        variance = total_variance(X / unit)
        return unit * math.sqrt(variance / 2) if variance > 0 else 1.0
    raise ValueError(
        f'{owner}: length_scale must be a positive number, one number per feature, "median" or "scale", got {rule!r}.'
    )


def positive(owner: str, name: str, value: Any) -> float:
    """``value`` as a float, or an error that names its owner if it is not a positive number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{owner}: {name} must be a positive number, got {value!r}.")
    return number


def _sample(X: Array) -> Array:
    """At most ``_RULE_ROWS`` rows at equal steps: no randomness, and sorted classes are all seen."""
    return X[:: max(1, math.ceil(X.shape[0] / _RULE_ROWS)), :]


def _median(values: Array) -> float:
    """Median of the positive entries (1 if there is none)."""
    above = values[values > 0]
    return kth_smallest(above, above.shape[0] // 2) if above.shape[0] else 1.0


def total_variance(X: Array) -> float:
    """Sum over the features of their variances."""
    spread = column_spreads(X)
    return float(namespace(spread).sum(spread * spread))


def euclidean(X: Array) -> Array:
    """Distances between all pairs of rows, in one row."""
    xp, unit = namespace(X), largest_power(X)
    X = X / unit
    D = -neg_squared_distances(X, X)
    # between equal rows there is rounding noise, not a distance
    noise = 16 * eps(D) * (float(xp.max(D)) + (float(xp.max(squared_norms(X))) if is_sparse(X) else 0.0))
    D = xp.where(D <= noise, xp.zeros_like(D), D)
    return unit * xp.sqrt(xp.reshape(D, (-1,)))


def city_block(X: Array) -> Array:
    """Sums of absolute differences between all pairs of rows, in one row."""
    return namespace(X).reshape(manhattan(X, X), (-1,))
