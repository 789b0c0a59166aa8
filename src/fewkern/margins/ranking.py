r"""Sums over all pairs of samples in :math:`O(n \log n)`: the sorted form of the soft margin (methods B5).

The samples come in the order of the current projections: sample ``i`` has rank ``i``. New scores ``s`` then violate a
margin ``m`` in the pairs

.. math:: j < i, \quad s_j > s_i - m ,

a dominance relation. It is counted on integers, bit by bit of the ranks (a wavelet matrix): every level is a stable
partition, a running sum and a look-up, so no step loops over samples.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import sum_by_index
from fewkern.arrays.namespace import Array, device, namespace, take_rows
from fewkern.margins.graphs import PairSet

__all__ = ["OrderedPairs", "prefix_dominance", "ranked_sums"]

# The pairs of the smoothed band are listed one by one if there are at most this many per sample.
_BAND_PAIRS = 40
# A table of all pairs, block by block, is faster than a sort for every feature up to so many samples per feature.
_TABLE_ROWS = 500
# NumPy sorts integers of 16 bits by their digits, much faster than wider ones: most classes that fit.
_SHORT_CODES = 2**15


def prefix_dominance(rank_at: Array, queries: list[Array], columns: list[Array]) -> list[list[Array]]:
    """For every rank ``t`` and its query position: sums of the columns at earlier positions with a rank below ``t``.

    Parameters
    ----------
    rank_at : integer array of shape (n,)
        A permutation: the rank of the sample at every position.
    queries : list of integer arrays of shape (n,)
        Entry ``t`` of each is the position that belongs to rank ``t``, from 0 to ``n``.
    columns : list of arrays of shape (n,)
        Values by position.

    Returns
    -------
    list of lists of arrays of shape (n,)
        One list per query, one array per column; entry ``t`` sums over positions below ``query[t]`` with rank below
        ``t``.

    Notes
    -----
    Samples of one node agree in the bits of their rank above the current one. The ranks are filled up to a power of
    two, so that every node is full and splits into equal halves: nodes are then rows of a reshaped array.
    """
    xp = namespace(rank_at)
    n = int(rank_at.shape[0])
    bits = max(n - 1, 1).bit_length()
    size = 1 << bits
    where = device(rank_at)
    rank = xp.concat([xp.astype(rank_at, xp.int64), xp.arange(n, size, dtype=xp.int64, device=where)])
    # one row per position, and one per query: all columns and queries are looked up together
    values = xp.stack(columns, axis=1)
    width, count = len(columns), len(queries)
    values = xp.concat([values, xp.zeros((size - n, width), dtype=values.dtype, device=where)], axis=0)
    ends = xp.stack([xp.astype(q, xp.int64) for q in queries], axis=0)
    ends = xp.concat([ends, xp.zeros((count, size - n), dtype=xp.int64, device=where)], axis=1)
    totals = xp.zeros((count, size, width), dtype=values.dtype, device=where)
    for bit in range(bits - 1, -1, -1):
        half, nodes = 1 << bit, size >> (bit + 1)
        low = xp.bitwise_and(rank, xp.full_like(rank, half)) == 0
        before = xp.cumulative_sum(xp.astype(low, xp.int64), include_initial=True)
        lows, highs = xp.nonzero(low)[0], xp.nonzero(xp.logical_not(low))[0]
        split = xp.concat([xp.reshape(lows, (nodes, half)), xp.reshape(highs, (nodes, half))], axis=1)
        split = xp.reshape(split, (size,))
        running = xp.cumulative_sum(xp.take(values, lows, axis=0), axis=0, include_initial=True)
        rank, values = xp.take(rank, split), xp.take(values, split, axis=0)
        base = half * xp.arange(nodes, dtype=xp.int64, device=where)[:, None]
        inside = xp.reshape(ends, (count, nodes, 2 * half))
        lower = xp.reshape(xp.take(before, xp.reshape(inside + 2 * base, (-1,))), inside.shape) - base
        # where the bit of t is set, every sample of the lower half that lies in the prefix counts
        at = xp.reshape(lower[:, :, half:] + base, (-1,))
        found = xp.reshape(xp.take(running, at, axis=0), (count, nodes, half, width))
        totals = xp.reshape(totals, (count, nodes, 2 * half, width))
        totals[:, :, half:, :] += found - running[:-1:half, :][None, :, None, :]
        ends = xp.concat([lower[:, :, :half], inside[:, :, half:] - lower[:, :, half:]], axis=2)
    totals = xp.reshape(totals, (count, size, width))
    return [[totals[k, :n, c] for c in range(width)] for k in range(count)]


@dataclass(frozen=True)
class _Arrangement:
    """Positions of the samples sorted by score, inside their groups."""

    position: Array
    """Sample at every position."""
    lower: list[Array]
    """Per margin: number of samples, in sorted order, whose score is at most ``s_i - m``."""
    upper: list[Array]
    """Per margin: number of samples whose score is below ``s_i + m``."""


def _arrange(s: Array, margins: list[float], codes: Array | None) -> _Arrangement:
    xp = namespace(s)
    position = xp.argsort(s, stable=True)
    ordered = xp.take(s, position)
    lower = [xp.astype(xp.searchsorted(ordered, s - m, side="right"), xp.int64) for m in margins]
    upper = [xp.astype(xp.searchsorted(ordered, s + m, side="left"), xp.int64) for m in margins]
    if codes is None:
        return _Arrangement(xp.astype(position, xp.int64), lower, upper)
    # Class by class, sorted by score inside: positions are integers, so the keys (class, position) compare exactly.
    n = int(s.shape[0])
    regroup = xp.argsort(xp.take(codes, position), stable=True)
    wide = xp.astype(codes, xp.int64)
    keys = xp.take(xp.take(wide, position), regroup) * (n + 1) + xp.astype(regroup, xp.int64)
    lower, upper = (
        [xp.astype(xp.searchsorted(keys, wide * (n + 1) + count, side="left"), xp.int64) for count in counts]
        for counts in (lower, upper)
    )
    return _Arrangement(xp.astype(xp.take(position, regroup), xp.int64), lower, upper)


@dataclass(frozen=True)
class _Ranks:
    """Ranks class by class: a partner of an earlier class then lies before every prefix, and of a later one after it,
    so that neither counts. Without classes the samples keep the order they have."""

    order: Array | None
    rank: Array | None

    @classmethod
    def of(cls, codes: Array | None) -> _Ranks:
        if codes is None:
            return cls(None, None)
        xp = namespace(codes)
        order = xp.argsort(codes, stable=True)
        return cls(order, xp.astype(xp.argsort(order, stable=True), xp.int64))

    def sorted(self, a: Array) -> Array:
        """Values by sample as values by rank."""
        return a if self.order is None else namespace(a).take(a, self.order)

    def back(self, a: Array) -> Array:
        """Values by rank as values by sample."""
        return a if self.rank is None else namespace(a).take(a, self.rank)


def ranked_sums(
    s: Array, columns: list[Array], margins: list[float], codes: Array | None = None, *, above: bool = True
) -> list[tuple[list[Array], list[Array]]]:
    """Sums of the columns over the violating partners of every sample, below it and above it in the order.

    Parameters
    ----------
    s : array of shape (n,)
        Scores of the samples, which come in the order that the pairs should keep.
    columns : list of arrays of shape (n,)
    margins : list of float
    codes : integer array of shape (n,) or None
        Only partners with the same code.
    above : bool
        Whether the sums over partners above are wanted.

    Returns
    -------
    list of (list of arrays, list of arrays), one per margin
        Entry ``i`` of the first ones sums over ``j < i`` with ``s_j > s_i - m``, of the second ones over ``k > i`` with
        ``s_k < s_i + m`` (none unless ``above``).
    """
    xp = namespace(s)
    arrangement = _arrange(s, margins, codes)
    position, ranks = arrangement.position, _Ranks.of(codes)
    rank_at = position if ranks.rank is None else xp.take(ranks.rank, position)
    own = [ranks.sorted(c) for c in columns]
    by_position = [xp.take(c, position) for c in columns]
    lower = [ranks.sorted(q) for q in arrangement.lower]
    upper = [ranks.sorted(q) for q in arrangement.upper] if above else []
    prefix = prefix_dominance(rank_at, lower + upper, by_position)
    below_rank = [xp.cumulative_sum(c, include_initial=True)[:-1] for c in own]
    running = [xp.cumulative_sum(c, include_initial=True) for c in by_position]
    out = []
    for k in range(len(margins)):
        down = [ranks.back(b - p) for b, p in zip(below_rank, prefix[k])]
        up: list[Array] = []
        if above:
            # positions before the upper end, less those of lower rank, less the sample itself
            up = [ranks.back(xp.take(r, upper[k]) - p - c) for r, p, c in zip(running, prefix[len(margins) + k], own)]
        out.append((down, up))
    return out


@dataclass(frozen=True)
class OrderedPairs:
    """The pairs of a :class:`PairSet` in the order of the current projections; scores are given in that order.

    The loss of a pair ``j < i`` is ``(m - (s_i - s_j))_+``, counted ``p_i p_j`` times.
    """

    p: Array
    codes: Array | None
    removed: tuple[Array, Array] | None
    """Upper and lower ranks of pairs that do not count."""

    @classmethod
    def arranged(cls, pairs: PairSet, order: Array) -> OrderedPairs:
        """The pairs in an order of the samples from the lowest projection to the highest."""
        xp = namespace(pairs.importance)
        removed = None
        if pairs.removed is not None:
            rank = xp.argsort(order, stable=True)
            i, j = xp.take(rank, pairs.removed[0]), xp.take(rank, pairs.removed[1])
            removed = (xp.maximum(i, j), xp.minimum(i, j))
        codes = None
        if pairs.codes is not None:
            codes = xp.take(pairs.codes, order)
            if int(xp.max(codes)) < _SHORT_CODES:
                codes = xp.astype(codes, xp.int16)
        return cls(xp.take(pairs.importance, order), codes, removed)

    def balance(self) -> Array:
        """Per sample: partners below less partners above, the gradient when every pair violates (methods B4)."""
        xp = namespace(self.p)
        p = self.p
        before = xp.cumulative_sum(p) - p
        c = before - (xp.sum(p) - before - p)
        if self.codes is not None:
            by = xp.argsort(self.codes, stable=True)
            back = xp.argsort(by, stable=True)
            q, group = xp.take(p, by), xp.take(self.codes, by)
            running = xp.cumulative_sum(q, include_initial=True)
            first = xp.take(running, xp.searchsorted(group, group, side="left"))
            last = xp.take(running, xp.searchsorted(group, group, side="right"))
            own = running[:-1]
            c = c - xp.take((own - first) - (last - own - q), back)
        if self.removed is not None:
            i, j = self.removed
            n = int(p.shape[0])
            c = c - sum_by_index(xp.take(p, j), i, n) + sum_by_index(xp.take(p, i), j, n)
        return p * c

    def huber(self, s: Array, m: float, mu: float) -> tuple[float, Array]:
        r"""Value and gradient of the smoothed sum, with
        :math:`h_\mu(t) = [(m + \mu - t)_+^2 - (m - \mu - t)_+^2] / (4 \mu)` in place of :math:`(m - t)_+`."""
        xp = namespace(s)
        s = s - xp.mean(s)
        p = self.p
        columns = [p, p * s, p * s * s]
        value, g = 0.0, xp.zeros_like(s)
        margins = [m + mu, m - mu]
        for sign, codes in self._terms():
            sums = ranked_sums(s, columns, margins, codes)
            for outer, width, (down, up) in zip((1.0, -1.0), margins, sums):
                a, b = width - s, width + s
                factor = sign * outer / (4 * mu)
                value += factor * float(xp.sum(p * (a * a * down[0] + 2 * a * down[1] + down[2])))
                # partners above: (width - s_k + s_i); partners below: (width - s_i + s_j)
                g = g + (2 * factor) * p * ((b * up[0] - up[1]) - (a * down[0] + down[1]))
        if self.removed is not None:
            i, j = self.removed
            n = int(s.shape[0])
            t = xp.take(s, i) - xp.take(s, j)
            both = xp.take(p, i) * xp.take(p, j)
            for outer, width in zip((1.0, -1.0), margins):
                left = xp.maximum(width - t, xp.zeros_like(t))
                value -= outer / (4 * mu) * float(xp.sum(both * left * left))
                slope = outer / (2 * mu) * both * left
                g = g + sum_by_index(slope, i, n) - sum_by_index(slope, j, n)
        return value, g

    def huber_curvature(self, s: Array, X: Array, m: float, mu: float) -> Array:
        """``X' (second derivative in s) X``: the Laplacian of the pairs inside the smoothed band, without its edges."""
        xp = namespace(s)
        s = s - xp.mean(s)
        n, q = X.shape
        near = self._band(s, m, mu)
        if near is not None and int(near[0].shape[0]) * q <= n * n:
            H = xp.zeros((X.shape[1], X.shape[1]), dtype=X.dtype, device=device(X))
            for part in row_blocks(int(near[0].shape[0]), int(X.shape[1])):
                i, j = near[0][part], near[1][part]
                difference = take_rows(X, i) - take_rows(X, j)
                H = H + (difference * (xp.take(self.p, i) * xp.take(self.p, j))[:, None]).T @ difference
        elif n <= _TABLE_ROWS * q:
            H = self._tabled_curvature(s, X, m, mu)
        else:
            H = self._summed_curvature(s, X, m, mu)
        if self.removed is not None:
            i, j = self.removed
            t = xp.take(s, i) - xp.take(s, j)
            both = xp.where(xp.abs(m - t) < mu, xp.take(self.p, i) * xp.take(self.p, j), xp.zeros_like(t))
            difference = take_rows(X, i) - take_rows(X, j)
            H = H - (difference * both[:, None]).T @ difference
        return H / (2 * mu)

    def _band(self, s: Array, m: float, mu: float) -> tuple[Array, Array] | None:
        """The pairs with ``|m - (s_i - s_j)| < mu`` one by one, if they are few: a narrow window of one sort."""
        xp = namespace(s)
        n = int(s.shape[0])
        a = _arrange(s, [m + mu, m - mu], None)
        count = a.lower[1] - a.lower[0]
        total = int(xp.sum(count))
        if total > _BAND_PAIRS * n:
            return None
        i = xp.repeat(xp.arange(n, device=device(s)), count)
        into = xp.arange(total, device=device(s)) - xp.repeat(xp.cumulative_sum(count) - count, count)
        j = xp.take(a.position, xp.repeat(a.lower[0], count) + into)
        keep = (j < i) & (xp.take(s, j) > xp.take(s, i) - (m + mu)) & (xp.take(s, j) < xp.take(s, i) - (m - mu))
        if self.codes is not None:
            keep = keep & (xp.take(self.codes, i) != xp.take(self.codes, j))
        return i[keep], j[keep]

    def _tabled_curvature(self, s: Array, X: Array, m: float, mu: float) -> Array:
        """The same sum over all pairs, block by block: a product of matrices, for many features."""
        xp, p, n = namespace(s), self.p, int(s.shape[0])
        weighted = p[:, None] * X
        degree, cross = xp.zeros_like(s), xp.zeros((X.shape[1], X.shape[1]), dtype=X.dtype, device=device(X))
        rank = xp.arange(n, device=device(s))
        for rows in row_blocks(n, n):
            lower = slice(0, rows.stop)  # partners come earlier in the order
            inside = xp.abs(m - s[rows][:, None] + s[lower][None, :]) < mu
            inside = inside & (rank[lower][None, :] < rank[rows][:, None])
            if self.codes is not None:
                inside = inside & (self.codes[rows][:, None] != self.codes[lower][None, :])
            V = xp.astype(inside, X.dtype)
            degree[rows] += V @ p[lower]
            degree[lower] += p[rows] @ V
            cross = cross + weighted[rows, :].T @ (V @ weighted[lower, :])
        return (X * (p * degree)[:, None]).T @ X - cross - cross.T

    def _summed_curvature(self, s: Array, X: Array, m: float, mu: float) -> Array:
        """The same sum over the pairs of the band when they are too many to list."""
        xp = namespace(s)
        p = self.p
        weighted = p[:, None] * X
        columns = [weighted[:, k] for k in range(X.shape[1])]
        H = xp.zeros((X.shape[1], X.shape[1]), dtype=X.dtype, device=device(X))
        degree = xp.zeros_like(s)
        margins = [m + mu, m - mu]
        for sign, codes in self._terms():
            sums = ranked_sums(s, columns, margins, codes, above=False)
            counts = ranked_sums(s, [p], margins, codes)
            for outer, (down, _), ((below,), (above,)) in zip((1.0, -1.0), sums, counts):
                # partners above are partners below seen from the other end: their part is the transposed one
                cross = weighted.T @ xp.stack(down, axis=1)
                H = H - (sign * outer) * (cross + cross.T)
                degree = degree + sign * outer * p * (below + above)
        return H + (X * degree[:, None]).T @ X

    def window_value(self, s: Array, m: float) -> float:
        r""":math:`\sum p_i p_j (m - |s_i - s_j|)_+`: the non-convex loss itself, windows of one sort."""
        xp = namespace(s)
        s = s - xp.mean(s)
        n = int(s.shape[0])
        value = 0.0
        for sign, codes in self._terms():
            a = _arrange(s, [m], codes)
            ps, ss = take_rows(self.p, a.position), take_rows(s, a.position)
            running = xp.cumulative_sum(ps, include_initial=True)
            moment = xp.cumulative_sum(ps * ss, include_initial=True)
            first = take_rows(a.lower[0], a.position)
            here = xp.arange(n, device=device(s))
            count, total = (
                take_rows(running, here) - take_rows(running, first),
                take_rows(moment, here) - take_rows(moment, first),
            )
            value += sign * float(xp.sum(ps * ((m - ss) * count + total)))
        if self.removed is not None:
            i, j = self.removed
            left = xp.maximum(m - xp.abs(xp.take(s, i) - xp.take(s, j)), xp.zeros_like(s[:1]))
            value -= float(xp.sum(xp.take(self.p, i) * xp.take(self.p, j) * left))
        return value

    def _terms(self) -> list[tuple[float, Array | None]]:
        """All pairs, less those inside a class."""
        return [(1.0, None)] if self.codes is None else [(1.0, None), (-1.0, self.codes)]
