"""Whether to move the vectors, how many to keep and how far to move them, by folds (methods F14).

The leave-one-out error is optimistic for vectors that have seen the labels, so it cannot choose between refined models.
Here every candidate is fitted without a fold and judged on it. The candidates:

- the *unrefined* model of the automatic search, whose vectors are samples;
- its short forms: ``m`` vectors *distilled* from its values (least squares), which cannot overfit;
- ``m`` vectors that the labels then move (leave-one-out), from the distilled ones or, where a few vectors are enough,
  from the selection itself with ``tau > 0``, judged after some numbers of steps.

The number of steps is the regularizer that costs nothing: one search passes through all of them. The smallest candidate
whose error is within half a standard error *of the paired difference* from the best is taken; vectors that saw the
labels must be better by more than that (``PROOF``). Clearly worse candidates are dropped on the way, and those that a
smaller one has outrun, so that most folds fit only a few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fewkern.backend.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.backend.random import random_generator
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import Kernel
from fewkern.core.samples import Samples
from fewkern.vectors.grid import KernelGrid
from fewkern.vectors.leave_one_out import HeldOut, solve
from fewkern.vectors.refinement import Placement, RefineProblem, expand, free_widths, refine, refine_problem
from fewkern.vectors.search import Found, Searching, search

__all__ = [
    "Candidate",
    "FoldModel",
    "RefineChoice",
    "RefinePlan",
    "Score",
    "Unrefined",
    "candidates",
    "choose_refined",
    "fit_unrefined",
    "refit",
    "splits",
    "unrefined_model",
]

# Numbers of vectors that are tried, up to the first that is not below the unrefined model's ...
SIZES = (3, 5, 10, 20, 40, 80, 160, 320)
# ... and at most this many, or so many per output, or one for so many samples.
MOST, MOST_PER_OUTPUT, SAMPLES_PER_VECTOR = 40, 4, 200
# Numbers of steps after which the vectors are judged. Each stage is a search of its own, which starts where the last
# one ended: that costs a few steps, and makes a stage the same whatever follows it.
STEPS: dict[str, tuple[int, ...]] = {"unrefined": (0,), "distilled": (0, 5, 20, 60), "selected": (5, 20)}
# From the selection: the weight of the fitness, and the largest size. More vectors need the distilled start.
SELECTED_TAU, SELECTED_SIZE = 0.1, 10
# With twice as many numbers to learn as samples, the search has overfitted after so many steps; and with fewer than
# FEW samples no fold could tell.
CROWDED_STEPS, FEW = 20, 250
# Steps from the selection to the distilled vectors.
DISTILL_STEPS = 20
# A stage ends when a step lowers the objective by less than this share of the variance: no judge would see it.
STAGE_TOL = 1e-5
# Least ridge at the start: with less, the first steps only undo it.
START_RIDGE = 1e-2
# Standard errors of the paired difference at which a candidate is dropped, after the first fold and later.
HOPELESS = (3.0, 2.0)
# Standard errors at which a candidate is dropped that is no smaller than a better one: it would have to overtake it.
BEATEN = 1.0
# Standard errors by which vectors that saw the labels must be better than those that did not.
PROOF = 1.0
# ... unless those are more than this many times the largest number that was moved: they then win only by being better,
# or a larger budget, which adds nothing but unrefined vectors, could make a model larger and worse.
OUT_OF_REACH = 2.0
# A difference of this share of the error is none, however certain: two models that nearly agree have a paired
# difference of nearly no spread.
NEGLIGIBLE = 0.02
# Above LARGE samples one held-out part judges instead of folds, and the choice looks at CHOICE_ROWS others.
LARGE, CHOICE_ROWS = 5000, 10_000
# The chosen vectors are moved on at most so many samples; their coefficients come from all.
MOVE_ROWS = 20_000
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
    jitter: float = 0.0
    """What rounding made necessary beside the ridge."""


@dataclass(frozen=True)
class Candidate:
    """One way to a model."""

    n_vectors: int
    start: str
    """"unrefined" (the model itself), "distilled" or "selected": where the labels start to move the vectors."""
    n_iter: int = 0
    """Steps that the labels move them."""

    @property
    def path(self) -> tuple[int, str]:
        """What candidates have in common that one search passes through."""
        return self.n_vectors, self.start


@dataclass(frozen=True)
class Score:
    """What the folds say of a candidate."""

    candidate: Candidate
    error: float
    """Mean squared held-out error, summed over the outputs."""
    excess: float
    """Mean difference to the best candidate."""
    spread: float
    """Standard error of that difference."""

    def within(self, limit: float) -> bool:
        """Whether the candidate is as good as the best, give or take ``limit`` standard errors."""
        return self.excess <= max(limit * self.spread, NEGLIGIBLE * (self.error - self.excess))


@dataclass(frozen=True)
class FoldModel:
    """A model, the samples that it was fitted to, and the positions of those that judge it."""

    expansion: KernelExpansion
    fitted: Samples
    judged: Array


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
        return self.chosen.start != "unrefined"


def unrefined_model(samples: Samples, found: Found) -> tuple[Unrefined, Array]:
    """The model that a search found, and what it says of every sample when that one is left out."""
    solution = solve(found.Z, samples.targets, found.ridge, samples.weights, samples.groups)
    expansion = found.basis.expand(solution.W, solution.offset)
    indices = found.selection.indices
    vectors = found.kernel.pick(samples.X, indices)
    return Unrefined(expansion, found.ridge, vectors, indices, solution.jitter), solution.held_out


def fit_unrefined(samples: Samples, kernel: Kernel, limit: int, plan: RefinePlan) -> Unrefined:
    """The automatic model with a given kernel and at most ``limit`` vectors: ridge and size by leave-one-out."""
    how = replace(plan.search, limit=limit, ceiling=0).in_units_of(kernel, samples)
    found = search(samples, KernelGrid.of(kernel), how)
    return unrefined_model(samples, found)[0]


def splits(samples: Samples, plan: RefinePlan) -> list[tuple[Samples, Array]]:
    """Samples to fit, and positions of those to judge, for every fold.

    Every fold has its share of every class, or of every range of the targets, or, where there are groups, whole groups.
    Above ``LARGE`` samples there is one fold, and not all rows take part.
    """
    n = samples.n
    mixed = [int(i) for i in random_generator(plan.search.how.seed).permutation(n)]
    if samples.groups is not None:
        folds = _grouped(samples, plan, mixed)
    elif n > LARGE:
        judged = min(n // plan.n_folds, LARGE)
        folds = [(sorted(mixed[judged : judged + CHOICE_ROWS]), sorted(mixed[:judged]))]
    else:
        # sorted by class or by the targets, and dealt out like cards
        key = to_numpy(samples.targets) @ [float(j + 1) for j in range(samples.n_outputs)]
        order = sorted(mixed, key=lambda i: float(key[i]))
        held = [sorted(order[k :: plan.n_folds]) for k in range(plan.n_folds)] if n >= 2 * plan.n_folds else []
        folds = [(sorted(set(order) - set(part)), part) for part in held]
    return [(samples.take(_index(fit, samples.weights)), _index(judge, samples.weights)) for fit, judge in folds]


def _grouped(samples: Samples, plan: RefinePlan, mixed: list[int]) -> list[tuple[list[int], list[int]]]:
    """Folds of whole groups; of many samples one of them, and not all of its rows."""
    folds = [(list(fit), list(judge)) for fit, judge in samples.folds(plan.n_folds)]
    if samples.n <= LARGE:
        return folds
    judge = set(folds[0][1])
    judged, others = [i for i in mixed if i in judge], [i for i in mixed if i not in judge]
    return [(sorted(others[:CHOICE_ROWS]), sorted(judged[:LARGE]))]


def candidates(samples: Samples, unrefined: int, plan: RefinePlan) -> list[Candidate]:
    """What is compared for samples like these, and an unrefined model of so many vectors."""
    n, d = samples.X.shape
    q = samples.n_outputs
    found = [Candidate(unrefined, "unrefined")]
    enough = next((m for m in plan.sizes if m >= unrefined), plan.sizes[-1])
    most = min(enough, max(MOST, MOST_PER_OUTPUT * q, n // SAMPLES_PER_VECTOR), n // 2)
    # fewer vectors than outputs cannot tell the classes apart
    sizes = [m for m in plan.sizes if min(q, unrefined) <= m <= most]
    if plan.forced and not sizes:
        sizes = [min(unrefined, n // 2)]
    for m in sizes:
        crowded = m * (d + 1) > 2 * n or n < FEW
        for start in ("distilled", "selected") if m <= SELECTED_SIZE else ("distilled",):
            found += [Candidate(m, start, steps) for steps in STEPS[start] if not crowded or steps <= CROWDED_STEPS]
    return found


def choose_refined(
    samples: Samples, whole: Unrefined, plan: RefinePlan, step: Callable[[int], None] | None = None
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
    step : callable or None
        Called with the number of folds done.
    """
    parts, size = splits(samples, plan), whole.expansion.n_vectors
    if not parts:
        return None
    race = _Race(candidates(parts[0][0], size, plan), plan.forced)
    limit = max(math.ceil(MORE_VECTORS * size), max(c.n_vectors for c in race.running))
    for k, (fit, judged) in enumerate(parts):
        unrefined = fit_unrefined(fit, whole.expansion.kernel, max(1, min(limit, fit.n // 2)), plan)
        race.begin(take_rows(samples.targets, judged), take_rows(samples.weights, judged))
        for path in race.paths():
            for candidate, model in zip(path, _models(fit, unrefined, path)):
                race.judge(candidate, FoldModel(model, fit, judged), model(take_rows(samples.X, judged)))
                if k == 0 and race.worsens(candidate):
                    break
        race.drop(HOPELESS[min(k, 1)])
        if step is not None:
            step(k + 1)
    chosen = race.choose(plan.tolerance)
    rows = namespace(samples.weights).concat([judged for _, judged in parts])
    expansion, ridge = refit(samples, whole, chosen, plan)
    least = next(score.error for score in race.scores() if score.candidate == chosen)
    if chosen.start != "unrefined" and _error(expansion, samples) > LOST * least:
        expansion, ridge = _refit_from(race.models(chosen), samples, whole, chosen, plan)
    crossed = race.cross_chosen(plan.tolerance)
    return RefineChoice(
        expansion, ridge, chosen, race.scores(), rows, race.values(chosen), crossed, race.models(chosen)
    )


def refit(samples: Samples, whole: Unrefined, chosen: Candidate, plan: RefinePlan) -> tuple[KernelExpansion, float]:
    """A candidate on all samples, and its ridge.

    Above ``MOVE_ROWS`` samples the vectors are moved on some of them, and the coefficients come from all.
    """
    if chosen.start == "unrefined":
        return whole.expansion, whole.ridge
    part = samples.some(MOVE_ROWS, random_generator(plan.search.how.seed))
    *_, (problem, at) = _stages(part, whole, chosen)
    if part is not samples:
        targets = whole.expansion(samples.X) if problem.objective == "least squares" else samples.targets
        problem = refine_problem(samples.X, targets, samples.weights, objective=problem.objective)
    model = expand(problem, at)
    return replace(model, indices=whole.indices[: chosen.n_vectors]), at.ridge


def _refit_from(
    folds: tuple[FoldModel, ...], samples: Samples, whole: Unrefined, chosen: Candidate, plan: RefinePlan
) -> tuple[KernelExpansion, float]:
    """The model of the fold that is best on all samples, its vectors moved a little further on them."""
    part = samples.some(MOVE_ROWS, random_generator(plan.search.how.seed))
    best = min((fold.expansion for fold in folds), key=lambda model: _error(model, part))
    if chosen.n_iter:
        problem = refine_problem(part.X, part.targets, part.weights)
    else:
        problem = refine_problem(part.X, whole.expansion(part.X), part.weights, objective="least squares")
    at = refine(problem, Placement(best.vectors, best.kernel, START_RIDGE), max_iter=SHORT, tol=STAGE_TOL).placement
    model = expand(problem, at)
    return replace(model, indices=whole.indices[: chosen.n_vectors]), at.ridge


def _error(model: KernelExpansion, samples: Samples) -> float:
    return HeldOut(samples, model(samples.X)).squared_error()


def _index(rows: list[int], like: Array) -> Array:
    return asarray_like(rows, like, dtype=namespace(like).int64)


def _models(data: Samples, unrefined: Unrefined, path: list[Candidate]) -> Iterator[KernelExpansion]:
    """The models of candidates of one path, each fitted when it is asked for."""
    if path[0].start == "unrefined":
        yield unrefined.expansion
        return
    wanted = {c.n_iter for c in path}
    for done, (problem, at) in zip(STEPS[path[0].start], _stages(data, unrefined, path[-1])):
        if done in wanted:
            yield expand(problem, at)


def _stages(data: Samples, unrefined: Unrefined, last: Candidate) -> Iterator[tuple[RefineProblem, Placement]]:
    """Where the vectors are after every stage up to ``last``, and the problem that their coefficients solve."""
    kernel = free_widths(unrefined.expansion.kernel, data.X)
    at = Placement(unrefined.vectors[: last.n_vectors, :], kernel, max(unrefined.ridge, START_RIDGE))
    distilled = last.start == "distilled"
    if distilled:
        taught = refine_problem(data.X, unrefined.expansion(data.X), data.weights, objective="least squares")
        at = refine(taught, at, max_iter=DISTILL_STEPS, tol=STAGE_TOL).placement
        yield taught, at
    problem = refine_problem(data.X, data.targets, data.weights, tau=0.0 if distilled else SELECTED_TAU)
    done = 0
    for steps in (s for s in STEPS[last.start] if 0 < s <= last.n_iter):
        at = refine(problem, at, max_iter=steps - done, tol=STAGE_TOL).placement
        done = steps
        yield problem, at


class _Race:
    """Held-out errors of the candidates that are still running."""

    def __init__(self, candidates: list[Candidate], forced: bool = False) -> None:
        self.running, self.forced = list(candidates), forced
        self._models: dict[Candidate, list[FoldModel]] = {c: [] for c in candidates}
        self._values: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self._errors: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self._targets: list[Array] = []
        self._weights: list[Array] = []

    def paths(self) -> list[list[Candidate]]:
        """Candidates that one search passes through, in their order."""
        names = dict.fromkeys(c.path for c in self.running)
        return [[c for c in self.running if c.path == name] for name in names]

    def begin(self, targets: Array, weights: Array) -> None:
        """The next held-out samples."""
        self._targets.append(targets)
        self._weights.append(weights)

    def judge(self, candidate: Candidate, model: FoldModel, values: Array) -> None:
        """Note what a candidate says of the held-out samples."""
        self._models[candidate].append(model)
        self._values[candidate].append(values)
        self._errors[candidate].append(namespace(values).sum((values - self._targets[-1]) ** 2, axis=1))

    def worsens(self, candidate: Candidate) -> bool:
        """Whether the path of a candidate was better before by a standard error; those that follow then leave."""
        errors = [self._errors[c][-1] for c in self.running if c.path == candidate.path and self._errors[c]]
        share = self._share(self._weights[-1:])
        best = min(errors, key=lambda error: float(share @ error))
        excess, spread = _paired(errors[-1], best, share)
        if excess <= spread:
            return False
        self.running = [c for c in self.running if c.path != candidate.path or c.n_iter <= candidate.n_iter]
        return True

    def scores(self, among: list[Candidate] | None = None) -> tuple[Score, ...]:
        """Candidates against the best of them, best first."""
        among = self.running if among is None else among
        xp, share = namespace(self._targets[0]), self._share(self._weights)
        errors = {c: xp.concat(self._errors[c]) for c in among}
        best = min(errors.values(), key=lambda error: float(share @ error))
        found = [Score(c, float(share @ error), *_paired(error, best, share)) for c, error in errors.items()]
        return tuple(sorted(found, key=lambda s: s.error))

    def drop(self, limit: float) -> None:
        """Candidates leave that are worse than the best by ``limit`` standard errors, or beaten by a smaller one.

        The unrefined one never leaves. Where the vectors must move, they are compared among themselves.
        """
        scores = self.scores(self._eligible())
        kept = {s.candidate for s in scores if s.within(limit) and not self._beaten(s, scores)}
        self.running = [c for c in self.running if c in kept or c.start == "unrefined"]

    def _beaten(self, score: Score, scores: tuple[Score, ...]) -> bool:
        """Whether a candidate that would be taken before this one is better by ``BEATEN`` standard errors."""
        own, xp = score.candidate, namespace(self._targets[0])
        better = (s for s in scores if s.error < score.error and _preferred(s.candidate, own))
        rival = next(better, None)  # the best of them
        if rival is None:
            return False
        error, least = (xp.concat(self._errors[c]) for c in (own, rival.candidate))
        excess, spread = _paired(error, least, self._share(self._weights))
        return excess > BEATEN * spread

    def _eligible(self) -> list[Candidate]:
        return [c for c in self.running if not self.forced or c.start != "unrefined"]

    def choose(self, tolerance: float) -> Candidate:
        """The candidate with the fewest vectors that is as good as the best.

        Candidates whose vectors saw the labels only count where all others of about their size are clearly worse.
        """
        eligible = self._eligible()
        reach = OUT_OF_REACH * max((c.n_vectors for c in self._values if c.n_iter > 0), default=math.inf)
        quiet = [
            s.candidate
            for s in self.scores(eligible)
            if s.candidate.n_iter == 0 and s.candidate.n_vectors <= reach and s.within(PROOF)
        ]
        good = [s for s in self.scores(quiet or eligible) if s.within(tolerance)]
        return min(good, key=lambda s: (s.candidate.n_vectors, s.error)).candidate

    def cross_chosen(self, tolerance: float) -> Array:
        """Values for the held-out samples of every part, by the candidate that the other parts choose."""
        count = len(self._targets)
        if count == 1:
            return self.values(self.choose(tolerance))
        parts = [self._values[self._without(k).choose(tolerance)][k] for k in range(count)]
        return namespace(parts[0]).concat(parts, axis=0)

    def _without(self, part: int) -> _Race:
        """The race of those still running as if one part had not been judged."""
        rest = _Race(self.running, self.forced)
        for k in (k for k in range(len(self._targets)) if k != part):
            rest.begin(self._targets[k], self._weights[k])
            for candidate in self.running:
                rest.judge(candidate, self._models[candidate][k], self._values[candidate][k])
        return rest

    def values(self, candidate: Candidate) -> Array:
        """What a candidate said of the held-out samples of all parts."""
        parts = self._values[candidate]
        return namespace(parts[0]).concat(parts, axis=0)

    def models(self, candidate: Candidate) -> tuple[FoldModel, ...]:
        """A candidate in every fold."""
        return tuple(self._models[candidate])

    def _share(self, weights: list[Array]) -> Array:
        """Weights of held-out samples, summing to one."""
        xp = namespace(weights[0])
        w = xp.concat(weights)
        return w / xp.sum(w)


def _preferred(one: Candidate, other: Candidate) -> bool:
    """Whether, with the same error, the first is taken: it is no larger, and saw no more of the labels."""
    return one.n_vectors <= other.n_vectors and (one.n_iter == 0 or other.n_iter > 0)


def _paired(error: Array, best: Array, share: Array) -> tuple[float, float]:
    """Mean of the differences and its standard error."""
    difference = error - best
    mean = float(share @ difference)
    return mean, math.sqrt(float((share * share) @ ((difference - mean) ** 2)))
