"""The minimization of the objective: one optimizer moves all vectors, with the labels or a teacher as targets."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fewkern.arrays.optimize import minimize_smooth
from fewkern.learn.geometry import Geometry, Host, Rows
from fewkern.learn.objective import objective, spectrum_of
from fewkern.learn.policy import Policy

# Least inverse width of a column, over the largest, that the unit of the vectors follows.
_LEAST_SCALE = 1e-3


def move(
    rows: Rows,
    geometry: Geometry,
    steps: int,
    policy: Policy,
    tol: float = 1e-5,
    promising: Callable[[Geometry], bool] = lambda _: True,
    still: bool = False,
) -> Geometry:
    """The geometry after at most ``steps`` steps of L-BFGS; one that gains less than the share ``tol`` is the last.

    Half way the search ends where the geometry is not ``promising``. Where vectors stand ``still``, only the inverse
    widths of the columns and the ridge change.

    Cost: per step about ``7 n (m + p)^2`` flops, ``p`` being the number of linear features, and where rows are many
    times the features ``n (m + p)^2``.
    """
    units, begin = _units(geometry, still), _packed(_arrays(geometry))
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
        return 2 * step == steps and not promising(at(x))

    return at(minimize_smooth(error, np.zeros_like(begin), max_iter=steps, tol=tol, watch=hopeless)[0])


def _units(geometry: Geometry, still: bool) -> Host:
    """The unit of every number that moves: vectors are measured in the metric, and directions in its mean.

    All that changes a Gaussian then changes it about as much per step, and L-BFGS needs a third fewer steps.
    """
    scales = np.exp(geometry.log_scales)
    units = [np.ones_like(array) for array in _arrays(geometry)]
    units[0] /= np.maximum(scales, _LEAST_SCALE * scales.max())  # vectors
    units[3] *= scales.mean()  # directions
    if still:
        units = [unit if at in (1, 5) else 0.0 * unit for at, unit in enumerate(units)]
    return _packed(units)


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
