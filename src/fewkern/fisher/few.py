r"""A kernel Fisher machine with as few vectors as the samples allow.

1. The width of least squared held-out error of forward selection, :mod:`fewkern.fisher.forward_folds`.
2. The number of columns at which that error is nearly least: enough to begin with. Several classes begin with all that
   are allowed, and the folds choose the penalty of the regression on them.
3. So many columns, by the machine's own rule, and of these as few as a logistic regression needs
   (:mod:`fewkern.fisher.deciding`). How many is said by samples held out from both.
"""

# Paper: the discriminant is the least-squares function on the vectors that were kept. We: where the number of vectors
# is automatic, a logistic regression on their columns, because it needs about half as many for the same error.

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from fewkern.backend.folds import Fold
from fewkern.backend.namespace import Array, namespace, take_rows, to_numpy
from fewkern.backend.random import random_generator
from fewkern.core.kernels import Kernel
from fewkern.core.samples import Samples
from fewkern.core.trace import TOLERANCE, Trace
from fewkern.fisher.choice import Candidates, Chosen, Comparing, kernel_scale
from fewkern.fisher.deciding import RIDGES, Deciding, Labelled, SeveralClasses, Sized, TwoClasses
from fewkern.fisher.elimination import take_each
from fewkern.fisher.families import LARGEST, LARGEST_SEVERAL, Family, Fitted
from fewkern.fisher.forward_folds import THOROUGH, Folded, FoldedPath, forward_folds
from fewkern.fisher.moving import HeldOutMoves, Moving, Origin, Way, hold_out, sizes_to_compare
from fewkern.fisher.problem import Begun, Machine
from fewkern.fisher.targets import fisher_targets
from fewkern.vectors.grid import KernelGrid
from fewkern.vectors.search import class_grid

__all__ = ["choose_few"]

# Widths are compared on at most so many samples, with so many of them as candidates; a rule for the width, such as the
# median distance, looks at _RULE_ROWS for every class.
_WIDTH_ROWS, _WIDTH_CANDIDATES, _RULE_ROWS = 2000, 150, 75
# The sizes of machines of several classes are compared on at most so many samples.
_SEVERAL_ROWS = 2500
# Columns that lower the error of forward selection by less than this share are not needed to begin with.
_SURPLUS = 0.02
# On all samples of several classes, so many times the columns that are wanted are enough to begin with.
_SPARE = 3
# An elimination ends early at so many times the least loss.
_HOPELESS = 2.0
# A difference of this share of the error is none, however certain: the errors of nested machines differ by little, and
# always in the same direction.
_NEGLIGIBLE = 0.03


class _Allowance(NamedTuple):
    """What a smaller machine may lose against the best one, in units of the tolerance of ``prefer``."""

    slight: float
    """Part of the logarithmic loss."""
    misses: float
    """Share of the samples."""


# For two classes the exchange that follows gives back a part of the loss. Moved vectors of several classes are judged
# by the sharp losses, which are a fifth of the others and differ by more; four samples in 1,000, with "balanced", are
# about a standard error of the difference where one in 80 is wrong.
_TWO, _SEVERAL, _MOVED_SEVERAL = _Allowance(0.15, 0.015), _Allowance(0.05, 0.004), _Allowance(0.5, 0.008)
# The share of the samples is at least so many of them: with "balanced", one sample more or less is no difference.
_SAMPLES = 2


