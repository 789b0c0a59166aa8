r"""Reduced set density estimation (RSDE): the simplex programme on all candidates, and its cross-validated bandwidth.

.. math:: B_{ij} = K(x_i, x_j, \sqrt2\sigma), \qquad v_j = \sum_i w_i K(x_i, x_j, \sigma)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.folds import Fold
from fewkern.arrays.namespace import Array, device, namespace
from fewkern.core.path import Path
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture
from fewkern.density.simplex import SimplexSolution, active_set, mnqp

__all__ = ["CV_FACTORS", "ReducedSet", "reduced_set", "reduced_set_by_updates", "reduced_set_width"]

# Bandwidths of the cross-validation, in units of Parzen's.
CV_FACTORS = (1.0, 1.25, 1.4, 1.55, 1.7, 1.85, 2.0, 2.2, 2.4, 2.7)


@dataclass(frozen=True)
class ReducedSet:
    """Kernels with a weight, and the solution of the programme that gave them."""

    mixture: RoundMixture
    solution: SimplexSolution


def _programme(problem: DensityProblem, width: float) -> tuple[Array, Array]:
    """``B`` and ``v`` of the candidates; ``v`` in row blocks."""
    centers = problem.centers
    B = problem.kernel(squared_distances(centers, centers), math.sqrt(2.0) * width)
    v = namespace(centers).zeros((centers.shape[0],), dtype=centers.dtype, device=device(centers))
    for rows in row_blocks(problem.n, int(centers.shape[0])):
        v = v + problem.w[rows] @ problem.kernel(squared_distances(problem.Z[rows, :], centers), width)
    return B, v


def _kept(problem: DensityProblem, width: float, solution: SimplexSolution, threshold: float) -> ReducedSet:
    keep = solution.weights > threshold
    g = solution.weights[keep]
    return ReducedSet(problem.mixture(problem.candidates[keep], namespace(g).full_like(g, width), g), solution)


def reduced_set(
    problem: DensityProblem, width: float, *, tol: float = 1e-10, max_iter: int | None = None
) -> ReducedSet:
    """RSDE at one ``width``, solved exactly; ``c^2`` numbers for ``c`` candidates."""
    return _kept(problem, width, active_set(*_programme(problem, width), tol=tol, max_iter=max_iter), 0.0)


def reduced_set_by_updates(
    problem: DensityProblem, width: float, *, threshold: float = 1e-4, iterations: int = 3000
) -> ReducedSet:
    """RSDE by the multiplicative updates of the literature; weights up to the ``threshold`` are dropped."""
    return _kept(problem, width, mnqp(*_programme(problem, width), iterations=iterations), threshold)


def reduced_set_width(problem: DensityProblem, folds: list[Fold], step: Callable[[int], None] = lambda _: None) -> Path:
    r"""RSDE-CV: cross-validated integrated squared error :math:`g'Bg - 2\overline{\hat p(x)}` of multiples of ``unit``.

    The least value belongs to the bandwidth to take. The ``folds`` are of the candidates. Where these are not all
    samples, their bandwidths are larger by :math:`(N/c)^{1/(m+4)}`, as Parzen's is.
    """
    widths = tuple(factor * problem.unit for factor in CV_FACTORS)
    some = problem if int(problem.candidates.shape[0]) == problem.n else problem.part(problem.candidates)
    wider = (problem.effective_size / some.effective_size) ** (1.0 / (problem.dim + 4))
    errors = []
    for q, width in enumerate(widths):
        errors.append(sum(_held_out_error(some, wider * width, fold) for fold in folds))
        step(q + 1)
    error = problem.numbers(errors)
    chosen = (int(namespace(error).argmin(error)),)
    spread = namespace(error).zeros_like(error)
    return Path({"bandwidth": widths}, error, spread, chosen, measure="cross-validated integrated squared error")


def _held_out_error(problem: DensityProblem, width: float, fold: Fold) -> float:
    """Error of the samples of one fold, times their weight, up to a constant."""
    inside = problem.part(fold[0])
    rows = problem.part(fold[1])
    found = reduced_set(inside, width).mixture
    g = found.weights
    square = float(g @ (problem.kernel(squared_distances(found.centers, found.centers), math.sqrt(2.0) * width) @ g))
    density = 0.0
    for block in row_blocks(rows.n, int(g.shape[0])):
        D = squared_distances(rows.Z[block, :], found.centers)
        density += float(rows.w[block] @ (problem.kernel(D, width) @ g))
    return problem.share(fold[1]) * (square - 2.0 * density)
