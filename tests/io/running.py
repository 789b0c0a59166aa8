"""Run what was exported: C from a compiler, ONNX in a runtime, JavaScript in node, SQL in SQLite."""

import ctypes
import importlib.util
import json
import math
import re
import shutil
import sqlite3
import subprocess
import warnings
from contextlib import closing

import numpy as np
import pytest

from fewkern import to_c, to_js, to_onnx, to_sql
from fewkern.io.describe import plan
from fewkern.io.plan import LogSum

TYPES = {"double": (ctypes.c_double, np.float64), "float": (ctypes.c_float, np.float32)}
STRICT = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
CPP_COMPILER = shutil.which("g++") or shutil.which("clang++")


def build(folder, *arguments, compiler=COMPILER):
    """Run a compiler in a folder; skips where there is none."""
    if compiler is None:
        pytest.skip("there is no compiler of C or C++ (gcc and g++, or clang) on this machine")
    done = subprocess.run([compiler, *arguments, "-lm"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def compile_library(folder, *texts, options=STRICT):
    """A shared library from C texts."""
    names = [f"model{i}.c" for i in range(len(texts))]
    for name, text in zip(names, texts):
        (folder / name).write_text(text, encoding="ascii")
    build(folder, *options, "-shared", "-fPIC", *names, "-o", "models.so")
    return ctypes.CDLL(str(folder / "models.so"))


def call_rows(function, X, columns, dtype):
    """``void f(const T *x, U *out)`` at every row, ``U`` of this dtype; what lies behind ``out`` must stay as it is."""
    out = np.full((len(X), columns + 1), 77, dtype=dtype)
    for row, target in zip(np.ascontiguousarray(X), out):
        function(*(one.ctypes.data_as(ctypes.c_void_p) for one in (row, target)))
    assert np.all(out[:, -1] == 77)
    return out[:, :-1]


class Compiled:
    """The functions of one exported model, by row of a matrix."""

    def __init__(self, code, name, dtype):
        self.code, self.name = code, name
        self.number, self.dtype = TYPES[dtype]

    def write(self, method, X, columns):
        return call_rows(getattr(self.code, f"{self.name}_{method}"), np.asarray(X, self.dtype), columns, self.dtype)


def compiled(folder, model, dtype="double", name="model"):
    return Compiled(compile_library(folder, to_c(model, name=name, dtype=dtype)), name, dtype)


SANITIZED = [*STRICT, "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    T *x = malloc(m_N_FEATURES * sizeof(T));
    while (fread(x, sizeof(T), m_N_FEATURES, stdin) == m_N_FEATURES) {
STEPS    }
    free(x);
    return 0;
}
"""
STEP = """        {{
            T *out = malloc({size} * sizeof(T));
            {call}
            fwrite(out, sizeof(T), {size}, stdout);
            free(out);
        }}
"""


def c_calls(described):
    """Size of every output, and the call that computes it, by the names of ONNX."""
    calls = {}
    if described.values == "log_density":
        calls["log_density"] = (1, "out[0] = m_log_density(x);")
    elif described.values is not None:
        calls["variable"] = (described.n_values, f"m_{described.values}(x, out);")
    if described.classes is not None:
        count = len(described.classes.labels)
        calls["decision"] = (described.n_scores, "m_decision(x, out);")
        if described.classes.probable:
            calls["probabilities"] = (count, "m_predict_proba(x, out);")
        outside = f"if (m_class_name(-1) || m_class_name({count})) return 5;"
        calls["label"] = (1, f"out[0] = (T)m_predict(x); if (!m_class_name((int)out[0])) return 3; {outside}")
        copy = f"for (int i = 0; i < {count}; i++) {{ out[i] = (T)s[i]; k -= s[i]; }}"
        if described.set_threshold is not None:
            calls["set"] = (count, f"int s[{count}], k = m_predict_set(x, s); {copy} if (k) return 4;")
    if described.bounds is not None:
        calls["interval"] = (2 * described.n_values, "m_interval(x, out);")
    if described.novelty is not None:
        calls["novelty"] = (1, "out[0] = m_novelty(x);")
        calls["is_novel"] = (1, "out[0] = (T)m_is_novel(x);")
    return calls


def run_sanitized(folder, model, X, dtype, **trust):
    """All outputs of the C file at the rows of ``X``, by the names of ONNX, from a program that dies of any error.

    The file is compiled with the address and undefined-behaviour sanitizers, and every output has just enough room.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounding; that is tested elsewhere
        described, text = plan(model, dtype, "to_c", **trust), to_c(model, name="m", dtype=dtype, **trust)
    calls = c_calls(described)
    steps = "".join(STEP.format(size=size, call=call) for size, call in calls.values())
    source, binary = folder / f"{dtype}.c", folder / f"{dtype}.out"
    source.write_text(text + re.sub(r"\bT\b", dtype, PROGRAM.replace("STEPS", steps)), encoding="ascii")
    build(folder, *SANITIZED, source.name, "-o", binary.name)
    with np.errstate(over="ignore"):  # what no float can hold is infinite there
        rows = np.ascontiguousarray(X, dtype=TYPES[dtype][1])
    ran = subprocess.run([str(binary)], input=rows.tobytes(), capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    out = np.frombuffer(ran.stdout, dtype=TYPES[dtype][1]).reshape(len(rows), -1)
    sizes = [size for size, _ in calls.values()]
    found = {name: out[:, end - size : end] for name, size, end in zip(calls, sizes, np.cumsum(sizes))}
    if "label" in found:
        found["label"] = np.asarray(described.classes.labels)[found["label"][:, 0].astype(int)]
    if "interval" in found:
        both = found.pop("interval")
        found |= {"lower": both[:, ::2], "upper": both[:, 1::2]}
    return {name: value.astype(bool) if name in ("set", "is_novel") else value for name, value in found.items()}


def expected(model, X, coverage=None, false_alarms=None):
    """All that the model says of new samples, by the name of the output in ONNX."""
    last, inner = (model[-1], model[:-1].transform(X)) if hasattr(model, "steps") else (model, X)
    if hasattr(model, "score_samples"):
        return {"log_density": model.score_samples(X)[:, None]}
    found = {}
    if hasattr(model, "transform"):
        found["variable"] = model.transform(X)
    if hasattr(model, "classes_") and hasattr(model, "predict"):
        found["label"] = model.predict(X)
        if hasattr(model, "predict_proba"):
            found["probabilities"] = model.predict_proba(X)
        found["decision"] = (getattr(model, "decision_function", None) or model.predict_joint_log_proba)(X)
    elif hasattr(model, "predict") or callable(model):
        found["variable"] = model(X) if callable(model) else model.predict(X)
    if coverage is not None and "label" in found:
        found["set"] = last.predict_set(inner, coverage)
    elif coverage is not None:
        both = last.predict_interval(inner, coverage)
        found |= {"lower": both[..., 0], "upper": both[..., 1]}
    if false_alarms is not None:
        found["novelty"] = last.novelty(inner)
        found["is_novel"] = found["novelty"] > last.novelty_threshold(false_alarms)
    return {name: value[:, None] if name != "label" and value.ndim == 1 else value for name, value in found.items()}


def assert_same(found, truth, tolerance):
    """The same outputs, numbers up to a share of the largest one."""
    assert set(found) == set(truth)
    for name, value in truth.items():
        if value.dtype.kind != "f":
            assert found[name].tolist() == value.tolist(), name
            continue
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance * np.abs(value).max(), err_msg=name)
        assert found[name].shape == value.shape


TOLERANCE = {"double": 1e-10, "float": 1e-4}


def assert_exported(folder, model, X, tolerances=TOLERANCE, truth=None, **trust):
    """Every language says of the rows of ``X`` what the model says, C and ONNX in every type of ``tolerances``.

    JavaScript and SQL have doubles only, and SQL has no densities, splines, intervals and sets.
    """
    truth = expected(model, X, **trust) if truth is None else truth
    for dtype, tolerance in tolerances.items():
        assert_same(run_sanitized(folder, model, X, dtype, **trust), truth, tolerance)
    if "double" in tolerances:
        parts = plan(model, "double", "to_sql").sums
        if not any(isinstance(part, LogSum) or part.kind == "spline" for part in parts):
            assert_sql(model, X, truth, tolerances["double"])
        assert_same(run_js(folder, model, X, truth, **trust), truth, tolerances["double"])
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    for dtype, tolerance in tolerances.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proto = to_onnx(model, dtype=dtype, **trust)
        assert_same(run_onnx(proto, X, dtype), truth, tolerance)
    assert_same(run_reference(proto, X, dtype), truth, tolerance)


def run_onnx(proto, X, dtype="float"):
    """Outputs by name, from ONNX Runtime, or from onnx's own evaluator where that is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return run_reference(proto, X, dtype)
    import onnxruntime

    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in proto.graph.output], session.run(None, _feed(X, dtype))))


def run_reference(proto, X, dtype="float"):
    """Outputs by name, from the evaluator that defines the operators."""
    from onnx.reference import ReferenceEvaluator

    return dict(zip([o.name for o in proto.graph.output], ReferenceEvaluator(proto).run(None, _feed(X, dtype))))


def _feed(X, dtype):
    """The inputs: ``X``, or what was given by name, as with texts."""
    return X if isinstance(X, dict) else {"X": np.asarray(X, dtype=TYPES[dtype][1])}


NODE = shutil.which("node")
_MODULE = """
import * as model from "./model.mjs";
import {{ readFileSync }} from "node:fs";
const rows = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(rows.map((x) => ({{ {calls} }}))));
"""
# By the names of ONNX.
_CALLS = {
    "label": "predict",
    "probabilities": "predictProba",
    "decision": "decision",
    "log_density": "logDensity",
    "set": "predictSet",
    "lower": "interval",
    "upper": "interval",
    "novelty": "novelty",
    "is_novel": "isNovel",
}


def plain_rows(X):
    """Rows of an array or a data frame as JSON has them: null where a cell is missing."""
    if hasattr(X, "to_dict"):
        return X.astype(object).where(X.notna(), None).to_dict("records")
    return [[None if np.isnan(one) else one for one in row] for row in np.asarray(X, float).tolist()]


def run_js(folder, model, X, names, **trust):
    """These outputs of the module at rows, by the names of ONNX; skips where there is no node."""
    if NODE is None:
        pytest.skip("node is not installed")
    text = to_js(model, folder / "model.mjs", **trust)
    variable = "transform" if "as transform" in text.rsplit("export", 1)[1] else "predict"
    calls = ", ".join(f"{name}: model.{_CALLS.get(name, variable)}(x)" for name in names)
    (folder / "run.mjs").write_text(_MODULE.format(calls=calls))
    command, rows = [NODE, str(folder / "run.mjs")], json.dumps(plain_rows(X))
    done = subprocess.run(command, input=rows, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    if "set" in names:
        labels = plan(model, "double", "to_js").classes.labels.tolist()
        rows = [row | {"set": [label in row["set"] for label in labels]} for row in rows]
    out = {name: np.array([row[name] for row in rows]) for name in names}
    out |= {name: out[name][..., end] for end, name in enumerate(("lower", "upper")) if name in out}
    return {name: value[:, None] if name != "label" and value.ndim == 1 else value for name, value in out.items()}


def assert_sql(model, X, truth, tolerance=1e-10):
    """The expressions of everything that the model says give it: labels, scores, probabilities, values."""
    outputs = {"probabilities": "predict_proba", "decision": "decision"}
    outputs["variable"] = "transform" if hasattr(model, "transform") else "predict"
    asked = [(to_sql(model), truth["label"])] if "label" in truth else []
    for name in outputs.keys() & truth.keys():
        columns = truth[name].T
        asked += [(to_sql(model, output=outputs[name], number=i), column) for i, column in enumerate(columns)]
    frame, rows = hasattr(X, "columns"), plain_rows(X)
    names = list(X) if frame else [f"x{i}" for i in range(np.shape(X)[1])]
    expressions, values = zip(*asked)
    answers = run_sql(expressions, names, [list(row.values()) for row in rows] if frame else rows)
    for found, value in zip(zip(*answers), values):
        if value.dtype.kind == "f":
            atol = max(tolerance, 1e-10) * max(1, np.abs(value).max())
            np.testing.assert_allclose(np.array(found, float), value, rtol=0, atol=atol)
        else:
            assert list(found) == value.tolist()


def run_sql(expressions, columns, rows):
    """Values of expressions at rows of a table, from SQLite; exp is registered where it was built without it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT exp(1.0)")
        except sqlite3.OperationalError:
            connection.create_function("exp", 1, math.exp)
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        connection.execute(f"CREATE TABLE data ({quoted})")
        connection.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(columns))})", rows)
        return connection.execute(f"SELECT {', '.join(expressions)} FROM data ORDER BY rowid").fetchall()
