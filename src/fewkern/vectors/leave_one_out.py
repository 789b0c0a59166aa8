"""Regression on nested features, with the leave-one-out error of every model on the path in one pass (FVS-LR).

With ``X = W^{1/2} [1 G]`` and ``X'X + ridge diag(0, 1, .., 1) = R'R``, ``Q = X R^{-1}``, the leading blocks of ``R``
belong to the smaller models. So, for every ``L`` at once,

    fit_L = sum_{j<=L} Q_j (Q_j'Y),   lev_L = sum_{j<=L} Q_j^2,   y_i - f^(-i)(x_i) = (y - fit_L)_i / (1 - lev_L,i)

This is leave-one-out with the vectors held, which is fair because their selection never looks at ``y``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fewkern.backend.blocks import row_blocks
from fewkern.backend.finite import largest_power
from fewkern.backend.linalg import jittered_cholesky, one_hot, solve_triangular
from fewkern.backend.namespace import Array, device, eps, float_dtype, namespace
from fewkern.core.samples import Samples
from fewkern.core.scores import class_values

__all__ = ["HeldOut", "Path", "Solution", "class_targets", "loo_paths", "solve"]

# Up to this many outputs their errors are added one after the other, above by one more product.
_FEW_OUTPUTS = 3


@dataclass(frozen=True)
class Path:
    """Mean squared leave-one-out error, summed over the outputs, for ``0..L`` vectors, and its standard error."""

    error: Array
    spread: Array


@dataclass(frozen=True)
class Solution:
    """``f(z) = W'z + offset`` and what it says of every training sample when that one is left out."""

    W: Array
    offset: Array
    held_out: Array
    """Prediction for every sample by the model fitted without it, shape ``(n, q)``."""
    jitter: float = 0.0
    """What rounding made necessary beside the ridge."""


@dataclass(frozen=True)
class HeldOut:
    """Values of a model for samples that it was not fitted to."""

    samples: Samples
    values: Array
    """Shape ``(n, q)``."""

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(namespace(self.values).sum(self.samples.weights))

    def squared_error(self) -> float:
        """Weighted mean of the squared errors, summed over the outputs."""
        xp, w = namespace(self.values), self.samples.weights
        return float(w @ xp.sum((self.values - self.samples.targets) ** 2, axis=1) / xp.sum(w))

    def error_rate(self) -> float:
        """Weighted share of the samples for which the largest value is that of another class."""
        xp, w = namespace(self.values), self.samples.weights
        wrong = xp.argmax(class_values(self.values), axis=1) != self.samples.codes
        return float(w @ xp.astype(wrong, w.dtype) / xp.sum(w))


def class_targets(samples: Samples) -> Samples:
    """The samples with targets of FVS-LR for their classes: -1/+1 for two classes, 0/1 indicators otherwise."""
    dtype = float_dtype(samples.X)
    indicators = one_hot(samples.codes, samples.n_classes, dtype)
    return replace(samples, targets=indicators if samples.n_classes > 2 else 2 * indicators[:, 1:] - 1)


