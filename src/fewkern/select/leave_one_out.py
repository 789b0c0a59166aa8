r"""Regression on nested features, with the leave-one-out error of every model on the path in one pass (FVS-LR).

With ``X = W^{1/2} [1 G]`` and ``X'X + ridge diag(0, 1, .., 1) = R'R``, ``Q = X R^{-1}``, the leading blocks of ``R``
belong to the smaller models. So, for every ``L`` at once,

    fit_L = sum_{j<=L} Q_j (Q_j'Y),   lev_L = sum_{j<=L} Q_j^2,   y_i - f^(-i)(x_i) = (y - fit_L)_i / (1 - lev_L,i)

This is leave-one-out with the vectors held, which is fair because their selection never looks at ``y``.

Samples that belong together are left out together. With ``t = Q'y``, the residuals of a group ``g`` by the model
without it are ``e = (I - Q_g Q_g')^{-1} (y_g - Q_g t)``. From one column of ``Q`` to the next, with ``M`` the inverse,
``q`` the new column on the group and ``u = M q``,

.. math:: d = 1 - q^T u, \qquad e \leftarrow e + u\,(q^T e - t_l) / d, \qquad M \leftarrow M + u u^T / d

so that all sizes of a path cost ``s^2`` per column for a group of ``s`` samples. The group is turned first, so that it
has no more rows than columns: with ``Q_g = U T``, the rows of ``T`` and ``U'y`` take its place, and ``y - U U'y`` stays
as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import class_sums, one_hot, solve_triangular
from fewkern.arrays.namespace import Array, asarray_like, device, eps, namespace, take_rows, to_numpy
from fewkern.arrays.numerics import largest_power
from fewkern.arrays.sampling import random_generator
from fewkern.core.samples import Samples
from fewkern.core.scores import class_values
from fewkern.core.statistics import ridge_factor

# Errors of at most this many outputs are summed one output at a time; of more by one matrix product.
_MAX_LOOP_OUTPUTS = 3
# Largest number of rows that are left out one by one: models are fitted to all rows, and these compare the models.
# With half as many, paths of hundreds of vectors ended too early on one of five large tables. Groups are all left out
# (methods F9).
MAX_LOO_ROWS = 5000
# Leverage of a row counts as one within this many units of rounding.
_ROUNDING_UNITS = 1e3


@dataclass(frozen=True)
class Block:
    """Groups of similar size, padded to the same size."""

    ids: Array
    """Numbers of the groups, shape ``(b,)``."""
    rows: Array
    """Samples of every group, shape ``(b * s,)``; padding is sample 0."""
    mask: Array
    """Shape ``(b, s)``: one for a sample, zero for padding."""

    def take(self, A: Array) -> Array:
        """The rows of ``A`` that belong to the groups, shape ``(b, s, columns)``; zero for padding."""
        b, s = self.mask.shape
        found = namespace(A).reshape(take_rows(A, self.rows), (b, s, A.shape[1]))
        return found * namespace(A).astype(self.mask, A.dtype)[:, :, None]


@dataclass(frozen=True)
class GroupBlocks:
    """Samples by their groups, in blocks of groups of similar size."""

    groups: Array
    """Group of every sample: ``0`` to ``n_groups - 1``, all of them there."""
    n_groups: int
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, groups: Array) -> GroupBlocks:
        """Blocks from group numbers, equal for samples of one group."""
        labels = to_numpy(groups)
        xp = namespace(labels)
        codes = xp.unique_inverse(labels).inverse_indices
        sizes = xp.unique_counts(codes).counts
        # up to the next power of two: at most half of a block is padding
        by_size: dict[int, list[int]] = {}
        for code, size in enumerate(sizes.tolist()):
            by_size.setdefault((size - 1).bit_length(), []).append(code)
        order, first, blocks = xp.argsort(codes, stable=True), xp.cumulative_sum(sizes) - sizes, []
        for ids in map(xp.asarray, by_size.values()):
            place = xp.arange(sizes[ids].max())[None, :]
            inside = place < sizes[ids][:, None]
            rows = xp.where(inside, order[xp.where(inside, first[ids][:, None] + place, 0)], 0)
            arrays = ids, xp.reshape(rows, (-1,)), inside.astype(xp.float64)
            blocks.append(Block(*(asarray_like(array, groups) for array in arrays)))
        return cls(asarray_like(codes, groups), len(sizes), tuple(blocks))

    def sums(self, A: Array) -> Array:
        """Sums of the rows of ``A`` over every group."""
        return class_sums(A, self.groups, self.n_groups)


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
    def of(cls, samples: Samples, folds: Array | None = None, limit: int | None = None) -> LooScheme:
        """The scheme for samples with or without groups, and the number of a fold for each of them.

        Of samples without either at most ``limit`` are left out, ``MAX_LOO_ROWS`` by default.
        """
        limit = MAX_LOO_ROWS if limit is None else limit
        if folds is not None:
            folds = one_hot(folds, int(namespace(folds).max(folds)) + 1, samples.weights.dtype)
        if samples.groups is not None:
            return cls(GroupBlocks.of(samples.groups), folds)
        if folds is not None or samples.n <= limit:
            return cls(None, folds)
        drawn = sorted(int(i) for i in random_generator(0).choice(samples.n, limit, replace=False))
        return cls(rows=asarray_like(drawn, samples.rows, dtype=samples.rows.dtype))

    def left_out(self, A: Array) -> Array:
        """The rows of ``A`` that are left out."""
        return A if self.rows is None else take_rows(A, self.rows)


@dataclass(frozen=True)
class Solution:
    """``f(z) = W'z + offset`` and its leave-one-out predictions."""

    W: Array
    offset: Array
    held_out: Array
    """Prediction for every sample that is left out by the model fitted without it, shape ``(n, q)``."""
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


