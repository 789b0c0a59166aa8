"""Coefficients from all rows, for vectors that were chosen on a sample of them.

Least squares, with or without the penalty of (5), needs only the products of the kernel columns with each other and
with the targets: one pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fewkern.arrays.namespace import Array, namespace, take_rows
from fewkern.core.kernel import Kernel
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.statistics import Statistics
from fewkern.fisher.choice import Candidates
from fewkern.fisher.families import Family, Fitted
from fewkern.fisher.problem import Machine
from fewkern.fisher.targets import FisherTargets, fisher_targets

__all__ = ["fit_to_all"]


def fit_to_all(
    population: Population, sample: Samples, candidates: Candidates, fitted: Fitted, family: Family, setting: float
) -> Fitted:
    """The machine on the same vectors with the coefficients of all rows; as it is where the sample is all rows.

    The targets are those of the sample, so that what was learned of its values still holds.
    """
    machine, kernel = fitted.machine, candidates.kernel
    if population.n == sample.n or not machine.size:
        return fitted
    targets = fisher_targets(sample.codes, sample.n_classes, sample.weights)
    vectors = kernel.pick(sample.X, take_rows(candidates.rows, machine.support))
    sums = population.total(_Products(kernel, vectors, targets), machine.size + 1)
    found = family.refit(fitted, sums, setting)
    xp, dtype = namespace(machine.coef), machine.coef.dtype
    coef, offset = xp.astype(found.machine.coef, dtype), xp.astype(found.machine.offset, dtype)
    return replace(found, machine=Machine(found.machine.support, coef, offset))


@dataclass(frozen=True)
class _Products:
    """What is asked of every block of rows: products of the kernel columns and of the targets."""

    kernel: Kernel
    vectors: Array
    targets: FisherTargets

    def __call__(self, samples: Samples) -> Statistics:
        K = self.kernel(samples.X, self.vectors)
        return Statistics.of(K, self.targets.rows(samples.codes), samples.weights)
