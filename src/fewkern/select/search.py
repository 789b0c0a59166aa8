"""Length scale, ridge and number of vectors by leave-one-out: FVS-LR without a number to choose (methods F9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fewkern.arrays.namespace import Array, asarray_like, namespace
from fewkern.arrays.random import random_generator, seed_from
from fewkern.arrays.threads import threads_for
from fewkern.core.basis import KernelBasis
from fewkern.core.kernel import Kernel
from fewkern.core.path import TOLERANCE, Path, Stop
from fewkern.core.samples import Samples
from fewkern.select.fans import Fan, choose_among, errors_without, follow, lengthen, stacked
from fewkern.select.grid import KernelGrid, units_to_compare
from fewkern.select.leave_one_out import LARGE, HeldOut, Judging, class_targets, solve
from fewkern.select.searching import FIRST_LENGTHS, RIDGES, STEPS_ABOVE, STEPS_BELOW, Searching
from fewkern.select.selection import Selecting, Selection, choose_basis

__all__ = [
    "SEARCH_ROWS",
    "Found",
    "Judge",
    "automatic_model",
    "choose_grid",
    "choose_width",
    "class_grid",
    "held_out_values",
    "search",
]

# Above LARGE samples, length scale, ridge and number of vectors are searched on some of them, at most SEARCH_ROWS; the
# vectors are then chosen among all. Where a fifth is spared, models are a quarter smaller than without, at the same
# error.
SEARCH_ROWS, _SPARED = 10_000, 0.2
# The search then looks only at length scales near the one that is best on so many samples.
_NEAR_ROWS = 1000
# The unit of the length scales is decided on at most so many samples, by short paths at two length scales (0.55 and 1.3
# times that of the rule) and two ridges. Paths of 50 or 100 vectors decide alike on ten sets; one length scale alone is
# wrong on four.
_RACE_ROWS, _RACE_LENGTH, _RACE_WIDTHS, _RACE_RIDGES = 1000, 30, (3, 5), (1e-4, 1e-2)
# Parts of the samples, each of which is judged at the settings that the others choose. Above LARGE samples there are no
# parts: the least of many errors is then hardly too small.
_PARTS = 5


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
class Found:
    """What a search found: vectors, ridge and number of vectors."""

    selection: Selection
    ridge: float
    n_vectors: int
    trace: Path
    judges: tuple[Judge, ...] = ()
    """For every part of the samples; none where the samples are too few for parts, or many."""
    searched: Selection | None = None
    """Where all but the vectors was chosen on some of the samples: the selection among these."""

    @property
    def longest(self) -> Selection:
        """The selection whose path was searched."""
        return self.selection if self.searched is None else self.searched

    @property
    def kernel(self) -> Kernel:
        """With the length scale that was chosen."""
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

    A length scale that is a rule becomes a grid of length scales. On many samples all but the vectors is chosen on some
    of them.
    """
    grid = choose_grid(samples, kernel, plan)
    plan = plan.in_units_of(grid.kernels[0], samples)
    if samples.n <= LARGE:
        return search(samples, grid, plan, step)
    mixed = random_generator(plan.how.seed).permutation(samples.n).tolist()
    rows = sorted(mixed[int(_SPARED * samples.n) :][:SEARCH_ROWS])
    some = samples.take(asarray_like(rows, samples.rows, dtype=samples.rows.dtype))
    found = search(some, _near_best(some, grid, plan), plan, step)
    with threads_for(samples.n * plan.limit**2):
        selection = choose_basis(samples, found.kernel, plan.how, found.selection.n_vectors)
    step(plan.n_paths(len(grid), samples.n))
    n_vectors = min(found.n_vectors, selection.n_vectors)
    return Found(selection, found.ridge, n_vectors, found.trace, searched=found.selection)


def _near_best(samples: Samples, grid: KernelGrid, plan: Searching) -> KernelGrid:
    """The length scales near the one that short paths on a few of the samples prefer."""
    if len(grid) == 1:
        return grid
    some = samples.some(_NEAR_ROWS, random_generator(plan.how.seed))
    judging = Judging.of(some)
    with threads_for(some.n * plan.limit**2):
        least = [Fan.start(some, kernel, plan, judging).least for kernel in grid.kernels]
    best = least.index(min(least))
    return grid.some(range(max(0, best - STEPS_BELOW), min(best + STEPS_ABOVE + 1, len(grid))))


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
    """The kernel with the length scale that FVS-LR takes for the classes of the samples, as a grid of one."""
    samples = class_targets(samples)
    found = automatic_model(samples, kernel, _plan_for_classes(samples, seed))
    return KernelGrid((found.kernel,), (found.trace.setting["length_scale"],))


def class_grid(samples: Samples, kernel: Kernel, seed: int) -> KernelGrid:
    """The length scales to compare for the classes of the samples; see :func:`choose_grid`."""
    samples = class_targets(samples)
    return choose_grid(samples, kernel, _plan_for_classes(samples, seed))


def _plan_for_classes(samples: Samples, seed: int) -> Searching:
    limit = max(1, min(FIRST_LENGTHS[1], samples.n // 2))
    return Searching(Selecting(seed=seed_from(seed)), RIDGES, limit, 0, TOLERANCE["balanced"])


def choose_grid(samples: Samples, kernel: Kernel, plan: Searching) -> KernelGrid:
    """The length scales to compare, in the unit that leave-one-out prefers where ``unit="auto"`` leaves the choice."""
    grids = [KernelGrid.around(rival, samples.X) for rival in units_to_compare(kernel, samples.X)]
    if len(grids) == 1:
        return grids[0]
    some = samples.some(_RACE_ROWS, random_generator(plan.how.seed))
    ridges = plan.ridges if len(plan.ridges) == 1 else _RACE_RIDGES
    plan = replace(plan, ridges=ridges, limit=min(plan.limit, _RACE_LENGTH, max(1, some.n // 2)))
    plan = plan.in_units_of(grids[0].kernels[0], some)
    judging = Judging.of(some)
    with threads_for(some.n * plan.limit**2):
        least = [min(Fan.start(some, grid.kernels[k], plan, judging).least for k in _RACE_WIDTHS) for grid in grids]
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
    followed = follow(samples, grid, plan, judging, step)
    grid, fans = grid.some(sorted(followed)), [followed[k] for k in sorted(followed)]
    if plan.tolerance is not None:
        fans = lengthen(fans, samples, plan, judging, step)
    error, spread = stacked(fans)
    chosen = choose_among(fans, error, spread, plan)
    axes: dict[str, tuple[float, ...]] = {
        "length_scale": grid.widths,
        "alpha": plan.ridges,
        "n_vectors": tuple(range(int(error.shape[2]))),
    }
    judges = []
    for part in range(0 if parts is None else _PARTS):
        inside = parts == part
        rest = errors_without(fans, part, error, samples.weights, inside)
        judges.append(Judge(inside, *_setting(fans, plan, choose_among(fans, rest, spread, plan))))
    return Found(*_setting(fans, plan, chosen), Path(axes, error, spread, chosen), tuple(judges))


def _setting(fans: list[Fan], plan: Searching, chosen: tuple[int, int, int]) -> tuple[Selection, float, int]:
    k, r, L = chosen
    return fans[k].selection, plan.ridges[r], L
