"""A short expansion with the values of a long one: least-squares distillation, and the fewest vectors that do.

The teacher is a fitted function. Vectors start at a selection of the samples and move, with one width per feature and
the ridge, by the gradient of the squared difference to the teacher's values (methods F13, "least squares"). Where
values become classes, samples near a border count most. A teacher has no noise, so no labels can be overfitted, only
the samples: how far the short function agrees with its teacher is measured on samples that were held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.random import random_generator
from fewkern.backend.storable import storable
from fewkern.core.expansion import KernelExpansion
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores, class_values
from fewkern.vectors.objective import Placement, RefineProblem, evaluate, expand, refine_problem
from fewkern.vectors.refinement import free_widths, refine
from fewkern.vectors.selection import Selecting, choose_basis

__all__ = ["Agreement", "Short", "Teacher", "distill_fewest", "distill_to"]

# The short function is compared with its teacher in so many folds, and on at most so many samples of each.
FOLDS, MOST_HELD_OUT = 3, 5000
# The vectors are moved on at most so many samples.
MOVE_ROWS = 20_000
# A teacher can be asked anywhere. Few samples get company up to so many rows: points between two of them, each of which
# counts as so much of a sample. On three sets decisions then differ from the teacher's on a quarter fewer test samples.
ROWS, BETWEEN = 2000, 0.3
# A sample counts half where its margin is this share of the median margin. Plain least squares spends its vectors on
# large values, which decide nothing: with 5 vectors the mean error on three splits of image falls by 2.5 points.
NEAR = 0.5
# Steps of a search, and the ridge that it starts with, in units of k(x, x).
STEPS, START_RIDGE = 200, 1e-3
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
        xp = namespace(values)
        one = xp.ones((values.shape[0],), dtype=values.dtype, device=device(values))
        if self.scores is None:
            return one
        ordered = xp.sort(class_values(self.scores.scores(values)), axis=1)
        margin = ordered[:, -1] - ordered[:, -2]
        unit = NEAR * xp.sort(margin)[margin.shape[0] // 2]
        return one / (1.0 + (margin / unit) ** 2) if float(unit) > 0 else one

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


def distill_to(teacher: Teacher, X: Array, n_vectors: int, seed: int = 0) -> Short:
    """The function of ``n_vectors`` vectors that is nearest to the teacher on samples like ``X``.

    A teacher with no more vectors than that is returned as it is.
    """
    if _short_enough(teacher, n_vectors):
        return _unchanged(teacher)
    return _Bench(teacher, X, n_vectors, seed).finish(n_vectors)


def distill_fewest(
    teacher: Teacher, X: Array, tolerance: float, seed: int = 0, step: Callable[[int], None] | None = None
) -> Short:
    """The function with the fewest vectors whose held-out loss is within ``tolerance``, and at most half of them.

    The number is doubled until the loss is within the tolerance, then halved in. Where half of the teacher's vectors
    are not enough, the function with so many is returned: its agreement says how far it is from the tolerance.

    Parameters
    ----------
    teacher : Teacher
    X : array of shape (n, d)
    tolerance : float
    seed : int
        Of the folds and of the choice of the vectors that the search starts from.
    step : callable or None
        Called with every number of vectors that is tried.
    """
    most = teacher.expansion.n_vectors // 2
    if not most:
        return _unchanged(teacher)
    bench = _Bench(teacher, X, most, seed)
    enough, too_few = 1, 0
    while bench.loss(enough, step) > tolerance and enough < bench.most:
        enough, too_few = min(2 * enough, bench.most), enough
    while enough - too_few > 1 and bench.loss(enough) <= tolerance:
        middle = (enough + too_few) // 2
        if bench.loss(middle, step) <= tolerance:
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
class _Fold:
    """Samples with the teacher's values, a selection of them to start from, and samples to compare on."""

    problem: RefineProblem
    start: Placement
    judged: Array

    def place(self, m: int) -> Placement:
        """Where ``m`` vectors are nearest to the teacher on the samples."""
        start = replace(self.start, vectors=self.start.vectors[:m, :])
        return refine(self.problem, start, max_iter=STEPS).placement


