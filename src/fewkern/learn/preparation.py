"""The map of every column: from its quantiles at first, and with learned slopes where vectors move by the labels.

A preparation looks at the values of its column only: light tails keep their shape, heavy ones become normal scores. A
warp (input warping) is steep where the targets change and flat elsewhere, so that a threshold takes a steep piece
instead of many vectors, and the product of two columns is a sum of logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fewkern.arrays.namespace import Array, device, move_fields, namespace, to_numpy
from fewkern.arrays.numerics import looked_up, sums_at
from fewkern.core.preparation import BEYOND, Preparation
from fewkern.learn.policy import POLICY, ColumnPolicy, Policy

Host = np.ndarray[Any, Any]
# (q99 - q50) / (q75 - q50) of a normal distribution.
_NORMAL_TAIL = 3.449
# Interquartile range of a normal distribution, in standard deviations.
_NORMAL_RANGE = 1.349
# Quartiles whose distance is a smaller share of the range are equal, but for rounding.
_EQUAL = 1e-9
# Rows up to which all knots are looked at in one step; beyond, one knot at a time takes less memory.
_FEW = 1000


def fit_preparation(X: Host, weights: Host, policy: Policy) -> Preparation:
    """The preparation of columns of numbers, each with mean zero and standard deviation one afterwards.

    A gap begins at the mean.
    """
    maps = [_fit_column(X[:, a].astype(np.float64), weights, policy) for a in range(X.shape[1])]
    longest = max((len(knots) for knots, _ in maps), default=1)
    pad = [[np.concatenate([part, np.full(longest - len(part), part[-1])]) for part in one] for one in maps]
    knots, values = (np.array([one[i] for one in pad]).reshape(len(pad), longest).T for i in (0, 1))
    gaps = np.zeros(len(maps)) if np.isnan(X).any() else None
    return Preparation(np.ascontiguousarray(knots), np.ascontiguousarray(values), gaps)


def with_open_ends(preparation: Preparation, X: Host, reach: float = POLICY.novelty.reach) -> Preparation:
    """The same map on the range of the rows of ``X``, and a straight line beyond it, for ``reach`` ranges.

    A model does better with a map that is flat there. But a sample unlike all rows must not look like the last row.
    For the same reason unknown levels, and gaps in columns without any, are a range away from all rows.
    """
    own = X if preparation.columns is None else X[:, to_numpy(preparation.columns)]
    knots, values = to_numpy(preparation.knots), to_numpy(preparation.values)
    gaps, known = np.isnan(own), np.where(np.isnan(own), knots[:1], own)
    low, high = np.minimum(known.min(axis=0), knots[0]), np.maximum(known.max(axis=0), knots[-1])
    far, rise = reach * (high - low), reach * (values[-1] - values[0])
    free, first = np.array(preparation.free), len(preparation.free) - knots.shape[1]
    free[first:] = np.where(gaps.any(axis=0), free[first:], 2.0 * values[-1] - values[0])
    if preparation.levels is not None:
        table, seen = preparation.levels, np.zeros(len(free), dtype=bool)
        seen[table.places(X)] = True
        for start, length in zip(table.starts, table.counts + BEYOND):
            there = free[start : start + length][seen[start : start + length]]
            away = 2.0 * there.max() - there.min() + (there.max() == there.min())
            free[start : start + length][~seen[start : start + length]] = away
    ends = replace(preparation, gaps=free[first:]).with_positions(values, free)
    return replace(
        ends,
        knots=np.concatenate([[low - far], [low], knots, [high], [high + far]]),
        values=np.concatenate([[values[0] - rise], values[:1], values, values[-1:], [values[-1] + rise]]),
    )


def _fit_column(x: Host, weights: Host, policy: Policy) -> tuple[Host, Host]:
    """Knots of one column, and the values there; a column of gaps has one knot."""
    known = ~np.isnan(x)
    if not known.all():
        x, weights = x[known], weights[known]
    distinct = np.unique(x)
    if len(distinct) < 2:
        return np.zeros(1) if not len(x) else distinct, np.zeros(1)
    scale = _Scale(x, weights, policy.columns)
    if len(distinct) <= policy.columns.knots:
        knots, values, furthest = distinct, scale.bent(distinct), policy.columns.furthest_flag
    else:
        knots, normal = scale.normal_scores()
        share = scale.heaviness()
        values, furthest = (1.0 - share) * scale.bent(knots) + share * normal, policy.columns.furthest
    t = _interpolated(x, knots, values)
    mean = weights @ t / weights.sum()
    spread = np.sqrt(weights @ (t - mean) ** 2 / weights.sum())
    return knots, np.clip((values - mean) / (spread if spread > 0 else 1.0), -furthest, furthest)


def cut(knots: Host, parts: int) -> Host:
    """Knots ``(k, c)`` with others between them, so that every piece is cut into ``parts`` of equal length."""
    along = (np.arange(parts) / parts)[:, None]
    between = knots[:-1, None] + along * np.diff(knots, axis=0)[:, None]
    return np.concatenate([between.reshape((len(knots) - 1) * parts, knots.shape[1]), knots[-1:]])


def _interpolated(x: Host, knots: Host, values: Host) -> Host:
    """What the preparation does to this column; np.interp fails on the slopes of tiny columns."""
    piece = np.clip(np.searchsorted(knots, x, "right") - 1, 0, len(knots) - 2)
    along = np.clip((x - knots[piece]) / np.diff(knots)[piece], 0.0, 1.0)
    return np.asarray(values[piece] + along * np.diff(values)[piece])


def _mid_levels(weights: Host) -> Host:
    """Share of the whole weight up to the middle of that of every value."""
    levels = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    # even next to no weight at an end must give a finite normal score
    return np.clip(levels, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)


class _Scale:
    """Quantiles of a column, with its centre, spread and tails."""

    def __init__(self, x: Host, weights: Host, policy: ColumnPolicy) -> None:
        self.policy = policy
        order = np.argsort(x, kind="stable")
        self.ordered, self.weights = x[order], weights[order].astype(np.float64)
        self.levels = _mid_levels(self.weights)
        self.low, self.first, self.centre, self.third, self.high = self.quantiles(
            np.array([0.01, 0.25, 0.5, 0.75, 0.99])
        )
        whole = float(self.ordered[-1] - self.ordered[0])
        between = float(self.third - self.first)
        self.least = _EQUAL * whole
        self.spread = between / _NORMAL_RANGE if between > self.least else policy.share_of_range * whole

    def quantiles(self, levels: Host) -> Host:
        return np.interp(levels, self.levels, self.ordered)

    def normal_scores(self) -> tuple[Host, Host]:
        """Knots at the quantiles of a normal distribution and two at the extremes, and the scores there.

        A value counts for no more than one knot in quantiles: where most rows have one value, the others tell rows
        apart. Without the extremes the map would be flat beyond the outermost quantiles, and a linear function of the
        column could not be learned there.
        """
        count, outermost = self.policy.knots, self.policy.outermost
        values, first = np.unique(self.ordered, return_index=True)
        masses = np.minimum(np.add.reduceat(self.weights, first), self.weights.sum() / count)
        levels = _mid_levels(masses)
        scores = np.linspace(-outermost, outermost, count)
        knots, place = np.unique(np.interp(ndtr(scores), levels, values), return_inverse=True)
        normal = np.bincount(place.reshape(-1), weights=scores) / np.bincount(place.reshape(-1))
        low, high = values[0], values[-1]
        if low < knots[0]:
            knots, normal = np.append(low, knots), np.append(min(ndtri(levels[0]), normal[0]), normal)
        if high > knots[-1]:
            knots, normal = np.append(knots, high), np.append(normal, max(ndtri(levels[-1]), normal[-1]))
        return knots, normal

    def bent(self, x: Host) -> Host:
        """Centred and scaled, bent towards a bound far out."""
        z = (x - self.centre) / self.spread
        return np.asarray(z / np.sqrt(1.0 + (z / self.policy.bound) ** 2))

    def heaviness(self) -> float:
        """0 for tails no heavier than a normal distribution's, 1 for those that reach ``1 + tail`` times as far."""
        above = (self.high - self.centre) / max(self.third - self.centre, self.least)
        below = (self.centre - self.low) / max(self.centre - self.first, self.least)
        return float(np.clip((max(above, below) / _NORMAL_TAIL - 1.0) / self.policy.tail, 0.0, 1.0))


