r"""Sums over all pairs of samples in :math:`O(n \log n)`: the sorted form of the soft margin (methods B5).

The samples come in the order of the current projections: sample ``i`` has rank ``i``. New scores ``s`` then violate a
margin ``m`` in the pairs

.. math:: j < i, \quad s_j > s_i - m ,

a dominance relation. It is counted on integers, bit by bit of the ranks (a wavelet matrix): every level is a stable
partition, a running sum and a look-up, so no step loops over samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import sum_by_index
from fewkern.arrays.namespace import Array
from fewkern.arrays.neighbors import pairs_scatter
from fewkern.margins.graphs import AllPairs


def _running(a: Array) -> Array:
    """Running sums along the first axis, from zero."""
    total = np.zeros((len(a) + 1, *a.shape[1:]), dtype=np.result_type(a, np.int64))
    np.cumsum(a, axis=0, out=total[1:])
    return total


def prefix_dominance(rank_at: Array, queries: Array, columns: Array) -> Array:
    """For every rank ``t`` and its query position: sums of the columns at earlier positions with a rank below ``t``.

    Parameters
    ----------
    rank_at : integer array of shape (n,)
        A permutation: the rank of the sample at every position.
    queries : integer array of shape (k, n)
        Entry ``t`` of a query is the position that belongs to rank ``t``, from 0 to ``n``.
    columns : array of shape (n, c)
        Values by position.

    Returns
    -------
    array of shape (k, n, c)
        Entry ``t`` of a query sums over positions below ``query[t]`` with rank below ``t``.

    Notes
    -----
    Samples of one node agree in the bits of their rank above the current one. The ranks are filled up to a power of
    two, so that every node is full and splits into equal halves: nodes are then rows of a reshaped array.
    """
    n = int(rank_at.shape[0])
    bits = max(n - 1, 1).bit_length()
    size = 1 << bits
    rank = np.concatenate([rank_at, np.arange(n, size)])
    # one row per position, and one per query: all columns and queries are looked up together
    width, count = columns.shape[1], len(queries)
    values = np.concatenate([columns, np.zeros((size - n, width))], axis=0)
    ends = np.concatenate([queries, np.zeros((count, size - n), dtype=np.int64)], axis=1)
    totals: Array = np.zeros((count, size, width))
    for bit in range(bits - 1, -1, -1):
        half, nodes = 1 << bit, size >> (bit + 1)
        low = (rank & half) == 0
        before = _running(low)
        lows, highs = np.flatnonzero(low), np.flatnonzero(~low)
        split = np.concatenate([lows.reshape(nodes, half), highs.reshape(nodes, half)], axis=1).reshape(size)
        running = _running(values.take(lows, axis=0))
        rank, values = rank.take(split), values.take(split, axis=0)
        base = half * np.arange(nodes)[:, None]
        inside = ends.reshape(count, nodes, 2 * half)
        lower = before.take(inside + 2 * base) - base
        # where the bit of t is set, every sample of the lower half that lies in the prefix counts
        found = running.take(lower[:, :, half:] + base, axis=0)
        totals = totals.reshape(count, nodes, 2 * half, width)
        totals[:, :, half:, :] += found - running[:-1:half, :][None, :, None, :]
        ends = np.concatenate([lower[:, :, :half], inside[:, :, half:] - lower[:, :, half:]], axis=2)
    return totals.reshape(count, size, width)[:, :n]


def _arrange(s: Array, margins: list[float], codes: Array | None) -> tuple[Array, list[Array], list[Array]]:
    """Positions of the samples sorted by score, inside their groups, and ends of windows among them.

    The sample at every position; per margin the number of samples, in sorted order, whose score is at most ``s_i - m``;
    and the number of those whose score is below ``s_i + m``.
    """
    position = np.argsort(s, kind="stable")
    ordered = s[position]
    lower = [np.searchsorted(ordered, s - m, side="right") for m in margins]
    upper = [np.searchsorted(ordered, s + m, side="left") for m in margins]
    if codes is None:
        return position, lower, upper
    # Class by class, sorted by score inside: positions are integers, so the keys (class, position) compare exactly.
    n = int(s.shape[0])
    regroup = np.argsort(codes[position], kind="stable")
    wide = codes.astype(np.int64)
    keys = wide[position][regroup] * (n + 1) + regroup
    lower, upper = (
        [np.searchsorted(keys, wide * (n + 1) + count, side="left") for count in counts] for counts in (lower, upper)
    )
    return position[regroup], lower, upper


def ranked_sums(
    s: Array, columns: Array, margins: list[float], codes: Array | None = None
) -> list[tuple[Array, Array]]:
    """Sums of the columns over the violating partners of every sample, below it and above it in the order.

    Parameters
    ----------
    s : array of shape (n,)
        Scores of the samples, which come in the order that the pairs should keep.
    columns : array of shape (n, c)
    margins : list of float
    codes : integer array of shape (n,) or None
        Only partners with the same code.

    Returns
    -------
    list of (array of shape (n, c), array of shape (n, c)), one per margin
        Row ``i`` of the first sums over ``j < i`` with ``s_j > s_i - m``, of the second over ``k > i`` with
        ``s_k < s_i + m``.
    """
    position, lower, upper = _arrange(s, margins, codes)
    # Ranks go class by class: a partner of an earlier class then lies before every prefix, and of a later one after it,
    # so that neither counts. Without classes the samples keep the order they have.
    by_rank: Any = slice(None) if codes is None else np.argsort(codes, kind="stable")
    back: Any = slice(None) if codes is None else np.argsort(by_rank, kind="stable")
    rank_at = position if codes is None else back[position]
    own, by_position = columns[by_rank], columns[position]
    lower, upper = ([ends[by_rank] for ends in query] for query in (lower, upper))
    prefix = prefix_dominance(rank_at, np.stack(lower + upper), by_position)
    below_rank, running = _running(own)[:-1], _running(by_position)
    # above: positions before the upper end, less those of lower rank, less the sample itself
    return [
        ((below_rank - down)[back], (running[ends] - up - own)[back])
        for ends, down, up in zip(upper, prefix, prefix[len(margins) :])
    ]


@dataclass(frozen=True)
class OrderedPairs:
    """The pairs of :class:`AllPairs` in the order of the current projections; scores are given in that order.

    The loss of a pair ``j < i`` is ``(m - (s_i - s_j))_+``, counted ``p_i p_j`` times.
    """

    p: Array
    codes: Array | None
    removed: tuple[Array, Array]
    """Upper and lower ranks of pairs that do not count."""

    @classmethod
    def arranged(cls, pairs: AllPairs, order: Array) -> OrderedPairs:
        """The pairs in an order of the samples from the lowest projection to the highest."""
        rank = np.argsort(order, kind="stable")
        i, j = (rank[ends] for ends in pairs.removed_edges())
        codes = None
        if pairs.codes is not None:
            codes = pairs.codes[order]
            # NumPy sorts integers of 16 bits by radix sort, much faster than wider ones
            if int(np.max(codes)) <= np.iinfo(np.int16).max:
                codes = codes.astype(np.int16)
        return cls(pairs.importance[order], codes, (np.maximum(i, j), np.minimum(i, j)))

    def balance(self) -> Array:
        """Per sample: partners below less partners above, the gradient when every pair violates (methods B4)."""
        p = self.p
        equal = c = np.zeros_like(p)
        for sign, codes in self._terms():
            ((below, above),) = ranked_sums(equal, p[:, None], [np.inf], codes)
            c = c + sign * (below - above)[:, 0]
        (i, j), n = self.removed, len(p)
        return p * (c - sum_by_index(p[j], i, n) + sum_by_index(p[i], j, n))

    def huber(self, s: Array, m: float, mu: float) -> tuple[float, Array]:
        r"""Value and gradient of the smoothed sum, with
        :math:`h_\mu(t) = [(m + \mu - t)_+^2 - (m - \mu - t)_+^2] / (4 \mu)` in place of :math:`(m - t)_+`."""
        s = s - np.mean(s)
        p = self.p
        columns = np.stack([p, p * s, p * s * s], axis=1)
        value, g = 0.0, np.zeros_like(s)
        margins = [m + mu, m - mu]
        for sign, codes in self._terms():
            sums = ranked_sums(s, columns, margins, codes)
            for outer, width, (below, above) in zip((1.0, -1.0), margins, sums):
                a, b, down, up = width - s, width + s, below.T, above.T
                factor = sign * outer / (4 * mu)
                value += factor * float(np.sum(p * (a * a * down[0] + 2 * a * down[1] + down[2])))
                # partners above: (width - s_k + s_i); partners below: (width - s_i + s_j)
                g = g + (2 * factor) * p * ((b * up[0] - up[1]) - (a * down[0] + down[1]))
        (i, j), n = self.removed, len(p)
        both = p[i] * p[j]
        for outer, width in zip((1.0, -1.0), margins):
            left = np.maximum(width - (s[i] - s[j]), 0.0)
            value -= outer / (4 * mu) * float(np.sum(both * left * left))
            slope = outer / (2 * mu) * both * left
            g = g + sum_by_index(slope, i, n) - sum_by_index(slope, j, n)
        return value, g

    def huber_curvature(self, s: Array, X: Array, m: float, mu: float) -> Array:
        """``X' (second derivative in s) X``: the Laplacian of the pairs inside the smoothed band."""
        s = s - np.mean(s)
        H: Array = np.zeros((X.shape[1], X.shape[1]))
        for sign, i, j in self._near_band(s, m, mu):
            weights = np.where(np.abs(m - (s[i] - s[j])) < mu, sign * self.p[i] * self.p[j], 0.0)
            H = H + pairs_scatter(i, j, weights, X)
        return H / (2 * mu)

    def _near_band(self, s: Array, m: float, mu: float) -> Iterator[tuple[float, Array, Array]]:
        """Pairs that hold all of the smoothed band: windows of one sort, in blocks, less those that do not count."""
        position, (first, end), _ = _arrange(s, [m + mu, m - mu], None)
        count = end - first
        for rows in row_blocks(len(s), int(np.max(count))):
            i = np.repeat(np.arange(rows.start, rows.stop), count[rows])
            into = np.arange(len(i)) - np.repeat(np.cumsum(count[rows]) - count[rows], count[rows])
            j = position[np.repeat(first[rows], count[rows]) + into]
            keep = j < i
            if self.codes is not None:
                keep = keep & (self.codes[i] != self.codes[j])
            yield 1.0, i[keep], j[keep]
        yield -1.0, *self.removed

    def window_value(self, s: Array, m: float) -> float:
        r""":math:`\sum p_i p_j (m - |s_i - s_j|)_+`: the non-convex loss itself, windows of one sort."""
        s = s - np.mean(s)
        value = 0.0
        for sign, codes in self._terms():
            position, (lower,), _ = _arrange(s, [m], codes)
            ps, ss = self.p[position], s[position]
            running = _running(ps)
            moment = _running(ps * ss)
            first = lower[position]
            count, total = running[:-1] - running[first], moment[:-1] - moment[first]
            value += sign * float(np.sum(ps * ((m - ss) * count + total)))
        i, j = self.removed
        return value - float(np.sum(self.p[i] * self.p[j] * np.maximum(m - np.abs(s[i] - s[j]), 0.0)))

    def _terms(self) -> list[tuple[float, Array | None]]:
        """All pairs, less those inside a class."""
        return [(1.0, None)] if self.codes is None else [(1.0, None), (-1.0, self.codes)]


@dataclass(frozen=True)
class RankedLoss:
    """The convex objective over pairs of one common weight, in the order of the rows of ``X``."""

    S: Array
    X: Array
    pairs: OrderedPairs
    margin: float
    weight: float

    def smooth(self, w: Array, mu: float) -> tuple[float, Array]:
        value, g = self.pairs.huber(self.X @ w, self.margin, mu * self.margin)
        Sw = self.S @ w
        return 0.5 * float(w @ Sw) + self.weight * value, Sw + self.weight * (self.X.T @ g)

    def curvature(self, w: Array, mu: float) -> Array:
        """Second derivative."""
        H = self.pairs.huber_curvature(self.X @ w, self.X, self.margin, mu * self.margin)
        return self.S + self.weight * H
