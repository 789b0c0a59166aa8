r"""Coefficients from all rows, for vectors that were chosen on a sample of them.

Least squares, with or without the penalty of (5), needs only the products of the kernel columns with each other and
with the targets: one pass over the rows.

A logistic regression has no such sums. With :math:`J` its mean objective on the sample and :math:`\bar J` that on all
rows, both known at :math:`b_0`, the surrogate

.. math:: J(b) + b^T \left[\nabla \bar J(b_0) - \nabla J(b_0)\right]

has the right derivative at :math:`b_0` and the curvature of the sample. Its minimum is that of all rows up to the part
in which the two curvatures differ, squared by the second pass (Jordan, Lee and Yang, "Communication-efficient
distributed statistical inference", JASA 114, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.backend.namespace import Array, namespace
from fewkern.core.kernel import Kernel
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.statistics import Statistics
from fewkern.fisher.choice import Chosen
from fewkern.fisher.deciding import Deciding, Labelled
from fewkern.fisher.families import Family, Fitted
from fewkern.fisher.problem import Machine
from fewkern.fisher.targets import FisherTargets

__all__ = ["machine_of_all"]

# Passes over all rows for a logistic regression. A sample of thousands of rows has their curvature to a few percent.
_PASSES = 2


def machine_of_all(
    population: Population, sample: Samples, chosen: Chosen, fitted: Fitted, family: Family, targets: FisherTargets
) -> Machine:
    """The machine on the same vectors with the coefficients of all rows; as it is where the sample is all rows.

    The targets are those of the sample, so that what was learned of its values still holds.
    """
    machine, candidates = fitted.machine, chosen.candidates
    if population.n == sample.n or not machine.size:
        return machine
    kernel = candidates.kernel
    vectors = candidates.pick(sample.X, machine.support)
    if fitted.deciding is None:
        sums = population.total(_Products(kernel, vectors, targets), machine.size + 1)
        found = family.refit(machine, sums, chosen.setting)
    else:
        found = machine
        columns = namespace(candidates.K).take(candidates.K, machine.support, axis=1)
        here = Labelled(columns, sample.codes, sample.weights)
        for _ in range(_PASSES):
            ask = _Slopes(kernel, vectors, fitted.deciding, found)
            everywhere, own = population.total(ask, machine.size + 1), ask.of(here)
            # in the units of the regression, whose weights add up to the number of samples
            found = fitted.deciding.regress(here, found, sample.n * (everywhere.mean - own.mean))
    xp, dtype = namespace(machine.coef), machine.coef.dtype
    return Machine(found.support, xp.astype(found.coef, dtype), xp.astype(found.offset, dtype))


@dataclass(frozen=True)
class _Products:
    """What is asked of every block of rows: products of the kernel columns and of the targets."""

    kernel: Kernel
    vectors: Array
    targets: FisherTargets

    def __call__(self, samples: Samples) -> Statistics:
        K = self.kernel(samples.X, self.vectors)
        return Statistics.of(K, self.targets.rows(samples.codes), samples.weights)


@dataclass(frozen=True)
class _Slope:
    """Derivative of the losses of some rows by the coefficients, and the weight of these rows."""

    total: Array
    weight: float

    def __add__(self, other: _Slope) -> _Slope:
        return _Slope(self.total + other.total, self.weight + other.weight)

    @property
    def mean(self) -> Array:
        return self.total / self.weight


@dataclass(frozen=True)
class _Slopes:
    """What is asked of every block of rows: the derivative of its losses."""

    kernel: Kernel
    vectors: Array
    deciding: Deciding
    machine: Machine

    def __call__(self, samples: Samples) -> _Slope:
        return self.of(Labelled(self.kernel(samples.X, self.vectors), samples.codes, samples.weights))

    def of(self, rows: Labelled) -> _Slope:
        weights = namespace(rows.weights).astype(rows.weights, namespace(rows.weights).float64)
        return _Slope(self.deciding.slopes(rows, self.machine), float(namespace(weights).sum(weights)))
