"""Width, ridge and number of vectors by leave-one-out: FVS-LR without a number to choose (methods F9)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fewkern.backend.namespace import Array, asarray_like, device, namespace
from fewkern.backend.random import random_generator, seed_from
from fewkern.backend.threads import threads_for
from fewkern.core.basis import KernelBasis
from fewkern.core.kernels import Kernel
from fewkern.core.samples import Samples
from fewkern.core.trace import TOLERANCE, Stop, Trace, smallest_within
from fewkern.vectors.grid import KernelGrid, units_to_compare
from fewkern.vectors.leave_one_out import LARGE, HeldOut, Judging, Path, class_targets, loo_paths, solve
from fewkern.vectors.selection import Selecting, Selection, choose_basis, select_vectors

__all__ = [
    "RIDGES",
    "SEARCH_ROWS",
    "Found",
    "Judge",
    "Searching",
    "Trial",
    "automatic_model",
    "choose_grid",
    "choose_width",
    "class_grid",
    "held_out_values",
    "search",
    "split_off",
]

# Ridges that are compared, in units of the mean of k(x, x). Without any ridge coefficients can grow until nothing of
# the sum is left but rounding.
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Above LARGE samples, width, ridge and number of vectors are searched on some of them, at most SEARCH_ROWS, and others,
# at most LARGE, are kept to judge models. The vectors are then chosen among all.
SEARCH_ROWS, _JUDGED_SHARE = 10_000, 0.2
# The search then looks only at widths near the one that is best on so many samples: one step above it, two below,
# because more samples and longer paths allow narrower kernels.
_NEAR_ROWS, _STEPS_BELOW, _STEPS_ABOVE = 1000, 2, 1
# The unit of the widths is decided on at most so many samples, by short paths at two widths (0.55 and 1.3 times that of
# the rule) and two ridges. Paths of 50 or 100 vectors decide alike on ten sets; one width alone is wrong on four.
_RACE_ROWS, _RACE_LENGTH, _RACE_WIDTHS, _RACE_RIDGES = 1000, 30, (3, 5), (1e-4, 1e-2)
# Without a budget a path has one vector for _SAMPLES_PER_VECTOR samples at first, but not fewer or more than
# _FIRST_LENGTHS (and at most half of the samples). It goes on while that pays: to the larger of these lengths, to a
# tenth of the samples, or half of them for "accurate", and _LONGEST at most.
_FIRST_LENGTHS, _SAMPLES_PER_VECTOR, _LONGEST = (50, 100), 8, 1000
_SHARE = {"accurate": 0.5, "balanced": 0.1, "sparse": 0.1}
# Parts of the samples, each of which is judged at the settings that the others choose. Above LARGE samples there are no
# parts: the least of many errors is then hardly too small.
_PARTS = 5
# Of more widths than this every other one is looked at first: errors change little from one to the next.
_FEW_WIDTHS = 4
# A path is worth going on with when its minimum lies in the last part of it, or when a short one leaves so much of the
# error of a constant.
_NEAR_END, _BLIND = 0.9, 0.7


@dataclass(frozen=True)
class Searching:
    """What a search compares, and what it prefers."""

    how: Selecting
    ridges: tuple[float, ...]
    """In units of the kernel."""
    limit: int
    """Length of every path at first."""
    ceiling: int
    """While the best model lies at the end of its path, the paths that compete with it are continued to twice the
    length, up to this one, as long as that lowers the error by half a standard error."""
    tolerance: float | None
    """Standard errors that a smaller model may lose; None takes the whole of the path with the best end."""

    @classmethod
    def automatic(
        cls, how: Selecting, n: int, *, n_vectors: Any, max_vectors: Any, ridge: Any, prefer: str
    ) -> Searching:
        """The search that the parameters of an estimator describe, for ``n`` samples.

        An automatic ridge is in units of the mean of ``k(x, x)``: :meth:`in_units_of` makes a number of it.
        """
        ridges = RIDGES if ridge == "auto" else (float(ridge),)
        if n_vectors != "auto":
            return cls(how, ridges, min(int(n_vectors), n), 0, None)
        if max_vectors != "auto":
            return cls(how, ridges, min(int(max_vectors), n), 0, TOLERANCE[prefer])
        half = max(1, n // 2)
        first = max(_FIRST_LENGTHS[0], min(n // _SAMPLES_PER_VECTOR, _FIRST_LENGTHS[1]))
        ceiling = max(min(_FIRST_LENGTHS[1], half), min(_LONGEST, int(_SHARE[prefer] * n)))
        return cls(how, ridges, min(first, half), ceiling, TOLERANCE[prefer])

    def n_paths(self, n_kernels: int, n: int) -> int:
        """How many paths :func:`automatic_model` follows or continues at most, those of all ridges together.

        On many samples, ``n``, the vectors are chosen once more, among all.
        """
        rounds, limit = 1, self.limit
        while limit < self.ceiling:
            rounds, limit = rounds + 1, min(2 * limit, self.ceiling)
        if n <= LARGE:
            return rounds * n_kernels
        return rounds * min(n_kernels, _STEPS_BELOW + 1 + _STEPS_ABOVE) + 1

    def in_units_of(self, kernel: Kernel, samples: Samples) -> Searching:
        """The same search with the grid of ridges times the mean of ``k(x, x)``: units of the data do not matter."""
        if len(self.ridges) == 1:
            return self
        diag = kernel.diag(samples.X)
        scale = float(namespace(diag).mean(diag))
        return replace(self, ridges=tuple(ridge * scale for ridge in self.ridges)) if scale > 0 else self


@dataclass(frozen=True)
class Judge:
    """Vectors, ridge and number of vectors that the samples outside of a part choose."""

    part: Array
    """Whether a sample belongs to the part."""
    selection: Selection
    ridge: float
    n_vectors: int

    @property
    def key(self) -> tuple[int, float, int]:
        """The same for judges with the same settings."""
        return id(self.selection), self.ridge, self.n_vectors

    def values(self, samples: Samples) -> Array:
        """What the model with these settings says of every sample (or group) when that is left out."""
        Z = self.selection.G[:, : self.n_vectors]
        return solve(Z, samples.targets, self.ridge, samples.weights, samples.groups).held_out


@dataclass(frozen=True)
class Trial:
    """A search on some of the samples."""

    searched: Array
    """Positions of the samples that were searched ..."""
    judged: Array
    """... and of others, which the search has not seen."""
    found: Found


@dataclass(frozen=True)
class Found:
    """What a search found: vectors, ridge and number of vectors."""

    selection: Selection
    ridge: float
    n_vectors: int
    trace: Trace
    judges: tuple[Judge, ...] = ()
    """For every part of the samples; none where the samples are too few for parts, or many."""
    trial: Trial | None = None
    """Where the samples are many: the search that chose everything but the vectors."""

    @property
    def longest(self) -> Selection:
        """The selection whose path was searched."""
        return self.selection if self.trial is None else self.trial.found.selection

    @property
    def kernel(self) -> Kernel:
        """With the width that was chosen."""
        return self.selection.gram.kernel

    @property
    def Z(self) -> Array:
        """Features of all samples on the vectors that were chosen."""
        return self.selection.G[:, : self.n_vectors]

    @property
    def basis(self) -> KernelBasis:
        """The basis on the vectors that were chosen."""
        return self.selection.basis().head(self.n_vectors)

    @property
    def stop(self) -> Stop:
        """SIZE if a smaller model was preferred to the whole path, else why the selection ended."""
        return Stop.SIZE if self.n_vectors < self.longest.n_vectors else self.longest.stop


def automatic_model(
    samples: Samples, kernel: Kernel, plan: Searching, step: Callable[[int], None] = lambda _: None
) -> Found:
    """The kernel, vectors, ridge and size that leave-one-out prefers; ``samples`` have targets.

    A width that is a rule becomes a grid of widths. On many samples all but the vectors is chosen on some of them.
    """
    grid = choose_grid(samples, kernel, plan)
    plan = plan.in_units_of(grid.kernels[0], samples)
    if samples.n <= LARGE:
        return search(samples, grid, plan, step)
    searched, judged = split_off(samples, plan.how.seed)
    part = samples.take(searched)
    found = search(part, _near_best(part, grid, plan), plan, step)
    with threads_for(samples.n * plan.limit**2):
        selection = choose_basis(samples, found.kernel, plan.how, found.selection.n_vectors)
    step(plan.n_paths(len(grid), samples.n))
    n_vectors = min(found.n_vectors, selection.n_vectors)
    return Found(selection, found.ridge, n_vectors, found.trace, trial=Trial(searched, judged, found))


def split_off(samples: Samples, seed: int) -> tuple[Array, Array]:
    """Positions of samples to search on, and of others that judge; whole groups where there are any."""
    mixed = [int(i) for i in random_generator(seed).permutation(samples.n)]
    if samples.groups is None:
        count = min(int(_JUDGED_SHARE * samples.n), LARGE)
        judged, searched = mixed[:count], mixed[count:]
    else:
        inside = set(samples.folds(round(1 / _JUDGED_SHARE))[0][1])
        judged, searched = [i for i in mixed if i in inside][:LARGE], [i for i in mixed if i not in inside]
    first, second = (
        asarray_like(sorted(part), samples.rows, dtype=samples.rows.dtype) for part in (searched[:SEARCH_ROWS], judged)
    )
    return first, second


def _near_best(samples: Samples, grid: KernelGrid, plan: Searching) -> KernelGrid:
    """The widths near the one that short paths on a few of the samples prefer."""
    if len(grid) == 1:
        return grid
    some = samples.some(_NEAR_ROWS, random_generator(plan.how.seed))
    judging = Judging.of(some)
    with threads_for(some.n * plan.limit**2):
        least = [_Fan.start(some, kernel, plan, judging).least for kernel in grid.kernels]
    best = least.index(min(least))
    return grid.some(range(max(0, best - _STEPS_BELOW), min(best + _STEPS_ABOVE + 1, len(grid))))


def held_out_values(samples: Samples, found: Found) -> HeldOut | None:
    """What the model says of every sample when that is left out, without the optimism of the choice.

    The least of many leave-one-out errors is too small, because the settings were chosen on the same samples. So every
    part of the samples is left out, one by one, at the settings that the other parts choose. None without parts.
    """
    if not found.judges:
        return None
    xp = namespace(samples.targets)
    values = xp.zeros_like(samples.targets)
    known: dict[tuple[int, float, int], Array] = {}
    for judge in found.judges:
        if judge.key not in known:
            known[judge.key] = judge.values(samples)
        values = xp.where(judge.part[:, None], known[judge.key], values)
    return HeldOut(samples, values)


def choose_width(samples: Samples, kernel: Kernel, seed: int) -> KernelGrid:
    """The kernel with the width that FVS-LR takes for the classes of the samples, as a grid of one."""
    samples = class_targets(samples)
    found = automatic_model(samples, kernel, _plan_for_classes(samples, seed))
    return KernelGrid((found.kernel,), (found.trace.setting["width"],))


def class_grid(samples: Samples, kernel: Kernel, seed: int) -> KernelGrid:
    """The widths to compare for the classes of the samples; see :func:`choose_grid`."""
    samples = class_targets(samples)
    return choose_grid(samples, kernel, _plan_for_classes(samples, seed))


def _plan_for_classes(samples: Samples, seed: int) -> Searching:
    limit = max(1, min(_FIRST_LENGTHS[1], samples.n // 2))
    return Searching(Selecting(seed=seed_from(seed)), RIDGES, limit, 0, TOLERANCE["balanced"])


def choose_grid(samples: Samples, kernel: Kernel, plan: Searching) -> KernelGrid:
    """The widths to compare, in the unit that leave-one-out prefers where ``unit="auto"`` leaves the choice."""
    grids = [KernelGrid.around(rival, samples.X) for rival in units_to_compare(kernel, samples.X)]
    if len(grids) == 1:
        return grids[0]
    some = samples.some(_RACE_ROWS, random_generator(plan.how.seed))
    ridges = plan.ridges if len(plan.ridges) == 1 else _RACE_RIDGES
    plan = replace(plan, ridges=ridges, limit=min(plan.limit, _RACE_LENGTH, max(1, some.n // 2)))
    plan = plan.in_units_of(grids[0].kernels[0], some)
    judging = Judging.of(some)
    with threads_for(some.n * plan.limit**2):
        least = [min(_Fan.start(some, grid.kernels[k], plan, judging).least for k in _RACE_WIDTHS) for grid in grids]
    return grids[least.index(min(least))]


def search(samples: Samples, grid: KernelGrid, plan: Searching, step: Callable[[int], None] = lambda _: None) -> Found:
    """Follow the path of every kernel and ridge, and take the smallest model that is as good as the best.

    Parameters
    ----------
    samples : Samples
        With targets.
    grid : KernelGrid
    plan : Searching
    step : function
        Called with the number of paths so far, those that were continued counted again.

    Notes
    -----
    Per kernel and ridge ``n L^2`` flops in BLAS-3; memory ``n L`` numbers per kernel.
    """
    with threads_for(samples.n * plan.limit**2):
        return _search(samples, grid, plan, step)


def _search(samples: Samples, grid: KernelGrid, plan: Searching, step: Callable[[int], None]) -> Found:
    parts = samples.deal(_PARTS, plan.how.seed) if samples.n <= LARGE else None
    judging = Judging.of(samples, parts)
    looked_at = _look(samples, grid, plan, judging, step)
    grid, fans = grid.some(sorted(looked_at)), [looked_at[k] for k in sorted(looked_at)]
    if plan.tolerance is not None:
        fans = _lengthen(fans, samples, plan, judging, step)
    error, spread = _stacked(fans)
    chosen = _choose_among(fans, error, spread, plan)
    axes: dict[str, tuple[float, ...]] = {
        "width": grid.widths,
        "ridge": plan.ridges,
        "n_vectors": tuple(range(int(error.shape[2]))),
    }
    judges = []
    for part in range(0 if parts is None else _PARTS):
        inside = parts == part
        rest = _errors_without(fans, part, error, samples.weights, inside)
        judges.append(Judge(inside, *_setting(fans, plan, _choose_among(fans, rest, spread, plan))))
    return Found(*_setting(fans, plan, chosen), Trace(axes, error, spread, chosen), tuple(judges))


def _look(
    samples: Samples, grid: KernelGrid, plan: Searching, judging: Judging, step: Callable[[int], None]
) -> dict[int, _Fan]:
    """The paths of kernels by their numbers: of a few, or of every other one and the neighbors of the best."""
    fans: dict[int, _Fan] = {}
    wanted = list(range(len(grid))) if len(grid) <= _FEW_WIDTHS else list(range(1, len(grid), 2))
    while wanted:
        for k in wanted:
            fans[k] = _Fan.start(samples, grid.kernels[k], plan, judging)
            step(len(fans))
        best = min(fans, key=lambda k: fans[k].least)
        wanted = [k for k in (best - 1, best + 1) if 0 <= k < len(grid) and k not in fans]
    return fans


def _setting(fans: list[_Fan], plan: Searching, chosen: tuple[int, int, int]) -> tuple[Selection, float, int]:
    k, r, L = chosen
    return fans[k].selection, plan.ridges[r], L


@dataclass(frozen=True)
class _Fan:
    """The paths of one kernel: one selection, one path of errors per ridge."""

    selection: Selection
    paths: list[Path]

    @classmethod
    def start(cls, samples: Samples, kernel: Kernel, plan: Searching, judging: Judging) -> _Fan:
        return cls.along(choose_basis(samples, kernel, plan.how, plan.limit), samples, plan, judging)

    @classmethod
    def along(cls, selection: Selection, samples: Samples, plan: Searching, judging: Judging) -> _Fan:
        return cls(selection, loo_paths(selection.G, samples.targets, plan.ridges, samples.weights, judging))

    def longer(self, samples: Samples, plan: Searching, limit: int, within: float, judging: Judging) -> _Fan:
        """Go on with the ridges that reach an error of ``within``; the paths of the others end where they are."""
        selection = select_vectors(self.selection.gram, plan.how, limit, samples.weights, self.selection)
        going_on = [r for r, path in enumerate(self.paths) if _least(path) <= within]
        ridges = tuple(plan.ridges[r] for r in going_on)
        longer = dict(zip(going_on, loo_paths(selection.G, samples.targets, ridges, samples.weights, judging)))
        return _Fan(selection, [longer.get(r, path) for r, path in enumerate(self.paths)])

    @property
    def least(self) -> float:
        return min(_least(path) for path in self.paths)

    def at_end(self, limit: int) -> float:
        """The least error at ``limit`` vectors; infinite where no path is as long."""
        return min((float(path.error[limit]) for path in self.paths if path.error.shape[0] > limit), default=math.inf)


def _least(path: Path) -> float:
    return float(namespace(path.error).min(path.error))


def _lengthen(
    fans: list[_Fan], samples: Samples, plan: Searching, judging: Judging, step: Callable[[int], None]
) -> list[_Fan]:
    """Continue the competing paths while the best model lies at the end of its path and that pays."""
    limit, done = plan.limit, len(fans)
    while limit < plan.ceiling:
        k, r, L = _choose(*_stacked(fans), 0.0)
        best, half = float(fans[k].paths[r].error[L]), 0.5 * float(fans[k].paths[r].spread[L])
        # where only some of many samples judge, a path that still falls may have its least error anywhere near the end
        level = samples.n > LARGE and min(fan.at_end(limit) for fan in fans) <= best + half
        # where vectors are so few that they explain next to nothing, more may explain much
        blind = limit < _FIRST_LENGTHS[1] and best > _BLIND * float(fans[k].paths[r].error[0])
        if L < _NEAR_END * limit and not level and not blind:
            break
        limit = min(2 * limit, plan.ceiling)
        within = best + 2 * half
        rivals = [fan.least <= within and fan.selection.stop == Stop.LIMIT for fan in fans]
        fans = [fan.longer(samples, plan, limit, within, judging) if rival else fan for fan, rival in zip(fans, rivals)]
        done += sum(rivals)
        step(done)
        k, r, L = _choose(*_stacked(fans), 0.0)
        if best - float(fans[k].paths[r].error[L]) < half:
            break
    return fans


def _choose_among(fans: list[_Fan], error: Array, spread: Array, plan: Searching) -> tuple[int, int, int]:
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


def _stacked(fans: list[_Fan]) -> tuple[Array, Array]:
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


def _errors_without(fans: list[_Fan], part: int, error: Array, weights: Array, inside: Array) -> Array:
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