def _design(G: Array, root: Array) -> Array:
    """``W^{1/2} [1 G]``; ``root`` are the roots of the weights."""
    xp = namespace(G)
    one = xp.ones((G.shape[0], 1), dtype=G.dtype, device=device(G))
    return root[:, None] * xp.concat([one, G], axis=1)


def loo_paths(
    G: Array, Y: Array, ridges: tuple[float, ...], weights: Array | None = None, scheme: LooScheme | None = None
) -> list[LooPath]:
    """Leave-one-out error of FVS-LR on the first ``0..L`` columns of ``G``, for every ridge.

    Notes
    -----
    ``n L^2`` flops in BLAS-3 for all ridges, and ``m L^2`` per ridge for ``m`` samples that are left out; once more per
    ridge for more than three outputs, whatever their number. A row of leverage one is predicted by the constant when it
    is left out. The standard error is that of a mean over all samples, or over all groups.
    """
    xp, scheme = namespace(Y), LooScheme() if scheme is None else scheme
    groups, folds = scheme.groups, scheme.folds
    w = xp.ones_like(Y[:, 0]) if weights is None else weights
    root = xp.sqrt(w)
    # In units of a power of two near the largest target: that is exact, and no fourth power over- or underflows.
    unit = largest_power(Y)
    X, T = _design(G, root), root[:, None] * (Y / unit)
    gram, cross = X.T @ X, X.T @ T
    # what is left out: rows, or groups, each with its weight
    X, T = scheme.left_out(X), scheme.left_out(T)
    mass = w if groups is None else groups.sums(w[:, None])[:, 0]
    effective = float(xp.sum(mass)) ** 2 / float(mass @ mass)
    mass = scheme.left_out(mass)
    if folds is not None and groups is not None:
        folds = xp.astype(groups.sums(folds) > 0, folds.dtype)
    paths = []
    for ridge in ridges:
        C, _ = ridge_factor(gram, ridge)
        Q = solve_triangular(C, X.T).T
        if groups is None:
            errors = _row_errors(Q, T, solve_triangular(C, cross))
        else:
            errors = iter([(slice(0, groups.n_groups), group_errors(Q, T, groups))])
        sums = squares = xp.zeros_like(Q[0, :])
        by_fold: Array = 0.0
        for part, error in errors:
            sums = sums + xp.sum(error, axis=0)
            squares = squares + (1.0 / mass[part]) @ (error * error)
            if folds is not None:
                by_fold = by_fold + folds[part, :].T @ error
        mean = sums / xp.sum(mass)
        variance = xp.maximum(squares / xp.sum(mass) - mean * mean, xp.zeros_like(mean))
        paths.append(
            LooPath(
                unit * unit * mean,
                unit * unit * xp.sqrt(variance / effective),
                None if folds is None else unit * unit * by_fold,
            )
        )
    return paths


