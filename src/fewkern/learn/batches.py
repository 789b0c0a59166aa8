"""Models that learn from one batch of rows after the other, on vectors that stay.

All that a batch leaves behind is its sums, so the coefficients after any number of batches are those of one fit to all
rows, and two models on the same vectors are merged by adding up theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from fewkern.arrays.namespace import eps, is_sparse, namespace, to_numpy
from fewkern.arrays.storable import storable
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.core.samples import Samples
from fewkern.core.statistics import FeatureSums, LinearSolution, Statistics
from fewkern.learn.policy import Policy
from fewkern.select.leave_one_out import HeldOut, loo_paths

Basis = GaussianBasis | KernelBasis


@storable
@dataclass(frozen=True)
class Sums:
    """What a model knows of the rows that it has learned from."""

    basis: Basis
    alpha: float
    """The ridge per unit of weight."""
    statistics: Statistics
    weight: float = 0.0
    """Of the rows that were judged when they were left out."""
    error: float = 0.0
    """Weighted sum of their errors."""
    log_factor: float = 0.0
    """Weighted sum of the logarithm of the factor of the softmax that suits them."""

    @classmethod
    def of(cls, basis: Basis, alpha: float, samples: Samples) -> Sums:
        """After a first batch."""
        return cls(basis, alpha, FeatureSums(basis)(samples))

    def __add__(self, other: Sums) -> Sums:
        mine, theirs = float(self.statistics.weight), float(other.statistics.weight)
        return Sums(
            self.basis,
            (mine * self.alpha + theirs * other.alpha) / (mine + theirs),
            self.statistics + other.statistics,
            self.weight + other.weight,
            self.error + other.error,
            self.log_factor + other.log_factor,
        )

    def with_batch(self, samples: Samples) -> Sums:
        """After another batch, with targets."""
        return self.with_statistics(self.statistics + FeatureSums(self.basis)(samples))

    def with_statistics(self, statistics: Statistics) -> Sums:
        """Of other rows. Where rows were taken out, rounding may leave a sum of squares below zero."""
        xp = namespace(statistics.square)
        square = xp.maximum(statistics.square, xp.zeros_like(statistics.square))
        return replace(self, statistics=replace(statistics, square=square))

    def judged(self, weight: float, error: float, factor: float = 1.0) -> Sums:
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
        """The coefficients of the features, from all rows."""
        return self.statistics.solve(self.alpha * float(self.statistics.weight))

    def expansion(self) -> GaussianExpansion | KernelExpansion:
        """The fitted function."""
        solution = self.solution()
        like = self.basis.vectors.data if is_sparse(self.basis.vectors) else self.basis.vectors
        xp = namespace(solution.W)
        W, offset = (xp.astype(part, like.dtype, copy=False) for part in (solution.W, solution.offset))
        return self.basis.expand(W, offset)

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
        return HeldOut(xp.astype(values, samples.weights.dtype, copy=False), samples)


def best_ridge(basis: Basis, samples: Samples, policy: Policy) -> float:
    """The ridge per unit of weight of least leave-one-out error with all features of a basis."""
    total = float(namespace(samples.weights).sum(samples.weights))
    ridges = tuple(ridge * total for ridge in policy.ridges)
    paths = loo_paths(basis.features(samples.X), samples.targets, ridges, samples.weights)
    errors = [float(path.error[-1]) for path in paths]
    return policy.ridges[errors.index(min(errors))]


def same_basis(one: Any, other: Any) -> bool:
    """Whether two bases turn a sample into the same features."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        names = [field.name for field in fields(one) if field.name not in ("indices", "center_indices")]
        return all(same_basis(getattr(one, name), getattr(other, name)) for name in names)
    if not hasattr(one, "shape"):
        return bool(one is other or one == other)
    if is_sparse(one) or is_sparse(other):
        return one.shape == other.shape and (one != other).nnz == 0
    return one.shape == other.shape and bool((to_numpy(one) == to_numpy(other)).all())
