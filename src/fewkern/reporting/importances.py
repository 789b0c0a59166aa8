"""Importances of columns by shuffling, and partial dependence on the most important ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.reporting.evaluation import losses
from fewkern.reporting.formatting import cell, is_missing
from fewkern.reporting.judgement import rarer
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# Rows that are predicted once per shuffle; more would make the numbers hardly more precise.
_MOST_ROWS, _MOST_DEPENDENCE_ROWS = 1000, 200
# Predictions of all these rows that importances may cost: five per column, fewer where columns are many.
_MOST_PREDICTIONS = 250
_REPEATS = 5
_MOST_SHOWN, _MOST_VALUES, _MOST_LEVELS, _MOST_CURVES = 3, 20, 12, 5
# A column with at most this many different numbers is drawn as levels, not as a line.
_FEW_NUMBERS = 6


@dataclass(frozen=True)
class ColumnImportance:
    """Importance of one column of the table."""

    column: str
    increase: float
    """How much larger the error is when the cells of the column are shuffled."""
    std: float
    """Standard deviation of the increase over the shuffles."""
    share: float | None
    """Share of the variation of the fitted function (``feature_importances_``), where the model has it."""


@dataclass(frozen=True)
class PartialDependence:
    """The mean prediction for some rows, if all of them had the same value in one column."""

    column: str
    values: tuple[Any, ...]
    """Numbers or dates in increasing order, or categories."""
    kind: str
    """"number" and "date" are drawn as a line, "category" is not."""
    curves: tuple[tuple[str, tuple[float, ...]], ...]
    """Name and mean predictions: of the target, or of the probability of a class."""


@dataclass(frozen=True)
class Importances:
    """Which columns matter to a model, and how."""

    columns: tuple[ColumnImportance, ...]
    """The most important column first."""
    error: float
    """Error on the same rows, nothing shuffled: error rate, or mean absolute error."""
    rows: int
    left_out: int
    """Columns that were not shuffled, because there are too many."""
    unused: tuple[str, ...]
    """Columns of the table that the model does not use, or that are the same in all rows."""
    several: bool
    """Whether a column becomes several features, as categories do."""
    dependence: tuple[PartialDependence, ...]

    @property
    def useful(self) -> tuple[ColumnImportance, ...]:
        """Columns whose shuffling raises the error by more than chance would."""
        return tuple(column for column in self.columns if column.increase > max(2 * column.std, 0.0))


def importances(subject: Subject, seed: int) -> Importances:
    """Permutation importances of columns, those of the model itself, and partial dependence on the first three."""
    rng = np.random.default_rng(seed)
    some = sample_rows(len(subject.rows), _MOST_ROWS, rng)
    shares = _shares(subject)
    tried = _tried(subject, shares)
    error = _error(subject, some, subject.samples[some])
    repeats = max(1, min(_REPEATS, _MOST_PREDICTIONS // max(len(tried), 1)))
    found = []
    for j in tried:
        shuffled = [subject.with_cells(some, j, rng.permutation(some)) for _ in range(repeats)]
        rises = [_error(subject, some, samples) - error for samples in shuffled]
        name = subject.rows.names[j]
        found.append((j, ColumnImportance(name, float(np.mean(rises)), float(np.std(rises)), shares.get(j))))
    found.sort(key=lambda one: (-one[1].increase, -(one[1].share or 0.0)))
    columns = tuple(column for _, column in found)
    first = [j for j, column in found if column.increase > 0][:_MOST_SHOWN]
    return Importances(
        columns, error, len(some), len(subject.used) - len(tried),
        tuple(name for j, name in enumerate(subject.rows.names) if j not in subject.used),
        any(len(features) > 1 for features in subject.features.values()),
        tuple(partial_dependence(subject, j, rng) for j in first),
    )  # fmt: skip


def _error(subject: Subject, positions: Array, samples: Array) -> float:
    """Error rate or mean absolute error on some rows, with the given features."""
    return float(losses(subject.truth[positions], subject.predict(samples), subject.task == "classify").mean())


def _shares(subject: Subject) -> dict[int, float]:
    """``feature_importances_``, added up over the features of every used column; empty if the model has none."""
    shares = getattr(subject.core, "feature_importances_", None)
    if shares is None:
        return {}
    return {j: float(to_numpy(shares)[features].sum()) for j, features in subject.features.items()}


def _tried(subject: Subject, shares: dict[int, float]) -> list[int]:
    """Columns to shuffle: all, or where there are too many, those with the largest share in the model."""
    if len(subject.used) <= _MOST_PREDICTIONS:
        return list(subject.used)
    return sorted(subject.used, key=lambda j: -shares.get(j, 0.0))[: _MOST_PREDICTIONS // _REPEATS]


def partial_dependence(subject: Subject, j: int, rng: np.random.Generator) -> PartialDependence:
    """The mean prediction if column ``j`` had one of its values in all rows, for several of its values."""
    some = sample_rows(len(subject.rows), _MOST_DEPENDENCE_ROWS, rng)
    places, values, kind = _values(subject, j)
    table = np.array([_means(subject, subject.with_cells(some, j, np.full(len(some), place))) for place in places])
    if subject.task == "regress":
        names, shown = [subject.target or "prediction"], [0]
    else:
        names, rare = [cell(c) for c in subject.classes], rarer(subject.truth, subject.classes)
        moving = np.argsort(-np.ptp(table, axis=0), kind="stable")[:_MOST_CURVES]
        shown = sorted(moving.tolist()) if rare is None else [rare]
    curves = tuple((names[k], tuple(table[:, k].tolist())) for k in shown)
    return PartialDependence(subject.rows.names[j], values, kind, curves)


def _values(subject: Subject, j: int) -> tuple[Array, tuple[Any, ...], str]:
    """Rows that hold some values of a column, in order, the values, and their kind."""
    read = subject.read(j)
    if read.dtype.kind in "fM" and np.isfinite(read).any():
        kind = "date" if read.dtype.kind == "M" else "number"
        known = np.flatnonzero(np.isfinite(read))
        places = known[np.unique(read[known], return_index=True)[1]]
        if len(places) <= _FEW_NUMBERS:
            return places, tuple(read[places].tolist()), kind if len(places) > 2 else "category"
        # the ends of a long tail would squeeze the rest of the figure
        order = known[np.argsort(read[known], kind="stable")]
        places = order[(np.linspace(0.02, 0.98, _MOST_VALUES) * (len(order) - 1)).round().astype(int)]
        places = places[np.unique(read[places], return_index=True)[1]]
        return places, tuple(read[places].tolist()), kind
    cells = [None if is_missing(value) else str(value) for value in subject.rows.values(j)]
    counts = Counter(value for value in cells if value is not None)
    names = sorted(counts, key=lambda name: (-counts[name], name))[:_MOST_LEVELS]
    return np.array([cells.index(name) for name in names]), tuple(names), "category"


def _means(subject: Subject, samples: Array) -> Array:
    """Mean prediction, or mean probability per class (share of the predictions, where the model has none)."""
    if subject.task == "regress":
        return np.atleast_1d(subject.predict(samples).mean())
    probabilities = subject.probabilities(samples)
    if probabilities is None:
        probabilities = subject.predict(samples)[:, None] == subject.classes
    return np.asarray(probabilities.mean(axis=0), dtype=float)
