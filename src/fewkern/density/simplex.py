r"""The quadratic programme on the simplex, :math:`\min_g \tfrac12 g'Bg - v'g,\; g \ge 0,\; 1'g = 1`.

Behind every density with jointly fitted weights: the reduced set estimator, SKD, and the refits of forward regression.
Two solvers: the multiplicative updates that the paper quotes (:func:`mnqp`), and an exact active set
(:func:`active_set`).
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.backend.linalg import solve_or_least_squares
from fewkern.backend.namespace import Array, asarray_like, device, namespace

__all__ = ["SimplexSolution", "active_set", "mnqp", "optimality_gap"]

_FEW = 64


@dataclass(frozen=True)
class SimplexSolution:
    """Weights on the simplex."""

    weights: Array
    objective: float
    gap: float
    """Largest violation of the optimality conditions, relative to the size of ``B`` and ``v``."""
    iterations: int
    status: str
    """"optimal", or "limit" when the iterations were used up."""


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

    Each iteration minimises the bound :math:`\tfrac12\sum_j (Bg)_j z_j^2 / g_j - v'z` over the simplex:

    .. math:: c_j = \frac{g_j}{(Bg)_j}, \qquad g_j \leftarrow c_j \max(v_j + h, 0), \qquad
              h = \frac{1 - \sum_{j \in S} c_j v_j}{\sum_{j\in S} c_j},

    ``S`` the ``k`` largest ``v``, ``k`` the largest number with :math:`v_{(k)} + h_k > 0`. The objective never rises.

    Parameters
    ----------
    B : array of shape (n, n)
        Symmetric, positive semi-definite, no negative entry, positive diagonal.
    v : array of shape (n,)
    iterations : int
    start : array of shape (n,) or None
        Positive, sum one; uniform by default.

    Notes
    -----
    ``O(n^2)`` per iteration; convergence is sublinear, so the number of weights that look positive depends
    on the threshold.

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
    falling = xp.argsort(v, descending=True)
    v_sorted = xp.take(v, falling)
    zero = xp.zeros_like(v)
    least = xp.full_like(v, 1e-12 / n)
    for _ in range(iterations):
        c = g / (B @ g)
        # Paper: g_j <- c_j (v_j + h). We: the exact minimiser of the bound over the simplex, because the plain
        # formula gives negative weights (samples in the tails) and then diverges.
        c_sorted = xp.take(c, falling)
        h = (1.0 - xp.cumulative_sum(c_sorted * v_sorted)) / xp.cumulative_sum(c_sorted)
        inside = xp.astype(v_sorted + h > 0, xp.int64)
        k = int(xp.max(inside * xp.arange(n, device=device(v))))
        g = c * xp.maximum(v + h[k], zero)
        # Paper: nothing. We: a least weight, because a weight that is exactly zero would stay zero for good.
        g = xp.maximum(g, least)
        g = g / xp.sum(g)
    return SimplexSolution(g, _objective(B, v, g), optimality_gap(B, v, g), iterations, "limit")


def _minimise_on_support(B: Array, v: Array) -> Array:
    """Solve ``B g - v + mu 1 = 0``, ``1'g = 1``, without the signs."""
    xp = namespace(B)
    s = B.shape[0]
    one = xp.ones((s, 1), dtype=B.dtype, device=device(B))
    corner = xp.zeros((1, 1), dtype=B.dtype, device=device(B))
    M = xp.concat([xp.concat([B, one], axis=1), xp.concat([one.T, corner], axis=1)], axis=0)
    return solve_or_least_squares(M, xp.concat([v, one[0, :]]))[:s]


