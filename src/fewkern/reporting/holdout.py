"""Predictions for held-out rows: which rows these are, and which model predicts them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.base import BudgetWarning
from fewkern.core.gaussians import GaussianExpansion
from fewkern.reporting.evaluation import EACH_ROW, Counted, losses
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# A fifth of the rows is held out, as the command line does.
_HELD_OUT = 0.2
# More rows make a report slower, and no number in it more certain.
_MOST_ROWS = 20_000
# Residuals of a fit with a free constant add up to zero, up to rounding; those of other rows do not.
_ROUNDING = 1e-7


@dataclass(frozen=True)
class ReportSettings:
    """Options of a report, and what its footer states.

    Parameters
    ----------
    rows : {"auto", "fitted", "new"}, default "auto"
        Whether the model was fitted to the rows of the report. With "fitted", the error is measured on the rows that
        the model held out, as a TableModel does, or else with a copy fitted to four fifths of the rows. With "new", it
        is measured directly. "auto" finds out.
    compare : bool, default True
        Also fit an SVC or SVR, with a small grid search, for its size and speed.
    random_state : int, default 0
        Seed of all random choices of the report.
    source : str or None, default None
        Name of the file that the table came from.
    command : str or None, default None
        The command that made the report.

    Examples
    --------
    >>> from fewkern import ReportSettings
    >>> ReportSettings(rows="new", compare=False).random_state
    0
    """

    rows: str = "auto"
    compare: bool = True
    random_state: int = 0
    source: str | None = None
    command: str | None = None

    def __post_init__(self) -> None:
        if self.rows not in ("auto", "fitted", "new"):
            raise ValueError(f"ReportSettings: rows must be 'auto', 'fitted' or 'new', got {self.rows!r}.")


@dataclass(frozen=True)
class Predictions:
    """True and predicted targets of rows, and how the rows relate to the fit."""

    positions: Array
    """Rows of the table."""
    truth: Array
    predicted: Array
    probabilities: Array | None
    how: str
    """"held out" (the model's own record), "refitted" (by a copy), "new" or "fitted" (optimistic)."""
    train: Array
    """Rows that a baseline may be fitted to; empty if there are none."""
    classes: Array | None = None
    """Labels of the classes, in the order of the probabilities; None for a regression."""
    counted: Counted = EACH_ROW
    """Weights and groups of the rows, where the model was fitted with any."""
    seen: bool = True
    """Whether the model of the report was fitted to these rows, though the one that predicted them was not."""

    @property
    def rare(self) -> tuple[Any, Array, Array] | None:
        """The rarer of two classes, which rows have it, and its probabilities, where there are such."""
        k = None if self.classes is None else rarer(self.truth, self.classes)
        if k is None or self.classes is None or self.probabilities is None:
            return None
        return self.classes[k], self.truth == self.classes[k], self.probabilities[:, k]

    @property
    def losses(self) -> Array:
        """Whether each prediction is wrong, or by how much it is off."""
        return losses(self.truth, self.predicted, self.classes is not None)


def rarer(truth: Any, classes: Array) -> int | None:
    """The index of the class of interest: the rarer of two, of equal ones the second; None unless there are two."""
    if len(classes) != 2:
        return None
    first, second = ((truth == name).sum() for name in classes)
    return 0 if first < second else 1


def relation(how: str) -> str:
    """How rows relate to the fit, for a sentence about them."""
    return {"new": "of this table", "fitted": "it was fitted to"}.get(how, "it had not seen")


def predict_held_out(subject: Subject, settings: ReportSettings) -> Predictions:
    """Predictions for rows that were held out: by the model itself, by a copy fitted without them, or new rows."""
    record = _record(subject)
    if record is not None and settings.rows != "new":
        return record
    model, train, test, how = try_out(subject, settings)
    samples = model.samples[test]
    classes, probabilities = None, None
    if subject.task == "classify":
        classes, probabilities = subject.classes, model.probabilities(samples)
    assert subject.truth is not None
    predicted = model.predict(samples)
    truth = subject.truth[test]
    return Predictions(test, truth, predicted, probabilities, how, train, classes, seen=how != "new")


def try_out(subject: Subject, settings: ReportSettings) -> tuple[Subject, Array, Array, str]:
    """A model, the rows that it was fitted to, rows to try it on, and how these relate to the fit.

    The model itself and new rows (then the first rows are not known, and empty), or a copy fitted to a part of the
    rows, and the others.
    """
    fitted = settings.rows == "fitted" or (settings.rows == "auto" and was_fitted_to(subject))
    split = _split(subject, settings.random_state) if fitted else None
    if split is not None:
        train, test = (np.sort(part) for part in split)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # said of the model itself
            try:
                return subject.refitted(train), train, test[:_MOST_ROWS], "refitted"
            except ValueError:
                pass  # a part of the rows may lack what the model needs, such as two classes
    rng = np.random.default_rng(settings.random_state)
    some = sample_rows(len(subject.rows), _MOST_ROWS, rng)
    return subject, np.arange(0), some, "fitted" if fitted else "new"


def _record(subject: Subject) -> Predictions | None:
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
    train = np.setdiff1d(np.arange(len(subject.truth)), positions)
    # from many rows on, a table model is not fitted again to all of them
    seen = getattr(getattr(subject.model, "facts_", None), "rows", len(truth) + len(train)) > len(train)
    proba = None if record.probabilities is None else np.asarray(record.probabilities)
    classes = subject.classes if subject.task == "classify" else None
    counted = Counted(getattr(record, "weights", None), getattr(record, "groups", None))
    return Predictions(positions, truth, np.asarray(record.predicted), proba, "held out", train, classes, counted, seen)


def was_fitted_to(subject: Subject) -> bool:
    """Whether the model was fitted to these rows, as far as can be detected.

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
        return True  # unknown; a copy that is fitted to a part of the rows is honest in both cases
    assert subject.truth is not None
    values = to_numpy(expansion(subject.samples))
    if subject.task == "regress":
        targets = subject.truth[:, None]
    else:
        targets = (subject.truth[:, None] == subject.classes[None, :]).astype(float)
        targets = targets if values.shape[1] > 1 else 2 * targets[:, 1:] - 1
    residuals = targets - values
    sizes = np.maximum(np.abs(residuals).mean(axis=0), 1e-300)
    return bool(np.all(np.abs(residuals.mean(axis=0)) <= _ROUNDING * sizes))


def _split(subject: Subject, seed: int) -> tuple[Array, Array] | None:
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
