r"""kFDA_OLS: forward selection of kernel columns by orthogonal least squares (Billings and Lee; KFD paper, [14]).

The constant is taken first. Then, again and again, the column of largest *error reduction ratio*

.. math:: \mathrm{err}_j = \frac{\|p_j' R\|^2}{p_j' p_j \, \|Y\|^2},

:math:`p_j` being the column orthogonalised against those taken and :math:`R` the residual of the targets.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.backend.linalg import solve_triangular
from fewkern.backend.namespace import Array, device, eps, namespace
from fewkern.core.peel_callbacks import Stop, peel

__all__ = ["ForwardPath", "forward_columns"]

# A column of which less than this share (of its squared norm) is left depends on those taken.
_DEPENDENT = 1e-10


@dataclass(frozen=True)
class ForwardPath:
    """Models of every size 0, 1, ..., L, nested: what is needed for the smaller ones is the leading part."""

    order: Array
    """Columns in the order of their choice, ``(L,)``."""
    ratios: tuple[float, ...]
    """Error reduction ratios: the constant's, then one per column. They add up to ``1 - RSS / |Y|^2``."""
    Q: Array
    """Orthonormal regressors of the training samples (rows times the root of their weight), constant first."""
    R: Array
    """Upper triangular: ``[1 K_S] = Q R``."""
    projections: Array
    """``Q' Y``, ``(L + 1, p)``."""
    stop: str
    """"limit", "tolerance" or "rank"."""

    def coefficients(self, size: int) -> tuple[Array, Array]:
        """Coefficients ``(size, p)`` and offset ``(p,)`` of the model with ``size`` columns, by back-substitution."""
        k = size + 1
        W = solve_triangular(self.R[:k, :k], self.projections[:k, :], lower=False)
        return W[1:, :], W[0, :]

    def regressors(self, K: Array) -> Array:
        """Orthonormal regressors of new samples, whose kernel columns (in the order of choice) are ``K``."""
        xp = namespace(K)
        A = xp.concat([xp.ones((K.shape[0], 1), dtype=K.dtype, device=device(K)), K], axis=1)
        return solve_triangular(self.R, A.T, lower=False, transposed=True).T


def forward_columns(K: Array, Y: Array, *, limit: int, tol: float = 0.0, weights: Array | None = None) -> ForwardPath:
    """Choose up to ``limit`` columns of ``K`` (n, m) for the targets ``Y`` (n, p).

    Parameters
    ----------
    K, Y : arrays
    limit : int
    tol : float
        Stop once the part of ``|Y|^2`` that is left is below it.
    weights : array of shape (n,) or None
        Positive sample weights, scaled to add up to ``n``.

    Notes
    -----
    ``n m`` flops per step: the orthogonalised columns are never formed, for ``p_j' R = k_j' R`` and
    ``p_j' p_j`` falls by ``(q' k_j)^2`` with every regressor ``q``. Only the chosen column is orthogonalised, twice.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.fisher.forward import forward_columns
    >>> K = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.0, 0.0]])
    >>> path = forward_columns(K, np.array([[2.0], [1.0], [0.0], [0.0]]), limit=2)
    >>> path.order, round(sum(path.ratios), 6)
    (array([0]), 1.0)
    """
    xp = namespace(K)
    n, m = int(K.shape[0]), int(K.shape[1])
    root = xp.ones((n,), dtype=K.dtype, device=device(K))
    if weights is not None and bool(xp.any(weights != weights[0])):
        root = xp.sqrt(weights * (n / xp.sum(weights)))
        K, Y = K * root[:, None], Y * root[:, None]
    total = float(xp.sum(Y * Y))
    constant = root / xp.sqrt(xp.sum(root * root))
    state = _Orthogonal(K, Y, constant)
    first = float(xp.sum(state.projections[0] ** 2)) / max(total, 1e-300)
    original = xp.sum(K * K, axis=0)
    floor = max(_DEPENDENT, 10 * eps(K))

    def find(_: int) -> int | Stop:
        left = float(xp.sum(state.residual**2)) / max(total, 1e-300)
        if left < max(tol, eps(K) ** 2):
            return Stop("tolerance")
        usable = ~state.taken & (state.norms > floor * original)
        if not bool(xp.any(usable)):
            return Stop("rank")
        one = xp.ones_like(state.norms)
        gain = xp.sum(state.correlations**2, axis=1) / xp.where(usable, state.norms, one)
        return int(xp.argmax(xp.where(usable, gain, -one)))

    def remove(j: int) -> list[tuple[int, float]]:
        return [(j, state.take(j) / total)]

    peeled = peel(find, remove, min(limit, m))
    order = xp.asarray([j for j, _ in peeled.records], dtype=xp.int64, device=device(K))
    return ForwardPath(
        order=order,
        ratios=(first, *(ratio for _, ratio in peeled.records)),
        Q=xp.stack(state.basis, axis=1),
        R=state.triangle(),
        projections=xp.stack(state.projections, axis=0),
        stop=peeled.stop,
    )


class _Orthogonal:
    """Columns ``K`` and targets with the regressors taken so far projected out, without forming the former."""

    def __init__(self, K: Array, Y: Array, constant: Array) -> None:
        xp = namespace(K)
        self.K = K
        self.basis = [constant]
        self.projections = [constant @ Y]
        self.residual = Y - constant[:, None] * self.projections[0][None, :]
        along = constant @ K
        self.norms = xp.sum((K - constant[:, None] * along[None, :]) ** 2, axis=0)
        self.correlations = K.T @ self.residual
        self.taken = xp.zeros((int(K.shape[1]),), dtype=xp.bool, device=device(K))
        # the weights add up to n, so the column of ones is sqrt(n) times its regressor
        self.columns_of_R = [xp.full((1,), float(K.shape[0]) ** 0.5, dtype=K.dtype, device=device(K))]

    def take(self, j: int) -> float:
        """Take column ``j``; returns the squared norm that it removes from the targets."""
        xp = namespace(self.K)
        Q = xp.stack(self.basis, axis=1)
        column = self.K[:, j]
        along = Q.T @ column
        p = column - Q @ along
        again = Q.T @ p
        p = p - Q @ again
        norm = xp.sqrt(xp.sum(p * p))
        q = p / norm
        self.columns_of_R.append(xp.concat([along + again, xp.reshape(norm, (1,))]))
        projection = q @ self.residual
        pulled = q @ self.K
        self.basis.append(q)
        self.projections.append(projection)
        self.residual = self.residual - q[:, None] * projection[None, :]
        zero = xp.zeros_like(self.norms)
        self.norms = xp.maximum(self.norms - pulled * pulled, zero)
        self.correlations = self.correlations - pulled[:, None] * projection[None, :]
        self.taken = self.taken | (xp.arange(self.taken.shape[0], device=device(self.K)) == j)
        return float(xp.sum(projection * projection))

    def triangle(self) -> Array:
        """``R`` from its columns."""
        xp = namespace(self.K)
        k = len(self.columns_of_R)
        padded = [
            xp.concat([c, xp.zeros((k - c.shape[0],), dtype=c.dtype, device=device(c))]) for c in self.columns_of_R
        ]
        return xp.stack(padded, axis=1)
