r"""Backward elimination: which of the columns a logistic regression on them can do without.

Least squares must reach the targets everywhere, a logistic regression only has to tell the classes apart, for which
fewer columns are enough. With signs :math:`s_i = \pm 1` of the two classes, and weights of mean one, the coefficients
minimize

.. math:: \sum_i w_i \left[\log(1 + e^{-s_i f_i}) + \tfrac\epsilon2 f_i^2\right] + \tfrac12 b^T R b,
    \qquad f = [1\; Z]\,b,

``R`` being a multiple of the kernel between the vectors, and zero for the constant. The column of least
:math:`b_j^2 / (H^{-1})_{jj}` leaves, ``H`` being the second derivative (Wald's statistic: what its removal costs, to
second order), and the others are fitted anew. All folds go on together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fewkern.backend.namespace import Array, device, namespace

__all__ = ["Candidacy", "LogisticColumns", "Stage", "eliminate", "exchange", "log_losses", "signs_of", "slopes"]

# Weight of the mean square of f: keeps the values finite where the classes can be separated.
_MODEST = 1e-3
# Penalty of a coefficient, in units of the squares of its column: columns may be nearly dependent.
SHIFT = 1e-10
# No step changes a value by more than _REACH. The iteration ends with a step that lowers the objective by no more than
# half of _SETTLED per sample: the next one would gain about the square of that. To compare sizes, ROUGH is enough.
_REACH, _SETTLED, ROUGH, _MAX_STEPS = 4.0, 3e-4, 1e-2, 25
# Of many columns, one in so many leaves at once.
_AT_ONCE = 8
# Exchanges at most; the part of the objective that one must gain; the part of a column's square that must be its own.
_EXCHANGES, _GAIN, _DEPENDENT = 20, 1e-4, 1e-8
# More columns than this stay as they are. On image, splice and chess, with 40 to 60 of them, exchanges take a quarter
# of the fit, and the error is the same.
_EXCHANGED = 15
# A leverage of one means that the sample decides its own value: the part left of a sample is at least this.
_LEFT = 1e-3


@dataclass(frozen=True)
class LogisticColumns:
    """What a regression is on, in every fold."""

    rows: Array
    """``(F, k + 1, n)``: the columns, one per row, a constant first."""
    signs: Array
    """``(n,)``: 1 for the second class, -1 for the first."""
    weights: Array
    """``(F, n)``: zero where a sample is held out; they add up to ``n``."""
    penalty: Array
    """``R``, ``(F, k + 1, k + 1)``."""
    modest: float = _MODEST
    """Weight of the mean square of ``f``."""
    settled: float = _SETTLED
    """Twice what the last step of a regression may gain, per sample."""

    @classmethod
    def of(cls, Z: Array, signs: Array, weights: Array, penalty: Array, modest: float = _MODEST) -> LogisticColumns:
        """Columns ``Z`` (F, n, k) with the penalty (F, k, k); weights are scaled to add up to ``n``."""
        xp = namespace(Z)
        # float64 whatever Z is: kernel columns are nearly dependent
        rows, signs, weights, R = (
            xp.astype(one, xp.float64, copy=False) for one in (rows_of(Z), signs, scaled(weights), penalty)
        )
        return cls(rows, signs, weights, _shifted(R, rows), modest)

    def regress(self, coef: Array, kept: Array, pull: Array | None = None) -> Stage:
        """Newton's iteration in every fold, from ``coef``; ``pull`` is added to the derivative."""
        xp, rows = namespace(self.rows), self.rows
        columns = xp.matrix_transpose(rows)
        values = xp.matmul(columns, coef[:, :, None])[:, :, 0]
        for _ in range(_MAX_STEPS):
            slope, curve = self.derivatives(values)
            inverse = xp.linalg.inv(xp.matmul(rows * curve[:, None, :], columns) + self.penalty)
            downhill = xp.matmul(rows, slope[:, :, None]) + xp.matmul(self.penalty, coef[:, :, None])
            if pull is not None:
                downhill = downhill + pull[None, :, None]
            step = xp.matmul(inverse, downhill)
            change = xp.matmul(columns, step)[:, :, 0]
            gain = float(xp.max(xp.vecdot(downhill, step, axis=-2)))
            step, largest = step[:, :, 0], xp.max(xp.abs(change), axis=1, keepdims=True)
            if float(xp.max(largest)) > _REACH:
                part = _REACH / xp.maximum(largest, xp.full_like(largest, _REACH))
                step, change = part * step, part * change
            coef, values = coef - step, values - change
            if gain <= self.settled * int(rows.shape[2]):
                break
        return Stage(kept, coef, values, inverse, self)

    def take(self, stay: Array) -> LogisticColumns:
        """The components ``stay`` of every fold."""
        xp = namespace(self.rows)
        penalty = rows_of_each(xp.matrix_transpose(rows_of_each(self.penalty, stay)), stay)
        return replace(self, rows=rows_of_each(self.rows, stay), penalty=penalty)

    def derivatives(self, values: Array) -> tuple[Array, Array]:
        """First and second derivative of every sample's term by its value."""
        return _derivatives(values, self.signs, self.weights, self.modest)

    def nothing(self) -> Array:
        """Coefficients to begin with: zeros."""
        return namespace(self.rows).zeros(self.rows.shape[:2], dtype=self.rows.dtype, device=device(self.rows))


