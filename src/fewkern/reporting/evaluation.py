"""Predictions for rows that a model was not fitted to: those it held out itself, those of a copy, or new ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.base import BudgetWarning
from fewkern.core.gaussians import GaussianExpansion
from fewkern.reporting.formatting import cell
from fewkern.reporting.judgement import EACH_ROW, Counted, Judgement, rarer
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

# A fifth of the rows is held out, as the command line does; fewer rows than this cannot spare any.
_HELD_OUT, _LEAST_ROWS = 0.2, 5
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


def losses(truth: Array, predicted: Array, classify: bool) -> Array:
    """Whether each prediction is wrong, or by how much it is off; the mean is an error rate or the MAE."""
    return truth != predicted if classify else np.abs(np.asarray(truth - predicted, dtype=float))


@dataclass(frozen=True)
class Predictions:
    """True and predicted targets of rows, and how the rows relate to the fit."""

    positions: Array
    """Rows of the table."""
    truth: Array
    predicted: Array
    probabilities: Array
    """Probabilities of every class; None where the model states none."""
    how: str
    """"held out" (the model's own record), "refitted" (by a copy), "new" or "fitted" (optimistic)."""
    train: Array
    """Rows that a baseline may be fitted to; empty if there are none."""
    classes: Array = None
    """Labels of the classes, in the order of the probabilities; None for a regression."""
    counted: Counted = EACH_ROW
    """Weights and groups of the rows, where the model was fitted with any."""
    seen: bool = True
    """Whether the model of the report was fitted to these rows, though the one that predicted them was not."""
    judgement: Judgement | None = None
    """That of the model itself, where it held these rows out."""

    @property
    def rare(self) -> tuple[Any, Array, Array] | None:
        """The rarer of two classes, which rows have it, and its probabilities, where they exist."""
        if self.classes is None or self.probabilities is None or (k := rarer(self.truth, self.classes)) is None:
            return None
        return self.classes[k], self.truth == self.classes[k], self.probabilities[:, k]

    @property
    def losses(self) -> Array:
        """Whether each prediction is wrong, or by how much it is off."""
        return losses(self.truth, self.predicted, self.classes is not None)

    def cell(self, i: int) -> str:
        """Prediction ``i`` as text; a number to four digits."""
        value = self.predicted[i]
        return cell(value if self.classes is not None else float(f"{value:.4g}"))


def relation(how: str) -> str:
    """How rows relate to the fit, for a sentence about them."""
    return {"new": "of this table", "fitted": "it was fitted to"}.get(how, "it had not seen")


def predict_held_out(subject: Subject, settings: ReportSettings) -> Predictions:
    """Predictions for rows that were held out: by the model itself, by a copy fitted without them, or new rows."""
    record = _record(subject)
    if record is not None and settings.rows != "new":
        return record
    model, train, test, how = try_out(subject, settings)
    samples, classify = model.samples[test], subject.task == "classify"
    return Predictions(
        test, subject.truth[test], model.predict(samples), model.probabilities(samples) if classify else None, how,
        train, subject.classes if classify else None, seen=how != "new",
    )  # fmt: skip


def try_out(subject: Subject, settings: ReportSettings) -> tuple[Subject, Array, Array, str]:
    """A model, the rows that it was fitted to, rows to try it on, and how these relate to the fit.

    The model itself and new rows (then the first rows are not known, and empty), or a copy fitted to a part of the
    rows, and the others.
    """
    n, seed = len(subject.rows), settings.random_state
    fitted = settings.rows == "fitted" or (settings.rows == "auto" and was_fitted_to(subject))
    if fitted and n >= _LEAST_ROWS:
        parts = train_test_split(np.arange(n), test_size=_HELD_OUT, random_state=seed, stratify=_strata(subject))
        train, test = map(np.sort, parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)  # said of the model itself
            try:
                return subject.refitted(train), train, test[:_MOST_ROWS], "refitted"
            except ValueError:
                pass  # a part of the rows may lack what the model needs, such as two classes
    some = sample_rows(n, _MOST_ROWS, np.random.default_rng(seed))
    return subject, np.arange(0), some, "fitted" if fitted else "new"


def _strata(subject: Subject) -> Array | None:
    """The classes, where there are enough rows for all of them in both parts."""
    if subject.task != "classify":
        return None
    names = subject.truth.astype(str)
    counts = np.unique(names, return_counts=True)[1]
    return names if counts.min() >= 2 and round(_HELD_OUT * len(names)) >= len(counts) else None


def _record(subject: Subject) -> Predictions | None:
    """The rows that the model itself held out, if these are rows of this table."""
    record = getattr(subject.model, "held_out_", None)
    if record is None:
        return None
    positions = np.searchsorted(subject.places, record.rows)
    if not len(positions) or positions.max() >= len(subject.truth):
        return None
    truth = subject.truth[positions]
    if not np.array_equal(truth.astype(str), record.truth.astype(truth.dtype).astype(str)):
        return None  # another table
    train = np.setdiff1d(np.arange(len(subject.truth)), positions)
    return Predictions(
        positions, truth, record.predicted, record.probabilities, "held out", train,
        subject.classes if subject.task == "classify" else None, record.counted,
        # from many rows on, a table model is not fitted again to all of them
        seen=subject.model.facts_.rows > len(train), judgement=subject.model.judgement_,
    )  # fmt: skip


def was_fitted_to(subject: Subject) -> bool:
    """Whether the model was fitted to these rows, as far as can be detected.

    Samples that the model holds are found again among the rows. Where it holds none, the residuals of a least-squares
    fit with a free constant add up to zero on the rows of the fit, and on no others. Other models do not show it; they
    count as fitted to the rows.
    """
    expansion, held = subject.core.expansion_, subject.held_rows
    if held:
        if None not in held:
            return True
        if isinstance(expansion, GaussianExpansion) or getattr(expansion, "indices", None) is not None:
            return False  # they are rows of another table
    if subject.task in ("reduce", "density") or getattr(subject.core, "loss_", "squared") != "squared":
        return True  # unknown; a copy that is fitted to a part of the rows is honest in both cases
    values = to_numpy(expansion(subject.samples))
    if subject.task == "regress":
        targets = subject.truth[:, None]
    else:
        targets = (subject.truth[:, None] == subject.classes[None, :]).astype(float)
        targets = targets if values.shape[1] > 1 else 2 * targets[:, 1:] - 1
    residuals = targets - values
    sizes = np.maximum(np.abs(residuals).mean(axis=0), 1e-300)
    return bool(np.all(np.abs(residuals.mean(axis=0)) <= _ROUNDING * sizes))
