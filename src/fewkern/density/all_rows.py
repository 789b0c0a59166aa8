"""A density of all rows of a fit, from kernels that were chosen on some of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fewkern.arrays.namespace import Array, namespace, take_rows
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.density.mixture import normal_kernel, squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture, Sum
from fewkern.density.scaling import MomentSums, Scale, Scaling
from fewkern.density.simplex import active_set

__all__ = ["AllRows", "weights_from_all"]


@dataclass(frozen=True)
class AllRows:
    """All rows of a population, scaled by the moments of all; their weights add up to one."""

    population: Population
    scaling: Scaling
    weight: float
    """Sum of the weights of the rows."""
    effective_size: float

    @classmethod
    def of(cls, population: Population, scale: Scale) -> AllRows:
        """One pass over the rows."""
        found = population.total(MomentSums.near(population.sample, scale), 2 * int(population.sample.X.shape[1]))
        return cls(population, found.scaling(scale), float(found.weight), found.effective_size)

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum over blocks of rows: one pass."""
        return self.population.total(_Scaled(self.scaling, self.weight, of), row_elements)

    def narrowing(self, problem: DensityProblem) -> float:
        r"""The bandwidth of Parzen's estimate of all rows over that of the ``problem``, some of them.

        It falls with the number of samples like :math:`N^{-1/(m+4)}`.
        """
        return math.pow(problem.effective_size / self.effective_size, 1.0 / (problem.dim + 4))


@dataclass(frozen=True)
class _Scaled:
    """A function of scaled samples as one of samples."""

    scaling: Scaling
    weight: float
    of: Callable[[Array, Array], Any]

    def __call__(self, samples: Samples) -> Any:
        xp = namespace(samples.weights)
        Z = self.scaling.apply(xp.astype(samples.X, xp.float64))
        return self.of(Z, xp.astype(samples.weights, xp.float64) / self.weight)


@dataclass(frozen=True)
class _KernelSums:
    """Weighted sums of the kernels over samples."""

    mixture: RoundMixture
    unit: float

    def __call__(self, Z: Array, w: Array) -> Array:
        D = squared_distances(Z, self.mixture.centers)
        return w @ normal_kernel(D, self.mixture.widths, int(Z.shape[1]), self.unit)


def weights_from_all(rows: AllRows, problem: DensityProblem, mixture: RoundMixture) -> RoundMixture:
    r"""The weights of kernels at samples that minimize the integrated squared error to the density of all rows.

    .. math:: Q(g) = g'Bg - 2 g'v, \qquad
              v_j = \frac{\sum_{i\ne(j)} w_i K(x_i, x_{(j)}, \sigma_j)}{1 - w_{(j)}}

    as in :mod:`fewkern.density.integrated`, but with sums over all rows; ``problem`` are those that the centers are
    among. One pass. Kernels without weight are left out.
    """
    xp, widths = namespace(mixture.widths), mixture.widths
    dim, unit = problem.dim, float(xp.min(widths))
    D = squared_distances(mixture.centers, mixture.centers)
    B = normal_kernel(D, (widths[:, None] ** 2 + widths[None, :] ** 2) ** 0.5, dim, unit)
    own = take_rows(xp.astype(rows.population.sample.weights, xp.float64), mixture.rows) / rows.weight
    v = rows.total(_KernelSums(mixture, unit), 2 * int(widths.shape[0]))
    v = (v - own * normal_kernel(xp.zeros_like(widths), widths, dim, unit)) / (1.0 - own)
    found = active_set(B, v).weights
    kept = xp.nonzero(found > 0)[0]
    return problem.mixture(take_rows(mixture.rows, kept), take_rows(widths, kept), take_rows(found, kept))
