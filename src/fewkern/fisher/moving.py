"""Kernel Fisher machines whose vectors are not samples any more: moved, with a width for every feature.

1. Vectors that an elimination has left, and widths, are moved (:mod:`fewkern.vectors.refinement`). *Distilled*: until
   their least-squares function has the values of a machine with many more vectors, at the samples and in their company
   (:mod:`fewkern.vectors.company`). *Refined*: until the leave-one-out error of the classes is least, which can leave
   that machine behind, and can over-fit.
2. The coefficients are those of the machine's own logistic regression, :mod:`fewkern.fisher.deciding`.
3. Samples held out from all of it say which way, with how many vectors, and whether it pays at all.
"""

# Paper: the vectors are samples. We: with ``refine`` they are moved where samples held out ask for it, because half of
# them, or fewer, then do for the same error.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from fewkern.backend.folds import Fold
from fewkern.backend.linalg import one_hot, sum_by_index
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.random import random_generator
from fewkern.core.kernel import Kernel
from fewkern.core.samples import Samples
from fewkern.fisher.beginning import Beginning
from fewkern.fisher.choice import Candidates, Chosen, Comparing
from fewkern.fisher.deciding import Deciding, Labelled
from fewkern.fisher.families import Fitted
from fewkern.fisher.problem import Machine
from fewkern.fisher.sizes import MOVED_SEVERAL, TWO, Sizes
from fewkern.fisher.targets import fisher_targets
from fewkern.vectors.company import border_weights, with_company
from fewkern.vectors.objective import Placement, RefineProblem, refine_problem
from fewkern.vectors.refinement import free_widths, narrowed, refine

__all__ = [
    "HeldOutMoves",
    "Moved",
    "Moves",
    "Moving",
    "Origin",
    "Way",
    "choose_moved",
    "hold_out",
    "judge_moves",
    "sizes_to_compare",
]

# Steps of the search. More of them bring little to a distilled machine, and over-fit a refined one.
_STEPS = 40
# Vectors are distilled on at most so many samples, which with their company are at least so many rows. Without company,
# 86 vectors of 1,000 digits have 1.3 % test error, with it 1.1 %.
_LESSON_SAMPLES, _LESSON_ROWS = 2000, 3000
# Fewer vectors do where they are moved: these parts of their number are compared.
_PARTS, _PARTS_SEVERAL = (1.0, 0.5, 0.25), (0.5,)
# Penalty of the regression on moved vectors: a small one, because moving has made them few and different.
_RIDGE = 1e-4


class Way(IntEnum):
    """How vectors came to be where they are, the simplest first."""

    KEPT = 0
    DISTILLED = 1
    REFINED = 2


def ways(n_classes: int) -> tuple[Way, ...]:
    """Ways to move vectors; that of several classes over-fits with their labels."""
    return (Way.DISTILLED, Way.REFINED) if n_classes == 2 else (Way.DISTILLED,)


def sizes_to_compare(size: int, n_classes: int, known: Iterable[int]) -> list[int]:
    """Numbers of moved vectors, of those that are known, where ``size`` samples would be kept."""
    known, parts = sorted(known), _PARTS if n_classes == 2 else _PARTS_SEVERAL
    return list(dict.fromkeys(next(k for k in known if k >= min(part * size, known[-1])) for part in parts))


@dataclass(frozen=True)
class Moved:
    """A machine on vectors that were moved."""

    candidates: Candidates
    """These vectors, and no others."""
    machine: Machine
    deciding: Deciding
    """With the kernel between them."""

    def values(self, X: Array) -> Array:
        """Discriminant ``(n, p)`` of samples."""
        candidates = self.candidates
        return self.machine.values(candidates.kernel(X, candidates.moved))


@dataclass(frozen=True)
class Origin:
    """Columns from which vectors are moved."""

    many: Array
    """Those of the machine that is distilled."""
    some: Array
    """Those whose vectors are moved."""


