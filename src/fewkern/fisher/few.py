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
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from fewkern.backend.folds import Fold
from fewkern.backend.namespace import Array, namespace, take_rows
from fewkern.backend.random import random_generator
from fewkern.core.kernel import Kernel
from fewkern.core.samples import Samples
from fewkern.fisher.beginning import Beginning
from fewkern.fisher.choice import Candidates, Chosen, Comparing, kernel_scale
from fewkern.fisher.deciding import RIDGES, RIDGES_TWO, Deciding, Labelled, SeveralClasses, Sized, TwoClasses
from fewkern.fisher.elimination import take_each
from fewkern.fisher.families import LARGEST, Family, Fitted
from fewkern.fisher.forward_folds import Folded, FoldedPath, forward_folds
from fewkern.fisher.moving import Moving, choose_moved, judge_moves
from fewkern.fisher.problem import Begun, Machine
from fewkern.fisher.sizes import SEVERAL, TWO, Sizes
from fewkern.fisher.targets import fisher_targets
from fewkern.vectors.search import class_grid

__all__ = ["Few", "choose_few", "move_few"]

# Widths are compared on at most so many samples, with so many of them as candidates; a rule for the width, such as the
# median distance, looks at _RULE_ROWS for every class.
_WIDTH_ROWS, _WIDTH_CANDIDATES, _RULE_ROWS = 2000, 150, 75
# An elimination ends early at so many times the least loss.
_HOPELESS = 2.0
# A difference of this share of the error is none, however certain: the errors of nested machines differ by little, and
# always in the same direction.
_NEGLIGIBLE = 0.02
# A third more columns, and up to so many, are about as few, where they are few.
_ABOUT = 2
# So many vectors are few: with ``refine="auto"`` nobody looks for fewer. Looking always costs time, and half a point of
# error on 14 sets: folds of a few hundred noisy samples cannot tell which vectors over-fit. _MANY samples can, and of
# them fewer vectors are few: 14 of them had 17 % error on a split of splice, where 13 that were moved had 6 %.
_FEW, _MANY, _FEW_OF_MANY = 15, 1000, 10


@dataclass(frozen=True)
class Few:
    """A machine that keeps samples, and what is needed to move them."""

    chosen: Chosen
    fitted: Fitted
    sizes: Sizes
    size: int
    """That of the machine."""
    beginning: Beginning
    moving: Moving

    def may_move(self, plan: Comparing) -> bool:
        """Whether folds shall decide on moving the vectors."""
        few = _FEW if self.moving.samples.n < _MANY else _FEW_OF_MANY
        return plan.refine is True or (plan.refine == "auto" and self.size > few)


def choose_few(
    samples: Samples,
    kernel: Kernel,
    plan: Comparing,
    folds: Sequence[Fold],
    step: Callable[[int], None] | None = None,
) -> Few | None:
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
    beginning = Beginning.of(folded, candidates, kernel_scale(samples, grid.kernels[at]), rng)
    if beginning.size == 0:
        return None
    deciding, stages = _deciding(samples, beginning)
    sizes = _compare_sizes(stages, beginning, plan)
    size = sizes.choose(plan.prefer, TWO if samples.n_classes == 2 else SEVERAL)
    begun = beginning.begun(samples, plan.family, beginning.on_all(sizes, size))
    fitted, setting = _fit(samples, candidates, deciding, plan.family, begun, size)
    chosen = Chosen(candidates, setting, sizes.trace(grid, at, size))
    moving = Moving(samples, candidates, beginning.scale, deciding, plan.seed)
    return Few(chosen, fitted, sizes, size, beginning, moving)


def move_few(
    few: Few, plan: Comparing, folds: Sequence[Fold], step: Callable[[int], None] | None = None
) -> tuple[Chosen, Fitted]:
    """The machine whose vectors are moved, if folds say that this pays; ``step`` hears of the folds done."""
    moves = judge_moves(few.moving, folds, few.sizes, few.size, few.beginning, step)
    return choose_moved(few.moving, few.chosen, few.fitted, moves, plan)


