r"""Features with bounds or a period: kernels are folded back into the range, so that no mass is outside.

At a bound, what a kernel has beyond it is reflected; round a period, it is wrapped. Both are sums over images of a
sample: :math:`\sum_t K(x_t, c, \sigma)`, which integrates to one over the range. Kernels are products over the
features, so every feature has its own short sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fewkern.arrays.linalg import logsumexp, neg_squared_distances
from fewkern.arrays.namespace import Array, asarray_like, namespace, to_numpy
from fewkern.arrays.numerics import normal_cdf

# Images of a sample further away than this many bandwidths are left out: 2e-9 of the mass.
_REACH_IN_BANDWIDTHS = 6.0
# A kernel of this many periods is constant to 1.5%: wider ones count as that wide, so that a few images are enough.
_WIDEST_IN_PERIODS = 0.5


@dataclass(frozen=True)
class Edge:
    """A feature with bounds (one may be infinite) or a period, in the units of the samples."""

    column: int
    low: float
    high: float
    period: float | None = None

    @property
    def cycle(self) -> float:
        """After this length, images repeat; infinite where there is only one bound."""
        return 2.0 * (self.high - self.low) if self.period is None else self.period

    def bandwidths(self, bandwidths: Array) -> Array:
        """Bandwidths of kernels along this feature."""
        if math.isinf(self.cycle):
            return bandwidths
        xp = namespace(bandwidths)
        return xp.minimum(bandwidths, xp.full_like(bandwidths, _WIDEST_IN_PERIODS * self.cycle))

    def repeats(self, bandwidths: Array) -> int:
        """Cycles to either side that matter at these bandwidths."""
        if math.isinf(self.cycle):
            return 0
        widest = float(namespace(bandwidths).max(self.bandwidths(bandwidths)))
        return max(0, math.ceil(_REACH_IN_BANDWIDTHS * widest / self.cycle - 0.5))

    def gaps(self, x: Array, centers: Array, bandwidths: Array) -> Iterator[Array]:
        """``x_t - c`` for every image of the samples, each of shape ``(n, s)``."""
        starts = [x[:, None] - centers[None, :]]
        if self.period is None:
            mirror = self.low if math.isfinite(self.low) else self.high
            starts.append(2.0 * mirror - x[:, None] - centers[None, :])
        xp, count = namespace(x), self.repeats(bandwidths)
        for start in starts:
            if math.isinf(self.cycle):
                yield start
                continue
            near = start - self.cycle * xp.round(start / self.cycle)
            for k in range(-count, count + 1):
                yield near + k * self.cycle

    def fold(self, x: Array) -> Array:
        """Numbers moved to the range: reflected at the bounds, or wrapped round the period."""
        xp = namespace(x)
        if self.period is not None:
            return self.low + xp.remainder(x - self.low, xp.full_like(x, self.period))
        if math.isinf(self.high):
            return self.low + xp.abs(x - self.low)
        if math.isinf(self.low):
            return self.high - xp.abs(self.high - x)
        half = 0.5 * self.cycle
        return self.low + half - xp.abs(xp.remainder(x - self.low, xp.full_like(x, self.cycle)) - half)


def edges_of(bounds: Array | None, periods: Array | None, shift: Array, factor: Array) -> tuple[Edge, ...]:
    """The features with ``bounds`` (lower and upper, ``(2, m)``) or ``periods`` ``(m,)``, after ``(x - shift) factor``.

    Infinite numbers stand for no bound and no period.
    """
    if bounds is None or periods is None:
        return ()
    low, high, period, shift, factor = (
        to_numpy(a).astype(float) for a in (bounds[0, :], bounds[1, :], periods, shift, factor)
    )
    found = []
    for d in range(len(period)):
        if math.isfinite(period[d]):
            start, length = -shift[d] * factor[d], period[d] * factor[d]
            found.append(Edge(d, float(start), float(start + length), float(length)))
        elif math.isfinite(low[d]) or math.isfinite(high[d]):
            ends = [float((end - shift[d]) * factor[d]) for end in (low[d], high[d])]
            found.append(Edge(d, *ends))
    return tuple(found)


def _free(X: Array, edges: tuple[Edge, ...]) -> Array | None:
    """The other features."""
    if not edges:
        return X
    kept = sorted(set(range(X.shape[1])) - {edge.column for edge in edges})
    xp = namespace(X)
    return xp.take(X, asarray_like(kept, X, dtype=xp.int64), axis=1) if kept else None


def exponents(Z: Array, centers: Array, bandwidths: Array, edges: tuple[Edge, ...] = ()) -> Array:
    r"""Logarithm of :math:`(2\pi)^{m/2}\sigma_j^m` times every kernel, shape ``(n, s)``."""
    free, own = _free(Z, edges), _free(centers, edges)
    total = None if free is None or own is None else neg_squared_distances(free, own) * (0.5 / bandwidths**2)
    xp = namespace(bandwidths)
    for edge in edges:
        widths = edge.bandwidths(bandwidths)
        gaps = edge.gaps(Z[:, edge.column], centers[:, edge.column], bandwidths)
        part = logsumexp(xp.stack([-0.5 * (gap / widths) ** 2 for gap in gaps], axis=0), axis=0)
        part = part + xp.log(bandwidths / widths)
        total = part if total is None else total + part
    return total


def most_images(edges: tuple[Edge, ...], bandwidths: Array) -> int:
    """Numbers per sample and kernel that an evaluation needs."""
    return max([1, *((2 if edge.period is None else 1) * (1 + 2 * edge.repeats(bandwidths)) for edge in edges)])


def image_sums(Z: Array, R: Array, centers: Array, bandwidths: Array, edges: tuple[Edge, ...]) -> tuple[Array, Array]:
    """Sums over the samples, weighted by ``R``, of their images ``(s, m)`` and squared distances to centers ``(s,)``.

    Every image counts with its share in the kernel.
    """
    xp = namespace(Z)
    first, free, own = R.T @ Z, _free(Z, edges), _free(centers, edges)
    second = 0.0 if free is None or own is None else -xp.sum(R * neg_squared_distances(free, own), axis=0)
    for edge in edges:
        x, c = Z[:, edge.column], centers[:, edge.column]
        gaps = xp.stack(list(edge.gaps(x, c, bandwidths)), axis=0)
        logs = -0.5 * (gaps / edge.bandwidths(bandwidths)) ** 2
        shares = R * xp.exp(logs - logsumexp(logs, axis=0))
        moved = xp.sum(shares * gaps, axis=(0, 1))
        first[:, edge.column] = xp.sum(R, axis=0) * c + moved
        second = second + xp.sum(shares * gaps**2, axis=(0, 1))
    return first, second


def folded(X: Array, edges: tuple[Edge, ...]) -> Array:
    """Rows with every feature that has an edge moved to its range; for centers, this changes no kernel."""
    if not edges:
        return X
    moved = {edge.column: edge for edge in edges}
    columns = [moved[d].fold(X[:, d]) if d in moved else X[:, d] for d in range(X.shape[1])]
    return namespace(X).stack(columns, axis=1)


def _center_images(edge: Edge, centers: Array, bandwidths: Array) -> list[Array]:
    """Images of the centers near a range with bounds, each of shape ``(s,)``."""
    xp = namespace(centers)
    mirror = edge.low if math.isfinite(edge.low) else edge.high
    both = (centers, 2.0 * mirror - centers)
    if math.isinf(edge.cycle):
        return list(both)
    count, middle = edge.repeats(bandwidths) + 1, 0.5 * (edge.low + edge.high)
    near = [c - edge.cycle * xp.round((c - middle) / edge.cycle) for c in both]
    return [c + k * edge.cycle for c in near for k in range(-count, count + 1)]


def kernel_cdf(edge: Edge, x: Array, centers: Array, bandwidths: Array) -> Array:
    """Distribution function of every kernel along a feature with bounds, shape ``(n, s)``."""
    xp, widths = namespace(x), edge.bandwidths(bandwidths)
    x = xp.clip(x, edge.low, edge.high)
    total = 0.0
    for image in _center_images(edge, centers, bandwidths):
        total = total + normal_cdf((x[:, None] - image[None, :]) / widths)
        if math.isfinite(edge.low):
            total = total - normal_cdf((edge.low - image) / widths)[None, :]
    return xp.where(x[:, None] >= edge.high, xp.ones_like(total), total)


def edge_mean(edge: Edge, centers: Array, bandwidths: Array, weights: Array) -> float:
    """Mean of a mixture along the feature; round a period, the direction of the mean, in the range."""
    xp, widths = namespace(centers), edge.bandwidths(bandwidths)
    if edge.period is not None:
        unit = 2 * math.pi / edge.period
        angles, pull = unit * (centers - edge.low), weights * xp.exp(-0.5 * (unit * widths) ** 2)
        turn = math.atan2(float(xp.sum(pull * xp.sin(angles))), float(xp.sum(pull * xp.cos(angles))))
        return edge.low + turn / unit % edge.period
    total = 0.0
    for image in _center_images(edge, centers, bandwidths):
        low, high = (edge.low - image) / widths, (edge.high - image) / widths
        height = (xp.exp(-0.5 * high**2) - xp.exp(-0.5 * low**2)) / math.sqrt(2 * math.pi)
        total += float(xp.sum(weights * (image * (normal_cdf(high) - normal_cdf(low)) - widths * height)))
    return total