def active_set(B: Array, v: Array, *, tol: float = 1e-10, max_pivots: int | None = None) -> SimplexSolution:
    r"""Exact solution by a primal active set: weights off the support are exactly zero.

    Start at the best vertex; take in the coordinate of most negative reduced gradient
    :math:`r_j = (Bg-v)_j - g'(Bg-v)`; minimise on the support; where a weight would turn negative go to the boundary,
    drop it and minimise again.

    Parameters
    ----------
    B : array of shape (n, n)
        Symmetric positive semi-definite.
    v : array of shape (n,)
    tol : float
        A reduced gradient above ``-tol`` times the size of ``B`` and ``v`` counts as zero.
    max_pivots : int or None
        By default ``20 n + 100``.

    Notes
    -----
    ``O(s^3 + n s)`` per pivot with ``s`` the size of the support.

    Examples
    --------
    >>> import numpy as np
    >>> B, v = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0.5, 0.4])
    >>> solution = active_set(B, v)
    >>> solution.weights.round(6), solution.status
    (array([0.6, 0.4]), 'optimal')
    """
    xp = namespace(B)
    n = int(v.shape[0])
    diagonal = xp.linalg.diagonal(B)
    scale = float(xp.mean(diagonal))
    # A constant added to v does not change the solution; without it the sizes below are those of the problem.
    given_B, given_v = B, v
    B, v, diagonal = B / scale, (v - xp.mean(v)) / scale, diagonal / scale
    if n <= _FEW:
        # In a refit of a few kernels mostly all of them keep a weight: then one solve does it.
        g = _minimise_on_support(B, v)
        if bool(xp.all(g > 0)) and optimality_gap(B, v, g / xp.sum(g)) <= tol:
            g = g / xp.sum(g)
            return SimplexSolution(
                g, _objective(given_B, given_v, g), optimality_gap(given_B, given_v, g), 1, "optimal"
            )
    size = max(float(xp.max(xp.abs(v))), float(xp.max(diagonal)))
    support = [int(xp.argmin(0.5 * diagonal - v))]
    weights = xp.ones((1,), dtype=v.dtype, device=device(v))
    limit = 20 * n + 100 if max_pivots is None else max_pivots
    pivots, status = 0, "limit"
    best = float(0.5 * diagonal[support[0]] - v[support[0]])
    while pivots < limit:
        S = asarray_like(support, v, dtype=xp.int64)
        gradient = xp.take(B, S, axis=1) @ weights - v
        r = gradient - weights @ xp.take(gradient, S)
        entering = int(xp.argmin(r))
        if float(r[entering]) >= -tol * size or entering in support:
            status = "optimal"
            break
        # the values before the pivot; without progress rounding alone would keep the loop going
        before_support, before_weights = list(support), weights
        support = [*support, entering]
        weights = xp.concat([weights, xp.zeros((1,), dtype=v.dtype, device=device(v))])
        while pivots < limit:
            pivots += 1
            S = asarray_like(support, v, dtype=xp.int64)
            B_ss = xp.take(xp.take(B, S, axis=0), S, axis=1)
            target = _minimise_on_support(B_ss, xp.take(v, S))
            if bool(xp.all(target > 0)):
                weights = target
                break
            # longest step towards the target that keeps every weight at zero or above
            step = target - weights
            falling = step < 0
            room = xp.where(falling, weights / xp.where(falling, -step, xp.ones_like(step)), xp.ones_like(step))
            length = min(float(xp.min(room)), 1.0)
            weights = weights + length * step
            keep = ~(falling & (room <= length))
            kept = [index for index, stays in zip(support, keep) if bool(stays)]
            if not kept or len(kept) == len(support):
                break
            support, weights = kept, weights[keep]
        weights = xp.maximum(weights, xp.zeros_like(weights))
        weights = weights / xp.sum(weights)
        S = asarray_like(support, v, dtype=xp.int64)
        value = _objective(xp.take(xp.take(B, S, axis=0), S, axis=1), xp.take(v, S), weights)
        if value >= best:
            support, weights, status = before_support, before_weights, "optimal"
            break
        best = value
    g = _spread(support, weights, n)
    return SimplexSolution(g, _objective(given_B, given_v, g), optimality_gap(given_B, given_v, g), pivots, status)


def _spread(support: list[int], weights: Array, n: int) -> Array:
    """A vector of length ``n`` with ``weights`` at ``support`` and zeros elsewhere."""
    xp = namespace(weights)
    S = asarray_like(support, weights, dtype=xp.int64)
    order = xp.argsort(S)
    S, weights = xp.take(S, order), xp.take(weights, order)
    # position of every coordinate among the sorted support, by counting: no assignment by index arrays
    where = xp.searchsorted(S, xp.arange(n, dtype=xp.int64, device=device(weights)))
    where = xp.clip(where, 0, int(S.shape[0]) - 1)
    hit = xp.take(S, where) == xp.arange(n, dtype=xp.int64, device=device(weights))
    return xp.where(hit, xp.take(weights, where), xp.zeros_like(xp.take(weights, where)))
