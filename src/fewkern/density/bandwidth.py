r"""Bandwidth of a Parzen window: rules of thumb and cross-validation in closed form (FCR sec. II).

==================== =============================================
symbol               name
==================== =============================================
:math:`x_i, w_i`     ``problem.Z``, ``problem.w``
:math:`\sigma`       ``width``
:math:`M(\sigma)`    score of :func:`least_squares_scores`, FCR (5)
==================== =============================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import Step
from fewkern.core.path import Path, Stop
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem

__all__ = [
    "RULES",
    "SEARCH_ROWS",
    "WidthSearch",
    "default_grid",
    "least_squares_scores",
    "least_squares_width",
    "likelihood_scores",
    "likelihood_width",
    "parzen_width",
    "ties_dominate",
]

Form = Literal["exact", "approximate"]
RULES = ("lscv", "lscv-approximate", "likelihood", "silverman", "scott")

# Cross-validation looks at this many samples at most: it costs their square.
SEARCH_ROWS = 2000
# The default grid.
_GRID_IN_SILVERMANS = np.geomspace(0.15, 1.5, 30)
# The grid grows towards a minimum outside of it, at most this many times.
_MAX_EXTENSIONS = 3
# Samples closer than this are tied: no bandwidth of interest tells them apart.
_TIE_IN_SILVERMANS = 1e-7
# Rounding error of an expanded square of m features, in units of (m + 2) eps times the largest square.
_SQUARE_ERROR_IN_EPS = 8.0
# Natural logarithm of the largest factor that is written out: just inside the range of a double.
_MAX_LOG_FACTOR = 690.0


@dataclass(frozen=True)
class WidthSearch:
    """A bandwidth and how it was found."""

    width: float
    widths: tuple[float, ...]
    """Every bandwidth tried, ascending."""
    scores: Array
    """Their scores, up to a constant factor (least squares) or exactly (likelihood); less is better."""
    stop: Stop
    """``INSIDE`` the bandwidths tried, at their ``EDGE`` even after extensions, or ``GIVEN``."""
    tied_pairs: int = 0
    """Number of pairs of equal samples, where they are why the bandwidth is at the lower edge."""

    @property
    def path(self) -> Path:
        """The scores of the bandwidths tried."""
        chosen, spread = (self.widths.index(self.width),), np.zeros_like(self.scores)
        measure = "cross-validation score of the bandwidth"
        return Path({"bandwidth": self.widths}, self.scores, spread, chosen, measure=measure)

    def times(self, factor: float) -> WidthSearch:
        """The same search with all bandwidths multiplied by ``factor``."""
        return replace(self, width=self.width * factor, widths=tuple(width * factor for width in self.widths))


@dataclass(frozen=True)
class _Score:
    """The number ``value * exp(log_factor)``, which may be out of range; ordered like the numbers."""

    value: float
    log_factor: float = 0.0

    @property
    def order(self) -> tuple[int, float]:
        sign = (self.value > 0) - (self.value < 0)
        return sign, sign * (math.log(abs(self.value)) + self.log_factor) if sign else 0.0

    def __float__(self) -> float:
        return self.value * math.exp(min(self.log_factor, _MAX_LOG_FACTOR))


def parzen_width(
    problem: DensityProblem, rule: str | float, grid: Any, limit: int, rng: Any, step: Step = lambda _: None
) -> WidthSearch:
    """The bandwidth of Parzen's estimate by one of the :data:`RULES`, or as given.

    Cross-validation looks at ``limit`` samples at most. The best bandwidth falls with the number of samples like
    :math:`N^{-1/(m+4)}`, so that of a part is multiplied accordingly.
    """
    if not isinstance(rule, str):
        return _given(float(rule))
    if rule in {"silverman", "scott"}:
        return _given(problem.silverman if rule == "silverman" else problem.scott)
    some = problem if problem.n <= limit else problem.part(problem.draw(limit, rng))
    factor = (some.effective_size / problem.effective_size) ** (1.0 / (problem.dim + 4))
    widths = None if grid is None else [float(width) / factor for width in grid]
    if rule == "likelihood":
        return likelihood_width(some, widths, step).times(factor)
    return least_squares_width(some, widths, "exact" if rule == "lscv" else "approximate", step).times(factor)


def _given(width: float) -> WidthSearch:
    return WidthSearch(width, (width,), np.zeros(1), Stop.GIVEN)


def default_grid(silverman: float) -> list[float]:
    """A geometric grid of bandwidths around Silverman's."""
    return [silverman * factor for factor in _GRID_IN_SILVERMANS.tolist()]