def choose_few(
    samples: Samples,
    kernel: Kernel,
    plan: Comparing,
    folds: Sequence[Fold],
    step: Callable[[int], None] | None = None,
) -> tuple[Chosen, Fitted] | None:
    """Width and number of vectors by held-out error, and the machine; None if no column differs from a constant.

    Parameters
    ----------
    samples : Samples
        With classes.
    kernel : Kernel
        A width given as a rule becomes a grid of widths.
    plan : Comparing
    folds : sequence of (training positions, held-out positions)
    step : callable or None
        Called with the number of widths done.
    """
    rng = random_generator(plan.seed)
    grid = class_grid(samples.some(_RULE_ROWS * samples.n_classes, rng), kernel, plan.seed)
    folded = Folded.of(samples, folds)
    at = _best_width(folded.some(_WIDTH_ROWS, rng), grid.kernels, rng, step)
    candidates = Candidates.of(samples, grid.kernels[at], plan.max_candidates, plan.seed)
    beginning = _Beginning.of(folded, candidates, kernel_scale(samples, grid.kernels[at]), rng)
    if beginning.size == 0:
        return None
    deciding, stages = _deciding(samples, beginning)
    sizes = _compare_sizes(stages, beginning, plan)
    size = sizes.choose(plan.prefer, _TWO if samples.n_classes == 2 else _SEVERAL)
    begun = _begun(samples, beginning, plan.family, sizes.on_all(beginning, size))
    fitted, setting = _fit(samples, candidates, deciding, plan.family, begun, size)
    chosen = Chosen(candidates, setting, sizes.trace(grid, at, size))
    if plan.refine is False:
        return chosen, fitted
    moving = Moving(samples, candidates, beginning.scale, deciding)
    return _move(moving, chosen, fitted, _judge_moves(moving, folds, sizes, size, beginning), plan)


def _best_width(folded: Folded, kernels: tuple[Kernel, ...], rng: Any, step: Callable[[int], None] | None) -> int:
    """Number of the kernel that needs the fewest columns for nearly the least squared held-out error.

    Some kernels are looked at, and the neighbors of the best of them.
    """
    if len(kernels) == 1:
        return 0
    samples = folded.samples
    rows = folded.find(samples.some(_WIDTH_CANDIDATES, rng))
    usable = namespace(rows).take(folded.train, rows, axis=1) > 0
    paths: dict[int, FoldedPath] = {}
    wanted = [len(kernels) // 3, 2 * len(kernels) // 3]
    while wanted:
        for k in wanted:
            K = kernels[k](samples.X, kernels[k].pick(samples.X, rows))
            paths[k] = forward_folds(K, folded, LARGEST, usable)
            if step is not None:
                step(len(paths))
        best = min(paths, key=lambda k: (paths[k].least, k))
        wanted = [k for k in (best - 1, best + 1) if 0 <= k < len(kernels) and k not in paths]
    bound = (1 + _NEGLIGIBLE) * paths[best].least
    good = [k for k in paths if paths[k].least <= bound]
    return min(good, key=lambda k: (paths[k].enough(bound), paths[k].least))


@dataclass(frozen=True)
class _Beginning:
    """The columns that every fold begins with, more than it needs."""

    folded: Folded
    candidates: Candidates
    scale: float
    """Mean of ``k(x, x)``."""
    folds: Labelled
    order: Array
    """``(F, k)``; of two classes with one fold more, of all samples."""
    forward: Array
    """Columns that forward selection takes on all samples, in their order."""

    @classmethod
    def of(cls, folded: Folded, candidates: Candidates, scale: float, rng: Any) -> _Beginning:
        """By forward selection: for two classes as many as are enough, for several all that it takes."""
        K = take_rows(candidates.K, folded.rows)
        two = folded.samples.n_classes == 2
        # several classes need more columns than least squares says: every class has a score of its own
        limit = LARGEST if two else LARGEST_SEVERAL
        every = folded.with_all()
        path = forward_folds(K, every, limit, candidates.usable(every), THOROUGH if two else None)
        order, forward = path.order, path.order[-1, :]
        if two:
            order = order[:, : path.enough((1 + _SURPLUS) * path.least)]
            return cls(every, candidates, scale, Labelled(K, every.samples.codes, every.train), order, forward)
        some = folded.some(_SEVERAL_ROWS, rng)
        K = take_rows(candidates.K, some.rows)
        return cls(some, candidates, scale, Labelled(K, some.samples.codes, some.train), order[:-1, :], forward)

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.order.shape[1])