def _design(G: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """``W^{1/2} [1 G]``, ``W^{1/2}`` and the weights."""
    xp = namespace(G)
    n = G.shape[0]
    one = xp.ones((n, 1), dtype=G.dtype, device=device(G))
    w = one[:, 0] if weights is None else weights
    root = xp.sqrt(w)
    return root[:, None] * xp.concat([one, G], axis=1), root, w


def _orthogonal(X: Array, ridge: float, gram: Array | None = None) -> tuple[Array, Array, float]:
    """``Q`` and the upper triangular ``R`` of the ridge problem (the constant is not penalised), and its jitter.

    ``gram`` is ``X'X``, where it is at hand.
    """
    xp = namespace(X)
    if ridge == 0:
        Q, R = xp.linalg.qr(X, mode="reduced")
        j = _dependent(R)
        if j is None:
            return Q, R, 0.0
        # The vectors span the constant: column j adds nothing, and its column of Q is noise.
        rest, _, _ = _orthogonal(xp.concat([X[:, :j], X[:, j + 1 :]], axis=1), 0.0)
        return xp.concat([rest[:, :j], xp.zeros_like(X[:, :1]), rest[:, j:]], axis=1), R, 0.0
    gram = X.T @ X if gram is None else gram
    penalty = xp.full((X.shape[1],), ridge, dtype=X.dtype, device=device(X))
    penalty[0] = 0.0
    C, jitter = jittered_cholesky(gram + penalty[:, None] * xp.eye(X.shape[1], dtype=X.dtype, device=device(X)))
    return solve_triangular(C, X.T).T, C.T, jitter


def _dependent(R: Array) -> int | None:
    """First column that depends on those before it, by the diagonal of the triangular factor."""
    xp = namespace(R)
    size = xp.abs(xp.linalg.diagonal(R))
    small = xp.nonzero(size <= 1e3 * eps(R) * xp.max(size))[0]
    return int(small[0]) if small.shape[0] else None


def loo_paths(G: Array, Y: Array, ridges: tuple[float, ...], weights: Array | None = None) -> list[Path]:
    """Leave-one-out error of FVS-LR on the first ``0..L`` columns of ``G``, for every ridge.

    Notes
    -----
    ``n L^2`` flops in BLAS-3 per ridge, once more for all of them, and once more per ridge for more than three outputs,
    whatever their number. Without a ridge, models with as many unknowns as samples (of positive weight) have no
    leave-one-out error; theirs is infinite. A sample of leverage one, on which alone some direction hangs, is predicted
    by the constant when it is left out.
    """
    xp = namespace(G)
    design = _design(G, weights)
    gram = design[0].T @ design[0] if any(ridge > 0 for ridge in ridges) else None
    paths = []
    for ridge in ridges:
        if ridge > 0:
            paths.append(_path(design, Y, _orthogonal(design[0], ridge, gram)[0]))
            continue
        count = int(xp.sum(xp.astype(design[2] > 0, xp.int64)))
        columns = min(G.shape[1] + 1, count)
        path = _path(design, Y, _orthogonal(design[0][:, :columns], 0.0)[0])
        if columns == count:
            path.error[count - 1] = xp.inf
        none = xp.full((G.shape[1] + 1 - columns,), xp.inf, dtype=G.dtype, device=device(G))
        paths.append(Path(xp.concat([path.error, none]), xp.concat([path.spread, none])))
    return paths


def _path(design: tuple[Array, Array, Array], Y: Array, Q: Array) -> Path:
    """Leave-one-out errors on the leading columns of the orthogonal ``Q``, in row blocks."""
    _, root, w = design
    xp, (n, q), columns = namespace(Q), Y.shape, int(Q.shape[1])
    # in units of a power of two near the largest target: exact, and no fourth power over- or underflows
    unit = largest_power(Y)
    Y = Y / unit
    target = Q.T @ (root[:, None] * Y)
    total = float(xp.sum(w))
    sums = xp.zeros((columns,), dtype=Q.dtype, device=device(Q))
    squares = xp.zeros_like(sums)
    for rows in row_blocks(n, columns * max(min(q, _FEW_OUTPUTS), 2), like=Q):
        Qb, rb = Q[rows, :], root[rows]
        left = 1.0 - xp.cumulative_sum(Qb * Qb, axis=1)
        alone = left <= 1e3 * eps(Q)
        left = xp.where(alone, xp.ones_like(left), left)
        # undo W^{1/2}; what is computed for a sample of weight zero counts nothing
        safe = xp.where(rb > 0, rb, xp.ones_like(rb))
        error = _squared_residuals(Qb / safe[:, None], target, Y[rows, :]) / (left * left)
        error = xp.where(alone, error[:, :1], error)
        sums = sums + w[rows] @ error
        squares = squares + w[rows] @ (error * error)
    mean = sums / total
    variance = xp.maximum(squares / total - mean * mean, xp.zeros_like(mean))
    effective = total * total / float(xp.sum(w * w))
    return Path(unit * unit * mean, unit * unit * xp.sqrt(variance / effective))


def _squared_residuals(F: Array, target: Array, Y: Array) -> Array:
    """``sum_c (y_ic - sum_{j<=L} F_ij t_jc)^2`` for every row ``i`` and every ``L``.

    For many outputs the square is multiplied out. With ``S = T T'``, the square of the fit grows by
    ``2 F_iL sum_{j<L} F_ij S_jL + F_iL^2 S_LL`` from one ``L`` to the next: a product, whatever the number of outputs.
    """
    xp = namespace(F)
    if Y.shape[1] <= _FEW_OUTPUTS:
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


def solve(G: Array, Y: Array, ridge: float, weights: Array | None = None) -> Solution:
    r"""Minimise :math:`\sum_i w_i |y_i - \beta - A^T z_i|^2 + \text{ridge}\,|A|_F^2`, eq. (11) with its constant."""
    xp = namespace(G)
    X, root, w = _design(G, weights)
    target = root[:, None] * Y
    Q, R, jitter = _orthogonal(X, ridge)
    if (ridge == 0 and X.shape[1] > X.shape[0]) or _dependent(R) is not None:
        # more unknowns than equations: the solution of least length
        inverse = xp.linalg.pinv(X)
        solution = inverse @ target
        leverage = xp.sum(X * inverse.T, axis=1)
    else:
        solution = solve_triangular(R, Q.T @ target, lower=False)
        leverage = xp.sum(Q * Q, axis=1)
    W, offset = solution[1:, :], solution[0, :]
    fit = G @ W + offset
    left = (1.0 - leverage)[:, None]
    alone = left <= 1e3 * eps(G)
    rest = xp.maximum(xp.sum(w) - w, xp.full_like(w, eps(G)))[:, None]
    others = ((w @ Y)[None, :] - w[:, None] * Y) / rest
    held_out = Y - (Y - fit) / xp.where(alone, xp.ones_like(left), left)
    return Solution(W, offset, xp.where(alone, others, held_out), jitter)
