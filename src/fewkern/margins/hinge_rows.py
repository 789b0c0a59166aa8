r"""Hyperplanes on all rows of a fit: Newton's method on sums over the rows (methods A8).

The hyperplane of a sample is the start. On all rows the corner of every hinge is rounded,

.. math:: h_\mu(t) = [(h + \mu - t)_+^2 - (h - \mu - t)_+^2] / (4 \mu) ,

so that the objective has two derivatives, which are sums over rows: one pass over the rows per step. An interior point,
which solves the corner exactly, would need a multiplier for every row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fewkern.backend.linalg import weighted_gram
from fewkern.backend.namespace import Array, device, namespace, take_rows
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.margins.all_rows import RowFeatures
from fewkern.margins.convex import solve
from fewkern.margins.hinge import HingeSolution
from fewkern.margins.problems import MarginProblem, MarginTask
from fewkern.margins.spaces import Reflected

__all__ = ["AllRows", "Plane", "RoundedHinges", "rounded_hinges"]

# Half-width of the rounded corner, in units of the mean hinge at w = 0: first the wide one, then the narrow one, or
# what leaves about ten rows at the corner for every feature: with fewer, second derivatives change at every step. On 40,000
# rows, 20,000 of them the sample, four directions of 10 features are 0.03 to 0.9 degrees from those of the exact
# corner; those of the sample alone are 1 to 18 degrees from them.
_WIDE, _NARROW, _ROWS_PER_FEATURE = 0.05, 0.01, 10
# A step that promises less than this part of the value is taken unseen and is the last with its width; a wide corner
# only leads to the start of the next one.
_SMALL_WIDE, _SMALL = 1e-3, 1e-6
# Passes over the rows per direction.
_PASSES = 20
# Armijo's rule: least part of the predicted decrease; a step is halved at most so often.
_ARMIJO, _HALVINGS = 1e-4, 6
# Second derivatives of the hyperplanes that are summed in one pass hold at most so many numbers.
_SUMMED_NUMBERS = 1 << 24


@dataclass(frozen=True)
class Plane:
    """A hyperplane on its way, in the coordinates that are left."""

    problem: int
    """Which of the problems of the task it belongs to."""
    w: Array
    b: float
    mu: float
    """Half-width of the rounded corner."""

    def moved(self, step: Array, length: float) -> Plane:
        """After a step in ``(w, b)``."""
        return replace(self, w=self.w + length * step[:-1], b=self.b + length * float(step[-1]))


@dataclass(frozen=True)
class RoundedHinges:
    """Value of a sum of rounded hinges and its derivatives in ``(w, b)``; those of two blocks are added."""

    value: float
    slope: Array
    curvature: Array

    def __add__(self, other: RoundedHinges) -> RoundedHinges:
        return RoundedHinges(self.value + other.value, self.slope + other.slope, self.curvature + other.curvature)

    def with_length(self, w: Array) -> RoundedHinges:
        """With half the squared length of ``w`` added."""
        xp = namespace(w)
        own = xp.concat([w, xp.zeros_like(w[:1])])
        ones = xp.concat([xp.ones_like(w), xp.zeros_like(w[:1])])
        identity = ones[:, None] * xp.eye(own.shape[0], dtype=w.dtype, device=device(w))
        return RoundedHinges(self.value + 0.5 * float(w @ w), self.slope + own, self.curvature + identity)


def rounded_hinges(problem: MarginProblem, A: Array, plane: Plane) -> RoundedHinges:
    """Over the rows of ``A`` that the problem names."""
    xp, mu, h, C = namespace(A), plane.mu, problem.targets, problem.C
    A = take_rows(A, problem.rows)
    design = xp.concat([A, xp.ones_like(C[:, None])], axis=1)
    short = h - problem.signs * (A @ plane.w + plane.b)
    outer, inner = (xp.maximum(short + side, xp.zeros_like(short)) for side in (mu, -mu))
    value = float(C @ (outer * outer - inner * inner)) / (4.0 * mu)
    pull = -problem.signs * C * (outer - inner) / (2.0 * mu)
    at_corner = xp.nonzero(xp.abs(short) < mu)[0]
    curvature = weighted_gram(take_rows(design, at_corner), take_rows(C, at_corner) / (2.0 * mu))
    return RoundedHinges(value, design.T @ pull, curvature)


@dataclass(frozen=True)
class _Sums:
    """Of several hyperplanes."""

    of: tuple[RoundedHinges, ...]

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(tuple(a + b for a, b in zip(self.of, other.of)))


@dataclass(frozen=True)
class _OfBlock:
    """What is asked of every block of rows."""

    features: RowFeatures
    task: MarginTask
    Q: Array
    planes: tuple[Plane, ...]

    def __call__(self, samples: Samples) -> _Sums:
        A = self.features(samples.X) @ self.Q
        weights = namespace(A).astype(samples.weights, A.dtype)
        problems = self.task.problems(replace(samples, weights=weights))
        return _Sums(tuple(rounded_hinges(problems[plane.problem], A, plane) for plane in self.planes))


@dataclass
class _Descent:
    """Newton's method for one hyperplane, which is told the sums at ``trial``."""

    trial: Plane
    narrow: float
    """Half-width of the corner in the end."""
    best: Plane = field(init=False)
    value: float = math.inf
    step: Array = field(init=False)
    promise: float = 0.0
    """Slope along the step: twice what it promises to gain."""
    length: float = 1.0
    done: bool = False

    def look(self, sums: RoundedHinges) -> None:
        """Go on from the sums at ``trial``, or come back half of the way."""
        sums = sums.with_length(self.trial.w)
        if sums.value > self.value + _ARMIJO * self.length * self.promise:
            self.length /= 2.0
            if self.length < 0.5**_HALVINGS:
                self._end(self.best)
            else:
                self.trial = self.best.moved(self.step, self.length)
            return
        self.best, self.value, self.length = self.trial, sums.value, 1.0
        self.step = -solve(sums.curvature, sums.slope)
        self.promise = float(sums.slope @ self.step)
        self.trial = self.best.moved(self.step, 1.0)
        if -self.promise <= (_SMALL_WIDE if self.trial.mu > self.narrow else _SMALL) * abs(self.value):
            self._end(self.trial)

    def _end(self, plane: Plane) -> None:
        """Go on from ``plane`` with the narrow corner, or end there."""
        self.done, self.best = plane.mu <= self.narrow, plane
        if not self.done:
            self.trial = replace(plane, mu=self.narrow)
            self.value, self.promise, self.length = math.inf, 0.0, 1.0


