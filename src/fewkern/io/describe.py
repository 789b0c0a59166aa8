"""From any fitted model to its plan.

Widths of kernels, the scaling of a density and the scalers of a pipeline all become one first step of a sum.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.arrays.storable import stored_classes
from fewkern.arrays.wrapped import unwrapped
from fewkern.base import set_threshold
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.kernels import Function, Gaussian, Laplacian, Linear, LinearSpline, Polynomial, Precomputed
from fewkern.core.preparation import Preparation
from fewkern.core.prepared import Prepared, Preparing, Scaling
from fewkern.density.mixture import ClassMixtures, KernelMixture
from fewkern.io.linear_end import LinearEnd, split_end
from fewkern.io.plan import (
    DTYPES,
    ROUNDING,
    Bends,
    Bounds,
    Classes,
    Inputs,
    LogSum,
    Members,
    Plan,
    Sum,
    Trust,
    Unexplained,
    Vector,
)
from fewkern.io.preparation import prepare
from fewkern.select.mixins import interval_quantiles

__all__ = ["plan"]

# Maximum number of vectors at which the rounding error is estimated.
_ROUNDING_ROWS = 1000
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
            sums.append(_log_sum(expansion, scaler, dtype, found.log_unit))
        else:
            sums.append(_sum(expansion, scaler, dtype, caller, parts.name))
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
            return _sum(expansion, self.scaler, self.dtype, self.caller, owner)
        count = preparation.n_columns
        prepared = _sum(expansion, Scaling(np.zeros(count), np.ones(count)), self.dtype, self.caller, owner)
        return replace(prepared, bends=_bends(preparation, self.scaler))


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
    bounds = Bounds(trust.coverage, factor, summing(intervals.scale, name), _double(intervals.limits))
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
    coef, values = _double(expansion.coef), _double(expansion.offset)
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
    before, end = split_end(_steps(model))
    _expansions(end.transformer if isinstance(end, LinearEnd) else end, caller)  # says first if it is not ours
    count = int(model.n_features_in_)
    features = prepare(before, count, caller)
    names = next((_names(step) for step in (*before, end) if _names(step)), None)
    return Prepared(end, features.scaling, names, notes=features.notes()), features.inputs(count)


def _steps(pipeline: Pipeline) -> list[Any]:
    """The steps of a pipeline, those of pipelines inside it in their place."""
    found: list[Any] = []
    for _, step in pipeline.steps:
        found += _steps(step) if isinstance(step, Pipeline) else [step]
    return found


def _fitted(model: Any, caller: str) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(f"{caller}: this {type(model).__name__} is not fitted; call fit first.") from None


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
    found = model.expansion_ if hasattr(model, "expansion_") else model.basis_.expansion()
    if isinstance(found, ClassMixtures):
        return found.mixtures
    if found.n_outputs == 0:
        raise ValueError(
            f"{caller}: this {type(model).__name__} found no component, so there is nothing to write; fit it with "
            "other settings first."
        )
    return (found,)


def _double(x: Any) -> Vector:
    return np.asarray(x.toarray() if is_sparse(x) else to_numpy(x), dtype=np.float64)


def _classes(model: Any) -> Classes:
    scores = model.class_scores_
    weights = None if scores.weights is None else _double(scores.weights)
    offset = None if scores.offset is None else _double(scores.offset)
    probable = hasattr(model, "predict_proba")
    return Classes(to_numpy(model.classes_), weights, offset, float(scores.factor), scores.shares, probable)


def _prepared(V: Vector, centre: Vector, gain: Vector, scaler: Scaling, dtype: str) -> tuple[Vector, Vector, Vector]:
    """Shift and factor of ``z = gain (u - centre)`` seen from the samples, and the vectors after it.

    The shift is first rounded to a number of the file, and the vectors are moved with what it then is: far from the
    origin nothing is lost but what a sample itself loses when it is stored.
    """
    shift = (scaler.shift + centre / scaler.factor).astype(DTYPES[dtype]).astype(np.float64)
    moved = V - (shift - scaler.shift) * scaler.factor
    if gain.ndim == 1:
        return shift, scaler.factor * gain, moved * gain
    return shift, gain * scaler.factor[None, :], moved @ gain.T


def _bends(preparation: Preparation, scaler: Scaling) -> Bends:
    """The preparation seen from the samples: the scaler before it moves the knots."""
    knots, values = _double(preparation.knots), _double(preparation.values).copy()
    # a knot at the place of the one before it adds nothing
    new = np.diff(knots, axis=0) > 0
    kept = np.concatenate([np.ones_like(knots[:1], dtype=bool), new])
    values[1:] -= np.cumsum(np.where(new, 0.0, np.diff(values, axis=0)), axis=0)
    knots = scaler.shift + knots / scaler.factor
    columns = range(preparation.n_columns)
    return Bends(*(tuple(table[kept[:, a], a] for a in columns) for table in (knots, values)))


def _gaussians(expansion: GaussianExpansion, scaler: Scaling, dtype: str, caller: str, owner: str) -> Sum:
    """Gaussians around vectors in the coordinates of the metric, and the linear part."""
    basis, bends = expansion.basis, _bends(expansion.basis.preparation, scaler)
    coef, offset, slopes = (_double(a) for a in (expansion.coef, expansion.offset, expansion.slopes.T))
    if not len(coef):
        return Sum("linear", slopes, offset, bends=bends)
    if dtype == "float":
        _warn_about_rounding(expansion, caller, owner)
    widths = _double(basis.inverse_widths)
    # widths that are all the same belong to the metric
    common = float(widths[0]) if np.all(widths == widths[0]) else 1.0
    scales, directions = (common * np.sqrt(0.5) * _double(a) for a in (basis.scales, basis.directions.T))
    V = _double(basis.vectors)
    return Sum(
        "gaussian",
        np.concatenate([V * scales, V @ directions.T], axis=1),
        offset,
        coef,
        factor=scales,
        bends=bends,
        directions=directions if len(directions) else None,
        narrow=None if common == widths[0] else widths**2,
        slopes=slopes if slopes.any() else None,
    )


def _sum(expansion: Any, scaler: Scaling, dtype: str, caller: str, owner: str) -> Sum:
    if isinstance(expansion, GaussianExpansion):
        return _gaussians(expansion, scaler, dtype, caller, owner)
    kernel = expansion.kernel
    if type(kernel) not in _KERNELS:
        raise ValueError(
            f"{caller}: this {owner} has the kernel {type(kernel).__name__}, "
            + _REASONS.get(type(kernel), "which this writer does not know")
            + f"; fit with one of {', '.join(cls.__name__ for cls in _KERNELS)} to export a model."
        )
    rules = [f"{key}={value!r}" for key, value in kernel.rules.items()]
    if rules:
        raise ValueError(
            f"{caller}: the kernel of this {owner} has {', '.join(rules)}, a rule in place of a number; use "
            "kernel.resolve(X) with the training samples X, as an estimator does."
        )
    V, coef, offset = (_double(a) for a in (expansion.vectors, expansion.coef, expansion.offset))
    if not len(V):
        # a constant: no vector was kept
        return Sum("linear", np.zeros((len(offset), len(scaler.shift))), offset)
    found = _KERNELS[type(kernel)](kernel, V, coef, offset, scaler, dtype)
    if dtype == "float" and found.kind != "linear":
        _warn_about_rounding(expansion, caller, owner)
    return found


def _gaussian(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:
    gain = np.broadcast_to(1.0 / (np.sqrt(2.0) * _double(kernel.length_scale)), V.shape[1:])
    # the median: one far vector does not carry it away from the others
    shift, factor, vectors = _prepared(V, np.median(V, axis=0), gain, scaler, dtype)
    return Sum("gaussian", vectors, offset, coef, shift, factor)


def _laplacian(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:
    gain = np.broadcast_to(1.0 / _double(kernel.length_scale), V.shape[1:])
    shift, factor, vectors = _prepared(V, np.median(V, axis=0), gain, scaler, dtype)
    return Sum("laplacian", vectors, offset, coef, shift, factor)


def _spline(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:
    origin = np.broadcast_to(_double(kernel.origin), V.shape[1:])
    shift, factor, vectors = _prepared(V, origin, np.ones(V.shape[1]), scaler, dtype)
    return Sum("spline", vectors, offset, coef, shift, factor)


def _polynomial(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:
    vectors = V * float(kernel.gamma)
    shift, factor, rest = _scaled(scaler, dtype)
    constant = float(kernel.coef0) + vectors @ rest
    return Sum("polynomial", vectors, offset, coef, shift, factor, int(kernel.degree), constant)


def _linear(kernel: Any, V: Vector, coef: Vector, offset: Vector, scaler: Scaling, dtype: str) -> Sum:  # noqa: ARG001
    # sum_j c_j <z, v_j> is one vector per output, however many samples were kept
    vectors = coef.T @ V
    shift, factor, rest = _scaled(scaler, dtype)
    return Sum("linear", vectors, offset + vectors @ rest, shift=shift, factor=factor)


def _scaled(scaler: Scaling, dtype: str) -> tuple[Vector | None, Vector | None, Vector]:
    """Shift and factor of a scaler, none if it does nothing, and what ``z`` lacks since the shift is rounded."""
    if not scaler.shift.any() and np.all(scaler.factor == 1):
        return None, None, np.zeros_like(scaler.shift)
    shift = scaler.shift.astype(DTYPES[dtype]).astype(np.float64)
    return shift, scaler.factor, (shift - scaler.shift) * scaler.factor


_KERNELS: dict[type, Callable[[Any, Vector, Vector, Vector, Scaling, str], Sum]] = {
    Gaussian: _gaussian,
    Laplacian: _laplacian,
    Polynomial: _polynomial,
    Linear: _linear,
    LinearSpline: _spline,
}
_REASONS: dict[type, str] = {
    Precomputed: "whose values you compute, so the model does not hold the vectors",
    Function: "a Python function, which cannot be written in another language",
}


def _log_sum(mixture: KernelMixture, scaler: Scaling, dtype: str, log_unit: float) -> LogSum:
    weights, widths = _double(mixture.weights), _double(mixture.widths)
    V, transform = _double(mixture.vectors), _double(mixture.transform)
    kept = weights > 0
    shift, factor, vectors = _prepared(V[kept], np.median(V, axis=0), transform, scaler, dtype)
    determinant = np.log(np.abs(transform)).sum() if transform.ndim == 1 else np.linalg.slogdet(transform)[1]
    dim = V.shape[1]
    level = np.log(weights[kept]) - dim * np.log(widths[kept])
    level += determinant - 0.5 * dim * np.log(2 * np.pi) + log_unit
    return LogSum(vectors, level, 0.5 / widths[kept] ** 2, shift, factor)


def _warn_about_rounding(expansion: Any, caller: str, owner: str) -> None:
    """Warn if coefficients of both signs cancel so far that seven digits leave little of the sum."""
    step = max(1, -(-expansion.n_vectors // _ROUNDING_ROWS))
    if isinstance(expansion, GaussianExpansion):
        T = expansion.basis.vectors[::step, :]
        K = np.concatenate([_double(expansion.basis.columns(T)), _double(T)], axis=1)
        coef = np.concatenate([_double(expansion.coef), _double(expansion.slopes)])
    else:
        V = expansion.vectors
        K, coef = _double(expansion.kernel(V[::step, :], V)), _double(expansion.coef)
    noise = float(np.finfo(np.float32).eps) * (np.abs(K) @ np.abs(coef)).max()
    size = float(np.abs(K @ coef + _double(expansion.offset)).max())
    if noise > ROUNDING * size:
        warnings.warn(
            f'{caller}: with dtype="float" rounding may change the outputs of this {owner} by about {noise:.1g} (the '
            f'largest is about {size:.1g}), because its coefficients cancel; use dtype="double", or fit with a ridge '
            "or fewer vectors.",
            UserWarning,
            stacklevel=5,
        )
