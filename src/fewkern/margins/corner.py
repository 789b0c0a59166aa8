r"""Sums of hinges over many rows: Newton's method with rounded corners (methods A8).

With the corner of every hinge rounded,

.. math:: [(\xi + \mu)_+^2 - (\xi - \mu)_+^2] / (4 \mu) \quad\text{in place of}\quad (\xi)_+ ,

the objective has two derivatives, and both are sums over rows; only rows at the corner, :math:`|\xi| < \mu`, are in the
second one. Few rows are there in the end, so that the corner itself can be solved exactly: all other rows are either
beyond their margin, and are left out, or short of it, and add up to one linear function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from fewkern.arrays.linalg import sum_by_index
from fewkern.arrays.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.arrays.random import random_generator
from fewkern.core.path import Stop
from fewkern.margins.convex import solve
from fewkern.margins.hinge import HingeProblem, HingeSolution, hinge_at_zero, minimize_hinge
from fewkern.margins.spaces import Rows

__all__ = [
    "Descent",
    "Narrowing",
    "Plane",
    "RoundedHinges",
    "corner_of",
    "mean_hinge",
    "minimize_many",
    "rounded_hinges",
]

# The interior point alone is as fast up to so many rows, or so many features.
_MANY, _WIDE = 2000, 50
# Half-widths of the corner in units of the mean hinge at w = 0: the first one, the one that the way on some of the rows
# ends with, and the last one.
_FIRST, _MIDDLE, _LAST = 1.0, 0.1, 0.01
# Every width is so many times narrower than the one before, if so many rows per feature are then left at the corner.
_NARROWER, _ROWS_PER_FEATURE = 3.0, 0.25
# The way begins on some of the rows: so many, and so many per feature.
_SOME, _SOME_PER_FEATURE = 2000, 4
# A step that promises less than this part of the value is taken unseen, and is the last one: on the way to a narrower
# corner; in memory, where the exact program follows; and otherwise, so that nothing is seen of the way in the result.
_SMALL_WIDE, _SMALL_BEFORE, _SMALL = 1e-3, 1e-4, 1e-12
# A step that promises so little need not come to its end: sums over many rows have their rounding.
_NEAR = 1e-7
# Steps of a descent.
_STEPS = 50
# Armijo's rule: least part of the predicted decrease; a step is halved at most so often.
_ARMIJO, _HALVINGS = 1e-4, 6
# Rows this near to the corner, in units of the last half-width, are in the exact program at first.
_AT_CORNER = 3.0
# Rows that turn out to lie on the wrong side join at most so many times; on the wrong side by this part of a margin.
_JOINS, _WRONG_SIDE = 20, 1e-9
# The program is small, so that it can be solved to this part of the tolerance; it has done its work where the relative
# duality gap on all rows is below the other number.
_TIGHTER, _SOLVED = 1e-2, 1e-8


def mean_hinge(signs: Array, targets: Array, C: Array) -> float:
    """At ``w = 0``: one for two classes of the same weight, and in units of the targets for a tube."""
    return hinge_at_zero(signs, targets, C) / float(namespace(C).sum(C))


@dataclass(frozen=True)
class Plane:
    """A hyperplane, and the half-width of the corner that it is meant for."""

    w: Array
    b: float
    mu: float

    def moved(self, step: Array, length: float) -> Plane:
        """After a step in ``(w, b)``."""
        return replace(self, w=self.w + length * step[:-1], b=self.b + length * float(step[-1]))


@dataclass(frozen=True)
class RoundedHinges:
    """Value of a sum of rounded hinges and its derivatives in ``(w, b)``; those of two blocks of rows are added."""

    value: float
    slope: Array
    curvature: Array
    count: int
    """Rows at the corner."""

    def __add__(self, other: RoundedHinges) -> RoundedHinges:
        slope, curvature = self.slope + other.slope, self.curvature + other.curvature
        return RoundedHinges(self.value + other.value, slope, curvature, self.count + other.count)

    def with_length(self, w: Array) -> RoundedHinges:
        """With half the squared length of ``w`` added."""
        xp, none = namespace(w), namespace(w).zeros_like(w[:1])
        ones = xp.concat([xp.ones_like(w), none])
        identity = ones[:, None] * xp.eye(ones.shape[0], dtype=w.dtype, device=device(w))
        value = self.value + 0.5 * float(w @ w)
        return RoundedHinges(value, self.slope + xp.concat([w, none]), self.curvature + identity, self.count)


def rounded_hinges(problem: HingeProblem, plane: Plane) -> RoundedHinges:
    """The hinges of a problem with rounded corners, without the length of ``w``."""
    xp, mu, C = namespace(problem.C), plane.mu, problem.C
    short = problem.shortfall(plane.w) - problem.signs * plane.b
    outer, inner = (xp.maximum(short + side, xp.zeros_like(short)) for side in (mu, -mu))
    value = float(C @ (outer * outer - inner * inner)) / (4.0 * mu)
    pull = C * (outer - inner) / (2.0 * mu)
    slope = -xp.concat([problem.combination(pull), xp.reshape(problem.signs @ pull, (1,))])
    at_corner = xp.nonzero(xp.abs(short) < mu)[0]
    points, theta = problem.points.subset(at_corner), take_rows(C, at_corner) / (2.0 * mu)
    beside = xp.concat([points.transposed_times(theta), xp.reshape(xp.sum(theta), (1,))])
    upper = xp.concat([points.normal(theta), beside[None, :-1]], axis=0)
    return RoundedHinges(value, slope, xp.concat([upper, beside[:, None]], axis=1), int(at_corner.shape[0]))


@dataclass(frozen=True)
class Narrowing:
    """How the corner gets narrower on the way."""

    last: float
    """Half-width that is narrow enough."""
    factor: float
    rows: float
    """Least number of rows at a corner: with fewer, second derivatives change from step to step."""
    small: float = _SMALL
    """Newton's method ends where a step promises less than this part of the value."""

    def after(self, mu: float, count: int) -> float | None:
        """The half-width after ``mu``, at which there are ``count`` rows; None if it was the last one."""
        narrower = max(self.last, mu / self.factor)
        return narrower if narrower < mu and count * (narrower / mu) >= self.rows else None