def _row_errors(Q: Array, T: Array, target: Array) -> Iterator[tuple[slice, Array]]:
    """Squared errors of every row when it is left out, times its weight, on the leading columns of ``Q``, in blocks.

    ``T`` are the targets times the roots of the weights, and ``target`` is ``Q'T`` of all samples.
    """
    xp, (n, q), columns = namespace(Q), T.shape, int(Q.shape[1])
    for rows in row_blocks(n, columns * max(min(q, _MAX_LOOP_OUTPUTS), 2), like=Q):
        left = 1.0 - xp.cumulative_sum(Q[rows, :] * Q[rows, :], axis=1)
        alone = left <= _ROUNDING_UNITS * eps(Q)
        left = xp.where(alone, 1.0, left)
        error = _squared_residuals(Q[rows, :], target, T[rows, :]) / (left * left)
        yield rows, xp.where(alone, error[:, :1], error)


def _squared_residuals(Q: Array, target: Array, T: Array) -> Array:
    """``sum_c (t_ic - sum_{j<=L} Q_ij target_jc)^2`` for every row ``i`` and every ``L``.

    For many outputs the square is multiplied out. With ``S = target target'``, the square of the fit grows by
    ``2 Q_iL sum_{j<L} Q_ij S_jL + Q_iL^2 S_LL`` from one ``L`` to the next: a product, whatever the number of outputs.
    """
    xp = namespace(Q)
    if T.shape[1] <= _MAX_LOOP_OUTPUTS:
        total = xp.zeros_like(Q)
        for c in range(T.shape[1]):
            residual = T[:, c][:, None] - xp.cumulative_sum(Q * target[:, c][None, :], axis=1)
            total = total + residual * residual
        return total
    S = target @ target.T
    own = xp.eye(S.shape[0], dtype=S.dtype, device=device(S))
    growth = Q * (Q @ (xp.triu(S) - 0.5 * own * S) - T @ target.T)
    squares = xp.sum(T * T, axis=1)[:, None] + 2.0 * xp.cumulative_sum(growth, axis=1)
    return xp.maximum(squares, xp.zeros_like(squares))


def group_errors(Q: Array, T: Array, groups: GroupBlocks) -> Array:
    """Squared residuals, summed over every group and the outputs, on the leading columns: ``(n_groups, columns)``.

    Parameters
    ----------
    Q : array of shape (n, columns)
        Of the weighted problem; the first column is that of the constant.
    T : array of shape (n, q)
        Targets times the roots of the weights.
    groups : GroupBlocks
    """
    xp, found = namespace(Q), []
    for _, _, outside, inside in _by_block(Q, T, groups):
        errors = [xp.sum(e * e, axis=(1, 2)) for e in inside]
        found.append(xp.stack(errors, axis=1) + xp.sum(outside * outside, axis=(1, 2))[:, None])
    order = xp.argsort(xp.concat([block.ids for block in groups.blocks]))
    return take_rows(xp.concat(found, axis=0), order)


def group_residuals(Q: Array, T: Array, groups: GroupBlocks) -> Array:
    """Residuals ``(n, q)`` of the samples by the model without their group.

    A group that alone determines a column of ``Q`` is predicted by the constant.
    """
    xp = namespace(Q)
    residuals, rows = [], []
    for block, U, outside, inside in _by_block(Q, T, groups):
        *_, e = inside
        kept = xp.nonzero(xp.reshape(block.mask, (-1,)))[0]
        residuals.append(take_rows(xp.reshape(outside + xp.matmul(U, e), (-1, T.shape[1])), kept))
        rows.append(take_rows(block.rows, kept))
    return take_rows(xp.concat(residuals, axis=0), xp.argsort(xp.concat(rows)))


def _by_block(Q: Array, T: Array, groups: GroupBlocks) -> Iterator[tuple[Block, Array, Array, Iterator[Array]]]:
    """For every block, turned by ``U`` with ``Q_g = U R``: ``y - U U'y``, and the residuals of ``U'y`` by column."""
    xp, t = namespace(Q), Q.T @ T
    for block in groups.blocks:
        own = block.take(T)
        U, R = xp.linalg.qr(block.take(Q), mode="reduced")
        inner = xp.matmul(xp.matrix_transpose(U), own)
        yield block, U, own - xp.matmul(U, inner), _leave_out(R, inner, t)


