"""Minimization on the host: a smooth function of a few numbers, and logistic regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.optimize
from sklearn.linear_model import LogisticRegression

from fewkern.arrays.namespace import Array, asarray_like, to_numpy
from fewkern.arrays.numerics import quiet

__all__ = ["Minimum", "bend", "host_vector", "logistic_regression", "minimize_smooth"]

# SciPy's status of a search that its callback ended.
_STOPPED = 99

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Minimum:
    """The best point that a search has seen."""

    x: Vector
    value: float
    start_value: float
    n_iter: int
    status: str
    """"converged", "max_iter", "stopped" (by ``watch``) or "stuck" (no step lowered the function, to rounding)."""


def host_vector(*parts: Any) -> Vector:
    """Numbers and arrays of any library, one after the other, as one float64 vector on the host."""
    return np.concatenate([np.asarray(to_numpy(part), dtype=np.float64).ravel() for part in parts])


def bend(t: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Numbers between ``low < 0`` and ``high > 0`` for any ``t``, equal to it near zero; and their derivative."""
    limit = np.where(t > 0, high, low)
    share = np.tanh(t / limit)
    return limit * share, 1.0 - share * share


def minimize_smooth(
    function: Callable[[Vector], tuple[float, Vector]],
    start: Vector,
    *,
    max_iter: int,
    tol: float,
    watch: Callable[[int, Vector], bool] | None = None,
) -> Minimum:
    """Minimise ``function`` (value and gradient) by L-BFGS-B, without bounds.

    Bounds would cost as much as a quick function does, in every step. For quantities that have some, see :func:`bend`.

    Parameters
    ----------
    function : callable
        ``function(x) -> (value, gradient)``.
    start : array of shape (p,)
    max_iter : int
    tol : float
        Relative decrease of the value in one step at which the search has converged.
    watch : callable, optional
        ``watch(step, x) -> bool`` after every step, counted from one; the search ends where it is true.
    """
    best: tuple[float, Vector] = (float("inf"), start)
    first = float("nan")

    def guarded(x: Vector) -> tuple[float, Vector]:
        nonlocal best, first
        # a broken line search asks for points that are no numbers; there is nothing to evaluate, and it ends
        value, gradient = function(x) if math.isfinite(x.sum()) else (math.inf, x)
        finite = math.isfinite(value + gradient.sum())
        first = value if math.isnan(first) else first
        if not finite:
            # a line search needs a number that says "too far"
            return max(1e10, 1e10 * abs(best[0])) if np.isfinite(best[0]) else 1e10, np.zeros_like(x)
        if value < best[0]:
            best = value, x.copy()
        return value, gradient

    step = 0

    def after_step(xk: Vector) -> None:
        nonlocal step
        step += 1
        if watch is not None and watch(step, xk):
            raise StopIteration

    with quiet():
        found = scipy.optimize.minimize(
            guarded,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=after_step,
            options={"maxiter": max_iter, "maxfun": 2 * max_iter + 20, "maxcor": 20, "ftol": tol, "gtol": 0.0},
        )
    status = {0: "converged", 1: "max_iter", _STOPPED: "stopped"}.get(int(found.status), "stuck")
    return Minimum(best[1], best[0], first, int(found.nit), status)


# Largest entry of the gradient, per unit of weight, at which to stop; scikit-learn warns if the steps do not suffice.
# With a ridge r on the slopes their error is at most 1 / r times as large.
_TOL, _MAX_ITER = 1e-9, 1000


def logistic_regression(Z: Array, codes: Array, weights: Array, ridge: float) -> tuple[Array, Array]:
    r"""Slopes ``(k, C)`` and offsets ``(C,)`` whose softmax makes the classes ``codes`` most likely.

    Minimizes :math:`-\sum_i w_i \log p_i / \sum_i w_i + \tfrac12\,\text{ridge}\,\|V\|_F^2`, ``V`` being the slopes of
    all classes. The offsets are not penalized. Every class must occur.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.arrays.optimize import logistic_regression
    >>> Z, codes = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> slopes, offsets = logistic_regression(Z, codes, np.ones(4), ridge=0.1)
    >>> bool(slopes[0, 1] > 0), bool(abs(slopes.sum()) < 1e-12)
    (True, True)
    """
    x, y = to_numpy(Z).astype(np.float64), to_numpy(codes)
    w = to_numpy(weights).astype(np.float64)
    two = int(y.max()) == 1
    # Two classes have one slope b in scikit-learn and (-b, b) / 2 here, whose square is half as large.
    model = LogisticRegression(C=(2.0 if two else 1.0) / ridge, tol=_TOL, max_iter=_MAX_ITER, solver="newton-cg")
    model.fit(x, y, w / w.sum())
    slopes, offsets = model.coef_.T, model.intercept_
    if two:
        slopes, offsets = np.hstack([-slopes, slopes]) / 2, np.concatenate([-offsets, offsets]) / 2
    return asarray_like(slopes, Z, dtype=Z.dtype), asarray_like(offsets, Z, dtype=Z.dtype)
