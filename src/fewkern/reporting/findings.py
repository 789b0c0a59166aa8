"""All that a report says of a model, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.base import path_of
from fewkern.reporting.drivers import Drivers, drivers
from fewkern.reporting.examples import Example, examples
from fewkern.reporting.judging import Judged, baselines, judge
from fewkern.reporting.kept import Kept, kept
from fewkern.reporting.listing import Listing, listing
from fewkern.reporting.mistakes import (
    Calibration,
    Confusion,
    Curves,
    Residuals,
    Threshold,
    WorstRow,
    calibration,
    confusion,
    curves,
    residuals,
    thresholds,
    worst_rows,
)
from fewkern.reporting.plane import Plane, plane
from fewkern.reporting.quality import ClassQuality, RegressionQuality, classify_quality, regress_quality
from fewkern.reporting.settings import ReportSettings
from fewkern.reporting.shapes import DensityShape, Reduction, density_shape, reduction
from fewkern.reporting.subject import Subject
from fewkern.reporting.trust import Trust, trust
from fewkern.reporting.usage import Usage, usage
from fewkern.reporting.words import number, percent

__all__ = ["Findings", "Mistakes", "find"]


@dataclass(frozen=True)
class Mistakes:
    """Where a model errs; what does not apply to it is None or empty."""

    confusion: Confusion | None = None
    calibration: Calibration | None = None
    thresholds: tuple[Threshold, ...] = ()
    curves: Curves | None = None
    residuals: Residuals | None = None
    worst: tuple[WorstRow, ...] = ()
    worst_cells: Listing | None = None


@dataclass(frozen=True)
class Findings:
    """Everything that the page shows."""

    task: str
    target: str
    """Name of the target, or words for it."""
    model: str
    """Name of the estimator."""
    rows: int
    columns: int
    classes: tuple[object, ...]
    quality: ClassQuality | RegressionQuality | None
    judged: Judged | None
    drivers: Drivers | None
    mistakes: Mistakes
    reduction: Reduction | None
    density: DensityShape | None
    labels: object
    """Targets of all rows, for the colors of a picture of components."""
    kept: Kept | None
    examples: tuple[Example, ...]
    plane: Plane | None
    trust: Trust
    usage: Usage
    path: Any
    """The estimator, if it compared models of several sizes: a picture can be drawn of that."""
    remarks: tuple[str, ...]

    @property
    def headline(self) -> tuple[str, ...]:
        """The first sentences of the report."""
        found = self.quality or self.reduction or self.density
        return found.sentences if found is not None else ()


def find(subject: Subject, settings: ReportSettings) -> Findings:
    """Look at a model and its rows from all sides."""
    seed = settings.random_state
    supervised = subject.task in ("classify", "regress")
    judged = judge(subject, settings) if supervised else None
    target = subject.target or ("class" if subject.task == "classify" else "the target")
    names = subject.feature_names
    quality: ClassQuality | RegressionQuality | None = None
    mistakes, driving, reduced, shape = Mistakes(), None, None, None
    order: tuple[str, ...] = ()
    if judged is not None:
        rules = baselines(subject, judged, seed)
        driving = drivers(subject, seed)
        order = tuple(driver.column for driver in driving.importances)
        if subject.task == "classify":
            quality = classify_quality(judged, rules, subject.classes, target)
            mistakes = _class_mistakes(subject, judged, quality, order)
        else:
            quality = regress_quality(judged, rules, target)
            mistakes = _number_mistakes(subject, judged, target, order)
    elif subject.task == "reduce":
        reduced = reduction(subject, names, settings)
        mistakes = Mistakes(worst_cells=listing(subject, [i for i, _ in reduced.worst], order))
    else:
        shape = density_shape(subject, names, settings)
        mistakes = Mistakes(worst_cells=listing(subject, [i for i, _ in shape.lowest], order))
    return Findings(
        task=subject.task,
        target=target,
        model=type(subject.core).__name__,
        rows=len(subject.rows),
        columns=len(subject.used),
        classes=tuple(subject.classes.tolist()) if subject.task == "classify" else (),
        quality=quality,
        judged=judged,
        drivers=driving,
        mistakes=mistakes,
        reduction=reduced,
        density=shape,
        labels=subject.truth,
        kept=kept(subject, order, seed),
        examples=() if judged is None else examples(subject, judged),
        plane=plane(subject, seed),
        trust=trust(subject, judged),
        usage=usage(subject, judged, settings.compare, seed),
        path=_path(subject),
        remarks=_remarks(subject, judged or reduced or shape),
    )


def _class_mistakes(subject: Subject, judged: Judged, quality: ClassQuality, order: tuple[str, ...]) -> Mistakes:
    lines, classes = quality.classes, subject.classes
    worst = worst_rows(subject, judged)
    return Mistakes(
        confusion=confusion(judged, classes),
        calibration=calibration(judged, lines, classes),
        thresholds=thresholds(judged, lines, classes),
        curves=curves(judged, lines, classes),
        worst=worst,
        worst_cells=listing(subject, [row.position for row in worst], order),
    )


def _number_mistakes(subject: Subject, judged: Judged, target: str, order: tuple[str, ...]) -> Mistakes:
    worst = worst_rows(subject, judged)
    return Mistakes(
        residuals=residuals(judged, target),
        worst=worst,
        worst_cells=listing(subject, [row.position for row in worst], order),
    )


def _path(subject: Subject) -> Any:
    trace = path_of(subject.core)
    if getattr(subject.core, "refined_", False):
        return None  # the number of vectors was chosen otherwise
    compared = trace is not None and trace.error.ndim and max(trace.error.shape) > 1
    return subject.core if compared and subject.task != "density" else None


_HOW = {
    "held out": (
        "Errors were measured by a model that was fitted to the other rows; the model of this report is fitted to all "
        "rows."
    ),
    "refitted": (
        "The rows given are those that the model was fitted to. How good it is was measured by a copy, fitted to four "
        "fifths of the rows, on the remaining fifth."
    ),
    "new": (
        "The rows given were taken for rows that the model was not fitted to. If it was fitted to them, it looks "
        'better than it is: say so with ReportSettings(rows="fitted").'
    ),
    "fitted": (
        "There were too few rows to hold any out: how good it is was measured on the rows of the fit, where it looks "
        "better than it is."
    ),
}


def _remarks(subject: Subject, trial: Judged | Reduction | DensityShape | None) -> tuple[str, ...]:
    """What one should know about how the numbers came about, and the notes of the model."""
    remarks = [] if trial is None else [_HOW[trial.how]]
    if isinstance(trial, Judged) and trial.how == "held out":
        fitted = getattr(subject.model, "rows_", subject.places)
        if not np.isin(subject.places[trial.positions], fitted).any():
            remarks = ["Errors were measured on rows that were held out; the model was not fitted to them."]
    stated = getattr(subject.core, "held_out_error_", None)
    if isinstance(trial, Judged) and stated is not None:
        value = float(stated)
        if subject.task == "classify":
            remarks.append(f"The model's own cross-validated error is {percent(value)}.")
        else:
            size = number(value**0.5)
            remarks.append(f"The model's own cross-validated error (root of the mean square) is {size}.")
    said = any("still falling" in note for note in subject.notes)
    refined = getattr(subject.core, "refined_", False)  # its path says nothing of the vectors after they were moved
    if not said and not refined and getattr(path_of(subject.core), "open_end", False):
        remarks.append(
            "The error was still falling at the budget of vectors: a larger max_vectors, or prefer='accurate', may "
            "help."
        )
    return (*remarks, *subject.notes)
