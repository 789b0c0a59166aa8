r"""Width of a Parzen window: rules of thumb and cross-validation in closed form (FCR sec. II).

==================== =============================================
symbol               name
==================== =============================================
:math:`x_i`          rows of ``X``
:math:`w_i`          ``w``, positive, sum one
:math:`\sigma`       ``width``
:math:`M(\sigma)`    score of :func:`least_squares_scores`, FCR (5)
:math:`N_{\rm eff}`  :func:`effective_size`
==================== =============================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fewkern.backend.blocks import row_blocks
from fewkern.backend.namespace import Array, asarray_like, device, namespace
from fewkern.backend.storable import floats, storable
from fewkern.density.mixture import squared_distances

__all__ = [
    "Form",
    "WidthSearch",
    "default_grid",
    "effective_size",
    "least_squares_scores",
    "least_squares_width",
    "likelihood_scores",
    "likelihood_width",
    "scott_width",
    "silverman_width",
    "ties_dominate",
]

Form = Literal["exact", "approximate"]

# Two samples closer than this part of the rule-of-thumb width are the same sample as far as a width can tell.
_TIE = 1e-7


@storable(widths=floats("g", above=0.0), scores=floats("g", finite=False))
@dataclass(frozen=True)
class WidthSearch:
    """A width and how it was found."""

    width: float
    widths: Array
    """Every width tried, ascending."""
    scores: Array
    """Their scores, up to a constant factor (least squares) or exactly (likelihood); less is better."""
    status: str
    """"inside" the grid, at an "edge" of it even after extensions, or "duplicates" (tied samples drive it to zero)."""
    tied_pairs: int = 0


def effective_size(w: Array) -> float:
    r""":math:`N_{\rm eff} = 1 / \sum_i w_i^2` for weights of sum one."""
    return 1.0 / float(namespace(w).sum(w * w))


def _mean_deviation(X: Array, w: Array) -> float:
    """Root of the mean over the features of the weighted variance."""
    xp = namespace(X)
    gap = X - (w @ X)
    return math.sqrt(float(xp.sum(w @ (gap * gap))) / X.shape[1])


def silverman_width(X: Array, w: Array) -> float:
    r"""Silverman's rule :math:`h_0 = \bar s\,(4 / ((m+2) N_{\rm eff}))^{1/(m+4)}`, on the data's own scale."""
    m = int(X.shape[1])
    return _mean_deviation(X, w) * math.pow(4.0 / ((m + 2) * effective_size(w)), 1.0 / (m + 4))


def scott_width(X: Array, w: Array) -> float:
    r"""Scott's rule :math:`\bar s\,N_{\rm eff}^{-1/(m+4)}`, on the data's own scale."""
    return _mean_deviation(X, w) * math.pow(effective_size(w), -1.0 / (int(X.shape[1]) + 4))


def default_grid(X: Array, w: Array, count: int = 30) -> list[float]:
    """``count`` widths, geometric, from 0.15 to 1.5 times Silverman's."""
    h0 = silverman_width(X, w)
    return [h0 * 0.15 * 10.0 ** (q / (count - 1)) for q in range(count)]


def least_squares_scores(X: Array, w: Array, widths: list[float], form: Form = "exact") -> Array:
    r"""Least-squares cross-validation, exactly or as the paper approximates it.

    .. math:: M(\sigma) = \sum_{i,j} w_i w_j K(x_i, x_j, \sqrt2\sigma)
              - 2 \sum_i \frac{w_i}{1 - w_i} \sum_{j \ne i} w_j K(x_i, x_j, \sigma) \qquad (5)

    Returns :math:`(2\pi\,\sigma_0^2)^{m/2} M(\sigma)` with :math:`\sigma_0` the first of the ``widths``: the
    factor keeps the numbers in range in any dimension. The approximate form replaces :math:`1/(1-w_i)` by one.

    Notes
    -----
    Time ``O(G n^2 m)`` over pairs ``i < j`` in row blocks, one exponential per pair and width:
    the kernel of width ``s`` is the square of the exponential of width ``sqrt(2) s``.
    """
    xp = namespace(X)
    n, m = X.shape
    odds = 1.0 / (1.0 - w) if form == "exact" else xp.ones_like(w)
    smooth = [float(xp.sum(w * w))] * len(widths)
    sharp = [0.0] * len(widths)
    for rows in row_blocks(n, n):
        D = squared_distances(X[rows, :], X[rows.start :, :])
        # pairs i < j only: the column must lie right of the row
        later = xp.arange(n - rows.start, device=device(X))[None, :] > xp.arange(D.shape[0], device=device(X))[:, None]
        both = xp.where(later, w[rows][:, None] * w[rows.start :][None, :], xp.zeros_like(D))
        held = both * (odds[rows][:, None] + odds[rows.start :][None, :])
        for q, width in enumerate(widths):
            half = xp.exp(D * (-0.25 / width**2))
            smooth[q] += 2.0 * float(xp.sum(both * half))
            sharp[q] += float(xp.sum(held * (half * half)))
    return asarray_like(
        [(widths[0] / width) ** m * (2.0 ** (-m / 2) * smooth[q] - 2.0 * sharp[q]) for q, width in enumerate(widths)],
        X,
        dtype=X.dtype,
    )


