"""From any fitted model to its plan: one or more sums over vectors, for numbers of a given type.

Widths of kernels, the scaling of a density and the scalers of a pipeline all become the first step of a sum.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.arrays.storable import stored_classes
from fewkern.arrays.validation import unwrapped
from fewkern.base import set_threshold
from fewkern.core.components import check_sees_columns
from fewkern.core.expansion import KernelExpansion, Prepared, Preparing, Standardization
from fewkern.core.gaussians import GaussianExpansion, Preparation
from fewkern.core.kernels import Gaussian, Laplacian, Linear, LinearSpline, Polynomial
from fewkern.core.preparation import BEYOND, UNKNOWN, Levels
from fewkern.density.mixture import ClassMixtures, KernelMixture
from fewkern.io.pipelines import LinearEnd, StepFeatures, identity, split_end
from fewkern.io.plan import DTYPES, ROUNDING, Bounds, Cell, Classes, Inputs, LogSum, Lookup, Plan, Sum, Vector
from fewkern.io.trial import first_step, is_fitted
from fewkern.select.base import interval_quantiles

_KINDS: dict[type, Any] = {
    Gaussian: "gaussian",
    Laplacian: "laplacian",
    Polynomial: "polynomial",
    Linear: "linear",
    LinearSpline: "spline",
}
# Largest number of vectors at which the rounding error is estimated.
_ROUNDING_ROWS = 1000


def plan(model: Any, dtype: str, caller: str, coverage: float | None = None, false_alarms: float | None = None) -> Plan:
    """Describe ``model`` for numbers of type ``dtype``; ``caller`` begins the error messages.

    Intervals or sets of classes are part of the plan where ``coverage`` is given, novelty where ``false_alarms`` is.
    """
    if dtype not in DTYPES:
        raise ValueError(f'{caller}: dtype must be "float" or "double", got {dtype!r}.')
    found = _unwrap(unwrapped(model, caller), caller)
    last, notes = found.model, found.notes
    values: Any
    if isinstance(last, LinearEnd):
        name, expansions, values = type(last.last).__name__, (_on_features(last, caller),), "predict"
        owner = f"{name} on the features of {type(last.transformer).__name__}"
        classes, more = last.classes()
        notes += more
    else:
        owner = name = type(last).__name__
        expansions, values = _expansions(last, caller), _values_of(last)
        classes = _classes(last) if hasattr(last, "class_scores_") else None
    n_features, inputs, scaler = _features(expansions[0], found, caller)
    add = functools.partial(_sum, dtype=dtype, caller=caller, owner=owner)
    if any(isinstance(one, KernelMixture) and one.bounds is not None for one in expansions):
        raise ValueError(
            f"{caller}: this {name} has features with bounds or a period, which cannot be written yet; fit it without "
            "bounds and periodic, or keep it in Python with save."
        )
    sums = tuple(
        _log_sum(one, scaler, dtype, found.log_unit) if isinstance(one, KernelMixture) else add(one, scaler)
        for one in expansions
    )
    described = Plan(
        f"{owner}, {_kernel_name(expansions[0])}, {sum(one.n_vectors for one in expansions)} vectors of "
        f"{n_features if inputs is None else inputs.count} features",
        name,
        n_features,
        found.feature_names or _names(last),
        sums,
        None if values == "predict" and classes is not None else values,
        classes,
        notes,
        inputs,
    )
    if false_alarms is not None:
        described = _with_novelty(described, last, false_alarms, scaler, add)
    return described if coverage is None else _with_coverage(described, last, coverage, scaler, add)


def inner_model(model: Any, caller: str) -> Any:
    """The model of fewkern inside a search, a pipeline or a model of tables."""
    return _unwrap(unwrapped(model, caller), caller).model


def _has_levels(expansion: Any) -> bool:
    """Whether some columns of a function are categories."""
    return isinstance(expansion, GaussianExpansion) and expansion.basis.preparation.levels is not None


def _features(expansion: Any, found: Prepared, caller: str) -> tuple[int, Inputs | None, Standardization]:
    """Number of the features that sums see, how the inputs become them, and the scaler after that.

    Of a category the features are the positions of its level, in a table.
    """
    if not _has_levels(expansion):
        count = int(expansion.vectors.shape[1])
        return count, found.inputs, found.scaling or identity(count)
    if found.inputs is not None or found.scaling is not None:
        raise TypeError(
            f"{caller}: a {type(found.model).__name__} with categories takes its columns as they are, and here steps "
            "of a pipeline come before it; export the last step alone."
        )
    preparation = expansion.basis.preparation
    levels: Levels = preparation.levels
    parts: list[Cell] = [Cell(int(column), None) for column in preparation.columns]
    columns, counts, starts = (to_numpy(one) for one in (levels.columns, levels.counts, levels.starts))
    positions = _double(levels.positions)
    for column in dict.fromkeys(columns.tolist()):
        own = np.flatnonzero(columns == column)
        table = positions[starts[own] + np.arange(counts[own[0]] + BEYOND)[:, None]]
        # the code -1 stands for a gap
        keys = np.append(np.arange(len(table) - BEYOND, dtype=float), -1.0)
        parts.append(
            Lookup(column, -1.0, keys, np.delete(table, len(table) - BEYOND + UNKNOWN, axis=0), table[UNKNOWN - BEYOND])
        )
    return preparation.n_prepared, Inputs(preparation.n_columns, tuple(parts), {}), identity(preparation.n_prepared)


def refuse_columns(model: Any, caller: str) -> None:
    """An error for a model of the learner with categories, or with gaps in the columns it was fitted to."""
    inner = inner_model(model, caller)
    expansion = getattr(inner, "expansion_", inner)
    if isinstance(expansion, GaussianExpansion):
        preparation = expansion.basis.preparation
        if preparation.levels is not None or preparation.gaps is not None:
            raise ValueError(
                f"{caller}: this {type(inner).__name__} was fitted to categories or gaps, which can be written to C "
                "(in float or double) and to ONNX only; use to_c or to_onnx."
            )


def _kernel_name(expansion: Any) -> str:
    if isinstance(expansion, KernelMixture):
        return "normal kernels"
    if isinstance(expansion, GaussianExpansion):
        return "Gaussians in a learned metric"
    return f"{type(expansion.kernel).__name__} kernel"


def _with_coverage(
    described: Plan, model: Any, coverage: float, scaler: Standardization, add: functools.partial[Sum]
) -> Plan:
    """The plan with intervals or sets of classes."""
    if described.classes is not None and described.classes.probable and hasattr(model, "predict_set"):
        # above 1 all classes are in the set; where too few samples were held out, the threshold is infinite
        return replace(described, coverage=coverage, set_threshold=min(set_threshold(model, coverage), 2.0))
    if not hasattr(model, "predict_interval"):
        raise ValueError(
            f"{add.keywords['caller']}: coverage is for models with predict_interval or predict_set, and "
            f"{described.model} has none of them; leave coverage out."
        )
    intervals = interval_quantiles(model, coverage)
    lower, upper = intervals.ends(coverage)
    bounds = Bounds(np.array(lower), np.array(upper))
    if intervals.scale is not None:
        bounds = replace(bounds, scale=add(intervals.scale, scaler), limits=_double(intervals.limits))
    return replace(described, coverage=coverage, bounds=bounds)


def _with_novelty(
    described: Plan, model: Any, false_alarms: float, scaler: Standardization, add: functools.partial[Sum]
) -> Plan:
    name, caller = described.model, add.keywords["caller"]
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
    if _has_levels(getattr(model, "expansion_", None)):
        raise ValueError(
            f"{caller}: the novelty of a {name} with categories cannot be written yet; leave false_alarms out, or "
            "compute it in Python."
        )
    preparation = model.novelty_.preparation
    features = add(basis.expansion(), scaler if preparation is None else identity(preparation.n_columns))
    if preparation is not None:
        features = replace(features, bends=preparation_bends(preparation, scaler), gaps=_gaps(preparation))
    return replace(described, false_alarms=false_alarms, novelty=features, novelty_threshold=threshold)


def _on_features(end: LinearEnd, caller: str) -> KernelExpansion:
    """A linear model of the features that a transformer of ours makes: another sum over the same vectors."""
    (below,) = _expansions(end.transformer, caller)
    weights, offset = end.affine(below.n_outputs, caller)
    coef, values = _double(below.coef), _double(below.offset)
    return KernelExpansion(below.kernel, below.vectors, coef @ weights, values @ weights + offset)


def _values_of(model: Any) -> Any:
    if isinstance(getattr(model, "expansion_", model), KernelMixture):
        return "log_density"
    return "transform" if hasattr(model, "transform") else "predict"


def _classes(model: Any) -> Classes:
    scores = model.class_scores_
    own = {name: getattr(scores, name) for name in ("weights", "offset")}
    scores = replace(scores, **{name: None if array is None else _double(array) for name, array in own.items()})
    return Classes(to_numpy(model.classes_), scores, hasattr(model, "predict_proba"))


def _names(model: Any) -> tuple[str, ...] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def _unwrap(model: Any, caller: str) -> Prepared:
    """The fewkern model inside something that prepares its samples, or at the end of a pipeline."""
    if isinstance(model, Preparing):
        return model.prepared()
    if not isinstance(model, Pipeline):
        return Prepared(model)
    _check_fitted(model, caller)
    before, end = split_end(model)
    if isinstance(end, Preparing):
        raise TypeError(f"{caller}: a {type(end).__name__} prepares its rows itself; export it without the pipeline.")
    _expansions(end.transformer if isinstance(end, LinearEnd) else end, caller)  # says first if it is not ours
    count = int(first_step(model).n_features_in_)  # a pipeline asks its first place, even if it is empty
    features = StepFeatures(before, count, caller)
    names = next((_names(step) for step in (*before, end) if _names(step)), None)
    return Prepared(end, features.scaling, names, notes=features.notes(), inputs=features.inputs())


def _check_fitted(model: Any, caller: str) -> None:
    if not is_fitted(model):
        raise NotFittedError(f"{caller}: this {type(model).__name__} is not fitted; call fit first.")


def _expansions(model: Any, caller: str) -> tuple[Any, ...]:
    """What the model sums up: one expansion, or one density per class."""
    name = type(model).__name__
    if isinstance(model, (KernelExpansion, GaussianExpansion, KernelMixture)):
        check_sees_columns(model, caller)
        return (model,)
    if name not in stored_classes() or not isinstance(model, BaseEstimator):
        raise TypeError(
            f"{caller}: expected a fitted estimator of fewkern, a pipeline that ends in one (or in a linear model of "
            f"its features), or an expansion, got {name}."
        )
    _check_fitted(model, caller)
    if not hasattr(model, "expansion_") and not hasattr(model, "basis_"):
        raise TypeError(
            f"{caller}: a {name} has no kernels to write; export a model that predicts, such as a TableModel, which "
            "contains its encoder."
        )
    found = model.expansion_ if hasattr(model, "expansion_") else model.basis_.expansion()
    check_sees_columns(found, caller)
    if isinstance(found, ClassMixtures):
        return found.mixtures
    if found.n_outputs == 0:
        raise ValueError(
            f"{caller}: this {name} found no component, so there is nothing to write; fit it with other settings first."
        )
    return (found,)


# The sums


def _double(x: Any) -> Vector:
    """An array of any library, dense or sparse, in double precision."""
    return np.asarray(x.toarray() if is_sparse(x) else to_numpy(x), dtype=np.float64)


def _sum(expansion: Any, scaler: Standardization, dtype: str, caller: str, owner: str) -> Sum:
    """An expansion at samples that a scaler changes first; ``owner`` is the model in errors of ``caller``."""
    if isinstance(expansion, GaussianExpansion):
        found = _gaussians(expansion, scaler)
    else:
        _check_kernel(expansion.kernel, caller, owner)
        found = _kernels(expansion, scaler, dtype)
    if dtype == "float" and found.kind != "linear":
        _warn_about_rounding(expansion, caller, owner)
    return found


def _check_kernel(kernel: Any, caller: str, owner: str) -> None:
    if type(kernel) not in _KINDS:
        raise ValueError(
            f"{caller}: this {owner} has the kernel {type(kernel).__name__}, which has no form outside of Python; fit "
            f"with one of {', '.join(cls.__name__ for cls in _KINDS)} to export a model."
        )
    rules = [f"{key}={value!r}" for key, value in kernel.rules.items()]
    if rules:
        raise ValueError(
            f"{caller}: the kernel of this {owner} has {', '.join(rules)}, a rule in place of a number; use "
            "kernel.resolve(X) with the training samples X, as an estimator does."
        )


def _kernels(expansion: KernelExpansion, scaler: Standardization, dtype: str) -> Sum:
    """A sum of kernels that have no widths."""
    kernel: Any = expansion.kernel
    kind = _KINDS[type(kernel)]
    V, coef, offset = (_double(a) for a in (expansion.vectors, expansion.coef, expansion.offset))
    if not len(V):  # no vector was kept
        return Sum("linear", np.zeros((len(offset), len(scaler.shift))), offset)
    if kind in ("linear", "polynomial"):
        shift = factor = None
        rest = np.zeros_like(scaler.shift)  # what z lacks since the shift is rounded
        if scaler.shift.any() or np.any(scaler.factor != 1):
            shift, factor = scaler.shift.astype(DTYPES[dtype]).astype(np.float64), scaler.factor
            rest = (shift - scaler.shift) * factor
        if kind == "linear":
            # sum_j c_j <z, v_j> is one vector per output, however many samples were kept
            vectors = coef.T @ V
            return Sum("linear", vectors, offset + vectors @ rest, shift=shift, factor=factor)
        vectors = V * float(kernel.gamma)
        constant = float(kernel.coef0) + vectors @ rest
        return Sum("polynomial", vectors, offset, coef, shift, factor, int(kernel.degree), constant)
    if kind == "spline":
        centre, gain = np.broadcast_to(_double(kernel.origin), V.shape[1:]), np.ones(V.shape[1])
    else:
        # the median: one far vector does not carry it away from the others
        centre, unit = np.median(V, axis=0), np.sqrt(2.0) if kind == "gaussian" else 1.0
        gain = np.broadcast_to(1.0 / (unit * _double(kernel.length_scale)), V.shape[1:])
    shift, factor, vectors = _centred(V, centre, gain, scaler, dtype)
    return Sum(kind, vectors, offset, coef, shift, factor)


def _centred(
    V: Vector, centre: Vector, gain: Vector, scaler: Standardization, dtype: str
) -> tuple[Vector, Vector, Vector]:
    """Shift and factor of ``z = gain (u - centre)`` seen from the samples, and the vectors after it.

    The shift is first rounded to a number of the file, and the vectors are moved with what it then is: far from the
    origin nothing is lost but what a sample itself loses when it is stored.
    """
    shift = (scaler.shift + centre / scaler.factor).astype(DTYPES[dtype]).astype(np.float64)
    moved = V - (shift - scaler.shift) * scaler.factor
    if gain.ndim == 1:
        return shift, scaler.factor * gain, moved * gain
    return shift, gain * scaler.factor[None, :], moved @ gain.T


def _log_sum(mixture: KernelMixture, scaler: Standardization, dtype: str, log_unit: float) -> LogSum:
    """A density at samples that a scaler changes first; ``log_unit`` is added to its logarithm."""
    weights, widths = _double(mixture.weights), _double(mixture.bandwidths)
    V, transform = _double(mixture.vectors), _double(mixture.transform)
    kept, dim = weights > 0, V.shape[1]
    shift, factor, vectors = _centred(V[kept], np.median(V, axis=0), transform, scaler, dtype)
    determinant = np.log(np.abs(transform)).sum() if transform.ndim == 1 else np.linalg.slogdet(transform)[1]
    level = np.log(weights[kept]) - dim * np.log(widths[kept])
    level += determinant - 0.5 * dim * np.log(2 * np.pi) + log_unit
    return LogSum(vectors, level, 0.5 / widths[kept] ** 2, shift, factor)


def preparation_bends(preparation: Preparation, scaler: Standardization) -> tuple[tuple[Vector, Vector], ...]:
    """Knots and values of every column as the samples see them: the scaler before the preparation moves the knots."""
    knots, values = _double(preparation.knots), _double(preparation.values).copy()
    levels = () if preparation.levels is None else preparation.levels.tables()
    scaler = Standardization(scaler.shift[: knots.shape[1]], scaler.factor[: knots.shape[1]])
    # a knot at the place of the one before it adds nothing
    new = np.diff(knots, axis=0) > 0
    kept = np.concatenate([np.ones_like(knots[:1], dtype=bool), new])
    values[1:] -= np.cumsum(np.where(new, 0.0, np.diff(values, axis=0)), axis=0)
    knots = scaler.shift + knots / scaler.factor
    numbers = ((knots[own, a], values[own, a]) for a, own in enumerate(kept.T))
    # features of levels are positions already
    return (*numbers, *((np.unique(table[[0, -1]]),) * 2 for table in map(np.sort, levels)))


def _gaps(preparation: Preparation) -> Vector | None:
    """What becomes of NaN; tables have taken care of it."""
    if preparation.gaps is None:
        return None
    return np.concatenate([_double(preparation.gaps), np.zeros(preparation.n_prepared - len(preparation.gaps))])


def _gaussians(expansion: GaussianExpansion, scaler: Standardization) -> Sum:
    """Gaussians around vectors in the coordinates of the metric, and the linear part."""
    basis, gaps = expansion.basis, _gaps(expansion.basis.preparation)
    bends = preparation_bends(basis.preparation, scaler)
    coef, offset, slopes = (_double(a) for a in (expansion.coef, expansion.offset, expansion.slopes.T))
    if not len(coef):
        return Sum("linear", slopes, offset, bends=bends, gaps=gaps)
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
        gaps=gaps,
        directions=directions if len(directions) else None,
        narrow=None if common == widths[0] else widths**2,
        slopes=slopes if slopes.any() else None,
    )


def _warn_about_rounding(expansion: Any, caller: str, owner: str) -> None:
    """Warn if coefficients of both signs cancel so far that seven digits leave little of the sum."""
    step = max(1, -(-expansion.n_vectors // _ROUNDING_ROWS))
    coef = _double(expansion.coef)
    if isinstance(expansion, GaussianExpansion):
        T = expansion.basis.vectors[::step, :]
        K = np.concatenate([_double(expansion.basis.columns(T)), _double(T)], axis=1)
        coef = np.concatenate([coef, _double(expansion.slopes)])
    else:
        K = _double(expansion.kernel(expansion.vectors[::step, :], expansion.vectors))
    noise = float(np.finfo(np.float32).eps) * (np.abs(K) @ np.abs(coef)).max()
    size = float(np.abs(K @ coef + _double(expansion.offset)).max())
    if noise > ROUNDING * size:
        warnings.warn(
            f'{caller}: with dtype="float" rounding may change the outputs of this {owner} by about {noise:.1g} (the '
            f'largest is about {size:.1g}), because its coefficients cancel; use dtype="double", or fit with a ridge '
            "or fewer vectors.",
            UserWarning,
            stacklevel=6,
        )
