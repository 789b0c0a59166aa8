"""How certain predictions are: intervals, sets of classes, and rows unlike those that the model knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.reporting.formatting import number, percent, plural
from fewkern.reporting.holdout import Predictions
from fewkern.reporting.subject import Subject

__all__ = ["Intervals", "Novelty", "Sets", "Uncertainty", "uncertainty"]

Vector = np.ndarray[Any, Any]
_COVERAGE, _FALSE_ALARMS = 0.9, 0.05
_MOST_ROWS = 2000


@dataclass(frozen=True)
class Intervals:
    """Prediction intervals."""

    coverage: float
    covered: float
    """Share of the rows whose true value lies inside."""
    low: Vector
    high: Vector
    truth: Vector
    predicted: Vector
    sentence: str


@dataclass(frozen=True)
class Sets:
    """Prediction sets: classes that include the true one with a given probability."""

    coverage: float
    covered: float
    sizes: tuple[int, ...]
    """Rows with a set of no class, of one, of two, ..."""
    sentence: str


@dataclass(frozen=True)
class Novelty:
    """How unlike the training samples the rows are."""

    values: Vector
    threshold: float
    sentence: str


@dataclass(frozen=True)
class Uncertainty:
    """What a model states about its own uncertainty."""

    intervals: Intervals | None
    sets: Sets | None
    novelty: Novelty | None
    absent: tuple[str, ...]
    """Why something is missing, in the words of the model."""


def uncertainty(subject: Subject, found: Predictions | None) -> Uncertainty:
    """Intervals, sets and novelty, where the model has them."""
    absent: list[str] = []

    def ask(name: str, make: Callable[[], Any]) -> Any:
        if not hasattr(subject.core, name):
            return None
        try:
            return make()
        except (AttributeError, ValueError) as error:  # the message tells why there is none
            absent.append(str(error))
            return None

    intervals = None if found is None else ask("predict_interval", lambda: _intervals(subject, found))
    sets = None if found is None else ask("predict_set", lambda: _sets(subject, found))
    return Uncertainty(intervals, sets, ask("novelty", lambda: _novelty(subject)), tuple(absent))


def _intervals(subject: Subject, found: Predictions) -> Intervals:
    samples, truth = subject.samples[found.positions[:_MOST_ROWS]], found.truth[:_MOST_ROWS]
    low, high = subject.ask("predict_interval", samples, coverage=_COVERAGE).astype(float).T
    covered = float(np.mean((low <= truth) & (truth <= high)))
    half = float(np.median(high - low)) / 2
    return Intervals(
        _COVERAGE,
        covered,
        low,
        high,
        truth,
        subject.predict(samples),
        f"With {percent(_COVERAGE, 0)} coverage, a typical prediction interval is ±{number(half)}. It contains the "
        f"true value for {percent(covered)} of these {plural(len(truth), 'row')}.{_expected(found)}",
    )


def _expected(found: Predictions) -> str:
    """The coverage of rows that the model was fitted to flatters it."""
    return f" The model was fitted to them; for new rows expect {percent(_COVERAGE, 0)}." if found.seen else ""


def _sets(subject: Subject, found: Predictions) -> Sets:
    samples, truth = subject.samples[found.positions[:_MOST_ROWS]], found.truth[:_MOST_ROWS]
    member = subject.ask("predict_set", samples, coverage=_COVERAGE).astype(bool)
    covered = float(np.mean((member & (truth[:, None] == subject.classes[None, :])).any(axis=1)))
    sizes = np.bincount(member.sum(axis=1), minlength=len(subject.classes) + 1)
    return Sets(
        _COVERAGE,
        covered,
        tuple(int(v) for v in sizes),
        f"With {percent(_COVERAGE, 0)} coverage, the model gives a single class for "
        f"{percent(sizes[1] / len(member), 0)} of rows. The set includes the true class for {percent(covered)} of "
        f"these {plural(len(member), 'row')}.{_expected(found)}",
    )


def _novelty(subject: Subject) -> Novelty:
    values = subject.ask("novelty", subject.samples[:_MOST_ROWS]).astype(float)
    limit = float(subject.core.novelty_threshold(false_alarms=_FALSE_ALARMS))
    return Novelty(
        values,
        limit,
        f"At a false-alarm rate of {percent(_FALSE_ALARMS, 0)} (novelty above {number(limit)}), "
        f"{percent(float(np.mean(values > limit)))} of these rows are flagged as unlike the training data.",
    )
