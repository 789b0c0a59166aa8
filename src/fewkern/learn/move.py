"""The one programme that moves vectors: L-BFGS on the leave-one-out error, with the labels or a teacher as targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fewkern.backend.namespace import asarray_like, namespace
from fewkern.backend.optimize import host_vector, minimize_smooth
from fewkern.learn.objective import Geometry, Rows, objective

__all__ = ["move"]

_PARTS = ("vectors", "log_scales", "log_widths", "directions", "log_ridge")


def move(rows: Rows, geometry: Geometry, steps: int, least_ridge: float, tol: float = 1e-5) -> Geometry:
    """The geometry after at most ``steps`` steps downhill; a step that gains less than the share ``tol`` is the last.

    Cost: about ``4 n (m + p)^2`` flops per step, ``p`` being the number of linear features.
    """

    def error(x: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        try:
            value, gradient = objective(rows, _unpacked(x, geometry), least_ridge)
        except (ValueError, OverflowError):  # a line search went too far: no inverse, or no number
            return math.inf, x
        return value, _packed(gradient)

    found = minimize_smooth(error, _packed(geometry), max_iter=steps, tol=tol)
    return _unpacked(found.x, geometry)


def _packed(geometry: Geometry) -> np.ndarray[Any, Any]:
    return host_vector(*(getattr(geometry, name) for name in _PARTS))


def _unpacked(x: np.ndarray[Any, Any], like: Geometry) -> Geometry:
    found, first = {}, 0
    for name in _PARTS[:-1]:
        part = getattr(like, name)
        size = int(np.prod(part.shape))
        values = x[first : first + size].reshape(tuple(int(n) for n in part.shape))
        found[name] = asarray_like(values, part, dtype=namespace(part).float64)
        first += size
    return Geometry(**found, log_ridge=float(x[first]))
