r"""Features with bounds or a period: kernels are folded back into the range, so that no mass is outside.

At a bound, what a kernel has beyond it is reflected; around a period, it is wrapped. Both are sums over images of a
sample: :math:`\sum_t K(x_t, c, \sigma)`, which integrates to one over the range. Kernels are products over the
features, so every feature has its own short sum.
"""

from __future__ import annotations

import math
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
        xp = namespace(bandwidths)
        return xp.minimum(bandwidths, xp.full_like(bandwidths, _WIDEST_IN_PERIODS * self.cycle))

    def repeats(self, bandwidths: Array) -> int:
        """Cycles to either side that matter at these bandwidths."""
        widest = float(namespace(bandwidths).max(self.bandwidths(bandwidths)))
        return max(0, math.ceil(_REACH_IN_BANDWIDTHS * widest / self.cycle - 0.5))

    def _images(self, starts: list[Array], middle: float, count: int) -> list[Array]:
        """Every number moved by whole cycles next to ``middle``, and by up to ``count`` further ones to either side."""
        if math.isinf(self.cycle):
            return starts
        round_ = namespace(starts[0]).round
        near = [start - self.cycle * round_((start - middle) / self.cycle) for start in starts]
        return [start + k * self.cycle for start in near for k in range(-count, count + 1)]

    def _mirrored(self, x: Array) -> Array:
        """Numbers reflected at a bound."""
        return 2.0 * (self.low if math.isfinite(self.low) else self.high) - x

    def gaps(self, Z: Array, centers: Array, bandwidths: Array) -> Array:
        """``x_t - c`` for every image of the samples, ``(t, n, s)``."""
        x, c = Z[:, self.column][:, None], centers[:, self.column][None, :]
        starts = [x - c] if self.period is not None else [x - c, self._mirrored(x) - c]
        return namespace(Z).stack(self._images(starts, 0.0, self.repeats(bandwidths)), axis=0)

    def logs(self, gaps: Array, bandwidths: Array) -> Array:
        """Exponents of the kernels at these gaps."""
        return -0.5 * (gaps / self.bandwidths(bandwidths)) ** 2

    def center_images(self, centers: Array, bandwidths: Array) -> list[Array]:
        """Images of the centers near a range with bounds, each of shape ``(s,)``."""
        starts = [centers, self._mirrored(centers)]
        return self._images(starts, 0.5 * (self.low + self.high), self.repeats(bandwidths) + 1)

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


def check_ranges(bounds: Array | None, periods: Array | None, transform: Array) -> None:
    """Refuse bounds and periods from a file that contradict themselves."""
    if bounds is None and periods is None:
        return
    if bounds is None or periods is None or transform.ndim != 1:
        raise ValueError("a KernelMixture has bounds and periods only together, and with a diagonal transform")
    bounds = to_numpy(bounds)
    if bounds.shape[0] != 2 or not (bounds[0] < bounds[1]).all() or math.isnan(to_numpy(periods).sum()):
        raise ValueError("the bounds of a KernelMixture are not a smaller and a larger value")


def _free_distances(Z: Array, centers: Array, edges: tuple[Edge, ...]) -> Array | float:
    """Minus the squared distances to the centers along the other features."""
    if edges:
        kept = sorted(set(range(Z.shape[1])) - {edge.column for edge in edges})
        if not kept:
            return 0.0
        xp = namespace(Z)
        kept = asarray_like(kept, Z, dtype=xp.int64)
        Z, centers = xp.take(Z, kept, axis=1), xp.take(centers, kept, axis=1)
    return neg_squared_distances(Z, centers)


def exponents(Z: Array, centers: Array, bandwidths: Array, edges: tuple[Edge, ...] = ()) -> Array:
    r"""Logarithm of :math:`(2\pi)^{m/2}\sigma_j^m` times every kernel, shape ``(n, s)``."""
    total = _free_distances(Z, centers, edges) * (0.5 / bandwidths**2)
    for edge in edges:
        sums = logsumexp(edge.logs(edge.gaps(Z, centers, bandwidths), bandwidths), axis=0)
        total = total + (sums + namespace(bandwidths).log(bandwidths / edge.bandwidths(bandwidths)))
    return total


def most_images(edges: tuple[Edge, ...], bandwidths: Array) -> int:
    """Numbers per sample and kernel that an evaluation needs."""
    return max([1, *((2 if edge.period is None else 1) * (1 + 2 * edge.repeats(bandwidths)) for edge in edges)])


def image_sums(Z: Array, R: Array, centers: Array, bandwidths: Array, edges: tuple[Edge, ...]) -> tuple[Array, Array]:
    """Sums over the samples, weighted by ``R``, of their images ``(s, m)`` and squared distances to centers ``(s,)``.

    Every image counts with its share in the kernel.
    """
    xp = namespace(Z)
    first, second = R.T @ Z, -xp.sum(R * _free_distances(Z, centers, edges), axis=0)
    for edge in edges:
        gaps = edge.gaps(Z, centers, bandwidths)
        logs = edge.logs(gaps, bandwidths)
        shares = R * xp.exp(logs - logsumexp(logs, axis=0))
        moved = xp.sum(shares * gaps, axis=(0, 1))
        first[:, edge.column] = xp.sum(R, axis=0) * centers[:, edge.column] + moved
        second = second + xp.sum(shares * gaps**2, axis=(0, 1))
    return first, second


def folded(X: Array, edges: tuple[Edge, ...]) -> Array:
    """Rows with every feature that has an edge moved to its range; for centers, this changes no kernel."""
    if not edges:
        return X
    moved = {edge.column: edge for edge in edges}
    columns = [moved[d].fold(X[:, d]) if d in moved else X[:, d] for d in range(X.shape[1])]
    return namespace(X).stack(columns, axis=1)


def into_range(X: Array, bounds: Array, periods: Array) -> Array:
    """Samples with every feature moved into its bounds or its period."""
    xp, low, high = namespace(X), bounds[0, :], bounds[1, :]
    moved = folded(X, edges_of(bounds, periods, xp.zeros_like(low), xp.ones_like(low)))
    return xp.minimum(xp.maximum(moved, low), high)  # folding rounds


def kernel_cdf(edge: Edge, x: Array, centers: Array, bandwidths: Array) -> Array:
    """Distribution function of every kernel along a feature with bounds, shape ``(n, s)``."""
    xp, widths = namespace(x), edge.bandwidths(bandwidths)
    x = xp.clip(x, edge.low, edge.high)
    total = 0.0
    for image in edge.center_images(centers, bandwidths):
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
    for image in edge.center_images(centers, bandwidths):
        low, high = (edge.low - image) / widths, (edge.high - image) / widths
        height = (xp.exp(-0.5 * high**2) - xp.exp(-0.5 * low**2)) / math.sqrt(2 * math.pi)
        total += float(xp.sum(weights * (image * (normal_cdf(high) - normal_cdf(low)) - widths * height)))
    return total
