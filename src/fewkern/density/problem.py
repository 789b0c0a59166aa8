"""The input of every density algorithm: scaled samples, weights, a unit of bandwidth and candidate centers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.namespace import Array
from fewkern.density.mixture import squared_distances

__all__ = ["MAX_LOG_KERNEL", "DensityProblem", "RoundMixture", "ScaledRows", "normal_kernel"]

Sum = TypeVar("Sum")

# Least bandwidth of a kernel in few dimensions: the smoothing that a mixture of few kernels needs.
_FLOOR_IN_PARZEN_BANDWIDTHS = 1.5
# The smallest cluster that the least bandwidth must resolve: a share of the samples, and an absolute minimum.
_CLUSTER_SHARE, _CLUSTER_SAMPLES = 0.05, 25
# Logarithm of the largest kernel value: its square does not overflow.
MAX_LOG_KERNEL = 350.0


def normal_kernel(D: Array, width: Array | float, dim: int, unit: float) -> Array:
    r"""Normal density up to a constant: :math:`(u/\sigma)^m \exp(-D / 2\sigma^2)`, FCR (2).

    With ``unit`` :math:`u = (2\pi)^{-1/2}` it is the density itself. The algorithms take Parzen's bandwidth: all their
    comparisons are invariant to the factor, and nothing overflows in many dimensions.

    Parameters
    ----------
    D : array
        Squared distances.
    width : array or float
        One standard deviation; broadcasts against ``D``.
    dim : int
        Number of features ``m``.
    unit : float
    """
    # one exponential of a sum: a power on its own overflows in many dimensions
    level = np.minimum(dim * np.log(unit / width), MAX_LOG_KERNEL)
    return np.exp(D * (-0.5 / width**2) + level)


@dataclass(frozen=True)
class RoundMixture:
    """Isotropic normal kernels in the scaled space: the result of every density algorithm."""

    centers: Array
    widths: Array
    weights: Array
    rows: Array | None = None
    """Rows of the samples that are the centers; None where the centers are not samples."""


class ScaledRows(Protocol):
    """Scaled samples with weights that sum to one, in memory or elsewhere."""

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum, by ``+``, of ``of(Z, w)`` over row blocks; ``row_elements`` numbers are needed per row."""


@dataclass(frozen=True)
class DensityProblem:
    r"""Scaled samples of positive weight, as NumPy arrays in double precision.

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
        Positive; they sum to one.
    candidates : integer array of shape (c,)
        Rows of ``Z`` that may become centers, ascending.
    unit : float
        The unit of all bandwidths: Parzen's bandwidth, once it is known. Kernel values are computed up to the factor
        :math:`(2\pi)^{m/2}` ``unit`` :math:`{}^m`: the algorithms only compare them, and nothing overflows in many
        dimensions.
    """

    Z: Array
    w: Array
    candidates: Array
    unit: float = 1.0

    @classmethod
    def of(cls, Z: Array, w: Array, unit: float = 1.0) -> DensityProblem:
        """Every sample is a candidate; the weights are normalized."""
        return cls(Z, w / np.sum(w), np.arange(len(Z)), unit)

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
        return self.Z[self.candidates]

    @property
    def effective_size(self) -> float:
        r""":math:`N_{\rm eff} = 1 / \sum_i w_i^2`."""
        return 1.0 / float(np.sum(self.w * self.w))

    @property
    def rest(self) -> Array:
        r"""Weight :math:`1 - w_i` of all other samples; positive also where one sample has nearly all the weight."""
        rest = 1.0 - self.w
        heaviest = int(np.argmax(self.w))
        if rest[heaviest] < 0.5:  # the difference cancels; every other weight is below one half
            rest[heaviest] = np.sum(np.delete(self.w, heaviest))
        return rest

    @property
    def spread(self) -> float:
        """Root mean square over the features of the weighted standard deviation."""
        gap = self.Z - (self.w @ self.Z)
        return math.sqrt(float(np.sum(self.w @ (gap * gap))) / self.dim)

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
        r"""Least bandwidth of a kernel among few, in Parzen bandwidths: :math:`\min(1.5, ((m+2)n/4)^{1/(m+4)})`.

        A normal cluster of ``n`` samples is that many Silverman bandwidths wide: in many dimensions hardly more than
        one, so that a higher floor would be wider than any cluster. Here ``n`` is 5% of the samples, and at least 25.
        """
        cluster = max(_CLUSTER_SHARE * self.effective_size, _CLUSTER_SAMPLES)
        width = math.pow((self.dim + 2) * cluster / 4.0, 1.0 / (self.dim + 4))
        return max(1.0, min(_FLOOR_IN_PARZEN_BANDWIDTHS, width))

    def draw(self, limit: int, rng: Any) -> Array:
        """At most ``limit`` row numbers, drawn without replacement, ascending; all rows where there are no more."""
        return np.arange(self.n) if self.n <= limit else np.sort(rng.choice(self.n, limit, replace=False))

    def with_candidates(self, limit: int, rng: Any) -> DensityProblem:
        """The same samples with at most ``limit`` of them as candidates."""
        return replace(self, candidates=self.draw(limit, rng))

    def part(self, rows: Array | Sequence[int]) -> DensityProblem:
        """The samples at ascending ``rows``, and the candidates among them (all, where none of them was a candidate).

        The weights are normalized again.
        """
        rows = np.asarray(rows)
        whole = DensityProblem.of(self.Z[rows], self.w[rows], self.unit)
        kept = np.flatnonzero(np.isin(rows, self.candidates, assume_unique=True))
        return replace(whole, candidates=kept) if len(kept) else whole

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum over row blocks."""
        blocks = row_blocks(self.n, row_elements)
        rows = next(blocks)
        found = of(self.Z[rows], self.w[rows])
        for rows in blocks:
            found = found + of(self.Z[rows], self.w[rows])  # type: ignore[operator]
        return found

    def kernel(self, D: Array, width: Array | float) -> Array:
        """Kernel values at squared distances ``D``, in the unit of the problem."""
        return normal_kernel(D, width, self.dim, self.unit)

    def parzen(self, Z: Array) -> Array:
        """Parzen's estimate from these samples, of bandwidth ``unit``, at the rows of ``Z``, in row blocks."""
        blocks = row_blocks(len(Z), self.n)
        return np.concatenate([self.kernel(squared_distances(Z[rows], self.Z), self.unit) @ self.w for rows in blocks])

    def mixture(self, rows: Sequence[int] | Array, widths: Array | float, weights: Array) -> RoundMixture:
        """Kernels at samples, with normalized weights; one ``width`` may stand for all."""
        rows = np.asarray(rows)
        widths = np.broadcast_to(np.asarray(widths, dtype=float), rows.shape)
        return RoundMixture(self.Z[rows], widths, np.asarray(weights) / np.sum(weights), rows)
