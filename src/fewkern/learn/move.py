"""The one programme that moves vectors: L-BFGS on the leave-one-out error, with the labels or a teacher as targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fewkern.arrays.optimize import minimize_smooth
from fewkern.learn.objective import Geometry, Rows, objective
from fewkern.learn.policy import Policy

Host = np.ndarray[Any, Any]
_ARRAYS = ("vectors", "log_scales", "log_widths", "directions")
# Least inverse width of a column, over the largest, that the unit of the vectors follows.
_LEAST_SCALE = 1e-3


def move(
    rows: Rows,
    geometry: Geometry,
    steps: int,
    policy: Policy,
    tol: float = 1e-5,
    promising: Callable[[Geometry], bool] = lambda _: True,
) -> Geometry:
    """The geometry after at most ``steps`` steps downhill; a step that gains less than the share ``tol`` is the last.

    Half way the search ends where the geometry is not ``promising``.

    Cost: about ``7 n (m + p)^2`` flops per step, ``p`` being the number of linear features.
    """

    units = _units(geometry)

    def at(x: Host) -> Geometry:
        return _unpacked(x * units, geometry)

    def error(x: Host) -> tuple[float, Host]:
        try:
            value, gradient = objective(rows, at(x), policy)
        except (ValueError, OverflowError):  # a line search went too far: no inverse, or no number
            return math.inf, x
        return value, _packed(gradient) * units

    def hopeless(step: int, x: Host) -> bool:
        return 2 * step == steps and not promising(at(x))

    return at(minimize_smooth(error, _packed(geometry) / units, max_iter=steps, tol=tol, watch=hopeless)[0])


def _units(geometry: Geometry) -> Host:
    """The unit of every number that moves: vectors are measured in the metric, and directions in its mean.

    All that changes a Gaussian then changes it about as much per step, and L-BFGS needs a third fewer steps.
    """
    scales = np.exp(geometry.log_scales)
    lengths = {"vectors": 1.0 / np.maximum(scales, _LEAST_SCALE * scales.max()), "directions": scales.mean()}
    arrays = [np.broadcast_to(lengths.get(name, 1.0), getattr(geometry, name).shape).ravel() for name in _ARRAYS]
    logarithms = 1 if geometry.warp is None else geometry.warp.log_slopes.size + 1
    return np.concatenate([*arrays, np.ones(logarithms)])


def _packed(geometry: Geometry) -> Host:
    arrays = [getattr(geometry, name) for name in _ARRAYS]
    if geometry.warp is not None:
        arrays.append(geometry.warp.log_slopes)
    return np.concatenate([*(array.ravel() for array in arrays), [geometry.log_ridge]])


def _unpacked(x: Host, like: Geometry) -> Geometry:
    arrays, first = {}, 0
    for name in _ARRAYS:
        old = getattr(like, name)
        arrays[name] = x[first : first + old.size].reshape(old.shape)
        first += old.size
    warp = like.warp
    if warp is not None:
        warp = replace(warp, log_slopes=x[first:-1].reshape(warp.log_slopes.shape))
    return Geometry(**arrays, log_ridge=float(x[-1]), warp=warp)