@dataclass(frozen=True)
class Moving:
    """What vectors are moved for: samples, the columns to begin with, and the regression on them."""

    samples: Samples
    candidates: Candidates
    scale: float
    """Mean of ``k(x, x)``."""
    deciding: Deciding
    seed: int = 0
    """Of the company that samples get."""

    def on(self, rows: Array) -> Moving:
        """The same on some of the samples; all candidates stay."""
        every = self.candidates
        moved = every.pick(
            self.samples.X, namespace(every.rows).arange(int(every.rows.shape[0]), device=device(every.rows))
        )
        candidates = replace(every, K=take_rows(every.K, rows), moved=moved)
        return replace(self, samples=self.samples.take(rows), candidates=candidates)

    def move(self, begin: Origin, way: Way) -> Moved:
        """The machine whose vectors began at some columns."""
        samples, some = self.samples, begin.some
        problem = self._lesson(begin.many) if way == Way.DISTILLED else self._labels()
        kernel = narrowed(free_widths(self.candidates.kernel, samples.X), problem)
        start = Placement(self.candidates.pick(samples.X, some), kernel, self.deciding.ridge * self.scale)
        found = refine(problem, start, max_iter=_STEPS)
        return self._machine(found.kernel, found.vectors, take_rows(self.candidates.rows, some))

    def _lesson(self, many: Array) -> RefineProblem:
        """What the machine on many columns says, most of all near the borders of the classes."""
        samples, candidates = self.samples, self.candidates
        teacher = self._regress(self.deciding, candidates.K, many)
        vectors = candidates.pick(samples.X, many)
        some = samples.some(_LESSON_SAMPLES, random_generator(self.seed))
        X, share = with_company(some.X, _LESSON_ROWS, self.seed)
        values = candidates.kernel(X, vectors) @ teacher.coef + teacher.offset
        weights = share * border_weights(self.deciding.scores(values))
        return refine_problem(X, values, weights, objective="least squares")

    def _labels(self) -> RefineProblem:
        """The classes themselves."""
        samples = self.samples
        own = one_hot(samples.codes, samples.n_classes, namespace(samples.weights).float64)
        return refine_problem(samples.X, own[:, 1:] if samples.n_classes == 2 else own, samples.weights)

    def _machine(self, kernel: Kernel, vectors: Array, rows: Array) -> Moved:
        """The regression on moved vectors, which began at the samples ``rows``."""
        xp, X = namespace(vectors), self.samples.X
        vectors = xp.astype(vectors, X.dtype)
        candidates = Candidates(kernel, rows, None, kernel(X, vectors), vectors)
        deciding = self.deciding.on_vectors(self.scale * kernel(vectors, vectors), _RIDGE)
        every = xp.arange(int(rows.shape[0]), dtype=rows.dtype, device=device(rows))
        return Moved(candidates, self._regress(deciding, candidates.K, every), deciding)

    def _regress(self, deciding: Deciding, K: Array, support: Array) -> Machine:
        xp, samples = namespace(K), self.samples
        k, p = int(support.shape[0]), samples.n_classes - 1
        nothing = xp.zeros((k + 1, p), dtype=K.dtype, device=device(K))
        rows = Labelled(xp.take(K, support, axis=1), samples.codes, samples.weights)
        found = deciding.regress(rows, Machine(support, nothing[1:, :], nothing[0, :]))
        return Machine(support, xp.astype(found.coef, K.dtype), xp.astype(found.offset, K.dtype))


@dataclass(frozen=True)
class HeldOutMoves:
    """What moved machines say of samples that they have not seen, by number of vectors and way."""

    values: dict[tuple[int, Way], Array]
    """Discriminant of every sample, ``(n, p)``; zero where it is in no fold."""
    losses: dict[tuple[int, Way], Array]
    """Weighted logarithmic losses, ``(n,)``."""
    wrong: dict[tuple[int, Way], Array]
    """Weight of the samples that are put into another class, ``(n,)``."""
    times: Array
    """How often a sample was held out, ``(n,)``."""