@dataclass(frozen=True)
class _PairBlock:
    """Pairs ``i < j`` of samples, for a block of rows ``i``; the columns ``j`` start where the rows do."""

    start: int
    D: Array
    """Squared distances."""
    both: Array
    """``w_i w_j``; zero where ``j <= i``."""
    left: Array
    """``w_i w_j`` times the sum of what ``1/(1 - w)`` is for both."""


def _pair_blocks(problem: DensityProblem, odds: Array) -> Iterator[_PairBlock]:
    """Every pair once, in row blocks; ``odds`` is ``1/(1 - w)``, or ones for the approximate form of (5)."""
    Z, w, n = problem.Z, problem.w, problem.n
    for rows in row_blocks(n, n):
        D = squared_distances(Z[rows], Z[rows.start :])
        both = np.triu(w[rows][:, None] * w[rows.start :][None, :], k=1)
        yield _PairBlock(rows.start, D, both, both * (odds[rows][:, None] + odds[rows.start :][None, :]))


def least_squares_scores(problem: DensityProblem, widths: list[float], form: Form = "exact") -> list[_Score]:
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
    w, m = problem.w, problem.dim
    odds = 1.0 / problem.rest if form == "exact" else np.ones_like(w)
    smooth = [float(np.sum(w * w))] * len(widths)
    sharp = [0.0] * len(widths)
    for block in _pair_blocks(problem, odds):
        for q, width in enumerate(widths):
            half = np.exp(block.D * (-0.25 / width**2))
            smooth[q] += 2.0 * float(np.sum(block.both * half))
            sharp[q] += float(np.sum(block.left * (half * half)))
    return [
        _Score(2.0 ** (-m / 2) * smooth[q] - 2.0 * sharp[q], m * math.log(problem.unit / width))
        for q, width in enumerate(widths)
    ]


def likelihood_scores(problem: DensityProblem, widths: list[float]) -> list[_Score]:
    r"""Minus the cross-validated likelihood.

    .. math:: -\sum_i w_i \log \frac{1}{1-w_i} \sum_{j\ne i} w_j K(x_i, x_j, \sigma)
    """
    Z, w, n, m, rest = problem.Z, problem.w, problem.n, problem.dim, problem.rest
    totals = [0.5 * m * math.log(2 * math.pi * width**2) for width in widths]
    for rows in row_blocks(n, n):
        D = squared_distances(Z[rows], Z)
        D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = math.inf
        nearest = np.min(D, axis=1, keepdims=True)
        for q, width in enumerate(widths):
            near = np.exp((D - nearest) * (-0.5 / width**2)) @ w
            log_p = np.log(near / rest[rows]) - nearest[:, 0] * (0.5 / width**2)
            totals[q] -= float(w[rows] @ log_p)
    return [_Score(total) for total in totals]


def ties_dominate(problem: DensityProblem) -> tuple[bool, int]:
    r"""Whether ties drive :math:`M(\sigma)` to :math:`-\infty` at small bandwidths, and the number of tied pairs.

    Without weights and with ``t`` pairs: :math:`4t/(N(N-1)) > 2^{-m/2}(N + 2t)/N^2`. Samples are tied if they are much
    closer than the unit of the problem.
    """
    pairs, smooth, sharp = 0, float(np.sum(problem.w * problem.w)), 0.0
    for block in _pair_blocks(problem, 1.0 / problem.rest):
        both, left = _tied(problem, block)
        pairs += int(both.shape[0])
        smooth += 2.0 * float(np.sum(both))
        sharp += float(np.sum(left))
    return 2.0 * sharp > 2.0 ** (-problem.dim / 2) * smooth, pairs


