"""Whether to move the vectors, how many to keep and how far to move them, by folds (methods F14).

The leave-one-out error is optimistic for vectors that have seen the labels, so it cannot choose between refined models.
Here every candidate is fitted without a fold and judged on it. The candidates:

- the *unrefined* model of the automatic search, whose vectors are samples;
- its short forms: ``m`` vectors *distilled* from its values (least squares), which cannot overfit;
- ``m`` distilled vectors that the labels then move (leave-one-out), judged after some numbers of steps.

The number of steps is the regularizer that costs nothing: one search passes through all of them. The smallest candidate
whose error is within half a standard error *of the paired difference* from the best is taken; vectors that saw the
labels must be better by more than that (``PROOF``). Clearly worse candidates are dropped on the way, and those that a
smaller one is ahead of, so that most folds fit only a few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from fewkern.backend.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.backend.random import random_generator
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernel import Kernel
from fewkern.core.samples import Samples
from fewkern.vectors.grid import KernelGrid
from fewkern.vectors.leave_one_out import LARGE, HeldOut, solve_samples
from fewkern.vectors.objective import Placement, expand, refine_problem
from fewkern.vectors.race import Candidate, FoldModel, Race, Score
from fewkern.vectors.refinement import Refined, free_widths, narrowed, refine
from fewkern.vectors.search import Found, Trial, search
from fewkern.vectors.searching import Searching

__all__ = [
    "RefineChoice",
    "RefinePlan",
    "Unrefined",
    "candidates",
    "choose_refined",
    "fit_unrefined",
    "refit",
    "splits",
    "unrefined_model",
]

# Numbers of vectors that are tried, up to the first that is not below the unrefined model's ...
SIZES = (3, 10, 20, 40, 80, 160, 320)
# ... and at most this many, or so many per output, or one for so many samples.
MOST, MOST_PER_OUTPUT, SAMPLES_PER_VECTOR = 40, 4, 200
# Numbers of steps after which the vectors are judged. Each stage is a search of its own, which starts where the last
# one ended: that costs a few steps, and makes a stage the same whatever follows it.
STEPS = (0, 10, 40)
# With more numbers to learn than samples, the search has overfitted after so many steps; and with fewer than FEW
# samples no fold could tell.
CROWDED_STEPS, FEW = 10, 250
# Steps from the selection to the distilled vectors.
DISTILL_STEPS = 20
# A search ends when a step lowers the objective by less than this share of the variance, which no judge would see: of
# the values of the unrefined model, which are wrong by more than that, and of the targets.
DISTILL_TOL, STAGE_TOL = 1e-3, 1e-4
# Least ridge at the start: with less, the first steps only undo it.
START_RIDGE = 1e-2
# Standard errors of the paired difference at which a candidate is dropped: behind the best, and behind one that is no
# larger, after the first fold and later.
HOPELESS, AHEAD = 3.0, (1.0, 0.0)
# A model whose error on its own samples is so many times that of its folds on new ones has lost its way among the
# places where a search can end: it then takes SHORT steps from the vectors of a fold.
LOST, SHORT = 1.25, 5
# How many more vectors the unrefined model of a fold may take than the one on all samples.
MORE_VECTORS = 1.25


@dataclass(frozen=True)
class RefinePlan:
    """How the candidates are compared."""

    search: Searching
    """How the unrefined model was found; in the folds it is found in the same way, with its kernel."""
    tolerance: float = 0.5
    """Standard errors of the paired difference that a smaller model may lose."""
    sizes: tuple[int, ...] = SIZES
    """Numbers of vectors that are tried."""
    forced: bool = False
    """Whether the vectors must move: the unrefined model is then only what the others start from."""
    n_folds: int = 5


@dataclass(frozen=True)
class Unrefined:
    """The model of the automatic search for one kernel, and the selection that it is the beginning of."""

    expansion: KernelExpansion
    ridge: float
    vectors: Array
    """Selected samples, best first; more than the model keeps."""
    indices: Array
    given_ridge: bool = False
    """Whether the ridge was given as a number; it then stays as it is when vectors move."""
    jitter: float = 0.0
    """What rounding made necessary beside the ridge."""


@dataclass(frozen=True)
class RefineChoice:
    """The chosen model, fitted on all samples, and what it said of samples that it had not seen."""

    expansion: KernelExpansion
    """``indices`` are the samples that the vectors started from, or are if the model is unrefined."""
    ridge: float
    chosen: Candidate
    scores: tuple[Score, ...]
    """Candidates that were judged in every fold, best first."""
    rows: Array
    """Samples that were held out."""
    held_out: Array
    """Values of the chosen candidate for them, fitted without their fold: shape ``(len(rows), q)``. The honest error
    and the calibration of probabilities come from these."""
    cross_chosen: Array
    """The same for promises about new samples: in every fold by the candidate that the other folds choose."""
    folds: tuple[FoldModel, ...]
    """The chosen candidate in every fold."""

    @property
    def refined(self) -> bool:
        """Whether the vectors are no samples any more."""
        return self.chosen.moved


def unrefined_model(samples: Samples, found: Found, plan: Searching) -> tuple[Unrefined, HeldOut]:
    """The model that a search found, and what it says of samples when each is left out: of all, or of some of many."""
    solution, held_out = solve_samples(samples, found.Z, found.ridge)
    expansion = found.basis.expand(solution.W, solution.offset)
    indices = found.selection.indices
    vectors = found.kernel.pick(samples.X, indices)
    return Unrefined(expansion, found.ridge, vectors, indices, plan.given_ridge, solution.jitter), held_out


def fit_unrefined(samples: Samples, kernel: Kernel, limit: int, plan: RefinePlan) -> Unrefined:
    """The automatic model with a given kernel and at most ``limit`` vectors: ridge and size by leave-one-out."""
    how = replace(plan.search, limit=limit, ceiling=0).in_units_of(kernel, samples)
    found = search(samples, KernelGrid.of(kernel), how)
    return unrefined_model(samples, found, how)[0]


def splits(samples: Samples, plan: RefinePlan) -> list[tuple[Samples, Array]]:
    """Samples to fit, and positions of those to judge, for every fold.

    Every fold has its share of every class, or of every range of the targets, or, where there are groups, whole groups.
    """
    n = samples.n
    if samples.groups is not None:
        folds = [(list(fit), list(judge)) for fit, judge in samples.folds(plan.n_folds)]
    else:
        # sorted by class or by the targets, and dealt out like cards
        mixed = [int(i) for i in random_generator(plan.search.how.seed).permutation(n)]
        key = to_numpy(samples.targets) @ [float(j + 1) for j in range(samples.n_outputs)]
        order = sorted(mixed, key=lambda i: float(key[i]))
        held = [sorted(order[k :: plan.n_folds]) for k in range(plan.n_folds)] if n >= 2 * plan.n_folds else []
        folds = [(sorted(set(order) - set(part)), part) for part in held]
    return [(samples.take(_index(fit, samples.weights)), _index(judge, samples.weights)) for fit, judge in folds]


def candidates(samples: Samples, unrefined: int, plan: RefinePlan) -> list[Candidate]:
    """What is compared for samples like these, and an unrefined model of so many vectors."""
    n, d = samples.X.shape
    found = [Candidate(unrefined)]
    for m in _sizes(samples, unrefined, plan):
        crowded = m * (d + 1) > n or n < FEW
        found += [Candidate(m, True, steps) for steps in STEPS if not crowded or steps <= CROWDED_STEPS]
    return found


def _sizes(samples: Samples, unrefined: int, plan: RefinePlan) -> list[int]:
    """Numbers of vectors that may be moved."""
    n, q = samples.n, samples.n_outputs
    most = min(max(MOST, MOST_PER_OUTPUT * q, n // SAMPLES_PER_VECTOR), n // 2)
    if plan.search.given_size:
        return [unrefined] if plan.forced or unrefined <= most else []
    most = min(most, next((m for m in plan.sizes if m >= unrefined), plan.sizes[-1]))
    # fewer vectors than outputs cannot tell the classes apart
    sizes = [m for m in plan.sizes if min(q, unrefined) <= m <= most]
    return sizes if sizes or not plan.forced else [min(unrefined, n // 2)]


def choose_refined(
    samples: Samples,
    whole: Unrefined,
    plan: RefinePlan,
    trial: Trial | None = None,
    step: Callable[[int], None] = lambda _: None,
) -> RefineChoice | None:
    """Compare the candidates by folds, take the smallest that is as good as the best, and fit it on all samples.

    None where the samples are too few for folds.

    Parameters
    ----------
    samples : Samples
        With targets.
    whole : Unrefined
        The unrefined model on all samples. Its kernel serves in every fold: one number chosen among nine tells nothing
        about a sample.
    plan : RefinePlan
    trial : Trial or None
        A search on some of the samples, where they are many: its samples and those that it has not seen are the only
        fold, and its model is the unrefined one.
    step : callable
        Called with the number of folds done.
    """
    size = whole.expansion.n_vectors
    parts = splits(samples, plan) if trial is None else [(samples.take(trial.searched), trial.judged)]
    if not parts:
        return None
    race = Race(candidates(parts[0][0], size, plan), plan.forced)
    limit = max(math.ceil(MORE_VECTORS * size), max(c.n_vectors for c in race.running))
    for k, (fit, judged) in enumerate(parts):
        if trial is None:
            most = min(size, fit.n) if plan.search.given_size else max(1, min(limit, fit.n // 2))
            unrefined = fit_unrefined(fit, whole.expansion.kernel, most, plan)
        else:
            unrefined, _ = unrefined_model(fit, trial.found, plan.search)
        race.begin(take_rows(samples.targets, judged), take_rows(samples.weights, judged))
        for path in race.paths():
            for candidate, model in zip(path, _models(fit, unrefined, path)):
                race.judge(candidate, FoldModel(model, fit, judged), model(take_rows(samples.X, judged)))
        race.drop(HOPELESS, AHEAD[min(k, 1)])
        step(k + 1)
    chosen = race.choose(plan.tolerance)
    expansion, ridge = _fit_chosen(samples, whole, race, chosen)
    rows = namespace(samples.weights).concat([judged for _, judged in parts])
    crossed = race.cross_chosen(plan.tolerance)
    return RefineChoice(
        expansion, ridge, chosen, race.scores(), rows, race.values(chosen), crossed, race.models(chosen)
    )


def _fit_chosen(samples: Samples, whole: Unrefined, race: Race, chosen: Candidate) -> tuple[KernelExpansion, float]:
    """The chosen candidate on all samples, and its ridge."""
    if not chosen.moved:
        return whole.expansion, whole.ridge
    if samples.n > LARGE:  # the fold had enough of them to begin with
        return _refit_from(race.models(chosen), samples, whole, chosen, max(chosen.n_iter, SHORT))
    expansion, ridge = refit(samples, whole, chosen)
    least = next(score.error for score in race.scores() if score.candidate == chosen)
    if _error(expansion, samples) > LOST * least:
        return _refit_from(race.models(chosen), samples, whole, chosen, SHORT)
    return expansion, ridge


def refit(samples: Samples, whole: Unrefined, chosen: Candidate) -> tuple[KernelExpansion, float]:
    """A candidate whose vectors are moved, on all samples from the beginning, and its ridge."""
    *_, last = _stages(samples, whole, chosen)
    return replace(last.expansion, indices=whole.indices[: chosen.n_vectors]), last.ridge / _unit(samples)


def _refit_from(
    folds: tuple[FoldModel, ...], samples: Samples, whole: Unrefined, chosen: Candidate, steps: int
) -> tuple[KernelExpansion, float]:
    """The model of the fold that is best on all samples, its vectors moved further on them."""
    best = min((fold.expansion for fold in folds), key=lambda model: _error(model, samples))
    at = Placement(best.vectors, best.kernel, START_RIDGE)
    if chosen.n_iter:
        problem = refine_problem(samples.X, samples.targets, samples.weights)
        at = replace(at, ridge=whole.ridge * _unit(samples)) if whole.given_ridge else at
        found = refine(problem, at, max_iter=steps, tol=STAGE_TOL, hold_ridge=whole.given_ridge)
    else:
        found = _distilled(samples, whole, at, steps, STAGE_TOL)
    return replace(found.expansion, indices=whole.indices[: chosen.n_vectors]), found.ridge / _unit(samples)


def _unit(samples: Samples) -> float:
    """A ridge beside weights that sum to the number of samples, as searches have them, over one beside the weights."""
    return samples.n / float(namespace(samples.weights).sum(samples.weights))


def _error(model: KernelExpansion, samples: Samples) -> float:
    return HeldOut(samples, model(samples.X)).squared_error()


def _index(rows: list[int], like: Array) -> Array:
    return asarray_like(rows, like, dtype=namespace(like).int64)


def _models(data: Samples, unrefined: Unrefined, path: list[Candidate]) -> Iterator[KernelExpansion]:
    """The models of candidates of one path, each fitted when it is asked for."""
    if not path[0].moved:
        yield unrefined.expansion
        return
    wanted = {c.n_iter for c in path}
    for done, found in zip(STEPS, _stages(data, unrefined, path[-1])):
        if done in wanted:
            yield found.expansion


def _stages(data: Samples, unrefined: Unrefined, last: Candidate) -> Iterator[Refined]:
    """The model after every stage up to ``last``."""
    problem = refine_problem(data.X, data.targets, data.weights)
    kernel = narrowed(free_widths(unrefined.expansion.kernel, data.X), problem)
    at = Placement(unrefined.vectors[: last.n_vectors, :], kernel, max(unrefined.ridge * _unit(data), START_RIDGE))
    found = _distilled(data, unrefined, at, DISTILL_STEPS, DISTILL_TOL)
    yield found
    hold = unrefined.given_ridge
    for done, steps in pairwise(s for s in STEPS if s <= last.n_iter):
        found = refine(problem, found.placement, max_iter=steps - done, tol=STAGE_TOL, hold_ridge=hold)
        yield found


def _distilled(data: Samples, unrefined: Unrefined, at: Placement, steps: int, tol: float) -> Refined:
    """Vectors and widths, from ``at``, that come near the values of the unrefined model.

    A ridge that was given is meant for the labels, not for these values, which have no noise: it makes the coefficients
    once the vectors stand.
    """
    taught = refine_problem(data.X, unrefined.expansion(data.X), data.weights, objective="least squares")
    found = refine(taught, at, max_iter=steps, tol=tol)
    if not unrefined.given_ridge:
        return found
    problem, ridge = refine_problem(data.X, data.targets, data.weights), unrefined.ridge * _unit(data)
    model = expand(problem, replace(found.placement, ridge=ridge))
    return replace(found, ridge=ridge, coef=model.coef, offset=model.offset)
