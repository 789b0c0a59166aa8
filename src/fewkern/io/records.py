"""Objects as plain data, and back: the JSON of a model file.

Writing goes straight from objects to JSON, with arrays put aside. Reading has two steps, so that old files can be
upgraded between them: JSON becomes a tree of plain values and :class:`Record`, then every record becomes an object
of a registered class.
"""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from fewkern.arrays.namespace import is_foreign, is_sparse, to_numpy
from fewkern.arrays.storable import Stored, stored_classes
from fewkern.io.checks import check_object, check_sparse
from fewkern.io.forms import FORMS, form_of
from fewkern.io.steps import SCALERS

__all__ = ["Record", "State", "Writer", "build", "parse"]

State: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """An object in a file: the name of its class and its fields, in which other records may be."""

    name: str
    state: State


class Writer:
    """Turns values into JSON and collects their arrays, each once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
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
        name, state = form_of(value) or (self._name(value, where), _state(value))
        return {"object": name, "state": {k: self.write(v, f"{where}.{k}") for k, v in state.items()}}

    def _name(self, value: Any, where: str) -> str:
        name = type(value).__name__
        stored = stored_classes().get(name)
        if stored is None or stored.cls is not type(value):
            raise TypeError(
                f"save: {where} is a {name}, which cannot be saved. A file may hold estimators and kernels of fewkern, "
                f"Pipeline, {', '.join([*(cls.__name__ for cls in SCALERS), *FORMS])}, feature selection, numbers and "
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


def _state(value: Any) -> State:
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    # callbacks follow a fit; the model does not need them
    transient = ("_skl_callbacks", *getattr(type(value), "_transient", ()))
    return {k: v for k, v in vars(value).items() if k not in transient}


def parse(node: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """The tree of plain values and records that a piece of JSON stands for."""
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise ValueError("a bare list in its header")
        return node
    kind: Any = next(iter(node), None)
    content: Any = node.get(kind)
    allowed = {"object": {"state"}, "enum": {"value"}, "sparse": {"shape"}}.get(str(kind), set())
    if set(node) != {kind} | allowed:
        raise ValueError(f"an unknown entry {kind!r} in its header")
    if kind == "array":
        return arrays[content]
    if kind == "list":
        return [parse(v, arrays) for v in content]
    if kind == "tuple":
        return tuple(parse(v, arrays) for v in content)
    if kind == "dict":
        return {parse(k, arrays): parse(v, arrays) for k, v in content}
    if kind == "strings":
        return _strings(content)
    if kind == "sparse":
        return _sparse({name: parse(part, arrays) for name, part in content.items()}, node["shape"])
    if kind == "enum":
        return Record(content, {"value": node["value"]})
    if kind == "object":
        return Record(content, {k: parse(v, arrays) for k, v in node["state"].items()})
    raise ValueError(f"an unknown entry {kind!r} in its header")


def _strings(items: Any) -> np.ndarray[Any, Any]:
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("texts that are not texts")
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _sparse(parts: dict[str, Any], shape: Any) -> Any:
    check_sparse(parts, shape)
    return sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(shape))


def build(tree: Any) -> Any:
    """Objects in place of the records of ``tree``, each checked against its class."""
    if isinstance(tree, list):
        return [build(item) for item in tree]
    if isinstance(tree, tuple):
        return tuple(build(item) for item in tree)
    if isinstance(tree, dict):
        return {build(key): build(value) for key, value in tree.items()}
    if not isinstance(tree, Record):
        return tree
    state = {key: build(value) for key, value in tree.state.items()}
    made: Any
    if tree.name in FORMS:
        made = FORMS[tree.name].make(state)
        check_object(made, Stored(type(made), {}))
        return made
    stored = stored_classes().get(tree.name)
    if stored is None:
        raise ValueError(f"there is no class {tree.name}")
    cls = stored.cls
    if issubclass(cls, Enum):
        made = cls(state["value"])
    elif dataclasses.is_dataclass(cls):
        made = cls(**state)
    else:
        # parameters first: one that the file does not know yet gets its default
        names = inspect.signature(cls).parameters
        made = cls(**{key: value for key, value in state.items() if key in names})
        made.__dict__.update(state)
    check_object(made, stored)
    return made
