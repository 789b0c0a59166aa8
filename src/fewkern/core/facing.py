"""Kernel values between samples that stay and vectors that move, with their derivatives.

A search over vectors and scales asks for the same samples hundreds of times. What depends on them alone is made once,
by :meth:`fewkern.core.kernel.Kernel.facing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewkern.backend.namespace import Array, asarray_like, device, namespace

if TYPE_CHECKING:
    from fewkern.core.kernel import Kernel

__all__ = ["Columns", "Facing", "FacingGaussian"]


@dataclass(frozen=True)
class Columns:
    """Kernel values, a column per vector."""

    K: Array
    pull: Callable[[Array], tuple[Array, Array]]
    """From ``D`` to the gradients of ``sum(D * K)`` with respect to the vectors and the logarithms of the scales."""


class Facing:
    """Samples in front of vectors that move; any kernel that is ``refinable``.

    Parameters
    ----------
    kernel : Kernel
        As it is where all logarithms of scales are zero.
    X : array of shape (n, d)
    """

    def __init__(self, kernel: Kernel, X: Array) -> None:
        self.kernel, self.X = kernel, X

    def columns(self, V: Array, s: Array) -> Columns:
        """Kernel values of the samples, with the scales times ``exp(s)``."""
        kernel = self.kernel.rescaled(s)
        K = kernel(self.X, V)
        return Columns(K, lambda D: kernel.pullback(self.X, V, K, D))

    def among(self, V: Array, s: Array) -> Columns:
        """Kernel values of the vectors themselves."""
        kernel = self.kernel.rescaled(s)
        K = kernel(V, V)

        def pull(D: Array) -> tuple[Array, Array]:
            # k is symmetric: what V does as first argument it does as second
            dV, ds = kernel.pullback(V, V, K, D + D.T)
            return dV, 0.5 * ds

        return Columns(K, pull)

    def trace(self, w: Array, s: Array) -> tuple[float, Array]:
        """``sum_i w_i k(x_i, x_i)`` and its gradient with respect to ``s``."""
        kernel = self.kernel.rescaled(s)
        return float(w @ kernel.diag(self.X)), kernel.diag_pullback(self.X, w)


class FacingGaussian(Facing):
    """Samples in front of the vectors of a Gaussian kernel, in units of its widths.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
    width : float or array of shape (d,)
        One scale is learned, or one per feature.
    near : array of shape (m, d)
        Where the vectors start. Everything is measured from their mean: squares cancel far from the origin.
    """

    def __init__(self, kernel: Kernel, X: Array, width: float | Array, near: Array) -> None:
        super().__init__(kernel, X)
        xp = namespace(X)
        self.inverse, self.shift = 1.0 / asarray_like(width, X, dtype=X.dtype), xp.mean(near, axis=0)
        self.A = self.in_widths(X)
        self.half = 0.5 * self._by_scale(self.A * self.A)
        # sums are products with these: a call of BLAS costs less than a reduction
        self.one, self.each = (xp.ones((M.shape[0],), dtype=X.dtype, device=device(X)) for M in (X, near))

    def _by_scale(self, features: Array) -> Array:
        """Columns that belong to one scale, added."""
        return features if self.inverse.ndim else namespace(features).sum(features, axis=1, keepdims=True)

    def columns(self, V: Array, s: Array) -> Columns:
        xp = namespace(V)
        B, e = self.in_widths(V), xp.exp(2.0 * s)
        scaled = B * e
        # -|x - v|^2 / 2, multiplied out
        K = self.A @ scaled.T
        K -= 0.5 * xp.vecdot(B, scaled)
        K -= (self.half @ e)[:, None]
        K = xp.exp(K)
        return Columns(K, lambda D: self.pulled(D * K, B, e))

    def pulled(self, N: Array, B: Array, e: Array | float = 1.0) -> tuple[Array, Array]:
        """Gradients from ``N = D * K``, for vectors ``B`` in units of the widths and squared scales ``e``."""
        NA = N.T @ self.A
        gap = NA - (self.one @ N)[:, None] * B
        ds = self.each @ self._by_scale(B * (NA + gap)) - 2.0 * ((N @ self.each) @ self.half)
        return (self.inverse * e) * gap, e * ds

    def in_widths(self, V: Array) -> Array:
        """Vectors in units of the widths, from the shift on."""
        return (V - self.shift) * self.inverse

    def among(self, V: Array, s: Array) -> Columns:
        xp = namespace(V)
        B, e = self.in_widths(V), xp.exp(2.0 * s)
        scaled = B * e
        half = 0.5 * xp.vecdot(B, scaled)
        K = xp.exp(B @ scaled.T - half - half[:, None])

        def pull(D: Array) -> tuple[Array, Array]:
            N = (D + D.T) * K
            gap = N @ B - (N @ self.each)[:, None] * B
            return (self.inverse * e) * gap, e * (self.each @ self._by_scale(gap * B))

        return Columns(K, pull)

    def trace(self, w: Array, s: Array) -> tuple[float, Array]:
        return float(self.one @ w), 0.0 * s
