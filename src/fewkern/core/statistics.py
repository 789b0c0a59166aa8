"""Sums over rows: the sufficient statistics of a linear model of the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fewkern.arrays.linalg import jittered_cholesky, solve_triangular
from fewkern.arrays.namespace import Array, device, eps, namespace
from fewkern.arrays.storable import floats, storable
from fewkern.core.expansion import KernelBasis
from fewkern.core.gaussians import GaussianBasis
from fewkern.core.samples import Population, Samples, with_targets

# The least ridge, in units of rounding of the mean diagonal of the equations.
_LEAST_RIDGE = 10.0


def ridge_factor(gram: Array, ridge: float) -> tuple[Array, float]:
    """The lower triangular ``R'`` of ``gram + ridge diag(0, 1, .., 1) = R'R``, and its jitter: the constant is free.

    A ridge of zero is the least one beside which rounding is small: columns that depend on others then add nothing.
    """
    if ridge == 0:
        xp = namespace(gram)
        ridge = _LEAST_RIDGE * eps(gram) * max(float(xp.linalg.trace(gram)) / gram.shape[0], 1e-300)
    free = namespace(gram).eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
    free[0, 0] = 0.0
    return jittered_cholesky(gram + ridge * free)


@dataclass(frozen=True)
class LinearSolution:
    """``f(z) = W'z + offset``, and what gives leave-one-out values for any row."""

    W: Array
    offset: Array
    factor: Array
    """Lower triangular ``R'`` with ``[1 Z]' W [1 Z] + ridge diag(0, 1, .., 1) = R'R``."""
    jitter: float
    """Added to the ridge where rounding made that necessary."""

    def in_precision(self, dtype: Any) -> tuple[Array, Array]:
        """``W`` and ``offset`` as numbers of this type: sums are in double precision, models in that of the samples."""
        xp = namespace(self.W)
        return xp.astype(self.W, dtype, copy=False), xp.astype(self.offset, dtype, copy=False)

    def leverage(self, Z: Array, weights: Array) -> Array:
        """Leverage of each row, the share of its own target in its fitted value; the rows must be in the sums."""
        xp = namespace(Z)
        design = xp.concat([xp.ones_like(Z[:, :1]), Z], axis=1)
        Q = solve_triangular(self.factor, design.T).T
        return weights * xp.sum(Q * Q, axis=1)


@storable(gram=floats("m", "m"), cross=floats("m", "q"), square=floats("q", least=0.0))
@dataclass(frozen=True)
class Statistics:
    r"""Weighted sums over the rows of features ``Z`` and targets ``Y``, merged by ``+``; ``-`` takes rows out.

    Blocks of rows in memory or on a GPU, partitions of a Dask collection, files, and batches that come one after the
    other are treated alike.

    Parameters
    ----------
    gram : array of shape (1 + L, 1 + L)
        ``[1 Z]' W [1 Z]``. Its first row holds the sum of the weights and the weighted sums of the features.
    cross : array of shape (1 + L, q)
        ``[1 Z]' W Y``.
    square : array of shape (q,)
        Weighted sums of the squared targets.
    count : int
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.statistics import Statistics
    >>> Z, Y = np.arange(6.0).reshape(3, 2), np.array([[1.0], [3.0], [5.0]])
    >>> whole = Statistics.of(Z, Y, np.ones(3))
    >>> parts = Statistics.of(Z[:1], Y[:1], np.ones(1)) + Statistics.of(Z[1:], Y[1:], np.ones(2))
    >>> np.array_equal(whole.gram, parts.gram), parts.count
    (True, 3)
    """

    gram: Array
    cross: Array
    square: Array
    count: int

    @classmethod
    def of(cls, Z: Array, Y: Array, weights: Array) -> Statistics:
        """Sums over some rows, in double precision, whatever the rows are: there may be a billion of them."""
        xp = namespace(Z)
        Z, Y, weights = (xp.astype(one, xp.float64, copy=False) for one in (Z, Y, weights))
        design = xp.concat([xp.ones_like(Z[:, :1]), Z], axis=1)
        weighted = weights[:, None] * design
        return cls(design.T @ weighted, weighted.T @ Y, weights @ (Y * Y), int(Z.shape[0]))

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.gram + other.gram, self.cross + other.cross, self.square + other.square, self.count + other.count
        )

    def __sub__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.gram - other.gram, self.cross - other.cross, self.square - other.square, self.count - other.count
        )

    @property
    def weight(self) -> Array:
        """Sum of the weights."""
        return self.gram[0, 0]

    @property
    def mean(self) -> Array:
        """Weighted mean of the features."""
        return self.gram[0, 1:] / self.gram[0, 0]

    @property
    def scatter(self) -> Array:
        """Weighted sums of products of the centered features, ``(L, L)``."""
        return self.gram[1:, 1:] - self.weight * self.mean[:, None] * self.mean[None, :]

    @property
    def centered_cross(self) -> Array:
        """Weighted sums of products of the centered features with the targets, ``(L, q)``."""
        return self.cross[1:, :] - self.mean[:, None] * self.cross[:1, :]

    def solve(self, ridge: float) -> LinearSolution:
        r"""Minimise :math:`\sum_i w_i |y_i - \beta - A^T z_i|^2 + \text{ridge}\,|A|_F^2`, FVS (11)."""
        C, jitter = ridge_factor(self.gram, ridge)
        solution = solve_triangular(C, solve_triangular(C, self.cross), transposed=True)
        return LinearSolution(solution[1:, :], solution[0, :], C, jitter)


@dataclass(frozen=True)
class FeatureSums:
    """Turns a block of rows into sums of its features and targets, on whatever worker has the block."""

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
