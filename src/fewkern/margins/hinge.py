r"""Primal-dual interior point for sums of hinges: the quadratic programs of RSVM and RSM (methods A6).

.. math:: \min_{w, b} \tfrac12 \|w\|^2 - g^T w + \sum_i C_i (h_i - s_i (\langle w, x_i \rangle + b))_+

Mehrotra's predictor-corrector steps. The slacks are eliminated, so that an iteration costs one weighted normal matrix
and one Cholesky factor in the primal variables ``(w, b)``: time :math:`O(n q^2 + q^3)`, memory :math:`O(nq)`, for
any ``C``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from sys import float_info
from typing import NamedTuple

import numpy as np

from fewkern.arrays.linalg import (
    cholesky_psd,
    least_squares,
    solve_or_none,
    solve_triangular,
    sum_by_index,
    weighted_gram,
)
from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop
from fewkern.margins.embedding import norm

# Sums of weights, of which the best bias is a quantile, are equal if they differ by less than this fraction; and the
# relative error of the exact solution may exceed that of the best iterate by as much.
_ROUNDING = 1e-12
# Relative duality gap at which a problem counts as solved, and iterations after which it is given up.
GAP_RTOL, MAX_ITERATIONS = 1e-9, 100
# The system of the free multipliers is solved exactly up to this size; up to the second one if it is singular.
_MAX_FREE_MULTIPLIERS, _MAX_DEPENDENT_MULTIPLIERS = 1000, 200
# Multipliers this close to a bound (fraction of the box) are set to it; the next fraction, if that costs too much.
_BOUND_RTOLS = (1e-7, 1e-9, 1e-11, 0.0)
# It costs too much if the relative error grows by more than this factor and exceeds this error.
_MAX_ERROR_FACTOR, _NEGLIGIBLE_ERROR = 10.0, 1e-8
# A warm start keeps this distance from the bounds (fraction of the box) and these slacks (in margins); measured on 27
# problems: with less, the first steps are short. It saves few iterations, but from a central start a recursion with a
# large box ends sooner: 16 directions in place of 50, for C = 1e4 on 200 rows of breast cancer with a Gaussian kernel.
_WARM_BOX_FRACTION, _WARM_SLACK_MARGINS = 0.3, 0.5
# Fraction of the longest feasible step.
_STEP_FRACTION = 0.99
# Iterations without progress before the solver gives up: few below this error, where rounding in w = X'a sets a floor,
# many above it, where a few steps without progress mean nothing.
_PATIENCE_STEPS_NEAR, _PATIENCE_STEPS_FAR, _NEAR_ERROR = 3, 20, 1e-6


@dataclass(frozen=True)
class HingeProblem:
    r"""Half the squared length of ``w`` plus a weighted sum of hinges (methods A1, B2).

    .. math:: \tfrac12 \|w\|^2 - g^T w + \sum_i C_i (h_i - s_i (\langle w, x_i \rangle + b))_+

    with the dual :math:`\max_\alpha h^T \alpha - \tfrac12 \|g + \sum_i \alpha_i s_i x_i\|^2` over
    :math:`0 \le \alpha_i \le C_i`, :math:`\sum_i s_i \alpha_i = 0` (only with a bias).
    """

    X: Array
    """The ``x_i``, ``(n, q)``."""
    signs: Array
    """``s_i``: one or minus one."""
    targets: Array
    """``h_i``."""
    C: Array
    """Positive."""
    bias: bool = True
    """Whether ``b`` is free; otherwise it is zero."""
    linear: Array | None = None
    """``g``; None is zero."""

    @cached_property
    def g(self) -> Array:
        """The linear term as an array."""
        return np.zeros(self.X.shape[1]) if self.linear is None else self.linear

    @cached_property
    def size(self) -> float:
        """Scale of a margin."""
        return 1.0 + float(np.max(np.abs(self.targets)))

    def combination(self, a: Array) -> Array:
        """``sum_i a_i s_i x_i``."""
        return self.X.T @ (self.signs * a)

    def shortfall(self, w: Array) -> Array:
        """``h_i - s_i <w, x_i>``: the shortfall from the margin without a bias."""
        return self.targets - self.signs * (self.X @ w)

    def primal(self, w: Array, short: Array) -> float:
        """Value at ``w`` with the shortfalls ``short``, bias included."""
        return 0.5 * float(w @ w) - float(self.g @ w) + float(self.C @ np.maximum(short, 0.0))

    def best_bias(self, short: Array) -> float:
        """The ``b`` that minimizes the hinges, for shortfalls ``short`` without it.

        The slope in ``b`` rises by ``C_i`` at every ``s_i h_i``, so it is a weighted quantile.
        """
        if not self.bias:
            return 0.0
        breaks = self.signs * short
        order = np.argsort(breaks, kind="stable")
        rising = np.cumsum(self.C[order])
        below = float(np.sum(np.where(self.signs > 0, self.C, 0.0)))
        place = int(np.count_nonzero(rising < below * (1 - _ROUNDING)))
        return float(breaks[order[min(place, int(order.shape[0]) - 1)]])

    def value_at_zero(self) -> float:
        """Value at ``w = 0`` and the best bias: the cap of all steps (methods A3.3)."""
        return self.solution(np.zeros_like(self.C)).primal

    def solution(self, a: Array) -> HingeSolution:
        """The ``w(a)`` of feasible multipliers and its best bias, with their duality gap."""
        w = self.g + self.combination(a)
        short = self.shortfall(w)
        b = self.best_bias(short)
        primal = self.primal(w, short - self.signs * b)
        dual = float(self.targets @ a) - 0.5 * float(w @ w)
        return HingeSolution(w, b, a, primal, dual, relative_error(primal, dual))


@dataclass(frozen=True)
class HingeSolution:
    """Minimizer of a sum of hinges and its certificate."""

    w: Array
    bias: float
    alpha: Array
    primal: float
    dual: float
    error: float
    """Relative duality gap or infeasibility, the larger one."""
    stop: Stop = Stop.CONVERGED
    """CONVERGED, PRECISION or MAX_ITER."""
    n_iter: int = 0


def relative_error(primal: float, dual: float, infeasibility: float = 0.0) -> float:
    """Duality gap relative to the two values, or the infeasibility if that is larger; infinite after an overflow."""
    gap = abs(primal - dual) / max(abs(primal) + abs(dual), float_info.min)
    error = max(gap, infeasibility)
    return error if math.isfinite(error) else math.inf


@np.errstate(all="ignore")  # overflow ends the loop
def minimize_hinge(problem: HingeProblem, start: Array | None = None) -> HingeSolution:
    """Minimize a sum of hinges; ``start`` are multipliers that are feasible in the dual."""
    warm = start is not None and bool(np.any(start > 0))
    point = _warm_start(problem, start) if warm else _cold_start(problem)
    best, since, stop, iteration = None, 0, Stop.MAX_ITER, 0
    while iteration < MAX_ITERATIONS:
        iteration += 1
        here = _Residuals.at(problem, point)
        if best is None or here.error < best.error:
            best, since = here, 0
        else:
            since += 1
        if here.error <= GAP_RTOL:
            stop = Stop.CONVERGED
            break
        if since >= (_PATIENCE_STEPS_NEAR if best.error < _NEAR_ERROR else _PATIENCE_STEPS_FAR) or point.mu <= 0.0:
            stop = Stop.PRECISION
            break
        try:
            point = _next_point(problem, here)
        except ValueError:  # rounding has made the normal matrix indefinite
            stop = Stop.PRECISION
            break
    assert best is not None
    return replace(_exact_or_clean(problem, best, stop), n_iter=iteration)


class _Point(NamedTuple):
    """An interior point, or a step: surplus ``t`` over the margin with multiplier ``a``, shortfall ``xi``, ``u``."""

    w: Array
    b: float
    a: Array
    u: Array
    t: Array
    xi: Array

    @property
    def mu(self) -> float:
        """Mean product of a slack and its multiplier: zero at the solution."""
        return (float(self.a @ self.t) + float(self.u @ self.xi)) / (2 * int(self.a.shape[0]))

    def longest(self, move: _Point) -> float:
        """Longest step, up to ``1 / _STEP_FRACTION``, that keeps slacks and multipliers from going below zero."""
        return 1.0 / max(*(float(np.max(-dx / x)) for x, dx in zip(self[2:], move[2:])), _STEP_FRACTION)

    def moved(self, move: _Point, step: float) -> _Point:
        """The point after a step."""
        return _Point(*(x + step * dx for x, dx in zip(self, move)))


@dataclass(frozen=True)
class _Residuals:
    """How far a point is from the solution."""

    point: _Point
    w: Array
    """``w - g - X'(s a)``."""
    b: float
    """``s'a``."""
    p: Array
    """``s (X w + b) + xi - t - h``."""
    primal: float
    dual: float
    error: float

    @classmethod
    def at(cls, problem: HingeProblem, point: _Point) -> _Residuals:
        """Residuals of the point, and the error of the pair ``(w, a)`` as it would be handed back."""
        w, a, g, h = point.w, point.a, problem.g, problem.targets
        Ga = problem.combination(a)
        margin = problem.signs * (problem.X @ w + point.b)
        r_w = w - g - Ga
        r_b = float(np.sum(problem.signs * a)) if problem.bias else 0.0
        primal = problem.primal(w, h - margin)
        dual = float(h @ a) - 0.5 * float((g + Ga) @ (g + Ga))
        off = norm(r_w)
        length, total = norm(w - g), float(np.sum(a))
        infeasible = max(off / max(length, float_info.min), abs(r_b) / max(total, float_info.min))
        # w = 0 is a legitimate solution (the flat stop): nothing is small beside it, so an absolute residual is enough
        error = relative_error(primal, dual, min(infeasible, off + abs(r_b)))
        return cls(point, r_w, r_b, margin + point.xi - point.t - h, primal, dual, error)


