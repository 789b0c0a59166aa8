r"""A few components of rows with many columns, mostly zeros: what the learner sees of them.

The components :math:`P^T x` are the leading right singular vectors, and the predictions of a ridge regression on all
columns, one per target. Those for a row of the fit come from a regression on other rows (stacked generalization), so
the learner may judge and use them like any other column. No row is made dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.utils.extmath import randomized_svd

from fewkern.arrays.numerics import column_sizes
from fewkern.arrays.sampling import row_keys
from fewkern.core.preparation import Preparation
from fewkern.core.samples import Samples
from fewkern.learn.policy import SparsePolicy

Host = np.ndarray[Any, Any]
# Relative residual at which conjugate gradients end, unless they only compare strengths.
_EXACT_RESIDUAL_SHARE = 1e-9
# Seed of the randomized singular value decomposition and of the combinations of targets.
_SEED = 0
# The smallest unit of a column, over the largest: squares must not underflow.
_LEAST_UNIT_SHARE = 1e-140


def is_wide(X: Any, n_outputs: int, policy: SparsePolicy) -> bool:
    """Whether rows have too many columns to be made dense; components are then fewer than columns."""
    return int(X.shape[1]) > policy.dense_columns + n_outputs


@dataclass(frozen=True)
class Components:
    """The components of some rows, and the regressions behind the last of them."""

    matrix: Host
    """``P``, of shape ``(d, c)``."""
    samples: Samples
    """The samples with components in place of the columns; predictions among these are by regressions on other rows."""
    problem: _Problem
    ridge: float
    shift: Host
    """Predictions for the mean row."""

    def without(self, rows: Host) -> Samples:
        """The same samples, as a regression makes them that has not seen the targets of these ``rows`` of the table."""
        unit, place = self.problem.unit, self.problem.place
        out = np.isin(unit, unit[place][np.isin(self.samples.rows, rows)])  # one copy may stand for all
        linear = (self.problem.left_out(self.ridge, self.problem.Y, out) + self.shift)[place]
        X = self.samples.X.copy()
        X[:, -linear.shape[1] :] = linear
        return replace(self.samples, X=X)

    def straight(self, preparation: Preparation, X: Host, weights: Host) -> Preparation:
        """The preparation with a straight line for every prediction, which is in units of the targets.

        A bent one would no longer be linear in the columns: rare classes have long tails.
        """
        values, knots, own = preparation.values.copy(), preparation.knots, np.s_[:, -len(self.shift) :]
        mean = weights @ X[own] / weights.sum()
        spread = np.sqrt(weights @ (X[own] - mean) ** 2 / weights.sum())
        constant = knots[0] == knots[-1]
        values[own] = (knots[own] - mean) / np.where(spread > 0, spread, 1.0)
        values[:, constant] = 0.0
        return replace(preparation, values=values)


def find_components(samples: Samples, policy: SparsePolicy) -> Components:
    """The components of all samples.

    Units of the columns, strength and singular vectors are those of at most ``SAMPLE_ROWS`` rows; the regressions see
    all. Cost: some eighty regressions on the former, six on the latter, of ten to a hundred passes over the rows each.
    Memory: about five copies of the sparse rows, and ``c`` numbers per row and per column.
    """
    samples = replace(samples, X=_sorted(samples.X))
    some = _Problem.of(samples.sample, policy)
    units, ridge = _settings(some, policy)
    V = _leading(some.in_units(units), policy)
    every = (some if some.n == samples.n else _Problem.of(samples, policy)).in_units(units)
    W = _coefficients(every.X, every.Y, every.weights, ridge)
    shift, dtype = every.mean @ W, samples.X.dtype
    matrix = np.concatenate([V, W], axis=1) / units[:, None]
    Z = np.concatenate([every.X @ V, every.left_out(ridge, every.Y) + shift], axis=1)[every.place]
    return Components(matrix.astype(dtype), replace(samples, X=Z.astype(dtype)), every, ridge, shift)


def _sorted(X: Any) -> Any:
    """The rows with their entries sorted and without duplicates, so that sums over equal rows are equal."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


