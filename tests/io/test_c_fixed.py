"""16-bit fixed point in C: the same arithmetic as in Python to the bit, and close to the model."""

import ctypes
import re

import numpy as np
import pytest

import fewkern
from fewkern import FeatureVectorRegressor, ForwardDensity, KernelClassifier, KernelRegressor, to_c, to_c_test
from fewkern.datasets import make_banana
from fewkern.io.describe import plan
from fewkern.io.fixed import MISSING, fixed, rounding
from tests.core.functions import function, table
from tests.io.running import STRICT, call_rows, compile_library
from tests.io.test_c_explain import rows
from tests.io.test_c_test import differing

OPTIONS = [*STRICT, "-O1", "-Wconversion", "-Wdouble-promotion", "-Wshadow"]
OPTIONS += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]


def pointer(row):
    return row.ctypes.data_as(ctypes.c_void_p)


def run(folder, text, method, whole, count, dtype=np.int32):
    """``void f(const int16_t *x, ... *out)`` at every row."""
    code = compile_library(folder, text, options=OPTIONS)
    return call_rows(getattr(code, f"model_{method}"), whole.astype(np.int16), count, dtype)


X, f = rows()
WIDE = np.column_stack([X, X[:, 0] * 1e-9, 1e6 + X[:, 3], np.full(200, 4.5), X[:, 2] > 1])
MODELS = {
    "values": (KernelRegressor(n_vectors=12), X, f),
    "two-values": (KernelRegressor(n_vectors=12), X, np.column_stack([f, 1e3 * X[:, 0] - 5e3])),
    "all-kinds-of-columns": (KernelRegressor(n_vectors=8), WIDE, f),
    "two": (KernelClassifier(n_vectors=8), X, np.where(f > 0.5, "yes", "no")),
    "three": (KernelClassifier(n_vectors=12), X, np.digitize(f, [0, 1.5])),
    "one-vector": (KernelClassifier(n_vectors=1), X[:, :1], f > 0.5),
}


