"""What is told about a fitted model of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.arrays.storable import storable
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.tables.evaluate import Judgement
from fewkern.tables.fitting import FittedTable
from fewkern.tables.resolve import Job

__all__ = ["FitFacts", "facts_of", "short_facts", "summary"]

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
    agreement: str | None = None
    """How far a compressed model agrees with the long one."""
    kept_rows: Any = None
    """Positions, in the table, of the rows that the kept vectors are or started from."""
    kept_missing: Any = None
    """Which cells of the kept rows are missing, ``(n_vectors, number of columns)``."""
    kept_target: Any = None
    """Targets of the kept rows."""


def facts_of(found: FittedTable, job: Job, total: float) -> FitFacts:
    """The facts of a fit."""
    estimator, known, kept = found.estimator, found.known, found.kept
    loo, r2 = None, None
    if getattr(estimator, "held_out_error_", None) is not None:
        loo = float(estimator.held_out_error_)
        if job.task == "regress" and known.y is not None:
            spread = float(np.var(known.y))
            loo, r2 = loo**0.5, 1.0 - loo / spread if spread else None
    return FitFacts(
        rows=found.count, features=len(found.encoder.names), vectors=int(estimator.n_vectors_) or None,
        kernel=_describe_density(estimator) if job.task == "density" else _describe(estimator),
        bytes=int(estimator.expansion_.nbytes), seconds=found.seconds, total=total,
        cross_validated=loo, cross_validated_r2=r2,
        components=int(estimator.n_components_) if job.task == "reduce" else None,
        kept_rows=None if kept is None else known.rows[kept],
        kept_missing=None if kept is None else known.missing[kept],
        kept_target=None if known.y is None or kept is None else known.y[kept],
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
    """The kernel of a model in a few words, numbers to three digits."""
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
    """The kernels of a density in a few words."""
    low, high = float(estimator.widths_.min()), float(estimator.widths_.max())
    return f"normal, width {low:.3g}" + (f" to {high:.3g}" if high > low else "") + " (of standardized columns)"


def summary(model: Any) -> list[tuple[str, str]]:
    """The facts and the judgement of a fitted model as pairs of name and text."""
    facts: FitFacts = model.facts_
    target = f", target {model.target_}" if model.target_ else ""
    rows = [
        ("task", f"{model.task_} with model {model.model_}{target}"),
        ("rows", f"{facts.rows:,} of {facts.features:,} features"),
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
        classes = model.task_ == "classify"
        text = f"{facts.cross_validated:.2%}" if classes else f"{facts.cross_validated:.4g}"
        r2 = facts.cross_validated_r2
        text += "" if r2 is None else f" (R² {r2:.3f})"
        rows.append((f"{'error' if classes else 'RMSE'}, cross-validated", text))
    if judged is not None:
        rows += _judged(judged)
    rows += [("kernel", facts.kernel), ("fitted in", _times(facts))]
    return [*rows, ("size of the model", f"{facts.bytes:,} bytes of numbers")]


def _judged(judged: Judgement) -> list[tuple[str, str]]:
    rate = judged.measure == "error"

    def show(value: float) -> str:
        return f"{value:.2%}" if rate else f"{value:.4g}"

    which = f"{judged.rows:,} rows" + (" not fitted" if judged.how == "held out" else "")
    r2 = f" (R² {judged.r2:.3f})" if judged.r2 is not None else ""
    text = f"{show(judged.value)} of {which}" if rate else f"{show(judged.value)}{r2} on {which}"
    text += f"; 95 % interval {show(judged.low)} to {show(judged.high)}"
    name = {"error": "error", "rmse": "RMSE", "log density": "log density"}[judged.measure]
    rows = [(f"{name}, {judged.how}", text), ("that is", judged.verdict)]
    others = f"{judged.baseline_name}: {show(judged.baseline)}"
    if judged.linear is not None:
        others += f"; a linear model: {show(judged.linear)}"
    rows.append(("beside it", others))
    if judged.found is not None:
        rows.append(("found", judged.found))
    return rows


def _times(facts: FitFacts) -> str:
    fit = f"{facts.seconds[-1]:.2f} s"
    if len(facts.seconds) == 1:
        return fit if facts.total < facts.seconds[-1] + 0.5 else f"{fit} ({facts.total:.2f} s with reading the columns)"
    return f"{fit}, and {facts.seconds[0]:.2f} s for the held-out check ({facts.total:.2f} s in all)"
