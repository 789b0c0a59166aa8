"""The input of every density algorithm: scaled samples with weights and candidate centers, of any number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import neg_squared_distances
from fewkern.arrays.namespace import Array
from fewkern.arrays.numerics import quiet, unless_rounding
from fewkern.arrays.sampling import Fold
from fewkern.core.path import Path
from fewkern.core.samples import Population, Samples
from fewkern.density.edges import Edge, edges_of
from fewkern.density.mixture import KernelMixture

Sum = TypeVar("Sum")

# Logarithm of the largest kernel value: its square does not overflow.
MAX_LOG_KERNEL = 350.0


def squared_distances(X: Array, Y: Array) -> Array:
    """Squared Euclidean distances between the rows of ``X`` and those of ``Y``, never below zero."""
    return -neg_squared_distances(X, Y)


class ArraySums(tuple[Any, ...]):
    """Several sums over rows; those of parts are merged by ``+``, one by one."""

    def __add__(self, other: Any) -> ArraySums:
        return ArraySums(map(add, self, other))


@dataclass(frozen=True)
class RoundMixture:
    """Isotropic normal kernels in the scaled space: the result of every density algorithm."""

    centers: Array
    bandwidths: Array
    weights: Array
    rows: Array | None = None
    """Rows of the samples that are the centers; None where the centers are not samples."""
    edges: tuple[Edge, ...] = ()
    """Features with bounds or a period."""


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
        The unit of all bandwidths: Parzen's bandwidth, once it is known.
    edges : tuple of Edge
        Features with bounds or a period.
    """

    Z: Array
    w: Array
    candidates: Array
    unit: float = 1.0
    edges: tuple[Edge, ...] = ()

    @classmethod
    def of(cls, Z: Array, w: Array, unit: float = 1.0, edges: tuple[Edge, ...] = ()) -> DensityProblem:
        """Every sample is a candidate; the weights are normalized."""
        return cls(Z, w / np.sum(w), np.arange(len(Z)), unit, edges)

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

    def narrowing(self, size: float) -> float:
        r"""Parzen's bandwidth for ``size`` samples over that for these: it falls like :math:`N^{-1/(m+4)}`."""
        return math.pow(self.effective_size / size, 1.0 / (self.dim + 4))

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
    def least_bandwidth(self) -> float:
        r"""Least bandwidth of a kernel among few, in Parzen bandwidths: :math:`\min(1.5, ((m+2)n/4)^{1/(m+4)})`.

        1.5 is the smoothing that a mixture of few kernels needs in few dimensions. A normal cluster of ``n`` samples is
        as wide as the other number, in Silverman bandwidths: in many dimensions hardly more than one, so that a higher
        floor would be wider than any cluster. The smallest cluster to be resolved has 5% of the samples, and at least
        25.
        """
        cluster = max(0.05 * self.effective_size, 25)
        return max(1.0, min(1.5, math.pow((self.dim + 2) * cluster / 4.0, 1.0 / (self.dim + 4))))

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
        whole = DensityProblem.of(self.Z[rows], self.w[rows], self.unit, self.edges)
        kept = np.flatnonzero(np.isin(rows, self.candidates, assume_unique=True))
        return replace(whole, candidates=kept) if len(kept) else whole

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum, by ``+``, of ``of(Z, w)`` over row blocks; ``row_elements`` numbers are needed per row."""
        return reduce(add, (of(self.Z[rows], self.w[rows]) for rows in row_blocks(self.n, row_elements)))

    def kernel(self, D: Array, bandwidth: Array | float) -> Array:
        r"""Kernel values :math:`(u/\sigma)^m \exp(-D / 2\sigma^2)` at squared distances ``D``, FCR (2).

        They are normal densities times :math:`(2\pi)^{m/2} u^m`, with the unit :math:`u` of the problem: the algorithms
        only compare them, and nothing overflows in many dimensions.
        """
        # one exponential of a sum: a power on its own overflows in many dimensions
        level = np.minimum(self.dim * np.log(self.unit / bandwidth), MAX_LOG_KERNEL)
        return np.exp(D * (-0.5 / bandwidth**2) + level)

    def parzen(self, Z: Array) -> Array:
        """Parzen's estimate from these samples, of bandwidth ``unit``, at the rows of ``Z``, in row blocks."""
        blocks = row_blocks(len(Z), self.n)
        return np.concatenate([self.kernel(squared_distances(Z[rows], self.Z), self.unit) @ self.w for rows in blocks])

    def mixture(self, rows: Sequence[int] | Array, bandwidths: Array | float, weights: Array) -> RoundMixture:
        """Kernels at samples, with normalized weights; one bandwidth may stand for all."""
        rows = np.asarray(rows)
        bandwidths = np.broadcast_to(np.asarray(bandwidths, dtype=float), rows.shape)
        return RoundMixture(self.Z[rows], bandwidths, np.asarray(weights) / np.sum(weights), rows)

    def held_out_weights(self, folds: list[Fold]) -> Array:
        """Weights of the held-out samples, fold after fold, normalized."""
        w = np.concatenate([self.w[list(test)] for _, test in folds])
        return w / np.sum(w)

    def error_terms(self, mixture: RoundMixture, Z: Array) -> Array:
        r"""Terms :math:`g'Bg - 2\hat p(x_i)` of the integrated squared error at held-out samples ``Z``.

        .. math:: B_{ij} = K(c_i, c_j, \sqrt{\sigma_i^2 + \sigma_j^2})
        """
        g, bandwidths = mixture.weights, mixture.bandwidths
        spread = np.sqrt(bandwidths[:, None] ** 2 + bandwidths[None, :] ** 2)
        B = self.kernel(squared_distances(mixture.centers, mixture.centers), spread)
        return g @ (B @ g) - 2.0 * (self.kernel(squared_distances(Z, mixture.centers), bandwidths) @ g)


