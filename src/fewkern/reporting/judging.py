"""Predictions for rows that the model has not seen, and what simple rules predict for the same rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, train_test_split

from fewkern.arrays.namespace import to_numpy
from fewkern.base import BudgetWarning
from fewkern.core.gaussians import GaussianExpansion
from fewkern.reporting.settings import ReportSettings
from fewkern.reporting.simple import linear_predictions
from fewkern.reporting.subject import Subject

__all__ = ["Baselines", "Judged", "baselines", "Trial", "judge", "try_out", "was_fitted_to"]

Vector = np.ndarray[Any, Any]
# A fifth of the rows is held out, as the command line does.
_HELD_OUT = 0.2
# More rows than these make a report slower, and no number in it more certain.
_MOST_ROWS = 20_000
# A linear model learns nothing more from more rows than these.
_MOST_LINEAR = 5_000
# Residuals of a fit with a free constant add up to zero, up to rounding; those of other rows do not.
_ROUNDING = 1e-7


@dataclass(frozen=True)
class Judged:
    """True and predicted targets of rows, and how honest the comparison is."""

    positions: Vector
    """Rows of the table."""
    truth: Vector
    predicted: Vector
    probabilities: Vector | None
    how: str
    """"held out" (the model's own record), "refitted" (by a copy), "new" or "fitted" (not honest)."""
    others: Vector
    """Rows that a baseline may learn from; empty if there are none."""

    @property
    def rows(self) -> str:
        """These rows in words, for a sentence."""
        n = f"{len(self.truth):,}"
        return {
            "held out": f"{n} rows that it had not seen",
            "refitted": f"{n} rows that it had not seen",
            "new": f"the {n} rows of this table",
            "fitted": f"the {n} rows that it was fitted to",
        }[self.how]


def judge(subject: Subject, settings: ReportSettings) -> Judged:
    """Predictions for rows that were held out: by the model itself, by a copy fitted without them, or new rows."""
    record = _record(subject)
    if record is not None and settings.rows != "new":
        return record
    trial = try_out(subject, settings)
    rows = subject.rows.take(trial.test)
    proba = trial.subject.probabilities(rows) if subject.task == "classify" else None
    assert subject.truth is not None
    truth = subject.truth[trial.test]
    return Judged(trial.test, truth, trial.subject.predict(rows), proba, trial.how, trial.train)


@dataclass(frozen=True)
class Trial:
    """A model to be tried on rows, and how honest that is."""

    subject: Subject
    """The model itself, or a copy that was fitted without the rows of the trial."""
    train: Vector
    """Rows that the copy was fitted to; empty for the model itself."""
    test: Vector
    how: str
    """As in :class:`Judged`."""


def try_out(subject: Subject, settings: ReportSettings) -> Trial:
    """The model and rows to try it on: new rows, or a part of its own rows and a copy fitted to the others."""
    n = len(subject.rows)
    rng = np.random.default_rng(settings.random_state)
    fitted = settings.rows == "fitted" or (settings.rows == "auto" and was_fitted_to(subject))
    split = _split(subject, settings.random_state) if fitted else None
    if split is not None:
        train, test = (np.sort(part) for part in split)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # said of the model itself
            try:
                return Trial(subject.refitted(train), train, test[:_MOST_ROWS], "refitted")
            except ValueError:
                pass  # a part of the rows may lack what the model needs, such as two classes
    some = np.arange(n) if n <= _MOST_ROWS else np.sort(rng.choice(n, _MOST_ROWS, replace=False))
    return Trial(subject, np.arange(0), some, "fitted" if fitted else "new")


def _record(subject: Subject) -> Judged | None:
    """The rows that the model itself held out, if these are rows of this table."""
    record = getattr(subject.model, "held_out_", None)
    if record is None or subject.truth is None or subject.task not in ("classify", "regress"):
        return None
    positions = np.searchsorted(subject.places, np.asarray(record.rows))
    if not len(positions) or positions.max() >= len(subject.truth):
        return None
    truth = subject.truth[positions]
    if not np.array_equal(truth.astype(str), np.asarray(record.truth).astype(truth.dtype).astype(str)):
        return None  # another table
    others = np.setdiff1d(np.arange(len(subject.truth)), positions)
    proba = None if record.probabilities is None else np.asarray(record.probabilities)
    return Judged(positions, truth, np.asarray(record.predicted), proba, "held out", others)


def was_fitted_to(subject: Subject) -> bool:
    """Whether the model was fitted to these rows, as far as it shows.

    Samples that the model holds are found again among the rows. Where it holds none, the residuals of a least-squares
    fit with a free constant add up to zero on the rows of the fit, and on no others. Other models do not show it; they
    count as fitted to the rows.
    """
    expansion, (held, rows) = subject.core.expansion_, subject.held_samples
    if len(held):
        known = {row.tobytes() for row in rows + 0.0}  # no negative zeros
        if all(row.tobytes() in known for row in held + 0.0):
            return True
        if isinstance(expansion, GaussianExpansion) or getattr(expansion, "indices", None) is not None:
            return False  # they are rows of another table
    if subject.task in ("reduce", "density") or getattr(subject.core, "loss_", "squared") != "squared":
        return True  # nobody can tell; a copy that is fitted to a part of the rows is honest in both cases
    assert subject.truth is not None
    values = to_numpy(expansion(subject.samples))
    if subject.task == "regress":
        targets = subject.truth[:, None]
    else:
        targets = (subject.truth[:, None] == subject.classes[None, :]).astype(float)
        targets = targets if values.shape[1] > 1 else 2 * targets[:, 1:] - 1
    residuals = targets - values
    return bool(
        np.all(np.abs(residuals.mean(axis=0)) <= _ROUNDING * np.maximum(np.abs(residuals).mean(axis=0), 1e-300))
    )


def _split(subject: Subject, seed: int) -> tuple[Vector, Vector] | None:
    """Rows to fit to and rows to hold out, with all classes in both parts where there are enough."""
    n = len(subject.rows)
    if n < 5:
        return None
    stratify = None
    if subject.task == "classify" and subject.truth is not None:
        counts = np.unique(subject.truth.astype(str), return_counts=True)[1]
        if counts.min() >= 2 and round(_HELD_OUT * n) >= len(counts):
            stratify = subject.truth.astype(str)
    train, test = train_test_split(np.arange(n), test_size=_HELD_OUT, random_state=seed, stratify=stratify)
    return train, test


@dataclass(frozen=True)
class Baselines:
    """What simple rules predict for the rows that a model was judged on."""

    constant: Vector
    """The most frequent class, or the mean."""
    linear: Vector | None
    """A linear model on the same rows; None where it cannot be fitted."""


def baselines(subject: Subject, judged: Judged, seed: int) -> Baselines:
    """Predictions of the majority or mean, and of a linear model, fitted without the rows that are judged."""
    rng = np.random.default_rng(seed)
    X, y = subject.samples, subject.truth
    assert y is not None
    folds = [(judged.others, judged.positions)] if len(judged.others) else _folds(judged.positions, seed)
    constant = np.empty(len(judged.truth), dtype=judged.truth.dtype)
    linear: Vector | None = np.empty(len(judged.truth), dtype=judged.truth.dtype)
    place = {int(position): k for k, position in enumerate(judged.positions)}
    for train, test in folds:
        at = [place[int(position)] for position in test]
        constant[at] = _constant(y[train], subject.task)
        some = train if len(train) <= _MOST_LINEAR else rng.choice(train, _MOST_LINEAR, replace=False)
        found = linear_predictions(X[some], y[some], X[test], subject.task)
        if found is None or linear is None:
            linear = None
        else:
            linear[at] = found
    return Baselines(constant, linear)


def _folds(positions: Vector, seed: int) -> list[tuple[Vector, Vector]]:
    """No other rows are there: each fifth of the rows is predicted from the other four."""
    if len(positions) < 2:
        return [(positions, positions)]
    parts = KFold(min(5, len(positions)), shuffle=True, random_state=seed).split(positions)
    return [(positions[train], positions[test]) for train, test in parts]


def _constant(y: Vector, task: str) -> Any:
    if task == "regress":
        return float(y.mean())
    labels, counts = np.unique(y, return_counts=True)
    return labels[np.argmax(counts)]