@dataclass
class Descent:
    """Newton's method for one hyperplane, with ever narrower corners; it is told the sums at ``trial``."""

    trial: Plane
    how: Narrowing
    best: Plane = field(init=False)
    value: float = math.inf
    count: int = 0
    """Rows at the corner of ``best``."""
    step: Array = field(init=False)
    promise: float = 0.0
    """Slope along the step: twice what it promises to gain, and negative."""
    length: float = 1.0
    solved: tuple[Plane, float] | None = None
    """Where the last width ended that came to an end, and the value there."""
    done: bool = False

    def __post_init__(self) -> None:
        xp, w = namespace(self.trial.w), self.trial.w
        self.best, self.step = self.trial, xp.zeros((w.shape[0] + 1,), dtype=w.dtype, device=device(w))

    @property
    def found(self) -> tuple[Plane, float] | None:
        """The hyperplane and its value; None if no width came to an end."""
        near = math.isfinite(self.value) and -self.promise <= _NEAR * abs(self.value)
        return (self.best, self.value) if near else self.solved

    def look(self, hinges: RoundedHinges) -> None:
        """Go on from the sums at ``trial``, or come back half of the way."""
        here = hinges.with_length(self.trial.w)
        if not here.value <= self.value + _ARMIJO * self.length * self.promise:  # or no number
            self.length /= 2.0
            # too few rows are at this corner, or the value is at its rounding
            self.done = self.length < 0.5**_HALVINGS
            self.trial = self.best.moved(self.step, self.length)
            return
        self.best, self.value, self.count, self.length = self.trial, here.value, here.count, 1.0
        self.step = -solve(here.curvature, here.slope)
        self.promise = float(here.slope @ self.step)
        self.trial = self.best.moved(self.step, 1.0)
        narrower = self.how.after(self.best.mu, self.count)
        if -self.promise <= (self.how.small if narrower is None else _SMALL_WIDE) * abs(self.value):
            self.best, self.solved = self.trial, (self.trial, self.value)  # unseen
            self.done = narrower is None
            if narrower is not None:
                self.trial = replace(self.trial, mu=narrower)
                self.value, self.promise = math.inf, 0.0


def minimize_many(
    problem: HingeProblem, start: Array | None = None, tol: float = 1e-9, max_iter: int = 100
) -> HingeSolution:
    """Minimize a sum of hinges to the accuracy of :func:`minimize_hinge`, but faster with many rows and features.

    Only for problems with a bias and no linear term.
    """
    points = problem.points
    if isinstance(points, Rows) and points.n > _MANY and points.width > _WIDE:
        found = _exact(problem, points, _near_corner(problem), tol, max_iter)
        if found is not None:
            return found
    return minimize_hinge(problem, start, tol, max_iter)


