"""A fitted model that was read is asked for predictions at its own vectors; what passes holds no surprises."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.namespace import is_sparse
from fewkern.io.columns import positions
from fewkern.io.steps import is_no_step

__all__ = ["is_fitted", "try_model"]

_METHODS = ("predict", "predict_proba", "decision_function", "score_samples")
# Rows of its own vectors that a model is tried on.
_TRIAL_ROWS = 4
# An answer above this part of the largest number leaves no room for samples a little further out.
_HEADROOM = 1e-8
# A trial row may have so many features where no array of the model vouches for them.
_FREE_FEATURES = 2**20


def is_fitted(model: Any) -> bool:
    """Whether an estimator was fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def try_model(model: BaseEstimator) -> None:
    """Ask a fitted model for everything that it can say of a few samples; its answers must be finite, and fit."""
    name = type(model).__name__
    model.get_params(deep=False)
    if not is_fitted(model):
        return
    classes = getattr(model, "classes_", None)
    if classes is not None and (not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2):
        raise ValueError(f"{name}.classes_ is not a list of classes")
    samples, tried = _trial_samples(model), _without_names(model)
    with np.errstate(all="ignore"):
        # one row first: with several, wrong shapes may broadcast to right ones
        for X in (samples[:1], samples):
            for method in _METHODS:
                if hasattr(tried, method):
                    answer = getattr(tried, method)(X)
                    _check_answer(answer, X.shape[0], f"{name}.{method}")
                    if classes is not None and method in ("predict_proba", "decision_function"):
                        _check_columns(answer, len(classes), f"{name}.{method}")
            if hasattr(tried, "transform"):
                _try_transform(tried, X)
        _try_table(model, samples)


def _try_table(model: Any, samples: Any) -> None:
    """Steps with names of features hand tables to each other, and must agree on the names."""
    names = getattr(_first_step(model), "feature_names_in_", None)
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


def _check_columns(answer: Any, n_classes: int, where: str) -> None:
    """One column per class; scores of two classes may be one number per row."""
    columns = 2 if answer.ndim == 1 else answer.shape[1]
    if columns != n_classes:
        raise ValueError(f"{where} has the shape {answer.shape} for {n_classes} classes")


def _try_transform(model: Any, X: Any) -> None:
    name, n = type(model).__name__, X.shape[0]
    features = model.transform(X)
    _check_answer(features, n, f"{name}.transform")
    if features.shape[1] != getattr(model, "_n_features_out", features.shape[1]):
        raise ValueError(f"{name}.transform has {features.shape[1]} columns")
    if hasattr(model, "inverse_transform") and not _imputes(model):
        try:
            back = model.inverse_transform(features)
        except ValueError as error:
            # not every kernel has a way back; the model says so in its own name
            if not str(error).startswith(name):
                raise
        else:
            _check_answer(back, n, f"{name}.inverse_transform")
            if back.shape != X.shape:
                raise ValueError(f"{name}.inverse_transform has {back.shape[1]} columns")


def _imputes(model: Any) -> bool:
    """Whether a step forgets which numbers were missing, so that nothing leads back, whatever its methods say."""
    return isinstance(model, SimpleImputer) or any(_imputes(step) for _, step in getattr(model, "steps", ()))


def _check_answer(answer: Any, n: int, where: str) -> None:
    if answer.shape[:1] != (n,) or answer.ndim > 2:
        raise ValueError(f"{where} gives the shape {answer.shape}")
    entries = answer.data if is_sparse(answer) else answer
    if entries.dtype.kind == "f" and not np.all(np.abs(entries) <= _HEADROOM * np.finfo(entries.dtype).max):
        raise ValueError(f"{where} gives NaN or infinity, or nearly so")


def _trial_samples(model: Any) -> Any:
    """A few of the model's own vectors; where these are not samples, one row of ones."""
    first, vectors = _first_step(model), getattr(_last_step(model), "vectors_", None)
    d: Any = first.n_features_in_
    if type(d) is not int or d < 1:
        raise ValueError(f"{type(model).__name__}.n_features_in_ is {d!r}")
    names = getattr(first, "feature_names_in_", None)
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (d,)):
        raise ValueError(f"{type(model).__name__}.feature_names_in_ does not name {d} features")
    own: Any = vectors if first is model and getattr(vectors, "shape", (0, 0))[1:] == (d,) else None
    if own is not None and own.shape[0] and (is_sparse(own) or own.dtype.kind == "f"):
        return own[:_TRIAL_ROWS]
    if is_sparse(vectors) and not isinstance(first, (ColumnTransformer, OneHotEncoder, OrdinalEncoder, SimpleImputer)):
        return sp.csr_array((1, d))
    if d > max(_FREE_FEATURES, _n_numbers(model)):
        raise ValueError(f"{type(model).__name__}.n_features_in_ is {d}")
    cells = _example(model, d)
    return np.array([cells], dtype=object if any(isinstance(cell, str) for cell in cells) else float)


def _example(step: Any, d: int) -> list[Any]:
    """A row of ``d`` cells that a step has seen the like of: a category where it expects one, elsewhere a number."""
    cells: list[Any] = [1.0] * d
    if isinstance(step, (OneHotEncoder, OrdinalEncoder)) and len(step.categories_) == d:
        return [values[0] for values in step.categories_]
    if isinstance(step, ColumnTransformer) and step.n_features_in_ == d:
        for _, part, columns in step.transformers_:
            places = positions(step, columns)
            for place, cell in zip(places, _example(part, len(places))):
                cells[place] = cell
    # the first step that expects categories, after imputers
    for _, inner in getattr(step, "steps", ()):
        if cells == [1.0] * d:
            cells = _example(inner, d)
    return cells


def _first_step(model: Any) -> Any:
    steps = [step for _, step in getattr(model, "steps", ()) if not is_no_step(step)]
    return _first_step(steps[0]) if steps else model


def _last_step(model: Any) -> Any:
    return _last_step(model.steps[-1][1]) if hasattr(model, "steps") else model


def _n_numbers(value: Any) -> int:
    """Size of the largest array inside ``value``."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, (list, tuple)):
        return max(map(_n_numbers, value), default=0)
    if isinstance(value, (str, int, float, type(None), Enum)) or is_sparse(value):
        return 0
    return max(map(_n_numbers, vars(value).values()), default=0) if hasattr(value, "__dict__") else 0


def _without_names(model: Any) -> Any:
    """A shallow copy that takes and gives arrays: it knows neither its feature names nor of tables to make."""
    copied = copy.copy(model)
    for name in ("feature_names_in_", "_sklearn_output_config"):
        copied.__dict__.pop(name, None)
    if "steps" in copied.__dict__:  # a pipeline asks its first step
        copied.steps = [(name, step if is_no_step(step) else _without_names(step)) for name, step in copied.steps]
    if isinstance(model, ColumnTransformer):
        copied.transformers_ = [
            (name, part if isinstance(part, str) else _without_names(part), list(positions(model, columns)))
            for name, part, columns in model.transformers_
        ]
    return copied
