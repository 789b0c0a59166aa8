"""Refined vectors: move them, and learn the widths, by the gradient of the leave-one-out error (methods F13).

The function that is minimized, and its gradient, are in :mod:`fewkern.vectors.objective`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from fewkern.backend.finite import powers_of_two
from fewkern.backend.namespace import Array, asarray_like, device, namespace
from fewkern.backend.optimize import bend, host_vector, minimize_smooth
from fewkern.backend.threads import threads_for
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernel import Kernel, NotFiniteError
from fewkern.core.kernels import Gaussian
from fewkern.vectors.objective import Evaluation, Objective, Placement, Point, RefineProblem

__all__ = ["Refined", "free_widths", "narrowed", "refine"]

# Bounds of the search: logarithms of the scales around the start, and the ridge in units of k(x, x).
LOG_SCALE_BELOW, LOG_SCALE_ABOVE = 6.0, 4.0
RIDGE_BOUNDS = (1e-6, 1e4)
# A ridge that starts at a bound can still pass it by so much, or it would not move at all.
LEAST_WAY = 0.01
# Least mean squared distance of two samples at the start of a search, in units of the widths.
APART = 1.0


@dataclass(frozen=True)
class Refined:
    """A model whose vectors are not samples any more: ``f(x) = sum_j coef_j k(x, v_j) + offset``."""

    vectors: Array
    kernel: Kernel
    ridge: float
    coef: Array
    offset: Array
    objective: float
    """What was minimized, over the variance of the targets; with leave-one-out no honest error."""
    start_objective: float
    n_iter: int
    status: str

    @property
    def placement(self) -> Placement:
        """Vectors, kernel and ridge: where another search can start."""
        return Placement(self.vectors, self.kernel, self.ridge)

    @property
    def expansion(self) -> KernelExpansion:
        """The function."""
        return KernelExpansion(self.kernel, self.vectors, self.coef, self.offset)


def free_widths(kernel: Kernel, X: Array) -> Kernel:
    """The same kernel with a width per feature that can change on its own, where it has one width for all."""
    if isinstance(kernel, Gaussian) and isinstance(kernel.width, (int, float)):
        xp = namespace(X)
        return replace(kernel, width=xp.full((X.shape[1],), kernel.width, dtype=xp.float64, device=device(X)))
    return kernel


def narrowed(kernel: Kernel, problem: RefineProblem) -> Kernel:
    """The same kernel, not much wider than the samples lie apart.

    A wider one is a plane where the samples are. With a small ridge that can be the best model whose vectors stay, but
    a search that starts there learns little about single features (measured on splice: twice the error).
    """
    reach = kernel.reach()
    if reach is None:
        return kernel
    xp = namespace(problem.X)
    ratio = problem.spread / asarray_like(reach, problem.X, dtype=xp.float64)
    apart = 2.0 * float(xp.vecdot(ratio, ratio))
    if not 0.0 < apart < APART:
        return kernel
    logs = xp.full((kernel.n_scales,), 0.5 * math.log(APART / apart), dtype=xp.float64, device=device(problem.X))
    return kernel.rescaled(logs)


def refine(
    problem: RefineProblem, start: Placement, *, max_iter: int = 100, tol: float = 1e-7, hold_ridge: bool = False
) -> Refined:
    """Move the vectors, and change the widths and the ridge (unless held), from ``start`` while the objective falls.

    Parameters
    ----------
    problem : RefineProblem
    start : Placement
        A selection of vectors with its kernel and ridge. With one width per feature (see :func:`free_widths`) each is
        learned on its own.
    max_iter : int
        Steps of L-BFGS-B. Few steps regularize, too.
    tol : float
        Relative decrease of the objective in a step at which the search has converged.
    hold_ridge : bool
        Whether the ridge stays as it is.

    Notes
    -----
    Deterministic. The search runs over few numbers, ``m d + p + 1``, on the host; the samples stay where they are.
    """
    chart, objective = _Chart(problem, start, hold_ridge), Objective(problem, start)

    def function(theta: Any) -> tuple[float, Any]:
        point, slope = chart.point(theta)
        try:
            found = objective(point)
        except NotFiniteError:  # too far along the line
            return math.inf, theta
        return found.value, chart.gradient(found, slope)

    (n, d), m = problem.X.shape, int(start.vectors.shape[0])
    with threads_for(n * m * (m + d)):
        found = minimize_smooth(function, chart.start, max_iter=max_iter, tol=tol)
    point, _ = chart.point(found.x)
    beta = objective.solve(objective.blocks(point), point).beta
    xp, dtype = namespace(problem.X), problem.X.dtype
    return Refined(
        xp.astype(point.V, dtype),
        start.kernel.rescaled(point.s),
        point.ridge,
        xp.astype(beta[1:, :], dtype),
        xp.astype(beta[0, :], dtype),
        found.value,
        found.start_value,
        found.n_iter,
        found.status,
    )


class _Chart:
    """Points as vectors of numbers on the host: how far ``V``, the log scales and the log ridge are from the start.

    The unit of a feature is the geometric mean of the kernel's width and the samples' spread. In units of the spread a
    search with wide kernels needs twice the steps; in units of the width vectors move so far before the widths have
    been learned that small models over-fit (measured on splice, where few features matter).

    Distances from the start, because they are the same numbers whatever the features are measured in. Logarithms of
    scales and ridge are bent, so that they end at their bounds.
    """

    def __init__(self, problem: RefineProblem, start: Placement, hold_ridge: bool = False) -> None:
        xp = namespace(problem.X)
        self.like, self.hold_ridge = problem.X, hold_ridge
        self.vectors = xp.astype(start.vectors, xp.float64)
        reach = start.kernel.reach()
        lengths = problem.spread if reach is None else asarray_like(reach, problem.X, dtype=xp.float64)
        power = powers_of_two(problem.spread)  # the product of two lengths may overflow
        self.unit = power * xp.sqrt((lengths / power) * (problem.spread / power))
        self.moved, scales = math.prod(self.vectors.shape), start.kernel.n_scales
        size = float(xp.mean(start.kernel.diag(problem.X))) or 1.0
        least, most = size * RIDGE_BOUNDS[0], size * RIDGE_BOUNDS[1]
        bounded = min(max(start.ridge, least), most)
        self.ridge = start.ridge if hold_ridge else bounded
        self.start = host_vector([0.0] * (self.moved + scales + 1))
        self.low = host_vector([-LOG_SCALE_BELOW] * scales, [min(math.log(least / bounded), -LEAST_WAY)])
        self.high = host_vector([LOG_SCALE_ABOVE] * scales, [max(math.log(most / bounded), LEAST_WAY)])

    def point(self, theta: Any) -> tuple[Point, Any]:
        """The placement of ``theta``, and the derivatives of its logarithms."""
        xp = namespace(self.like)
        V = self.vectors + xp.reshape(asarray_like(theta[: self.moved], self.like), self.vectors.shape) * self.unit
        logs, slope = bend(theta[self.moved :], self.low, self.high)
        return Point(V, asarray_like(logs[:-1], self.like), self.ridge * math.exp(float(logs[-1]))), slope

    def gradient(self, found: Evaluation, slope: Any) -> Any:
        """The gradient of an evaluation with respect to the numbers of the search."""
        gradient = host_vector(found.vectors * self.unit, found.scales, [0.0 if self.hold_ridge else found.log_ridge])
        gradient[self.moved :] *= slope
        return gradient
