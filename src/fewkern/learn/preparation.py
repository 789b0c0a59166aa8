"""The map of every column: from its quantiles at first, and with learned slopes where vectors move by the labels.

A preparation looks at the values of its column only: light tails keep their shape, heavy ones become normal scores. A
warp (input warping) is steep where the targets change and flat elsewhere, so that a threshold takes a steep piece
instead of many vectors, and the product of two columns is a sum of logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fewkern.arrays.namespace import to_numpy
from fewkern.core.gaussians import Preparation
from fewkern.learn.policy import Policy

Host = np.ndarray[Any, Any]
# Normal scores of the outermost knots: six rows in a thousand lie beyond either.
_OUTERMOST = 2.5
# (q99 - q50) / (q75 - q50) of a normal distribution.
_NORMAL_TAIL = 3.449
# Interquartile range of a normal distribution, in standard deviations.
_NORMAL_RANGE = 1.349
# Bound of the values of a bent column, in standard deviations of its middle half.
_BOUND = 4.0
# Prepared values stay within as many standard deviations: an outlier must not rule all distances. A column of few
# values may be a flag, which is far out wherever it is rare.
_FURTHEST, _FURTHEST_OF_FEW = 3.5, 3.0
# How far open ends reach, in ranges of the column.
_REACH = 100.0


def fit_preparation(X: Host, weights: Host, policy: Policy) -> Preparation:
    """The preparation of the columns of ``X``, each with mean zero and standard deviation one afterwards."""
    maps = [_fit_column(X[:, a].astype(np.float64), weights, policy) for a in range(X.shape[1])]
    longest = max((len(knots) for knots, _ in maps), default=1)
    pad = [[np.concatenate([part, np.full(longest - len(part), part[-1])]) for part in one] for one in maps]
    knots, values = (np.stack([one[i] for one in pad], axis=1) for i in (0, 1))
    return Preparation(knots, values)


def with_open_ends(preparation: Preparation, X: Host) -> Preparation:
    """The same map on the range of the rows of ``X``, and a straight line beyond it, which leads away from all rows.

    A model does better with a map that is flat there. But a sample unlike all rows must not look like the last row.
    """
    knots, values = to_numpy(preparation.knots), to_numpy(preparation.values)
    low, high = np.minimum(X.min(axis=0), knots[0]), np.maximum(X.max(axis=0), knots[-1])
    reach, rise = _REACH * (high - low), _REACH * (values[-1] - values[0])
    return Preparation(
        np.concatenate([[low - reach], [low], knots, [high], [high + reach]]),
        np.concatenate([[values[0] - rise], values[:1], values, values[-1:], [values[-1] + rise]]),
    )


def _fit_column(x: Host, weights: Host, policy: Policy) -> tuple[Host, Host]:
    """Knots of one column, and the values there."""
    distinct = np.unique(x)
    if len(distinct) == 1:
        return distinct, np.zeros(1)
    scale = _Scale(x, weights)
    if len(distinct) <= policy.knots:
        knots, values, furthest = distinct, scale.bent(distinct), _FURTHEST_OF_FEW
    else:
        knots, normal = scale.normal_scores(policy.knots)
        share = scale.heaviness(policy.tail)
        values, furthest = (1.0 - share) * scale.bent(knots) + share * normal, _FURTHEST
    t = _interpolated(x, knots, values)
    mean = weights @ t / weights.sum()
    spread = np.sqrt(weights @ (t - mean) ** 2 / weights.sum())
    return knots, np.clip((values - mean) / (spread if spread > 0 else 1.0), -furthest, furthest)


def _interpolated(x: Host, knots: Host, values: Host) -> Host:
    """What a preparation of this column does; np.interp fails on the slopes of tiny columns."""
    piece = np.clip(np.searchsorted(knots, x, "right") - 1, 0, len(knots) - 2)
    along = np.clip((x - knots[piece]) / np.diff(knots)[piece], 0.0, 1.0)
    return np.asarray(values[piece] + along * np.diff(values)[piece])


class _Scale:
    """Quantiles of a column, with its centre, spread and tails."""

    def __init__(self, x: Host, weights: Host) -> None:
        order = np.argsort(x, kind="stable")
        self.ordered, w = x[order], weights[order].astype(np.float64)
        levels = (np.cumsum(w) - 0.5 * w) / w.sum()
        # next to no weight at an end is not none: the normal score there is finite
        self.levels = np.clip(levels, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
        self.low, self.first, self.centre, self.third, self.high = self.quantiles(
            np.array([0.01, 0.25, 0.5, 0.75, 0.99])
        )
        whole = float(self.ordered[-1] - self.ordered[0])
        between = float(self.third - self.first)
        self.spread = between / _NORMAL_RANGE if between > 1e-9 * whole else whole / 4.0
        self.least = 1e-9 * whole

    def quantiles(self, levels: Host) -> Host:
        return np.interp(levels, self.levels, self.ordered)

    def normal_scores(self, count: int) -> tuple[Host, Host]:
        """``count`` knots at the quantiles of a normal distribution and two at the extremes, and the scores there.

        Without the extremes the map would be flat beyond the outermost quantiles, and a linear function of the column
        could not be learned there.
        """
        scores = np.linspace(-_OUTERMOST, _OUTERMOST, count)
        knots, place = np.unique(self.quantiles(ndtr(scores)), return_inverse=True)
        normal = np.bincount(place.reshape(-1), weights=scores) / np.bincount(place.reshape(-1))
        low, high = self.ordered[0], self.ordered[-1]
        if low < knots[0]:
            knots, normal = np.append(low, knots), np.append(min(ndtri(self.levels[0]), normal[0]), normal)
        if high > knots[-1]:
            knots, normal = np.append(knots, high), np.append(normal, max(ndtri(self.levels[-1]), normal[-1]))
        return knots, normal

    def bent(self, x: Host) -> Host:
        """Centred and scaled, bent towards a bound far out."""
        z = (x - self.centre) / self.spread
        return np.asarray(z / np.sqrt(1.0 + (z / _BOUND) ** 2))

    def heaviness(self, tail: float) -> float:
        """0 for tails no heavier than a normal distribution's, 1 for those that reach ``1 + tail`` times as far."""
        above = (self.high - self.centre) / max(self.third - self.centre, self.least)
        below = (self.centre - self.low) / max(self.centre - self.first, self.least)
        return float(np.clip((max(above, below) / _NORMAL_TAIL - 1.0) / tail, 0.0, 1.0))