@dataclass(frozen=True)
class Stage:
    """The columns that are left, and the logistic regression on them, in every fold."""

    kept: Array
    """``(F, k)``: their positions."""
    coef: Array
    """``(F, k + 1)``: the constant first."""
    values: Array
    """``(F, n)``: logarithms of the odds, of all samples."""
    inverse: Array
    """``(F, k + 1, k + 1)``: inverse of the second derivative."""
    columns: LogisticColumns

    @property
    def size(self) -> int:
        """Number of columns left."""
        return int(self.kept.shape[1])

    @property
    def objective(self) -> float:
        """What the regressions of all folds minimize together."""
        xp, columns = namespace(self.values), self.columns
        losses = log_losses(self.values, columns.signs) + columns.modest / 2 * self.values**2
        penalty = self.coef * xp.matmul(columns.penalty, self.coef[:, :, None])[:, :, 0] / 2
        return float(xp.sum(columns.weights * losses) + xp.sum(penalty))

    def leave_one_out(self) -> Array:
        """Values of every sample without itself, to second order, ``(F, n)``."""
        xp, columns = namespace(self.values), self.columns
        slope, curve = columns.derivatives(self.values)
        reach = xp.sum(xp.matmul(self.inverse, columns.rows) * columns.rows, axis=1)
        return self.values + left_out_change(slope, curve, reach)


def left_out_change(slope: Array, curve: Array, reach: Array) -> Array:
    """How the value of a sample changes without it: one of Newton's steps, and no further than they go."""
    xp = namespace(reach)
    change = slope * reach / xp.maximum(1 - curve * reach, xp.full_like(reach, _LEFT))
    return xp.clip(change, -_REACH, _REACH)


def log_losses(values: Array, signs: Array) -> Array:
    """``log(1 + exp(-signs values))``, without overflow."""
    xp = namespace(values)
    margin = signs * values
    return xp.log1p(xp.exp(-xp.abs(margin))) + xp.maximum(-margin, xp.zeros_like(margin))


