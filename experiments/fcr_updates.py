"""The multiplicative updates that the FCR paper quotes for the quadratic programme on the simplex, and RSDE by them."""

from __future__ import annotations

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop
from fewkern.density.problem import DensityProblem, RoundMixture
from fewkern.density.simplex import SimplexSolution, programme

__all__ = ["mnqp", "reduced_set_by_updates"]


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
    n = len(v)
    g = np.ones_like(v) / n if start is None else start
    falling = np.argsort(-v)
    v_sorted = v[falling]
    for _ in range(iterations):
        c = g / (B @ g)
        # Paper: g_j <- c_j (v_j + h). We: the exact minimizer of the bound over the simplex, because the plain
        # formula gives negative weights (samples in the tails) and then diverges.
        c_sorted = c[falling]
        h = (1.0 - np.cumsum(c_sorted * v_sorted)) / np.cumsum(c_sorted)
        k = int(np.max((v_sorted + h > 0) * np.arange(n)))
        g = c * np.maximum(v + h[k], 0.0)
        # Paper: nothing. We: a least weight, because a weight that is exactly zero would stay zero for good.
        g = np.maximum(g, 1e-12 / n)
        g = g / np.sum(g)
    return SimplexSolution.of(B, v, g, iterations, Stop.MAX_ITER)


def reduced_set_by_updates(problem: DensityProblem, bandwidth: float, iterations: int = 3000) -> RoundMixture:
    """RSDE by the multiplicative updates of the literature; weights up to 1e-4 are dropped."""
    weights = mnqp(*programme(problem, bandwidth), iterations=iterations).weights
    keep = weights > 1e-4
    return problem.mixture(problem.candidates[keep], bandwidth, weights[keep])
