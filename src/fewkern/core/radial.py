"""Kernels of a distance whose length scale may be a rule: :class:`Gaussian` and :class:`Laplacian`."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from fewkern.arrays.columns import divide_columns
from fewkern.arrays.linalg import HeldRows, manhattan, neg_squared_differences, neg_squared_distances
from fewkern.arrays.namespace import Array, asarray_like, float_dtype, is_sparse, namespace, on_host
from fewkern.arrays.storable import storable
from fewkern.core.kernel import Kernel, ones_of
from fewkern.core.widths import Unit, city_block, euclidean, resolve_width

__all__ = ["Gaussian", "Laplacian", "WidthKernel"]

# Squared distance, in units of the length scale, beyond which the rounding error of a product is seen in the
# exponential.
_FAR = 1e12


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
        width = resolve_width(type(self).__name__, self.length_scale, self.unit, X, self._distances)
        unit: Unit = "spread" if self.rules and self.unit == "auto" else self.unit
        return dataclasses.replace(self, length_scale=width, unit=unit)

    @property
    def rules(self) -> dict[str, str]:
        return {"length_scale": self.length_scale} if isinstance(self.length_scale, str) else {}

    def __repr__(self) -> str:
        # a unit says how a rule was read: to a length scale that was given it means nothing
        unit = "" if self.unit == "auto" else f", unit={self.unit!r}"
        return f"{type(self).__name__}(length_scale={self.length_scale!r}{unit})"

    def _in_widths(self, X: Array, factor: float = 1.0) -> Array:
        """``X`` divided by ``factor`` times the length scale, or every feature by its own."""
        if isinstance(self.length_scale, (int, float)):
            by = factor * self.length_scale
            return X.multiply(1.0 / by).tocsr().astype(X.dtype) if is_sparse(X) else X / by
        return divide_columns(X, factor * asarray_like(self.length_scale, X, dtype=float_dtype(X)))

    def diag(self, X: Array) -> Array:
        return ones_of(X)


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

    @staticmethod
    def _distances(X: Array) -> Array:
        return euclidean(X)

    def _block(self, X: Array, Y: Array) -> Array:
        # Squares cancel in a distance: in float32 a narrow kernel would keep five figures. The exponential is float32.
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

    @staticmethod
    def _distances(X: Array) -> Array:
        return city_block(X)

    def _block(self, X: Array, Y: Array) -> Array:
        if isinstance(self.length_scale, (int, float)):
            D = manhattan(X, Y) / self.length_scale
        else:
            D = manhattan(self._in_widths(X), self._in_widths(Y))
        return namespace(D).exp(-D)
