r"""The linear map before an isotropic kernel: none, one number per feature, or whitening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewkern.arrays.columns import column_spreads, unless_rounding
from fewkern.arrays.finite import quiet
from fewkern.arrays.namespace import Array, float_dtype, namespace, take_rows
from fewkern.core.samples import Samples
from fewkern.density.mixture import KernelMixture
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["MomentSums", "Moments", "Scale", "Scaling", "fit_scaling", "scaling_of"]

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

    A direction without spread gets the mean spread of the others: a density needs some bandwidth there, and theirs is
    the only length the data offer.
    """
    xp = namespace(X)
    w = w / xp.sum(w)
    mean = w @ X
    reach = float(xp.max(xp.abs(X - mean)))
    constant, spread = _filled(column_spreads(X, w))
    if scale != "whiten":
        return _by_features(mean, spread, scale, constant, reach)
    gap = (X - mean) / spread
    return _by_directions(mean, spread, gap.T @ (w[:, None] * gap), reach)


def scaling_of(samples: Samples, scale: Scale) -> Scaling:
    """Scaling of samples that are in memory, in double precision."""
    xp = namespace(samples.weights)
    return fit_scaling(xp.astype(samples.X, xp.float64), xp.astype(samples.weights, xp.float64), scale)


@dataclass(frozen=True)
class Moments:
    """Sums over samples from which their scaling follows; those of parts are merged by ``+``.

    The samples are counted from an ``origin`` among them and in units of about their reach, so that no digits cancel
    and no square overflows.
    """

    origin: Array
    unit: Array
    weight: Array
    square: Array
    """Sum of the squared weights."""
    first: Array
    second: Array
    """Of every feature ``(m,)``, or of every pair ``(m, m)``."""
    least: Array
    largest: Array

    def __add__(self, other: Moments) -> Moments:
        xp = namespace(self.first)
        return Moments(
            self.origin,
            self.unit,
            self.weight + other.weight,
            self.square + other.square,
            self.first + other.first,
            self.second + other.second,
            xp.minimum(self.least, other.least),
            xp.maximum(self.largest, other.largest),
        )

    @property
    def effective_size(self) -> float:
        r""":math:`N_{\rm eff} = (\sum_i w_i)^2 / \sum_i w_i^2`."""
        return float(self.weight * self.weight / self.square)

    def scaling(self, scale: Scale) -> Scaling:
        """What :func:`fit_scaling` gives for all these samples."""
        xp = namespace(self.first)
        shift = self.first / self.weight
        mean = self.origin + self.unit * shift
        reach = float(xp.max(xp.maximum(self.largest - mean, mean - self.least)))
        second = self.second / self.weight
        variance = (xp.linalg.diagonal(second) if second.ndim == 2 else second) - shift * shift
        spread = self.unit * xp.sqrt(xp.maximum(variance, xp.zeros_like(variance)))
        spread = unless_rounding(spread, xp.maximum(xp.abs(self.least), xp.abs(self.largest)))
        constant, spread = _filled(spread)
        if scale != "whiten":
            return _by_features(mean, spread, scale, constant, reach)
        relative = self.unit / spread
        covariance = second - shift[:, None] * shift[None, :]
        return _by_directions(mean, spread, relative[:, None] * covariance * relative[None, :], reach)


@dataclass(frozen=True)
class MomentSums:
    """What is asked of every block of samples."""

    origin: Array
    unit: Array
    pairs: bool

    @classmethod
    def near(cls, samples: Samples, scale: Scale) -> MomentSums:
        """Counted from the mean of some of the samples, in units of their reach."""
        xp = namespace(samples.weights)
        X, w = xp.astype(samples.X, xp.float64), xp.astype(samples.weights, xp.float64)
        origin = (w / xp.sum(w)) @ X
        reach = xp.max(xp.abs(X - origin), axis=0)
        unit = xp.where(reach > 0, reach, xp.abs(origin))
        return cls(origin, xp.where(unit > 0, unit, xp.ones_like(unit)), scale == "whiten")

    def __call__(self, samples: Samples) -> Moments:
        xp = namespace(samples.weights)
        X, w = xp.astype(samples.X, xp.float64), xp.astype(samples.weights, xp.float64)
        gap = (X - self.origin) / self.unit
        second = gap.T @ (w[:, None] * gap) if self.pairs else w @ (gap * gap)
        some = X if samples.n else self.origin[None, :]  # a block may have no rows; the origin is among the samples
        least, largest = xp.min(some, axis=0), xp.max(some, axis=0)
        return Moments(self.origin, self.unit, xp.sum(w), xp.sum(w * w), w @ gap, second, least, largest)


def _by_features(mean: Array, spread: Array, scale: Scale, constant: int, reach: float) -> Scaling:
    if scale == "none":
        return Scaling(mean, namespace(spread).ones_like(spread), constant, reach)
    with quiet():  # the inverse of a spread below 1e-308 is infinite; whoever uses it looks at the reach
        return Scaling(mean, 1.0 / spread, constant, reach)


def _by_directions(mean: Array, spread: Array, correlation: Array, reach: float) -> Scaling:
    """Directions among features of unit variance: units do not decide which of them are constant."""
    xp = namespace(spread)
    values, vectors = xp.linalg.eigh(correlation)
    values = xp.maximum(values, xp.zeros_like(values))
    constant, length = _filled(xp.sqrt(values), values <= _NO_VARIANCE * xp.max(values))
    with quiet():
        return Scaling(mean, (vectors / length).T / spread, constant, reach)


def _filled(spread: Array, none: Array | None = None) -> tuple[int, Array]:
    """Number of directions without spread, and the spreads with the mean of the others in their place."""
    xp, none = namespace(spread), spread == 0 if none is None else none
    count = int(xp.sum(xp.astype(none, xp.int64)))
    typical = xp.mean(spread[~none]) if count < spread.shape[0] else xp.ones_like(spread[0])
    return count, xp.where(none, typical, spread)