@pytest.mark.parametrize("name", MODELS)
def test_to_the_bit_and_close(name, tmp_path):
    model, X, y = MODELS[name]
    model.fit(X, y)
    described = plan(model, "double", "to_c")
    numbers, text = fixed(described, "to_c"), to_c(model, dtype="int16")
    new = np.concatenate([X, X.mean(axis=0) + 5 * (X[:20] - X.mean(axis=0))])
    wild = np.random.default_rng(0).integers(-(2**15), 2**15, (60, X.shape[1]))
    whole = np.concatenate([numbers.inputs(new), wild, np.full_like(wild[:1], 2**15 - 1)])
    values = numbers(whole)
    classes = hasattr(model, "classes_")
    found = run(tmp_path, text, "decision" if classes else "predict", whole, values.shape[1])
    np.testing.assert_array_equal(found, values)
    truth = (model.decision_function if classes else model.predict)(new).reshape(len(new), -1)
    gaps = np.abs(values[: len(new)] * 2.0**-numbers.unit - truth) / np.ptp(truth, axis=0)
    assert gaps.max() < 5e-3
    # the file says what rounding does, measured on other rows
    assert rounding(described, numbers) in text.replace("\n * ", "\n")
    mean, spread = (float(re.search(rf"{word} ([\d.e-]*\d)", text)[1]) for word in ("values by", "spread over"))
    assert gaps.mean() < 4 * mean / min(spread, np.ptp(truth, axis=0).max())
    if classes:
        count = len(model.classes_)
        proba = run(tmp_path, text, "predict_proba", whole, count, np.uint16)
        parts = [np.zeros_like(values), values] if count == 2 else [values]
        parts = np.concatenate(parts, axis=1)
        parts = numbers.probability(parts.max(axis=1, keepdims=True) - parts)
        np.testing.assert_array_equal(proba, (parts << 15) // parts.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(proba[: len(new)] / 2**15, model.predict_proba(new), atol=1e-2)
        code = compile_library(tmp_path, text, options=OPTIONS)
        found = [code.model_predict(pointer(row.copy())) for row in whole.astype(np.int16)]
        np.testing.assert_array_equal(found, values.argmax(axis=1) if count > 2 else values[:, 0] > 0)


def test_quantize_and_dequantize(tmp_path):
    model, X, y = MODELS["all-kinds-of-columns"]
    model.fit(X, y)
    numbers = fixed(plan(model, "double", "to_c"), "to_c")
    code = compile_library(tmp_path, to_c(model, dtype="int16"), options=OPTIONS)
    cells = np.concatenate([X, [[1e30] * 8, [-np.inf] * 8, [np.nan] * 8]]).astype(np.float32)
    out, value = np.zeros(X.shape[1], np.int16), np.zeros(1, np.float32)
    for row in cells:
        code.model_quantize(pointer(row.copy()), pointer(out))
        gaps = np.abs(out - numbers.inputs(row[None].astype(float))[0])
        assert np.delete(gaps, 5).max() <= 1
        assert gaps[5] <= 2.0 ** (numbers.exponent[5] - 4)  # around a million, float has steps of 1/16
    assert (out == MISSING).all()
    code.model_dequantize(pointer(np.array([12345], np.int32)), pointer(value))
    assert value[0] == np.float32(12345 * 2.0 ** -numbers.unit[0])


@pytest.mark.parametrize(
    "given", [{}, {"directions": 0}, {"own_widths": False}, {"linear": 0}, {"directions": 9}], ids=str
)
def test_any_metric(given, rng, tmp_path):
    X = table(rng, 150)
    X[:, 4] **= 1 / 3  # in a longer tail 16 bits do not tell small numbers apart; see the warning below
    f = function(rng, X, outputs=2, **given)
    numbers = fixed(plan(f, "double", "to_c"), "to_c")
    whole = numbers.inputs(X)
    values = numbers(whole)
    np.testing.assert_array_equal(run(tmp_path, to_c(f, dtype="int16"), "predict", whole, 2), values)
    np.testing.assert_allclose(values * 2.0**-numbers.unit, f(X), rtol=0, atol=5e-3 * np.ptp(f(X)))


def test_a_long_tail_is_warned_of(rng):
    X = table(rng, 150)
    with pytest.warns(UserWarning, match=r'dtype="int16" rounding changes values of this GaussianExpansion by up to'):
        to_c(function(rng, X), dtype="int16")


def test_a_table_fills_what_is_missing(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(y=f)
    frame.loc[frame.index[::7], "a"] = np.nan
    model = fewkern.TableModel(n_vectors=8, holdout=0).fit(frame, "y")
    numbers, text = fixed(plan(model, "double", "to_c"), "to_c"), to_c(model, dtype="int16")
    assert "A missing number is -32768." in text
    whole = numbers.inputs(frame[list("abcd")].to_numpy())
    assert (whole[::7, 0] == MISSING).all()
    found = run(tmp_path, text, "predict", whole, 1) * 2.0**-numbers.unit
    np.testing.assert_allclose(found[:, 0], model.predict(frame), rtol=0, atol=5e-3 * np.ptp(f))


def test_the_self_test_is_exact(tmp_path):
    X, y = make_banana(100, random_state=0)
    for model in (KernelClassifier(n_vectors=6).fit(X, y), KernelRegressor(n_vectors=6).fit(X, X[:, 0] * X[:, 1])):
        to_c_test(model, X, tmp_path / "m_test.c", name="m", dtype="int16")
        code = to_c(model, tmp_path / "m.c", name="m", dtype="int16")
        assert differing(tmp_path) == 0
        assert differing(tmp_path, code.replace("(u & 63) >> 6", "(u & 63) >> 7")) > 0


def test_the_path_of_a_prediction_has_no_floating_point():
    """Only what converts a sample and values knows of float."""
    model, X, y = MODELS["three"]
    text = to_c(model.fit(X, y), dtype="int16").split("*/", 1)[1]
    functions = re.findall(r"^[^\n]*model_(\w+)(\([^;]*?\)\n{.*?^})", text, flags=re.MULTILINE | re.DOTALL)
    assert {"sum0", "predict", "predict_proba", "decay"} < {name for name, _ in functions}
    assert {name for name, text in functions if "float" in text} == {"rounded", "quantize", "dequantize"}


def test_what_has_no_fixed_point():
    banana, y = make_banana(60)
    for model in (FeatureVectorRegressor(max_vectors=4).fit(banana, y), ForwardDensity(bandwidth=0.5).fit(banana)):
        with pytest.raises(
            ValueError, match=f'"int16" is for KernelClassifier and KernelReg.* got {type(model).__name__}'
        ):
            to_c(model, dtype="int16")
    learner = KernelClassifier(n_vectors=4).fit(banana, y)
    for option in ({"update": True}, {"explain": True}, {"coverage": 0.9}, {"false_alarms": 0.1}):
        with pytest.raises(ValueError, match=f"writes predictions only; leave {next(iter(option))} out"):
            to_c(learner, dtype="int16", **option)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": banana[:, 0], "b": np.where(banana[:, 1] > 0, "x", "z"), "y": y})
    with pytest.raises(ValueError, match="which takes categories; use dtype"):
        to_c(fewkern.TableModel(n_vectors=4, holdout=0).fit(frame, "y"), dtype="int16")