def paired_errors(terms: Sequence[Array], w: Array) -> tuple[Array, Array]:
    """Weighted means of several rows of ``terms``, and the standard errors of their differences to the least."""
    T = np.stack(terms)
    means = T @ w
    gap = T - T[np.argmin(means)]
    gap = gap - (gap @ w)[:, None]
    return means, np.sqrt((gap * gap) @ w * np.sum(w * w))  # the last factor is 1 / N_eff


def size_path(error: Array, chosen: int, measure: str, spread: Array | None = None) -> Path:
    """Errors of mixtures of 1, 2, ... kernels, and the position of the one that is taken."""
    sizes = tuple(float(k + 1) for k in range(len(error)))
    spread = np.zeros_like(error) if spread is None else spread
    return Path({"n_vectors": sizes}, error, spread, (chosen,), measure=measure)


@dataclass(frozen=True)
class Scaling:
    """The map ``z = A (x - mean)``; a flat ``transform`` stands for a diagonal ``A``."""

    mean: Array
    transform: Array
    constant: int
    """Number of constant features (with "whiten": of constant directions)."""
    spreads: Array
    """Standard deviations of the features that are not constant."""
    bounds: Array | None = None
    """Bounds of the features, ``(2, m)``, infinite where there is none; only together with ``periods`` ``(m,)``."""
    periods: Array | None = None

    def apply(self, X: Array) -> Array:
        """``X`` in the scaled space."""
        X = X - self.mean
        return X * self.transform if self.transform.ndim == 1 else X @ self.transform.T

    def invert(self, Z: Array) -> Array:
        """``Z`` in the units of the data."""
        if self.transform.ndim == 1:
            return Z / self.transform + self.mean
        return np.linalg.solve(self.transform, Z.T).T + self.mean

    def then(self, further: Array) -> Scaling:
        """This map, and then the matrix ``further`` (on columns of samples)."""
        A = np.diag(self.transform) if self.transform.ndim == 1 else self.transform
        return replace(self, transform=further @ A)

    def problem(self, samples: Samples) -> DensityProblem:
        """The samples as the algorithms take them."""
        X, w = _double(samples)
        edges = edges_of(self.bounds, self.periods, self.mean, self.transform)
        return DensityProblem.of(self.apply(X), w, edges=edges)

    def mixture(self, found: RoundMixture, samples: Samples) -> KernelMixture:
        """The density in the units of the data; centers that are samples equal those samples exactly."""
        X = samples.X
        if found.rows is None:
            vectors, indices = self.invert(found.centers).astype(X.dtype), None
        else:
            vectors, indices = X[found.rows], samples.all_rows(found.rows)
        weights = found.weights / np.sum(found.weights)
        weights, bandwidths, transform = (a.astype(X.dtype) for a in (weights, found.bandwidths, self.transform))
        mixture = KernelMixture(vectors, weights, bandwidths, transform, indices)
        if self.bounds is None or self.periods is None:
            return mixture
        bounds, periods = self.bounds.astype(X.dtype), self.periods.astype(X.dtype)
        # a center at a bound may be beyond it by rounding
        return replace(mixture, vectors=np.clip(vectors, *bounds), bounds=bounds, periods=periods)


