"""From any fitted model to its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from fewkern.arrays.namespace import to_numpy
from fewkern.arrays.storable import stored_classes
from fewkern.arrays.validation import unwrapped
from fewkern.base import set_threshold
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.kernels import Gaussian, Laplacian
from fewkern.core.preparation import Preparation
from fewkern.core.prepared import Prepared, Preparing, Scaling
from fewkern.density.classes import ClassMixtures
from fewkern.density.mixture import KernelMixture
from fewkern.io.pipelines import LinearEnd, prepare, split_end, steps_of
from fewkern.io.plan import (
    DTYPES,
    Bounds,
    Classes,
    Inputs,
    LogSum,
    Members,
    Plan,
    Sum,
    Trust,
    Unexplained,
)
from fewkern.io.sums import as_double, as_log_sum, as_sum, preparation_bends
from fewkern.io.trial import is_fitted
from fewkern.select.mixins import interval_quantiles

__all__ = ["plan"]

# A threshold that no probability exceeds: all classes are in the set.
_ALL = 2.0


def plan(model: Any, dtype: str, caller: str, trust: Trust | None = None) -> Plan:
    """Describe ``model`` for numbers of type ``dtype``; errors speak in the name of ``caller``."""
    if dtype not in DTYPES:
        raise ValueError(f'{caller}: dtype must be "float" or "double", got {dtype!r}.')
    found, inputs = _unwrap(unwrapped(model, caller), caller)
    parts = _on_features(found.model, caller) if isinstance(found.model, LinearEnd) else _parts(found.model, caller)
    scaler = found.scaling or Scaling(np.zeros(parts.n_features), np.ones(parts.n_features))
    sums: list[Sum | LogSum] = []
    for expansion in parts.expansions:
        if isinstance(expansion, KernelMixture):
            if expansion.bounds is not None:
                raise ValueError(
                    f"{caller}: this {parts.name} has features with bounds or a period, which cannot be written yet; "
                    "fit it without bounds and periodic, or keep it in Python with save."
                )
            sums.append(as_log_sum(expansion, scaler, dtype, found.log_unit))
        else:
            sums.append(as_sum(expansion, scaler, dtype, caller, parts.name))
    names = found.feature_names or _names(found.model)
    kernel = _kernel_name(parts.expansions[0])
    count = sum(expansion.n_vectors for expansion in parts.expansions)
    title = f"{parts.name}, {kernel}, {count} vectors of {parts.n_features} features"
    notes = (*found.notes, *parts.notes)
    described = Plan(
        title, parts.model, parts.n_features, names, tuple(sums), parts.values, parts.classes, notes, inputs
    )
    if trust is None:
        return described
    return _with_trust(described, found.model, trust, _Summing(scaler, dtype, caller))


def _kernel_name(expansion: Any) -> str:
    if isinstance(expansion, KernelMixture):
        return "normal kernels"
    if isinstance(expansion, GaussianExpansion):
        return "Gaussians in a learned metric"
    return f"{type(expansion.kernel).__name__} kernel"


@dataclass(frozen=True)
class _Summing:
    """How the sums of a file are written: what a scaler does first, the type of the numbers, whose errors these are."""

    scaler: Scaling
    dtype: str
    caller: str

    def __call__(
        self, expansion: KernelExpansion | GaussianExpansion, owner: str, preparation: Preparation | None = None
    ) -> Sum:
        """With a ``preparation``, the expansion is a function of prepared columns."""
        if preparation is None:
            return as_sum(expansion, self.scaler, self.dtype, self.caller, owner)
        count = preparation.n_columns
        prepared = as_sum(expansion, Scaling(np.zeros(count), np.ones(count)), self.dtype, self.caller, owner)
        return replace(prepared, bends=preparation_bends(preparation, self.scaler))


def _with_trust(described: Plan, model: Any, trust: Trust, summing: _Summing) -> Plan:
    """The plan with intervals, sets of classes and novelty, as far as they are asked for."""
    name = described.model
    if trust.false_alarms is not None:
        described = replace(described, unexplained=_unexplained(model, trust.false_alarms, summing))
    if trust.coverage is None:
        return described
    if described.classes is not None and described.classes.probable and hasattr(model, "predict_set"):
        threshold = set_threshold(model, trust.coverage)
        return replace(described, members=Members(trust.coverage, min(threshold, _ALL)))
    if not hasattr(model, "predict_interval"):
        raise ValueError(
            f"{summing.caller}: coverage is for models with predict_interval or predict_set, and {name} has none of "
            "them; leave coverage out."
        )
    intervals = interval_quantiles(model, trust.coverage)
    factor = np.array([one.quantile(trust.coverage) for one in intervals.scores])
    if intervals.scale is None:
        return replace(described, bounds=Bounds(trust.coverage, factor))
    bounds = Bounds(trust.coverage, factor, summing(intervals.scale, name), as_double(intervals.limits))
    return replace(described, bounds=bounds)


def _unexplained(model: Any, false_alarms: float, summing: _Summing) -> Unexplained:
    name, caller = type(model).__name__, summing.caller
    if not hasattr(model, "novelty_threshold"):
        raise ValueError(f"{caller}: {name} has no novelty; leave false_alarms out.")
    threshold, basis = model.novelty_threshold(false_alarms), model.novelty_.basis
    centered = basis.center_vectors is not None
    if not isinstance(basis.kernel, (Gaussian, Laplacian)) or centered:
        raise ValueError(
            f"{caller}: novelty can be written where k(x, x) = 1, with the kernels Gaussian and Laplacian and "
            f"center=False, but the kernel of this {name} is {'centered ' if centered else ''}"
            f"{type(basis.kernel).__name__}; leave false_alarms out."
        )
    features = summing(basis.expansion(), name, model.novelty_.preparation)
    return Unexplained(false_alarms, features, threshold)


@dataclass(frozen=True)
class _Parts:
    """What a plan says of a model."""

    name: str
    model: str
    n_features: int
    expansions: tuple[Any, ...]
    values: Any
    classes: Classes | None
    notes: tuple[str, ...] = ()


def _parts(model: Any, caller: str) -> _Parts:
    name, expansions = type(model).__name__, _expansions(model, caller)
    n_features = int(getattr(model, "n_features_in_", expansions[0].vectors.shape[1]))
    classes = _classes(model) if hasattr(model, "class_scores_") else None
    return _Parts(name, name, n_features, expansions, _values_of(model, classes), classes)


def _on_features(end: LinearEnd, caller: str) -> _Parts:
    """A linear model of the features that a transformer of ours makes is another sum over the same vectors."""
    below = _parts(end.transformer, caller)
    (expansion,) = below.expansions
    weights, offset = end.affine(expansion.n_outputs, caller)
    coef, values = as_double(expansion.coef), as_double(expansion.offset)
    whole = KernelExpansion(expansion.kernel, expansion.vectors, coef @ weights, values @ weights + offset)
    classes, notes = end.classes()
    model = type(end.last).__name__
    name = f"{model} on the features of {below.name}"
    return _Parts(name, model, below.n_features, (whole,), "predict" if classes is None else None, classes, notes)


def _values_of(model: Any, classes: Classes | None) -> Any:
    if isinstance(getattr(model, "expansion_", model), KernelMixture):
        return "log_density"
    if hasattr(model, "transform"):
        return "transform"
    return None if classes is not None else "predict"


def _names(model: Any) -> tuple[str, ...] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def _unwrap(model: Any, caller: str) -> tuple[Prepared, Inputs | None]:
    """The fewkern model inside something that prepares its samples, or at the end of a pipeline; how inputs become
    its features."""
    if isinstance(model, Preparing):
        found = model.prepared()
        return found, found.inputs
    if not isinstance(model, Pipeline):
        return Prepared(model), None
    _fitted(model, caller)
    before, end = split_end(steps_of(model))
    if isinstance(end, Preparing):
        raise TypeError(f"{caller}: a {type(end).__name__} prepares its rows itself; export it without the pipeline.")
    _expansions(end.transformer if isinstance(end, LinearEnd) else end, caller)  # says first if it is not ours
    count = int(model.n_features_in_)
    features = prepare(before, count, caller)
    names = next((_names(step) for step in (*before, end) if _names(step)), None)
    return Prepared(end, features.scaling, names, notes=features.notes()), features.inputs(count)


def _fitted(model: Any, caller: str) -> None:
    if not is_fitted(model):
        raise NotFittedError(f"{caller}: this {type(model).__name__} is not fitted; call fit first.")


def _expansions(model: Any, caller: str) -> tuple[Any, ...]:
    """What the model sums up: one expansion, or one density per class."""
    if isinstance(model, (KernelExpansion, GaussianExpansion, KernelMixture)):
        return (model,)
    if type(model).__name__ not in stored_classes() or not isinstance(model, BaseEstimator):
        raise TypeError(
            f"{caller}: expected a fitted estimator of fewkern, a pipeline that ends in one (or in a linear model of "
            f"its features), or an expansion, got {type(model).__name__}."
        )
    _fitted(model, caller)
    if not hasattr(model, "expansion_") and not hasattr(model, "basis_"):
        raise TypeError(
            f"{caller}: a {type(model).__name__} has no kernels to write; export a model that predicts, such as a "
            "TableModel, which contains its encoder."
        )
    found = model.expansion_ if hasattr(model, "expansion_") else model.basis_.expansion()
    if isinstance(found, ClassMixtures):
        return found.mixtures
    if found.n_outputs == 0:
        raise ValueError(
            f"{caller}: this {type(model).__name__} found no component, so there is nothing to write; fit it with "
            "other settings first."
        )
    return (found,)


def _classes(model: Any) -> Classes:
    scores = model.class_scores_
    weights = None if scores.weights is None else as_double(scores.weights)
    offset = None if scores.offset is None else as_double(scores.offset)
    probable = hasattr(model, "predict_proba")
    return Classes(to_numpy(model.classes_), weights, offset, float(scores.factor), scores.shares, probable)