@dataclass(frozen=True)
class Cells:
    """Positions of values between the knots of their columns."""

    place: Host
    """Position of the piece in the raveled pieces ``(k - 1, c)``, shape ``(n, c)``."""
    along: Host
    """How far along the piece, from 0 to 1; beyond the first and the last knot less than 0 or more than 1."""


@dataclass(frozen=True)
class Warp:
    """A monotone map of the columns ``columns``, linear between knots; the others stay as they are."""

    columns: Host
    """Positions of the columns that have pieces to learn, shape ``(c,)``."""
    knots: Host
    """Prepared values at the knots, ascending, shape ``(k, c)``; a column with fewer repeats its last one."""
    log_slopes: Host
    """Logarithms of the slopes of the pieces, shape ``(k - 1, c)``."""

    @classmethod
    def identity(cls, knots: Host) -> Warp:
        """The map that changes nothing; columns of two values have nothing to learn, since their scale is learned."""
        columns = np.flatnonzero((np.diff(knots, axis=0) > 0).sum(axis=0) > 1)
        return cls(columns, knots[:, columns], np.zeros((len(knots) - 1, len(columns))))

    @cached_property
    def lengths(self) -> Host:
        """Lengths of the pieces before the map."""
        return np.diff(self.knots, axis=0)

    @cached_property
    def rises(self) -> Host:
        """Lengths of the pieces after the map."""
        return self.lengths * np.exp(self.log_slopes)

    @cached_property
    def levels(self) -> Host:
        """Values of the map at the knots; those of the first knots do not change."""
        return np.concatenate([self.knots[:1], self.knots[:1] + np.cumsum(self.rises, axis=0)])

    def cells(self, T: Host) -> Cells:
        """The cells of prepared rows ``(n, d)``."""
        X = T[:, self.columns]
        piece = np.zeros(X.shape, dtype=np.int64)
        for knot, length in zip(self.knots[1:-1], self.lengths[1:]):
            piece += (length > 0) & (knot <= X)
        place = piece * len(self.columns) + np.arange(len(self.columns))
        lengths = np.take(np.where(self.lengths > 0, self.lengths, 1.0), place)
        return Cells(place, (X - np.take(self.knots, place)) / lengths)

    def at(self, T: Host, cells: Cells) -> Host:
        """The rows ``T`` with warped columns."""
        warped = np.take(self.levels, cells.place) + cells.along * np.take(self.rises, cells.place)
        if len(self.columns) == T.shape[1]:
            return np.asarray(warped)
        out = T.copy()
        out[:, self.columns] = warped
        return out

    def __call__(self, T: Host) -> Host:
        """The rows ``T`` with warped columns."""
        return self.at(T, self.cells(T))

    def pulled(self, cells: Cells, gradient: Host) -> Host:
        """Gradient with respect to the rows before the map, from that after it."""
        slopes = np.take(np.exp(self.log_slopes), cells.place)
        if len(self.columns) == gradient.shape[1]:
            return np.asarray(gradient * slopes)
        out = gradient.copy()
        out[:, self.columns] *= slopes
        return out

    def d_levels(self, cells: Cells, gradient: Host) -> Host:
        """Gradient with respect to the levels, from that with respect to warped rows."""
        own, c = gradient[:, self.columns], len(self.columns)
        upper = own * cells.along
        place, size = cells.place.ravel(), self.levels.size
        found = np.bincount(place, (own - upper).ravel(), size) + np.bincount(place + c, upper.ravel(), size)
        return np.asarray(found.reshape(self.levels.shape))

    def d_log_slopes(self, d_levels: Host) -> Host:
        """Gradient with respect to the logarithms of the slopes: a slope lifts all levels above its piece."""
        return np.asarray(np.cumsum(d_levels[::-1], axis=0)[::-1][1:] * self.rises)
