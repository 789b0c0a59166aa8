"""A short function with the values of a long one: the learner's mover, with a teacher in place of labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.arrays.progress import Step
from fewkern.arrays.sampling import random_generator
from fewkern.arrays.storable import storable
from fewkern.compression.teaching import DRAWN_TO_JUDGE, LEAST_CLASS_ROWS, Lesson, crossings, held_out
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.core.path import smallest_within
from fewkern.core.preparation import Preparation
from fewkern.core.scores import ClassScores
from fewkern.learn.learner import linear_axes
from fewkern.learn.move import move
from fewkern.learn.objective import Geometry, Rows, coefficients
from fewkern.learn.policy import POLICY
from fewkern.learn.start import Start, choose_start

__all__ = ["Agreement", "Distilled", "Function", "Goal", "Teacher", "distill", "ladder"]

Host = np.ndarray[Any, Any]
Function = KernelExpansion | GaussianExpansion
# Rows that vectors are moved on, and crossings that they are judged by.
LESSON_ROWS, JUDGED_ROWS = 3000, 3000
# Steps of a search for at most STEP_VECTORS vectors; for more, which begin nearer to the teacher, in inverse
# proportion, down to the least.
MAX_STEPS, LEAST_STEPS, STEP_VECTORS = 150, 40, 50
# Gain of a step at which a search ends, over the variance of the values.
TOL = 1e-7
# Unit of a column, in widths of the start. With the standard deviation as unit, which ignores the width, vectors move
# too slowly beside it: the error of 20 vectors is .28 instead of .19 (KernelRidge, kin8nm, 200 steps).
UNIT_WIDTHS = 2.0
# Ridge at the start, per unit of weight: a teacher has no noise.
START_RIDGE = 1e-5
# Largest width of a column over the least one: the unit of a column needs a bound.
MAX_WIDTH_RATIO = 1e3


@storable
@dataclass(frozen=True)
class Agreement:
    """Agreement of a short function with its teacher on rows that neither has learned.

    Parameters
    ----------
    error : float
        Root mean squared difference of the values, over the standard deviation of the teacher's.
    decisions : float or None
        Share of the rows on which both decide the same; None where nothing is decided.
    least : float or None
        The same for the class of least agreement: a rare class is not lost.
    """

    error: float
    decisions: float | None = None
    least: float | None = None

    @property
    def loss(self) -> float:
        """Compared with the tolerance: other decisions in the class of least agreement, or the error."""
        return self.error if self.least is None else 1.0 - self.least

    def __str__(self) -> str:
        error = f"relative error of the values {self.error:.2g}"
        if self.decisions is None:
            return error
        return f"{self.decisions:.2%} equal decisions ({self.least:.2%} in the least class), {error}"


@dataclass(frozen=True)
class Distilled:
    """A short function, its agreement, and the classes for which that could not be measured."""

    function: Function
    agreement: Agreement
    rare: tuple[int, ...] = ()
    """Classes with fewer rows than ``LEAST_CLASS_ROWS``."""


@dataclass(frozen=True)
class Teacher:
    """A fitted function to be imitated, and what is known of it."""

    values: Callable[[Array], Array]
    """From rows to the values to be imitated, ``(n, q)``."""
    vectors: Array | None
    """Of a sum of kernels; None where only the values are known."""
    scores: ClassScores | None = None
    """From these values to classes; None where the values themselves count."""
    decide: Callable[[Array], Array] | None = None
    """From rows to numbers of classes, where the values do not decide."""
    widths: Any = None
    """Widths of its Gaussians, one or one per prepared column; None for other functions."""
    function: Function | None = None
    """The function itself, where it is known."""

    def decisions(self, X: Array, values: Array) -> Array | None:
        """Number of the class of every row; None where nothing is decided."""
        if self.scores is None:
            return None
        return self.scores.codes(values) if self.decide is None else self.decide(X)


@dataclass(frozen=True)
class Goal:
    """Sizes to be tried, ascending, the loss of agreement that ends the search, and the number of classes."""

    sizes: Sequence[int]
    tolerance: float
    n_classes: int = 0


def ladder(most: int) -> tuple[int, ...]:
    """Sizes to be compared: the learner's, then doubled, up to ``most``."""
    sizes = list(POLICY.ladder)
    while sizes[-1] < most:
        sizes.append(2 * sizes[-1])
    return (*(m for m in sizes if m < most), most)