@dataclass(frozen=True)
class _Problem:
    """A ridge regression on rows, and the folds in which these are left out.

    Rows are in an order that depends on their values alone, so that rounding does, too.
    """

    X: Any
    Y: Host
    """Targets of mean zero and standard deviation one."""
    weights: Host
    unit: Host
    """A number for every row, equal for those that are left out together: those of a group, or equal rows."""
    fold: Host
    place: Host
    """Where the samples are among the rows."""

    @classmethod
    def of(cls, samples: Samples, policy: SparsePolicy) -> _Problem:
        direction = row_keys(np.arange(samples.X.shape[1])).astype(samples.X.dtype) - 0.5
        key = samples.X @ direction
        order = np.lexsort((*np.asarray(samples.targets).T, key))
        samples, key = samples.take(order), key[order]
        weights, Y = (np.asarray(one, dtype=np.float64) for one in (samples.weights, samples.targets))
        Y = Y - weights @ Y / weights.sum()
        spread = np.sqrt(weights @ Y**2 / weights.sum())
        return cls(
            samples.X,
            Y / np.where(spread > 0, spread, 1.0),
            weights,
            *_folds(samples, key, policy.folds),
            np.argsort(order),
        )

    @property
    def n(self) -> int:
        return len(self.Y)

    @property
    def mean(self) -> Host:
        """Weighted mean of the rows."""
        return np.asarray(self.X.T @ (self.weights / self.weights.sum()))

    def moments(self) -> tuple[Host, Host]:
        """Weighted mean square of every column, and the share of its entries that are not zero."""
        share, X = self.weights / self.weights.sum(), self.X
        square, present = (
            sp.csr_array((data, X.indices, X.indptr), X.shape).T @ share for data in (X.data**2, X.data != 0)
        )
        return np.asarray(square), np.asarray(present)

    def in_units(self, units: Host) -> _Problem:
        """The same rows with every column divided by its unit."""
        X = self.X.copy()
        X.data = X.data / units[X.indices]
        return replace(self, X=X)

    def left_out(self, ridge: float, Y: Host, out: Host | None = None, tol: float = _EXACT_RESIDUAL_SHARE) -> Host:
        """Predictions for every row, less those for the mean row, by the regression on the rows of other folds.

        Rows that are ``out`` are in no regression; all others predict them.
        """
        values, mean = np.zeros(Y.shape), self.mean
        kept = np.ones(self.n, dtype=bool) if out is None else ~out
        parts = [kept & (self.fold == k) for k in np.unique(self.fold[kept])]
        for part in parts if out is None else [*parts, out]:
            seen = kept & ~part
            if seen.any():
                W = _coefficients(self.X[seen], Y[seen], self.weights[seen], ridge, tol)
                values[part] = self.X[part] @ W - mean @ W
        return values


def _coefficients(X: Any, Y: Host, weights: Host, ridge: float, tol: float = _EXACT_RESIDUAL_SHARE) -> Host:
    """Coefficients ``(d, q)`` of a ridge regression with a free constant."""
    if not (Y != Y[0]).any():
        return np.zeros((X.shape[1], Y.shape[1]))
    found = Ridge(ridge, solver="sparse_cg", tol=tol).fit(X, Y, weights)
    return np.asarray(found.coef_, dtype=np.float64).reshape(Y.shape[1], -1).T


def _folds(samples: Samples, key: Host, folds: int) -> tuple[Host, Host]:
    """A unit and a fold for every row; the ``key`` is the same for equal rows. Classes are dealt out in turn."""
    unit = np.unique(key, return_inverse=True)[1] if samples.groups is None else samples.groups
    count = int(unit.max()) + 1
    first = np.zeros(count, dtype=np.int64)
    if samples.codes is not None:
        first[:] = samples.n_classes
        np.minimum.at(first, unit, samples.codes)
    fold = np.empty(count, dtype=np.int64)
    fold[np.lexsort((row_keys(np.arange(count)), first))] = np.arange(count) % folds
    return unit, np.asarray(fold[unit])


def _settings(problem: _Problem, policy: SparsePolicy) -> tuple[Host, float]:
    """Units of the columns and strength of the ridge of least error on rows left out."""
    q = problem.Y.shape[1]
    signs = np.eye(q)
    if q > policy.combinations:  # their squared errors have the mean of the targets'
        signs = np.random.default_rng(_SEED).choice([-1.0, 1.0], (q, policy.combinations))
    Y, best = problem.Y @ signs, (np.inf, np.ones(0), 0.0)
    for units in _units(problem, policy):
        scaled, before = problem.in_units(units), np.inf
        square, total = float(np.sum(scaled.moments()[0])), float(problem.weights.sum())
        size = square - float(np.sum(scaled.mean**2))  # below its rounding the rows are equal
        for strength in policy.strengths:
            ridge = max(strength * size, np.finfo(float).eps * square) * total or 1.0
            error = float(problem.weights @ np.sum((scaled.left_out(ridge, Y, tol=policy.rough) - Y) ** 2, axis=1))
            best = min(best, (error, units, ridge), key=lambda found: found[0])
            if error > before:  # the error has one valley along the strengths
                break
            before = error
    return best[1:]


def _units(problem: _Problem, policy: SparsePolicy) -> Iterator[Host]:
    """One unit for all columns, as they are weighted (TF-IDF); and units of their own, whatever they are measured in.

    The latter are the root mean square of what is not zero, times the fourth root of the share of that: a word in one
    of a hundred rows weighs three times as much as one in all, where variances alike would let it weigh ten times as
    much.
    """
    sizes = column_sizes(problem.X)
    largest = float(sizes.max(initial=0.0)) or 1.0
    yield np.full(sizes.shape, largest)
    sizes = np.where(sizes > _LEAST_UNIT_SHARE * largest, sizes, largest)
    square, present = problem.in_units(sizes).moments()
    rarity = np.maximum(present, np.finfo(float).tiny) ** policy.rarity
    yield sizes * np.where(present > 0, np.sqrt(square) / rarity, 1.0)


def _leading(problem: _Problem, policy: SparsePolicy) -> Host:
    """The leading right singular vectors ``(d, p)``, each with its largest entry positive."""
    A = problem.X.copy()
    A.data = A.data * np.repeat(np.sqrt(problem.weights / problem.weights.mean()), np.diff(A.indptr))
    count, steps = min(policy.components, *A.shape), policy.iterations
    _, strengths, V = randomized_svd(A, count, n_iter=steps, transpose=False, random_state=_SEED, flip_sign=False)
    V = V[strengths > np.sqrt(np.finfo(A.dtype).eps) * strengths[0]].T
    largest = np.abs(V).argmax(axis=0)
    return np.asarray(V * np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0), dtype=np.float64)
