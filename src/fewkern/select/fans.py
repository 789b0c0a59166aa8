"""The paths that a search follows: for every kernel one selection of vectors, and one path of errors per ridge."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fewkern.arrays.namespace import Array, device, namespace
from fewkern.core.kernel import Kernel
from fewkern.core.path import Stop, smallest_within
from fewkern.core.samples import Samples
from fewkern.select.grid import KernelGrid
from fewkern.select.leave_one_out import LARGE, Judging, Path, loo_paths
from fewkern.select.searching import FIRST_LENGTHS, Searching
from fewkern.select.selection import Selection, choose_basis, select_vectors

__all__ = ["Fan", "choose_among", "errors_without", "follow", "lengthen", "stacked"]

# Of more length scales than this every other one is looked at first: errors change little from one to the next.
_FEW_WIDTHS = 4
# A path is worth going on with when its minimum lies in the last part of it, or when a short one leaves so much of the
# error of a constant.
_NEAR_END, _BLIND = 0.9, 0.7


@dataclass(frozen=True)
class Fan:
    """The paths of one kernel: one selection, one path of errors per ridge."""

    selection: Selection
    paths: list[Path]

    @classmethod
    def start(cls, samples: Samples, kernel: Kernel, plan: Searching, judging: Judging) -> Fan:
        return cls.along(choose_basis(samples, kernel, plan.how, plan.limit), samples, plan, judging)

    @classmethod
    def along(cls, selection: Selection, samples: Samples, plan: Searching, judging: Judging) -> Fan:
        return cls(selection, loo_paths(selection.G, samples.targets, plan.ridges, samples.weights, judging))

    def longer(self, samples: Samples, plan: Searching, limit: int, within: float, judging: Judging) -> Fan:
        """Go on with the ridges that reach an error of ``within``; the paths of the others end where they are."""
        selection = select_vectors(self.selection.gram, plan.how, limit, samples.weights, self.selection)
        going_on = [r for r, path in enumerate(self.paths) if _least(path) <= within]
        ridges = tuple(plan.ridges[r] for r in going_on)
        longer = dict(zip(going_on, loo_paths(selection.G, samples.targets, ridges, samples.weights, judging)))
        return Fan(selection, [longer.get(r, path) for r, path in enumerate(self.paths)])

    @property
    def least(self) -> float:
        return min(_least(path) for path in self.paths)

    @property
    def last(self) -> float:
        """The least error at the ends of the paths."""
        return min(float(path.error[-1]) for path in self.paths)

    def at_end(self, limit: int) -> float:
        """The least error at ``limit`` vectors; infinite where no path is as long."""
        return min((float(path.error[limit]) for path in self.paths if path.error.shape[0] > limit), default=math.inf)


def _least(path: Path) -> float:
    return float(namespace(path.error).min(path.error))


def follow(
    samples: Samples, grid: KernelGrid, plan: Searching, judging: Judging, step: Callable[[int], None]
) -> dict[int, Fan]:
    """The paths of kernels by their numbers: of a few, or of every other one and the neighbors of the best."""
    fans: dict[int, Fan] = {}
    wanted = list(range(len(grid))) if len(grid) <= _FEW_WIDTHS else list(range(1, len(grid), 2))
    while wanted:
        for k in wanted:
            fans[k] = Fan.start(samples, grid.kernels[k], plan, judging)
            step(len(fans))
        best = min(fans, key=lambda k: fans[k].last if plan.tolerance is None else fans[k].least)
        wanted = [k for k in (best - 1, best + 1) if 0 <= k < len(grid) and k not in fans]
    return fans


def lengthen(
    fans: list[Fan], samples: Samples, plan: Searching, judging: Judging, step: Callable[[int], None]
) -> list[Fan]:
    """Continue the competing paths while the best model lies at the end of its path and that pays."""
    limit, done = plan.limit, len(fans)
    while limit < plan.ceiling:
        k, r, L = _choose(*stacked(fans), 0.0)
        best, half = float(fans[k].paths[r].error[L]), 0.5 * float(fans[k].paths[r].spread[L])
        # where only some of many samples judge, a path that still falls may have its least error anywhere near the end
        level = samples.n > LARGE and min(fan.at_end(limit) for fan in fans) <= best + half
        # where vectors are so few that they explain next to nothing, more may explain much
        blind = limit < FIRST_LENGTHS[1] and best > _BLIND * float(fans[k].paths[r].error[0])
        if L < _NEAR_END * limit and not level and not blind:
            break
        limit = min(2 * limit, plan.ceiling)
        within = best + 2 * half
        rivals = [fan.least <= within and fan.selection.stop == Stop.LIMIT for fan in fans]
        fans = [fan.longer(samples, plan, limit, within, judging) if rival else fan for fan, rival in zip(fans, rivals)]
        done += sum(rivals)
        step(done)
        k, r, L = _choose(*stacked(fans), 0.0)
        if best - float(fans[k].paths[r].error[L]) < half:
            break
    return fans


def choose_among(fans: list[Fan], error: Array, spread: Array, plan: Searching) -> tuple[int, int, int]:
    """The model that these errors prefer; without a tolerance the best of those at the ends of the paths."""
    if plan.tolerance is not None:
        return _choose(error, spread, plan.tolerance)
    ends = {
        (k, r, fan.selection.n_vectors): float(error[k, r, fan.selection.n_vectors])
        for k, fan in enumerate(fans)
        for r in range(len(plan.ridges))
    }
    return min(ends, key=lambda at: ends[at])


def _choose(error: Array, spread: Array, tolerance: float) -> tuple[int, int, int]:
    """The smallest model (with a vector) within ``tolerance`` standard errors of the least error."""
    # Paper: the number of vectors is read off test curves. We: the least mean squared leave-one-out error, because the
    # leave-one-out error *rate* is 0.6 to 5.6 points optimistic at its minimum.
    xp = namespace(error)
    if error.shape[2] == 1:  # no sample could be chosen
        return 0, 0, 0
    error, spread = error[:, :, 1:], spread[:, :, 1:]
    k, r, L = smallest_within(error, xp.zeros_like(error), 0.0)
    size = xp.zeros_like(error) + xp.arange(error.shape[2], dtype=error.dtype, device=device(error))
    k, r, L = smallest_within(error, size, tolerance * float(spread[k, r, L]))
    return k, r, L + 1


def stacked(fans: list[Fan]) -> tuple[Array, Array]:
    """Errors and standard errors of all paths, infinite beyond their ends."""
    first = fans[0].paths[0].error
    xp = namespace(first)
    longest = max(int(path.error.shape[0]) for fan in fans for path in fan.paths)
    shape = (len(fans), len(fans[0].paths), longest)
    error = xp.full(shape, xp.inf, dtype=first.dtype, device=device(first))
    spread = xp.full(shape, xp.inf, dtype=first.dtype, device=device(first))
    for k, fan in enumerate(fans):
        for r, path in enumerate(fan.paths):
            error[k, r, : path.error.shape[0]] = path.error
            spread[k, r, : path.error.shape[0]] = path.spread
    return error, spread


def errors_without(fans: list[Fan], part: int, error: Array, weights: Array, inside: Array) -> Array:
    """The errors of all paths without those of one part of the samples."""
    xp = namespace(error)
    total, own = float(xp.sum(weights)), float(weights @ xp.astype(inside, weights.dtype))
    rest = xp.full_like(error, xp.inf)
    for k, fan in enumerate(fans):
        for r, path in enumerate(fan.paths):
            sums: Any = path.parts
            length, known = sums.shape[1], xp.isfinite(path.error)
            without = (total * path.error - sums[part, :]) / (total - own)
            rest[k, r, :length] = xp.where(known, without, path.error)
    return rest
