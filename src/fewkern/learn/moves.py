"""The minimization of the objective: one optimizer moves all vectors, with the labels or a teacher as targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.optimize import minimize_smooth
from fewkern.learn.geometry import Geometry, Host, Rows
from fewkern.learn.objective import objective, spectrum_of
from fewkern.learn.policy import MovePolicy, Policy


@dataclass(frozen=True)
class Search:
    """How long a search goes on, and what it moves."""

    steps: int
    """Largest number of steps."""
    least_gain: float | None = None
    """Share of the error below which the gain of a step ends the search; None is that of the policy."""
    promising: Callable[[Geometry], bool] = lambda _: True
    """Whether the search goes on from a geometry half way."""
    still: bool = False
    """Whether the vectors stand still: only the inverse widths of the columns and the ridge then change."""


def move(rows: Rows, geometry: Geometry, search: Search, policy: Policy) -> Geometry:
    """The geometry after some steps of L-BFGS.

    Cost: per step about ``7 n (m + p)^2`` flops, ``p`` being the number of linear features, and where rows are many
    times the features ``n (m + p)^2``.
    """
    units, begin = _units(geometry, search.still, policy.moves), _packed(_arrays(geometry))
    spectrum = spectrum_of(rows, geometry, policy)

    def at(x: Host) -> Geometry:
        return _unpacked(begin + x * units, geometry)

    def error(x: Host) -> tuple[float, Host]:
        try:
            value, gradient = objective(rows, at(x), policy, spectrum)
        except (ValueError, OverflowError):  # a line search went too far: no inverse, or an overflow
            return math.inf, x
        return value, _packed(_arrays(gradient)) * units

    def hopeless(step: int, x: Host) -> bool:
        return 2 * step == search.steps and not search.promising(at(x))

    least_gain = policy.moves.least_gain if search.least_gain is None else search.least_gain
    start, steps = np.zeros_like(begin), search.steps
    return at(minimize_smooth(error, start, max_iter=steps, tol=least_gain, watch=hopeless)[0])


def _units(geometry: Geometry, still: bool, policy: MovePolicy) -> Host:
    """The unit of every number that moves: vectors are measured in the metric, and directions in its mean.

    All that changes a Gaussian then changes it about as much per step, and L-BFGS needs a third fewer steps.
    """
    scales = np.exp(geometry.log_scales)
    vectors, columns, widths, directions, changes, ridge = (np.ones_like(array) for array in _arrays(geometry))
    vectors /= np.maximum(scales, policy.least_scale * scales.max())
    directions *= scales.mean()
    if still:
        for units in (vectors, widths, directions, changes):
            units *= 0.0
    return _packed([vectors, columns, widths, directions, changes, ridge])


def _arrays(geometry: Geometry) -> list[Host]:
    """Everything that moves."""
    changes = np.zeros(0) if geometry.warp is None else geometry.warp.parameters
    gaussian = geometry.vectors, geometry.log_scales, geometry.log_widths, geometry.directions
    return [*gaussian, changes, np.array([geometry.log_ridge])]


def _packed(arrays: list[Host]) -> Host:
    return np.concatenate([array.ravel() for array in arrays])


def _unpacked(x: Host, like: Geometry) -> Geometry:
    old = _arrays(like)
    parts = np.split(x, np.cumsum([array.size for array in old])[:-1])
    vectors, scales, widths, directions, changes, ridge = (part.reshape(a.shape) for part, a in zip(parts, old))
    warp = None if like.warp is None else like.warp.moved(changes)
    return Geometry(vectors, scales, widths, directions, float(ridge[0]), warp)
