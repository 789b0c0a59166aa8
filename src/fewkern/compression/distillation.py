"""A short expansion with the values of a long one: least-squares distillation, and the fewest vectors that do.

The teacher is a fitted function. Vectors start at a selection of the samples and move, with one width per feature and
the ridge, by the gradient of the squared difference to the teacher's values (methods F13, "least squares"). Where
values become classes, samples near a border count most. A teacher has no noise, so no labels can be overfitted, only
the samples: how far the short function agrees with its teacher is measured on samples that were held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.progress import Step
from fewkern.backend.random import random_generator
from fewkern.backend.storable import storable
from fewkern.core.expansion import KernelExpansion
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores, class_values
from fewkern.vectors.company import border_weights, with_company
from fewkern.vectors.objective import Placement, RefineProblem, evaluate, expand, refine_problem
from fewkern.vectors.refinement import free_widths, refine
from fewkern.vectors.selection import Selecting, choose_basis

__all__ = ["Agreement", "Answers", "Short", "Teacher", "distill_fewest", "distill_to"]

# The short function is compared with its teacher in so many folds, and on at most so many samples of each.
FOLDS, MOST_HELD_OUT = 3, 5000
# The vectors are moved on at most so many samples.
MOVE_ROWS = 20_000
# The samples and their company are so many rows in all, in a fold, and in the end.
FOLD_ROWS, ROWS = 2000, 4000
# Steps of a search for up to so many vectors; for more, which begin nearer to the teacher, in inverse proportion, down
# to the least. The last search, on all samples, may take a multiple of them.
STEPS, MANY, LEAST_STEPS, LAST = 100, 50, 20, 2
# A search has converged where a step lowers the squared error by less, in units of the variance of the values. In the
# folds of a teacher whose values decide, the first is enough.
DECIDED, EXACT = 1e-5, 1e-7
# The ridge that a search starts with, in units of k(x, x).
START_RIDGE = 1e-3
# The number of vectors is found to one in so many.
RESOLUTION = 5
# Smaller probabilities count as this one: their logarithms would outweigh all others, and decide nothing.
LEAST_PROBABILITY = 1e-4


@storable
@dataclass(frozen=True)
class Agreement:
    """How far a short function does what its teacher does, on samples that were held out.

    Parameters
    ----------
    error : float
        Root of the mean squared difference of the values, over the standard deviation of the teacher's.
    decisions : float or None
        Share of the samples on which both decide the same; None where nothing is decided.
    """

    error: float
    decisions: float | None = None

    @property
    def loss(self) -> float:
        """What is held against a tolerance: the share of other decisions, or the error of the values."""
        return self.error if self.decisions is None else 1.0 - self.decisions

    def __str__(self) -> str:
        error = f"relative error of the values {self.error:.2g}"
        return error if self.decisions is None else f"{self.decisions:.2%} equal decisions, {error}"


@dataclass(frozen=True)
class Teacher:
    """A fitted function to be shortened, and how its values become decisions."""

    expansion: KernelExpansion
    scores: ClassScores | None = None
    """None where the values themselves count."""
    voting: int = 0
    """Number of classes whose pairs vote, each with one value of the expansion (positive: the first of the pair); 0
    where nobody votes."""
    probabilities: Callable[[Array], Array] | None = None
    """From samples to a probability per class, where these are no function of the expansion's values alone: their
    logarithms are taught then, and the expansion says only where to start."""

    def values(self, X: Array) -> Array:
        """What a short function has to say of ``X``; of classes that vote, their votes between -1 and 1, added up.

        Votes jump from -1 to 1, which no short sum of kernels does. A value inside the margin is part of a vote, so
        these sums are continuous, and their largest is the elected class but for near ties. There is one per class,
        not one per pair.
        """
        if self.probabilities is not None:
            return log_odds(self.probabilities(X))
        values = self.expansion(X)
        return namespace(values).clip(values, -1.0, 1.0) @ self._ballot(values) if self.voting else values

    def decisions(self, X: Array) -> Array | None:
        """Number of the class of every row; None where nothing is decided."""
        values = self.expansion(X) if self.probabilities is None else self.values(X)
        if self.voting:
            xp = namespace(values)
            return xp.argmax(xp.where(values > 0, 1.0, -1.0) @ self._ballot(values), axis=1)
        return None if self.scores is None else self.scores.codes(values)

    def weights(self, values: Array) -> Array:
        """How much samples with these values count: those near a border of classes most, all alike without classes."""
        if self.scores is None:
            xp = namespace(values)
            return xp.ones((values.shape[0],), dtype=values.dtype, device=device(values))
        return border_weights(class_values(self.scores.scores(values)))

    def _ballot(self, values: Array) -> Array:
        """From a value per pair to a sum per class."""
        pairs = [(i, j) for i in range(self.voting) for j in range(i + 1, self.voting)]
        signs = [[float(c == i) - float(c == j) for c in range(self.voting)] for i, j in pairs]
        return asarray_like(signs, values, dtype=values.dtype)


@dataclass(frozen=True)
class Short:
    """A short function."""

    expansion: KernelExpansion
    agreement: Agreement
    """Of functions of as many vectors, each on the fold that it was found without."""


def distill_to(teacher: Teacher, X: Array, n_vectors: int, seed: int = 0, step: Step | None = None) -> Short:
    """The function of ``n_vectors`` vectors that is nearest to the teacher on samples like ``X``.

    A teacher with no more vectors than that is returned as it is. ``step`` is called with the number of searches done,
    of ``FOLDS + 1``.
    """
    if _short_enough(teacher, n_vectors):
        return _unchanged(teacher)
    return _Bench(teacher, X, n_vectors, seed, step).finish(n_vectors)


def distill_fewest(teacher: Teacher, X: Array, tolerance: float, seed: int = 0, step: Step | None = None) -> Short:
    """The function with the fewest vectors whose held-out loss is within ``tolerance``, and at most half of them.

    The number is doubled until the loss is within the tolerance, then halved in, to one in ``RESOLUTION``. Where half
    of the teacher's vectors are not enough, the function with so many is returned: its agreement says how far it is
    from the tolerance.

    Parameters
    ----------
    teacher : Teacher
    X : array of shape (n, d)
    tolerance : float
    seed : int
        Of the folds and of the choice of the vectors that the search starts from.
    step : callable or None
        Called with the number of searches done.
    """
    most = teacher.expansion.n_vectors // 2
    if not most:
        return _unchanged(teacher)
    bench = _Bench(teacher, X, most, seed, step)
    enough, too_few = 1, 0
    while not bench.agrees(enough, tolerance) and enough < bench.most:
        enough, too_few = min(2 * enough, bench.most), enough
    while enough - too_few > max(1, enough // RESOLUTION) and bench.agrees(enough, tolerance):
        middle = (enough + too_few) // 2
        if bench.agrees(middle, tolerance):
            enough = middle
        else:
            too_few = middle
    return bench.finish(enough)


def _short_enough(teacher: Teacher, n_vectors: int) -> bool:
    own = not teacher.voting and teacher.probabilities is None
    return own and teacher.expansion.n_vectors <= n_vectors


def _unchanged(teacher: Teacher) -> Short:
    return Short(teacher.expansion, Agreement(0.0, None if teacher.scores is None else 1.0))


@dataclass(frozen=True)
class Answers:
    """What a teacher says of some samples."""

    X: Array
    values: Array
    decisions: Array | None
    scores: ClassScores | None

    @classmethod
    def of(cls, teacher: Teacher, X: Array) -> Answers:
        """Ask a teacher."""
        return cls(X, teacher.values(X), teacher.decisions(X), teacher.scores)

    def agreement(self, short: KernelExpansion) -> Agreement:
        """How far a short function says the same."""
        values, truth, xp = short(self.X), self.values, namespace(self.values)
        size = float(xp.mean((truth - xp.mean(truth, axis=0)) ** 2)) or float(xp.mean(truth**2)) or 1.0
        error = math.sqrt(float(xp.mean((truth - values) ** 2)) / size)
        if self.decisions is None or self.scores is None:
            return Agreement(error)
        same = self.scores.codes(values) == self.decisions
        return Agreement(error, float(xp.mean(xp.astype(same, values.dtype))))


def pooled(found: Sequence[Agreement], folds: int) -> Agreement:
    """Agreement over all folds, if those that were not looked at agreed perfectly."""
    error = math.sqrt(math.fsum(one.error**2 for one in found) / folds)
    others = [1.0 - one.decisions for one in found if one.decisions is not None]
    return Agreement(error, 1.0 - math.fsum(others) / folds if others else None)


def steps(m: int) -> int:
    """How many steps a search for ``m`` vectors may take."""
    return max(LEAST_STEPS, STEPS * MANY // max(m, MANY))


@dataclass(frozen=True)
class _Fold:
    """Samples with the teacher's values, a selection of them to start from, and what it says of the others."""

    problem: RefineProblem
    start: Placement
    held_out: Answers