def _next_point(problem: HingeProblem, here: _Residuals) -> _Point:
    """One predictor-corrector step."""
    point, X, signs = here.point, problem.X, problem.signs
    theta = 1.0 / (point.xi / point.u + point.t / point.a)
    solve = _newton_equations(problem, theta)

    def move(c1: Array, c2: Array) -> _Point:
        """Newton step for the complementarity targets ``a t -> c1``, ``u xi -> c2`` (increments)."""
        r = -here.p - c2 / point.u + c1 / point.a
        pull = signs * theta * r
        dw, db = solve(-here.w + X.T @ pull, here.b + float(np.sum(pull)))
        da = theta * (r - signs * (X @ dw + db))
        return _Point(dw, db, da, -da, (c1 - point.t * da) / point.a, (c2 + point.xi * da) / point.u)

    # Predictor: straight at the solution; its step length sets the target of the corrector.
    ahead = move(-point.a * point.t, -point.u * point.xi)
    sigma = (point.moved(ahead, min(1.0, point.longest(ahead))).mu / point.mu) ** 3
    aim = sigma * point.mu
    corrected = move(aim - point.a * point.t - ahead.a * ahead.t, aim - point.u * point.xi - ahead.u * ahead.xi)
    return point.moved(corrected, min(1.0, _STEP_FRACTION * point.longest(corrected)))