def _tied(problem: DensityProblem, block: _PairBlock) -> tuple[Array, Array]:
    """``both`` and ``left`` of the tied pairs of a block.

    ``block.D`` comes from an expanded square, in which equal samples may be apart by rounding. Pairs that are close by
    it are looked at again, coordinate by coordinate.
    """
    Z, limit = problem.Z, (_TIE_IN_SILVERMANS * problem.unit) ** 2
    gap = Z - problem.w @ Z
    reach = float(np.max(np.sum(gap * gap, axis=1)))
    rounding = _SQUARE_ERROR_IN_EPS * (problem.dim + 2) * np.finfo(Z.dtype).eps * reach
    near = (block.D <= limit + rounding) & (block.both > 0)
    first, second = np.nonzero(near)
    apart = [
        np.sum((Z[first[part] + block.start] - Z[second[part] + block.start]) ** 2, axis=1)
        for part in row_blocks(int(first.shape[0]), problem.dim)
    ]
    tied = np.concatenate(apart) <= limit
    return block.both[near][tied], block.left[near][tied]


def _search(
    problem: DensityProblem,
    grid: list[float] | None,
    scores: Callable[[DensityProblem, list[float]], list[_Score]],
    step: Step,
) -> WidthSearch:
    """First minimizer on the grid; at an end the grid grows by its own span on that side, at most three times."""
    # Silverman's bandwidth is the unit of the search: of the grid, of the scores, and of what counts as tied
    problem = replace(problem, unit=problem.silverman)
    widths = default_grid(problem.unit) if grid is None else sorted(grid)
    count = len(widths)
    ratio = (widths[-1] / widths[0]) ** (1.0 / max(count - 1, 1))
    found = scores(problem, widths)
    for extension in range(_MAX_EXTENSIONS + 1):
        step(len(widths))
        best = min(range(len(widths)), key=lambda q: found[q].order)
        at_low, inside = best == 0, 0 < best < len(widths) - 1
        if inside or count == 1:
            return _found(widths, found, best, Stop.INSIDE)
        if at_low:
            dominated, pairs = ties_dominate(problem)
            if dominated:
                return _found(widths, found, best, Stop.EDGE, pairs)
        if extension == _MAX_EXTENSIONS:
            break
        steps = range(1, count)
        fresh = [widths[0] / ratio**q for q in reversed(steps)] if at_low else [widths[-1] * ratio**q for q in steps]
        more = scores(problem, fresh)
        widths, found = (fresh + widths, more + found) if at_low else (widths + fresh, found + more)
    return _found(widths, found, best, Stop.EDGE)


def _found(widths: list[float], scores: list[_Score], best: int, stop: Stop, pairs: int = 0) -> WidthSearch:
    return WidthSearch(widths[best], tuple(widths), np.array([float(s) for s in scores]), stop, pairs)


def least_squares_width(
    problem: DensityProblem,
    grid: list[float] | None = None,
    form: Form = "exact",
    step: Step = lambda _: None,
) -> WidthSearch:
    """Bandwidth of least-squares cross-validation (5) over ``grid`` (by default 30 bandwidths around Silverman's).

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.density.problem import DensityProblem
    >>> problem = DensityProblem.of(np.linspace(-1, 1, 50)[:, None], np.ones(50))
    >>> round(least_squares_width(problem).width, 3)
    0.365
    """
    return _search(problem, grid, lambda some, widths: least_squares_scores(some, widths, form), step)


def likelihood_width(
    problem: DensityProblem, grid: list[float] | None = None, step: Step = lambda _: None
) -> WidthSearch:
    """Bandwidth of likelihood cross-validation over ``grid`` (by default 30 bandwidths around Silverman's)."""
    return _search(problem, grid, likelihood_scores, step)
