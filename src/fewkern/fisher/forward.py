r"""kFDA_OLS: forward selection of kernel columns by orthogonal least squares (Billings and Lee; KFD paper, [14]).

The constant is taken first. Then, again and again, the column of largest *error reduction ratio*

.. math:: \mathrm{err}_j = \frac{\|p_j' R\|^2}{p_j' p_j \, \|Y\|^2},

:math:`p_j` being the column orthogonalized against those taken and :math:`R` the residual of the targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fewkern.arrays.linalg import solve_triangular
from fewkern.arrays.namespace import Array, eps
from fewkern.core.path import Stop, peel
from fewkern.core.statistics import Statistics
from fewkern.fisher.problem import Discriminant, Ending

# A column is linearly dependent on those taken if less than this fraction of its squared norm remains.
_MIN_SQUARED_NORM_SHARE = 1e-10
# Largest number of vectors that cross-validation compares (methods K6): two classes, several classes, which share the
# vectors.
MAX_VECTORS, MAX_VECTORS_MULTICLASS = 100, 300


@dataclass(frozen=True)
class ForwardPath:
    """Models of every size 0, 1, ..., L, nested: what is needed for the smaller ones is the leading part."""

    order: Array
    """Columns in the order of their choice, ``(L,)``."""
    ratios: tuple[float, ...]
    """Error reduction ratios: the constant's, then one per column. They add up to ``1 - RSS / |Y|^2``."""
    R: Array
    """Upper triangular: ``[1 K_S] = Q R``, with ``Q`` orthonormal (rows times the root of their weight)."""
    projections: Array
    """``Q' Y``, ``(L + 1, p)``."""
    stop: Stop
    """LIMIT, RANK, or FITNESS where the residual of the targets is zero."""

    @property
    def residuals(self) -> tuple[float, ...]:
        """Share of ``|Y|^2`` that the models of size 0, 1, ... leave."""
        return tuple(np.maximum(1.0 - np.cumsum(self.ratios), 0.0).tolist())

    def discriminant(self, size: int) -> Discriminant:
        """The model with ``size`` columns, or with all of them, by back-substitution."""
        k = 1 + min(size, len(self.order))
        W = solve_triangular(self.R[:k, :k], self.projections[:k], lower=False)
        return Discriminant(self.order[: k - 1], W[1:], W[0], size, self.residuals[:k], Ending(self.stop, k))


def forward_columns(K: Array, Y: Array, limit: int, weights: Array | None = None) -> ForwardPath:
    """Choose up to ``limit`` columns of ``K`` (n, m) for the targets ``Y`` (n, p).

    Parameters
    ----------
    K, Y : arrays
    limit : int
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
    n, m = K.shape
    root = np.ones(n, dtype=K.dtype)
    if weights is not None and np.any(weights != weights[0]):
        root = np.sqrt(weights * (n / np.sum(weights)))
        K, Y = K * root[:, None], Y * root[:, None]
    limit = min(limit, m)
    state = _Orthogonal(K, Y, root / np.sqrt(np.sum(root * root)), limit)
    first = float(np.sum(state.projections[0] ** 2)) / state.total
    peeled = peel(state, limit)
    return ForwardPath(
        order=np.array([j for j, _ in peeled.records], dtype=np.int64),
        ratios=(first, *(ratio for _, ratio in peeled.records)),
        R=state.R,
        projections=np.stack(state.projections),
        stop=peeled.stop,
    )


class _Orthogonal:
    """Columns ``K`` and targets with the regressors taken so far projected out, without forming the former."""

    def __init__(self, K: Array, Y: Array, constant: Array, limit: int) -> None:
        self.K = K
        self.total = max(float(np.sum(Y * Y)), float(np.finfo(K.dtype).tiny))
        self.basis = np.zeros((limit + 1, K.shape[0]), dtype=K.dtype)
        self.basis[0] = constant
        self.projections = [constant @ Y]
        self.residual = Y - constant[:, None] * self.projections[0][None, :]
        along = constant @ K
        self.norms = np.sum((K - constant[:, None] * along[None, :]) ** 2, axis=0)
        self.floor = max(_MIN_SQUARED_NORM_SHARE, 10 * eps(K)) * np.sum(K * K, axis=0)
        self.correlations = K.T @ self.residual
        self.R = np.zeros((limit + 1, limit + 1), dtype=K.dtype)
        # the weights add up to n, so the column of ones is sqrt(n) times its regressor
        self.R[0, 0] = K.shape[0] ** 0.5

    def find(self) -> int | Stop:
        """The column of largest error reduction ratio."""
        if float(np.sum(self.residual**2)) / self.total < eps(self.K) ** 2:
            return Stop.FITNESS
        usable = self.norms > self.floor
        if not np.any(usable):
            return Stop.RANK
        gain = np.sum(self.correlations**2, axis=1) / np.where(usable, self.norms, 1.0)
        return int(np.argmax(np.where(usable, gain, -1.0)))

    def remove(self, j: int) -> list[tuple[int, float]]:
        """Project column ``j`` out; its number and the share of the targets that it explains."""
        k = len(self.projections)
        Q = self.basis[:k].T
        column = self.K[:, j]
        along = Q.T @ column
        p = column - Q @ along
        again = Q.T @ p
        p = p - Q @ again
        norm = np.sqrt(np.sum(p * p))
        q = p / norm
        self.R[:k, k], self.R[k, k] = along + again, norm
        projection = q @ self.residual
        pulled = q @ self.K
        self.basis[k] = q
        self.projections.append(projection)
        self.residual = self.residual - q[:, None] * projection[None, :]
        self.norms = np.maximum(self.norms - pulled * pulled, 0.0)
        self.norms[j] = 0.0  # exactly: it is not taken again
        self.correlations = self.correlations - pulled[:, None] * projection[None, :]
        return [(j, float(np.sum(projection * projection)) / self.total)]


@dataclass(frozen=True)
class ForwardFamily:
    """kFDA_OLS along the number of vectors: what cross-validation compares, and how a model of one size is fitted."""

    sizes: tuple[int, ...] = tuple(range(1, MAX_VECTORS + 1))
    """Numbers of vectors to compare, ascending."""

    axis = "n_vectors"
    max_vectors = None  # every size is within the budget

    def settings(self, kernel_scale: float, target_scale: float) -> tuple[float, ...]:
        """Numbers of vectors to compare; they do not depend on scales."""
        return self.sizes

    @property
    def default(self) -> int:
        """Position of the number to use where classes are too small for folds: the tenth, or the last of fewer."""
        return min(10, len(self.sizes)) - 1

    def path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterator[Discriminant]:
        """Models of the given sizes; the path may end early."""
        path = forward_columns(K, Y, int(settings[-1]), weights)
        for size in settings:
            yield path.discriminant(int(size))
            if size >= len(path.order):  # no column is left that differs from those taken
                return

    def fit(self, K: Array, Y: Array, weights: Array, setting: float) -> Discriminant:
        """The model of one size, or smaller where no independent column or no residual is left."""
        return forward_columns(K, Y, int(setting), weights).discriminant(int(setting))

    def refit(self, fitted: Discriminant, sums: Statistics) -> Discriminant:
        """Least squares on the same vectors, from sums over rows of their kernel columns and of the targets."""
        solution = sums.solve(0.0)
        # the columns in their order, each orthogonalized against those before it
        explained = np.sum(solve_triangular(solution.factor, sums.cross) ** 2, axis=1) / np.sum(sums.square)
        left = np.maximum(1.0 - np.cumsum(explained), 0.0)
        return replace(fitted, coef=solution.W, offset=solution.offset, objectives=tuple(left.tolist()))