@dataclass(frozen=True)
class _Sizes:
    """Held-out errors of the machines of every size, as the share of every sample in their mean, ``(n,)``."""

    losses: dict[Any, Array]
    """Logarithmic losses by size, or by size and way."""
    wrong: dict[Any, Array]
    """Samples that are put into another class."""
    sharp: dict[int, Array] = field(default_factory=dict)
    """Logarithmic losses of scores times a factor, by size."""
    columns: dict[int, Array] = field(default_factory=dict)
    """Candidates that every fold is left with, ``(F, k)``, by size; of two classes the last fold is all samples."""

    def choose(self, prefer: str, allowed: _Allowance) -> Any:
        """The smallest size that is as good as the best one."""
        losses, misses = _means(self.losses), _means(self.wrong)
        best = min(losses, key=lambda size: (losses[size], size))
        tolerance, least = TOLERANCE[prefer], min(misses.values())
        few = max(allowed.misses, _SAMPLES / int(self.losses[best].shape[0]))

        def as_good(size: int) -> bool:
            spread = max(_spread(self.losses[size] - self.losses[best]), allowed.slight * losses[best])
            return losses[size] - losses[best] <= tolerance * spread and misses[size] - least <= tolerance * few

        return min((size for size in losses if as_good(size)), default=best)

    def on_all(self, beginning: _Beginning, size: int) -> Array:
        """The columns to begin with on all samples for a machine of this size."""
        if beginning.folded.samples.n_classes == 2:
            return self.columns[size][-1, :]
        return beginning.forward[: min(beginning.size, _SPARE * size)]

    def without(self, size: Any) -> _Sizes:
        """All but one of them."""
        return _Sizes(*({key: found[key] for key in found if key != size} for found in (self.losses, self.wrong)))

    def trace(self, grid: KernelGrid, at: int, size: int) -> Trace:
        """The errors at the width that was taken, infinite elsewhere."""
        sizes = sorted(self.losses)
        error, spread = ([[math.inf] * len(sizes) for _ in grid.kernels] for _ in range(2))
        means = _means(self.losses)
        error[at] = [means[s] for s in sizes]
        spread[at] = [_spread(self.losses[s]) for s in sizes]
        axes: dict[str, tuple[float, ...]] = {"width": grid.widths, "n_vectors": tuple(sizes)}
        chosen = (at, sizes.index(size))
        return Trace(axes, to_numpy(error), to_numpy(spread), chosen, measure="held-out logarithmic loss")


def _means(shares: dict[Any, Array]) -> dict[Any, float]:
    """Means by size, from the shares of all samples in them."""
    return {size: float(namespace(share).sum(share)) for size, share in shares.items()}


def _spread(shares: Array) -> float:
    """Standard error of a mean, from the shares of all samples in it."""
    xp = namespace(shares)
    return float(xp.sqrt(xp.sum((shares - xp.mean(shares)) ** 2)))


def _deciding(samples: Samples, beginning: _Beginning) -> tuple[Deciding, Iterator[Sized]]:
    """The logistic regression that is for these samples, and its sizes; the folds choose its ridge, on all columns.

    Two classes have one ridge, because few columns are a regularization of their own.
    """
    candidates, folded, scale = beginning.candidates, beginning.folded, beginning.scale
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    between = scale * take_rows(candidates.K, candidates.rows)
    if samples.n_classes == 2:
        only = TwoClasses(between)
        return only, only.sizes(beginning.folds, beginning.order)
    ways = [SeveralClasses(targets.theta, between, ridge) for ridge in RIDGES]
    errors, begun, factors = [], [], []
    for way in ways:
        stages = way.sizes(beginning.folds, beginning.order)
        first = next(stages)
        begun.append(chain([first], stages))
        factors.append(first.factor)
        losses = folded.held_out(first.losses)
        errors.append(float(namespace(losses).sum(losses)))
    best = errors.index(min(errors))
    return replace(ways[best], factor=factors[best]), begun[best]


def _compare_sizes(stages: Iterator[Sized], beginning: _Beginning, plan: Comparing) -> _Sizes:
    """Elimination in every fold; no size is beyond the budget."""
    held_out = beginning.folded.held_out
    losses: dict[int, Array] = {}
    wrong: dict[int, Array] = {}
    sharp: dict[int, Array] = {}
    columns: dict[int, Array] = {}
    least = math.inf
    for one in stages:
        losses[one.size], wrong[one.size] = held_out(one.losses), held_out(one.wrong)
        sharp[one.size] = held_out(one.sharp)
        columns[one.size] = take_each(beginning.order, one.kept)
        mean = float(namespace(one.losses).sum(losses[one.size]))
        least = min(least, mean)
        if plan.max_vectors is None and mean > _HOPELESS * least:
            break
    budget = beginning.size if plan.max_vectors is None else max(plan.max_vectors, min(losses))
    within = [size for size in losses if size <= budget]
    return _Sizes(*({size: found[size] for size in within} for found in (losses, wrong, sharp, columns)))


