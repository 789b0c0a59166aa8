"""Models that learn from one batch of rows after the other, on vectors that stay.

All that a batch leaves behind is its sums, so the coefficients after any number of batches are those of one fit to all
rows, and two models on the same vectors are merged by adding up theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fewkern.arrays.namespace import Array, concat_rows, eps, is_sparse, namespace, to_numpy
from fewkern.arrays.neighbors import distinct_rows
from fewkern.arrays.storable import storable
from fewkern.core.expansion import KernelBasis, KernelExpansion
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.core.samples import Samples
from fewkern.core.statistics import FeatureSums, LinearSolution, Statistics
from fewkern.learn.policy import Policy
from fewkern.select.leave_one_out import HeldOut, held_out_values, loo_paths

Basis = GaussianBasis | KernelBasis
# Rounding of sums over many rows, over that of one number.
_SUM_ROUNDING_ERRORS = 1e4
# Digits to which rows are compared with vectors that went through a preparation and back.
_DIGITS = 6


@storable
@dataclass(frozen=True)
class Sums:
    """Sums over the rows that a model was fitted to, on a basis that stays."""

    basis: Basis
    alpha: float
    """The ridge per unit of weight."""
    statistics: Statistics
    weight: float = 0.0
    """Weight of the rows with leave-one-out errors."""
    error: float = 0.0
    """Weighted sum of their errors."""
    log_factor: float = 0.0
    """Weighted sum of the logarithm of the factor of the softmax that suits them."""

    @classmethod
    def of(cls, basis: Basis, alpha: float, samples: Samples) -> Sums:
        """The sums after a first batch."""
        return cls(basis, alpha, FeatureSums(basis)(samples))

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.basis,
            self.alpha,  # that of the first batch, as with batches one after the other
            self.statistics + other.statistics,
            self.weight + other.weight,
            self.error + other.error,
            self.log_factor + other.log_factor,
        )

    def with_batch(self, samples: Samples) -> Sums:
        """The sums after another batch, with targets."""
        return replace(self, statistics=self.statistics + FeatureSums(self.basis)(samples))

    def without(self, samples: Samples) -> Sums | None:
        """The sums of the other rows; None where no rows could have such sums."""
        left = self.statistics - FeatureSums(self.basis)(samples)
        if not is_possible(left, self.statistics, eps(samples.weights)):
            return None
        # rounding may leave a sum of squares below zero
        square = namespace(left.square).maximum(left.square, namespace(left.square).zeros_like(left.square))
        return replace(self, statistics=replace(left, square=square))

    def judged(self, weight: float, error: float, factor: float = 1.0) -> Sums:
        """The sums with the leave-one-out error of another batch added."""
        return replace(
            self,
            weight=self.weight + weight,
            error=self.error + weight * error,
            log_factor=self.log_factor + weight * math.log(factor),
        )

    @property
    def mean_error(self) -> float:
        """Mean leave-one-out error."""
        return self.error / self.weight

    @property
    def factor(self) -> float:
        """Factor of the softmax: the geometric mean over the batches."""
        return math.exp(self.log_factor / self.weight)

    def solution(self) -> LinearSolution:
        """The coefficients of the features, from all rows."""
        return self.statistics.solve(self.alpha * float(self.statistics.weight))

    def expansion(self) -> GaussianExpansion | KernelExpansion:
        """The fitted function."""
        return self.basis.expand(*self.solution().in_precision(self.basis.vectors.dtype))

    def left_out(self, samples: Samples) -> HeldOut:
        """Leave-one-out predictions for the rows of a batch that is in the sums."""
        found, Z = self.solution(), self.basis.features(samples.X)
        xp = namespace(found.W)
        Z, Y, w = (xp.astype(one, xp.float64, copy=False) for one in (Z, samples.targets, samples.weights))
        # a row that alone determines some direction is predicted by the constant
        values = held_out_values(Y, Z @ found.W + found.offset, found.leverage(Z, w), found.offset)
        return HeldOut(xp.astype(values, samples.weights.dtype, copy=False), samples)


def best_ridge(basis: Basis, samples: Samples, policy: Policy) -> float:
    """The ridge per unit of weight of least leave-one-out error with all features of a basis."""
    total = float(namespace(samples.weights).sum(samples.weights))
    ridges = tuple(ridge * total for ridge in policy.start.ridges)
    paths = loo_paths(basis.features(samples.X), samples.targets, ridges, samples.weights)
    errors = [float(path.error[-1]) for path in paths]
    return policy.start.ridges[errors.index(min(errors))]


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


def sums_before(estimator: Any) -> Sums | None:
    """The sums of a model after ``fit`` or ``partial_fit``; None if it is not fitted."""
    for name in ("_sums", "_fitted_to"):
        found: Sums | None = getattr(estimator, name, None)
        if found is not None:
            return found
    if hasattr(estimator, "expansion_"):
        raise ValueError(
            f"{type(estimator).__name__}: this model was fitted by fit and came from a file, which holds no sums over "
            "its samples; begin a new one by partial_fit, with basis=model.basis_ to keep its vectors, or save the "
            "original with save(model, path, with_sums=True)."
        )
    return None


def is_possible(left: Statistics, before: Statistics, rounding: float) -> bool:
    """Whether some rows of positive weight have the sums ``left``, up to the rounding of those from ``before``."""
    xp = namespace(left.gram)
    slack = _SUM_ROUNDING_ERRORS * rounding
    if float(left.weight) <= slack * float(before.weight):
        return False
    least = float(xp.min(xp.linalg.eigvalsh(left.gram)))
    if least < -slack * float(xp.linalg.trace(before.gram)):
        return False
    # of targets whose mean is far from zero little is left when it is taken out
    spread = left.square - left.cross[0, :] ** 2 / left.weight
    return bool(xp.all(spread >= -slack * before.square))


def rows_among(X: Array, vectors: Array) -> Any:
    """Which rows of ``X`` are equal to one of the ``vectors``, up to six digits of the largest number of a column."""
    if is_sparse(vectors):
        known, new = sp.csr_array(vectors), sp.csr_array(X)
    else:
        V = to_numpy(vectors).astype(np.float64)
        unit = np.abs(V).max(axis=0, initial=0.0)
        unit[unit == 0] = 1.0
        known, new = (np.round(rows / unit, _DIGITS) for rows in (V, X.toarray() if is_sparse(X) else to_numpy(X)))
    _, place = distinct_rows(concat_rows(known, new))
    count = int(known.shape[0])
    return np.isin(place[count:], place[:count])
