"""Models that learn from one batch of rows after the other, on vectors that stay.

All that a batch leaves behind is its sums, so the coefficients after any number of batches are those of one fit to all
rows, and two models on the same vectors are merged by adding up theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from fewkern.backend.namespace import eps, is_sparse, namespace, to_numpy
from fewkern.backend.storable import storable
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.samples import Samples
from fewkern.core.statistics import LinearSolution, Statistics
from fewkern.vectors.all_rows import FeatureSums, expansion_from
from fewkern.vectors.leave_one_out import HeldOut, loo_paths

__all__ = ["Learned", "begin", "best_ridge", "same_basis"]


@storable
@dataclass(frozen=True)
class Learned:
    """What a model knows of the batches that it has seen."""

    basis: KernelBasis
    ridge: float
    statistics: Statistics
    weight: float = 0.0
    """Of the rows that were judged when they were left out."""
    error: float = 0.0
    """Weighted sum of their errors."""
    log_factor: float = 0.0
    """Weighted sum of the logarithm of the factor of the softmax that suits them."""

    def __add__(self, other: Learned) -> Learned:
        return replace(
            self,
            statistics=self.statistics + other.statistics,
            weight=self.weight + other.weight,
            error=self.error + other.error,
            log_factor=self.log_factor + other.log_factor,
        )

    def with_batch(self, samples: Samples) -> Learned:
        """After another batch, with targets."""
        return replace(self, statistics=self.statistics + FeatureSums(self.basis)(samples))

    def judged(self, weight: float, error: float, factor: float = 1.0) -> Learned:
        """After a batch was judged, row by row, each row left out."""
        return replace(
            self,
            weight=self.weight + weight,
            error=self.error + weight * error,
            log_factor=self.log_factor + weight * math.log(factor),
        )

    @property
    def mean_error(self) -> float:
        """Of the rows that were judged."""
        return self.error / self.weight

    @property
    def factor(self) -> float:
        """Of the softmax: the geometric mean over the batches."""
        return math.exp(self.log_factor / self.weight)

    def solution(self) -> LinearSolution:
        """The coefficients on the features, from all batches."""
        return self.statistics.solve(self.ridge)

    def expansion(self) -> KernelExpansion:
        """The fitted function."""
        return expansion_from(self.statistics, self.basis, self.ridge)

    def left_out(self, samples: Samples) -> HeldOut:
        """What the model says of every row of a batch that it has learned from, had it not seen that row."""
        found, Z = self.solution(), self.basis.features(samples.X)
        xp = namespace(found.W)
        Z, Y, w = (xp.astype(one, xp.float64, copy=False) for one in (Z, samples.targets, samples.weights))
        fit = Z @ found.W + found.offset
        left = (1.0 - found.leverage(Z, w))[:, None]
        # a row on which alone some direction hangs is predicted by nothing but the constant
        alone = left <= 1e3 * eps(Z)
        values = Y - (Y - fit) / xp.where(alone, xp.ones_like(left), left)
        values = xp.where(alone, xp.zeros_like(values) + found.offset, values)
        return HeldOut(samples, xp.astype(values, samples.weights.dtype, copy=False))


def begin(basis: KernelBasis, ridge: float, samples: Samples) -> Learned:
    """A model on the vectors of a basis, after a first batch."""
    return Learned(basis, ridge, FeatureSums(basis)(samples))


def best_ridge(basis: KernelBasis, samples: Samples, ridges: tuple[float, ...]) -> float:
    """The ridge of least leave-one-out error with all vectors of a basis; ``ridges`` are in units of ``k(x, x)``."""
    diag = basis.kernel.diag(samples.X)
    scale = float(namespace(diag).mean(diag)) or 1.0
    scaled = tuple(ridge * scale for ridge in ridges)
    paths = loo_paths(basis.features(samples.X), samples.targets, scaled, samples.weights)
    errors = [float(path.error[-1]) for path in paths]
    return scaled[errors.index(min(errors))]


def same_basis(one: KernelBasis, other: KernelBasis) -> bool:
    """Whether two bases turn a sample into the same features."""
    if type(one.kernel) is not type(other.kernel) or one.projection != other.projection:
        return False
    theirs = other.kernel.get_params()
    return all(_equal(value, theirs[name]) for name, value in one.kernel.get_params().items()) and all(
        _equal(getattr(one, name), getattr(other, name)) for name in ("vectors", "factor", "center_vectors")
    )


def _equal(one: Any, other: Any) -> bool:
    """Whether two arrays, or two plain values, are the same."""
    if not hasattr(one, "shape") or not hasattr(other, "shape"):
        return bool(one is other or one == other)
    if is_sparse(one) or is_sparse(other):
        return one.shape == other.shape and (one != other).nnz == 0
    return one.shape == other.shape and bool((to_numpy(one) == to_numpy(other)).all())
