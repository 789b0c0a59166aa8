"""Objects read from a file are tried: every method of an estimator is called at its own vectors."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.columns import check_categories, takes_tables, with_levels
from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.storable import Shape, Stored, floats, samples
from fewkern.base import check_samples
from fewkern.core.components import sees_components
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.density.mixture import ClassMixtures, KernelMixture
from fewkern.io.archive import Budget
from fewkern.io.fields import check_arrays, check_fields, fits
from fewkern.io.steps import column_positions, is_no_step
from fewkern.learn.base import LearningEstimator
from fewkern.learn.batches import Sums, same_basis, sums_before

# Functions that a file may hold without an estimator around them.
FUNCTIONS = (KernelExpansion, GaussianExpansion, KernelMixture, ClassMixtures)
_METHODS = ("predict", "predict_proba", "decision_function", "score_samples")
# Shares of one row that are tried: columns times values. More would take more memory than a file may.
_MOST_SHARES = 100_000
# Rows of its own vectors that a model is tried on.
_TRIAL_ROWS = 4
# An answer above this fraction of the largest number leaves no room for samples a little further out.
_HEADROOM = 1e-8
# What set_output can have said.
_OUTPUTS = [{"transform": kind} for kind in ("default", "pandas", "polars")]
# Arrays that an estimator keeps beside its functions: ``m`` vectors, ``d`` features.
_ARRAYS: dict[str, tuple[Shape, ...]] = {"vectors_": (samples("m", "k"),), "_importances": (floats("d"),)}
# Methods that not every model can answer, and what they are asked: few held-out samples are enough for one half.
_PROMISES: dict[str, dict[str, float]] = {
    "predict_set": {"coverage": 0.5},
    "predict_interval": {"coverage": 0.5},
    "predict_quantile": {"q": 0.5},
    "predict_std": {},
    "novelty": {},
    "novelty_pvalue": {},
}


def is_fitted(model: Any) -> bool:
    """Whether an estimator was fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def check_object(made: Any, stored: Stored, budget: Budget) -> None:
    """Raise a ValueError if ``made`` contradicts its class or itself."""
    if dataclasses.is_dataclass(made):
        check_fields(made, stored)
    if isinstance(made, BaseEstimator):
        _check_names(made)
        if get_tags(made).input_tags.two_d_array:  # a model of tables tries itself
            try_model(made, budget)
    if stored.check is not None:
        stored.check(made)


def _check_names(model: BaseEstimator) -> None:
    """No attribute of the file stands in the way of a method."""
    for name in vars(model):
        if name.startswith("__") or callable(getattr(type(model), name, None)):
            raise ValueError(f"{type(model).__name__} has an attribute {name}")
    if vars(model).get("_sklearn_output_config", _OUTPUTS[0]) not in _OUTPUTS:
        raise ValueError(f"{type(model).__name__} has an unknown output format")


def _is_ours(model: Any) -> bool:
    return type(model).__module__.startswith("fewkern.")


def try_model(model: BaseEstimator, budget: Budget) -> None:
    """Call every method of a fitted model on a few samples; its results must be finite and have the right shapes."""
    name = type(model).__name__
    if _is_ours(model) and hasattr(model, "_parameter_constraints"):  # what compress returns has no parameters
        model._validate_params()
    if not is_fitted(model):
        return
    classes = getattr(model, "classes_", None)
    if classes is not None and (not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2):
        raise ValueError(f"{name}.classes_ is not a list of classes")
    _check_levels(model)
    rows, tried = _trial_samples(model, budget), _without_names(model)
    kept = {attribute: value for attribute in _ARRAYS if (value := vars(model).get(attribute)) is not None}
    check_arrays(name, kept, _ARRAYS, {"m": vars(model).get("n_vectors_", 0), "d": rows.shape[1]})
    # one row first: with several, wrong shapes may broadcast to right ones
    for X in (rows[:1], rows):
        try_methods(tried, X)
        if hasattr(tried, "transform"):
            _try_transform(tried, X)
    _try_table(model, rows)
    if isinstance(tried, LearningEstimator):
        _try_learning(tried, rows[:1])