def _near_corner(problem: HingeProblem) -> Plane:
    """The hyperplane with narrow corners; the way to it begins on some of the rows."""
    xp, n, q = namespace(problem.C), int(problem.C.shape[0]), problem.points.width
    drawn = sorted(int(i) for i in random_generator(0).permutation(n)[: max(_SOME, _SOME_PER_FEATURE * q)])
    rows = asarray_like(drawn, problem.C, dtype=xp.int64)
    some = HingeProblem(
        problem.points.subset(rows),
        take_rows(problem.signs, rows),
        take_rows(problem.targets, rows),
        take_rows(problem.C, rows) * (n / len(drawn)),
    )
    unit, least = mean_hinge(problem.signs, problem.targets, problem.C), _ROWS_PER_FEATURE * q
    start = Plane(xp.zeros_like(problem.g), problem.best_bias(problem.targets), _FIRST * unit)
    near = _descended(some, start, Narrowing(_MIDDLE * unit, _NARROWER, least, _SMALL_BEFORE))
    return _descended(problem, near, Narrowing(_LAST * unit, _NARROWER, least, _SMALL_BEFORE))


def _descended(problem: HingeProblem, start: Plane, how: Narrowing) -> Plane:
    descent = Descent(replace(start, mu=max(start.mu, corner_of(problem, start, how.rows))), how)
    for _ in range(_STEPS):
        descent.look(rounded_hinges(problem, descent.trial))
        if descent.done:
            break
    return descent.best if descent.found is None else descent.found[0]


def corner_of(problem: HingeProblem, plane: Plane, count: float) -> float:
    """Half-width of a corner that holds ``count`` rows; all of them if there are no more."""
    xp, n = namespace(problem.C), int(problem.C.shape[0])
    distance = xp.sort(xp.abs(problem.shortfall(plane.w) - problem.signs * plane.b))
    return float(distance[min(math.ceil(count), n - 1)])


def _exact(problem: HingeProblem, points: Rows, plane: Plane, tol: float, max_iter: int) -> HingeSolution | None:
    """The solution for corners that are not rounded, near ``plane``; None where it was not found."""
    xp = namespace(problem.C)
    short = problem.shortfall(plane.w) - problem.signs * plane.b
    inside, n_iter = xp.abs(short) <= _AT_CORNER * plane.mu, 0
    for _ in range(_JOINS):
        program = _Program.of(problem, points, inside, short > 0)
        solution = minimize_hinge(program.problem, None, _TIGHTER * tol, max_iter)
        n_iter += solution.n_iter
        now = problem.shortfall(solution.w) - problem.signs * solution.bias
        # rows that were taken to be on the one side and now lie on the other one
        over = xp.where(short > 0, -now, now) > _WRONG_SIDE * problem.size
        wrong = xp.logical_not(inside) & over
        if not bool(xp.any(wrong)):
            found = problem.solution(program.multipliers(solution.alpha, problem.C), solution.bias)
            return replace(found, n_iter=n_iter, stop=Stop.CONVERGED) if found.error <= max(tol, _SOLVED) else None
        inside = inside | wrong
    return None


@dataclass(frozen=True)
class _Program:
    """The rows at the corner, and one row for those of every sign that are short of their margin: their mean.

    The hinges of rows that are all short of their margin add up to the hinge of their mean.
    """

    problem: HingeProblem
    rows: Array
    """Those at the corner."""
    sums: tuple[Array, ...]
    """Which rows have become one."""

    @classmethod
    def of(cls, problem: HingeProblem, points: Rows, inside: Array, short: Array) -> _Program:
        xp = namespace(problem.C)
        rows = xp.nonzero(inside)[0]
        A, signs, targets, C = (take_rows(x, rows) for x in (points.A, problem.signs, problem.targets, problem.C))
        sums = []
        for sign in (1.0, -1.0):
            own = xp.logical_not(inside) & short & (problem.signs == sign)
            weights = xp.where(own, problem.C, xp.zeros_like(problem.C))
            total = xp.reshape(xp.sum(weights), (1,))
            if float(total[0]) == 0.0:
                continue
            sums.append(own)
            A = xp.concat([A, (weights @ points.A / total)[None, :]], axis=0)
            signs = xp.concat([signs, xp.full_like(total, sign)])
            targets = xp.concat([targets, weights @ problem.targets / total])
            C = xp.concat([C, total])
        return cls(HingeProblem(Rows(A), signs, targets, C), rows, tuple(sums))

    def multipliers(self, alpha: Array, C: Array) -> Array:
        """Those of all rows from those of the program."""
        xp, count = namespace(C), int(self.rows.shape[0])
        every = sum_by_index(alpha[:count], self.rows, int(C.shape[0]))
        for k, own in enumerate(self.sums):
            every = every + xp.where(own, C * (alpha[count + k] / self.problem.C[count + k]), xp.zeros_like(C))
        return every
