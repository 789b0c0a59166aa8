"""The summary of a fitted model of a table: facts, sentences, and the vectors as rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.arrays.storable import storable
from fewkern.base import vectors_moved
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.reporting.formatting import number
from fewkern.tables.cells import pandas
from fewkern.tables.fitting import FittedTable, own_error
from fewkern.tables.judgement import Judgement, measure_text
from fewkern.tables.resolve import Job

# What the vectors of a learned model are.
_ORIGINS = {
    "samples": ", rows of the table",
    "distilled": ", moved to imitate a larger model",
    "moved": ", moved to lower the error",
}


@storable
@dataclass(frozen=True)
class FitFacts:
    """Numbers about a fit."""

    rows: int
    """Rows that the model was fitted to."""
    features: int
    vectors: int | None
    """None of a model without vectors."""
    kernel: str
    bytes: int
    seconds: tuple[float, ...]
    """Of the check on rows held out, if there was one, and of the fit."""
    total: float
    """Seconds of everything."""
    cross_validated: float | None = None
    """Error rate, or root mean squared error, from the fit itself."""
    cross_validated_r2: float | None = None
    components: int | None = None
    groups: int | None = None
    """Number of groups of rows."""
    agreement: str | None = None
    """How far a compressed model agrees with the long one."""
    kept_rows: np.ndarray[Any, Any] | None = None
    """Positions, in the table, of the rows that the kept vectors are or started from."""
    kept_missing: np.ndarray[Any, Any] | None = None
    """Which cells of the kept rows are missing, ``(n_vectors, number of columns)``."""
    kept_target: np.ndarray[Any, Any] | None = None
    """Targets of the kept rows."""


def facts_of(found: FittedTable, job: Job, total: float) -> FitFacts:
    """The facts of a fit."""
    part, kept, estimator = found.part, found.part.kept, found.part.estimator
    y = None if job.y is None else job.y[part.rows]
    error, r2 = own_error(job, estimator), None
    if error is not None and y is not None and job.task == "regress":
        spread = float(np.var(y))
        r2 = 1.0 - error**2 / spread if spread else None
    return FitFacts(
        rows=part.count, features=len(part.encoder.names), vectors=int(estimator.n_vectors_) or None,
        kernel=_describe_density(estimator) if job.task == "density" else _describe(estimator),
        bytes=int(estimator.expansion_.nbytes), seconds=found.seconds, total=total,
        cross_validated=error, cross_validated_r2=r2,
        components=int(estimator.n_components_) if job.task == "reduce" else None,
        groups=None if job.groups is None else len(np.unique(job.groups)),
        kept_rows=None if kept is None else job.rows[part.rows][kept],
        kept_missing=None if kept is None else part.encoded.missing[kept],
        kept_target=None if y is None or kept is None else y[kept],
    )  # fmt: skip


def short_facts(facts: FitFacts, estimator: Any, rows: int, seconds: float) -> FitFacts:
    """The facts of a compressed model: what was measured belongs to the long one."""
    return replace(
        facts, rows=rows, vectors=int(estimator.n_vectors_), kernel=_describe(estimator),
        bytes=int(estimator.expansion_.nbytes), seconds=(seconds,), total=seconds, cross_validated=None,
        cross_validated_r2=None, agreement=str(estimator.agreement_), kept_rows=None, kept_missing=None,
        kept_target=None,
    )  # fmt: skip


def _describe(estimator: Any) -> str:
    """A short description of the kernel of a model."""
    expansion = estimator.expansion_
    if isinstance(expansion, GaussianExpansion):
        return _describe_metric(expansion.basis)
    kernel = getattr(estimator, "kernel_", None) or expansion.kernel
    words = [type(kernel).__name__]
    for name, value in kernel.get_params().items():
        if isinstance(value, (int, float)):
            words.append(f"{name} {value:.3g}")
        elif getattr(value, "ndim", 0) == 1:
            words.append(f"one {name} per feature, {float(value.min()):.3g} to {float(value.max()):.3g}")
    return ", ".join(words)


def _describe_metric(basis: GaussianBasis) -> str:
    """The Gaussians of a learned model: widths along the prepared columns, those of the vectors, and directions."""
    scales, own = to_numpy(basis.scales).astype(float), to_numpy(basis.inverse_widths).astype(float)
    words = ["Gaussian"]
    if len(own) and (scales > 0).any():
        widths = 1.0 / (scales[scales > 0][:, None] * own[None, :])
        words.append(f"learned widths, {widths.min():.3g} to {widths.max():.3g} (of prepared columns)")
    count = int(basis.directions.shape[1])
    if count:
        words.append(f"{count} learned direction{'s' * (count > 1)}")
    return ", ".join(words)


def _describe_density(estimator: Any) -> str:
    """A short description of the kernels of a density."""
    low, high = float(estimator.bandwidths_.min()), float(estimator.bandwidths_.max())
    return f"normal, bandwidth {low:.3g}" + (f" to {high:.3g}" if high > low else "") + " (of standardized columns)"


def summary(model: Any) -> list[tuple[str, str]]:
    """The facts and the judgement of a fitted model as pairs of name and text."""
    facts: FitFacts = model.facts_
    names = model.targets
    target = f", target{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""
    groups = "" if facts.groups is None else f", in {facts.groups:,} groups"
    rows = [
        ("task", f"{model.task_} with model {model.model_}{target}"),
        ("rows", f"{facts.rows:,} of {facts.features:,} features{groups}"),
    ]
    if facts.components is not None:
        rows.append(("components", f"{facts.components:,}"))
    if facts.vectors is not None:
        share = f"{facts.vectors:,} ({facts.vectors / max(facts.rows, 1):.1%} of the rows)"
        rows.append(("vectors kept", share + _ORIGINS.get(getattr(model.estimator_, "origin_", ""), "")))
    if facts.agreement is not None:
        rows.append(("agreement with the long model", f"{facts.agreement}, held out"))
    judged = model.judgement_
    if facts.cross_validated is not None and (judged is None or judged.how == "held out"):
        measure, r2 = "error" if model.task_ == "classify" else "RMSE", facts.cross_validated_r2
        text = measure_text(facts.cross_validated, measure) + ("" if r2 is None else f" (R² {r2:.3f})")
        rows.append((f"cross-validated {measure}", text))
    if judged is not None:
        rows += _judged(judged, names)
    rows += [("kernel", facts.kernel), ("fitted in", _times(facts))]
    return [*rows, ("size of the model", f"{facts.bytes:,} bytes of numbers")]


def _judged(judged: Judgement, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """The error with its interval, the verdict, and the baselines."""
    name = {"error": "error", "rmse": "RMSE", "log density": "log density"}[judged.measure]
    how = "held-out" if judged.how == "held out" else "cross-validated"
    value, low, high, baseline = (
        measure_text(one, judged.measure) for one in (judged.value, judged.low, judged.high, judged.baseline)
    )
    text = f"{value} ({_details(judged)}95% CI {low.removesuffix('%')}–{high})"
    rows = [(f"{how} {name}", text)]
    for target, one in zip(names, judged.targets):
        rows.append((f"  of {target}", f"{number(one.value, 4)}" + ("" if one.r2 is None else f" (R² {one.r2:.3f})")))
    rows.append(("verdict", judged.verdict))
    others = f"{judged.baseline_name}: {baseline}"
    if judged.linear is not None:
        others += f"; a linear model: {measure_text(judged.linear, judged.measure)}"
    rows.append(("baselines", others))
    if judged.found is not None:
        rows.append(("found", judged.found))
    if judged.ranking is not None:
        rows.append(("ranking", judged.ranking))
    return rows


def _details(judged: Judgement) -> str:
    """R², the number of rows, groups and weights."""
    r2 = f"R² {judged.r2:.3f}; " if judged.r2 is not None else ""
    unit = "in standard deviations of the targets; " if judged.targets else ""
    unseen = " the model did not see" if judged.how == "held out" else ""
    groups = "" if judged.groups is None else f" of {judged.groups:,} groups"
    return f"{unit}{r2}{judged.rows:,} rows{groups}{unseen}; {'weighted; ' if judged.weighted else ''}"


def _times(facts: FitFacts) -> str:
    fit = f"{facts.seconds[-1]:.2f} s"
    if len(facts.seconds) == 1:
        return fit if facts.total < facts.seconds[-1] + 0.5 else f"{fit} ({facts.total:.2f} s with reading the columns)"
    return f"{fit}, and {facts.seconds[0]:.2f} s for the held-out check ({facts.total:.2f} s in all)"


def vectors_frame(model: Any) -> Any:
    """A data frame with a row per vector: where it comes from, its cells, its target and coefficient."""
    estimator, facts = model.estimator_, model.facts_
    if not estimator.n_vectors_:
        return pandas().DataFrame()
    vectors = np.asarray(estimator.vectors_)
    cells = model.encoder_.cells(vectors)
    missing = facts.kept_missing
    if missing is not None and not vectors_moved(estimator) and missing.shape == cells.shape:
        cells = cells.astype(object).mask(missing, None)
    back: dict[str, Any] = {}
    if facts.kept_target is not None and len(facts.kept_target) == len(vectors):
        back |= dict(zip(model.targets, np.reshape(facts.kept_target, (len(vectors), -1)).T))
    if model.task_ == "density":
        back |= {"weight": np.asarray(estimator.weights_), "bandwidth": np.asarray(estimator.bandwidths_)}
    else:
        back |= _coefficients(model, np.asarray(estimator.expansion_.coef))
    columns: dict[str, Any] = {}
    if facts.kept_rows is not None and len(facts.kept_rows) == len(vectors):
        columns[_free("row", cells)] = facts.kept_rows
    columns |= {name: cells[name].to_numpy() for name in cells}
    for name, values in back.items():
        columns[_free(name, columns)] = values
    return pandas().DataFrame(columns)


def _coefficients(model: Any, coef: Array) -> dict[str, Any]:
    """One column per output of the expansion."""
    if coef.shape[1] == 1:
        return {"coefficient": coef[:, 0]}
    labels = list(map(str, getattr(model.estimator_, "classes_", model.targets)))
    if len(labels) != coef.shape[1]:
        labels = [str(k) for k in range(coef.shape[1])]
    return {f"coefficient of {label}": coef[:, k] for k, label in enumerate(labels)}


def _free(name: str, columns: Any) -> str:
    """A name that no column has yet."""
    while name in columns:
        name += "_"
    return name