def _begun(samples: Samples, beginning: _Beginning, family: Family, columns: Array) -> Begun:
    """Columns to begin with on all samples, by the rule of the family; those of forward selection are ``columns``."""
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    settings = family.settings(beginning.scale, targets.stretch)
    begun = Begun(columns, beginning.forward)
    return family.reach(beginning.candidates.K, targets.rows(samples.codes), samples.weights, settings, begun)


def _fit(
    samples: Samples, candidates: Candidates, deciding: Deciding, family: Family, begun: Begun, size: int
) -> tuple[Fitted, float]:
    """The machine on all samples: ``size`` of the columns begun with are kept."""
    K = candidates.K
    xp = namespace(K)
    Y = fisher_targets(samples.codes, samples.n_classes, samples.weights).rows(samples.codes)
    machine, held_out = deciding.settle(Labelled(K, samples.codes, samples.weights), begun, size)
    told = family.tell(xp.take(K, machine.support, axis=1), Y, samples.weights, begun)
    machine = Machine(xp.take(machine.support, told.order), xp.take(machine.coef, told.order, axis=0), machine.offset)
    return Fitted(machine, held_out, told.objectives, told.ending, deciding), told.setting


@dataclass(frozen=True)
class _Moves:
    """Moved machines beside the one that keeps samples, by number of vectors and way."""

    held_out: HeldOutMoves
    errors: _Sizes
    kept: tuple[int, Way]
    sizes: _Sizes
    """Of machines that keep samples."""
    beginning: _Beginning


def _judge_moves(moving: Moving, folds: Sequence[Fold], sizes: _Sizes, size: int, beginning: _Beginning) -> _Moves:
    """Held-out errors of moved machines, on the samples on which sizes were compared."""
    rows = beginning.folded.rows
    begin = {
        some: [Origin(beginning.order[f, :], sizes.columns[some][f, :]) for f in range(len(folds))]
        for some in sizes_to_compare(size, moving.samples.n_classes, sizes.columns)
    }
    held_out = hold_out(moving, folds, begin)
    weights = take_rows(moving.samples.weights * held_out.times, rows)
    total = float(namespace(weights).sum(weights))
    losses, wrong = (
        {way: take_rows(values, rows) / total for way, values in found.items()}
        for found in (held_out.losses, held_out.wrong)
    )
    kept = (size, Way.KEPT)
    errors = _Sizes(losses | {kept: sizes.sharp[size]}, wrong | {kept: sizes.wrong[size]})
    return _Moves(held_out, errors, kept, sizes, beginning)


def _move(moving: Moving, chosen: Chosen, fitted: Fitted, moves: _Moves, plan: Comparing) -> tuple[Chosen, Fitted]:
    """The smallest machine, moved or not, that is as good as the best one; with ``refine=True`` a moved one."""
    samples, errors = moving.samples, moves.errors if plan.refine == "auto" else moves.errors.without(moves.kept)
    way = errors.choose(plan.prefer, _TWO if samples.n_classes == 2 else _MOVED_SEVERAL)
    if way == moves.kept:
        return chosen, fitted
    Y = fisher_targets(samples.codes, samples.n_classes, samples.weights).rows(samples.codes)
    beginning = moves.beginning
    begun = _begun(samples, beginning, plan.family, moves.sizes.on_all(beginning, way[0]))
    every = Labelled(moving.candidates.K, samples.codes, samples.weights)
    some = moving.deciding.settle(every, begun, way[0])[0].support
    moved = moving.move(Origin(beginning.forward[: beginning.size], some), way[1])
    machine, K = moved.machine, moved.candidates.K
    xp = namespace(K)
    seen = (moves.held_out.times > 0)[:, None]
    held_out = xp.where(seen, moves.held_out.values[way], machine.values(K))
    told = plan.family.tell(K, Y, samples.weights, begun)
    machine = Machine(told.order, xp.take(machine.coef, told.order, axis=0), machine.offset)
    return (
        Chosen(moved.candidates, told.setting, chosen.trace),
        Fitted(machine, held_out, told.objectives, told.ending, moved.deciding),
    )
