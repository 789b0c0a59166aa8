"""Regression on nested features, with the leave-one-out error of every model on the path in one pass (FVS-LR).

With ``X = W^{1/2} [1 G]`` and ``X'X + ridge diag(0, 1, .., 1) = R'R``, ``Q = X R^{-1}``, the leading blocks of ``R``
belong to the smaller models. So, for every ``L`` at once,

    fit_L = sum_{j<=L} Q_j (Q_j'Y),   lev_L = sum_{j<=L} Q_j^2,   y_i - f^(-i)(x_i) = (y - fit_L)_i / (1 - lev_L,i)

This is leave-one-out with the vectors held, which is fair because their selection never looks at ``y``. Samples that
belong together are left out together (:mod:`fewkern.select.leave_group_out`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import one_hot, solve_triangular
from fewkern.arrays.namespace import Array, asarray_like, device, eps, namespace, take_rows
from fewkern.arrays.numerics import largest_power
from fewkern.arrays.sampling import random_generator
from fewkern.core.samples import Samples
from fewkern.core.scores import class_values
from fewkern.core.statistics import ridge_factor
from fewkern.select.leave_group_out import GroupBlocks, group_errors, group_residuals

# Errors of at most this many outputs are summed one output at a time; of more by one matrix product.
_MAX_LOOP_OUTPUTS = 3
# Rows that are left out at most, one by one: models are fitted to all rows, and these compare the models. With half as
# many, paths of hundreds of vectors ended too early on one of five large tables. Groups are all left out
# (methods F9).
MAX_LOO_ROWS = 5000
# Leverage of a row counts as one within this many units of rounding.
_ROUNDING_UNITS = 1e3


@dataclass(frozen=True)
class LooPath:
    """Mean squared leave-one-out error, summed over the outputs, for ``0..L`` vectors, and its standard error."""

    error: Array
    std_error: Array
    fold_sums: Array | None = None
    """The sums of which ``error`` is the mean, over every fold of the rows: shape ``(n_folds, L + 1)``."""


@dataclass(frozen=True)
class LooScheme:
    """Which rows are left out, which of them together, and the folds whose errors are summed apart."""

    groups: GroupBlocks | None = None
    folds: Array | None = None
    """Indicators, shape ``(n, n_folds)``; a group lies in one fold."""
    rows: Array | None = None
    """Rows that are left out where not all are; there are then neither groups nor folds."""

    @classmethod
    def of(cls, samples: Samples, folds: Array | None = None) -> LooScheme:
        """For samples with or without groups, and the number of a fold for each of them."""
        if folds is not None:
            folds = one_hot(folds, int(namespace(folds).max(folds)) + 1, samples.weights.dtype)
        if samples.groups is not None:
            return cls(GroupBlocks.of(samples.groups), folds)
        if folds is not None or samples.n <= MAX_LOO_ROWS:
            return cls(None, folds)
        drawn = sorted(int(i) for i in random_generator(0).choice(samples.n, MAX_LOO_ROWS, replace=False))
        return cls(rows=asarray_like(drawn, samples.rows, dtype=samples.rows.dtype))


@dataclass(frozen=True)
class Solution:
    """``f(z) = W'z + offset`` and its leave-one-out predictions."""

    W: Array
    offset: Array
    held_out: Array
    """Prediction for every sample by the model fitted without it, shape ``(n, q)``."""
    jitter: float = 0.0
    """Added to the ridge against rounding."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions of a model for samples that it was not fitted to."""

    values: Array
    """Shape ``(n, q)``."""
    samples: Samples

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(namespace(self.values).sum(self.samples.weights))

    def some(self, limit: int) -> HeldOut:
        """About ``limit`` of the samples, evenly spaced; all if there are few, or if their kernel is given."""
        n, xp = self.samples.n, namespace(self.values)
        if n <= limit or self.samples.pairwise:
            return self
        rows = xp.arange(0, n, -(-n // limit), dtype=xp.int64, device=device(self.values))
        return HeldOut(take_rows(self.values, rows), self.samples.take(rows))

    def squared_error(self) -> float:
        """Weighted mean of the squared errors, summed over the outputs."""
        xp, w = namespace(self.values), self.samples.weights
        return float(w @ xp.sum((self.values - self.samples.targets) ** 2, axis=1) / xp.sum(w))

    def error_rate(self) -> float:
        """Weighted share of the samples for which the largest value is that of another class."""
        xp, w = namespace(self.values), self.samples.weights
        wrong = xp.argmax(class_values(self.values), axis=1) != self.samples.codes
        return float(w @ xp.astype(wrong, w.dtype) / xp.sum(w))


@dataclass(frozen=True)
class _Design:
    """The equations of the regression, times the roots of the weights."""

    X: Array
    """``W^{1/2} [1 G]``."""
    root: Array
    """``W^{1/2}``."""
    w: Array

    @classmethod
    def of(cls, G: Array, weights: Array | None) -> _Design:
        xp = namespace(G)
        one = xp.ones((G.shape[0], 1), dtype=G.dtype, device=device(G))
        w = one[:, 0] if weights is None else weights
        root = xp.sqrt(w)
        return cls(root[:, None] * xp.concat([one, G], axis=1), root, w)

    def take(self, rows: Array) -> _Design:
        """Some of the equations."""
        return _Design(take_rows(self.X, rows), take_rows(self.root, rows), take_rows(self.w, rows))


def loo_paths(
    G: Array, Y: Array, ridges: tuple[float, ...], weights: Array | None = None, scheme: LooScheme | None = None
) -> list[LooPath]:
    """Leave-one-out error of FVS-LR on the first ``0..L`` columns of ``G``, for every ridge.

    Notes
    -----
    ``n L^2`` flops in BLAS-3 for all ridges, and ``m L^2`` per ridge for ``m`` samples that are left out; once more per
    ridge for more than three outputs, whatever their number. A row of leverage one is predicted by the constant when it
    is left out.
    """
    design = _Design.of(G, weights)
    scheme = LooScheme() if scheme is None else scheme
    leaving = _LeavingOut(design, Y, scheme)
    gram, cross = design.X.T @ design.X, design.X.T @ leaving.scaled
    paths = []
    for ridge in ridges:
        C, _ = ridge_factor(gram, ridge)
        Q = solve_triangular(C, leaving.left_out.X.T).T
        paths.append(leaving.path(Q, solve_triangular(C, cross)))
    return paths


class _LeavingOut:
    """Errors of the samples that are left out, in units of a power of two near the largest target.

    That is exact, and no fourth power over- or underflows.
    """

    def __init__(self, design: _Design, Y: Array, scheme: LooScheme) -> None:
        xp, rows = namespace(Y), scheme.rows
        self.unit, self.scheme = largest_power(Y), scheme
        Y = Y / self.unit
        self.left_out, self.Y = (design, Y) if rows is None else (design.take(rows), take_rows(Y, rows))
        self.scaled = design.root[:, None] * Y
        """Targets of all samples, times the roots of the weights."""
        self.effective = float(xp.sum(design.w)) ** 2 / float(xp.sum(design.w * design.w))

    def path(self, Q: Array, target: Array) -> LooPath:
        """Leave-one-out errors on the leading columns of the orthogonal ``Q``; ``target`` is ``Q'Y`` of all samples.

        The standard error is that of a mean over all samples, or over all groups.
        """
        groups, folds, w, effective = self.scheme.groups, self.scheme.folds, self.left_out.w, self.effective
        xp = namespace(Q)
        if groups is None:
            errors = self._errors(Q, target)
        else:
            w = groups.sums(w[:, None])[:, 0]
            effective = float(xp.sum(w)) ** 2 / float(w @ w)
            folds = None if folds is None else groups.one_per_group(folds)
            errors = iter([(slice(0, groups.n_groups), group_errors(Q, self.scaled, groups) / w[:, None])])
        sums: Array = 0.0
        squares: Array = 0.0
        by_fold: Array = 0.0
        for rows, error in errors:
            sums = sums + w[rows] @ error
            squares = squares + w[rows] @ (error * error)
            if folds is not None:
                by_fold = by_fold + (folds[rows, :] * w[rows][:, None]).T @ error
        total, unit = float(xp.sum(w)), self.unit * self.unit
        mean = sums / total
        variance = xp.maximum(squares / total - mean * mean, xp.zeros_like(mean))
        return LooPath(unit * mean, unit * xp.sqrt(variance / effective), None if folds is None else unit * by_fold)

    def _errors(self, Q: Array, target: Array) -> Iterator[tuple[slice, Array]]:
        """Squared errors of every sample when it is left out, on the leading columns of ``Q``, in row blocks."""
        xp, (n, q), columns = namespace(Q), self.Y.shape, int(Q.shape[1])
        for rows in row_blocks(n, columns * max(min(q, _MAX_LOOP_OUTPUTS), 2), like=Q):
            Qb, rb = Q[rows, :], self.left_out.root[rows]
            left = 1.0 - xp.cumulative_sum(Qb * Qb, axis=1)
            alone = left <= _ROUNDING_UNITS * eps(Q)
            left = xp.where(alone, 1.0, left)
            # undo W^{1/2}; the values of samples of weight zero are not used
            safe = xp.where(rb > 0, rb, 1.0)
            error = _squared_residuals(Qb / safe[:, None], target, self.Y[rows, :]) / (left * left)
            yield rows, xp.where(alone, error[:, :1], error)


def _squared_residuals(F: Array, target: Array, Y: Array) -> Array:
    """``sum_c (y_ic - sum_{j<=L} F_ij t_jc)^2`` for every row ``i`` and every ``L``.

    For many outputs the square is multiplied out. With ``S = T T'``, the square of the fit grows by
    ``2 F_iL sum_{j<L} F_ij S_jL + F_iL^2 S_LL`` from one ``L`` to the next: a product, whatever the number of outputs.
    """
    xp = namespace(F)
    if Y.shape[1] <= _MAX_LOOP_OUTPUTS:
        total = xp.zeros_like(F)
        for c in range(Y.shape[1]):
            residual = Y[:, c][:, None] - xp.cumulative_sum(F * target[:, c][None, :], axis=1)
            total = total + residual * residual
        return total
    S = target @ target.T
    own = xp.eye(S.shape[0], dtype=S.dtype, device=device(S))
    growth = F * (F @ (xp.triu(S) - 0.5 * own * S) - Y @ target.T)
    squares = xp.sum(Y * Y, axis=1)[:, None] + 2.0 * xp.cumulative_sum(growth, axis=1)
    return xp.maximum(squares, xp.zeros_like(squares))


def solve(
    G: Array,
    Y: Array,
    ridge: float,
    weights: Array | None = None,
    groups: Array | None = None,
    rows: Array | None = None,
) -> Solution:
    r"""Minimise :math:`\sum_i w_i |y_i - \beta - A^T z_i|^2 + \text{ridge}\,|A|_F^2`, eq. (11) with its constant.

    ``groups`` are whole numbers, equal for samples that are left out together. Of many samples only some ``rows`` are
    left out, one by one: ``n L^2`` flops for the solution, ``m L^2`` for ``m`` of them.
    """
    xp = namespace(G)
    design = _Design.of(G, weights)
    target, w = design.root[:, None] * Y, design.w
    left_out = design if rows is None else design.take(rows)
    C, jitter = ridge_factor(design.X.T @ design.X, ridge)
    Q = solve_triangular(C, left_out.X.T).T
    cross = Q.T @ target if rows is None else solve_triangular(C, design.X.T @ target)
    solution = solve_triangular(C, cross, transposed=True)
    W, offset = solution[1:, :], solution[0, :]
    if groups is not None:
        return Solution(W, offset, _group_held_out(Q, Y, w, GroupBlocks.of(groups)), jitter)
    rest = xp.maximum(xp.sum(w) - left_out.w, xp.full_like(left_out.w, eps(G)))[:, None]
    own, values = (Y, G) if rows is None else (take_rows(Y, rows), take_rows(G, rows))
    others = ((w @ Y)[None, :] - left_out.w[:, None] * own) / rest
    return Solution(W, offset, held_out_values(own, values @ W + offset, xp.sum(Q * Q, axis=1), others), jitter)


def solve_samples(samples: Samples, G: Array, ridge: float) -> tuple[Solution, HeldOut]:
    """The same for the targets of samples, with leave-one-out predictions for all rows, or for ``MAX_LOO_ROWS``."""
    rows = LooScheme.of(samples).rows
    if rows is None:
        solution = solve(G, samples.targets, ridge, samples.weights, samples.groups)
        return solution, HeldOut(solution.held_out, samples)
    # sums over many rows are in double precision, models in that of the samples
    xp = namespace(G)
    Z, Y, w = (xp.astype(one, xp.float64, copy=False) for one in (G, samples.targets, samples.weights))
    found = solve(Z, Y, ridge, w, rows=rows)
    W, offset, held_out = (xp.astype(one, G.dtype, copy=False) for one in (found.W, found.offset, found.held_out))
    return Solution(W, offset, held_out, found.jitter), HeldOut(held_out, samples.take(rows))


def held_out_values(Y: Array, fit: Array, leverage: Array, others: Array) -> Array:
    """Leave-one-out predictions; those of ``others`` for rows of leverage one."""
    xp = namespace(Y)
    left = (1.0 - leverage)[:, None]
    alone = left <= _ROUNDING_UNITS * eps(fit)
    return xp.where(alone, others, Y - (Y - fit) / xp.where(alone, xp.ones_like(left), left))


def _group_held_out(Q: Array, Y: Array, w: Array, groups: GroupBlocks) -> Array:
    """Predictions for every sample by the model fitted without its group; by the mean where there is none."""
    xp = namespace(Q)
    root = xp.sqrt(w)
    residual, alone = group_residuals(Q, root[:, None] * Y, groups)
    mass = xp.sum(w) - groups.per_sample(groups.sums(w[:, None]))
    others = (xp.sum(w[:, None] * Y, axis=0)[None, :] - groups.per_sample(groups.sums(w[:, None] * Y))) / mass
    return xp.where(alone[:, None], others, Y - residual / root[:, None])
