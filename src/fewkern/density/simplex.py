r"""The quadratic programme on the simplex, :math:`\min_g \tfrac12 g'Bg - v'g,\; g \ge 0,\; 1'g = 1`.

Behind every density with jointly fitted weights: the reduced set estimator, SKD, and the refits of forward regression.
There are two solvers: an exact active set (:func:`active_set`), and the multiplicative updates that the paper quotes
(:func:`mnqp`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fewkern.arrays.linalg import divide_where, solve_or_least_squares
from fewkern.arrays.namespace import Array, asarray_like, device, namespace
from fewkern.core.path import Stop

__all__ = ["SimplexSolution", "active_set", "mnqp", "optimality_gap"]

# With so few kernels mostly all of them keep a weight, and one linear system is the solution.
_FEW = 64
# Multiplicative updates never give back a weight of zero, so they keep this one (over the number of weights).
_LEAST_WEIGHT = 1e-12


@dataclass(frozen=True)
class SimplexSolution:
    """Weights on the simplex."""

    weights: Array
    objective: float
    gap: float
    """Largest violation of the optimality conditions, relative to the size of ``B`` and ``v``."""
    n_iter: int
    stop: Stop
    """``CONVERGED``, ``PRECISION`` if rounding ended the descent above the tolerance, or ``MAX_ITER`` if the
    iterations were used up."""


def _objective(B: Array, v: Array, g: Array) -> float:
    return 0.5 * float(g @ (B @ g)) - float(v @ g)


def optimality_gap(B: Array, v: Array, g: Array) -> float:
    r"""How far ``g`` is from optimal: :math:`\max_j -r_j` and :math:`\max_j g_j r_j`, :math:`r = (Bg-v) - g'(Bg-v)`.

    At the solution the reduced gradient :math:`r` is nowhere negative and zero on the support.
    Relative to the largest entry of ``v`` and of the diagonal of ``B``.
    """
    xp = namespace(B)
    gradient = B @ g - v
    r = gradient - g @ gradient
    size = max(float(xp.max(xp.abs(v))), float(xp.max(xp.linalg.diagonal(B))))
    return max(float(xp.max(-r)), float(xp.max(g * xp.abs(r)))) / size


def mnqp(B: Array, v: Array, *, iterations: int = 3000, start: Array | None = None) -> SimplexSolution:
    r"""Multiplicative updates for ``B >= 0`` entrywise (Sha, Saul and Lee), kept on the simplex.

    Each iteration minimizes the bound :math:`\tfrac12\sum_j (Bg)_j z_j^2 / g_j - v'z` over the simplex:

    .. math:: c_j = \frac{g_j}{(Bg)_j}, \qquad g_j \leftarrow c_j \max(v_j + h, 0), \qquad
              h = \frac{1 - \sum_{j \in S} c_j v_j}{\sum_{j\in S} c_j},

    ``S`` the ``k`` largest ``v``, ``k`` the largest number with :math:`v_{(k)} + h_k > 0`. The objective never rises.

    Parameters
    ----------
    B : array of shape (n, n)
        Symmetric, positive semi-definite, no negative entry, positive diagonal.
    v : array of shape (n,)
    iterations : int
        All of them are done: convergence is sublinear, so how many weights look positive depends on the threshold.
    start : array of shape (n,) or None
        Positive, sum one; uniform by default.

    Notes
    -----
    ``O(n^2)`` per iteration.

    Examples
    --------
    >>> import numpy as np
    >>> B, v = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([5.0, 0.0])
    >>> mnqp(B, v).weights.round(6)
    array([1., 0.])
    """
    xp = namespace(B)
    n = int(v.shape[0])
    g = xp.ones_like(v) / n if start is None else start
    falling = xp.argsort(-v)
    v_sorted = xp.take(v, falling)
    zero = xp.zeros_like(v)
    least = xp.full_like(v, _LEAST_WEIGHT / n)
    for _ in range(iterations):
        c = g / (B @ g)
        # Paper: g_j <- c_j (v_j + h). We: the exact minimizer of the bound over the simplex, because the plain
        # formula gives negative weights (samples in the tails) and then diverges.
        c_sorted = xp.take(c, falling)
        h = (1.0 - xp.cumulative_sum(c_sorted * v_sorted)) / xp.cumulative_sum(c_sorted)
        inside = xp.astype(v_sorted + h > 0, xp.int64)
        k = int(xp.max(inside * xp.arange(n, device=device(v))))
        g = c * xp.maximum(v + h[k], zero)
        # Paper: nothing. We: a least weight, because a weight that is exactly zero would stay zero for good.
        g = xp.maximum(g, least)
        g = g / xp.sum(g)
    return SimplexSolution(g, _objective(B, v, g), optimality_gap(B, v, g), iterations, Stop.MAX_ITER)


def _minimize_on_support(B: Array, v: Array) -> Array:
    """Solve ``B g - v + mu 1 = 0``, ``1'g = 1``, without the signs."""
    xp = namespace(B)
    s = B.shape[0]
    one = xp.ones((s, 1), dtype=B.dtype, device=device(B))
    corner = xp.zeros((1, 1), dtype=B.dtype, device=device(B))
    M = xp.concat([xp.concat([B, one], axis=1), xp.concat([one.T, corner], axis=1)], axis=0)
    return solve_or_least_squares(M, xp.concat([v, one[0, :]]))[:s]