@dataclass(frozen=True)
class _Trial:
    """Where the vectors of a fold ended, and how far they agree on its held-out samples."""

    at: Placement
    agreement: Agreement


class _Bench:
    """Folds of the samples, all of them, and what was tried."""

    def __init__(self, teacher: Teacher, X: Array, most: int, seed: int, step: Step | None) -> None:
        self.teacher, self.seed, n = teacher, seed, int(X.shape[0])
        self._step, self._searches = step, 0
        order = [int(i) for i in random_generator(seed).permutation(n)]
        self.folds = []
        for k in range(min(FOLDS, n)):
            held_out = take_rows(X, _index(order[k::FOLDS][:MOST_HELD_OUT], X))
            others = [row for place, row in enumerate(order) if place % FOLDS != k] or order
            rows = take_rows(X, _index(others[:MOVE_ROWS], X))
            self.folds.append(
                _Fold(self._problem(rows, FOLD_ROWS), self._start(rows, most), Answers.of(teacher, held_out))
            )
        self.whole = self._problem(take_rows(X, _index(order[:MOVE_ROWS], X)), ROWS)
        self.most = min(int(fold.start.vectors.shape[0]) for fold in self.folds)
        self._tried: dict[int, list[_Trial]] = {}

    def _problem(self, X: Array, total: int) -> RefineProblem:
        rows, share = with_company(X, total, self.seed)
        values = self.teacher.values(rows)
        return refine_problem(rows, values, share * self.teacher.weights(values), objective="least squares")

    def _start(self, X: Array, most: int) -> Placement:
        kernel = self.teacher.expansion.kernel
        chosen = choose_basis(Samples.of(X), kernel, Selecting(seed=self.seed), most)
        return Placement(kernel.pick(X, chosen.indices), free_widths(kernel, X), START_RIDGE)

    def _search(self, problem: RefineProblem, start: Placement, max_iter: int, tol: float) -> Placement:
        found = refine(problem, start, max_iter=max_iter, tol=tol).placement
        self._searches += 1
        if self._step is not None:
            self._step(self._searches)
        return found

    def _try(self, fold: _Fold, m: int) -> _Trial:
        start = replace(fold.start, vectors=fold.start.vectors[:m, :])
        at = self._search(fold.problem, start, steps(m), EXACT if self.teacher.scores is None else DECIDED)
        return _Trial(at, fold.held_out.agreement(expand(fold.problem, at)))

    def _agreement(self, m: int) -> Agreement:
        return pooled([trial.agreement for trial in self._tried[m]], len(self.folds))

    def agrees(self, m: int, tolerance: float) -> bool:
        """Whether the loss of ``m`` vectors on samples that were held out in turn is within the tolerance.

        Folds that cannot change the answer are not looked at.
        """
        tried = self._tried.setdefault(m, [])
        for fold in self.folds[len(tried) :]:
            if self._agreement(m).loss > tolerance:
                return False
            tried.append(self._try(fold, m))
        return self._agreement(m).loss <= tolerance

    def finish(self, m: int) -> Short:
        """The function of ``m`` vectors from all samples: the best of the folds' vectors, moved on."""
        m = min(m, self.most)
        self.agrees(m, math.inf)
        best = min((trial.at for trial in self._tried[m]), key=lambda at: evaluate(self.whole, at).value)
        last = self._search(self.whole, best, LAST * steps(m), EXACT)
        return Short(expand(self.whole, last), self._agreement(m))


def log_odds(probabilities: Array) -> Array:
    """Scores whose softmax is the probabilities: one for two classes (positive: the second), one per class else."""
    xp = namespace(probabilities)
    scores = xp.log(xp.clip(probabilities, LEAST_PROBABILITY, 1.0))
    if scores.shape[1] == 2:
        return scores[:, 1:] - scores[:, :1]
    return scores - xp.mean(scores, axis=1, keepdims=True)


def _index(rows: object, like: Array) -> Array:
    return asarray_like(rows, like, dtype=namespace(like).int64)