@dataclass(frozen=True)
class AllRows:
    """All rows of a fit, for a recursion whose samples are some of them."""

    population: Population
    features: RowFeatures
    task: MarginTask

    def improved(
        self, space: Reflected, found: Sequence[tuple[int, HingeSolution]], units: Sequence[float]
    ) -> list[tuple[int, HingeSolution]]:
        """Hyperplanes of all rows, from those that the samples of ``space`` gave.

        ``units`` holds the size of a hinge for every problem.
        """
        at_once = max(1, _SUMMED_NUMBERS // (space.width + 1) ** 2)
        share = min(_WIDE, max(_NARROW, _ROWS_PER_FEATURE * space.width / self.population.n))
        result: list[tuple[int, HingeSolution]] = []
        for first in range(0, len(found), at_once):
            group = found[first : first + at_once]
            descents = [_Descent(Plane(k, s.w, s.bias, _WIDE * units[k]), share * units[k]) for k, s in group]
            self._descend(space.Q, descents)
            for (k, solution), descent in zip(group, descents):
                plane = descent.best
                result.append((k, replace(solution, w=plane.w, bias=plane.b, primal=descent.value)))
        return result

    def _descend(self, Q: Array, descents: Sequence[_Descent]) -> None:
        for _ in range(_PASSES):
            going = [descent for descent in descents if not descent.done]
            if not going:
                break
            ask = _OfBlock(self.features, self.task, Q, tuple(descent.trial for descent in going))
            sums = self.population.total(ask, self.features.width + int(Q.shape[1]) + 2)
            for descent, own in zip(going, sums.of):
                descent.look(own)
