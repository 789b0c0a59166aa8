"""Logistic regression on kernel columns, with one face for two classes and for several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from fewkern.backend.linalg import logsumexp, one_hot, singular_errors, solve_shifted
from fewkern.backend.namespace import Array, device, eps, namespace
from fewkern.core.scores import class_values
from fewkern.fisher.elimination import (
    ROUGH,
    Candidacy,
    LogisticColumns,
    eliminate,
    exchange,
    log_losses,
    signs_of,
    slopes,
)
from fewkern.fisher.problem import Begun, Machine
from fewkern.fisher.softmax import (
    SoftmaxColumns,
    SoftmaxStage,
    eliminate_softmax,
    regress_softmax,
    sharpness,
    slopes_softmax,
)

__all__ = ["RIDGES", "RIDGES_TWO", "Deciding", "Labelled", "SeveralClasses", "Sized", "TwoClasses"]

# Penalties that are compared for two classes and for several, in units in which k(x, x) is one on average, the largest
# first.
RIDGES_TWO, RIDGES = (1e-2, 1e-3), (1e-1, 1e-2, 1e-3, 1e-4)
# A kernel matrix is positive semi-definite up to so many units of rounding of its trace.
_ROUNDING = 8


@dataclass(frozen=True)
class Labelled:
    """Kernel columns of samples, with their classes and weights."""

    K: Array
    """``(n, m)``."""
    codes: Array
    weights: Array
    """``(n,)``; with folds ``(F, n)``, zero where a sample is held out."""


@dataclass(frozen=True)
class Sized:
    """What regressions on so many columns say of all samples, in every fold."""

    size: int
    losses: Array
    """Logarithmic losses, ``(F, n)``."""
    sharp: Array
    """Those of ``factor`` times the scores, ``(F, n)``."""
    wrong: Array
    """One where a sample is put into another class, else zero, ``(F, n)``."""
    kept: Array
    """Positions of the columns that are left, ``(F, k)``."""
    coef: Array
    """Coefficients in every fold: where a regression with another penalty may begin."""
    factor: float = 1.0


class Deciding(Protocol):
    """Logistic regressions on kernel columns."""

    @property
    def ridge(self) -> float:
        """Weight of the penalty."""

    def on_vectors(self, between: Array, ridge: float) -> Deciding:
        """The same on other vectors, and with another penalty."""

    def sizes(self, folds: Labelled, order: Array, coef: Array | None = None) -> Iterator[Sized]:
        """Regressions on the columns ``order`` (F, k) of every fold, from ``coef`` on, and on fewer and fewer."""

    def settle(self, every: Labelled, begun: Begun, size: int) -> tuple[Machine, Array]:
        """The best machine on ``size`` of the columns begun with, and its values of every sample without itself."""

    def slopes(self, rows: Labelled, machine: Machine) -> Array:
        """Sum over rows of the derivatives of their losses; ``rows.K`` are the columns of the machine."""

    def regress(self, rows: Labelled, machine: Machine, pull: Array | None = None) -> Machine:
        """The machine that minimizes the objective of the rows plus ``pull`` times the coefficients, from one on."""

    def scores(self, values: Array) -> Array:
        """One score per class, ``(n, C)``, of samples with these values ``(n, p)``."""

    def judge(self, values: Array, codes: Array) -> tuple[Array, Array]:
        """Losses of samples with these values ``(n, p)``, the sharp ones, and one where their class is another."""


@dataclass(frozen=True)
class TwoClasses:
    """One value, the logarithm of the odds of the second class: :mod:`fewkern.fisher.elimination`."""

    between: Array
    """Kernel between the candidates, ``(m, m)``, times the mean of ``k(x, x)``."""
    ridge: float = RIDGES_TWO[-1]

    def sizes(self, folds: Labelled, order: Array, coef: Array | None = None) -> Iterator[Sized]:
        columns = replace(self._problem(folds, order), settled=ROUGH)
        xp, signs = namespace(columns.rows), columns.signs
        for stage in eliminate(columns, coef):
            wrong = xp.astype(stage.values * signs <= 0, signs.dtype)
            losses = log_losses(stage.values, signs)
            yield Sized(stage.size, losses, losses, wrong, stage.kept, stage.coef)

    def settle(self, every: Labelled, begun: Begun, size: int) -> tuple[Machine, Array]:
        K, weights = every.K, every.weights
        xp = namespace(K)
        one = replace(every, weights=weights[None, :])
        for stage in eliminate(self._problem(one, begun.support[None, :])):
            if stage.size <= size:
                break
        candidacy = Candidacy.of(K, self.between, self.ridge, signs_of(every.codes, K), weights)
        # two ways to so many columns, and the lower of the two minima
        # its penalty is that of the candidacy, because a kernel is positive semi-definite
        thinned = replace(stage, kept=xp.take(begun.support, stage.kept[0, :])[None, :])
        ways = [exchange(candidacy, way) for way in (thinned, candidacy.regress(begun.forward[: stage.size]))]
        stage = min(ways, key=lambda found: found.objective)
        coef, held_out = (xp.astype(found[0, :, None], every.K.dtype) for found in (stage.coef, stage.leave_one_out()))
        return Machine(stage.kept[0, :], coef[1:, :], coef[0, :]), held_out

    def slopes(self, rows: Labelled, machine: Machine) -> Array:
        return slopes(rows.K, signs_of(rows.codes, rows.K), rows.weights, _coefficients(machine)[:, 0])[:, None]

    def regress(self, rows: Labelled, machine: Machine, pull: Array | None = None) -> Machine:
        xp = namespace(rows.K)
        penalty = penalties(self.between, machine.support[None, :], self.ridge)
        columns = LogisticColumns.of(rows.K[None, :, :], signs_of(rows.codes, rows.K), rows.weights[None, :], penalty)
        start = xp.astype(_coefficients(machine)[:, 0], xp.float64)
        along = None if pull is None else pull[:, 0]
        coef = columns.regress(start[None, :], machine.support[None, :], along).coef[0, :]
        return Machine(machine.support, coef[1:, None], coef[:1])

    def scores(self, values: Array) -> Array:
        return class_values(values)

    def judge(self, values: Array, codes: Array) -> tuple[Array, Array]:
        signs = signs_of(codes, values)
        wrong = namespace(values).astype(values[:, 0] * signs <= 0, values.dtype)
        return log_losses(values[:, 0], signs), wrong

    def on_vectors(self, between: Array, ridge: float) -> TwoClasses:
        return replace(self, between=between, ridge=ridge)

    def _problem(self, folds: Labelled, order: Array) -> LogisticColumns:
        """The regression on the columns ``order`` (F, k) of every fold."""
        penalty = penalties(self.between, order, self.ridge)
        return LogisticColumns.of(_columns(folds.K, order), signs_of(folds.codes, folds.K), folds.weights, penalty)


@dataclass(frozen=True)
class SeveralClasses:
    """One score per class: :mod:`fewkern.fisher.softmax`. A machine has them as coordinates on the class points."""

    points: Array
    """Class points of Fisher's discriminant, ``(C, C - 1)``."""
    between: Array
    """Kernel between the candidates, ``(m, m)``, times the mean of ``k(x, x)``."""
    ridge: float = RIDGES[-1]
    factor: float = 1.0
    """Samples are judged by so many times their scores, which are small: see :func:`sharpness`."""

    def sizes(self, folds: Labelled, order: Array, coef: Array | None = None) -> Iterator[Sized]:
        xp, factor = namespace(folds.K), 0.0
        for stage in eliminate_softmax(self._problem(folds, order), coef):
            factor = factor or sharpness(stage)  # that of all columns serves all sizes
            wrong = xp.astype(xp.argmax(stage.values, axis=2) != folds.codes[None, :], stage.values.dtype)
            losses, sharp = (stage.columns.losses(times * stage.values) for times in (1.0, factor))
            yield Sized(stage.size, losses, sharp, wrong, stage.kept, stage.coef, factor)

    def settle(self, every: Labelled, begun: Begun, size: int) -> tuple[Machine, Array]:
        xp = namespace(every.K)
        one = replace(every, weights=every.weights[None, :])
        found: list[tuple[Array, SoftmaxStage]] = []
        # two ways to so many columns, if they are two, and the lower of the two minima
        length = min(int(begun.support.shape[0]), int(begun.forward.shape[0]))
        ways = [begun.support, begun.forward[:length]]
        if ways[0].shape == ways[1].shape and bool(xp.all(ways[0] == ways[1])):
            ways.pop()
        for way in ways:
            for stage in eliminate_softmax(self._problem(one, way[None, :])):
                if stage.size <= size:
                    break
            found.append((xp.take(way, stage.kept[0, :]), stage))
        support, stage = min(found, key=lambda entry: entry[1].objective)
        points = xp.astype(self.points, stage.coef.dtype)
        coef, held_out = (
            xp.astype(scores[0, :, :] @ points, every.K.dtype) for scores in (stage.coef, stage.leave_one_out())
        )
        return Machine(support, coef[1:, :], coef[0, :]), held_out

    def slopes(self, rows: Labelled, machine: Machine) -> Array:
        return slopes_softmax(rows.K, self._own(rows), rows.weights, self._scores(machine))

    def regress(self, rows: Labelled, machine: Machine, pull: Array | None = None) -> Machine:
        xp = namespace(rows.K)
        penalty = penalties(self.between, machine.support[None, :], self.ridge)
        columns = SoftmaxColumns.of(rows.K[None, :, :], self._own(rows), rows.weights[None, :], penalty)
        coef = regress_softmax(columns, self._scores(machine), pull) @ xp.astype(self.points, xp.float64)
        return Machine(machine.support, coef[1:, :], coef[0, :])

    def scores(self, values: Array) -> Array:
        xp = namespace(values)
        points = xp.astype(self.points, xp.float64)
        points = points - xp.mean(points, axis=0)[None, :]
        # scores, which add up to zero, from their coordinates on the points
        return xp.astype(values, xp.float64) @ solve_shifted(points.T @ points, points.T)

    def judge(self, values: Array, codes: Array) -> tuple[Array, Array]:
        xp, scores = namespace(values), self.scores(values)
        own = one_hot(codes, int(self.points.shape[0]), scores.dtype)
        wrong = xp.astype(xp.argmax(scores, axis=1) != codes, scores.dtype)
        scores = self.factor * scores
        return logsumexp(scores, axis=1) - xp.sum(own * scores, axis=1), wrong

    def on_vectors(self, between: Array, ridge: float) -> SeveralClasses:
        return replace(self, between=between, ridge=ridge)

    def _problem(self, folds: Labelled, order: Array) -> SoftmaxColumns:
        """The regression on the columns ``order`` (F, k) of every fold."""
        penalty = penalties(self.between, order, self.ridge)
        return SoftmaxColumns.of(_columns(folds.K, order), self._own(folds), folds.weights, penalty)

    def _own(self, rows: Labelled) -> Array:
        return one_hot(rows.codes, int(self.points.shape[0]), namespace(self.points).float64)

    def _scores(self, machine: Machine) -> Array:
        """Coefficients ``(k + 1, C)`` of the scores, which add up to zero, from their coordinates on the points."""
        return self.scores(_coefficients(machine))


