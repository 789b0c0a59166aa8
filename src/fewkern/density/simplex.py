r"""The quadratic programme on the simplex, :math:`\min_g \tfrac12 g'Bg - v'g,\; g \ge 0,\; 1'g = 1`, and RSDE.

It gives the weights of every density that fits them jointly, reduced sets (RSDE) and SKD, by an exact active set. RSDE
is the programme on all candidates,

.. math:: B_{ij} = K(x_i, x_j, \sqrt2\sigma), \qquad v_j = \sum_i w_i K(x_i, x_j, \sigma) .
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import divide_where, solve_or_least_squares
from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import Step
from fewkern.arrays.sampling import Fold
from fewkern.core.path import Path, Stop
from fewkern.density.problem import DensityProblem, RoundMixture, squared_distances

# Bandwidths that the cross-validation of RSDE compares, in Parzen bandwidths.
CV_PARZEN_BANDWIDTHS = (1.0, 1.25, 1.4, 1.55, 1.7, 1.85, 2.0, 2.2, 2.4, 2.7)
# A reduced gradient above minus this number, relative to the size of ``B`` and ``v``, counts as zero.
_RELATIVE_GRADIENT_TOL = 1e-10


@dataclass(frozen=True)
class SimplexSolution:
    """Weights on the simplex."""

    weights: Array
    objective: float
    gap: float
    """Largest violation of the optimality conditions, relative to the size of ``B`` and ``v``."""
    n_iter: int
    stop: Stop
    """``CONVERGED``, or ``PRECISION`` if rounding ended the descent above the tolerance."""

    @classmethod
    def of(cls, B: Array, v: Array, g: Array, n_iter: int, stop: Stop) -> SimplexSolution:
        """The weights ``g``, with the objective and how far they are from optimal."""
        return cls(g, _objective(B, v, g), optimality_gap(B, v, g), n_iter, stop)


def _objective(B: Array, v: Array, g: Array) -> float:
    return 0.5 * float(g @ (B @ g)) - float(v @ g)


def optimality_gap(B: Array, v: Array, g: Array) -> float:
    r"""How far ``g`` is from optimal: :math:`\max_j -r_j` and :math:`\max_j g_j r_j`, :math:`r = (Bg-v) - g'(Bg-v)`.

    At the solution the reduced gradient :math:`r` is nowhere negative and zero on the support.
    Relative to the largest entry of ``v`` and of the diagonal of ``B``.
    """
    gradient = B @ g - v
    r = gradient - g @ gradient
    return max(float(np.max(-r)), float(np.max(g * np.abs(r)))) / _size(B, v)


def _size(B: Array, v: Array) -> float:
    return max(float(np.max(np.abs(v))), float(np.max(np.diagonal(B))))


def _minimize_on_support(B: Array, v: Array) -> Array:
    """Solve ``B g - v + mu 1 = 0``, ``1'g = 1``, without the signs."""
    M = np.pad(B, (0, 1), constant_values=1.0)
    M[-1, -1] = 0.0
    return solve_or_least_squares(M, np.append(v, 1.0))[:-1]


def _descend(B: Array, v: Array, S: list[int], g: Array) -> tuple[list[int], Array, int]:
    """Minimize over the coordinates ``S``, from their weights ``g``; also returns the number of systems solved.

    Where a weight would turn negative, the step ends at the boundary, the coordinate leaves, and the rest is minimized
    again.
    """
    count = 0
    while True:
        count += 1
        target = _minimize_on_support(B[np.ix_(S, S)], v[S])
        if np.all(target > 0):
            g = target
            break
        step = target - g
        room = divide_where(step < 0, g, -step, 1.0)
        length = min(float(np.min(room)), 1.0)
        g = g + length * step
        keep = ~((step < 0) & (room <= length))
        if not np.any(keep) or np.all(keep):
            break
        S, g = [j for j, stays in zip(S, keep) if stays], g[keep]
    g = np.maximum(g, 0.0)
    return S, g / np.sum(g), count