def eliminate(columns: LogisticColumns, coef: Array | None = None) -> Iterator[Stage]:
    """Regressions on all columns, from ``coef`` (F, k + 1) on, and on fewer and fewer of them down to one.

    Notes
    -----
    ``F n k^2`` flops a step, two or three steps a stage.
    """
    coef, kept = columns.nothing() if coef is None else coef, every_column(columns.rows)
    while True:
        stage = columns.regress(coef, kept)
        yield stage
        if stage.size <= 1:
            return
        stay, gone = _part(stage.coef, stage.inverse, max(1, stage.size // _AT_ONCE))
        coef, columns = _without(stage.coef, stage.inverse, stay, gone), columns.take(stay)
        kept = take_each(kept, stay[:, 1:] - 1)


@dataclass(frozen=True)
class Candidacy:
    """All columns that a machine may have, for the exchange."""

    K: Array
    """``(n, m)``."""
    squares: Array
    """Those of ``K``."""
    between: Array
    """Kernel between all columns, ``(m, m)``."""
    ridge: float
    """``R`` is so many times that kernel."""
    signs: Array
    weights: Array
    """``(1, n)``; they add up to ``n``."""

    @classmethod
    def of(cls, K: Array, between: Array, ridge: float, signs: Array, weights: Array) -> Candidacy:
        """In double precision."""
        xp = namespace(K)
        K, between, signs, weights = (xp.astype(one, xp.float64, copy=False) for one in (K, between, signs, weights))
        return cls(K, K * K, between, ridge, signs, scaled(weights[None, :]))

    def penalty(self, kept: Array) -> Array:
        """``R`` between the columns ``kept`` and all, ``(k, m)``."""
        xp = namespace(self.between)
        return (self.ridge / 2) * (xp.take(self.between, kept, axis=0) + xp.take(self.between, kept, axis=1).T)

    def regress(self, kept: Array, coef: Array | None = None) -> Stage:
        """The regression on the columns ``kept`` (k,), from ``coef`` (k + 1,) on."""
        xp = namespace(self.K)
        R = xp.take(self.penalty(kept), kept, axis=1)
        rows = rows_of(xp.take(self.K, kept, axis=1)[None, :, :])
        columns = LogisticColumns(rows, self.signs, self.weights, _shifted(R[None, :, :], rows))
        return columns.regress(columns.nothing() if coef is None else coef[None, :], kept[None, :])

    def enlarged(self, stage: Stage) -> tuple[Array, Array, Array] | None:
        """Columns, coefficients and inverse, as in ``stage``, with the column that brings most as the last one.

        That of largest :math:`g_j^2 / (k_j^T C k_j - k_j^T C A H^{-1} A^T C k_j)`, ``g`` being its derivative and ``C``
        the curvature of the samples (Rao's statistic). All of it to second order; None if no column brings anything.
        """
        xp, columns = namespace(self.K), stage.columns
        kept = stage.kept[0, :]
        slope, curve = columns.derivatives(stage.values)
        within = self.penalty(kept)
        pulled = (slope @ self.K)[0, :] + stage.coef[0, 1:] @ within
        own = (curve @ self.squares)[0, :] + self.ridge * xp.linalg.diagonal(self.between)
        cross = (columns.rows[0, :, :] * curve) @ self.K
        cross = xp.concat([cross[:1, :], cross[1:, :] + within], axis=0)
        left = own - xp.sum(cross * (stage.inverse[0, :, :] @ cross), axis=0)
        inside = xp.any(xp.arange(own.shape[0], device=device(kept))[:, None] == kept, axis=1)
        usable = ~inside & (left > _DEPENDENT * own)
        gain = xp.where(usable, pulled**2 / xp.where(usable, left, xp.ones_like(left)), -xp.ones_like(left))
        if not float(xp.max(gain)) > 0:
            return None
        best = xp.argmax(gain)[None]
        # the second derivative grows by one row and column: its inverse by a matrix of rank one
        toward = stage.inverse[0, :, :] @ xp.take(cross, best, axis=1)[:, 0]
        along = xp.concat([-toward, xp.ones_like(toward[:1])])
        pull, own = xp.take(pulled, best), xp.take(left, best)
        coef = xp.concat([stage.coef[0, :], xp.zeros_like(pull)]) - along * (pull / own)
        inverse = along[:, None] * along[None, :] / own
        inverse[:-1, :-1] += stage.inverse[0, :, :]
        return xp.concat([kept, best])[None, :], coef[None, :], inverse[None, :, :]


def exchange(candidacy: Candidacy, stage: Stage) -> Stage:
    """Replace the columns of a stage by others, one by one, while that lowers the objective; not if they are many.

    The column outside that brings most enters, then that of least worth leaves, both to second order.
    """
    least = stage.objective
    for _ in range(_EXCHANGES if stage.size <= _EXCHANGED else 0):
        larger = candidacy.enlarged(stage)
        if larger is None:
            break
        kept, coef, inverse = larger
        stay, gone = _part(coef, inverse, 1)
        if int(gone[0, 0]) == stage.size + 1:  # the one that has come
            break
        found = candidacy.regress(take_each(kept, stay[:, 1:] - 1)[0, :], _without(coef, inverse, stay, gone)[0, :])
        reached = found.objective
        if not reached < least * (1 - _GAIN):
            break
        stage, least = found, reached
    return stage


def slopes(Z: Array, signs: Array, weights: Array, coef: Array) -> Array:
    """Derivative of the losses by the coefficients ``coef`` (k + 1,), the weights taken as they are."""
    xp = namespace(Z)
    rows, weights, signs, coef = (
        xp.astype(one, xp.float64) for one in (rows_of(Z[None, :, :])[0, :, :], weights, signs, coef)
    )
    return rows @ _derivatives(coef @ rows, signs, weights, _MODEST)[0]


def padded(R: Array) -> Array:
    """With zeros for the constant: ``(F, k + 1, k + 1)``."""
    xp, F, size = namespace(R), int(R.shape[0]), int(R.shape[1]) + 1
    larger = xp.zeros((F, size, size), dtype=R.dtype, device=device(R))
    larger[:, 1:, 1:] = R
    return larger


def _shifted(R: Array, rows: Array) -> Array:
    """The padded penalty, its diagonal shifted in units of the squares of the ``rows``."""
    xp = namespace(R)
    shift = SHIFT * xp.vecdot(rows, rows)
    return padded(R) + shift[:, :, None] * xp.eye(int(rows.shape[1]), dtype=R.dtype, device=device(R))


def signs_of(codes: Array, like: Array) -> Array:
    """1 for the second class, -1 for the first, in the type of ``like``."""
    return 2 * namespace(like).astype(codes, like.dtype) - 1


def rows_of(Z: Array) -> Array:
    """The columns of every fold ``(F, n, k)`` as rows, a constant first: ``(F, k + 1, n)``.

    Columns leave one by one, and rows are quicker to leave out.
    """
    xp = namespace(Z)
    rows = xp.matrix_transpose(Z)
    return xp.concat([xp.ones_like(rows[:, :1, :]), rows], axis=1)


def every_column(rows: Array) -> Array:
    """Positions of all columns, ``(F, k)``."""
    xp, (F, k, _) = namespace(rows), rows.shape
    numbers = xp.arange(k - 1, device=device(rows))
    return xp.zeros((F, k - 1), dtype=numbers.dtype, device=device(rows)) + numbers[None, :]


def scaled(weights: Array) -> Array:
    """Weights that add up to the number of samples in every fold."""
    return weights * (int(weights.shape[1]) / namespace(weights).sum(weights, axis=1))[:, None]


def _derivatives(values: Array, signs: Array, weights: Array, modest: float) -> tuple[Array, Array]:
    """First and second derivative of every sample's term by its value."""
    # the probability of the second class is (1 + t) / 2
    t = namespace(values).tanh(values / 2)
    return weights / 2 * (t - signs + 2 * modest * values), weights / 4 * (1 + 4 * modest - t * t)


def _part(coef: Array, inverse: Array, leave: int) -> tuple[Array, Array]:
    """Components that stay, ascending, and those that leave: columns of least Wald statistic, never the constant."""
    xp = namespace(coef)
    worth = coef[:, 1:] ** 2 / xp.linalg.diagonal(inverse)[:, 1:]
    order = xp.argsort(worth, axis=1) + 1
    stay = xp.concat([xp.zeros_like(order[:, :1]), xp.sort(order[:, leave:], axis=1)], axis=1)
    return stay, order[:, :leave]


def _without(coef: Array, inverse: Array, stay: Array, gone: Array) -> Array:
    """Coefficients of those that stay: what they become to second order when the others are gone."""
    xp = namespace(coef)
    toward = rows_of_each(inverse, gone)
    pulled = xp.linalg.solve(rows_of_each(xp.matrix_transpose(toward), gone), take_each(coef, gone)[:, :, None])
    return take_each(coef - xp.matmul(xp.matrix_transpose(toward), pulled)[:, :, 0], stay)


def take_each(rows: Array, positions: Array) -> Array:
    """``rows[f, positions[f]]`` for every fold."""
    return rows_of_each(rows[:, :, None], positions)[:, :, 0]


def rows_of_each(M: Array, positions: Array) -> Array:
    """``M[f, positions[f], :]`` for every fold, in one step."""
    xp, (F, k, length) = namespace(M), M.shape
    begin = k * xp.arange(F, dtype=positions.dtype, device=device(positions))
    flat = xp.reshape(begin[:, None] + positions, (-1,))
    return xp.reshape(xp.take(xp.reshape(M, (F * k, length)), flat, axis=0), (F, positions.shape[1], length))