class _Support:
    """Coordinates with a weight, in order of entry, and their weights."""

    def __init__(self, B: Array, v: Array) -> None:
        xp = namespace(B)
        self.B, self.v = B, v
        corners = 0.5 * xp.linalg.diagonal(B) - v
        self.indices = [int(xp.argmin(corners))]
        self.weights = xp.ones((1,), dtype=v.dtype, device=device(v))
        self.value = float(corners[self.indices[0]])

    def _array(self) -> Array:
        return asarray_like(self.indices, self.v, dtype=namespace(self.v).int64)

    def _block(self) -> tuple[Array, Array]:
        xp, S, n = namespace(self.B), self._array(), int(self.v.shape[0])
        numbers = xp.reshape(n * S[:, None] + S[None, :], (-1,))
        block = xp.take(xp.reshape(self.B, (-1,)), numbers)  # only these numbers: whole rows would be n / s times more
        return xp.reshape(block, (int(S.shape[0]), -1)), xp.take(self.v, S)

    def entering(self) -> tuple[int, float]:
        """Coordinate of the most negative reduced gradient, and that gradient."""
        xp, S = namespace(self.B), self._array()
        gradient = (
            self.weights @ xp.take(self.B, S, axis=0) - self.v
        )  # rows of B, which is symmetric: they are together
        r = gradient - self.weights @ xp.take(gradient, S)
        j = int(xp.argmin(r))
        return j, float(r[j])

    def pivot(self, j: int, limit: int) -> tuple[int, bool]:
        """Take in coordinate ``j`` and minimize; how many systems that took (``limit`` at most), and whether it helped.

        Where a weight would turn negative, the step ends at the boundary, the coordinate leaves, and the rest is
        minimized again. Without progress, rounding alone would keep the loop going: then everything stays as it was.
        """
        xp = namespace(self.B)
        before = self.indices, self.weights
        self.indices = [*self.indices, j]
        self.weights = xp.concat([self.weights, xp.zeros((1,), dtype=self.v.dtype, device=device(self.v))])
        count = 0
        while count < limit:
            count += 1
            if not self._step():
                break
        self.weights = xp.maximum(self.weights, xp.zeros_like(self.weights))
        self.weights = self.weights / xp.sum(self.weights)
        value = _objective(*self._block(), self.weights)
        if value >= self.value:
            self.indices, self.weights = before
            return count, False
        self.value = value
        return count, True

    def _step(self) -> bool:
        """Go to the minimum on the support, or as far as no weight is negative; whether a coordinate left."""
        xp = namespace(self.B)
        target = _minimize_on_support(*self._block())
        if bool(xp.all(target > 0)):
            self.weights = target
            return False
        step = target - self.weights
        falling = step < 0
        room = divide_where(falling, self.weights, -step, 1.0)
        length = min(float(xp.min(room)), 1.0)
        self.weights = self.weights + length * step
        keep = ~(falling & (room <= length))
        kept = [index for index, stays in zip(self.indices, keep) if bool(stays)]
        if not kept or len(kept) == len(self.indices):
            return False
        self.indices, self.weights = kept, self.weights[keep]
        return True

    def spread(self) -> Array:
        """The weights of all coordinates, zero off the support."""
        xp, n = namespace(self.v), int(self.v.shape[0])
        S = self._array()
        order = xp.argsort(S)
        S, weights = xp.take(S, order), xp.take(self.weights, order)
        # position of every coordinate in the sorted support, by counting: no assignment by index arrays
        numbers = xp.arange(n, dtype=xp.int64, device=device(weights))
        where = xp.clip(xp.searchsorted(S, numbers), 0, int(S.shape[0]) - 1)
        values = xp.take(weights, where)
        return xp.where(xp.take(S, where) == numbers, values, xp.zeros_like(values))