def _newton_equations(problem: HingeProblem, theta: Array) -> Callable[[Array, float], tuple[Array, float]]:
    """Solver of the Newton equations of a point, slacks eliminated.

    What is left is ``[I + X'ΘX, X'Θ1; 1'ΘX, 1'Θ1] (dw, db) = (rhs, rhs_b)``; signs cancel in squares. The bias is
    eliminated too, which centers the samples with the weights ``Θ``.
    """
    X, bias = problem.X, problem.bias
    total, x_theta = float(np.sum(theta)), X.T @ theta
    M = weighted_gram(X, theta) + np.eye(X.shape[1])
    if bias:
        M = M - x_theta[:, None] * x_theta[None, :] / total
    factor = cholesky_psd((M + M.T) / 2)

    def solve(rhs: Array, rhs_b: float) -> tuple[Array, float]:
        right = rhs - x_theta * (rhs_b / total) if bias else rhs
        dw = solve_triangular(factor, solve_triangular(factor, right), transposed=True)
        return dw, (rhs_b - float(x_theta @ dw)) / total if bias else 0.0

    return solve


def _cold_start(problem: HingeProblem) -> _Point:
    """Equal multipliers, times what makes the dual value largest, give ``w``; the rest is central for it."""
    C, size = problem.C, problem.size
    # A huge box is not entered at its middle: multipliers of the size of the targets are a better guess.
    a = np.minimum(0.5 * C, 5.0 * size)
    w = problem.combination(a)
    length = float(w @ w)
    if length > 0.0:
        w = w * min(1.0, max(float(problem.targets @ a) - float(problem.g @ w), 0.0) / length)
    w = problem.g + w
    # Every term starts on a central path of its own: a t = u xi = mu, a + u = C, t - xi the surplus over the margin.
    mu = size * float(np.mean(C))
    surplus = -problem.shortfall(w)
    root = np.sqrt(surplus * surplus * C * C + 4.0 * mu * mu)
    a = 2.0 * mu * C / (2.0 * mu + root + surplus * C)
    u = 2.0 * mu * C / (2.0 * mu + root - surplus * C)
    return _Point(w, 0.0, a, u, mu / a, mu / u)


