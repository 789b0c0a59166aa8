"""What drives the predictions: the columns that matter, and how the answer changes along the first of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.reporting.rows import Rows
from fewkern.reporting.subject import Subject
from fewkern.reporting.words import cell, is_missing, number

__all__ = ["Driver", "Drivers", "Effect", "drivers"]

Vector = np.ndarray[Any, Any]
# Rows that are predicted again and again; more make the numbers hardly more certain.
_MOST_ROWS, _MOST_EFFECT_ROWS = 1000, 200
# Predictions of all these rows that importances may cost: five per column, fewer where columns are many.
_MOST_PREDICTIONS = 250
_REPEATS = 5
_MOST_EFFECTS, _MOST_VALUES, _MOST_LEVELS, _MOST_CURVES = 3, 20, 12, 5
# A column with at most this many different numbers is drawn as levels, not as a line.
_FEW_NUMBERS = 6


@dataclass(frozen=True)
class Driver:
    """What one column of the table means to the model."""

    column: str
    rise: float
    """How much larger the error is when the cells of the column are shuffled."""
    spread: float
    """Standard deviation of the rise over the shuffles."""
    share: float | None
    """Share in the variation of the fitted function (``feature_importances_``), where the model has it."""


@dataclass(frozen=True)
class Effect:
    """The mean answer for some rows, if all of them had the same value in one column."""

    column: str
    values: tuple[Any, ...]
    """Numbers in increasing order, or categories."""
    is_number: bool
    curves: tuple[tuple[str, tuple[float, ...]], ...]
    """Name and mean answers: the prediction, or the probability of a class."""


@dataclass(frozen=True)
class Drivers:
    """What drives a model."""

    importances: tuple[Driver, ...]
    """The most important column first."""
    error: float
    """Error on the same rows, nothing shuffled: a share of rows, or the mean absolute error."""
    rows: int
    left_out: int
    """Columns that were not tried, because there are too many."""
    unused: tuple[str, ...]
    """Columns of the table that the model does not look at, or that are the same in all rows."""
    several: bool
    """Whether a column becomes several features, as categories do."""
    effects: tuple[Effect, ...]
    sentences: tuple[str, ...]


def drivers(subject: Subject, seed: int) -> Drivers:
    """Permutation importances in columns of the table, the model's own, and partial effects of the first three."""
    rng = np.random.default_rng(seed)
    n = len(subject.rows)
    some = np.arange(n) if n <= _MOST_ROWS else np.sort(rng.choice(n, _MOST_ROWS, replace=False))
    rows = subject.rows.take(some)
    assert subject.truth is not None
    truth = subject.truth[some]
    own = own_importances(subject)
    tried = _tried(subject, own)
    error = _error(subject, rows, truth)
    repeats = max(1, min(_REPEATS, _MOST_PREDICTIONS // max(len(tried), 1)))
    found = []
    for j in tried:
        rises = [
            _error(subject, rows.replaced(j, rows.cells(j, rng.permutation(len(rows)))), truth) - error
            for _ in range(repeats)
        ]
        share = None if own is None else float(own[subject.used.index(j)])
        found.append(Driver(rows.names[j], float(np.mean(rises)), float(np.std(rises)), share))
    order = sorted(range(len(found)), key=lambda k: (-found[k].rise, -(found[k].share or 0.0)))
    importances = tuple(found[k] for k in order)
    first = [tried[k] for k in order if found[k].rise > 0][:_MOST_EFFECTS]
    effects = tuple(partial_effect(subject, j, rng) for j in first)
    sentences = _sentences(importances, error, subject)
    unused = tuple(name for j, name in enumerate(rows.names) if j not in subject.used)
    several = any(len(features) > 1 for features in subject.features.values())
    left_out = len(subject.used) - len(tried)
    return Drivers(importances, error, len(rows), left_out, unused, several, effects, sentences)


def _error(subject: Subject, rows: Rows, truth: Vector) -> float:
    predicted = subject.predict(rows)
    return float(np.mean(predicted != truth if subject.task == "classify" else np.abs(predicted - truth)))


def _tried(subject: Subject, own: Vector | None) -> list[int]:
    """Columns to shuffle: all, or those of the largest share in the model where there are too many."""
    if len(subject.used) <= _MOST_PREDICTIONS:
        return list(subject.used)
    score = own if own is not None else -np.arange(len(subject.used), dtype=float)
    return [subject.used[k] for k in np.argsort(-score, kind="stable")[: _MOST_PREDICTIONS // _REPEATS]]


def own_importances(subject: Subject) -> Vector | None:
    """``feature_importances_`` of the estimator, added up over the features that each used column becomes."""
    shares = getattr(subject.core, "feature_importances_", None)
    if shares is None:
        return None
    shares = to_numpy(shares).astype(float)
    return np.array([float(shares[features].sum()) for features in subject.features.values()])


def partial_effect(subject: Subject, j: int, rng: np.random.Generator) -> Effect:
    """The mean answer if column ``j`` had one of its values in all rows, for several of its values."""
    rows = subject.rows
    n = len(rows)
    some = np.arange(n) if n <= _MOST_EFFECT_ROWS else np.sort(rng.choice(n, _MOST_EFFECT_ROWS, replace=False))
    base = rows.take(some)
    places, values, is_number = _values(rows, j)
    answers = [_answers(subject, base.replaced(j, rows.cells(j, np.full(len(base), place)))) for place in places]
    table = np.array(answers)
    if subject.task == "regress":
        names, shown = [subject.target or "prediction"], [0]
    elif len(subject.classes) == 2:
        counts = [int((subject.truth == c).sum()) for c in subject.classes]
        names, shown = [cell(c) for c in subject.classes], [0 if counts[0] < counts[1] else 1]
    else:
        names = [cell(c) for c in subject.classes]
        moving = np.argsort(-(table.max(axis=0) - table.min(axis=0)), kind="stable")[:_MOST_CURVES]
        shown = sorted(int(k) for k in moving)
    curves = tuple((names[k], tuple(float(v) for v in table[:, k])) for k in shown)
    return Effect(rows.names[j], values, is_number, curves)


def _values(rows: Rows, j: int) -> tuple[Vector, tuple[Any, ...], bool]:
    """Rows that hold some values of a column, in order, and the values."""
    numbers = rows.numbers(j)
    if numbers is not None and np.isfinite(numbers).any():
        known = np.flatnonzero(np.isfinite(numbers))
        order = known[np.argsort(numbers[known], kind="stable")]
        different = np.unique(numbers[known])
        if len(different) <= _FEW_NUMBERS:
            places = np.array([order[np.searchsorted(numbers[order], v)] for v in different])
            return places, tuple(float(v) for v in different), len(different) > 2
        # the ends of a long tail would squeeze the rest of the picture
        marks = np.linspace(0.02, 0.98, _MOST_VALUES) * (len(order) - 1)
        places = order[np.unique(marks.round().astype(int))]
        _, first = np.unique(numbers[places], return_index=True)
        places = places[first]
        return places, tuple(float(v) for v in numbers[places]), True
    counts: dict[str, int] = {}
    first_of: dict[str, int] = {}
    for place, value in enumerate(rows.values(j)):
        if not is_missing(value):
            counts[str(value)] = counts.get(str(value), 0) + 1
            first_of.setdefault(str(value), place)
    names = sorted(counts, key=lambda name: (-counts[name], name))[:_MOST_LEVELS]
    return np.array([first_of[name] for name in names]), tuple(names), False


def _answers(subject: Subject, rows: Rows) -> Vector:
    """Mean prediction, or mean probability per class (share of the answers, where the model has none)."""
    if subject.task == "regress":
        return np.array([float(subject.predict(rows).mean())])
    probabilities = subject.probabilities(rows)
    if probabilities is None:
        predicted = subject.predict(rows)
        return np.array([float(np.mean(predicted == c)) for c in subject.classes])
    return np.asarray(probabilities.mean(axis=0), dtype=float)


def _sentences(importances: tuple[Driver, ...], error: float, subject: Subject) -> tuple[str, ...]:
    useful = [d for d in importances if d.rise > max(2 * d.spread, 0.0) and d.rise > 0]
    if not useful:
        return ("No column matters clearly: shuffling any one of them changes the error by no more than chance does.",)
    first = useful[0]
    if subject.task == "classify":
        change = f"{100 * error:.1f} to {100 * (error + first.rise):.1f} wrong answers in 100"
    else:
        change = f"{number(error)} to {number(error + first.rise)}"
    sentences = [f"{first.column} matters most: with its cells shuffled, the error grows from {change}."]
    if len(useful) > 1:
        verb = "comes" if len(useful) == 2 else "come"
        sentences.append(f"Then {verb} " + ", ".join(d.column for d in useful[1:4]) + ".")
    idle = len(importances) - len(useful)
    if idle:
        sentences.append(f"{idle} of {len(importances)} columns make no difference that can be told from chance.")
    return tuple(sentences)
