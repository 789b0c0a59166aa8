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
# A leverage of one means that the sample decides its own value: the part left of a sample is at least this.
LEFT = 1e-3


@dataclass(frozen=True)
class LogisticColumns:
    """What a regression is on, in every fold."""

    A: Array
    """``(F, n, k + 1)``: the columns, a constant first."""
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
        A, signs, weights, R = (
            xp.astype(one, xp.float64, copy=False) for one in (with_constant(Z), signs, scaled(weights), penalty)
        )
        return cls(A, signs, weights, _padded(R, SHIFT * xp.sum(A * A, axis=1)), modest)

    def regress(self, coef: Array, kept: Array, pull: Array | None = None) -> Stage:
        """Newton's iteration in every fold, from ``coef``; ``pull`` is added to the derivative."""
        xp, A = namespace(self.A), self.A
        transposed = xp.matrix_transpose(A)
        values = xp.matmul(A, coef[:, :, None])[:, :, 0]
        for _ in range(_MAX_STEPS):
            slope, curve = self.derivatives(values)
            inverse = xp.linalg.inv(xp.matmul(transposed, A * curve[:, :, None]) + self.penalty)
            downhill = xp.matmul(transposed, slope[:, :, None]) + xp.matmul(self.penalty, coef[:, :, None])
            if pull is not None:
                downhill = downhill + pull[None, :, None]
            step = xp.matmul(inverse, downhill)
            change = xp.matmul(A, step)[:, :, 0]
            largest = xp.max(xp.abs(change), axis=1)
            part = _REACH / xp.maximum(largest, xp.full_like(largest, _REACH))
            coef = coef - part[:, None] * step[:, :, 0]
            values = values - part[:, None] * change
            if float(xp.max(xp.sum(downhill * step, axis=1))) <= self.settled * int(A.shape[1]):
                break
        return Stage(kept, coef, values, inverse, self)

    def take(self, stay: Array) -> LogisticColumns:
        """The components ``stay`` of every fold."""
        xp = namespace(self.A)
        A = xp.matrix_transpose(rows_of_each(xp.matrix_transpose(self.A), stay))
        penalty = rows_of_each(xp.matrix_transpose(rows_of_each(self.penalty, stay)), stay)
        return replace(self, A=A, penalty=penalty)

    def derivatives(self, values: Array) -> tuple[Array, Array]:
        """First and second derivative of every sample's term by its value."""
        return _derivatives(values, self.signs, self.weights, self.modest)

    def nothing(self) -> Array:
        """Coefficients to begin with: zeros."""
        return namespace(self.A).zeros((self.A.shape[0], self.A.shape[2]), dtype=self.A.dtype, device=device(self.A))


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
        reach = xp.sum(xp.matmul(columns.A, self.inverse) * columns.A, axis=2)
        left = xp.maximum(1 - curve * reach, xp.full_like(reach, LEFT))
        return self.values + slope * reach / left


def log_losses(values: Array, signs: Array) -> Array:
    """``log(1 + exp(-signs values))``, without overflow."""
    xp = namespace(values)
    margin = signs * values
    return xp.log1p(xp.exp(-xp.abs(margin))) + xp.maximum(-margin, xp.zeros_like(margin))


def eliminate(columns: LogisticColumns) -> Iterator[Stage]:
    """Regressions on all columns, and on fewer and fewer of them down to one.

    Notes
    -----
    ``F n k^2`` flops a step, two or three steps a stage.
    """
    xp = namespace(columns.A)
    F, _, k = (int(length) for length in columns.A.shape)
    numbers = xp.arange(k - 1, device=device(columns.A))
    kept = xp.zeros((F, k - 1), dtype=numbers.dtype, device=device(columns.A)) + numbers[None, :]
    coef = columns.nothing()
    while True:
        stage = columns.regress(coef, kept)
        yield stage
        if stage.size <= 1:
            return
        stay, gone = _part(stage)
        coef, columns = _without(stage, stay, gone), columns.take(stay)
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

    @classmethod
    def of(cls, K: Array, between: Array, ridge: float, signs: Array, weights: Array) -> Candidacy:
        """In double precision."""
        xp = namespace(K)
        K, between, signs, weights = (xp.astype(one, xp.float64, copy=False) for one in (K, between, signs, weights))
        return cls(K, K * K, between, ridge, signs, weights)

    def penalty(self, kept: Array) -> Array:
        """``R`` between the columns ``kept`` and all, ``(k, m)``."""
        xp = namespace(self.between)
        return (self.ridge / 2) * (xp.take(self.between, kept, axis=0) + xp.take(self.between, kept, axis=1).T)

    def regress(self, kept: Array, coef: Array | None = None) -> Stage:
        """The regression on the columns ``kept`` (k,), from ``coef`` (k + 1,) on."""
        xp = namespace(self.K)
        R = xp.take(self.penalty(kept), kept, axis=1)
        Z = xp.take(self.K, kept, axis=1)
        columns = LogisticColumns.of(Z[None, :, :], self.signs, self.weights[None, :], R[None, :, :])
        return columns.regress(columns.nothing() if coef is None else coef[None, :], kept[None, :])

    def entering(self, stage: Stage) -> Array:
        """Number of the column that brings most, ``(1,)``.

        That of largest :math:`g_j^2 / (k_j^T C k_j - k_j^T C A H^{-1} A^T C k_j)`, ``g`` being its derivative and ``C``
        the curvature of the samples (Rao's statistic: what it brings, to second order).
        """
        xp, columns = namespace(self.K), stage.columns
        kept = stage.kept[0, :]
        slope, curve = columns.derivatives(stage.values)
        within = self.penalty(kept)
        pulled = (slope @ self.K)[0, :] + stage.coef[0, 1:] @ within
        own = (curve @ self.squares)[0, :] + self.ridge * xp.linalg.diagonal(self.between)
        cross = (columns.A[0, :, :] * curve[0, :, None]).T @ self.K
        cross = xp.concat([cross[:1, :], cross[1:, :] + within], axis=0)
        left = own - xp.sum(cross * (stage.inverse[0, :, :] @ cross), axis=0)
        usable = left > _DEPENDENT * own
        gain = xp.where(usable, pulled**2 / xp.where(usable, left, xp.ones_like(left)), -xp.ones_like(left))
        return xp.argmax(gain)[None]


