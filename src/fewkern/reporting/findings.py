"""Everything that a report states about a model, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewkern.reporting.comparison import Usage, decides_alone, judge_predictions, usage
from fewkern.reporting.evaluation import Predictions, ReportSettings, predict_held_out
from fewkern.reporting.formatting import Table, label, number, percent, table_of
from fewkern.reporting.importances import Importances, importances
from fewkern.reporting.kept import Vectors, row_columns, vectors
from fewkern.reporting.quality import Errors, Quality, Uncertainty, errors, quality, uncertainty, worst_rows
from fewkern.reporting.subject import Subject
from fewkern.reporting.unsupervised import DensityShape, Reduction, density_shape, reduction


@dataclass(frozen=True)
class Findings:
    """Everything that the page shows; what does not apply to a model is None or empty."""

    task: str
    """"classify", "regress", "reduce" or "density"."""
    target: str
    """Name of the target, or words for it."""
    model: str
    """Name of the estimator."""
    rows: int
    columns: int
    worst: Table
    """The rows that the model handles worst."""
    vectors: Vectors | None
    uncertainty: Uncertainty
    usage: Usage
    remarks: tuple[str, ...]
    predictions: Predictions | None = None
    quality: Quality | None = None
    importances: Importances | None = None
    leak: str = ""
    """A question, where one column alone decides."""
    errors: Errors | None = None
    reduction: Reduction | None = None
    density: DensityShape | None = None

    @property
    def headline(self) -> tuple[str, ...]:
        """The first sentences of the report."""
        found = self.quality or self.reduction or self.density
        return found.sentences if found is not None else ()


def find(subject: Subject, settings: ReportSettings) -> Findings:
    """Evaluate a model on its rows, and collect what a report shows."""
    classify, seed = subject.task == "classify", settings.random_state
    target = subject.target or ("class" if classify else "the target")
    found: dict[str, Any] = {}
    order: tuple[str, ...] = ()
    trial: Predictions | Reduction | DensityShape
    worst: Sequence[tuple[int, tuple[str, ...]]]
    if subject.task == "reduce":
        trial = found["reduction"] = reduction(subject, settings)
        head, worst = ["distance"], [(i, (f"{value:.3g}",)) for i, value in trial.worst]
    elif subject.task == "density":
        trial = found["density"] = density_shape(subject, settings)
        head, worst = ["log density"], [(i, (f"{value:.4g}",)) for i, value in trial.lowest]
    else:
        trial = predict_held_out(subject, settings)
        found = _supervised(subject, trial, target, seed)
        order = tuple(column.column for column in found["importances"].columns)
        head, worst = [f"true {target}", "predicted", "probability" if classify else "off by"], worst_rows(trial)
    positions = [i for i, _ in worst]
    columns = [("row", [subject.rows.label(i) for i in positions])]
    columns += [(name, [lead[k] for _, lead in worst]) for k, name in enumerate(head)]
    return Findings(
        task=subject.task, target=target, model=type(subject.core).__name__, rows=len(subject.rows),
        columns=len(subject.used), worst=table_of(columns + row_columns(subject, positions, order)),
        vectors=vectors(subject, target, order, seed), uncertainty=uncertainty(subject, found.get("predictions")),
        usage=usage(subject, found.get("predictions"), settings.compare, seed), remarks=_remarks(subject, trial),
        **found,
    )  # fmt: skip


def _supervised(subject: Subject, found: Predictions, target: str, seed: int) -> dict[str, Any]:
    """What only models of a target have: quality, importances, errors, examples, and the question about a leak."""
    matter = importances(subject, seed)
    return {
        "predictions": found,
        "quality": quality(found, judge_predictions(found, subject.samples, subject.truth, seed), target),
        "importances": matter,
        "leak": _leak(subject, found, matter, target),
        "errors": errors(found, target),
    }


def _leak(subject: Subject, found: Predictions, matter: Importances, target: str) -> str:
    """A question, where the most important of several columns alone predicts the target."""
    if len(matter.columns) < 2 or len(found.positions) < 2:
        return ""
    name, y = matter.columns[0].column, subject.truth
    samples, new = subject.samples[:, subject.features[subject.rows.names.index(name)]], found.positions
    known = found.train
    if not len(known):  # the rows of the fit are unknown
        known, new = new[::2], new[1::2]
    if not decides_alone((samples[known], samples[new]), (y[known], y[new]), subject.task == "classify"):
        return ""
    return (
        f"Column {label(name)} alone predicts {target} almost perfectly. Is it known before {target}? If not, drop it."
    )


_HOW = {
    "held out": (
        "Errors were measured on held-out rows, with a model fitted to the others; the model of this report is fitted "
        "to all rows."
    ),
    "refitted": (
        "These are the rows that the model was fitted to. The error was measured with a copy of the model, fitted to "
        "four fifths of the rows, on the remaining fifth."
    ),
    "new": (
        "The model is assumed not to have been fitted to these rows. If it was, its error is underestimated: pass "
        'ReportSettings(rows="fitted").'
    ),
    "fitted": (
        "There were too few rows to hold any out: the error was measured on the training rows, which underestimates it."
    ),
}


def _remarks(subject: Subject, trial: Predictions | Reduction | DensityShape) -> tuple[str, ...]:
    """How the numbers came about, and the notes of the model, each once."""
    remarks = [_HOW[trial.how]]
    if isinstance(trial, Predictions) and trial.how == "held out" and not trial.seen:
        remarks = ["Errors were measured on held-out rows, which the model was not fitted to."]
    stated = getattr(subject.core, "held_out_error_", None)
    if isinstance(trial, Predictions) and stated is not None:
        value = float(stated)
        size = percent(value) if subject.task == "classify" else f"{number(value**0.5)} (RMSE)"
        remarks.append(f"The model's own cross-validated error is {size}.")
    return tuple(dict.fromkeys((*remarks, *subject.notes, *subject.warned)))