def penalties(between: Array, order: Array, ridge: float) -> Array:
    """The ridge times the kernel between the vectors ``order`` (F, k) of every fold; indefinite parts are left out."""
    xp = namespace(between)
    own = xp.stack([_submatrix(between, order[f, :]) for f in range(int(order.shape[0]))])
    own = (own + xp.matrix_transpose(own)) / 2
    rounding = _ROUNDING * eps(own) * xp.linalg.trace(own)[:, None, None]
    shifted = own + rounding * xp.eye(int(own.shape[1]), dtype=own.dtype, device=device(own))
    try:
        xp.linalg.cholesky(shifted)
        return ridge * shifted
    except singular_errors():
        values, vectors = xp.linalg.eigh(own)
        lengths = ridge * xp.maximum(values, xp.zeros_like(values))
        return xp.matmul(vectors * lengths[:, None, :], xp.matrix_transpose(vectors))


def _submatrix(M: Array, positions: Array) -> Array:
    """Rows and columns at the positions."""
    xp = namespace(M)
    return xp.take(xp.take(M, positions, axis=0), positions, axis=1)


def _columns(K: Array, order: Array) -> Array:
    """The columns ``order`` (F, k) of every fold, ``(F, n, k)``."""
    xp = namespace(K)
    return xp.stack([xp.take(K, order[f, :], axis=1) for f in range(int(order.shape[0]))])


def _coefficients(machine: Machine) -> Array:
    """``(k + 1, p)``: the constant first."""
    return namespace(machine.coef).concat([machine.offset[None, :], machine.coef], axis=0)