def active_set(B: Array, v: Array, *, tol: float = 1e-10, max_iter: int | None = None) -> SimplexSolution:
    r"""Exact solution by a primal active set: weights off the support are exactly zero.

    Start at the best vertex; take in the coordinate of most negative reduced gradient
    :math:`r_j = (Bg-v)_j - g'(Bg-v)`; minimize on the support; where a weight would turn negative go to the boundary,
    drop it and minimize again.

    Parameters
    ----------
    B : array of shape (n, n)
        Symmetric positive semi-definite.
    v : array of shape (n,)
    tol : float
        A reduced gradient above ``-tol`` times the size of ``B`` and ``v`` counts as zero.
    max_iter : int or None
        Largest number of linear systems; by default ``20 n + 100``.

    Notes
    -----
    ``O(s^3 + n s)`` per system with ``s`` the size of the support.

    Examples
    --------
    >>> import numpy as np
    >>> B, v = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0.5, 0.4])
    >>> solution = active_set(B, v)
    >>> solution.weights.round(6), str(solution.stop)
    (array([0.6, 0.4]), 'converged')
    """
    xp = namespace(B)
    n = int(v.shape[0])
    limit = 20 * n + 100 if max_iter is None else max_iter
    scale = float(xp.mean(xp.linalg.diagonal(B)))
    # A constant added to v does not change the solution; without it the sizes below are those of the problem.
    given_B, given_v = B, v
    B, v = B / scale, (v - xp.mean(v)) / scale

    def solution(g: Array, n_iter: int, stop: Stop) -> SimplexSolution:
        gap = optimality_gap(given_B, given_v, g)
        return SimplexSolution(g, _objective(given_B, given_v, g), gap, n_iter, stop)

    if n <= _FEW:
        g = _minimize_on_support(B, v)
        if bool(xp.all(g > 0)) and optimality_gap(B, v, g / xp.sum(g)) <= tol:
            return solution(g / xp.sum(g), 1, Stop.CONVERGED)
    size = max(float(xp.max(xp.abs(v))), float(xp.max(xp.linalg.diagonal(B))))
    support, used = _Support(B, v), 0
    while used < limit:
        j, slope = support.entering()
        if slope >= -tol * size or j in support.indices:
            return solution(support.spread(), used, Stop.CONVERGED)
        count, better = support.pivot(j, limit - used)
        used += count
        if not better and used < limit:
            found = solution(support.spread(), used, Stop.CONVERGED)
            return found if found.gap <= tol else replace(found, stop=Stop.PRECISION)
    return solution(support.spread(), used, Stop.MAX_ITER)
