"""What is known about the fit of a table: the rows held out, facts about the model, and the summary of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.arrays.storable import storable
from fewkern.core.gaussians import GaussianBasis, GaussianExpansion
from fewkern.reporting.judgement import Counted, error_text

# What the vectors of a learned model are.
_ORIGINS = {
    "samples": ", rows of the table",
    "distilled": ", moved to imitate a larger model",
    "moved": ", moved to lower the error",
}


@storable
@dataclass(frozen=True)
class HeldOutRows:
    """Rows that a model did not see, and its predictions for them."""

    rows: Any
    """Positions in the table that was fitted."""
    truth: Any
    predicted: Any
    probabilities: Any = None
    """``(n, n_classes)`` of a classifier, else None."""
    weights: Any = None
    """Of the rows, if they have any."""
    groups: Any = None
    """Numbers of the groups of the rows, if there are any."""

    @property
    def counted(self) -> Counted:
        """How the rows count in an error."""
        return Counted(self.weights, self.groups)


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
        name, measure = ("error", "error") if model.task_ == "classify" else ("RMSE", "rmse")
        text = error_text(facts.cross_validated, measure, facts.cross_validated_r2)
        rows.append((f"cross-validated {name}", text))
    if judged is not None:
        rows += judged.lines(names)
    rows += [("kernel", facts.kernel), ("fitted in", _times(facts))]
    return [*rows, ("size of the model", f"{facts.bytes:,} bytes of numbers")]


def _times(facts: FitFacts) -> str:
    fit = f"{facts.seconds[-1]:.2f} s"
    if len(facts.seconds) == 1:
        return fit if facts.total < facts.seconds[-1] + 0.5 else f"{fit} ({facts.total:.2f} s with reading the columns)"
    return f"{fit}, and {facts.seconds[0]:.2f} s for the held-out check ({facts.total:.2f} s in all)"


def short_facts(facts: FitFacts, estimator: Any, rows: int, seconds: float) -> FitFacts:
    """The facts of a compressed model: what was measured belongs to the long one."""
    return replace(
        facts, rows=rows, vectors=int(estimator.n_vectors_), kernel=describe(estimator),
        bytes=int(estimator.expansion_.nbytes), seconds=(seconds,), total=seconds, cross_validated=None,
        cross_validated_r2=None, agreement=str(estimator.agreement_), kept_rows=None, kept_missing=None,
        kept_target=None,
    )  # fmt: skip


def describe(estimator: Any) -> str:
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


def describe_density(estimator: Any) -> str:
    """A short description of the kernels of a density."""
    low, high = float(estimator.bandwidths_.min()), float(estimator.bandwidths_.max())
    return f"normal, bandwidth {low:.3g}" + (f" to {high:.3g}" if high > low else "") + " (of standardized columns)"
