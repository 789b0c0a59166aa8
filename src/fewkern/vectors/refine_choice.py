"""Whether to move the vectors, how many to keep and how far to move them, by folds (methods F12).

The leave-one-out error is optimistic for vectors that have seen the labels, so it cannot choose between refined models.
Here every candidate is fitted without a fold and judged on it. The candidates:

- the *unrefined* model of the automatic search, which sees no label but in its coefficients;
- its short forms: ``m`` vectors *distilled* from its values (least squares), which cannot over-fit;
- ``m`` vectors moved further by the labels, from the distilled ones or, where a few vectors are enough, from the
  selection itself with ``tau > 0``, after some numbers of steps.

# Paper (FVS): vectors are samples. We: move them, because a tenth of them then does as well or better.

The number of steps is the regulariser that costs nothing: one search visits all of them. The smallest candidate whose
error is within half a standard error *of the paired difference* from the best is taken. Candidates that are clearly
worse are dropped on the way, so that most folds fit only a few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fewkern.backend.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.backend.validation import random_generator
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gram import Gram
from fewkern.core.kernels import Kernel
from fewkern.vectors.leave_one_out import solve
from fewkern.vectors.refinement import Placement, expand, free_widths, refine, refine_problem
from fewkern.vectors.search import search
from fewkern.vectors.selection import Selection, select_vectors

__all__ = ["Candidate", "RefineChoice", "RefinePlan", "Score", "Unrefined", "choose_refined", "fit_unrefined", "folds"]

# Numbers of vectors that are tried, up to the first that is not below the unrefined model's ...
SIZES = (3, 5, 10, 20, 40, 80, 160, 320)
# ... and at most this many, or so many per output, or one for so many samples.
MOST, MOST_PER_OUTPUT, SAMPLES_PER_VECTOR = 40, 4, 200
# Numbers of steps after which the vectors are judged. Each stage is a search of its own, which starts where the last
# one ended: that costs a few steps, and makes the stages the same whatever follows them.
DISTILLED_STEPS = (0, 5, 20, 50, 100)
SELECTED_STEPS = (5, 20)
# From the selection: the weight of the fitness, and the largest size. More vectors need the distilled start.
SELECTED_TAU, SELECTED_SIZE = 0.1, 10
# With more numbers to learn than samples, the search has over-fitted after so many steps.
CROWDED_STEPS = 20
# Steps from the selection to the distilled vectors.
DISTILL_STEPS = 30
# Least ridge at the start: with less, the first steps only undo it.
START_RIDGE = 1e-2
# Standard errors of the paired difference at which a candidate is dropped, after the first fold and later.
HOPELESS = (3.0, 2.0)
# Above LARGE samples one held-out part judges instead of folds, and the choice looks at CHOICE_ROWS others.
LARGE, CHOICE_ROWS = 5000, 10_000
# The chosen vectors are moved on at most so many samples; their coefficients come from all.
MOVE_ROWS = 20_000
RIDGES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True)
class RefinePlan:
    """What is compared and how."""

    n_folds: int = 5
    tolerance: float = 0.5
    """Standard errors of the paired difference that a smaller model may lose."""
    sizes: tuple[int, ...] = SIZES
    seed: int = 0


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
        """What candidates that one search visits have in common."""
        return self.n_vectors, self.start


@dataclass(frozen=True)
class Score:
    """What the folds say of a candidate."""

    candidate: Candidate
    error: float
    """Mean squared held-out error, summed over the outputs; infinite if the candidate was dropped."""
    excess: float
    """Mean difference to the best candidate."""
    spread: float
    """Standard error of that difference."""


@dataclass(frozen=True)
class Unrefined:
    """The model of the automatic search for one kernel, and the selection that it is the beginning of."""

    expansion: KernelExpansion
    ridge: float
    vectors: Array
    """Selected samples, best first; more than the model keeps."""
    indices: Array


@dataclass(frozen=True)
class RefineChoice:
    """The chosen model, fitted on all samples, and its honest error."""

    expansion: KernelExpansion
    """``indices`` are the samples that the vectors started from, or are if the model is unrefined."""
    chosen: Candidate
    scores: tuple[Score, ...]
    """All candidates, best first."""
    rows: Array
    """Samples that were held out."""
    held_out: Array
    """What the chosen candidate said of them when it was fitted without their fold, shape ``(len(rows), q)``."""

    @property
    def refined(self) -> bool:
        """Whether the vectors are no samples any more."""
        return self.chosen.start != "unrefined"


@dataclass(frozen=True)
class _Data:
    """Samples, targets and weights."""

    X: Array
    Y: Array
    weights: Array | None

    def take(self, rows: Array) -> _Data:
        weights = None if self.weights is None else take_rows(self.weights, rows)
        return _Data(take_rows(self.X, rows), take_rows(self.Y, rows), weights)


def fit_unrefined(data: Any, kernel: Kernel, limit: int, plan: RefinePlan) -> Unrefined:
    """The automatic model with a given kernel: ridge and size by leave-one-out."""

    def select(gram: Gram, most: int, start: Selection | None) -> Selection:
        return select_vectors(gram, rng=random_generator(plan.seed), limit=most, weights=data.weights, start=start)

    gram = Gram(kernel, data.X)
    limit = max(1, min(limit, int(data.X.shape[0]) // 2))
    found = search(
        [gram],
        data.Y,
        ridges=RIDGES,
        select=select,
        limit=limit,
        ceiling=limit,
        tolerance=plan.tolerance,
        weights=data.weights,
    )
    selection, L = found.selection, found.n_vectors
    return unrefined_from_selection(data, kernel, selection, L, found.ridge)


def unrefined_from_selection(data: Any, kernel: Kernel, selection: Selection, L: int, ridge: float) -> Unrefined:
    """The model on the first ``L`` vectors of a selection."""
    from fewkern.core.basis import KernelBasis

    solution = solve(selection.G[:, :L], data.Y, ridge, data.weights)
    gram = Gram(kernel, data.X)
    basis = KernelBasis.from_selection(gram, selection.indices, selection.factor).head(L)
    vectors = take_rows(data.X, selection.indices)
    return Unrefined(basis.expand(solution.W, solution.offset), ridge, vectors, selection.indices)


def folds(Y: Array, plan: RefinePlan) -> list[tuple[list[int], list[int]]]:
    """Rows to fit and rows to judge: every fold has its share of every class, or of every range of the targets.

    Above ``LARGE`` samples there is one pair, and not all rows take part.
    """
    n = int(Y.shape[0])
    rng = random_generator(plan.seed)
    mixed = [int(i) for i in rng.permutation(n)]
    if n > LARGE:
        judged = min(n // plan.n_folds, LARGE)
        return [(sorted(mixed[judged : judged + CHOICE_ROWS]), sorted(mixed[:judged]))]
    # sorted by class code or by the first target, dealt out like cards
    key = to_numpy(Y) @ [float(j + 1) for j in range(int(Y.shape[1]))]
    order = sorted(mixed, key=lambda i: float(key[i]))
    held = [sorted(order[k :: plan.n_folds]) for k in range(plan.n_folds)]
    whole = set(range(n))
    return [(sorted(whole - set(part)), part) for part in held if part]


def candidates(n: int, d: int, q: int, n_vectors: int, plan: RefinePlan) -> list[Candidate]:
    """What is compared for ``n`` samples of ``d`` features, ``q`` outputs and an unrefined model of ``n_vectors``."""
    found = [Candidate(n_vectors, "unrefined")]
    enough = next((m for m in plan.sizes if m >= n_vectors), plan.sizes[-1])
    most = min(max(MOST, MOST_PER_OUTPUT * q, n // SAMPLES_PER_VECTOR), n // 2)
    for m in plan.sizes:
        # fewer vectors than outputs cannot tell the classes apart
        if m > min(enough, most) or (m < q and m < n_vectors):
            continue
        last = DISTILLED_STEPS[-1] if m * (d + 1) <= n else CROWDED_STEPS
        found += [Candidate(m, "distilled", steps) for steps in DISTILLED_STEPS if steps <= last]
        if m <= SELECTED_SIZE:
            found += [Candidate(m, "selected", steps) for steps in SELECTED_STEPS if steps <= last]
    return found


def choose_refined(
    X: Array,
    Y: Array,
    weights: Array | None,
    whole: Unrefined,
    plan: RefinePlan = RefinePlan(),
    step: Callable[[int], None] | None = None,
) -> RefineChoice:
    """Compare the candidates by folds, take the smallest that is as good as the best, and fit it on all samples.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (n, q)
    weights : array of shape (n,) or None
    whole : Unrefined
        The unrefined model on all samples. Its kernel serves in every fold.
    plan : RefinePlan
    step : callable or None
        Called with the number of folds done.
    """
    data, kernel = _Data(X, Y, weights), whole.expansion.kernel
    n, d = X.shape
    splits = folds(Y, plan)
    size = whole.expansion.n_vectors
    race = _Race(candidates(len(splits[0][0]), int(d), int(Y.shape[1]), size, plan))
    limit = max(math.ceil(1.25 * size), max(c.n_vectors for c in race.alive))
    for k, (fit_rows, judge_rows) in enumerate(splits):
        fit, judge = data.take(_index(fit_rows, X)), data.take(_index(judge_rows, X))
        unrefined = fit_unrefined(fit, kernel, limit, plan)
        for path in dict.fromkeys(c.path for c in race.alive):
            mine = [c for c in race.alive if c.path == path]
            for candidate, model in zip(mine, _models(fit, unrefined, mine)):
                race.judge(candidate, model(judge.X), judge)
                if k == 0 and race.worsens(candidate):
                    race.end(candidate)
                    break
        race.drop(HOPELESS[min(k, 1)])
        if step is not None:
            step(k + 1)
    scores = race.scores()
    chosen = _smallest(scores, plan.tolerance)
    rows = _index([i for _, judged in splits for i in judged], X)
    expansion = whole.expansion if chosen.start == "unrefined" else _final(data, whole, chosen, plan)
    return RefineChoice(expansion, chosen, scores, rows, race.values(chosen))


def _index(rows: list[int], like: Array) -> Array:
    return asarray_like(rows, like, dtype=namespace(like).int64)


def _models(data: _Data, unrefined: Unrefined, path: list[Candidate]) -> Iterator[KernelExpansion]:
    """The models of candidates of one path, each fitted when it is asked for."""
    m, start = path[0].path
    if start == "unrefined":
        yield unrefined.expansion
        return
    kernel = free_widths(unrefined.expansion.kernel, data.X)
    at = Placement(unrefined.vectors[:m, :], kernel, max(unrefined.ridge, START_RIDGE))
    stages = SELECTED_STEPS
    tau = SELECTED_TAU
    wanted = {c.n_iter for c in path}
    if start == "distilled":
        stages, tau = DISTILLED_STEPS[1:], 0.0
        taught = refine_problem(data.X, unrefined.expansion(data.X), data.weights, objective="least squares")
        at = refine(taught, at, max_iter=DISTILL_STEPS).placement
        if 0 in wanted:
            yield expand(taught, at)
    problem = refine_problem(data.X, data.Y, data.weights, tau=tau)
    before = 0
    for steps in stages:
        if steps > max(wanted):
            break
        at = refine(problem, at, max_iter=steps - before).placement
        before = steps
        if steps in wanted:
            yield expand(problem, at)


def _final(data: _Data, whole: Unrefined, chosen: Candidate, plan: RefinePlan) -> KernelExpansion:
    """The chosen model on all samples, its vectors moved on at most ``MOVE_ROWS`` of them."""
    n = int(data.X.shape[0])
    part = data
    if n > MOVE_ROWS:
        drawn = sorted(int(i) for i in random_generator(plan.seed).choice(n, MOVE_ROWS, replace=False))
        part = data.take(_index(drawn, data.X))
    (model,) = _models(part, whole, [chosen])
    m = model.n_vectors
    return replace(model, indices=whole.indices[:m])


class _Race:
    """Held-out errors of the candidates that are still in it."""

    def __init__(self, candidates: list[Candidate]) -> None:
        self.alive = list(candidates)
        self._all = list(candidates)
        self._values: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self._errors: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self._weights: list[Array] = []

    def judge(self, candidate: Candidate, values: Array, data: _Data) -> None:
        """Note what a candidate says of the held-out samples ``data``."""
        xp = namespace(values)
        error = xp.sum((values - data.Y) ** 2, axis=1)
        self._values[candidate].append(values)
        self._errors[candidate].append(error)
        if len(self._weights) < len(self._errors[candidate]):
            self._weights.append(xp.ones_like(error) if data.weights is None else data.weights)

    def worsens(self, candidate: Candidate) -> bool:
        """Whether the last held-out part says that its path was clearly better before."""
        mine = self._errors[candidate][-1]
        xp, w = namespace(mine), self._weights[-1]
        earlier = [self._errors[c][-1] for c in self.alive if c.path == candidate.path and c.n_iter < candidate.n_iter]
        if not earlier:
            return False
        difference = mine - min(earlier, key=lambda error: float(w @ error))
        share = w / xp.sum(w)
        mean = float(share @ difference)
        return mean > math.sqrt(float((share * share) @ ((difference - mean) ** 2)))

    def end(self, candidate: Candidate) -> None:
        """Candidates of its path with more steps leave."""
        self.alive = [c for c in self.alive if c.path != candidate.path or c.n_iter <= candidate.n_iter]

    def values(self, candidate: Candidate) -> Array:
        parts = self._values[candidate]
        return namespace(parts[0]).concat(parts, axis=0)

    def scores(self) -> tuple[Score, ...]:
        """Candidates in the race against the best of them, best first; then the others."""
        xp = namespace(self._weights[0])
        w = xp.concat(self._weights)
        share = w / xp.sum(w)
        errors = {c: xp.concat(self._errors[c]) for c in self.alive}
        means = {c: float(share @ error) for c, error in errors.items()}
        best = min(self.alive, key=lambda c: means[c])
        found = []
        for c in self.alive:
            difference = errors[c] - errors[best]
            excess = means[c] - means[best]
            spread = math.sqrt(float((share * share) @ ((difference - excess) ** 2)))
            found.append(Score(c, means[c], excess, spread))
        gone = [Score(c, math.inf, math.inf, 0.0) for c in self._all if c not in errors]
        return tuple(sorted(found, key=lambda s: s.error) + gone)

    def drop(self, limit: float) -> None:
        """Candidates worse than the best by ``limit`` standard errors leave; the unrefined one never does."""
        kept = {s.candidate for s in self.scores() if s.excess <= limit * s.spread}
        self.alive = [c for c in self.alive if c in kept or c.start == "unrefined"]


def _smallest(scores: tuple[Score, ...], tolerance: float) -> Candidate:
    """The candidate with the fewest vectors, and among those of least error, that is as good as the best."""
    within = [s for s in scores if s.excess <= tolerance * s.spread]
    return min(within, key=lambda s: (s.candidate.n_vectors, s.error)).candidate
