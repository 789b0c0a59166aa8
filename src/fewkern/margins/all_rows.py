"""Features of all rows of a fit, wherever they are, and their moments, which are sums over the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fewkern.arrays.linalg import solve_triangular
from fewkern.arrays.namespace import Array, namespace
from fewkern.core.basis import KernelBasis
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.statistics import Statistics
from fewkern.margins.features import Features
from fewkern.select.all_rows import with_indicators
from fewkern.select.axes import Spread

__all__ = ["Coordinates", "RowFeatures", "features_of_all", "row_features", "weighing_as_all"]


@dataclass(frozen=True)
class RowFeatures:
    """How any rows become features in double precision."""

    basis: KernelBasis | None
    """None where the features are the samples themselves."""
    shift: Array
    """What is subtracted: something near the mean, or sums of squares would lose their digits far from zero."""

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.shift.shape[0])

    def __call__(self, X: Array) -> Array:
        xp = namespace(self.shift)
        return xp.astype(X if self.basis is None else self.basis.features(X), xp.float64) - self.shift

    def along(self, Q: Array) -> Coordinates:
        """The features in the coordinates ``Q``."""
        if self.basis is None:
            return Coordinates(self, Q, namespace(Q).zeros_like(Q[0, :]))
        factor = namespace(Q).astype(self.basis.factor, Q.dtype)
        return Coordinates(self, solve_triangular(factor, Q, transposed=True), self.shift @ Q)


@dataclass(frozen=True)
class Coordinates:
    """How any rows become coordinates: of samples about their mean, or of kernel columns without their features."""

    features: RowFeatures
    coef: Array
    constant: Array

    def __call__(self, X: Array) -> Array:
        basis = self.features.basis
        columns = self.features(X) if basis is None else basis.columns(X)
        return namespace(self.coef).astype(columns, self.coef.dtype) @ self.coef - self.constant


@dataclass(frozen=True)
class _Moments:
    """What is asked of every block of rows: sums of the features and of their products, all and by class."""

    features: RowFeatures

    def __call__(self, samples: Samples) -> Statistics:
        samples = with_indicators(samples)
        return Statistics.of(self.features(samples.X), samples.targets, samples.weights)


@dataclass(frozen=True)
class _RowSum:
    """Weighted sum of rows."""

    total: Array
    weight: float

    def __add__(self, other: _RowSum) -> _RowSum:
        return _RowSum(self.total + other.total, self.weight + other.weight)

    @property
    def mean(self) -> Array:
        return self.total / self.weight


def _row_sum(samples: Samples) -> _RowSum:
    """Of dense or sparse samples as they are."""
    weights = namespace(samples.weights).astype(samples.weights, namespace(samples.weights).float64)
    return _RowSum(samples.X.T @ weights, float(namespace(weights).sum(weights)))


def row_features(features: Features) -> RowFeatures:
    """The features of any rows, centered as those of the sample are."""
    return RowFeatures(features.basis, features.mean)


def features_of_all(features: Features, population: Population) -> tuple[Features, Spread]:
    """Features of the sample about the mean of all rows, and how those of all rows spread about it: one pass."""
    rows = row_features(features)
    spread = Spread.of_sums(population.total(_Moments(rows), rows.width + 1))
    moved = replace(features, mean=features.mean + spread.mean)
    if features.Z is not None:
        moved = replace(moved, Z=features.Z - spread.mean)
    if features.linear and features.basis is not None:
        # features on some of the samples do not tell the mean of the samples themselves
        moved = replace(moved, center=population.total(_row_sum, features.samples.X.shape[1]).mean)
    return moved, spread


def weighing_as_all(samples: Samples, spread: Spread) -> Samples:
    """The samples with weights that add up, in every class, to those of all rows."""
    xp = namespace(samples.weights)
    weights = xp.astype(samples.weights, spread.masses.dtype)
    member = with_indicators(replace(samples, weights=weights)).targets
    share = spread.masses / xp.sum(weights[:, None] * member, axis=0)
    return replace(samples, weights=weights * (member @ share))