def active_set(B: Array, v: Array) -> SimplexSolution:
    r"""Exact solution by a primal active set: weights off the support are exactly zero.

    Start at the best vertex; take in the coordinate of most negative reduced gradient
    :math:`r_j = (Bg-v)_j - g'(Bg-v)`; minimize on the support; where a weight would turn negative go to the boundary,
    drop it and minimize again. The objective falls with every coordinate, so no support occurs twice.

    Parameters
    ----------
    B : array of shape (n, n)
        Symmetric positive semi-definite.
    v : array of shape (n,)

    Notes
    -----
    ``O(s^3 + n s)`` per linear system with ``s`` the size of the support.

    Examples
    --------
    >>> import numpy as np
    >>> B, v = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0.5, 0.4])
    >>> solution = active_set(B, v)
    >>> solution.weights.round(6), str(solution.stop)
    (array([0.6, 0.4]), 'converged')
    """
    scale = float(np.mean(np.diagonal(B)))
    # A constant added to v does not change the solution; without it the sizes below are those of the problem.
    given, B, v = (B, v), B / scale, (v - np.mean(v)) / scale
    size, corners = _size(B, v), 0.5 * np.diagonal(B) - v
    S, g, used = [int(np.argmin(corners))], np.ones(1), 0
    value = float(corners[S[0]])
    while True:
        # rows of B, which is symmetric: they are contiguous in memory
        gradient = g @ B[S] - v
        r = gradient - g @ gradient[S]
        j = int(np.argmin(r))
        optimal = float(r[j]) >= -_RELATIVE_GRADIENT_TOL * size or j in S
        if optimal:
            break
        support, weights, count = _descend(B, v, [*S, j], np.append(g, 0.0))
        used += count
        found = _objective(B[np.ix_(support, support)], v[support], weights)
        if found >= value:  # rounding alone would keep the loop going
            break
        S, g, value = support, weights, found
    whole = np.zeros_like(v)
    whole[S] = g
    solution = SimplexSolution.of(*given, whole, used, Stop.CONVERGED)
    return solution if optimal or solution.gap <= _RELATIVE_GRADIENT_TOL else replace(solution, stop=Stop.PRECISION)


def programme(problem: DensityProblem, bandwidth: float) -> tuple[Array, Array]:
    """``B`` and ``v`` of the candidates; ``v`` in row blocks."""
    centers = problem.centers
    B = problem.kernel(squared_distances(centers, centers), math.sqrt(2.0) * bandwidth)
    v = np.zeros(len(centers))
    for rows in row_blocks(problem.n, len(centers)):
        v = v + problem.w[rows] @ problem.kernel(squared_distances(problem.Z[rows], centers), bandwidth)
    return B, v


def reduced_set(problem: DensityProblem, bandwidth: float) -> tuple[RoundMixture, SimplexSolution]:
    """RSDE at one ``bandwidth``, solved exactly; ``c^2`` numbers for ``c`` candidates."""
    solution = active_set(*programme(problem, bandwidth))
    keep = solution.weights > 0
    return problem.mixture(problem.candidates[keep], bandwidth, solution.weights[keep]), solution


def reduced_set_bandwidths(problem: DensityProblem, folds: list[Fold], step: Step = lambda _: None) -> Path:
    r"""RSDE-CV: cross-validated integrated squared error of multiples of ``unit``.

    The path chooses the bandwidth of least error. The ``folds`` are of the candidates. Where these are not all samples,
    their bandwidths are larger by :math:`(N/c)^{1/(m+4)}`, as Parzen's is.
    """
    bandwidths = tuple(factor * problem.unit for factor in CV_PARZEN_BANDWIDTHS)
    some = problem.part(problem.candidates)
    wider = problem.narrowing(some.effective_size)
    error = np.zeros(len(bandwidths))
    for q, bandwidth in enumerate(bandwidths):
        for train, test in folds:
            mixture, _ = reduced_set(some.part(train), wider * bandwidth)
            error[q] += some.w[list(test)] @ some.error_terms(mixture, some.Z[list(test)])
        step(q + 1)
    chosen, measure = (int(np.argmin(error)),), "cross-validated integrated squared error"
    return Path({"bandwidth": bandwidths}, error, np.zeros_like(error), chosen, measure=measure)
