"""Sums over all rows of the features of vectors that were chosen on some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from fewkern.arrays.linalg import one_hot
from fewkern.arrays.namespace import Array, namespace
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianBasis
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.statistics import Statistics
from fewkern.select.axes import Spread
from fewkern.select.leave_one_out import class_targets

__all__ = [
    "FeatureSums",
    "expansion_from",
    "feature_statistics",
    "in_precision_of",
    "spread_of",
    "with_indicators",
    "with_targets",
]


def with_targets(samples: Samples) -> Samples:
    """With something to regress on: numbers as they are, or indicators of the classes."""
    return samples if samples.targets is not None else class_targets(samples)


def with_indicators(samples: Samples) -> Samples:
    """With one 0/1 column per class; one column of ones where there are no classes."""
    xp = namespace(samples.weights)
    if samples.codes is None:
        return replace(samples, targets=xp.ones_like(samples.weights[:, None]))
    return replace(samples, targets=one_hot(samples.codes, samples.n_classes, samples.weights.dtype))


@dataclass(frozen=True)
class FeatureSums:
    """What is asked of every block of rows."""

    basis: KernelBasis | GaussianBasis
    targets: Callable[[Samples], Samples] = with_targets

    def __call__(self, samples: Samples) -> Statistics:
        samples = self.targets(samples)
        return Statistics.of(self.basis.features(samples.X), samples.targets, samples.weights)


def feature_statistics(
    population: Population,
    basis: KernelBasis | GaussianBasis,
    targets: Callable[[Samples], Samples] = with_targets,
) -> Statistics:
    """Sums of the features of all rows, and of their products with the targets: one pass over the rows."""
    return population.total(FeatureSums(basis, targets), basis.n_vectors + 1)


def expansion_from(sums: Statistics, basis: KernelBasis, ridge: float) -> KernelExpansion:
    """Coefficients by eq. (11) for the vectors of a basis, from sums over all rows."""
    solution = sums.solve(ridge)
    return basis.expand(in_precision_of(solution.W, basis), in_precision_of(solution.offset, basis))


def spread_of(population: Population, basis: KernelBasis, Z: Array) -> Spread:
    """Features of all rows about their mean; ``Z`` are those of the sample, which may be all."""
    if population.n == population.sample.n:
        return Spread.of(Z, population.sample)
    spread = Spread.of_sums(feature_statistics(population, basis, with_indicators))
    return Spread(*(in_precision_of(getattr(spread, field.name), basis) for field in fields(spread)))


def in_precision_of(values: Array, basis: KernelBasis) -> Array:
    """Solutions are in double precision, models in that of the samples."""
    return namespace(values).astype(values, basis.factor.dtype, copy=False)
