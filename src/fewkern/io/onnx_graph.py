"""An ONNX graph in the making: nodes, constants, inputs and outputs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fewkern._version import __version__
from fewkern.io.plan import DTYPES, Plan

# The first with axes as an input of Unsqueeze and ReduceSum; runtimes have known it since 2021.
OPSET = 13


class Graph:
    """Nodes and constants in the making; every method returns the name of a result."""

    def __init__(self, onnx: Any, described: Plan, dtype: str) -> None:
        self.onnx, self.dtype = onnx, DTYPES[dtype]
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, bytes], Any] = {}
        self.outputs: list[Any] = []
        texts = {} if described.inputs is None else described.inputs.texts
        # the first version of the operators for texts that has tables from texts to numbers
        self.domains = {"": OPSET} | ({"ai.onnx.ml": 2} if texts else {})
        numbers = described.n_inputs - len(texts)
        self.inputs = [self._info("X", self.dtype, ["n", numbers])] if numbers else []
        self.inputs += [self._info("T", np.dtype(object), ["n", len(texts)])] if texts else []
        # by content: what two sums share is computed once
        self.bent: dict[tuple[bytes, ...], str] = {}
        # what the sums see: the samples, or the features that are made of them
        self.sample = "X"

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """A node; its name is for runtimes that look for nodes by name when they merge them."""
        count = len(self.nodes)
        result = output or f"r{count}"
        node = self.onnx.helper.make_node(operator, inputs, [result], name=f"{operator}_{count}", **attributes)
        self.nodes.append(node)
        return result

    def number(self, values: Any) -> str:
        """A constant in the type of the graph."""
        with np.errstate(over="ignore"):
            array = np.asarray(values).astype(self.dtype)
        if not np.all(np.isfinite(array)):
            raise ValueError(
                f"to_onnx: the model holds numbers that no {self.dtype.__name__} can hold"
                + ('; use dtype="double".' if np.all(np.isfinite(values)) else "; fit it again on finite samples.")
            )
        return self.constant(array)

    def as_number(self, value: str) -> str:
        """A result in the type of the graph."""
        return self.add("Cast", value, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)))

    def constant(self, array: Any) -> str:
        """A constant as it is; what occurs twice is written once."""
        array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        key = (f"{array.dtype} {array.shape}", content)
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return self.constants[key].name

    def axes(self, *axes: int) -> str:
        """A constant of axes or positions."""
        return self.constant(np.array(axes, dtype=np.int64))

    def result(self, name: str, of: str, dtype: Any, shape: list[Any]) -> None:
        """An output of the graph."""
        self.add("Identity", of, output=name)
        self.outputs.append(self._info(name, dtype, shape))

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
