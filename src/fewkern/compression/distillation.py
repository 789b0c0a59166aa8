"""A short function with the values of a long one: the learner's mover, with a teacher in place of labels.

A teacher is a fitted function, which has a value anywhere. At the samples that it was fitted to it may have memorised
noise, so these do not represent new samples. The short function is taught on samples and on crossings of neighbouring
samples, and judged by crossings of samples that were held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import Array, asarray_like, concat_rows, namespace, take_rows, to_numpy
from fewkern.arrays.progress import Step
from fewkern.arrays.sampling import random_generator
from fewkern.arrays.storable import storable
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion, Preparation
from fewkern.core.path import smallest_within
from fewkern.core.scores import ClassScores, class_values
from fewkern.learn.geometry import Rows, coefficients
from fewkern.learn.learner import linear_axes
from fewkern.learn.moves import Search, move
from fewkern.learn.policy import POLICY
from fewkern.learn.start import Start, choose_start

Host = np.ndarray[Any, Any]
Function = KernelExpansion | GaussianExpansion


@dataclass(frozen=True)
class Imitation:
    """Every number that can change which short model comes out, beside those of the learner that moves the vectors."""

    rows: int = 3000
    """Rows that vectors are moved on, and crossings that they are judged by."""
    max_steps: int = 150
    """Steps of a search for at most ``step_vectors`` vectors."""
    least_steps: int = 40
    """More vectors begin nearer to the teacher: the steps are in inverse proportion, down to this number."""
    step_vectors: int = 50
    """From this size on vectors begin at samples, where a teacher has its bumps."""
    unit_widths: float = 2.0
    """Unit of a column, in widths of the start. With the standard deviation as unit, which ignores the width, vectors
    move too slowly beside it: the error of 20 vectors is .28 instead of .19 (KernelRidge, kin8nm, 200 steps)."""
    start_ridge: float = 1e-5
    """Ridge at the start, per unit of weight: a teacher has no noise."""
    drawn_to_teach: int = 4
    """Samples drawn, of which the nearest is crossed with another one: crossings to learn from may lie between the
    samples."""
    drawn_to_judge: int = 128
    """The same for crossings to be judged by, which must resemble samples; too close to them, the teacher has
    memorised. With 32 vectors for an SVC of digits, pendigits, satimage, image and vowel (two splits of 600 rows each)
    6.0% of the decisions differ on new rows; on crossings with 64, 128 and 256 drawn 7.9%, 6.4% and 5.7%. Of digits
    alone 4.7%, and 5.9%, 4.0% and 3.0%."""
    crossing_weight: float = 0.3
    """Weight of a crossing, in samples."""
    half_weight_margin: float = 0.5
    """Margin, over the median margin, at which a row has half its weight. Plain least squares spends its vectors on
    large values, which decide nothing: with 5 vectors the mean error on three splits of image falls by 2.5 points."""
    held_out: int = 10
    """One sample in this many is held out. With one in five, 98.2% of german's decisions agree on test samples, with
    one in ten 98.5%, as with none."""
    least_class_rows: int = 10
    """Least number of samples of a class that are held out, or a third of them: the agreement on one sample would be
    left to chance."""


IMITATION = Imitation()


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
class Teacher:
    """A fitted function to be imitated, and its known properties."""

    values: Callable[[Array], Array]
    """Maps rows to the values to be imitated, ``(n, q)``."""
    vectors: Array | None
    """Vectors of a sum of kernels; None where only the values are known."""
    scores: ClassScores | None = None
    """Maps these values to classes; None where the values themselves count."""
    decide: Callable[[Array], Array] | None = None
    """Maps rows to numbers of classes, where the values do not decide."""
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
    sizes = list(POLICY.candidates.ladder)
    while sizes[-1] < most:
        sizes.append(2 * sizes[-1])
    return (*(m for m in sizes if m < most), most)


def steps(m: int) -> int:
    """Steps of a search for ``m`` vectors."""
    return max(IMITATION.least_steps, IMITATION.max_steps * IMITATION.step_vectors // max(m, IMITATION.step_vectors))


@one_thread()
def distill(
    teacher: Teacher, X: Array, X_new: Array | None, goal: Goal, seed: int = 0, step: Step = lambda _: None
) -> tuple[Function, Agreement, tuple[int, ...]]:
    """The function of the first size that agrees with the teacher to a tolerance, and how far it agrees.

    Where none does, the smallest whose decisions and values are at most the tolerance worse than the best: more vectors
    do not help to imitate a rough function. Also returns the classes with too few rows to measure their agreement.

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
        return teacher.function, Agreement(0.0) if teacher.scores is None else Agreement(0.0, 1.0, 1.0), ()
    rng = random_generator(seed)
    known = _Answers.of(teacher, X)
    if X_new is None:
        teach, hold = held_out(known.codes, int(X.shape[0]), rng)
        taught, held, counted = known.take(teach), known.take(hold), known.codes
        test = _Answers.of(teacher, crossings(held.X, X, held.codes, IMITATION.rows, IMITATION.drawn_to_judge, rng))
        if held.codes is not None and test.codes is not None:
            # also those held out of classes for which the teacher decides nowhere else
            test = test + held.take(np.flatnonzero(~np.isin(held.codes, test.codes)))
    else:
        taught, test = known, _Answers.of(teacher, X_new)
        counted = test.codes
    counts, rare = None, tuple[int, ...]()
    if counted is not None and test.codes is not None:
        counts = np.bincount(counted, minlength=max(goal.n_classes, int(test.codes.max()) + 1))
        rare = tuple(np.flatnonzero(counts < IMITATION.least_class_rows).tolist())
    n_samples = min(int(taught.X.shape[0]), 2 * IMITATION.rows // 3)
    lesson = _lesson(teacher, taught, n_samples, rng)
    student = _Student.of(teacher, lesson, seed)
    rows, found = student.rows(lesson), []
    for size in goal.sizes:
        function = student.taught(rows, size, n_samples).in_precision(to_numpy(X[:1, :]).dtype).like(X)
        found.append((function, test.agreement(function, teacher.scores, counts)))
        step(len(found))
        if found[-1][1].loss <= goal.tolerance:
            return *found[-1], rare
    losses = np.array([(agreement.loss, agreement.error) for _, agreement in found])
    (best,) = smallest_within((losses - losses.min(axis=0)).max(axis=1), np.array(goal.sizes), goal.tolerance)
    return *found[best], rare


def _take(X: Array, part: Host) -> Array:
    return take_rows(X, asarray_like(part, X, dtype=namespace(X).int64))


def _lesson(teacher: Teacher, taught: _Answers, n: int, rng: np.random.Generator) -> Rows:
    """The first ``n`` samples, then crossings, with the teacher's values; rows near a border count most."""
    X, codes, more = taught.X[:n, :], None if taught.codes is None else taught.codes[:n], IMITATION.rows - n
    rows = namespace(X).concat([X, crossings(X, X, codes, more, IMITATION.drawn_to_teach, rng)], axis=0)
    values = to_numpy(teacher.values(rows)).astype(np.float64)
    weights = np.array([1.0] * n + [IMITATION.crossing_weight] * more)
    if teacher.scores is not None:
        weights = weights * border_weights(class_values(teacher.scores.scores(values)))
    return Rows(to_numpy(rows), values, weights * (IMITATION.rows / weights.sum()), np.zeros((X.shape[1], 0)))


def border_weights(scores: Host) -> Host:
    """Weights of rows whose classes have these scores ``(n, C)``: those near a border of classes count most."""
    ordered = np.sort(scores, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    unit = IMITATION.half_weight_margin * np.sort(margin)[len(margin) // 2]
    return 1.0 / (1.0 + (margin / unit) ** 2) if unit > 0 else np.ones_like(margin)


def held_out(codes: Array | None, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Positions of the samples to teach, and of those held out: one in ten, and enough of every class.

    Classes of one or two samples are in both: what is not taught is lost, and what is not held out is not measured.
    """
    order = rng.permutation(n)
    if n < 2 * IMITATION.held_out:
        return order, order
    held = np.arange(n) % IMITATION.held_out == IMITATION.held_out - 1
    taught = ~held
    if codes is not None:
        order = order[np.argsort(to_numpy(codes)[order], kind="stable")]
        classes = to_numpy(codes)[order]
        for own in (np.flatnonzero(classes == c) for c in np.unique(classes)):
            if held[own].sum() < IMITATION.least_class_rows:
                held[own[: min(IMITATION.least_class_rows, max(1, len(own) // 3))]] = True
            taught[own] = ~held[own] | (len(own) < 3)
    return rng.permutation(order[taught]), order[held]


def crossings(X: Array, others: Array, codes: Array | None, count: int, drawn: int, rng: np.random.Generator) -> Array:
    """``count`` rows that take every feature from a row of ``X`` or from one of the ``others`` near it.

    Their values therefore occur in the data. All classes ``codes`` are drawn alike, so that rare ones count.
    """
    xp, (n, d) = namespace(X), X.shape
    chance = None
    if codes is not None:
        _, place, counts = np.unique(to_numpy(codes), return_inverse=True, return_counts=True)
        chance = 1.0 / (len(counts) * counts[place.reshape(-1)])
    first = _take(X, rng.choice(n, count, p=chance))
    spread = xp.std(others, axis=0)
    unit = xp.where(spread > 0, spread, xp.ones_like(spread))
    nearest, least = first, xp.full_like(first[:, 0], xp.inf)
    for _ in range(drawn):
        other = _take(others, rng.integers(int(others.shape[0]), size=count))
        distance = xp.sum(((first - other) / unit) ** 2, axis=1)
        nearer = (distance > 0) & (distance < least)
        nearest, least = xp.where(nearer[:, None], other, nearest), xp.where(nearer, distance, least)
    return xp.where(asarray_like(rng.random((count, d)) < 0.5, X, dtype=xp.bool), first, nearest)


@dataclass(frozen=True)
class _Answers:
    """Rows, and what the teacher says about them."""

    X: Array
    values: Array
    codes: Host | None
    """Numbers of the classes; None where nothing is decided."""

    @classmethod
    def of(cls, teacher: Teacher, X: Array) -> _Answers:
        """Ask the teacher."""
        values = teacher.values(X)
        codes = teacher.decisions(X, values)
        return cls(X, values, None if codes is None else to_numpy(codes))

    def take(self, part: Host) -> _Answers:
        """The rows at the positions ``part``."""
        return _Answers(_take(self.X, part), _take(self.values, part), None if self.codes is None else self.codes[part])

    def __add__(self, other: _Answers) -> _Answers:
        """These rows, then those of another one, with decisions."""
        assert self.codes is not None
        assert other.codes is not None
        X, values = concat_rows(self.X, other.X), concat_rows(self.values, other.values)
        return _Answers(X, values, np.concatenate([self.codes, other.codes]))

    def agreement(self, short: Function, scores: ClassScores | None, counts: Host | None) -> Agreement:
        """Agreement of a short function with the teacher; ``counts``: rows of every class for which these stand."""
        values, truth, xp = short(self.X), self.values, namespace(self.values)
        size = float(xp.mean((truth - xp.mean(truth, axis=0)) ** 2)) or float(xp.mean(truth**2)) or 1.0
        error = math.sqrt(float(xp.mean((truth - values) ** 2)) / size)
        if scores is None or self.codes is None or counts is None:
            return Agreement(error)
        same = to_numpy(scores.codes(values)) == self.codes
        classes = np.unique(self.codes)
        agreed = np.array([same[self.codes == c].mean() for c in classes])
        shares = counts[classes]
        decisions = float(shares @ agreed / shares.sum()) if shares.any() else float(agreed.mean())
        return Agreement(error, decisions, float(agreed.min()))


@dataclass(frozen=True)
class _Student:
    """Where short functions begin: their columns and linear features, and the metric of their Gaussians."""

    preparation: Preparation
    axes: Host
    """Linear features as combinations of prepared columns."""
    start: Start
    directions: Host

    @classmethod
    def of(cls, teacher: Teacher, lesson: Rows, seed: int) -> _Student:
        """The start in the metric of the teacher's Gaussians; where it has none, in one that the learner finds.

        A sum of Gaussians has no linear part; other functions may have one.
        """
        own = teacher.function.basis if isinstance(teacher.function, GaussianExpansion) else None
        columns = _centred(lesson.T) if own is None else own.preparation.like(lesson.T)
        T = columns(lesson.T).astype(np.float64)
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
        """The start with some widths as the unit of every column."""
        # the inverse width of an irrelevant column may be near zero: its unit needs a bound
        unit = np.maximum(scales, scales.max() / 1e3) / IMITATION.unit_widths
        start = Start(np.log(scales / unit), IMITATION.start_ridge, seed)
        columns = replace(columns, values=columns.values * unit)
        return cls(columns, axes / unit[:, None], start, directions / unit[:, None])

    def rows(self, lesson: Rows) -> Rows:
        """A lesson in prepared columns."""
        return replace(lesson, T=self.preparation(lesson.T).astype(np.float64), axes=self.axes)

    def taught(self, rows: Rows, size: int, n_samples: int) -> GaussianExpansion:
        """A function of ``size`` vectors, which are some of the rows, moved to have the teacher's values."""
        # many vectors are samples, where a teacher has its bumps
        among = rows.take(range(n_samples)) if IMITATION.step_vectors <= size <= n_samples else rows
        begun = replace(self.start.geometry(among, size)[0], directions=self.directions)
        variance = float(np.sum(rows.mean((rows.Y - rows.mean(rows.Y)) ** 2)))
        scaled = rows.with_targets(rows.Y / math.sqrt(variance or 1.0))  # a gain has the unit of the targets
        at = move(scaled, begun, Search(steps(size), least_gain=1e-7), POLICY)  # a teacher has no noise
        return at.basis(self.preparation, self.axes).expand(*coefficients(rows, at, POLICY))


def _centred(X: Host) -> Preparation:
    """Columns less their means; constant from one range of the samples beyond them."""
    X = X.astype(np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    ends = np.stack([2.0 * low - high, 2.0 * high - low])
    return Preparation(ends, ends - X.mean(axis=0))
