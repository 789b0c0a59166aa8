r"""kFDA_OLS: forward selection of kernel columns by orthogonal least squares (Billings and Lee; KFD paper, [14]).

The constant is taken first. Then, again and again, the column of largest *error reduction ratio*

.. math:: \mathrm{err}_j = \frac{\|p_j' R\|^2}{p_j' p_j \, \|Y\|^2},

:math:`p_j` being the column orthogonalized against those taken and :math:`R` the residual of the targets.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.linalg import solve_triangular
from fewkern.arrays.namespace import Array, device, eps, namespace
from fewkern.core.path import Stop
from fewkern.core.peel import peel
from fewkern.fisher.problem import Machine

__all__ = ["ForwardPath", "forward_columns"]

# A column is linearly dependent on those taken if less than this fraction of its squared norm remains.
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
    stop: Stop
    """LIMIT, RANK, or FITNESS where little enough of the targets is left."""

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.order.shape[0])

    @property
    def residuals(self) -> tuple[float, ...]:
        """Share of ``|Y|^2`` that the models of size 0, 1, ... leave."""
        left, shares = 1.0, []
        for ratio in self.ratios:
            left -= ratio
            shares.append(max(left, 0.0))
        return tuple(shares)

    def machine(self, size: int) -> Machine:
        """The model with ``size`` columns, by back-substitution."""
        k = size + 1
        W = solve_triangular(self.R[:k, :k], self.projections[:k, :], lower=False)
        return Machine(self.order[:size], W[1:, :], W[0, :])


def forward_columns(
    K: Array, Y: Array, limit: int, *, min_residual: float = 0.0, weights: Array | None = None
) -> ForwardPath:
    """Choose up to ``limit`` columns of ``K`` (n, m) for the targets ``Y`` (n, p).

    Parameters
    ----------
    K, Y : arrays
    limit : int
    min_residual : float
        Stop once the part of ``|Y|^2`` that is left is below it.
    weights : array of shape (n,) or None
        Positive sample weights, scaled to add up to ``n``.

    Notes
    -----
    ``n m`` flops per step: the orthogonalized columns are never formed, for ``p_j' R = k_j' R`` and
    ``p_j' p_j`` falls by ``(q' k_j)^2`` with every regressor ``q``. Only the chosen column is orthogonalized, twice.

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
    limit = min(limit, m)
    state = _Orthogonal(K, Y, root / xp.sqrt(xp.sum(root * root)), min_residual, limit)
    first = float(xp.sum(state.projections[0] ** 2)) / state.total
    peeled = peel(state, limit)
    return ForwardPath(
        order=xp.asarray([j for j, _ in peeled.records], dtype=xp.int64, device=device(K)),
        ratios=(first, *(ratio for _, ratio in peeled.records)),
        Q=state.regressors().T,
        R=state.triangle(),
        projections=xp.stack(state.projections, axis=0),
        stop=peeled.stop,
    )


class _Orthogonal:
    """Columns ``K`` and targets with the regressors taken so far projected out, without forming the former."""

    def __init__(self, K: Array, Y: Array, constant: Array, min_residual: float, limit: int) -> None:
        xp = namespace(K)
        self.K = K
        self.min_residual = max(min_residual, eps(K) ** 2)
        self.total = max(float(xp.sum(Y * Y)), float(xp.finfo(K.dtype).smallest_normal))
        self.basis = xp.zeros((limit + 1, int(K.shape[0])), dtype=K.dtype, device=device(K))
        self.basis[0, :] = constant
        self.projections = [constant @ Y]
        self.residual = Y - constant[:, None] * self.projections[0][None, :]
        along = constant @ K
        self.norms = xp.sum((K - constant[:, None] * along[None, :]) ** 2, axis=0)
        self.floor = max(_DEPENDENT, 10 * eps(K)) * xp.sum(K * K, axis=0)
        self.correlations = K.T @ self.residual
        self.taken = xp.zeros((int(K.shape[1]),), dtype=xp.bool, device=device(K))
        # the weights add up to n, so the column of ones is sqrt(n) times its regressor
        self.columns_of_R = [xp.full((1,), float(K.shape[0]) ** 0.5, dtype=K.dtype, device=device(K))]

    def find(self) -> int | Stop:
        """The column of largest error reduction ratio."""
        xp = namespace(self.K)
        if float(xp.sum(self.residual**2)) / self.total < self.min_residual:
            return Stop.FITNESS
        usable = ~self.taken & (self.norms > self.floor)
        if not bool(xp.any(usable)):
            return Stop.RANK
        one = xp.ones_like(self.norms)
        gain = xp.sum(self.correlations**2, axis=1) / xp.where(usable, self.norms, one)
        return int(xp.argmax(xp.where(usable, gain, -one)))

    def remove(self, j: int) -> list[tuple[int, float]]:
        """Project column ``j`` out; its number and the share of the targets that it explains."""
        xp = namespace(self.K)
        Q = self.regressors().T
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
        self.basis[len(self.projections), :] = q
        self.projections.append(projection)
        self.residual = self.residual - q[:, None] * projection[None, :]
        zero = xp.zeros_like(self.norms)
        self.norms = xp.maximum(self.norms - pulled * pulled, zero)
        self.correlations = self.correlations - pulled[:, None] * projection[None, :]
        self.taken = self.taken | (xp.arange(self.taken.shape[0], device=device(self.K)) == j)
        return [(j, float(xp.sum(projection * projection)) / self.total)]

    def regressors(self) -> Array:
        """Those taken so far, one per row."""
        return self.basis[: len(self.projections), :]

    def triangle(self) -> Array:
        """``R`` from its columns."""
        xp = namespace(self.K)
        k = len(self.columns_of_R)
        padded = [
            xp.concat([c, xp.zeros((k - c.shape[0],), dtype=c.dtype, device=device(c))]) for c in self.columns_of_R
        ]
        return xp.stack(padded, axis=1)