class _Bench:
    """Folds of the samples, all of them, and what was tried."""

    def __init__(self, teacher: Teacher, X: Array, most: int, seed: int) -> None:
        self.teacher, self.seed, n = teacher, seed, int(X.shape[0])
        order = [int(i) for i in random_generator(seed).permutation(n)]
        self.folds = []
        for k in range(min(FOLDS, n)):
            judged = take_rows(X, _index(order[k::FOLDS][:MOST_HELD_OUT], X))
            others = [row for place, row in enumerate(order) if place % FOLDS != k] or order
            rows = take_rows(X, _index(others[:MOVE_ROWS], X))
            self.folds.append(_Fold(self._problem(rows), self._start(rows, most), judged))
        self.whole = self._problem(take_rows(X, _index(order[:MOVE_ROWS], X)))
        self.most = min(int(fold.start.vectors.shape[0]) for fold in self.folds)
        self._tried: dict[int, tuple[list[Placement], Agreement]] = {}

    def _problem(self, X: Array) -> RefineProblem:
        rows, share = with_company(X, ROWS, self.seed)
        values = self.teacher.values(rows)
        return refine_problem(rows, values, share * self.teacher.weights(values), objective="least squares")

    def _start(self, X: Array, most: int) -> Placement:
        kernel = self.teacher.expansion.kernel
        chosen = choose_basis(Samples.of(X), kernel, Selecting(seed=self.seed), most)
        return Placement(kernel.pick(X, chosen.indices), free_widths(kernel, X), START_RIDGE)

    def _try(self, m: int) -> tuple[list[Placement], Agreement]:
        if m not in self._tried:
            xp = namespace(self.whole.X)
            places = [fold.place(m) for fold in self.folds]
            values = [expand(fold.problem, at)(fold.judged) for fold, at in zip(self.folds, places)]
            judged = xp.concat([fold.judged for fold in self.folds], axis=0)
            self._tried[m] = places, agreement(self.teacher, xp.concat(values, axis=0), judged)
        return self._tried[m]

    def loss(self, m: int, step: Callable[[int], None] | None = None) -> float:
        """Loss of ``m`` vectors on samples that were held out in turn."""
        if step is not None:
            step(m)
        return self._try(m)[1].loss

    def finish(self, m: int) -> Short:
        """The function of ``m`` vectors from all samples: the best of the folds' vectors, moved on."""
        places, agreed = self._try(min(m, self.most))
        best = min(places, key=lambda at: evaluate(self.whole, at).value)
        return Short(expand(self.whole, refine(self.whole, best, max_iter=STEPS).placement), agreed)


def with_company(X: Array, total: int, seed: int) -> tuple[Array, Array]:
    """The rows of ``X`` and, up to ``total``, random points between two of them; and how much each counts."""
    xp, n = namespace(X), int(X.shape[0])
    more = max(0, total - n)
    rng = random_generator(seed)
    one, other = (take_rows(X, _index(rng.integers(n, size=more), X)) for _ in range(2))
    way = asarray_like(rng.random((more, 1)), X, dtype=X.dtype)
    share = asarray_like([1.0] * n + [BETWEEN] * more, X, dtype=X.dtype)
    return xp.concat([X, one + way * (other - one)], axis=0), share


def log_odds(probabilities: Array) -> Array:
    """Scores whose softmax is the probabilities: one for two classes (positive: the second), one per class else."""
    xp = namespace(probabilities)
    scores = xp.log(xp.clip(probabilities, LEAST_PROBABILITY, 1.0))
    if scores.shape[1] == 2:
        return scores[:, 1:] - scores[:, :1]
    return scores - xp.mean(scores, axis=1, keepdims=True)


def agreement(teacher: Teacher, values: Array, X: Array) -> Agreement:
    """How far the values of a short function at the rows of ``X`` are those of the teacher."""
    truth, xp = teacher.values(X), namespace(values)
    size = float(xp.mean((truth - xp.mean(truth, axis=0)) ** 2)) or float(xp.mean(truth**2)) or 1.0
    error = math.sqrt(float(xp.mean((truth - values) ** 2)) / size)
    decided = teacher.decisions(X)
    if decided is None or teacher.scores is None:
        return Agreement(error)
    same = teacher.scores.codes(values) == decided
    return Agreement(error, float(xp.mean(xp.astype(same, values.dtype))))


def _index(rows: object, like: Array) -> Array:
    return asarray_like(rows, like, dtype=namespace(like).int64)
