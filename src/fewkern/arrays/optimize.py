"""Minimization on the host: a smooth function of a few numbers, the root of a function, and logistic regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.special import expit, log_expit, logsumexp, softmax

from fewkern.arrays.linalg import one_hot
from fewkern.arrays.numerics import quiet

Vector: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class LogisticSteps:
    """How long a logistic regression goes on."""

    most: int = 60
    """Steps, at most."""
    least: int = 15
    """Steps that are allowed whatever the number of coefficients."""
    numbers: int = 320_000
    """Coefficients times steps, at most. With 100 classes 25 steps cost .6% of the log loss and half of the time, 15
    1.6% and three quarters, while the coefficients of least squares have a log loss that is a third higher."""
    gain: float = 1e-5
    """Share of the objective below which the gain of a step ends the search."""

    def of(self, count: int) -> int:
        """Steps, at most, of so many coefficients."""
        return min(self.most, max(self.least, self.numbers // count))


LOGISTIC_STEPS = LogisticSteps()


def minimize_smooth(
    function: Callable[[Vector], tuple[float, Vector]],
    start: Vector,
    *,
    max_iter: int,
    tol: float,
    watch: Callable[[int, Vector], bool] | None = None,
) -> tuple[Vector, float]:
    """The best point that L-BFGS-B visits, without bounds, and the value of ``function`` there.

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

    def guarded(x: Vector) -> tuple[float, Vector]:
        nonlocal best
        # a broken line search asks for points that are not finite; there is nothing to evaluate, and it ends
        value, gradient = function(x) if math.isfinite(x.sum()) else (math.inf, x)
        if not math.isfinite(value + gradient.sum()):
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
        scipy.optimize.minimize(
            guarded,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=after_step,
            options={"maxiter": max_iter, "maxfun": 2 * max_iter + 20, "maxcor": 20, "ftol": tol, "gtol": 0.0},
        )
    return best[1], best[0]


def falling_root(function: Callable[[float], float], start: float, low: float, high: float) -> float:
    """Where a falling function of a positive number is zero, searched from ``start``; an end if it has no zero."""
    right = function(start) > 0
    end, factor = (high, 10.0) if right else (low, 0.1)
    near = far = start
    while (function(far) > 0) == right:
        if far == end:
            return end
        near, far = far, min(max(far * factor, low), high)
    return math.exp(scipy.optimize.brentq(lambda t: function(math.exp(t)), math.log(near), math.log(far), xtol=1e-10))


def indicators(codes: Vector, n_classes: int) -> Vector:
    """Zeros and ones: of two classes the second, shape ``(n, 1)``, else one column per class."""
    return (codes == 1).astype(float)[:, None] if n_classes == 2 else one_hot(codes, n_classes, np.float64)


def fit_logistic(
    Z: Vector,
    own: Vector,
    weights: Vector,
    ridge: float,
    begin: tuple[Vector, Vector] | None = None,
    steps: LogisticSteps = LOGISTIC_STEPS,
) -> tuple[Vector, Vector]:
    r"""Logistic regression: coefficients ``(p, q)`` and constants ``(q,)`` of the class scores.

    ``own`` are the :func:`indicators` of the classes: there is one score for two classes, else one per class. The
    search starts from ``begin``, a solution for another ridge or other rows, where there is one. Minimizes
    :math:`-\sum_i w_i \log p_i / \sum_i w_i + \tfrac12\,\text{ridge}\,\|W\|_F^2`, with the softmax (of two classes: the
    logistic function) of ``W' z + b``. The constants are not penalized.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.arrays.optimize import fit_logistic, indicators
    >>> Z, codes = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> W, b = fit_logistic(Z, indicators(codes, 2), np.ones(4), ridge=0.1)
    >>> bool(W[0, 0] > 0), W.shape, b.shape
    (True, (1, 1), (1,))
    """
    share = weights / weights.sum()
    mean = share @ Z
    centred = Z - mean
    # in coordinates in which the features are uncorrelated, as far as the ridge lets them
    gram = centred.T @ (share[:, None] * centred)
    gram[np.diag_indices_from(gram)] += ridge + np.finfo(float).eps * np.trace(gram)
    factor = scipy.linalg.cholesky(gram, lower=True)
    A = scipy.linalg.solve_triangular(factor, centred.T, lower=True).T
    inverse = scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
    metric = ridge * (inverse @ inverse.T)
    q = own.shape[1]
    rate = np.clip(share @ own, 1e-9, 1 - 1e-9)
    constant = np.log(rate / (1 - rate)) if q == 1 else np.log(rate)

    def loss(x: Vector) -> tuple[float, Vector]:
        V, b = x[:-q].reshape(-1, q), x[-q:]
        scores = A @ V + b
        if q == 1:
            value = float(-(share @ log_expit(np.where(own > 0, scores, -scores)[:, 0])))
            residual = expit(scores) - own
        else:
            value = float(share @ (logsumexp(scores, axis=1) - np.sum(own * scores, axis=1)))
            residual = softmax(scores, axis=1) - own
        residual = share[:, None] * residual
        pulled = metric @ V
        gradient = np.concatenate([(A.T @ residual + pulled).ravel(), residual.sum(axis=0)])
        return value + 0.5 * float(np.sum(V * pulled)), gradient

    first = np.concatenate([np.zeros(A.shape[1] * q), constant])
    if begin is not None:
        W, b = begin
        first = np.concatenate([(factor.T @ W).ravel(), b + mean @ W])
    x, value = minimize_smooth(loss, first, max_iter=steps.of(len(first)), tol=steps.gain)
    W = inverse.T @ x[:-q].reshape(-1, q)
    return W, x[-q:] - mean @ W if math.isfinite(value) else constant
