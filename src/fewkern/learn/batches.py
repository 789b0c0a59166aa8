"""Models that learn from one batch of rows after the other, on vectors that stay.

All that a batch leaves behind is its sums, so the coefficients after any number of batches are those of one fit to all
rows, and two models on the same vectors are merged by adding up theirs.
"""

from __future__ import annotations

import math
import warnings
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import Array, concat_rows, eps, is_sparse, namespace, to_numpy
from fewkern.arrays.neighbors import distinct_rows
from fewkern.arrays.storable import storable
from fewkern.core.expansion import KernelBasis, KernelExpansion
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.core.samples import Samples
from fewkern.core.statistics import FeatureSums, LinearSolution, Statistics
from fewkern.learn.policy import POLICY, Policy
from fewkern.select.leave_one_out import HeldOut, loo_paths

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
        """With the leave-one-out error of another batch added."""
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
        """Of the softmax: the geometric mean over the batches."""
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


def policy_of(estimator: Any) -> Policy:
    """The numbers that steer the fits of an estimator."""
    return getattr(estimator, "_policy", POLICY)


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


def begin(estimator: Any, basis: Basis, samples: Samples) -> Sums:
    """The sums after a first batch on a given basis; the ridge is chosen on that batch."""
    estimator.novelty_, estimator.path_, estimator.background_, estimator.origin_ = None, None, None, "given"
    return Sums.of(basis, best_ridge(basis, samples, policy_of(estimator)), samples)


def continue_with(estimator: Any, sums: Sums, basis: Basis | None, samples: Samples) -> Sums:
    """The sums after another batch."""
    if basis is not None and not same_basis(basis, sums.basis):
        raise ValueError(
            f"{type(estimator).__name__}: the vectors stay those of the first batch; basis= is another one. Begin "
            "a new model, or leave basis out."
        )
    same_outputs(estimator, sums, samples)
    return sums.with_batch(samples)


def same_outputs(estimator: Any, sums: Sums, samples: Samples) -> None:
    """Refuse rows with more or fewer targets than those before."""
    known = int(sums.statistics.cross.shape[1])
    if samples.n_outputs != known:
        raise ValueError(
            f"{type(estimator).__name__}: y has {samples.n_outputs} output(s), but the first batch had {known}; pass "
            "as many in every batch, or begin a new model."
        )


def keep_function(estimator: Any, sums: Sums, expansion: GaussianExpansion | KernelExpansion) -> None:
    """Assign a fitted function and the attributes of its vectors."""
    estimator.alpha_, estimator.basis_, estimator.expansion_ = sums.alpha, sums.basis, expansion
    estimator.n_vectors_, estimator.vectors_ = expansion.n_vectors, expansion.vectors
    estimator.indices_ = expansion.indices


def keep_batch(estimator: Any, sums: Sums) -> None:
    """Assign the attributes of a model after a batch."""
    estimator._sums, estimator._fitted_to = sums, None
    keep_function(estimator, sums, sums.expansion())
    estimator.held_out_error_ = sums.mean_error


def merged(one: Any, other: Any) -> Any:
    """A copy of ``one`` with the sums of both."""
    name = type(one).__name__
    for model in (one, other):
        check_is_fitted(model)
    if type(one) is not type(other):
        raise TypeError(f"{name}: only another {name} can be merged with it, got {type(other).__name__}.")
    mine, theirs = sums_before(one), sums_before(other)
    assert mine is not None
    assert theirs is not None
    if not same_basis(mine.basis, theirs.basis):
        raise ValueError(f"{name}: the models have different vectors; fit both by partial_fit with the same basis=.")
    if list(getattr(one, "classes_", ())) != list(getattr(other, "classes_", ())):
        raise ValueError(f"{name}: the models know different classes; give both the same classes= in the first batch.")
    model = copy(one)
    keep_batch(model, mine + theirs)
    return model


def forget_rows(estimator: Any, samples: Samples) -> None:
    """Subtract rows from the sums of a fitted estimator, and assign its attributes anew."""
    name, sums = type(estimator).__name__, sums_before(estimator)
    assert sums is not None
    same_outputs(estimator, sums, samples)
    known = sums.statistics.count
    if samples.n >= known:
        raise ValueError(
            f"{name}.forget: got {samples.n} rows, but the model has learned from {known}, and one must be left; fit a "
            "new model to what should stay."
        )
    left = sums.statistics - FeatureSums(sums.basis)(samples)
    if not is_possible(left, sums.statistics, eps(samples.weights)):
        raise ValueError(
            f"{name}.forget: no rows could have the sums that would be left, so not all of these rows (with these "
            "targets and weights) are among those that the model has learned from; nothing was changed."
        )
    kept = rows_among(samples.X, estimator.vectors_)
    if estimator.novelty_ is not None:
        kept |= rows_among(samples.X, estimator.novelty_.vectors)
    keep_batch(estimator, sums.with_statistics(left))
    if kept.any():
        warnings.warn(
            f"{name}.forget: {int(kept.sum())} of these rows are among the samples that the model keeps (vectors_, or "
            "those of novelty_), so it still contains them. Fit a new model without them if they must not be in it.",
            UserWarning,
            stacklevel=3,
        )


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
    if is_sparse(X) or is_sparse(vectors):
        known, new = sp.csr_array(vectors), sp.csr_array(X)
    else:
        V = to_numpy(vectors).astype(np.float64)
        unit = np.abs(V).max(axis=0, initial=0.0)
        unit[unit == 0] = 1.0
        known, new = (np.round(rows / unit, _DIGITS) for rows in (V, to_numpy(X)))
    _, place = distinct_rows(concat_rows(known, new))
    count = int(known.shape[0])
    return np.isin(place[count:], place[:count])
