"""Objects as plain data and back: the JSON of a model file. What was read is compared with what its class declares.

Fields of a dataclass are compared with their type hints, arrays with the shapes that the class declared
(:func:`fewkern.arrays.storable.storable`), and an estimator is asked for predictions at its own vectors
(:mod:`fewkern.io.trial`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from fewkern.arrays.namespace import is_foreign, is_sparse, to_numpy
from fewkern.arrays.storable import Shape, Stored, stored_classes
from fewkern.io.archive import Arrays, Budget
from fewkern.io.steps import CONTAINERS, SCALERS, STEPS, written
from fewkern.io.trial import try_model

State: TypeAlias = dict[str, Any]

# Limits on nested objects, and on nested pipelines and column transformers; models stay below them. Every level of the
# second kind makes scikit-learn three times slower, because it asks each step three times for its tags.
_DEEPEST_OBJECT, _DEEPEST_CONTAINER = 16, 5
_ENTRIES = {"object": {"state"}, "enum": {"value"}, "sparse": {"shape"}}
# scikit-learn makes Python objects of the entries of some arrays, a list and a set of them.
_BYTES_PER_ENTRY = 160
# The attribute with what a model has learned from, of those that are not part of it.
_SUMS = ("_fitted_to",)
_OUTPUTS = [{"transform": kind} for kind in ("default", "pandas", "polars")]


class Writer:
    """Turns values into JSON and collects their arrays, each once."""

    def __init__(self, with_sums: bool = False) -> None:
        self.arrays: Arrays = {}
        self.classes: set[str] = set()
        self._also = _SUMS if with_sums else ()
        # by identity; the arrays are kept alive, so that no other one gets the same number
        self._seen: dict[int, tuple[Any, str]] = {}

    def write(self, value: Any, where: str) -> Any:
        """JSON for ``value``; ``where`` says in errors which part of the model it is."""
        if isinstance(value, Enum):
            return {"enum": self._name(value, where), "value": value.value}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if is_sparse(value):
            csr = sp.csr_array(value)
            parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
            return {"sparse": {k: self.write(v, where) for k, v in parts.items()}, "shape": list(csr.shape)}
        if is_foreign(value) or isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.write(v, f"{where}[{i}]") for i, v in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[self.write(k, where), self.write(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        name, state = written(value) or (self._name(value, where), _state(value, self._also))
        self.classes.add(name)
        return {"object": name, "state": {k: self.write(v, f"{where}.{k}") for k, v in state.items()}}

    def _name(self, value: Any, where: str) -> str:
        name = type(value).__name__
        stored = stored_classes().get(name)
        if stored is None or stored.cls is not type(value):
            raise TypeError(
                f"save: {where} is a {name}, which cannot be saved. A file may hold estimators and kernels of fewkern, "
                f"Pipeline, {', '.join([*(cls.__name__ for cls in SCALERS), *STEPS])}, feature selection, numbers and "
                "texts; a function of your own as kernel, or a generator as random_state, exists only in your program. "
                "Of a pipeline you can save the last step alone, and do the steps before it yourself."
            )
        return name

    def _array(self, value: Any, where: str) -> Any:
        if id(value) not in self._seen:
            array = to_numpy(value)
            if array.dtype == object:
                if array.ndim != 1 or not all(isinstance(item, str) for item in array):
                    raise TypeError(f"save: {where} holds Python objects; only numbers and strings can be saved.")
                return {"strings": [str(item) for item in array]}
            if array.dtype.kind not in "biufU":
                raise TypeError(f"save: {where} has the type {array.dtype}; only numbers and strings can be saved.")
            name = f"a{len(self.arrays)}"
            self.arrays[name] = array
            self._seen[id(value)] = (value, name)
        return {"array": self._seen[id(value)][1]}


def _state(value: Any, also: tuple[str, ...] = ()) -> State:
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    # callbacks follow a fit; the model does not need them
    transient = ("_skl_callbacks", *getattr(type(value), "_transient", ()))
    return {k: v for k, v in vars(value).items() if k not in transient or k in also}


class Reader:
    """Turns JSON and arrays into objects of registered classes, each checked against its class.

    Every use of an array is charged to the ``budget``, however often the same one is named.
    """

    def __init__(self, arrays: Arrays, budget: Budget) -> None:
        self._arrays, self._budget = arrays, budget
        self._objects, self._containers = 0, 0

    def read(self, node: Any) -> Any:
        """The value that a piece of JSON stands for."""
        if isinstance(node, str):
            self._budget.charge_text(node)
        if not isinstance(node, dict):
            if isinstance(node, list):
                raise ValueError("a bare list in its header")
            return node
        kind: Any = next(iter(node), None)
        content: Any = node.get(kind)
        if set(node) != {kind} | _ENTRIES.get(str(kind), set()):
            raise ValueError(f"an unknown entry {kind!r} in its header")
        if kind == "array":
            self._budget.charge_array(self._arrays[content])
            return self._arrays[content]
        if kind == "list":
            return [self.read(v) for v in content]
        if kind == "tuple":
            return tuple(self.read(v) for v in content)
        if kind == "dict":
            return {self.read(k): self.read(v) for k, v in content}
        if kind == "strings":
            return self._strings(content)
        if kind == "sparse":
            return self._sparse({name: self.read(part) for name, part in content.items()}, node["shape"])
        if kind == "enum":
            return self.make(content, {"value": node["value"]})
        if kind == "object":
            return self._object(content, node["state"])
        raise ValueError(f"an unknown entry {kind!r} in its header")

    def _strings(self, items: Any) -> np.ndarray[Any, Any]:
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError("texts that are not texts")
        array = np.empty(len(items), dtype=object)
        array[:] = [self.read(item) for item in items]
        return array

    def _sparse(self, parts: State, shape: Any) -> Any:
        _check_sparse(parts, shape)
        self._budget.check_columns(shape[1], sparse=True)
        return sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(shape))

    def _object(self, name: Any, state: Any) -> Any:
        container = name in CONTAINERS
        self._objects += 1
        self._containers += container
        # on the way down, before there is an object that could be asked anything
        if self._objects > _DEEPEST_OBJECT or self._containers > _DEEPEST_CONTAINER:
            raise ValueError(
                f"it nests objects deeper than {_DEEPEST_OBJECT}, or pipelines deeper than {_DEEPEST_CONTAINER}"
            )
        fields = {key: self.read(value) for key, value in state.items()}
        self._objects -= 1
        self._containers -= container
        return self.make(name, fields)

    def make(self, name: str, state: State) -> Any:
        """An object of the class ``name`` with these fields."""
        made: Any
        if name in STEPS:
            cls, _, make = STEPS[name]
            self._budget.charge(_BYTES_PER_ENTRY * _n_entries(tuple(state.values())))
            made, stored = make(cls, state), Stored(cls, {})
        else:
            found = stored_classes().get(name)
            if found is None:
                raise ValueError(f"there is no class {name}")
            cls, stored = found.cls, found
            if issubclass(cls, Enum):
                made = cls(state["value"])
            elif dataclasses.is_dataclass(cls):
                made = cls(**state)
            else:
                # parameters first: one that the file does not know gets its default
                names = inspect.signature(cls).parameters
                made = cls(**{key: value for key, value in state.items() if key in names})
                made.__dict__.update(state)
        check_object(made, stored, self._budget)
        return made


def _n_entries(value: Any) -> int:
    """Number of entries of all arrays in tuples of arrays."""
    if isinstance(value, tuple):
        return sum(map(_n_entries, value))
    return value.size if isinstance(value, np.ndarray) else 0


def check_object(made: Any, stored: Stored, budget: Budget) -> None:
    """Raise a ValueError if ``made`` contradicts its class or itself."""
    if dataclasses.is_dataclass(made):
        _check_fields(made, stored)
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
    # what set_output said
    if vars(model).get("_sklearn_output_config", _OUTPUTS[0]) not in _OUTPUTS:
        raise ValueError(f"{type(model).__name__} makes tables that nobody knows")


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
    >>> from fewkern.io.records import fits
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


def _check_fields(made: Any, stored: Stored) -> None:
    """Compare fields with their type hints, and arrays with the shapes that their class declared.

    The same letter in a shape is the same number everywhere.
    """
    for field, hint in _hints(stored.cls).items():
        if not fits(getattr(made, field), hint):
            raise ValueError(f"{stored.cls.__name__}.{field} is {_short(getattr(made, field))}")
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


def _check_sparse(parts: dict[str, Any], shape: Any) -> None:
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