def try_methods(model: Any, X: Any) -> None:
    """Call the methods for predictions, intervals, sets and novelty; all return one row per row of ``X``."""
    name, n, classes = type(model).__name__, X.shape[0], getattr(model, "classes_", None)
    for method in _METHODS:
        if hasattr(model, method):
            answer = getattr(model, method)(X)
            check_answer(answer, n, f"{name}.{method}")
            # scores of two classes may be one number per row
            columns = 2 if answer.ndim == 1 else answer.shape[1]
            if classes is not None and method in ("predict_proba", "decision_function") and columns != len(classes):
                raise ValueError(f"{name}.{method} has the shape {answer.shape} for {len(classes)} classes")
    if hasattr(model, "predict_log_proba"):
        model.predict_log_proba(X)
    for method, given in _PROMISES.items():
        _try_promise(model, method, n, X, **given)
    if hasattr(model, "predict_quantile"):  # a density has another cdf
        _try_promise(model, "cdf", n, X, y=0.0)
    _try_promise(model, "novelty_threshold", 1, false_alarms=0.5)
    outputs = max(getattr(getattr(model, "expansion_", None), "n_outputs", 1), 0 if classes is None else len(classes))
    if hasattr(model, "explain") and n == 1 and X.shape[1] * outputs <= _MOST_SHARES:
        _try_promise(model, "explain", 1, X)


def _try_learning(model: LearningEstimator, X: Any) -> None:
    """The sums of a file make a function of the same features and values, and go on adding up."""
    given = [vars(model).get(name) for name in ("_sums", "_fitted_to")]
    if not all(fits(sums, Sums | None) for sums in given):
        raise ValueError(f"the sums of {type(model).__name__} are not sums over rows")
    if not any(given):
        return
    sums = sums_before(model)
    assert sums is not None
    function = (sums + sums).expansion()
    same = same_basis(sums.basis, model.basis_) and function.n_outputs == model.expansion_.n_outputs
    # forget, unless it refuses components, looks for rows among the vectors, and among those of the novelty
    same = same and (sees_components(sums.basis) or model.vectors_.shape[1:] == X.shape[1:])
    same = same and "novelty_" in vars(model)
    if not same or not math.isfinite(sums.factor):
        raise ValueError(f"{type(model).__name__} has sums that it cannot learn from")
    check_answer(function(check_samples(model, X)), X.shape[0], f"{type(model).__name__}.merge")


def _try_promise(model: Any, method: str, n: int, *asked: Any, **given: float) -> Any:
    """The answer of a method that some models do not support: their error begins with the name of the class."""
    if not hasattr(model, method):
        return None
    own = {type(one).__name__ for one in (model, getattr(model, "estimator_", model))}
    try:
        answer = getattr(model, method)(*asked, **given)
    except (ValueError, AttributeError) as error:
        if not str(error).startswith(tuple(own)):
            raise
        return None
    answer, where = np.atleast_1d(answer.values if method == "explain" else answer), f"{type(model).__name__}.{method}"
    check_answer(answer, n, where)
    if method == "predict_interval" and not np.all(answer[..., 0] <= answer[..., 1]):
        raise ValueError(f"{where} gives a lower bound above the upper one")
    return answer


def try_function(function: Any, budget: Budget) -> None:
    """Evaluate a function at a few samples, and all methods of a density."""
    name, vectors = type(function).__name__, function.vectors
    m, d = vectors.shape
    if isinstance(function, KernelExpansion) and function.kernel.pairwise:
        # vectors are row numbers, and samples have a column per row
        m, d = 0, int(vectors.max()) + 1 if m else 1
    if not m:
        budget.check_columns(d)
    samples = vectors[:_TRIAL_ROWS] if m else np.ones((1, d))
    for X in (samples[:1], samples):
        check_answer(function(X), X.shape[0], f"{name}()")
    if isinstance(function, KernelMixture):
        for part in (function, function.marginal([0])):
            check_answer(part.mean(), part.vectors.shape[1], f"{name}.mean")
            check_answer(part.sample(1, 0), 1, f"{name}.sample")
        if function.transform.ndim == 1 or d == 1:
            check_answer(function.cdf(samples), samples.shape[0], f"{name}.cdf")


def _try_table(model: Any, samples: Any) -> None:
    """Steps with names of features hand tables to each other, and must agree on the names."""
    names = getattr(first_step(model), "feature_names_in_", None)
    if names is None or is_sparse(samples) or not isinstance(model, Pipeline):
        return
    try:
        import pandas as pd
    except ImportError:  # without it there are no tables, and the names are not used
        return
    table = pd.DataFrame({name: list(samples[:, i]) for i, name in enumerate(names)})
    for method in ("predict", "transform", "score_samples"):
        if hasattr(model, method):
            getattr(model, method)(table)


