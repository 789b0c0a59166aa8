"""Checks of what was read from a file: types of fields, and shapes and ranges of arrays.

Fields of a dataclass are checked against their type hints, arrays against the shapes that the class declared
(:func:`fewkern.arrays.storable.storable`).
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any

import numpy as np

from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.storable import Shape, Stored


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` has the type of a type hint; the entries of lists, which no stored class has, are not read.

    Examples
    --------
    >>> from fewkern.io.fields import fits
    >>> fits((1.0, 2), tuple[float, ...]), fits("x", float | None)
    (True, False)
    """
    if hint is Any:
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in arguments)
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if origin is tuple and isinstance(value, tuple):
        hints = arguments[:1] * len(value) if Ellipsis in arguments else arguments
        return len(value) == len(hints) and all(map(fits, value, hints))
    if origin is dict and isinstance(value, dict):
        return all(fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items())
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def check_fields(made: Any, stored: Stored) -> None:
    """Compare fields with their type hints, and arrays with the shapes that their class declared."""
    name = stored.cls.__name__
    for field, hint in _hints(stored.cls).items():
        if not fits(getattr(made, field), hint):
            raise ValueError(f"{name}.{field} is {getattr(made, field)!r}"[:100])
    arrays = {field: value for field in stored.shapes if (value := getattr(made, field)) is not None}
    check_arrays(name, arrays, stored.shapes, {})


def check_arrays(
    owner: str, arrays: dict[str, Any], shapes: dict[str, tuple[Shape, ...]], sizes: dict[str, int]
) -> None:
    """Compare arrays with their shapes; the same letter is the same number everywhere, and that of ``sizes``."""
    for name, value in arrays.items():
        wanted, where = shapes[name], f"{owner}.{name}"
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
