"""Whether an object that was read is one that its class could have made.

Three things are checked: the fields of a dataclass against their type hints, arrays against the shapes that the class
declared (:func:`fewkern.arrays.storable.storable`), and an estimator against itself, by asking it for predictions at
its own vectors (:mod:`fewkern.io.trial`).
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.storable import Shape, Stored
from fewkern.io.archive import Budget
from fewkern.io.trial import try_model

__all__ = ["check_object", "check_sparse", "fits"]

_OUTPUTS = [{"transform": kind} for kind in ("default", "pandas", "polars")]


def check_object(made: Any, stored: Stored, budget: Budget) -> None:
    """Raise a ValueError if ``made`` contradicts its class or itself."""
    if dataclasses.is_dataclass(made):
        for field, hint in _hints(stored.cls).items():
            if not fits(getattr(made, field), hint):
                raise ValueError(f"{stored.cls.__name__}.{field} is {_short(getattr(made, field))}")
        _check_shapes(made, stored)
    if isinstance(made, BaseEstimator):
        _check_names(made)
        if get_tags(made).input_tags.two_d_array:  # a model of tables tries itself
            try_model(made, budget)
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
    """Whether ``value`` has the type of a type hint.

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


def _check_names(model: BaseEstimator) -> None:
    """No attribute of the file stands in the way of a method."""
    for name in vars(model):
        if name.startswith("__") or callable(getattr(type(model), name, None)):
            raise ValueError(f"{type(model).__name__} has an attribute {name}")
    # what set_output said
    if vars(model).get("_sklearn_output_config", _OUTPUTS[0]) not in _OUTPUTS:
        raise ValueError(f"{type(model).__name__} makes tables that nobody knows")
