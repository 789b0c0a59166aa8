"""Hyperplanes on all rows of a fit: the hyperplane of a sample, improved by Newton's method on sums over the rows.

An interior point, which solves the corners of the hinges exactly, would need a multiplier for every row. With rounded
corners (methods A8) a step needs one pass over the rows, wherever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fewkern.backend.namespace import Array, namespace
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.margins.all_rows import Coordinates, RowFeatures
from fewkern.margins.corner import Descent, Plane, RoundedHinges, rounded_hinges
from fewkern.margins.hinge import HingeSolution
from fewkern.margins.problems import MarginTask
from fewkern.margins.spaces import Reflected, Rows

__all__ = ["AllRows"]

# Half-width of the rounded corner, in units of the mean hinge at w = 0: first the wide one, then the narrow one, or
# what leaves about ten rows at the corner for every feature: with fewer, second derivatives change at every step. Of
# 40,000 rows, 20,000 of them the sample, four directions of 10 features are 0.03 to 0.9 degrees from those of the exact
# corner; those of the sample alone are 1 to 18 degrees from them.
_WIDE, _NARROW, _ROWS_PER_FEATURE = 0.05, 0.01, 10
# Passes over the rows per direction.
_PASSES = 20
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
        self, space: Reflected, found: Sequence[tuple[int, HingeSolution]], units: Sequence[float]
    ) -> list[tuple[int, HingeSolution]]:
        """Hyperplanes of all rows, from those that the samples of ``space`` gave.

        ``units`` holds the size of a hinge for every problem.
        """
        at_once = max(1, _SUMMED_NUMBERS // (space.width + 1) ** 2)
        narrow = min(_WIDE, max(_NARROW, _ROWS_PER_FEATURE * space.width / self.population.n))
        result: list[tuple[int, HingeSolution]] = []
        for first in range(0, len(found), at_once):
            group = found[first : first + at_once]
            descents = [(k, _descent(solution, units[k], narrow)) for k, solution in group]
            self._descend(space.Q, descents)
            for (k, solution), (_, descent) in zip(group, descents):
                plane = descent.best
                result.append((k, replace(solution, w=plane.w, bias=plane.b, primal=descent.value)))
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


def _descent(solution: HingeSolution, unit: float, narrow: float) -> Descent:
    """From the hyperplane of a sample, with a wide corner and then a narrow one."""
    plane = Plane(solution.w, solution.bias, _WIDE * unit)
    return Descent(plane, (narrow * unit,) if narrow < _WIDE else ())
