r"""The linear map before an isotropic kernel: none, one number per feature, or whitening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewkern.backend.finite import power_of_two, quiet
from fewkern.backend.namespace import Array, eps, float_dtype, namespace, take_rows
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
    # in units of a power of two near the largest value: exact, and no square over- or underflows
    reach = float(xp.max(xp.abs(X - mean)))
    size = power_of_two(reach)
    gap = (X - mean) / size
    if scale == "whiten":
        values, vectors = xp.linalg.eigh(gap.T @ (w[:, None] * gap))
        values = xp.maximum(values, xp.zeros_like(values))
        none = values <= _NO_VARIANCE * xp.max(values)
        spread = size * xp.sqrt(values)
    else:
        spread = size * xp.sqrt(w @ (gap * gap))
        none = spread <= 8 * eps(X) * xp.max(xp.abs(X))
    count = int(xp.sum(xp.astype(none, xp.int64)))
    typical = xp.mean(spread[~none]) if count < spread.shape[0] else xp.ones_like(mean[0])
    spread = xp.where(none, typical, spread)
    if scale == "none":
        return Scaling(mean, xp.ones_like(spread), count, reach)
    with quiet():  # the inverse of a spread below 1e-308 is infinite; whoever uses it looks at the reach
        transform = 1.0 / spread if scale == "std" else (vectors / spread).T
    return Scaling(mean, transform, count, reach)