def steps(m: int) -> int:
    """Steps of a search for ``m`` vectors."""
    return max(LEAST_STEPS, MAX_STEPS * STEP_VECTORS // max(m, STEP_VECTORS))


@one_thread()
def distill(
    teacher: Teacher, X: Array, X_new: Array | None, goal: Goal, seed: int = 0, step: Step = lambda _: None
) -> Distilled:
    """The function of the first size that agrees with the teacher to a tolerance.

    Where none does, the smallest whose decisions and values are at most the tolerance worse than the best: more vectors
    do not help to imitate a rough function.

    Parameters
    ----------
    teacher : Teacher
    X : array of shape (n, d)
        Rows to be taught. Without ``X_new`` some of them are held out.
    X_new : array of shape (n_new, d) or None
        Rows that measure the agreement; None: crossings of the rows held out.
    goal : Goal
    seed : int
        Of the rows held out, of the crossings and of the start.
    step : callable
        Called with the number of searches done.
    """
    if teacher.function is not None and teacher.function.n_vectors <= goal.sizes[0]:
        return Distilled(teacher.function, Agreement(0.0) if teacher.scores is None else Agreement(0.0, 1.0, 1.0))
    rng = random_generator(seed)
    codes = teacher.decisions(X, teacher.values(X))
    if X_new is None:
        taught, held = (_take(X, part) for part in held_out(codes, int(X.shape[0]), rng))
        test = _Test.crossed(teacher, X, held, codes, rng)
    else:
        taught, test = X, _Test.of(teacher, X_new)
    lesson = Lesson.of(teacher, taught, LESSON_ROWS, rng)
    beginner = _Student.of(teacher, lesson, seed)
    found: list[tuple[Function, Agreement]] = []
    for size in goal.sizes:
        student = beginner.begun(lesson, size).moved(lesson, steps(size))
        function = student.function(lesson).in_precision(to_numpy(X[:1, :]).dtype).like(X)
        found.append((function, test.agreement(function)))
        step(len(found))
        if found[-1][1].loss <= goal.tolerance:
            return Distilled(*found[-1], test.rare(goal.n_classes))
    losses = np.array([(agreement.loss, agreement.error) for _, agreement in found])
    (best,) = smallest_within((losses - losses.min(axis=0)).max(axis=1), np.array(goal.sizes), goal.tolerance)
    return Distilled(*found[best], test.rare(goal.n_classes))


def _take(X: Array, part: Host) -> Array:
    return take_rows(X, asarray_like(part, X, dtype=namespace(X).int64))


@dataclass(frozen=True)
class _Test:
    """Rows that measure the agreement, and the answers of the teacher."""

    X: Array
    values: Array
    scores: ClassScores | None = None
    codes: Host | None = None
    counts: Host | None = None
    """Rows of every class, of which ``X`` is a sample."""

    @classmethod
    def of(cls, teacher: Teacher, X: Array, codes: Array | None = None) -> _Test:
        """On given rows; ``codes`` are the classes of the rows that these stand for."""
        values = teacher.values(X)
        found = teacher.decisions(X, values)
        if found is None:
            return cls(X, values)
        own = to_numpy(found)
        counts = np.bincount(own if codes is None else to_numpy(codes), minlength=int(own.max()) + 1)
        return cls(X, values, teacher.scores, own, counts)

    @classmethod
    def crossed(cls, teacher: Teacher, X: Array, held: Array, codes: Array | None, rng: np.random.Generator) -> _Test:
        """On crossings of rows that are not taught."""
        own = teacher.decisions(held, teacher.values(held))
        return cls.of(teacher, crossings(held, X, own, JUDGED_ROWS, DRAWN_TO_JUDGE, rng), codes)

    def rare(self, n_classes: int) -> tuple[int, ...]:
        """Classes with too few rows to measure their agreement."""
        counts = np.zeros(0, dtype=int) if self.counts is None else self.counts
        counts = np.concatenate([counts, np.zeros(max(0, n_classes - len(counts)), dtype=int)])
        return tuple(int(c) for c in np.flatnonzero(counts < LEAST_CLASS_ROWS))

    def agreement(self, short: Function) -> Agreement:
        """Agreement of a short function with the teacher."""
        values, truth, xp = short(self.X), self.values, namespace(self.values)
        size = float(xp.mean((truth - xp.mean(truth, axis=0)) ** 2)) or float(xp.mean(truth**2)) or 1.0
        error = math.sqrt(float(xp.mean((truth - values) ** 2)) / size)
        if self.scores is None or self.codes is None or self.counts is None:
            return Agreement(error)
        same = to_numpy(self.scores.codes(values)) == self.codes
        classes = np.unique(self.codes)
        agreed = np.array([same[self.codes == c].mean() for c in classes])
        shares = self.counts[classes]
        decisions = float(shares @ agreed / shares.sum()) if shares.any() else float(agreed.mean())
        return Agreement(error, decisions, float(agreed.min()))


@dataclass(frozen=True)
class _Student:
    """The form of a short function, and where its vectors are."""

    preparation: Preparation
    axes: Host
    """Linear features as combinations of prepared columns."""
    start: Start
    directions: Host
    geometry: Geometry | None = None

    @classmethod
    def of(cls, teacher: Teacher, lesson: Lesson, seed: int) -> _Student:
        """Without vectors, in the metric of the teacher's Gaussians; where it has none, in one that the learner finds.

        A sum of Gaussians has no linear part; other functions may have one.
        """
        own = teacher.function.basis if isinstance(teacher.function, GaussianExpansion) else None
        columns = _centred(lesson.X) if own is None else own.preparation.like(lesson.X)
        T = columns(lesson.X).astype(np.float64)
        spread = T.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        axes = linear_axes(T / spread, POLICY) / spread[:, None]
        none = np.zeros((len(spread), 0))
        if teacher.widths is None:
            standard = cls._measured(columns, axes, 1.0 / spread, none, seed)
            factors = np.exp(choose_start(standard.rows(lesson), POLICY, seed).log_scales)
            return cls._measured(columns, axes, factors / spread, none, seed)
        scales = 1.0 / np.broadcast_to(teacher.widths, spread.shape)
        if own is None:
            return cls._measured(columns, none, scales, none, seed)
        return cls._measured(columns, axes, scales, to_numpy(own.directions), seed)

    @classmethod
    def _measured(cls, columns: Preparation, axes: Host, scales: Host, directions: Host, seed: int) -> _Student:
        """With ``UNIT_WIDTHS`` widths as the unit of every column."""
        unit = np.maximum(scales, scales.max() / MAX_WIDTH_RATIO) / UNIT_WIDTHS
        start = Start(np.log(scales / unit), START_RIDGE, seed)
        columns = replace(columns, values=columns.values * unit)
        return cls(columns, axes / unit[:, None], start, directions / unit[:, None])

    def rows(self, lesson: Lesson) -> Rows:
        """A lesson in prepared columns."""
        T = self.preparation(lesson.X).astype(np.float64)
        return Rows(T, lesson.values, lesson.weights, self.axes)

    def begun(self, lesson: Lesson, size: int) -> _Student:
        """With vectors that are rows of the lesson; many vectors are samples, where a teacher has its bumps."""
        rows = self.rows(lesson)
        if STEP_VECTORS <= size <= lesson.n_samples:
            rows = rows.take(range(lesson.n_samples))
        geometry, _ = self.start.geometry(rows, size)
        return replace(self, geometry=replace(geometry, directions=self.directions))

    def moved(self, lesson: Lesson, steps: int) -> _Student:
        """With vectors moved to have the teacher's values."""
        assert self.geometry is not None
        rows = self.rows(lesson)
        variance = float(np.sum(rows.mean((rows.Y - rows.mean(rows.Y)) ** 2)))
        rows = rows.with_targets(rows.Y / math.sqrt(variance or 1.0))  # a gain has the unit of the targets
        return replace(self, geometry=move(rows, self.geometry, steps, POLICY, TOL))

    def function(self, lesson: Lesson) -> GaussianExpansion:
        """With the coefficients that a lesson gives."""
        at = self.geometry
        assert at is not None
        basis = GaussianBasis(
            self.preparation, at.vectors, np.exp(at.log_scales), at.directions, np.exp(at.log_widths), self.axes
        )
        return basis.expand(*coefficients(self.rows(lesson), at, POLICY))


def _centred(X: Host) -> Preparation:
    """Columns less their means; constant from one range of the samples beyond them."""
    X = X.astype(np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    ends = np.stack([2.0 * low - high, 2.0 * high - low])
    return Preparation(ends, ends - X.mean(axis=0))
