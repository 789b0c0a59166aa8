"""What every density algorithm is given: scaled samples, their weights, a unit of bandwidth, and candidate centers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.density.mixture import normal_kernel, squared_distances

__all__ = ["DensityProblem", "RoundMixture", "ScaledRows"]

Sum = TypeVar("Sum")

# Least bandwidth of a kernel in few dimensions, in Parzen bandwidths: the smoothing that a few kernels need.
_FLOOR = 1.5
# The smallest lump that the least bandwidth must not be too wide for has this part of the samples, and this many at
# least.
_LUMP_SHARE, _LUMP_SAMPLES = 0.05, 25


@dataclass(frozen=True)
class RoundMixture:
    """Round normal kernels in the scaled space: what every density algorithm returns."""

    centers: Array
    widths: Array
    weights: Array
    rows: Array | None = None
    """Rows of the samples that the centers are; None where they are not samples."""


class ScaledRows(Protocol):
    """Scaled samples with weights that add up to one, wherever they are."""

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum, by ``+``, of ``of(Z, w)`` over blocks of rows; ``row_elements`` numbers are needed per row."""


@dataclass(frozen=True)
class DensityProblem:
    r"""Samples that take part, scaled, in double precision.

    ======================== ==============
    symbol                   name
    ======================== ==============
    :math:`x_i`              rows of ``Z``
    :math:`w_i`              ``w``
    :math:`\sigma^{\rm Par}` ``unit``
    ======================== ==============

    Parameters
    ----------
    Z : array of shape (n, m)
    w : array of shape (n,)
        Positive; they add up to one.
    candidates : integer array of shape (c,)
        Rows of ``Z`` that may become centers, ascending.
    unit : float
        The bandwidth that all bandwidths are measured in: that of Parzen's estimate, once it is known. Kernel values
        are computed up to the factor :math:`(2\pi)^{m/2}` ``unit`` :math:`{}^m`: the algorithms only compare them, and
        so nothing overflows in many dimensions.
    """

    Z: Array
    w: Array
    candidates: Array
    unit: float = 1.0

    @classmethod
    def of(cls, Z: Array, w: Array, unit: float = 1.0) -> DensityProblem:
        """Every sample is a candidate; the weights are made to add up to one."""
        xp = namespace(Z)
        return cls(Z, w / xp.sum(w), xp.arange(Z.shape[0], dtype=xp.int64, device=device(Z)), unit)

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.Z.shape[0])

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.Z.shape[1])

    @property
    def centers(self) -> Array:
        """The candidates."""
        return take_rows(self.Z, self.candidates)

    @property
    def effective_size(self) -> float:
        r""":math:`N_{\rm eff} = 1 / \sum_i w_i^2`."""
        return 1.0 / float(namespace(self.w).sum(self.w * self.w))

    @property
    def spread(self) -> float:
        """Root of the mean over the features of the weighted variance."""
        gap = self.Z - (self.w @ self.Z)
        return math.sqrt(float(namespace(gap).sum(self.w @ (gap * gap))) / self.dim)

    @property
    def silverman(self) -> float:
        r"""Silverman's bandwidth :math:`\bar s\,(4 / ((m+2) N_{\rm eff}))^{1/(m+4)}`."""
        return self.spread * math.pow(4.0 / ((self.dim + 2) * self.effective_size), 1.0 / (self.dim + 4))

    @property
    def scott(self) -> float:
        r"""Scott's bandwidth :math:`\bar s\,N_{\rm eff}^{-1/(m+4)}`."""
        return self.spread * math.pow(self.effective_size, -1.0 / (self.dim + 4))

    @property
    def least_width(self) -> float:
        r"""Least bandwidth of a kernel among a few, in Parzen bandwidths: :math:`\min(1.5, ((m+2)n/4)^{1/(m+4)})`.

        A normal lump of ``n`` samples is that many Silverman bandwidths wide: in many dimensions hardly more than one,
        and a higher floor would be too wide for every lump. Here ``n`` is one in 20 of the samples, and 25 at least.
        """
        lump = max(_LUMP_SHARE * self.effective_size, _LUMP_SAMPLES)
        return max(1.0, min(_FLOOR, math.pow((self.dim + 2) * lump / 4.0, 1.0 / (self.dim + 4))))

    def draw(self, limit: int, rng: Any) -> Array:
        """At most ``limit`` row numbers, drawn without replacement, ascending; all rows if that is enough."""
        drawn = range(self.n) if self.n <= limit else sorted(rng.choice(self.n, limit, replace=False).tolist())
        return asarray_like(list(drawn), self.candidates, dtype=self.candidates.dtype)

    def with_candidates(self, limit: int, rng: Any) -> DensityProblem:
        """The same samples with at most ``limit`` of them as candidates."""
        return replace(self, candidates=self.draw(limit, rng))

    def share(self, rows: Sequence[int]) -> float:
        """Total weight of the samples at ``rows``."""
        w = take_rows(self.w, asarray_like(rows, self.candidates, dtype=self.candidates.dtype))
        return float(namespace(w).sum(w))

    def part(self, rows: Array | Sequence[int]) -> DensityProblem:
        """The samples at ascending ``rows``, and the candidates among them (all, where none of them was a candidate).

        Their weights add up to one again.
        """
        xp = namespace(self.Z)
        rows = asarray_like(rows, self.candidates, dtype=self.candidates.dtype)
        w = take_rows(self.w, rows)
        place = xp.searchsorted(rows, self.candidates)
        place = xp.clip(place, 0, int(rows.shape[0]) - 1)
        kept = place[take_rows(rows, place) == self.candidates]
        whole = DensityProblem.of(take_rows(self.Z, rows), w, self.unit)
        return replace(whole, candidates=xp.astype(kept, xp.int64, copy=False)) if kept.shape[0] else whole

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum over blocks of rows."""
        blocks = row_blocks(self.n, row_elements, like=self.Z)
        rows = next(blocks)
        found = of(self.Z[rows, :], self.w[rows])
        for rows in blocks:
            found = found + of(self.Z[rows, :], self.w[rows])  # type: ignore[operator]
        return found

    def kernel(self, D: Array, width: Array | float) -> Array:
        """Kernel values at squared distances ``D``, in the unit of the problem."""
        return normal_kernel(D, width, self.dim, self.unit)

    def parzen(self, Z: Array) -> Array:
        """Parzen's estimate of these samples, of bandwidth ``unit``, at the rows of ``Z``, in row blocks."""
        out = namespace(Z).empty((Z.shape[0],), dtype=Z.dtype, device=device(Z))
        for rows in row_blocks(int(Z.shape[0]), self.n):
            out[rows] = self.kernel(squared_distances(Z[rows, :], self.Z), self.unit) @ self.w
        return out

    def numbers(self, values: Sequence[float]) -> Array:
        """Python numbers as an array beside the samples."""
        return asarray_like(list(values), self.Z, dtype=self.Z.dtype)

    def mixture(self, rows: Sequence[int] | Array, widths: Array, weights: Array) -> RoundMixture:
        """Kernels at samples, their weights made to add up to one."""
        S = asarray_like(rows, self.candidates, dtype=self.candidates.dtype)
        return RoundMixture(take_rows(self.Z, S), widths, weights / namespace(weights).sum(weights), S)
