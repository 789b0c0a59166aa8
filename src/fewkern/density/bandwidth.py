r"""Bandwidth of a Parzen window: rules of thumb and cross-validation in closed form (FCR sec. II).

==================== =============================================
symbol               name
==================== =============================================
:math:`x_i, w_i`     ``problem.Z``, ``problem.w``
:math:`\sigma`       ``bandwidth``
:math:`M(\sigma)`    score of :func:`least_squares_scores`, FCR (5)
==================== =============================================

A score is a pair ``(value, log_factor)`` that stands for ``value * exp(log_factor)``, which may be out of range in many
dimensions; an array ``(G, 2)`` holds those of ``G`` bandwidths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array
from fewkern.arrays.neighbors import close_pairs
from fewkern.arrays.progress import Step
from fewkern.core.path import Path, Stop
from fewkern.density.problem import DensityProblem, squared_distances

RULES = ("lscv", "lscv-approximate", "likelihood", "silverman", "scott")

# Largest number of samples in cross-validation, whose cost is their square.
_SEARCH_ROWS = 2000
# The first grid; it grows towards a minimum outside of it.
_GRID_IN_SILVERMANS = np.geomspace(0.15, 1.5, 30)


def parzen_bandwidth(
    problem: DensityProblem, rule: str | float, rng: Any = None, step: Step = lambda _: None
) -> tuple[Path, Stop, int]:
    """The bandwidth of Parzen's estimate by one of the :data:`RULES`, or as given.

    Cross-validation looks at 2,000 samples at most, drawn by ``rng``; their best bandwidth is then narrowed
    at the theoretical rate.

    Returns
    -------
    path : Path
        The bandwidths tried and their scores; it chooses the bandwidth.
    stop : Stop
        "inside" the bandwidths tried, at their "edge" even after extensions, or "given".
    tied_pairs : int
        Number of pairs of equal samples, where they are why the bandwidth is at the lower edge.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.density.problem import DensityProblem
    >>> problem = DensityProblem.of(np.linspace(-1, 1, 50)[:, None], np.ones(50))
    >>> path, stop, _ = parzen_bandwidth(problem, "lscv")
    >>> round(path.setting["bandwidth"], 3), str(stop)
    (0.365, 'inside')
    """
    thumb = {"silverman": problem.silverman, "scott": problem.scott}
    if rule in thumb or not isinstance(rule, str):
        return _path([float(thumb.get(rule, rule))], np.zeros(1), 0), Stop.GIVEN, 0  # type: ignore[arg-type]
    scores = likelihood_scores if rule == "likelihood" else partial(least_squares_scores, exact=rule != RULES[1])
    some = problem.part(problem.draw(_SEARCH_ROWS, rng))
    bandwidths, found, stop, pairs = _search(some, scores, step)
    error = found[:, 0] * np.exp(np.minimum(found[:, 1], 690.0))  # just inside the range of a double
    bandwidths = bandwidths * some.narrowing(problem.effective_size)
    return _path(bandwidths.tolist(), error, smallest_score(found)), stop, pairs


def _path(bandwidths: list[float], error: Array, best: int) -> Path:
    measure = "cross-validation score of the bandwidth"
    return Path({"bandwidth": tuple(bandwidths)}, error, np.zeros_like(error), (best,), measure=measure)


def smallest_score(scores: Array) -> int:
    """Position of the smallest score, the first one on ties; its factor may be out of range."""
    sign = np.sign(scores[:, 0])
    size = np.log(np.abs(np.where(sign == 0, 1.0, scores[:, 0]))) + scores[:, 1]
    return int(np.lexsort((sign * size, sign))[0])


def least_squares_scores(problem: DensityProblem, bandwidths: Array, exact: bool = True) -> Array:
    r"""Least-squares cross-validation, exactly or as the paper approximates it.

    .. math:: M(\sigma) = \sum_{i,j} w_i w_j K(x_i, x_j, \sqrt2\sigma)
              - 2 \sum_i \frac{w_i}{1 - w_i} \sum_{j \ne i} w_j K(x_i, x_j, \sigma) \qquad (5)

    Returns :math:`(2\pi\,\sigma_0^2)^{m/2} M(\sigma)` with :math:`\sigma_0` the unit of the problem. The approximate
    form replaces :math:`1/(1-w_i)` by one.

    Notes
    -----
    Time ``O(G n^2 m)`` over pairs ``i < j`` in row blocks, one exponential per pair and bandwidth:
    the kernel of bandwidth ``s`` is the square of the exponential of bandwidth ``sqrt(2) s``.
    """
    Z, w, n, m = problem.Z, problem.w, problem.n, problem.dim
    odds = 1.0 / problem.rest if exact else np.ones_like(w)
    smooth, sharp = np.full(len(bandwidths), np.sum(w * w)), np.zeros(len(bandwidths))
    for rows in row_blocks(n, n):
        after = slice(rows.start, n)
        both = np.triu(w[rows][:, None] * w[after][None, :], k=1)
        left = both * (odds[rows][:, None] + odds[after][None, :])
        D = squared_distances(Z[rows], Z[after])
        for q, bandwidth in enumerate(bandwidths):
            half = np.exp(D * (-0.25 / bandwidth**2))
            smooth[q] += 2.0 * np.sum(both * half)
            sharp[q] += np.sum(left * (half * half))
    return np.column_stack([2.0 ** (-m / 2) * smooth - 2.0 * sharp, m * np.log(problem.unit / np.array(bandwidths))])


def likelihood_scores(problem: DensityProblem, bandwidths: Array) -> Array:
    r"""Minus the cross-validated likelihood.

    .. math:: -\sum_i w_i \log \frac{1}{1-w_i} \sum_{j\ne i} w_j K(x_i, x_j, \sigma)
    """
    Z, w, n, m, rest = problem.Z, problem.w, problem.n, problem.dim, problem.rest
    totals = 0.5 * m * np.log(2 * math.pi * np.array(bandwidths) ** 2)
    for rows in row_blocks(n, n):
        D = squared_distances(Z[rows], Z)
        D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = math.inf
        nearest = np.min(D, axis=1, keepdims=True)
        for q, bandwidth in enumerate(bandwidths):
            near = np.exp((D - nearest) * (-0.5 / bandwidth**2)) @ w
            log_p = np.log(near / rest[rows]) - nearest[:, 0] * (0.5 / bandwidth**2)
            totals[q] -= w[rows] @ log_p
    return np.column_stack([totals, np.zeros_like(totals)])


def ties_dominate(problem: DensityProblem) -> tuple[bool, int]:
    r"""Whether ties drive :math:`M(\sigma)` to :math:`-\infty` at small bandwidths, and the number of tied pairs.

    Without weights and with ``t`` pairs: :math:`4t/(N(N-1)) > 2^{-m/2}(N + 2t)/N^2`. Samples are tied if they are
    closer than 1e-7 units of the problem: no bandwidth of interest tells them apart.
    """
    i, j = close_pairs(problem.Z, 1e-7 * problem.unit)
    both, odds = problem.w[i] * problem.w[j], 1.0 / problem.rest
    smooth = float(np.sum(problem.w * problem.w)) + 2.0 * float(np.sum(both))
    sharp = float(np.sum(both * (odds[i] + odds[j])))
    return 2.0 * sharp > 2.0 ** (-problem.dim / 2) * smooth, len(i)


def _search(
    problem: DensityProblem, scores: Callable[[DensityProblem, Array], Array], step: Step
) -> tuple[Array, Array, Stop, int]:
    """Bandwidths tried, their scores, whether the best is inside, and the tied pairs if those are why it is not.

    Where the best one is at an end, the grid grows by its own span on that side, at most three times.
    """
    # Silverman's bandwidth is the unit of the search: of the grid, of the scores, and of what counts as tied
    problem = replace(problem, unit=problem.silverman)
    bandwidths = problem.unit * _GRID_IN_SILVERMANS
    span = _GRID_IN_SILVERMANS[1:] / _GRID_IN_SILVERMANS[0]
    found = scores(problem, bandwidths)
    for extensions_left in reversed(range(4)):
        step(len(bandwidths))
        best = smallest_score(found)
        if 0 < best < len(bandwidths) - 1:
            return bandwidths, found, Stop.INSIDE, 0
        if best == 0:
            dominated, pairs = ties_dominate(problem)
            if dominated:
                return bandwidths, found, Stop.EDGE, pairs
        if extensions_left and best == 0:
            fresh = bandwidths[0] / span[::-1]
            bandwidths, found = np.append(fresh, bandwidths), np.vstack([scores(problem, fresh), found])
        elif extensions_left:
            fresh = bandwidths[-1] * span
            bandwidths, found = np.append(bandwidths, fresh), np.vstack([found, scores(problem, fresh)])
    return bandwidths, found, Stop.EDGE, 0