def _warm_start(problem: HingeProblem, start: Array) -> _Point:
    """The ``w`` of given multipliers and its best bias; the multipliers moved off the bounds of their box."""
    C = problem.C
    room = _WARM_BOX_FRACTION * np.minimum(C, float(np.max(start)))
    a = np.minimum(np.maximum(start, room), C - room)
    # not the w of the moved ones: what was moved adds up to something long where the box is large
    w = problem.g + problem.combination(start)
    short = problem.shortfall(w)
    b = problem.best_bias(short)
    surplus = problem.signs * b - short
    t = np.maximum(surplus, 0.0) + _WARM_SLACK_MARGINS * problem.size
    return _Point(w, b, a, C - a, t, t - surplus)


def _exact_or_clean(problem: HingeProblem, best: _Residuals, stop: Stop) -> HingeSolution:
    """The pair ``(alpha, w(alpha))`` with its own values, multipliers at their bounds set on them.

    So ``w`` is exactly a combination of the support vectors.
    """
    point, a = best.point, best.point.a
    iterate = HingeSolution(point.w, point.b, a, best.primal, best.dual, best.error, stop)
    if math.isinf(best.error):  # nothing was solved: numbers have overflowed from the start
        return iterate
    w = problem.g + problem.combination(a)
    surplus = (problem.signs * point.b - problem.shortfall(w)) / problem.size
    exact = _crossover(problem, _partition(a, problem.C, surplus))
    if exact is not None:
        # not its duality gap alone, in which an iterate that is not feasible can be ahead
        exact = replace(exact, stop=Stop.CONVERGED if exact.error <= GAP_RTOL else stop)
        if exact.error <= best.error + _ROUNDING:
            return exact
    # With long samples or a large box even a small change of a multiplier moves w far: then less is cleaned, or
    # nothing, and w is that of the iterate.
    for edge in _BOUND_RTOLS:
        found = problem.solution(_clean(problem, a, edge))
        if exact is not None and exact.error <= found.error:
            return exact
        if found.error <= max(_MAX_ERROR_FACTOR * best.error, _NEGLIGIBLE_ERROR):
            return replace(found, stop=stop)
    return iterate


def _crossover(problem: HingeProblem, a: Array) -> HingeSolution | None:
    """The exact solution, if the multipliers strictly inside their box are the right ones.

    Their hinges are at the kink, which is a linear system in them and the bias. ``None`` where it has no unique
    solution, or one that leaves the box.
    """
    C, signs = problem.C, problem.signs
    is_free = (a > 0) & (a < C)
    free = np.flatnonzero(is_free)
    count, q = int(free.shape[0]), problem.X.shape[1]
    if count == 0 or count > _MAX_FREE_MULTIPLIERS:
        return None
    own, s = problem.X[free], signs[free]
    fixed = np.where(is_free, 0.0, a)
    w = problem.g + problem.combination(fixed)
    K = s[:, None] * (own @ own.T) * s[None, :]
    right = problem.targets[free] - s * (own @ w)
    if problem.bias:
        K = np.block([[K, s[:, None]], [s[None, :], np.zeros((1, 1))]])
        right = np.append(right, -np.sum(signs * fixed))
    solved = solve_or_none(K, right) if count <= q + 1 else None
    if solved is None and count <= _MAX_DEPENDENT_MULTIPLIERS:
        # repeated samples share a multiplier in any way; the shortest solution shares it equally
        solved = least_squares(K, right[:, None])[:, 0]
    if solved is None:
        return None
    inside = solved[:count]
    if np.any((inside < 0) | (inside > C[free])):
        return None
    return problem.solution(fixed + sum_by_index(inside, free, int(a.shape[0])))


def _partition(a: Array, C: Array, surplus: Array) -> Array:
    """Multipliers set on the bound that they are nearer to than their hinge is to its kink: complementarity decides."""
    scale = np.minimum(C, float(np.max(a)))
    a = np.where(a < scale * surplus, 0.0, a)
    return np.where(C - a < -scale * surplus, C, a)


def _clean(problem: HingeProblem, a: Array, edge: float) -> Array:
    """Multipliers within ``edge`` of their bounds set on them, and their signed sum made zero."""
    C, signs = problem.C, problem.signs
    # The size of a multiplier is min(C, the largest one): with C = 1e9 no multiplier is near the middle of its box.
    scale = np.minimum(C, float(np.max(a)))
    a = np.where(a < edge * scale, 0.0, np.where(C - a < edge * scale, C, a))
    if not problem.bias:
        return a
    up = float(np.sum(np.where(signs > 0, a, 0.0)))
    down = float(np.sum(np.where(signs < 0, a, 0.0)))
    low = min(up, down)
    return a * np.where(signs > 0, low / max(up, float_info.min), low / max(down, float_info.min))
