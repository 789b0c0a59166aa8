"""Hyperplanes on all rows of a fit: the hyperplane of a sample, improved by Newton's method on sums over the rows.

An interior point, which solves the corners of the hinges exactly, would need a multiplier for every row. With rounded
corners (methods A8) a step needs one pass over the rows, wherever they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fewkern.arrays.namespace import Array, namespace
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.margins.all_rows import Coordinates, RowFeatures
from fewkern.margins.corner import Descent, Narrowing, Plane, RoundedHinges, corner_of, mean_hinge, rounded_hinges
from fewkern.margins.hinge import HingeProblem, HingeSolution
from fewkern.margins.problems import MarginProblem, MarginTask
from fewkern.margins.spaces import Reflected, Rows

__all__ = ["AllRows"]

# Half-widths of the rounded corner, in units of the mean hinge at w = 0. Of 40,000 rows, 20,000 of them the sample,
# four directions of 10 features are then 0.03 to 0.9 degrees from those of the exact corner; those of the sample alone
# are 1 to 18 degrees from them.
_WIDE, _NARROW, _NARROWER = 0.05, 0.01, 5.0
# Rows at a corner for every feature. Where classes are far apart, few rows are near, and corners stay wide.
_ROWS_PER_FEATURE = 4
# Passes over the rows per direction.
_PASSES = 15
# Second derivatives of the hyperplanes that are summed in one pass hold at most so many numbers.
_SUMMED_NUMBERS = 1 << 24


@dataclass(frozen=True)
class _Sums:
    """Of several hyperplanes."""

    of: tuple[RoundedHinges, ...]

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(tuple(a + b for a, b in zip(self.of, other.of)))


@dataclass(frozen=True)
class _OfBlock:
    """What is asked of every block of rows."""

    coordinates: Coordinates
    task: MarginTask
    planes: tuple[tuple[int, Plane], ...]
    """Hyperplanes in these coordinates, and the problems of the task that they belong to."""

    def __call__(self, samples: Samples) -> _Sums:
        A = self.coordinates(samples.X)
        weights = namespace(A).astype(samples.weights, A.dtype)
        problems = self.task.problems(replace(samples, weights=weights))
        return _Sums(tuple(rounded_hinges(problems[k].on(Rows(A)), plane) for k, plane in self.planes))


@dataclass(frozen=True)
class AllRows:
    """All rows of a fit, for a recursion whose samples are some of them."""

    population: Population
    features: RowFeatures
    task: MarginTask

    def improved(
        self, space: Reflected, problems: Sequence[MarginProblem], found: Sequence[tuple[int, HingeSolution]]
    ) -> list[tuple[int, HingeSolution]]:
        """Hyperplanes of all rows, from those that the samples of ``space`` gave to their problems.

        Where classes are so far apart that hardly a row is at a corner, steps may not settle: then it is that of the
        samples.
        """
        at_once = max(1, _SUMMED_NUMBERS // (space.width + 1) ** 2)
        result: list[tuple[int, HingeSolution]] = []
        for first in range(0, len(found), at_once):
            group = found[first : first + at_once]
            descents = [(k, _descent(problems[k].on(space), solution)) for k, solution in group]
            self._descend(space.Q, descents)
            for (k, solution), (_, descent) in zip(group, descents):
                if descent.found is not None:
                    plane, value = descent.found
                    solution = replace(solution, w=plane.w, bias=plane.b, primal=value)
                result.append((k, solution))
        return result

    def _descend(self, Q: Array, descents: Sequence[tuple[int, Descent]]) -> None:
        coordinates = self.features.along(Q)
        for _ in range(_PASSES):
            going = [(k, descent) for k, descent in descents if not descent.done]
            if not going:
                break
            ask = _OfBlock(coordinates, self.task, tuple((k, descent.trial) for k, descent in going))
            sums = self.population.total(ask, self.features.width + int(Q.shape[1]) + 2)
            for (_, descent), own in zip(going, sums.of):
                descent.look(own)


def _descent(problem: HingeProblem, solution: HingeSolution) -> Descent:
    """From the hyperplane of a sample; the sample says how wide a corner must be at first."""
    unit, least = mean_hinge(problem.signs, problem.targets, problem.C), _ROWS_PER_FEATURE * (problem.points.width + 1)
    plane = Plane(solution.w, solution.bias, _WIDE * unit)
    # a power of two: the last digits of the sample's hyperplane must not be seen in the result
    wider = math.ceil(math.log2(max(1.0, corner_of(problem, plane, least) / plane.mu)))
    return Descent(replace(plane, mu=plane.mu * 2.0**wider), Narrowing(_NARROW * unit, _NARROWER, least))
