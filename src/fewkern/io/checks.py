"""Whether an object that was read is one that its class could have made.

Three things are compared: the fields of a dataclass with their type hints, arrays with the shapes that the class
declared (:func:`fewkern.backend.storable.storable`), and an estimator with itself, by asking it for predictions at
its own vectors. What passes can be used without surprises.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
import typing
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.namespace import is_sparse
from fewkern.backend.storable import Shape, Stored
from fewkern.io.steps import is_no_step

__all__ = ["check_object", "check_sparse", "is_fitted"]

_METHODS = ("predict", "predict_proba", "decision_function", "score_samples")
# Rows of its own vectors that a model is tried on.
_TRIAL_ROWS = 4
# An answer above this part of the largest number leaves no room for samples a little further out.
_HEADROOM = 1e-8
# A trial row may have so many features where no array of the model vouches for them.
_FREE_FEATURES = 2**20


def check_object(made: Any, stored: Stored) -> None:
    """Raise a ValueError if ``made`` contradicts its class or itself."""
    if dataclasses.is_dataclass(made):
        for field, hint in _hints(stored.cls).items():
            if not fits(getattr(made, field), hint):
                raise ValueError(f"{stored.cls.__name__}.{field} is {_short(getattr(made, field))}")
        _check_shapes(made, stored)
    if isinstance(made, BaseEstimator):
        _check_names(made)
        if get_tags(made).input_tags.two_d_array:  # a model of tables checks itself, and the models in it were tried
            _try(made)
    if stored.check is not None:
        stored.check(made)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else type(value).__name__


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` is what a type hint says.

    Examples
    --------
    >>> from fewkern.io.checks import fits
    >>> fits((1.0, 2), tuple[float, ...]), fits("x", float | None)
    (True, False)
    """
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in arguments)
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(fits(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if origin is list:
        return isinstance(value, list) and all(fits(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items()
        )
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(hint, type) and not getattr(hint, "_is_protocol", False):
        return isinstance(value, hint)
    return True


def _check_shapes(made: Any, stored: Stored) -> None:
    """Compare arrays with the shapes that their class declared; the same letter is the same number everywhere."""
    sizes: dict[str, int] = {}
    for field, wanted in stored.shapes.items():
        value = getattr(made, field)
        where = f"{stored.cls.__name__}.{field}"
        if value is None and type(None) in typing.get_args(_hints(stored.cls)[field]):
            continue
        if not isinstance(value, np.ndarray) and not (is_sparse(value) and wanted[0].kind == "samples"):
            raise ValueError(f"{where} is not an array")
        shape = next((w for w in wanted if len(w.dims) == value.ndim), wanted[0])
        if len(shape.dims) != value.ndim or any(
            sizes.setdefault(dim, size) != size for dim, size in zip(shape.dims, value.shape)
        ):
            raise ValueError(f"{where} has the shape {value.shape}")
        _check_entries(value, shape, where)


def _check_entries(value: Any, shape: Shape, where: str) -> None:
    entries = value.data if is_sparse(value) else value
    kinds = {"floats": "f", "samples": "fi", "indices": "iu"}[shape.kind]
    if entries.dtype.kind not in kinds or (entries.dtype.kind == "f" and entries.dtype.itemsize not in (4, 8)):
        raise ValueError(f"{where} has the type {entries.dtype}")
    if entries.dtype.kind in "iu":
        if entries.size and entries.min() < 0:
            raise ValueError(f"{where} has negative row numbers")
        return
    if shape.finite and not np.all(np.isfinite(entries)):
        raise ValueError(f"{where} holds NaN or infinity")
    if shape.least is not None and np.any(entries < shape.least):
        raise ValueError(f"{where} holds numbers below {shape.least}")
    if shape.above is not None and np.any(entries <= shape.above):
        raise ValueError(f"{where} holds numbers that are not above {shape.above}")


def check_sparse(parts: dict[str, Any], shape: Any) -> None:
    """Raise a ValueError if these are not the parts of a sparse matrix of that shape.

    The compiled code of SciPy trusts its row and column numbers: a wrong one reads memory that is not its own.
    """
    data, columns, starts = (parts[name] for name in ("data", "indices", "indptr"))
    if not (isinstance(shape, list) and len(shape) == 2 and all(type(n) is int and n >= 0 for n in shape)):
        raise ValueError("a sparse matrix without a shape")
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, columns, starts)):
        raise ValueError("a sparse matrix without its parts")
    if data.dtype.kind not in "fiub" or any(p.dtype not in (np.int32, np.int64) for p in (columns, starts)):
        raise ValueError("a sparse matrix of another type")
    if len(starts) != shape[0] + 1 or len(data) != len(columns):
        raise ValueError("a sparse matrix whose parts do not have the right lengths")
    if starts[0] != 0 or starts[-1] != len(data) or np.any(starts[1:] < starts[:-1]):
        raise ValueError("a sparse matrix whose rows overlap")
    if len(columns) and (columns.min() < 0 or columns.max() >= shape[1]):
        raise ValueError("a sparse matrix with entries outside of its columns")


def is_fitted(model: Any) -> bool:
    """Whether an estimator was fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _check_names(model: BaseEstimator) -> None:
    """No attribute of the file stands in the way of a method."""
    for name in vars(model):
        if name.startswith("__") or callable(getattr(type(model), name, None)):
            raise ValueError(f"{type(model).__name__} has an attribute {name}")


def _try(model: BaseEstimator) -> None:
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
    if hasattr(model, "inverse_transform"):
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
    if is_sparse(vectors):
        return sp.csr_array((1, d))
    if d > max(_FREE_FEATURES, _n_numbers(model)):
        raise ValueError(f"{type(model).__name__}.n_features_in_ is {d}")
    return np.ones((1, d))


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
    """A shallow copy that does not know its feature names, and so does not miss them in an array."""
    copied = copy.copy(model)
    copied.__dict__.pop("feature_names_in_", None)
    if "steps" in copied.__dict__:  # a pipeline asks its first step
        copied.steps = [(name, step if is_no_step(step) else _without_names(step)) for name, step in copied.steps]
    return copied
