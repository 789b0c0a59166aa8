"""Input warping: one monotone map per column, linear between the knots of its preparation, with learned slopes.

The preparation of a column looks at its values only. A warp is steep where the targets change and flat elsewhere, so
that a threshold takes a steep piece instead of many vectors, and the product of two columns is a sum of logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Host = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cells:
    """Where values lie between the knots of their columns."""

    place: Host
    """Position of the piece in the raveled pieces ``(k - 1, c)``, shape ``(n, c)``."""
    along: Host
    """How far along the piece, from 0 to 1; beyond the first and the last knot less than 0 or more than 1."""


@dataclass(frozen=True)
class Warp:
    """The map of the columns ``columns``; the others stay as they are."""

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