def _try_transform(model: Any, X: Any) -> None:
    name, n = type(model).__name__, X.shape[0]
    features = model.transform(X)
    check_answer(features, n, f"{name}.transform")
    if features.shape[1] != getattr(model, "_n_features_out", features.shape[1]):
        raise ValueError(f"{name}.transform has {features.shape[1]} columns")
    back = _try_promise(model, "inverse_transform", n, features) if _is_ours(model) else None
    if back is not None and back.shape != X.shape:
        raise ValueError(f"{name}.inverse_transform has {back.shape[1]} columns")


def check_answer(answer: Any, n: int, where: str) -> None:
    """Raise a ValueError unless an answer has ``n`` rows of finite numbers, or of labels."""
    if answer.shape[:1] != (n,):
        raise ValueError(f"{where} gives the shape {answer.shape}")
    entries = answer.data if is_sparse(answer) else answer
    if entries.dtype.kind == "f" and not np.all(np.abs(entries) <= _HEADROOM * np.finfo(entries.dtype).max):
        raise ValueError(f"{where} gives NaN or infinity, or nearly so")


def _trial_samples(model: Any, budget: Budget) -> Any:
    """A few of the model's own vectors; where these are not samples, one row of ones."""
    first = first_step(model)
    vectors: Any = getattr(_last_step(model), "vectors_", None)
    d, names = first.n_features_in_, getattr(first, "feature_names_in_", None)
    if names is not None and np.shape(names) != (d,):
        raise ValueError(f"{type(model).__name__}.feature_names_in_ does not name {d} features")
    own = first is model and getattr(vectors, "shape", ())[1:] == (d,)
    if own and vectors.shape[0] and vectors.dtype.kind == "f":
        return with_levels(vectors[:_TRIAL_ROWS], getattr(model, "categories_", None))
    categories = _categories(model, d)
    if is_sparse(vectors) and not categories:
        budget.check_columns(d, sparse=True)
        return sp.csr_array((1, d))
    budget.check_columns(d)
    row = with_levels(np.ones((1, d)), getattr(first, "categories_", None) if takes_tables(first) else None)
    row = row.astype(object)
    for place, category in categories.items():
        row[0, place] = category
    return row


def _check_levels(model: Any) -> None:
    """The levels of the columns are those of the tables of the function."""
    if not takes_tables(model):
        return
    expansion, name = getattr(model, "expansion_", None), type(model).__name__
    categories = vars(model).get("categories_")
    levels = expansion.basis.preparation.levels if isinstance(expansion, GaussianExpansion) else None
    check_categories(categories, getattr(model, "n_features_in_", None), name)
    found = {j: len(own) for j, own in enumerate(categories or ()) if own is not None}
    if found != ({} if levels is None else dict(zip(levels.columns.tolist(), levels.counts.tolist()))):
        raise ValueError(f"{name}.categories_ has other levels than its function")


def _categories(step: Any, d: int) -> dict[int, Any]:
    """One category of every feature of which a step expects categories, among ``d`` features."""
    if isinstance(step, (OneHotEncoder, OrdinalEncoder)) and len(step.categories_) == d:
        return {place: values[0] for place, values in enumerate(step.categories_)}
    found: dict[int, Any] = {}
    if isinstance(step, ColumnTransformer) and step.n_features_in_ == d:
        for _, part, columns in step.transformers_:
            places = column_positions(step, columns)
            found |= {places[at]: category for at, category in _categories(part, len(places)).items()}
    # the first step that expects categories, after imputers
    for _, inner in getattr(step, "steps", ()):
        found = found or _categories(inner, d)
    return found


def first_step(model: Any) -> Any:
    """What sees the samples first: the model itself, or a step of a pipeline that is not empty."""
    steps = [step for _, step in getattr(model, "steps", ()) if not is_no_step(step)]
    return first_step(steps[0]) if steps else model


def _last_step(model: Any) -> Any:
    return _last_step(model.steps[-1][1]) if hasattr(model, "steps") else model


def _without_names(model: Any) -> Any:
    """A shallow copy without feature names and output settings, which takes and returns arrays."""
    copied = copy.copy(model)
    for name in ("feature_names_in_", "_sklearn_output_config"):
        copied.__dict__.pop(name, None)
    if "steps" in copied.__dict__:  # a pipeline asks its first step
        copied.steps = [(name, step if is_no_step(step) else _without_names(step)) for name, step in copied.steps]
    if isinstance(model, ColumnTransformer):
        copied.transformers_ = [
            (name, part if isinstance(part, str) else _without_names(part), list(column_positions(model, columns)))
            for name, part, columns in model.transformers_
        ]
    return copied
