r"""Reduced set density estimation (RSDE): the simplex programme on all candidates, and its cross-validated width.

.. math:: B_{ij} = K(x_i, x_j, \sqrt2\sigma), \qquad v_j = \sum_i w_i K(x_i, x_j, \sigma)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewkern.backend.blocks import row_blocks
from fewkern.backend.namespace import Array, device, namespace, take_rows
from fewkern.density.mixture import normal_kernel, squared_distances
from fewkern.density.simplex import active_set, mnqp

__all__ = ["CV_FACTORS", "ReducedSet", "reduced_set", "reduced_set_width"]

CV_FACTORS = (1.0, 1.25, 1.4, 1.55, 1.7, 1.85, 2.0, 2.2, 2.4, 2.7)


@dataclass(frozen=True)
class ReducedSet:
    """Rows with a weight."""

    indices: Array
    weights: Array
    gap: float
    stop: str


def reduced_set(
    X: Array,
    w: Array,
    width: float,
    candidates: Array,
    *,
    exact: bool = True,
    threshold: float = 1e-4,
    iterations: int = 3000,
) -> ReducedSet:
    """RSDE at one ``width``; ``threshold`` and ``iterations`` belong to the multiplicative updates.

    Notes
    -----
    ``c^2`` numbers for ``B``; ``v`` in row blocks.
    """
    xp = namespace(X)
    m = int(X.shape[1])
    centres = take_rows(X, candidates)
    B = normal_kernel(squared_distances(centres, centres), math.sqrt(2.0) * width, m, width)
    v = xp.zeros((candidates.shape[0],), dtype=X.dtype, device=device(X))
    for rows in row_blocks(int(X.shape[0]), int(candidates.shape[0])):
        v = v + w[rows] @ normal_kernel(squared_distances(X[rows, :], centres), width, m, width)
    solution = active_set(B, v) if exact else mnqp(B, v, iterations=iterations)
    keep = solution.weights > (0.0 if exact else threshold)
    g = solution.weights[keep]
    return ReducedSet(candidates[keep], g / xp.sum(g), solution.gap, solution.status)


def reduced_set_width(X: Array, w: Array, unit: float, candidates: Array, folds: Array) -> dict[float, float]:
    r"""RSDE-CV: cross-validated integrated squared error :math:`g'Bg - 2\overline{\hat p(x)}` of multiples of ``unit``.

    ``folds`` gives the fold of every row. The least value belongs to the width to take.
    """
    xp = namespace(X)
    m = int(X.shape[1])
    everyone = xp.arange(X.shape[0], dtype=candidates.dtype, device=device(X))
    scores: dict[float, float] = {}
    for factor in CV_FACTORS:
        width = factor * unit
        total = 0.0
        for fold in range(int(xp.max(folds)) + 1):
            inside, outside = everyone[folds != fold], everyone[folds == fold]
            X_in, w_in, w_out = take_rows(X, inside), take_rows(w, inside), take_rows(w, outside)
            places = xp.searchsorted(inside, candidates[take_rows(folds, candidates) != fold])
            fit = reduced_set(X_in, w_in / xp.sum(w_in), width, places)
            centres, g = take_rows(X_in, fit.indices), fit.weights
            square = g @ (normal_kernel(squared_distances(centres, centres), math.sqrt(2.0) * width, m, unit) @ g)
            held_out = 0.0
            for rows in row_blocks(int(outside.shape[0]), int(centres.shape[0])):
                D = squared_distances(take_rows(X, outside[rows]), centres)
                held_out += float(w_out[rows] @ (normal_kernel(D, width, m, unit) @ g))
            total += float(xp.sum(w_out)) * float(square) - 2.0 * held_out
        scores[width] = total
    return scores
