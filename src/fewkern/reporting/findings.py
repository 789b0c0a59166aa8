"""Everything that a report states about a model, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fewkern.base import path_of
from fewkern.plotting.model import FittedModel
from fewkern.reporting import errors
from fewkern.reporting.evaluation import (
    ClassQuality,
    RegressionQuality,
    baselines,
    classify_quality,
    regress_quality,
)
from fewkern.reporting.formatting import label, number, percent
from fewkern.reporting.holdout import Predictions, ReportSettings, predict_held_out
from fewkern.reporting.importances import Importances, decides_alone, importances
from fewkern.reporting.listing import Listing, in_units, list_rows
from fewkern.reporting.subject import Subject
from fewkern.reporting.uncertainty import Uncertainty, uncertainty
from fewkern.reporting.unsupervised import DensityShape, Reduction, density_shape, reduction
from fewkern.reporting.usage import Usage, usage
from fewkern.reporting.vectors import Example, Vectors, examples, vectors

__all__ = ["Errors", "Findings", "find"]


@dataclass(frozen=True)
class Errors:
    """Where a model errs; what does not apply to it is None or empty."""

    confusion: errors.Confusion | None = None
    calibration: errors.Calibration | None = None
    thresholds: tuple[errors.Threshold, ...] = ()
    curves: errors.Curves | None = None
    residuals: errors.Residuals | None = None
    worst: tuple[errors.WorstRow, ...] = ()
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
    predictions: Predictions | None
    importances: Importances | None
    leak: str
    """A question, where one column alone decides; else empty."""
    errors: Errors
    reduction: Reduction | None
    density: DensityShape | None
    labels: Any
    """Targets of all rows, for the colors of figures."""
    vectors: Vectors | None
    examples: tuple[Example, ...]
    plane: FittedModel | None
    """A classifier of two columns, for a figure of its regions."""
    uncertainty: Uncertainty
    usage: Usage
    path: Any
    """The estimator, if it compared models of several sizes: a figure can be drawn of that."""
    remarks: tuple[str, ...]

    @property
    def headline(self) -> tuple[str, ...]:
        """The first sentences of the report."""
        found = self.quality or self.reduction or self.density
        return found.sentences if found is not None else ()


def find(subject: Subject, settings: ReportSettings) -> Findings:
    """Evaluate a model on its rows, and collect what a report shows."""
    seed = settings.random_state
    target = subject.target or ("class" if subject.task == "classify" else "the target")
    found: Any = {"quality": None, "importances": None, "leak": "", "reduction": None, "density": None}
    predictions, order = None, ()
    if subject.task in ("classify", "regress"):
        predictions = predict_held_out(subject, settings)
        found |= _supervised(subject, predictions, target, seed)
        order = tuple(c.column for c in found["importances"].columns)
    elif subject.task == "reduce":
        found["reduction"] = reduction(subject, subject.feature_names, settings)
        worst = [i for i, _ in found["reduction"].worst]
        found["errors"] = Errors(worst_cells=list_rows(subject, worst, order))
    else:
        found["density"] = density_shape(subject, subject.feature_names, settings)
        lowest = [i for i, _ in found["density"].lowest]
        found["errors"] = Errors(worst_cells=list_rows(subject, lowest, order))
    return Findings(
        task=subject.task,
        target=target,
        model=type(subject.core).__name__,
        rows=len(subject.rows),
        columns=len(subject.used),
        classes=tuple(subject.classes.tolist()) if subject.task == "classify" else (),
        predictions=predictions,
        labels=subject.truth,
        vectors=vectors(subject, order, seed),
        examples=() if predictions is None else examples(subject, predictions),
        plane=in_units(subject) if subject.task == "classify" and len(subject.inputs) == 2 else None,
        uncertainty=uncertainty(subject, predictions),
        usage=usage(subject, predictions, settings.compare, seed),
        path=_path(subject),
        remarks=_remarks(subject, predictions or found["reduction"] or found["density"]),
        **found,
    )


def _supervised(subject: Subject, found: Predictions, target: str, seed: int) -> dict[str, Any]:
    """What only models of a target have: quality, importances, errors, and the question about a leak."""
    assert subject.truth is not None
    rules = baselines(found, subject.samples, subject.truth, subject.task, seed)
    matter = importances(subject, seed)
    worst = errors.worst_rows(found, subject.task)
    order = tuple(column.column for column in matter.columns)
    cells = list_rows(subject, [row.position for row in worst], order)
    quality: ClassQuality | RegressionQuality
    if subject.task == "classify":
        classes = subject.classes
        quality = classify_quality(found, rules, classes, target)
        lines = quality.classes
        wrong = Errors(
            errors.confusion(found, classes),
            errors.calibration(found, lines, classes),
            errors.thresholds(found, lines, classes),
            errors.curves(found, lines, classes),
            worst=worst,
            worst_cells=cells,
        )
    else:
        quality = regress_quality(found, rules, target)
        wrong = Errors(residuals=errors.residuals(found, target), worst=worst, worst_cells=cells)
    leak = ""
    features = subject.features[subject.rows.names.index(order[0])] if len(order) > 1 else None
    if features is not None and decides_alone(subject.samples[:, features], subject.truth, subject.task, seed):
        leak = (
            f"Column {label(order[0])} alone decides: it predicts {target} almost perfectly. Is it known before "
            f"{target}? If not, leave it out."
        )
    return {"quality": quality, "importances": matter, "leak": leak, "errors": wrong}


def _path(subject: Subject) -> Any:
    trace = path_of(subject.core)
    if getattr(subject.core, "refined_", False):
        return None  # the number of vectors was chosen otherwise
    compared = trace is not None and trace.error.ndim and max(trace.error.shape) > 1
    return subject.core if compared and subject.task != "density" else None


_HOW = {
    "held out": (
        "Errors were measured with a model that was fitted to the other rows; the model of this report is fitted to "
        "all rows."
    ),
    "refitted": (
        "These are the rows that the model was fitted to. The error was measured with a copy of the model, fitted to "
        "four fifths of the rows, on the remaining fifth."
    ),
    "new": (
        "These rows were taken as rows that the model was not fitted to. If it was fitted to them, its error is "
        'underestimated: pass ReportSettings(rows="fitted").'
    ),
    "fitted": (
        "There were too few rows to hold any out: the error was measured on the rows of the fit, which underestimates "
        "it."
    ),
}


def _remarks(subject: Subject, trial: Predictions | Reduction | DensityShape | None) -> tuple[str, ...]:
    """How the numbers came about, and the notes of the model, each once."""
    remarks = [] if trial is None else [_HOW[trial.how]]
    if isinstance(trial, Predictions) and trial.how == "held out" and not trial.seen:
        remarks = ["Errors were measured on rows that were held out; the model was not fitted to them."]
    stated = getattr(subject.core, "held_out_error_", None)
    if isinstance(trial, Predictions) and stated is not None:
        value = float(stated)
        size = percent(value) if subject.task == "classify" else f"{number(value**0.5)} (RMSE)"
        remarks.append(f"The cross-validated error that the model itself states is {size}.")
    said = any("still falling" in note for note in subject.notes)
    refined = getattr(subject.core, "refined_", False)  # its path is not that of the vectors after they were moved
    if not said and not refined and getattr(path_of(subject.core), "open_end", False):
        remarks.append(
            "The error was still falling at the budget of vectors: a larger max_vectors, or prefer='accurate', may "
            "help."
        )
    return tuple(dict.fromkeys((*remarks, *subject.notes, *subject.encoded[1])))