@dataclass(frozen=True)
class Cells:
    """Where values are in the tables of a warp."""

    place: Array
    """Position of the piece of a monotone map, or of a level or gap; shape ``(n, c)``."""
    along: Array
    """How far along the piece, from 0 to 1; beyond the first and the last knot less than 0 or more than 1."""

    def take(self, part: Any) -> Cells:
        """The cells of some rows."""
        return Cells(self.place[part], self.along[part])


@dataclass(frozen=True)
class Warp:
    """The learned change of a preparation: slopes of monotone maps, and positions of levels and gaps.

    All of it is one table of values and slopes, with a place for every piece, every level and gap, and a last one that
    changes nothing: a vector has no level, and is where it is.
    """

    columns: Array
    """Prepared columns that have something to learn, shape ``(c,)``, the monotone ones first; the others stay."""
    knots: Array
    """Prepared values at the knots of the monotone ones, ascending, shape ``(k, a)``; a column with fewer repeats its
    last one."""
    starts: Array
    """Positions of levels and gaps before anything is learned, shape ``(t,)``."""
    units: Array
    """By how much a parameter of one moves them."""
    parameters: Array
    """Logarithms of the slopes of the ``(k - 1) a`` pieces, then the moves of levels and gaps in their units. All have
    the same normal prior."""

    @classmethod
    def identity(cls, values: Host, starts: Host, units: Host, learned: Host) -> Warp:
        """The map that changes nothing.

        Columns of two values have nothing to learn, since their scale is learned. ``learned`` says which prepared
        columns have levels or gaps that may move; columns beyond those of ``values`` are tables.
        """
        count = values.shape[1]
        learned = learned.copy()
        learned[:count] |= (np.diff(values, axis=0) > 0).sum(axis=0) > 1
        columns = np.flatnonzero(learned)
        knots = values[:, columns[columns < count]]
        return cls(columns, knots, starts, units, np.zeros((len(values) - 1) * knots.shape[1] + len(starts)))

    def like(self, X: Array) -> Warp:
        """The same map with its arrays in the library and on the device of ``X``."""
        return self if isinstance(X, np.ndarray) else move_fields(self, X)

    def moved(self, parameters: Array) -> Warp:
        """The map with other parameters."""
        return replace(self, parameters=parameters)

    def finer(self, parts: int) -> Warp:
        """The same map with every piece cut into so many, each with a slope of its own."""
        pieces, count = self._shape
        slopes = np.repeat(to_numpy(self.log_slopes), parts, axis=0)
        parameters = np.concatenate([slopes.ravel(), to_numpy(self.parameters)[pieces * count :]])
        return replace(self, knots=cut(to_numpy(self.knots), parts), parameters=parameters)

    def based(self, other: Warp) -> Warp:
        """The map with the same parameters on other positions of levels and gaps."""
        return replace(self, starts=other.starts)

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """Number of pieces per monotone column, and of these columns."""
        return int(self.knots.shape[0]) - 1, int(self.knots.shape[1])

    @cached_property
    def log_slopes(self) -> Array:
        """Logarithms of the slopes of the pieces, shape ``(k - 1, a)``."""
        pieces, count = self._shape
        return namespace(self.knots).reshape(self.parameters[: pieces * count], (pieces, count))

    @cached_property
    def lengths(self) -> Array:
        """Lengths of the pieces before the map."""
        return self.knots[1:, :] - self.knots[:-1, :]

    @cached_property
    def rises(self) -> Array:
        """Lengths of the pieces after the map."""
        return self.lengths * namespace(self.knots).exp(self.log_slopes)

    @cached_property
    def levels(self) -> Array:
        """Values of the map at the knots; those of the first knots do not change."""
        xp = namespace(self.knots)
        first = self.knots[:1, :]
        return xp.concat([first, first + xp.cumulative_sum(self.rises, axis=0)], axis=0)

    @cached_property
    def free(self) -> Array:
        """Positions of levels and gaps."""
        pieces, count = self._shape
        return self.starts + self.units * self.parameters[pieces * count :]

    @cached_property
    def _values(self) -> Array:
        """Value at the beginning of every place."""
        xp = namespace(self.knots)
        return xp.concat(
            [xp.reshape(self.levels, (-1,)), self.free, xp.zeros(1, dtype=self.knots.dtype, device=device(self.knots))]
        )

    def _per_place(self, pieces: Array) -> Array:
        """A number per place: those of the pieces, zero of levels and gaps, and one of the last place."""
        xp = namespace(self.knots)
        last = xp.ones(1, dtype=self.knots.dtype, device=device(self.knots))
        return xp.concat([xp.reshape(pieces, (-1,)), xp.zeros_like(self.knots[0, :]), xp.zeros_like(self.starts), last])

    @cached_property
    def _rises(self) -> Array:
        return self._per_place(self.rises)

    @cached_property
    def _slopes(self) -> Array:
        return self._per_place(namespace(self.knots).exp(self.log_slopes))

    def cells(self, T: Array, places: Array | None = None) -> Cells:
        """The cells of prepared rows; ``places`` says where levels and gaps are (:meth:`Preparation.places`).

        Without it rows are vectors, which have neither.
        """
        xp, (_, count) = namespace(T), self._shape
        X = T[:, self.columns]
        place, along = _pieces(X[:, :count], self.knots, self.lengths)
        none = xp.zeros_like(X[:, count:], dtype=xp.int64) + self._last
        place, along = xp.concat([place, none], axis=1), xp.concat([along, X[:, count:]], axis=1)
        if places is None:
            return Cells(place, along)
        own = places[:, self.columns]
        given = own >= 0
        return Cells(
            xp.where(given, own + int(self.knots.shape[0]) * count, place),
            xp.where(given, xp.zeros_like(along), along),
        )

    @property
    def _last(self) -> int:
        """The place that changes nothing."""
        return int(self.knots.shape[0]) * self._shape[1] + int(self.starts.shape[0])

    def at(self, T: Array, cells: Cells) -> Array:
        """The rows ``T`` after the map."""
        warped = looked_up(self._values, cells.place) + cells.along * looked_up(self._rises, cells.place)
        return self._put(T, warped)

    def __call__(self, T: Array) -> Array:
        """Vectors ``T`` after the map."""
        return self.at(T, self.cells(T))

    def _put(self, T: Array, own: Array) -> Array:
        """``T`` with its learned columns replaced."""
        if int(self.columns.shape[0]) == int(T.shape[1]):
            return own
        out = namespace(T).asarray(T, copy=True)
        out[:, self.columns] = own
        return out

    def pulled(self, cells: Cells, gradient: Array) -> Array:
        """Gradient with respect to vectors before the map, from that after it."""
        slopes = looked_up(self._slopes, cells.place)
        return self._put(gradient, gradient[:, self.columns] * slopes)

    def as_vectors(self, T: Array, cells: Cells) -> Array:
        """Vectors that the map takes to where it takes the rows ``T``."""
        xp, (_, count) = namespace(T), self._shape
        own = self.at(T, cells)[:, self.columns]
        place, along = _pieces(own[:, :count], self.levels, self.rises)
        before = looked_up(xp.reshape(self.knots, (-1,)), place) + along * looked_up(
            self._per_place(self.lengths), place
        )
        gap = cells.place[:, :count] >= int(self.knots.shape[0]) * count
        before = xp.where(gap, before, T[:, self.columns][:, :count])
        return self._put(T, xp.concat([before, own[:, count:]], axis=1))

    def gradient(self, cells: Cells, d_rows: Array) -> Array:
        """Gradient with respect to the parameters, from that with respect to warped rows."""
        xp, (pieces, count) = namespace(self.knots), self._shape
        size, mine = self._last + 1, d_rows[:, self.columns]
        d_values, d_rises = sums_at(cells.place, mine, size), sums_at(cells.place, mine * cells.along, size)
        end, k = pieces * count, (pieces + 1) * count
        # a slope lifts all values above its piece
        above = xp.flip(
            xp.cumulative_sum(xp.flip(xp.reshape(d_values[:k], (pieces + 1, count)), axis=0), axis=0), axis=0
        )
        d_slopes = self.rises * (xp.reshape(d_rises[:end], (pieces, count)) + above[1:, :])
        return xp.concat([xp.reshape(d_slopes, (-1,)), self.units * d_values[k : self._last]])


def _pieces(X: Array, knots: Array, lengths: Array) -> tuple[Array, Array]:
    """The piece of every value, as a place in the raveled knots, and how far along it is."""
    xp, count = namespace(X), int(knots.shape[1])
    inner = xp.where(lengths[1:, :] > 0, knots[1:-1, :], xp.asarray(xp.inf, dtype=knots.dtype, device=device(knots)))
    if int(X.shape[0]) <= _FEW:
        piece = xp.sum(xp.astype(inner[:, None, :] <= X[None, :, :], xp.int64), axis=0)
    else:
        piece = xp.zeros_like(X, dtype=xp.int64)
        for k in range(int(inner.shape[0])):
            piece += xp.astype(inner[k, :] <= X, xp.int64)
    place = piece * count + xp.arange(count, dtype=xp.int64, device=device(X))
    if not int(lengths.shape[0]):
        return place, xp.zeros_like(X)
    units = xp.concat([xp.where(lengths > 0, lengths, xp.ones_like(lengths)), xp.ones_like(lengths[:1, :])], axis=0)
    along = (X - looked_up(xp.reshape(knots, (-1,)), place)) / looked_up(xp.reshape(units, (-1,)), place)
    return place, along
