"""The linear map in front of an isotropic kernel: none, one number per feature, or whitening; any number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.numerics import column_spreads, quiet, unless_rounding
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.density.mixture import KernelMixture
from fewkern.density.problem import DensityProblem, RoundMixture, Sum

__all__ = ["AllRows", "Scale", "Scaling", "fit_scaling", "scaling_of"]

Scale = Literal["none", "std", "whiten"]
# A direction is constant, up to rounding, if its variance is below this part of the largest one.
_CONSTANT_VARIANCE_RATIO = 1e-12


@dataclass(frozen=True)
class Scaling:
    """The map ``z = A (x - mean)``; a flat ``transform`` stands for a diagonal ``A``."""

    mean: Array
    transform: Array
    constant: int
    """Number of constant features (with "whiten": of constant directions)."""
    reach: float
    """Largest distance of a sample from the mean in one feature."""

    def apply(self, X: Array) -> Array:
        """``X`` in the scaled space."""
        X = X - self.mean
        return X * self.transform if self.transform.ndim == 1 else X @ self.transform.T

    def invert(self, Z: Array) -> Array:
        """``Z`` in the units of the data."""
        if self.transform.ndim == 1:
            return Z / self.transform + self.mean
        return np.linalg.solve(self.transform, Z.T).T + self.mean

    def problem(self, samples: Samples) -> DensityProblem:
        """The samples as the algorithms take them."""
        X, w = _double(samples)
        return DensityProblem.of(self.apply(X), w)

    def mixture(self, found: RoundMixture, samples: Samples) -> KernelMixture:
        """The density in the units of the data; centers that are samples equal those samples exactly."""
        X = samples.X
        if found.rows is None:
            vectors, indices = self.invert(found.centers).astype(X.dtype), None
        else:
            vectors, indices = X[found.rows], samples.all_rows(found.rows)
        weights = found.weights / np.sum(found.weights)
        weights, widths, transform = (a.astype(X.dtype) for a in (weights, found.widths, self.transform))
        return KernelMixture(vectors, weights, widths, transform, indices)


def _double(samples: Samples) -> tuple[Array, Array]:
    """Samples and weights in double precision."""
    return samples.X.astype(np.float64), samples.weights.astype(np.float64)


def fit_scaling(X: Array, w: Array, scale: Scale) -> Scaling:
    """Scaling of samples ``X`` with weights ``w`` of any positive sum.

    A constant direction gets the mean spread of the others: a density needs some bandwidth there, and theirs is the
    only length the data offer.
    """
    w = w / np.sum(w)
    mean = w @ X
    reach = float(np.max(np.abs(X - mean)))
    constant, spread = _filled(column_spreads(X, w))
    if scale != "whiten":
        return _by_features(mean, spread, scale, constant, reach)
    gap = (X - mean) / spread
    return _by_directions(mean, spread, gap.T @ (w[:, None] * gap), reach)


def scaling_of(samples: Samples, scale: Scale) -> Scaling:
    """Scaling of samples in memory, in double precision."""
    return fit_scaling(*_double(samples), scale)


@dataclass(frozen=True)
class AllRows:
    """All rows of a population, scaled by the moments of all; their weights are normalized."""

    population: Population
    scaling: Scaling
    weight: float
    """Sum of the weights before normalization."""
    effective_size: float

    @classmethod
    def of(cls, population: Population, scale: Scale) -> AllRows:
        """One pass over the rows."""
        found = population.total(_MomentSums.near(population.sample, scale), 2 * int(population.sample.X.shape[1]))
        effective_size = float(found.weight * found.weight / found.square)
        return cls(population, found.scaling(scale), float(found.weight), effective_size)

    def total(self, of: Callable[[Array, Array], Sum], row_elements: int) -> Sum:
        """The sum over row blocks: one pass."""
        return self.population.total(_Scaled(self.scaling, self.weight, of), row_elements)

    def narrowing(self, problem: DensityProblem) -> float:
        r"""Parzen's bandwidth for all rows over that for the ``problem``, which holds some of them.

        It falls with the number of samples like :math:`N^{-1/(m+4)}`.
        """
        return math.pow(problem.effective_size / self.effective_size, 1.0 / (problem.dim + 4))


@dataclass(frozen=True)
class _Scaled:
    """A function of scaled samples as a function of samples."""

    scaling: Scaling
    weight: float
    of: Callable[[Array, Array], Any]

    def __call__(self, samples: Samples) -> Any:
        X, w = _double(samples)
        return self.of(self.scaling.apply(X), w / self.weight)


@dataclass(frozen=True)
class _Moments:
    """Sums over samples that determine their scaling; those of parts are merged by ``+``.

    The samples are measured from an ``origin`` among them and in units of about their reach, so that no digits cancel
    and no square overflows.
    """

    origin: Array
    unit: Array
    weight: Array
    square: Array
    """Sum of the squared weights."""
    first: Array
    second: Array
    """Of every feature ``(m,)``, or of every pair ``(m, m)``."""
    least: Array
    largest: Array

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(
            self.origin,
            self.unit,
            self.weight + other.weight,
            self.square + other.square,
            self.first + other.first,
            self.second + other.second,
            np.minimum(self.least, other.least),
            np.maximum(self.largest, other.largest),
        )

    def scaling(self, scale: Scale) -> Scaling:
        """The result of :func:`fit_scaling` for all these samples."""
        shift = self.first / self.weight
        mean = self.origin + self.unit * shift
        reach = float(np.max(np.maximum(self.largest - mean, mean - self.least)))
        second = self.second / self.weight
        variance = (np.diagonal(second) if second.ndim == 2 else second) - shift * shift
        spread = self.unit * np.sqrt(np.maximum(variance, 0.0))
        spread = unless_rounding(spread, np.maximum(np.abs(self.least), np.abs(self.largest)))
        constant, spread = _filled(spread)
        if scale != "whiten":
            return _by_features(mean, spread, scale, constant, reach)
        relative = self.unit / spread
        covariance = second - shift[:, None] * shift[None, :]
        return _by_directions(mean, spread, relative[:, None] * covariance * relative[None, :], reach)


@dataclass(frozen=True)
class _MomentSums:
    """The moments of a block of samples."""

    origin: Array
    unit: Array
    pairs: bool

    @classmethod
    def near(cls, samples: Samples, scale: Scale) -> _MomentSums:
        """Measured from the mean of some of the samples, in units of their reach."""
        X, w = _double(samples)
        origin = (w / np.sum(w)) @ X
        reach = np.max(np.abs(X - origin), axis=0)
        unit = np.where(reach > 0, reach, np.abs(origin))
        return cls(origin, np.where(unit > 0, unit, 1.0), scale == "whiten")

    def __call__(self, samples: Samples) -> _Moments:
        X, w = _double(samples)
        gap = (X - self.origin) / self.unit
        second = gap.T @ (w[:, None] * gap) if self.pairs else w @ (gap * gap)
        some = X if samples.n else self.origin[None, :]  # an empty block; the origin is among the samples
        least, largest = np.min(some, axis=0), np.max(some, axis=0)
        return _Moments(self.origin, self.unit, np.sum(w), np.sum(w * w), w @ gap, second, least, largest)


def _by_features(mean: Array, spread: Array, scale: Scale, constant: int, reach: float) -> Scaling:
    if scale == "none":
        return Scaling(mean, np.ones_like(spread), constant, reach)
    with quiet():  # the inverse of a spread below 1e-308 is infinite; the caller checks the reach
        return Scaling(mean, 1.0 / spread, constant, reach)


def _by_directions(mean: Array, spread: Array, correlation: Array, reach: float) -> Scaling:
    """Directions of standardized features: units do not decide which of them are constant."""
    values, vectors = np.linalg.eigh(correlation)
    values = np.maximum(values, 0.0)
    constant, length = _filled(np.sqrt(values), values <= _CONSTANT_VARIANCE_RATIO * np.max(values))
    with quiet():
        return Scaling(mean, (vectors / length).T / spread, constant, reach)


def _filled(spread: Array, none: Array | None = None) -> tuple[int, Array]:
    """Number of constant directions, and the spreads with the mean of the others in their place."""
    none = spread == 0 if none is None else none
    count = int(np.sum(none))
    typical = np.mean(spread[~none]) if count < len(spread) else 1.0
    return count, np.where(none, typical, spread)
