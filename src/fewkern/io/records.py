"""Objects as plain data, and back: the JSON of a model file."""

from __future__ import annotations

import dataclasses
import inspect
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from fewkern.arrays.namespace import is_foreign, is_sparse, to_numpy
from fewkern.arrays.storable import Stored, stored_classes
from fewkern.io.archive import Arrays, Budget
from fewkern.io.checks import check_object, check_sparse
from fewkern.io.forms import FORMS, form_of
from fewkern.io.steps import CONTAINERS, SCALERS

__all__ = ["Reader", "State", "Writer"]

State: TypeAlias = dict[str, Any]

# Limits on nested objects, and on nested pipelines and column transformers; models stay below them. Every level of the
# second kind makes scikit-learn three times slower, because it asks each step three times for its tags.
_DEEPEST_OBJECT, _DEEPEST_CONTAINER = 16, 5
_ENTRIES = {"object": {"state"}, "enum": {"value"}, "sparse": {"shape"}}


class Writer:
    """Turns values into JSON and collects their arrays, each once."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
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
        check_sparse(parts, shape)
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
        if name in FORMS:
            form = FORMS[name]
            self._budget.charge(form.bytes_per_entry * _n_entries(tuple(state.values())))
            made = form.make(state)
            check_object(made, Stored(type(made), {}), self._budget)
            return made
        stored = stored_classes().get(name)
        if stored is None:
            raise ValueError(f"there is no class {name}")
        cls = stored.cls
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