def likelihood_scores(X: Array, w: Array, widths: list[float]) -> Array:
    r"""Minus the cross-validated likelihood.

    .. math:: -\sum_i w_i \log \frac{1}{1-w_i} \sum_{j\ne i} w_j K(x_i, x_j, \sigma)
    """
    xp = namespace(X)
    n, m = X.shape
    totals = [0.0] * len(widths)
    infinity = asarray_like(math.inf, X, dtype=X.dtype)
    for rows in row_blocks(n, n):
        D = squared_distances(X[rows, :], X)
        own = xp.arange(n, device=device(X))[None, :] == xp.arange(rows.start, rows.stop, device=device(X))[:, None]
        D = xp.where(own, infinity, D)
        nearest = xp.min(D, axis=1, keepdims=True)
        for q, width in enumerate(widths):
            near = xp.exp((D - nearest) * (-0.5 / width**2)) @ w
            log_p = xp.log(near / (1.0 - w[rows])) - nearest[:, 0] * (0.5 / width**2)
            totals[q] -= float(w[rows] @ log_p)
    levels = [0.5 * m * math.log(2 * math.pi * width**2) for width in widths]
    return asarray_like([total + level for total, level in zip(totals, levels)], X, dtype=X.dtype)


def _ties(X: Array, w: Array) -> tuple[int, float, float]:
    """Number of tied pairs, and their shares in the two sums of (5)."""
    xp = namespace(X)
    n = X.shape[0]
    limit = (_TIE * silverman_width(X, w)) ** 2
    pairs, smooth, sharp = 0, 0.0, 0.0
    odds = 1.0 / (1.0 - w)
    for rows in row_blocks(n, n):
        D = squared_distances(X[rows, :], X[rows.start :, :])
        later = xp.arange(n - rows.start, device=device(X))[None, :] > xp.arange(D.shape[0], device=device(X))[:, None]
        tied = xp.astype((D <= limit) & later, X.dtype)
        pairs += round(float(xp.sum(tied)))
        both = tied * w[rows][:, None] * w[rows.start :][None, :]
        smooth += 2.0 * float(xp.sum(both))
        sharp += float(xp.sum(both * (odds[rows][:, None] + odds[rows.start :][None, :])))
    return pairs, smooth, sharp


def ties_dominate(X: Array, w: Array) -> tuple[bool, int]:
    r"""Whether tied samples drive :math:`M(\sigma)` to :math:`-\infty` as the width falls, and how many pairs are tied.

    Without weights and with ``t`` pairs: :math:`4t/(N(N-1)) > 2^{-m/2}(N + 2t)/N^2`.
    """
    pairs, smooth, sharp = _ties(X, w)
    own = float(namespace(w).sum(w * w))
    return 2.0 * sharp > 2.0 ** (-X.shape[1] / 2) * (own + smooth), pairs


def _search(
    X: Array, w: Array, grid: list[float] | None, score: Callable[[list[float]], Array], unit: Callable[[float], float]
) -> WidthSearch:
    """First minimiser on the grid; at an end the grid grows by its own span on that side, at most three times."""
    xp = namespace(X)
    widths = sorted(float(width) for width in grid) if grid is not None else default_grid(X, w)
    span, count = widths[-1] / widths[0], len(widths)
    dominated, pairs = ties_dominate(X, w)
    values = [float(s) * unit(widths[0]) for s in score(widths)]
    status = "inside"
    for extension in range(4):
        best = min(range(len(widths)), key=values.__getitem__)
        at_low, at_high = best == 0, best == len(widths) - 1
        if count == 1 or not (at_low or at_high):
            break
        if at_low and dominated:
            status = "duplicates"
            break
        if extension == 3:
            status = "edge"
            break
        ratio = span ** (1.0 / (count - 1))
        steps = range(1, count)
        fresh = [widths[0] / ratio**q for q in reversed(steps)] if at_low else [widths[-1] * ratio**q for q in steps]
        more = [float(s) * unit(fresh[0]) for s in score(fresh)]
        widths, values = (fresh + widths, more + values) if at_low else (widths + fresh, values + more)
    return WidthSearch(
        widths[best],
        asarray_like(widths, X, dtype=xp.float64),
        asarray_like(values, X, dtype=xp.float64),
        status,
        pairs,
    )


def least_squares_width(X: Array, w: Array, grid: list[float] | None = None, form: Form = "exact") -> WidthSearch:
    """Width of least-squares cross-validation (5) over ``grid`` (by default 30 widths around Silverman's).

    Parameters
    ----------
    X : array of shape (n, m)
    w : array of shape (n,)
        Positive, sum one.
    grid : list of float or None
    form : "exact" or "approximate"

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> round(least_squares_width(X, np.full(50, 0.02)).width, 3)
    0.365
    """
    m = int(X.shape[1])
    reference = silverman_width(X, w)

    def unit(first: float) -> float:
        # scores of different calls in one unit: that of Silverman's width
        return math.pow(reference / first, m)

    return _search(X, w, grid, lambda widths: least_squares_scores(X, w, widths, form), unit)


def likelihood_width(X: Array, w: Array, grid: list[float] | None = None) -> WidthSearch:
    """Width of likelihood cross-validation over ``grid`` (by default 30 widths around Silverman's)."""
    return _search(X, w, grid, lambda widths: likelihood_scores(X, w, widths), lambda _: 1.0)
