"""Bounds and periods of features as a user gives them, and samples that must agree with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.core.samples import Samples
from fewkern.density.edges import edges_of
from fewkern.density.mixture import KernelMixture
from fewkern.density.problem import DensityProblem, Scaling

__all__ = ["Supports", "read_supports"]


@dataclass(frozen=True)
class Supports:
    """Where features can lie, in the units of the data; infinite numbers stand for no bound and no period."""

    bounds: Array
    """Shape ``(2, m)``."""
    periods: Array
    """Shape ``(m,)``."""

    def cut(self, samples: Samples) -> Samples:
        """Samples with periodic features cut opposite their circular mean, so that no cluster lies on the cut."""
        X = samples.X.copy()
        w = samples.weights.astype(float)
        for d in np.flatnonzero(np.isfinite(self.periods)):
            period, x = self.periods[d], X[:, d].astype(float)
            turn = np.exp(2j * np.pi * np.remainder(x, period) / period)
            middle = period * np.angle(w @ turn) / (2 * np.pi)
            X[:, d] = middle + np.remainder(x - middle + 0.5 * period, period) - 0.5 * period
        return replace(samples, X=X)

    def place(self, problem: DensityProblem, scaling: Scaling) -> DensityProblem:
        """The problem with the edges of its features."""
        return replace(problem, edges=edges_of(self.bounds, self.periods, scaling.mean, scaling.transform))

    def mixture(self, mixture: KernelMixture) -> KernelMixture:
        """The density with these supports, its centers in the range."""
        dtype = mixture.vectors.dtype
        bounds, periods = self.bounds.astype(dtype), self.periods.astype(dtype)
        vectors, finite = mixture.vectors, np.isfinite(periods)
        wrapped = np.where(finite, np.remainder(vectors, np.where(finite, periods, 1)), vectors)
        return replace(mixture, vectors=np.clip(wrapped, *bounds), bounds=bounds, periods=periods)


def _pair(name: str, column: Any, value: Any) -> tuple[float, float]:
    """Two bounds; None stands for infinity."""
    parts = list(value) if isinstance(value, (tuple, list)) else []
    numbers = [part for part in parts if part is None or (isinstance(part, Real) and not math.isnan(part))]
    if len(numbers) == 2 == len(parts):
        low, high = (-math.inf if parts[0] is None else float(parts[0])), (math.inf if parts[1] is None else parts[1])
        if low < high and math.isfinite(high - low) | math.isfinite(low) | math.isfinite(high):
            return float(low), float(high)
    raise ValueError(
        f"{name}: bounds of feature {column!r} must be two numbers (low, high), the first the smaller one, or None for "
        f"one that there is not, got {value!r}."
    )


def read_supports(name: str, bounds: Any, periodic: Any, position: Callable[[Any], Any], X: Array) -> Supports | None:
    """The parameters ``bounds`` and ``periodic`` of the estimator ``name``, compared with samples; None for neither.

    ``position`` finds the position of a feature.
    """
    if not bounds and not periodic:
        return None
    m = X.shape[1]
    ends, periods = np.array([[-math.inf], [math.inf]]) * np.ones(m), np.full(m, math.inf)
    for word, given in (("bounds", bounds or {}), ("periodic", periodic or {})):
        if not isinstance(given, Mapping):
            raise TypeError(f"{name}: {word} must be a dict from features to numbers, got {type(given).__name__}.")
        for column, value in given.items():
            d = position(column)
            if not isinstance(d, int) or not 0 <= d < m:
                raise ValueError(f"{name}: {word} names the feature {column!r}, but there are features 0 to {m - 1}.")
            if word == "bounds":
                ends[:, d] = _pair(name, column, value)
                _check_inside(name, column, X[:, d], ends[:, d].astype(X.dtype))
            elif not isinstance(value, Real) or not 0 < float(value) < math.inf:
                raise ValueError(f"{name}: the period of feature {column!r} must be a positive number, got {value!r}.")
            elif np.any(np.isfinite(ends[:, d])):
                raise ValueError(f"{name}: feature {column!r} has bounds and a period; give one of them.")
            else:
                periods[d] = float(value)
    return Supports(ends, periods)


def _check_inside(name: str, column: Any, x: Array, ends: Array) -> None:
    outside = np.flatnonzero((x < ends[0]) | (x > ends[1]))
    if len(outside):
        raise ValueError(
            f"{name}: feature {column!r} has bounds ({ends[0]:g}, {ends[1]:g}), but {len(outside)} of {len(x)} samples "
            f"lie outside, the first with {x[outside[0]]:g}; widen the bounds, or remove these samples."
        )
