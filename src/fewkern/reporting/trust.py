"""How sure a model is of its answers: intervals, sets of classes, rows unlike those that it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.reporting.judging import Judged
from fewkern.reporting.subject import Subject
from fewkern.reporting.words import about, number, percent, plural

__all__ = ["Intervals", "Novelty", "Sets", "Trust", "trust"]

Vector = np.ndarray[Any, Any]
_COVERAGE, _FALSE_ALARMS = 0.9, 0.05
_MOST_ROWS = 2000


@dataclass(frozen=True)
class Intervals:
    """Intervals around predictions of numbers."""

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
    """Sets of classes that hold the right one with a stated probability."""

    coverage: float
    covered: float
    sizes: tuple[int, ...]
    """Rows with a set of no class, of one, of two, ..."""
    sentence: str


@dataclass(frozen=True)
class Novelty:
    """How unlike the kept vectors the rows are."""

    values: Vector
    threshold: float
    sentence: str


@dataclass(frozen=True)
class Trust:
    """What a model says about its own certainty."""

    intervals: Intervals | None
    sets: Sets | None
    novelty: Novelty | None
    absent: tuple[str, ...]
    """Why something is missing, in the words of the model."""


def trust(subject: Subject, judged: Judged | None) -> Trust:
    """Ask the model for intervals, sets and novelty, where it has them."""
    absent: list[str] = []

    def ask(name: str, found: Callable[[], Any]) -> Any:
        if not hasattr(subject.model, name):
            return None
        try:
            return found()
        except (AttributeError, ValueError) as error:  # a model that has none says why
            absent.append(str(error))
            return None

    intervals = None if judged is None else ask("predict_interval", lambda: _intervals(subject, judged))
    sets = None if judged is None else ask("predict_set", lambda: _sets(subject, judged))
    return Trust(intervals, sets, ask("novelty", lambda: _novelty(subject)), tuple(absent))


def _intervals(subject: Subject, judged: Judged) -> Intervals:
    at = judged.positions[:_MOST_ROWS]
    rows = subject.rows.take(at)
    bounds = to_numpy(subject.model.predict_interval(subject.given(rows), coverage=_COVERAGE)).astype(float)
    low, high, truth = bounds[:, 0], bounds[:, 1], judged.truth[:_MOST_ROWS]
    covered = float(np.mean((low <= truth) & (truth <= high)))
    half = float(np.median(high - low)) / 2
    return Intervals(
        _COVERAGE,
        covered,
        low,
        high,
        truth,
        subject.predict(rows),
        f"Asked for intervals that hold the true value in {about(_COVERAGE).removeprefix('about ')} cases, the model "
        f"gives ± {number(half)} around a typical prediction. Of the {plural(len(truth), 'row')} here "
        f"{percent(covered)} lie inside.",
    )


def _sets(subject: Subject, judged: Judged) -> Sets:
    at = judged.positions[:_MOST_ROWS]
    member = to_numpy(subject.model.predict_set(subject.given(subject.rows.take(at)), coverage=_COVERAGE)).astype(bool)
    truth = judged.truth[:_MOST_ROWS, None] == subject.classes[None, :]
    covered = float(np.mean((member & truth).any(axis=1)))
    sizes = np.bincount(member.sum(axis=1), minlength=len(subject.classes) + 1)
    single = float(sizes[1] / len(member))
    return Sets(
        _COVERAGE,
        covered,
        tuple(int(v) for v in sizes),
        f"Asked for sets of classes that hold the right one in {about(_COVERAGE).removeprefix('about ')} cases, the "
        f"model commits itself to one class for {percent(single, 0)} of the rows, and names several for the others. "
        f"The right class is in the set for {percent(covered)} of the {plural(len(member), 'row')} here.",
    )


def _novelty(subject: Subject) -> Novelty:
    rows = subject.rows.take(np.arange(min(len(subject.rows), _MOST_ROWS)))
    owner = subject.model if hasattr(subject.model, "novelty_threshold") else subject.core
    values = to_numpy(subject.model.novelty(subject.given(rows))).astype(float)
    limit = float(owner.novelty_threshold(false_alarms=_FALSE_ALARMS))
    above = float(np.mean(values > limit))
    return Novelty(
        values,
        limit,
        f"A new row of the same kind is flagged as unlike the others in {percent(_FALSE_ALARMS, 0)} of all cases "
        f"(novelty above {number(limit)}). Of the rows here {percent(above)} are.",
    )
