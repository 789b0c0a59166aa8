"""Logistic regression on kernel columns, with one face for two classes and for several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from fewkern.backend.linalg import one_hot, solve_shifted
from fewkern.backend.namespace import Array, namespace
from fewkern.fisher.elimination import eliminate, exchange, log_losses, regress, slopes
from fewkern.fisher.problem import Begun, Machine
from fewkern.fisher.softmax import SoftmaxColumns, SoftmaxStage, eliminate_softmax, regress_softmax, slopes_softmax

__all__ = ["RIDGES", "Deciding", "Labelled", "SeveralClasses", "Sized", "TwoClasses"]

# Penalties that are compared for several classes, in units in which k(x, x) is one on average; the largest first.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4)


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
    wrong: Array
    """One where a sample is put into another class, else zero, ``(F, n)``."""


class Deciding(Protocol):
    """Logistic regressions on kernel columns."""

    def sizes(self, folds: Labelled, order: Array) -> Iterator[Sized]:
        """Regressions on the columns ``order`` (F, k) of every fold, and on fewer and fewer of them."""

    def settle(self, every: Labelled, begun: Begun, size: int) -> tuple[Machine, Array]:
        """The best machine on ``size`` of the columns begun with, and its values of every sample without itself."""

    def slopes(self, rows: Labelled, machine: Machine) -> Array:
        """Sum over rows of the derivatives of their losses; ``rows.K`` are the columns of the machine."""

    def regress(self, rows: Labelled, machine: Machine, pull: Array) -> Machine:
        """The machine that minimizes the objective of the rows plus ``pull`` times the coefficients."""


@dataclass(frozen=True)
class TwoClasses:
    """One value, the logarithm of the odds of the second class: :mod:`fewkern.fisher.elimination`."""

    def sizes(self, folds: Labelled, order: Array) -> Iterator[Sized]:
        signs = _signs(folds)
        xp = namespace(signs)
        for stage in eliminate(_columns(folds.K, order), signs, folds.weights):
            wrong = xp.astype(stage.values * signs <= 0, signs.dtype)
            yield Sized(stage.size, log_losses(stage.values, signs), wrong)

    def settle(self, every: Labelled, begun: Begun, size: int) -> tuple[Machine, Array]:
        K, weights, signs = every.K, every.weights, _signs(every)
        xp = namespace(K)
        for stage in eliminate(xp.take(K, begun.support, axis=1)[None, :, :], signs, weights[None, :]):
            if stage.size <= size:
                break
        # two ways to so many columns, and the lower of the two minima
        ways = (xp.take(begun.support, stage.kept[0, :]), begun.forward[: stage.size])
        stage = min((exchange(K, way, signs, weights) for way in ways), key=lambda found: found.objective).stage
        support = stage.kept[0, :]
        held_out = stage.leave_one_out(xp.take(K, support, axis=1)[None, :, :], signs, weights[None, :])
        coef, held_out = (xp.astype(found[0, :, None], K.dtype) for found in (stage.coef, held_out))
        return Machine(support, coef[1:, :], coef[0, :]), held_out

    def slopes(self, rows: Labelled, machine: Machine) -> Array:
        return slopes(rows.K, _signs(rows), rows.weights, _coefficients(machine)[:, 0])[:, None]

    def regress(self, rows: Labelled, machine: Machine, pull: Array) -> Machine:
        coef = regress(rows.K, _signs(rows), rows.weights, _coefficients(machine)[:, 0], pull[:, 0])
        return Machine(machine.support, coef[1:, None], coef[:1])


@dataclass(frozen=True)
class SeveralClasses:
    """One score per class: :mod:`fewkern.fisher.softmax`. A machine has them as coordinates on the class points."""

    points: Array
    """Class points of Fisher's discriminant, ``(C, C - 1)``."""
    between: Array
    """Kernel between the candidates, ``(m, m)``, times the mean of ``k(x, x)``."""
    ridge: float = RIDGES[-1]

    def sizes(self, folds: Labelled, order: Array) -> Iterator[Sized]:
        xp = namespace(folds.K)
        for stage in eliminate_softmax(self._problem(folds, order)):
            wrong = xp.astype(xp.argmax(stage.values, axis=2) != folds.codes[None, :], stage.values.dtype)
            yield Sized(stage.size, stage.columns.losses(stage.values), wrong)

    def settle(self, every: Labelled, begun: Begun, size: int) -> tuple[Machine, Array]:
        xp = namespace(every.K)
        one = replace(every, weights=every.weights[None, :])
        found: list[tuple[Array, SoftmaxStage]] = []
        # two ways to so many columns, and the lower of the two minima
        for way in (begun.support, begun.forward[: min(int(begun.support.shape[0]), int(begun.forward.shape[0]))]):
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

    def regress(self, rows: Labelled, machine: Machine, pull: Array) -> Machine:
        xp = namespace(pull)
        penalty = self._penalty(machine.support[None, :])
        columns = SoftmaxColumns.of(rows.K[None, :, :], self._own(rows), rows.weights[None, :], penalty)
        coef = regress_softmax(columns, self._scores(machine), pull) @ xp.astype(self.points, pull.dtype)
        return Machine(machine.support, coef[1:, :], coef[0, :])

    def _problem(self, folds: Labelled, order: Array) -> SoftmaxColumns:
        """The regression on the columns ``order`` (F, k) of every fold."""
        return SoftmaxColumns.of(_columns(folds.K, order), self._own(folds), folds.weights, self._penalty(order))

    def _penalty(self, order: Array) -> Array:
        """Kernel between the vectors of every fold times the ridge; what is indefinite of it is left out."""
        xp = namespace(self.between)
        found = []
        for f in range(int(order.shape[0])):
            own = xp.take(xp.take(self.between, order[f, :], axis=0), order[f, :], axis=1)
            values, vectors = xp.linalg.eigh((own + own.T) / 2)
            found.append(self.ridge * (vectors * xp.maximum(values, xp.zeros_like(values))) @ vectors.T)
        return xp.stack(found)

    def _own(self, rows: Labelled) -> Array:
        return one_hot(rows.codes, int(self.points.shape[0]), namespace(self.points).float64)

    def _scores(self, machine: Machine) -> Array:
        """Coefficients ``(k + 1, C)`` of the scores, which add up to zero, from their coordinates on the points."""
        xp = namespace(machine.coef)
        coef, points = (xp.astype(one, xp.float64) for one in (_coefficients(machine), self.points))
        points = points - xp.mean(points, axis=0)[None, :]
        return coef @ solve_shifted(points.T @ points, points.T)


def _signs(rows: Labelled) -> Array:
    """1 for the second class, -1 for the first."""
    return 2 * namespace(rows.K).astype(rows.codes, rows.K.dtype) - 1


def _columns(K: Array, order: Array) -> Array:
    """The columns ``order`` (F, k) of every fold, ``(F, n, k)``."""
    xp = namespace(K)
    return xp.stack([xp.take(K, order[f, :], axis=1) for f in range(int(order.shape[0]))])


def _coefficients(machine: Machine) -> Array:
    """``(k + 1, p)``: the constant first."""
    return namespace(machine.coef).concat([machine.offset[None, :], machine.coef], axis=0)