def _leave_out(Q: Array, Y: Array, t: Array) -> Iterator[Array]:
    """Residuals ``(b, s, q)`` after every column; groups that alone determine one are from there on predicted by the
    constant."""
    xp, (b, s, columns) = namespace(Q), Q.shape
    M = xp.zeros((b, s, s), dtype=Q.dtype, device=device(Q)) + xp.eye(s, dtype=Q.dtype, device=device(Q))
    alone = xp.zeros((b,), dtype=xp.bool, device=device(Q))
    e = by_constant = Y
    for column in range(columns):
        q = Q[:, :, column]
        u = xp.matmul(M, q[:, :, None])[:, :, 0]
        d = 1.0 - xp.sum(q * u, axis=1)
        alone = alone | (d <= _ROUNDING_UNITS * eps(Q))
        d = xp.where(alone, xp.ones_like(d), d)
        u = xp.where(alone[:, None], xp.zeros_like(u), u)
        step = (xp.matmul(q[:, None, :], e)[:, 0, :] - t[column, :][None, :]) / d[:, None]
        e = xp.where(alone[:, None, None], by_constant, e + u[:, :, None] * step[:, None, :])
        M = M + u[:, :, None] * (u / d[:, None])[:, None, :]
        if column == 0:
            by_constant = e
        yield e


def solve(G: Array, Y: Array, ridge: float, weights: Array | None = None, scheme: LooScheme | None = None) -> Solution:
    r"""Minimise :math:`\sum_i w_i |y_i - \beta - A^T z_i|^2 + \text{ridge}\,|A|_F^2`, eq. (11) with its constant.

    Of many samples only some are left out, one by one: ``n L^2`` flops for the solution, ``m L^2`` for ``m`` of them.
    """
    xp, scheme, dtype = namespace(G), LooScheme() if scheme is None else scheme, G.dtype
    w = xp.ones_like(Y[:, 0]) if weights is None else weights
    if scheme.rows is not None:
        # sums over many rows are in double precision, models in that of the samples
        G, Y, w = (xp.astype(one, xp.float64, copy=False) for one in (G, Y, w))
    root = xp.sqrt(w)
    X, T = _design(G, root), root[:, None] * Y
    C, jitter = ridge_factor(X.T @ X, ridge)
    Q = solve_triangular(C, scheme.left_out(X).T).T
    solution = solve_triangular(C, solve_triangular(C, X.T @ T), transposed=True)
    W, offset = solution[1:, :], solution[0, :]
    if scheme.groups is not None:
        held_out = Y - group_residuals(Q, T, scheme.groups) / root[:, None]
    else:
        total, sums = xp.sum(w), w @ Y
        G, Y, w = (scheme.left_out(one) for one in (G, Y, w))
        mean = (sums[None, :] - w[:, None] * Y) / xp.maximum(total - w, xp.full_like(w, eps(Q)))[:, None]
        held_out = held_out_values(Y, G @ W + offset, xp.sum(Q * Q, axis=1), mean)
    W, offset, held_out = (xp.astype(one, dtype, copy=False) for one in (W, offset, held_out))
    return Solution(W, offset, held_out, jitter)


def held_out_values(Y: Array, fit: Array, leverage: Array, others: Array) -> Array:
    """Leave-one-out predictions; those of ``others`` where a row alone determines a direction."""
    xp = namespace(Y)
    left = (1.0 - leverage)[:, None]
    alone = left <= _ROUNDING_UNITS * eps(fit)
    return xp.where(alone, others, Y - (Y - fit) / xp.where(alone, xp.ones_like(left), left))


def solve_samples(samples: Samples, G: Array, ridge: float) -> tuple[Solution, HeldOut]:
    """The same for the targets of samples, with leave-one-out predictions for all rows, or for ``MAX_LOO_ROWS``."""
    scheme = LooScheme.of(samples)
    solution = solve(G, samples.targets, ridge, samples.weights, scheme)
    return solution, HeldOut(solution.held_out, samples if scheme.rows is None else samples.take(scheme.rows))
