"""Kernels of a distance (:class:`Gaussian`, :class:`Laplacian`) and the rules that give them a length scale."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

from fewkern.arrays.linalg import (
    HeldRows,
    kth_smallest,
    manhattan,
    neg_squared_differences,
    neg_squared_distances,
    squared_norms,
)
from fewkern.arrays.namespace import Array, asarray_like, device, eps, float_dtype, is_sparse, namespace, on_host
from fewkern.arrays.numerics import column_ranges, column_sizes, column_spreads, divide_columns, largest_power
from fewkern.arrays.storable import storable
from fewkern.core.kernel import Kernel

# Squared distance, in units of the length scale, beyond which the rounding error of a product is seen in the
# exponential.
_FAR = 1e12
Unit: TypeAlias = Literal["auto", "spread", "range", "common"]
UNITS: tuple[Unit, ...] = ("auto", "spread", "range", "common")
# Rows looked at to find the median distance: at equal steps, without randomness, so that sorted classes are all seen.
_RULE_ROWS = 1000
# Length scales up to this one, and their inverses, can be multiplied by the factors of a search.
_WIDEST = 1e305


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


@dataclass(eq=False, repr=False)
class WidthKernel(Kernel):
    """A kernel of the distance in units of its length scale."""

    length_scale: Any = "median"
    unit: Unit = "auto"

    @staticmethod
    @abstractmethod
    def _distances(X: Array) -> Array:
        """Distances between all pairs of rows, in one row: what a length scale is measured in."""

    def resolve(self, X: Array) -> Self:
        """The same kernel with one length scale as a float, or one per feature as an array."""
        owner, unit = type(self).__name__, self.unit
        if unit not in UNITS:
            raise ValueError(f"{owner}: unit must be one of {', '.join(map(repr, UNITS))}, got {unit!r}.")
        if not self.rules:
            return dataclasses.replace(self, length_scale=_in_range(owner, _given(owner, self.length_scale, X)))
        some = X[:: max(1, math.ceil(X.shape[0] / _RULE_ROWS)), :] if self.length_scale == "median" else X
        if unit == "common":
            width: Any = self._by_rule(some)
        else:
            unit = "spread" if unit == "auto" else unit
            units = feature_units(X, unit)
            width = self._by_rule(divide_columns(some, units)) * units
        return dataclasses.replace(self, length_scale=_in_range(owner, width), unit=unit)

    def _by_rule(self, X: Array) -> float:
        """The result of the rule for these rows."""
        if self.length_scale == "median":
            distances = self._distances(X)
            above = distances[distances > 0]
            return kth_smallest(above, above.shape[0] // 2) if above.shape[0] else 1.0
        if self.length_scale == "scale":
            # scikit-learn's gamma = 1 / (d var) in exp(-gamma |x - y|^2), as a standard deviation
            unit = largest_power(X)
            variance = total_variance(X / unit)
            return unit * math.sqrt(variance / 2) if variance > 0 else 1.0
        raise ValueError(
            f"{type(self).__name__}: length_scale must be a positive number, one number per feature, "
            f'"median" or "scale", got {self.length_scale!r}.'
        )

    @property
    def rules(self) -> dict[str, str]:
        return {"length_scale": self.length_scale} if isinstance(self.length_scale, str) else {}

    def __repr__(self) -> str:
        # the unit belongs to a rule: it is meaningless beside a given length scale
        unit = "" if self.unit == "auto" else f", unit={self.unit!r}"
        return f"{type(self).__name__}(length_scale={self.length_scale!r}{unit})"

    def _in_widths(self, X: Array, factor: float = 1.0) -> Array:
        """``X`` divided by ``factor`` times the length scale, or every feature by its own."""
        if isinstance(self.length_scale, (int, float)):
            by = factor * self.length_scale
            return X.multiply(1.0 / by).tocsr().astype(X.dtype) if is_sparse(X) else X / by
        return divide_columns(X, factor * asarray_like(self.length_scale, X, dtype=float_dtype(X)))

    def diag(self, X: Array) -> Array:
        return namespace(X).ones((X.shape[0],), dtype=float_dtype(X), device=device(X))


@storable
@dataclass(eq=False, repr=False)
class Gaussian(WidthKernel):
    r"""Gaussian kernel :math:`k(x, y) = \exp(-\|x - y\|^2 / (2 \ell^2))`.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,), "median" or "scale", default "median"
        One standard deviation. "median" is the median distance between samples (of at most 1000 rows), "scale" is
        scikit-learn's ``gamma="scale"`` for centered features. An array gives every feature a length scale of its own.
    unit : {"auto", "spread", "range", "common"}, default "auto"
        What a rule measures every feature in: its standard deviation ("spread"), or its largest minus its smallest
        value ("range"). The rule then gives one length scale per feature, and the units of the data do not matter.
        "auto" takes the better of the two where an estimator compares length scales, and "spread" elsewhere. "common"
        measures all features alike, as the papers do, and gives one length scale. A length scale that is not a rule is
        taken as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Gaussian(length_scale=1.0)(X, X).round(3)
    array([[1.   , 0.607, 0.011],
           [0.607, 1.   , 0.135],
           [0.011, 0.135, 1.   ]])
    >>> Gaussian(unit="common").resolve(X)
    Gaussian(length_scale=2.0, unit='common')
    >>> Gaussian().resolve(X * [1.0, 10.0])
    Gaussian(length_scale=array([ 2.82842712, 28.28427125]), unit='spread')
    """

    differentiable = True

    _distances = staticmethod(euclidean)

    def _block(self, X: Array, Y: Array) -> Array:
        # Squares cancel in a distance: in float32 a narrow kernel would keep five digits. The exponential is float32.
        xp, dtype = namespace(X), float_dtype(X)
        if not is_sparse(X) and dtype == xp.float32:
            X, Y = xp.astype(X, xp.float64), xp.astype(Y, xp.float64)
        X, Y = self._in_widths(X, math.sqrt(2.0)), self._in_widths(Y, math.sqrt(2.0))
        D = neg_squared_distances(X, Y)
        if not is_sparse(X) and 0 not in D.shape and not float(xp.min(D)) > -_FAR:
            D = neg_squared_differences(X, Y)
        return xp.exp(xp.astype(D, dtype, copy=False))

    def hold(self, X: Array) -> Callable[[slice, Array], Array]:
        # On an accelerator, dividing and squaring X anew for every block of columns takes as long as the columns.
        if on_host(X):
            return super().hold(X)
        xp, dtype = namespace(X), float_dtype(X)
        scaled = self._in_widths(xp.astype(X, xp.float64, copy=False), math.sqrt(2.0))
        held = HeldRows(scaled, xp.mean(scaled, axis=0))

        def columns(rows: slice, Y: Array) -> Array:
            D = held(rows, self._in_widths(xp.astype(Y, xp.float64, copy=False), math.sqrt(2.0)))
            return xp.exp(xp.astype(D, dtype, copy=False))

        return columns

    def pullback(self, X: Array, V: Array, K: Array, D: Array) -> Array:
        xp = namespace(V)
        inverse, middle = 1.0 / asarray_like(self.length_scale, V, dtype=V.dtype), xp.mean(V, axis=0)
        # from the middle on: products cancel far from the origin
        A, B = (X - middle) * inverse, (V - middle) * inverse
        N = D * K
        return inverse * (N.T @ A - xp.sum(N, axis=0)[:, None] * B)


@storable
@dataclass(eq=False, repr=False)
class Laplacian(WidthKernel):
    r"""Laplacian kernel :math:`k(x, y) = \exp(-\|x - y\|_1 / \ell)`.

    Parameters
    ----------
    length_scale : float, array of shape (n_features,), "median" or "scale", default "median"
        Distance (sum of absolute differences) at which the kernel falls to :math:`1/e`. Rules and arrays are those of
        :class:`Gaussian`.
    unit : {"auto", "spread", "range", "common"}, default "auto"
        What a rule measures the features in, as in :class:`Gaussian`.

    Notes
    -----
    The kernel has a kink wherever two samples agree in a feature, so models on it have no ``feature_importances_``.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.kernels import Laplacian
    >>> Laplacian(length_scale=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    _distances = staticmethod(city_block)

    def _block(self, X: Array, Y: Array) -> Array:
        if isinstance(self.length_scale, (int, float)):
            D = manhattan(X, Y) / self.length_scale
        else:
            D = manhattan(self._in_widths(X), self._in_widths(Y))
        return namespace(D).exp(-D)


def _in_range(owner: str, width: Any) -> Any:
    """The length scale, or length scales, unless a search could not multiply them."""
    xp = namespace(width)
    low, high = float(xp.min(width)), float(xp.max(width))
    if not (1 / _WIDEST < low and high < _WIDEST):
        found = high if low > 1 / _WIDEST else low
        raise ValueError(
            f"{owner}: the length scale is {found:.3g}, but must lie between {1 / _WIDEST:g} and {_WIDEST:g}; "
            "multiply the samples by one number."
        )
    return width


def feature_units(X: Array, unit: str) -> Array:
    """The unit of every feature: its standard deviation ("spread"), or largest minus smallest value ("range").

    A constant feature carries no information. Its unit is its size, or one if that is zero.
    """
    found = column_ranges(X) if unit == "range" else column_spreads(X)
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


def positive(owner: str, name: str, value: Any) -> float:
    """``value`` as a float, or an error that names its owner if it is not a positive number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{owner}: {name} must be a positive number, got {value!r}.")
    return number


def total_variance(X: Array) -> float:
    """Sum over the features of their variances."""
    spread = column_spreads(X)
    return float(namespace(spread).sum(spread * spread))