def _best_width(folded: Folded, kernels: tuple[Kernel, ...], rng: Any, step: Callable[[int], None] | None) -> int:
    """Number of the widest kernel that needs about the fewest columns for nearly the least squared held-out error.

    Some kernels are looked at, and the neighbors of the best of them, as long as that pays. ``kernels`` get wider.
    """
    if len(kernels) == 1:
        return 0
    samples = folded.samples
    rows = folded.find(samples.some(_WIDTH_CANDIDATES, rng))
    usable = namespace(rows).take(folded.train, rows, axis=1) > 0
    paths: dict[int, FoldedPath] = {}
    wanted, least = [len(kernels) // 3, 2 * len(kernels) // 3], math.inf
    while wanted:
        for k in wanted:
            K = kernels[k](samples.X, kernels[k].pick(samples.X, rows))
            paths[k] = forward_folds(K, folded, LARGEST, usable)
            if step is not None:
                step(len(paths))
        best = min(paths, key=lambda k: (paths[k].least, k))
        better, least = paths[best].least < (1 - _NEGLIGIBLE) * least, paths[best].least
        wanted = [k for k in (best - 1, best + 1) if better and 0 <= k < len(kernels) and k not in paths]
    bound = (1 + _NEGLIGIBLE) * paths[best].least
    good = [k for k in paths if paths[k].least <= bound]
    few = min(paths[k].enough(bound) for k in good)
    about = few + min(_ABOUT, few // 3) if few <= _FEW else few
    # a wide kernel is smooth: on 300 moons it makes fewer errors than a narrow one with as many columns
    return max(k for k in good if paths[k].enough(bound) <= about)


def _deciding(samples: Samples, beginning: Beginning) -> tuple[Deciding, Iterator[Sized]]:
    """The logistic regression that is for these samples, and its sizes; the folds choose its ridge, on all columns."""
    candidates, folded = beginning.candidates, beginning.folded
    between = beginning.scale * take_rows(candidates.K, candidates.rows)
    ways: list[TwoClasses] | list[SeveralClasses]
    if samples.n_classes == 2:
        ways = [TwoClasses(between, ridge) for ridge in RIDGES_TWO]
    else:
        points = fisher_targets(samples.codes, samples.n_classes, samples.weights).theta
        ways = [SeveralClasses(points, between, ridge) for ridge in RIDGES]
    found: list[tuple[float, Sized, Iterator[Sized]]] = []
    for way in ways:
        # the larger ridge, which comes first, is a good place to begin
        stages = way.sizes(beginning.folds, beginning.order, found[-1][1].coef if found else None)
        first = next(stages)
        losses = folded.held_out(first.losses)
        found.append((float(namespace(losses).sum(losses)), first, stages))
    best = min(range(len(found)), key=lambda i: found[i][0])
    (_, first, stages), chosen = found[best], ways[best]
    if isinstance(chosen, SeveralClasses):
        chosen = replace(chosen, factor=first.factor)
    return chosen, chain([first], stages)


def _compare_sizes(stages: Iterator[Sized], beginning: Beginning, plan: Comparing) -> Sizes:
    """Elimination in every fold; no size is beyond the budget."""
    held_out = beginning.folded.held_out
    losses: dict[int, Array] = {}
    wrong: dict[int, Array] = {}
    sharp: dict[int, Array] = {}
    columns: dict[int, Array] = {}
    least = math.inf
    for one in stages:
        losses[one.size], wrong[one.size] = held_out(one.losses), held_out(one.wrong)
        sharp[one.size] = losses[one.size] if one.sharp is one.losses else held_out(one.sharp)
        columns[one.size] = take_each(beginning.order, one.kept)
        mean = float(namespace(one.losses).sum(losses[one.size]))
        least = min(least, mean)
        if plan.max_vectors is None and mean > _HOPELESS * least:
            break
    budget = beginning.size if plan.max_vectors is None else max(plan.max_vectors, min(losses))
    within = [size for size in losses if size <= budget]
    return Sizes(*({size: found[size] for size in within} for found in (losses, wrong, sharp, columns)))


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
