r"""Backward elimination: which of the columns a logistic regression on them can do without.

Least squares must reach the targets everywhere, a logistic regression only has to tell the classes apart, for which
fewer columns are enough. With signs :math:`s_i = \pm 1` of the two classes, and weights of mean one, the coefficients
minimize

.. math:: \sum_i w_i \left[\log(1 + e^{-s_i f_i}) + \tfrac\epsilon2 f_i^2\right], \qquad f = [1\; Z]\,b.

The column of least :math:`b_j^2 / (H^{-1})_{jj}` leaves, ``H`` being the second derivative (Wald's statistic: what
its removal costs, to second order), and the others are fitted anew. All folds go on together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fewkern.backend.namespace import Array, device, namespace

__all__ = ["Exchanged", "Stage", "eliminate", "exchange", "log_losses", "regress", "slopes"]

# Weight of the mean square of f: keeps the values finite where the classes can be separated.
_RIDGE = 1e-3
# Shift of H, in units of its mean diagonal: columns may be nearly dependent.
SHIFT = 1e-12
# No step changes a value by more than _REACH. The iteration ends with a step that changes none by more than _SETTLED:
# the next one would change them by the square of that.
_REACH, _SETTLED, _MAX_STEPS = 4.0, 1e-2, 25
# Of many columns, one in so many leaves at once.
_AT_ONCE = 12
# Exchanges at most; the part of the objective that one must gain; the part of a column's square that must be its own.
_EXCHANGES, _GAIN, _DEPENDENT = 20, 1e-4, 1e-8
# A leverage of one means that the sample decides its own value: the part left of a sample is at least this.
LEFT = 1e-3


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

    @property
    def size(self) -> int:
        """Number of columns left."""
        return int(self.kept.shape[1])

    def leave_one_out(self, Z: Array, signs: Array, weights: Array) -> Array:
        """Values of every sample without itself, to second order, ``(F, n)``; ``Z`` (F, n, k) are the columns left."""
        xp = namespace(Z)
        A, weights, signs = (xp.astype(value, xp.float64) for value in (with_constant(Z), scaled(weights), signs))
        slope, curve = _derivatives(self.values, signs, weights)
        reach = xp.sum(xp.matmul(A, self.inverse) * A, axis=2)
        left = xp.maximum(1 - curve * reach, xp.full_like(reach, LEFT))
        return self.values + slope * reach / left


def log_losses(values: Array, signs: Array) -> Array:
    """``log(1 + exp(-signs values))``, without overflow."""
    xp = namespace(values)
    margin = signs * values
    return xp.log1p(xp.exp(-xp.abs(margin))) + xp.maximum(-margin, xp.zeros_like(margin))


def eliminate(Z: Array, signs: Array, weights: Array) -> Iterator[Stage]:
    """Regressions on all columns, and on fewer and fewer of them down to one.

    Parameters
    ----------
    Z : array of shape (F, n, k)
        Columns of every fold.
    signs : array of shape (n,)
        1 for the second class, -1 for the first.
    weights : array of shape (F, n)
        Zero where a sample is held out.

    Notes
    -----
    ``F n k^2`` flops a step, two or three steps a stage.
    """
    xp = namespace(Z)
    F, _, k = (int(length) for length in Z.shape)
    # float64 whatever Z is: kernel columns are nearly dependent
    A, weights, signs = (xp.astype(value, xp.float64) for value in (with_constant(Z), scaled(weights), signs))
    coef = xp.zeros((F, k + 1), dtype=A.dtype, device=device(Z))
    kept = xp.zeros((F, k), dtype=xp.int64, device=device(Z)) + xp.arange(k, device=device(Z))[None, :]
    while True:
        stage = _regress(A, signs, weights, kept, coef)
        yield stage
        if stage.size <= 1:
            return
        stay = _stay(stage)
        coef = _without(stage, stay)
        A = xp.stack([xp.take(A[f, :, :], stay[f, :], axis=1) for f in range(F)])
        kept = take_each(kept, stay[:, 1:] - 1)


@dataclass(frozen=True)
class Exchanged:
    """Columns of which none can be replaced with profit."""

    stage: Stage
    """Of a single fold; ``kept`` are columns of the whole matrix."""
    objective: float


def exchange(K: Array, columns: Array, signs: Array, weights: Array) -> Exchanged:
    """Replace ``columns`` of ``K`` (n, m) by others, one by one, while that lowers the objective.

    The column outside of largest :math:`g_j^2 / (k_j^T C k_j - k_j^T C A H^{-1} A^T C k_j)` enters, ``g`` being its
    derivative and ``C`` the curvature of the samples (Rao's statistic: what it brings, to second order), then that of
    least worth leaves.
    """
    xp = namespace(K)
    K, weights, signs = (xp.astype(value, xp.float64) for value in (K, scaled(weights[None, :]), signs))
    squares = K * K

    def regress(kept: Array, start: Array) -> Stage:
        return _regress(with_constant(xp.take(K, kept[0, :], axis=1)[None, :, :]), signs, weights, kept, start)

    kept = columns[None, :]
    stage = regress(kept, xp.zeros((1, int(kept.shape[1]) + 1), dtype=K.dtype, device=device(K)))
    value = _objective(stage, signs, weights)
    for _ in range(_EXCHANGES):
        kept = xp.concat([stage.kept, _entering(stage, K, squares, signs, weights)[None, :]], axis=1)
        larger = regress(kept, xp.concat([stage.coef, xp.zeros_like(stage.coef[:, :1])], axis=1))
        stay = _stay(larger)
        found = regress(take_each(kept, stay[:, 1:] - 1), _without(larger, stay))
        reached = _objective(found, signs, weights)
        if not reached < value * (1 - _GAIN):
            break
        stage, value = found, reached
    return Exchanged(stage, value)


def slopes(Z: Array, signs: Array, weights: Array, coef: Array) -> Array:
    """Derivative of the objective by the coefficients ``coef`` (k + 1,), the weights taken as they are."""
    xp = namespace(Z)
    A, weights, signs, coef = (
        xp.astype(one, xp.float64) for one in (with_constant(Z[None, :, :]), weights, signs, coef)
    )
    A = A[0, :, :]
    return _derivatives(A @ coef, signs, weights)[0] @ A


def regress(Z: Array, signs: Array, weights: Array, coef: Array, pull: Array) -> Array:
    """Coefficients ``(k + 1,)`` that minimize the objective plus ``pull @ coef``, from ``coef`` on."""
    xp = namespace(Z)
    A = with_constant(xp.astype(Z, xp.float64)[None, :, :])
    weights, signs, coef = (xp.astype(one, xp.float64) for one in (scaled(weights[None, :]), signs, coef[None, :]))
    every = xp.arange(int(Z.shape[1]), device=device(Z))[None, :]
    return _regress(A, signs, weights, every, coef, pull).coef[0, :]


def _entering(stage: Stage, K: Array, squares: Array, signs: Array, weights: Array) -> Array:
    """Number of the column that brings most, ``(1,)``."""
    xp = namespace(K)
    slope, curve = _derivatives(stage.values, signs, weights)
    A = with_constant(xp.take(K, stage.kept[0, :], axis=1)[None, :, :])[0, :, :]
    pulled = (slope @ K)[0, :]
    own = (curve @ squares)[0, :]
    cross = (A * curve[0, :, None]).T @ K
    left = own - xp.sum(cross * (stage.inverse[0, :, :] @ cross), axis=0)
    usable = left > _DEPENDENT * own
    gain = xp.where(usable, pulled**2 / xp.where(usable, left, xp.ones_like(left)), -xp.ones_like(left))
    return xp.argmax(gain)[None]


def _objective(stage: Stage, signs: Array, weights: Array) -> float:
    """What the regression of a single fold minimizes."""
    xp = namespace(weights)
    return float(xp.sum(weights * (log_losses(stage.values, signs) + _RIDGE / 2 * stage.values**2)))


def with_constant(Z: Array) -> Array:
    """The columns of every fold, a constant first."""
    xp = namespace(Z)
    return xp.concat([xp.ones_like(Z[:, :, :1]), Z], axis=2)


def scaled(weights: Array) -> Array:
    """Weights that add up to the number of samples in every fold."""
    return weights * (int(weights.shape[1]) / namespace(weights).sum(weights, axis=1))[:, None]


def _derivatives(values: Array, signs: Array, weights: Array) -> tuple[Array, Array]:
    """First and second derivative of every sample's term by its value."""
    share = (1 + namespace(values).tanh(values / 2)) / 2
    return weights * (share - (signs + 1) / 2 + _RIDGE * values), weights * (share * (1 - share) + _RIDGE)


def _regress(A: Array, signs: Array, weights: Array, kept: Array, coef: Array, pull: Array | None = None) -> Stage:
    """Newton's iteration in every fold, from ``coef``; ``pull`` is added to the derivative."""
    xp = namespace(A)
    shift = SHIFT * xp.eye(int(A.shape[2]), dtype=A.dtype, device=device(A))
    transposed = xp.matrix_transpose(A)
    values = xp.matmul(A, coef[:, :, None])[:, :, 0]
    for _ in range(_MAX_STEPS):
        slope, curve = _derivatives(values, signs, weights)
        H = xp.matmul(transposed, A * curve[:, :, None])
        size = xp.sum(xp.linalg.diagonal(H), axis=1) / int(A.shape[2])
        inverse = xp.linalg.inv(H + shift * size[:, None, None])
        downhill = xp.matmul(transposed, slope[:, :, None])
        if pull is not None:
            downhill = downhill + pull[None, :, None]
        step = xp.matmul(inverse, downhill)
        change = xp.matmul(A, step)[:, :, 0]
        largest = xp.max(xp.abs(change), axis=1)
        part = xp.where(largest > _REACH, _REACH / xp.maximum(largest, xp.ones_like(largest)), xp.ones_like(largest))
        coef = coef - part[:, None] * step[:, :, 0]
        values = values - part[:, None] * change
        if float(xp.max(largest)) <= _SETTLED:
            break
    return Stage(kept, coef, values, inverse)


def _stay(stage: Stage) -> Array:
    """Components that stay, ascending: the constant, and the columns of largest Wald statistic."""
    xp = namespace(stage.coef)
    worth = stage.coef**2 / xp.linalg.diagonal(stage.inverse)
    k = stage.size
    best = xp.argsort(worth[:, 1:], axis=1, descending=True)[:, : k - max(1, k // _AT_ONCE)] + 1
    return xp.concat([xp.zeros_like(best[:, :1]), xp.sort(best, axis=1)], axis=1)


def _without(stage: Stage, stay: Array) -> Array:
    """Coefficients of those that stay: when one leaves, what the others become to second order."""
    xp = namespace(stage.coef)
    coef = stage.coef
    if int(coef.shape[1]) - int(stay.shape[1]) == 1:
        numbers = xp.arange(int(coef.shape[1]), dtype=stay.dtype, device=device(stay))
        gone = xp.astype(~xp.any(stay[:, :, None] == numbers[None, None, :], axis=1), coef.dtype)
        pulled = xp.matmul(stage.inverse, gone[:, :, None])[:, :, 0]
        coef = coef - pulled * (xp.sum(coef * gone, axis=1) / xp.sum(pulled * gone, axis=1))[:, None]
    return take_each(coef, stay)


def take_each(rows: Array, positions: Array) -> Array:
    """``rows[f, positions[f]]`` for every fold."""
    xp = namespace(rows)
    return xp.stack([xp.take(rows[f, :], positions[f, :]) for f in range(int(rows.shape[0]))])