@dataclass(frozen=True)
class AllRows:
    """All rows of a population, scaled by the moments of all; their weights are normalized."""

    population: Population
    scaling: Scaling
    weight: float
    """Sum of the weights before normalization."""
    effective_size: float

    @classmethod
    def of(cls, population: Population, scale: str) -> AllRows:
        """Scaled by "std" (or "auto"), "whiten" or "none"; one pass over the rows."""
        # The rows are measured from the mean of some of them and in units of about their reach, so that no digits
        # cancel and no square overflows.
        X, w = _double(population.sample)
        origin = (w / np.sum(w)) @ X
        reach = np.max(np.abs(X - origin), axis=0)
        unit = np.where(reach > 0, reach, np.abs(origin))
        unit = np.where(unit > 0, unit, 1.0)
        moments = population.total(partial(_moments, origin, unit, scale == "whiten"), 2 * X.shape[1])
        weight, square = float(moments[0]), float(moments[1])
        scaling = _scaling(moments, origin, unit, np.abs(origin) + reach, scale)
        return cls(population, scaling, weight, weight * weight / square)

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum, by ``+``, of ``of(Z, w)`` over row blocks: one pass."""
        return self.population.total(partial(_of_scaled, self.scaling, self.weight, of), row_elements)


def _double(samples: Samples) -> tuple[Array, Array]:
    """Samples and weights in double precision."""
    return samples.X.astype(np.float64), samples.weights.astype(np.float64)


def _of_scaled(scaling: Scaling, weight: float, of: Callable[[Array, Array], Sum], samples: Samples) -> Sum:
    X, w = _double(samples)
    return of(scaling.apply(X), w / weight)


def _moments(origin: Array, unit: Array, pairs: bool, samples: Samples) -> ArraySums:
    """Sums of the weights and of their squares; weighted, of every feature ``(m,)`` and of its square ``(m,)``.

    With ``pairs`` the last one is that of the products of every pair ``(m, m)``.
    """
    X, w = _double(samples)
    gap = (X - origin) / unit
    second = gap.T @ (w[:, None] * gap) if pairs else w @ (gap * gap)
    return ArraySums((np.sum(w), np.sum(w * w), w @ gap, second))


def _scaling(moments: ArraySums, origin: Array, unit: Array, sizes: Array, scale: str) -> Scaling:
    """The scaling of samples with these moments; a spread that is rounding of numbers of these ``sizes`` is none.

    A constant direction gets the mean spread of the others: a density needs some bandwidth there, and theirs is the
    only length the data offer.
    """
    weight, _, first, second = moments
    shift, second = first / weight, second / weight
    mean = origin + unit * shift
    variance = (np.diagonal(second) if second.ndim == 2 else second) - shift * shift
    spread = unless_rounding(unit * np.sqrt(np.maximum(variance, 0.0)), sizes)
    flat = spread == 0
    spreads = spread[~flat]
    constant, spread = _filled(spread, flat)
    if scale == "none":
        return Scaling(mean, np.ones_like(spread), constant, spreads)
    with quiet():  # the inverse of a spread below 1e-308 is infinite; the caller checks the transform
        if scale in ("std", "auto"):
            return Scaling(mean, 1.0 / spread, constant, spreads)
        # directions of standardized features: units do not decide which of them are constant
        relative = np.where(flat, 0.0, unit / spread)
        covariance = second - shift[:, None] * shift[None, :]
        correlation = relative[:, None] * covariance * relative[None, :]
        np.fill_diagonal(correlation, ~flat)  # exactly one: rounding must not decide the signs of the directions
        values, vectors = np.linalg.eigh(correlation)
        values = np.maximum(values, 0.0)
        constant, length = _filled(np.sqrt(values), values <= 1e-12 * np.max(values))
        return Scaling(mean, (vectors / length).T / spread, constant, spreads)


def _filled(spread: Array, none: Array) -> tuple[int, Array]:
    """Number of constant directions (``none``), and the spreads with the mean of the others in their place."""
    count = int(np.sum(none))
    typical = np.mean(spread[~none]) if count < len(spread) else 1.0
    return count, np.where(none, typical, spread)
