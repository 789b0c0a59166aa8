r"""The linear map before an isotropic kernel: none, one number per feature, or whitening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewkern.backend.namespace import Array, eps, namespace

__all__ = ["Scale", "Scaling", "fit_scaling"]

Scale = Literal["none", "std", "whiten"]


@dataclass(frozen=True)
class Scaling:
    """The map ``z = A (x - mean)``; a flat ``transform`` stands for a diagonal ``A``."""

    mean: Array
    transform: Array
    constant: int
    """Features (for "whiten": directions) in which the samples do not differ."""

    def apply(self, X: Array) -> Array:
        X = X - self.mean
        return X * self.transform if self.transform.ndim == 1 else X @ self.transform.T

    def invert(self, Z: Array) -> Array:
        if self.transform.ndim == 1:
            return Z / self.transform + self.mean
        return namespace(Z).linalg.solve(self.transform, Z.T).T + self.mean


def fit_scaling(X: Array, w: Array, scale: Scale) -> Scaling:
    """Scaling of samples ``X`` with weights ``w`` of sum one.

    A direction without spread gets the mean spread of the others: a density needs some width there, and theirs is the
    only length the data offer.
    """
    xp = namespace(X)
    mean = w @ X
    gap = X - mean
    size = xp.max(xp.abs(X))
    if scale == "whiten":
        values, vectors = xp.linalg.eigh(gap.T @ (w[:, None] * gap))
        values = xp.maximum(values, xp.zeros_like(values))
        none = values <= 1e-12 * xp.max(values)
        spread = xp.sqrt(values)
    else:
        spread = xp.sqrt(w @ (gap * gap))
        none = spread <= 8 * eps(X) * size
    count = int(xp.sum(xp.astype(none, xp.int64)))
    alive = spread[~none]
    typical = xp.mean(alive) if count < spread.shape[0] else xp.ones_like(size)
    spread = xp.where(none, typical, spread)
    if scale == "none":
        return Scaling(mean, xp.ones_like(spread), count)
    if scale == "std":
        return Scaling(mean, 1.0 / spread, count)
    return Scaling(mean, (vectors / spread).T, count)