def exchange(candidacy: Candidacy, columns: Array, coef: Array | None = None) -> Stage:
    """Replace ``columns`` (k,) by others, one by one, while that lowers the objective.

    The column outside that brings most enters, then that of least worth leaves. ``coef`` (k + 1,) is where the first
    regression begins.
    """
    xp = namespace(candidacy.K)
    stage = candidacy.regress(columns, coef)
    for _ in range(_EXCHANGES):
        kept = xp.concat([stage.kept[0, :], candidacy.entering(stage)])
        larger = candidacy.regress(kept, xp.concat([stage.coef[0, :], xp.zeros_like(stage.coef[0, :1])]))
        stay, gone = _part(larger)
        found = candidacy.regress(xp.take(kept, stay[0, 1:] - 1), _without(larger, stay, gone)[0, :])
        if not found.objective < stage.objective * (1 - _GAIN):
            break
        stage = found
    return stage


def slopes(Z: Array, signs: Array, weights: Array, coef: Array) -> Array:
    """Derivative of the losses by the coefficients ``coef`` (k + 1,), the weights taken as they are."""
    xp = namespace(Z)
    A, weights, signs, coef = (
        xp.astype(one, xp.float64) for one in (with_constant(Z[None, :, :]), weights, signs, coef)
    )
    A = A[0, :, :]
    return _derivatives(A @ coef, signs, weights, _MODEST)[0] @ A


def _padded(R: Array, shift: Array) -> Array:
    """Zero for the constant, and the shifts ``(F, k + 1)`` on the diagonal."""
    xp, F, size = namespace(R), int(R.shape[0]), int(R.shape[1]) + 1
    padded = xp.zeros((F, size, size), dtype=R.dtype, device=device(R))
    padded[:, 1:, 1:] = R
    return padded + shift[:, :, None] * xp.eye(size, dtype=R.dtype, device=device(R))


def signs_of(codes: Array, like: Array) -> Array:
    """1 for the second class, -1 for the first, in the type of ``like``."""
    return 2 * namespace(like).astype(codes, like.dtype) - 1


def with_constant(Z: Array) -> Array:
    """The columns of every fold, a constant first."""
    xp = namespace(Z)
    return xp.concat([xp.ones_like(Z[:, :, :1]), Z], axis=2)


def scaled(weights: Array) -> Array:
    """Weights that add up to the number of samples in every fold."""
    return weights * (int(weights.shape[1]) / namespace(weights).sum(weights, axis=1))[:, None]


def _derivatives(values: Array, signs: Array, weights: Array, modest: float) -> tuple[Array, Array]:
    """First and second derivative of every sample's term by its value."""
    share = (1 + namespace(values).tanh(values / 2)) / 2
    return weights * (share - (signs + 1) / 2 + modest * values), weights * (share * (1 - share) + modest)


def _part(stage: Stage) -> tuple[Array, Array]:
    """Components that stay, ascending, and those that leave: columns of least Wald statistic, never the constant."""
    xp, leave = namespace(stage.coef), max(1, stage.size // _AT_ONCE)
    worth = stage.coef[:, 1:] ** 2 / xp.linalg.diagonal(stage.inverse)[:, 1:]
    order = xp.argsort(worth, axis=1) + 1
    stay = xp.concat([xp.zeros_like(order[:, :1]), xp.sort(order[:, leave:], axis=1)], axis=1)
    return stay, order[:, :leave]


def _without(stage: Stage, stay: Array, gone: Array) -> Array:
    """Coefficients of those that stay: what they become to second order when the others are gone."""
    xp = namespace(stage.coef)
    toward = rows_of_each(stage.inverse, gone)
    pulled = xp.linalg.solve(rows_of_each(xp.matrix_transpose(toward), gone), take_each(stage.coef, gone)[:, :, None])
    return take_each(stage.coef - xp.matmul(xp.matrix_transpose(toward), pulled)[:, :, 0], stay)


def take_each(rows: Array, positions: Array) -> Array:
    """``rows[f, positions[f]]`` for every fold."""
    return rows_of_each(rows[:, :, None], positions)[:, :, 0]


def rows_of_each(M: Array, positions: Array) -> Array:
    """``M[f, positions[f], :]`` for every fold, in one step."""
    xp, (F, k, length) = namespace(M), M.shape
    begin = k * xp.arange(F, dtype=positions.dtype, device=device(positions))
    flat = xp.reshape(begin[:, None] + positions, (-1,))
    return xp.reshape(xp.take(xp.reshape(M, (F * k, length)), flat, axis=0), (F, positions.shape[1], length))
