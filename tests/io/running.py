"""Run what was exported: C through a shared library, ONNX through a runtime."""

import ctypes
import importlib.util
import shutil
import subprocess

import numpy as np
import pytest

from fewkern import to_c
from fewkern.io.describe import plan

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


SANITIZED = [*STRICT, "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]


def run_sanitized(folder, model, X, dtype):
    """All outputs of the C file at the rows of ``X``, by the names of ONNX, from a program that dies of any error.

    The file is compiled with the address and undefined-behaviour sanitizers, and every output has just enough room.
    """
    if COMPILER is None:
        pytest.skip("there is no C compiler (cc, gcc or clang) on this machine")
    described = plan(model, dtype, "to_c")
    sizes = {"log_density" if described.values == "log_density" else "variable": described.n_values}
    calls = {
        "variable": f"m_{described.values}(x, out);",
        "log_density": "out[0] = m_log_density(x);",
        "decision": "m_decision(x, out);",
        "probabilities": "m_predict_proba(x, out);",
        "label": f"out[0] = ({dtype})m_predict(x); if (!m_class_name((int)out[0])) return 3;",
    }
    if described.values is None:
        sizes = {}
    if described.classes is not None:
        probable = {"probabilities": len(described.classes.labels)} if described.classes.probable else {}
        sizes |= {"decision": described.n_scores, **probable, "label": 1}
    steps = "".join(
        f"""        {{
            {dtype} *out = malloc({size} * sizeof({dtype}));
            {calls[name]}
            fwrite(out, sizeof({dtype}), {size}, stdout);
            free(out);
        }}
"""
        for name, size in sizes.items()
    )
    program = f"""{to_c(model, name="m", dtype=dtype)}
#include <stdio.h>
#include <stdlib.h>

int main(void)
{{
    {dtype} *x = malloc(m_N_FEATURES * sizeof({dtype}));
    while (fread(x, sizeof({dtype}), m_N_FEATURES, stdin) == m_N_FEATURES) {{
{steps}    }}
    free(x);
    return 0;
}}
"""
    source, binary = folder / f"{dtype}.c", folder / f"{dtype}.out"
    source.write_text(program, encoding="ascii")
    command = [COMPILER, *SANITIZED, str(source), "-o", str(binary), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.errstate(over="ignore"):  # what no float can hold is infinite there
        rows = np.ascontiguousarray(X, dtype=TYPES[dtype][1])
    ran = subprocess.run([str(binary)], input=rows.tobytes(), capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    out = np.frombuffer(ran.stdout, dtype=TYPES[dtype][1]).reshape(len(rows), -1)
    ends = np.cumsum(list(sizes.values()))
    found = {name: out[:, end - size : end] for (name, size), end in zip(sizes.items(), ends)}
    if "label" in found:
        found["label"] = np.asarray(described.classes.labels)[found["label"][:, 0].astype(int)]
    return found


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
