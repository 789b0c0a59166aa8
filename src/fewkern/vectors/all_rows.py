"""Sums over all rows of the features of vectors that were chosen on some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fewkern.backend.namespace import Array, namespace
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.statistics import Statistics
from fewkern.vectors.leave_one_out import class_targets

__all__ = ["FeatureSums", "feature_statistics", "refit_on_all", "with_targets"]


def with_targets(samples: Samples) -> Samples:
    """With something to regress on: numbers as they are, indicators of the classes, or no column at all."""
    if samples.targets is not None:
        return samples
    if samples.codes is not None:
        return class_targets(samples)
    return replace(samples, targets=samples.weights[:, None][:, :0])


@dataclass(frozen=True)
class FeatureSums:
    """What is asked of every block of rows."""

    basis: KernelBasis

    def __call__(self, samples: Samples) -> Statistics:
        samples = with_targets(samples)
        return Statistics.of(self.basis.features(samples.X), samples.targets, samples.weights)


def feature_statistics(population: Population, basis: KernelBasis) -> Statistics:
    """Sums of the features of all rows: one pass over them."""
    return population.total(FeatureSums(basis), basis.n_vectors + 1)


def refit_on_all(population: Population, basis: KernelBasis, ridge: float) -> KernelExpansion:
    """Coefficients by eq. (11) for the vectors of a basis, from all rows."""
    solution = feature_statistics(population, basis).solve(ridge)
    return basis.expand(_as(solution.W, basis), _as(solution.offset, basis))


def _as(values: Array, basis: KernelBasis) -> Array:
    """Solutions are in double precision, models in that of the samples."""
    return namespace(values).astype(values, basis.factor.dtype, copy=False)