def hold_out(
    moving: Moving,
    folds: Sequence[Fold],
    begin: Mapping[int, Sequence[Origin]],
    step: Callable[[int], None] | None = None,
) -> HeldOutMoves:
    """Move vectors without every fold, in all ways.

    Parameters
    ----------
    moving : Moving
    folds : sequence of (training positions, held-out positions)
    begin : dict
        By number of vectors: where every fold begins.
    step : callable or None
        Called with the number of folds done.
    """
    samples = moving.samples
    xp, n = namespace(samples.weights), samples.n
    wanted = [(size, way) for size in begin for way in ways(samples.n_classes)]
    rows: list[Array] = []
    parts: dict[tuple[int, Way], list[Array]] = {key: [] for key in wanted}
    for f, fold in enumerate(folds):
        train, test = (asarray_like(list(part), samples.codes, dtype=xp.int64) for part in fold)
        part, held_out = moving.on(train), samples.take(test)
        rows.append(test)
        for size, way in wanted:
            moved = part.move(begin[size][f], way)
            values = moved.values(held_out.X)
            judged = [(held_out.weights * one)[:, None] for one in moved.deciding.judge(values, held_out.codes)]
            parts[size, way].append(xp.concat([*(xp.astype(one, values.dtype) for one in judged), values], axis=1))
        if step is not None:
            step(f + 1)
    index = xp.concat(rows)
    times = sum_by_index(xp.ones_like(take_rows(samples.weights, index)), index, n)
    often = xp.maximum(times, xp.ones_like(times))[:, None]
    values, losses, wrong = {}, {}, {}
    for key, blocks in parts.items():
        table = xp.concat(blocks)
        sums = xp.stack([sum_by_index(table[:, j], index, n) for j in range(int(table.shape[1]))], axis=1)
        losses[key], wrong[key], values[key] = sums[:, 0], sums[:, 1], sums[:, 2:] / often
    return HeldOutMoves(values, losses, wrong, times)


@dataclass(frozen=True)
class Moves:
    """Moved machines beside the one that keeps samples, by number of vectors and way."""

    held_out: HeldOutMoves
    errors: Sizes
    kept: tuple[int, Way]
    sizes: Sizes
    """Of machines that keep samples."""
    beginning: Beginning


def judge_moves(
    moving: Moving,
    folds: Sequence[Fold],
    sizes: Sizes,
    size: int,
    beginning: Beginning,
    step: Callable[[int], None] | None = None,
) -> Moves:
    """Held-out errors of moved machines, on the samples on which sizes were compared."""
    rows = beginning.folded.rows
    begin = {
        some: [Origin(beginning.order[f, :], sizes.columns[some][f, :]) for f in range(len(folds))]
        for some in sizes_to_compare(size, moving.samples.n_classes, sizes.columns)
    }
    held_out = hold_out(moving, folds, begin, step)
    weights = take_rows(moving.samples.weights * held_out.times, rows)
    total = float(namespace(weights).sum(weights))
    losses, wrong = (
        {way: take_rows(values, rows) / total for way, values in found.items()}
        for found in (held_out.losses, held_out.wrong)
    )
    kept = (size, Way.KEPT)
    errors = Sizes(losses | {kept: sizes.sharp[size]}, wrong | {kept: sizes.wrong[size]})
    return Moves(held_out, errors, kept, sizes, beginning)


def choose_moved(
    moving: Moving, chosen: Chosen, fitted: Fitted, moves: Moves, plan: Comparing
) -> tuple[Chosen, Fitted]:
    """The smallest machine, moved or not, that is as good as the best one; with ``refine=True`` a moved one."""
    samples, errors = moving.samples, moves.errors if plan.refine == "auto" else moves.errors.without(moves.kept)
    way = errors.choose(plan.prefer, TWO if samples.n_classes == 2 else MOVED_SEVERAL)
    if way == moves.kept:
        return chosen, fitted
    Y = fisher_targets(samples.codes, samples.n_classes, samples.weights).rows(samples.codes)
    beginning = moves.beginning
    begun = beginning.begun(samples, plan.family, beginning.on_all(moves.sizes, way[0]))
    every = Labelled(moving.candidates.K, samples.codes, samples.weights)
    some = moving.deciding.settle(every, begun, way[0])[0].support
    moved = moving.move(Origin(beginning.forward[: beginning.size], some), way[1])
    machine, K = moved.machine, moved.candidates.K
    xp = namespace(K)
    seen = (moves.held_out.times > 0)[:, None]
    held_out = xp.where(seen, xp.astype(moves.held_out.values[way], K.dtype), machine.values(K))
    told = plan.family.tell(K, Y, samples.weights, begun)
    machine = Machine(told.order, xp.take(machine.coef, told.order, axis=0), machine.offset)
    return (
        Chosen(moved.candidates, told.setting, chosen.trace),
        Fitted(machine, held_out, told.objectives, told.ending, moved.deciding),
    )
