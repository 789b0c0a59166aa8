"""Run what was exported: C through a shared library, ONNX through a runtime."""

import ctypes
import importlib.util
import shutil
import subprocess

import numpy as np
import pytest

from fewkern import to_c

TYPES = {"double": (ctypes.c_double, np.float64), "float": (ctypes.c_float, np.float32)}
STRICT = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compile_library(folder, *texts, options=STRICT):
    """A shared library from C texts; skips where there is no compiler."""
    if COMPILER is None:
        pytest.skip("there is no C compiler (cc, gcc or clang) on this machine")
    sources = []
    for i, text in enumerate(texts):
        sources.append(folder / f"model{i}.c")
        sources[-1].write_text(text, encoding="ascii")
    library = folder / "models.so"
    command = [COMPILER, *options, "-shared", "-fPIC", *map(str, sources), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


class Compiled:
    """The functions of one exported model, by row of a matrix."""

    def __init__(self, code, name, dtype):
        self.code, self.name = code, name
        self.number, self.dtype = TYPES[dtype]

    def _function(self, method, restype=None):
        function = getattr(self.code, f"{self.name}_{method}")
        function.restype = restype
        return function

    def _pointer(self, row):
        return row.ctypes.data_as(ctypes.POINTER(self.number))

    def write(self, method, X, columns):
        """``void f(const T *x, T *out)`` at every row; what lies behind ``out`` must stay as it is."""
        function = self._function(method)
        out = np.full((len(X), columns + 1), 777.0, dtype=self.dtype)
        for row, target in zip(np.ascontiguousarray(X, dtype=self.dtype), out):
            function(self._pointer(row), self._pointer(target))
        assert np.all(out[:, -1] == 777.0)
        return out[:, :-1]

    def give(self, method, X, restype=None):
        """``T f(const T *x)`` at every row."""
        function = self._function(method, restype or self.number)
        return np.array([function(self._pointer(row)) for row in np.ascontiguousarray(X, dtype=self.dtype)])

    def label(self, number):
        text = self._function("class_name", ctypes.c_char_p)(int(number))
        return None if text is None else text.decode()


def compiled(folder, model, dtype="double", name="model"):
    return Compiled(compile_library(folder, to_c(model, name=name, dtype=dtype)), name, dtype)


def run_onnx(proto, X, dtype="float"):
    """Outputs by name, from ONNX Runtime, or from onnx's own evaluator where that is not installed."""
    samples = {"X": np.asarray(X, dtype=TYPES[dtype][1])}
    names = [output.name for output in proto.graph.output]
    if importlib.util.find_spec("onnxruntime") is None:
        return run_reference(proto, X, dtype)
    import onnxruntime

    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(None, samples)))


def run_reference(proto, X, dtype="float"):
    """Outputs by name, from the evaluator that defines the operators."""
    from onnx.reference import ReferenceEvaluator

    names = [output.name for output in proto.graph.output]
    return dict(zip(names, ReferenceEvaluator(proto).run(None, {"X": np.asarray(X, dtype=TYPES[dtype][1])})))
