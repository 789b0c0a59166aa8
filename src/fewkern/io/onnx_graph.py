"""An ONNX graph in the making: nodes, constants, inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from fewkern._version import __version__
from fewkern.io.plan import DTYPES, Plan

# The first with axes as an input of Unsqueeze and ReduceSum; runtimes have known it since 2021.
OPSET = 13


def _node(operator: str) -> Callable[[Any, Any], Value]:
    return lambda self, other: self.graph.add(operator, self, other)


class Value:
    """A result in a graph, used like an array: every operation adds a node."""

    __array_ufunc__ = None  # an array leaves an operation with a value to the value

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __sub__, __mul__ = _node("Add"), _node("Sub"), _node("Mul")
    __truediv__, __matmul__, __gt__ = _node("Div"), _node("MatMul"), _node("Greater")
    at_least, at_most = _node("Max"), _node("Min")

    def __neg__(self) -> Value:
        return self.graph.add("Neg", self)

    def exp(self) -> Value:
        return self.graph.add("Exp", self)

    def clip(self, low: float, high: float) -> Value:
        return self.graph.add("Clip", self, low, high)

    def sum(self, axis: int, *, keepdims: bool = False) -> Value:
        return self.graph.add("ReduceSum", self, self.graph.axes(axis), keepdims=int(keepdims))

    def largest(self) -> Value:
        """The largest entry of every row."""
        return self.graph.add("ReduceMax", self, axes=[1], keepdims=1)

    def pairs(self) -> Value:
        """The value with a second dimension for vectors."""
        return self.graph.add("Unsqueeze", self, self.graph.axes(1))


class Graph:
    """Nodes, constants, inputs and outputs in the making."""

    def __init__(self, onnx: Any, described: Plan, dtype: str) -> None:
        self.onnx, self.dtype = onnx, DTYPES[dtype]
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, bytes], Any] = {}
        self.outputs: list[Any] = []
        texts = described.texts
        # the first version of the operators for texts that has tables from texts to numbers
        self.domains = {"": OPSET} | ({"ai.onnx.ml": 2} if texts else {})
        numbers = described.n_inputs - len(texts)
        self.inputs = [self._info("X", self.dtype, ["n", numbers])] if numbers else []
        self.inputs += [self._info("T", np.dtype(object), ["n", len(texts)])] if texts else []
        # by what is computed: what two sums share is computed once
        self.known: dict[str, Value] = {}
        # what the sums see: the samples, or the features that are made of them
        self.sample = Value(self, "X")

    def add(self, operator: str, *inputs: Any, output: str | None = None, **attributes: Any) -> Value:
        """The result of a node, whose name is for runtimes that look for nodes by name when they merge them."""
        names = [(one if isinstance(one, Value) else self.number(one)).name for one in inputs]
        count, key = len(self.nodes), repr((operator, names, output, attributes))
        if key not in self.known:
            self.known[key] = Value(self, output or f"r{count}")
            result = [self.known[key].name]
            node = self.onnx.helper.make_node(operator, names, result, name=f"{operator}_{count}", **attributes)
            self.nodes.append(node)
        return self.known[key]

    def number(self, values: Any) -> Value:
        """A constant in the type of the graph."""
        with np.errstate(over="ignore"):
            array = np.asarray(values).astype(self.dtype)
        if not np.all(np.isfinite(array)):
            raise ValueError(
                f"to_onnx: the model holds numbers that no {self.dtype.__name__} can hold"
                + ('; use dtype="double".' if np.all(np.isfinite(values)) else "; fit it again on finite samples.")
            )
        return self.constant(array)

    def as_number(self, value: Value) -> Value:
        """A result in the type of the graph."""
        return self.add("Cast", value, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)))

    def constant(self, array: Any) -> Value:
        """A constant as it is; what occurs twice is written once."""
        array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        key = (f"{array.dtype} {array.shape}", content)
        if key not in self.constants:
            self.constants[key] = self.onnx.numpy_helper.from_array(array, f"c{len(self.constants)}")
        return Value(self, self.constants[key].name)

    def axes(self, *axes: int) -> Value:
        """A constant of axes or positions."""
        return self.constant(np.array(axes, dtype=np.int64))

    def result(self, name: str, of: Value, dtype: Any, *columns: int) -> None:
        """An output of the graph."""
        self.add("Identity", of, output=name)
        self.outputs.append(self._info(name, dtype, ["n", *columns]))

    def _info(self, name: str, dtype: Any, shape: list[Any]) -> Any:
        helper = self.onnx.helper
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

    def model(self, described: Plan) -> Any:
        """The graph as a model, with the names of its features and classes."""
        helper = self.onnx.helper
        graph = helper.make_graph(
            self.nodes, described.model, self.inputs, self.outputs, initializer=list(self.constants.values())
        )
        proto = helper.make_model(
            graph,
            producer_name="fewkern",
            producer_version=__version__,
            doc_string="\n".join([described.title, *described.notes]),
            opset_imports=[helper.make_opsetid(*domain) for domain in self.domains.items()],
            ir_version=7,
        )
        facts = {"model": described.model}
        if described.classes is not None:
            facts["classes"] = json.dumps(described.classes.labels.tolist(), default=str)
        if described.feature_names is not None:
            facts["feature_names"] = json.dumps(described.feature_names)
        helper.set_model_props(proto, facts)
        return proto
