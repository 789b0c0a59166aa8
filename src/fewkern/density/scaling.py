r"""The linear map before an isotropic kernel: none, one number per feature, or whitening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewkern.backend.columns import column_spreads
from fewkern.backend.finite import quiet
from fewkern.backend.namespace import Array, float_dtype, namespace, take_rows
from fewkern.core.samples import Samples
from fewkern.density.mixture import KernelMixture
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["Scale", "Scaling", "fit_scaling"]

Scale = Literal["none", "std", "whiten"]
# A direction of less than this part of the largest variance is constant, up to rounding.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class Scaling:
    """The map ``z = A (x - mean)``; a flat ``transform`` stands for a diagonal ``A``."""

    mean: Array
    transform: Array
    constant: int
    """Number of features (with "whiten": of directions) in which the samples do not differ."""
    reach: float
    """Largest distance of a sample from the mean in one feature."""

    def apply(self, X: Array) -> Array:
        """``X`` in the scaled space."""
        X = X - self.mean
        return X * self.transform if self.transform.ndim == 1 else X @ self.transform.T

    def invert(self, Z: Array) -> Array:
        """``Z`` back in the units of the data."""
        if self.transform.ndim == 1:
            return Z / self.transform + self.mean
        return namespace(Z).linalg.solve(self.transform, Z.T).T + self.mean

    def problem(self, samples: Samples) -> DensityProblem:
        """The samples as the algorithms take them."""
        xp = namespace(samples.weights)
        Z = self.apply(xp.astype(samples.X, xp.float64))
        return DensityProblem.of(Z, xp.astype(samples.weights, xp.float64))

    def mixture(self, found: RoundMixture, samples: Samples) -> KernelMixture:
        """The density in the units of the data; centers that are samples are exactly those samples."""
        X = samples.X
        xp, dtype = namespace(X), float_dtype(X)
        if found.rows is None:
            vectors, indices = xp.astype(self.invert(found.centers), dtype), None
        else:
            vectors, indices = take_rows(X, found.rows), samples.all_rows(found.rows)
        weights = found.weights / xp.sum(found.weights)
        transform = xp.astype(self.transform, dtype)
        return KernelMixture(vectors, xp.astype(weights, dtype), xp.astype(found.widths, dtype), transform, indices)


def fit_scaling(X: Array, w: Array, scale: Scale) -> Scaling:
    """Scaling of samples ``X`` with weights ``w`` of any positive sum.

    A direction without spread gets the mean spread of the others: a density needs some width there, and theirs is the
    only length the data offer.
    """
    xp = namespace(X)
    w = w / xp.sum(w)
    mean = w @ X
    reach = float(xp.max(xp.abs(X - mean)))
    spread = column_spreads(X, w)
    constant, spread = _filled(spread, spread == 0)
    if scale == "none":
        return Scaling(mean, xp.ones_like(spread), constant, reach)
    if scale == "std":
        with quiet():  # the inverse of a spread below 1e-308 is infinite; whoever uses it looks at the reach
            return Scaling(mean, 1.0 / spread, constant, reach)
    # directions among features of unit variance: units do not decide which of them are constant
    gap = (X - mean) / spread
    values, vectors = xp.linalg.eigh(gap.T @ (w[:, None] * gap))
    values = xp.maximum(values, xp.zeros_like(values))
    constant, length = _filled(xp.sqrt(values), values <= _NO_VARIANCE * xp.max(values))
    with quiet():
        return Scaling(mean, (vectors / length).T / spread, constant, reach)


def _filled(spread: Array, none: Array) -> tuple[int, Array]:
    """Number of directions without spread, and the spreads with the mean of the others in their place."""
    xp = namespace(spread)
    count = int(xp.sum(xp.astype(none, xp.int64)))
    typical = xp.mean(spread[~none]) if count < spread.shape[0] else xp.ones_like(spread[0])
    return count, xp.where(none, typical, spread)
