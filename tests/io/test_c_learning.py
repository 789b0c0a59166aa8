"""Models that go on learning in C: recursive least squares, against partial_fit and merge."""

import copy
import ctypes
import functools
import subprocess
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import FeatureVectorRegressor, KernelClassifier, KernelRegressor, load, save, to_c
from tests.io.running import SANITIZED, STRICT, TYPES, Compiled, build, compile_library

pytestmark = pytest.mark.filterwarnings("ignore:to_c. update=True begins with coefficients of least squares")
LOOP = """
void m_loop(const T *X, const Y *y, int n, T forgetting);
void m_loop(const T *X, const Y *y, int n, T forgetting)
{
    for (int i = 0; i < n; i++) {
        m_update(X + m_N_FEATURES * i, ROW, forgetting);
    }
}
"""


def data(n, seed, task):
    """Rows, and two values or two or three classes; all exact in float32."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2)).astype(np.float32).astype(float)
    f = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + 0.3 * rng.standard_normal(n)
    if task != "values":
        return X, np.digitize(f, [0.5] if task == "two" else [0.0, 1.0])
    return X, np.column_stack([f, X[:, 0] * X[:, 1]]).astype(np.float32).astype(float)


@functools.cache
def _fitted(task):
    model = KernelRegressor(n_vectors=12) if task == "values" else KernelClassifier(n_vectors=12)
    return model.fit(*data(300, 0, task))


def fitted(task):
    return copy.deepcopy(_fitted(task))


def features_of(model):
    """Number of features: one per vector, and the linear ones."""
    return model.basis_.n_vectors + model.basis_.linear.shape[1]


class Device:
    """A compiled model that learns."""

    def __init__(self, folder, model, task, dtype="double", options=STRICT):
        folder.mkdir(exist_ok=True)
        kind, row = (dtype, "y + m_N_VALUES * i") if task == "values" else ("int", "y[i]")
        loop = LOOP.replace("T ", f"{dtype} ").replace("Y ", f"{kind} ").replace("ROW", row)
        self.code = compile_library(folder, to_c(model, name="m", dtype=dtype, update=True) + loop, options=options)
        self.run = Compiled(self.code, "m", dtype)
        self.code.m_error.restype, self.code.m_state.restype = self.run.number, ctypes.c_void_p
        self.task, self.dtype = task, TYPES[dtype][1]

    def learn(self, X, y, forgetting=1.0):
        X = np.ascontiguousarray(X, self.dtype)
        y = np.ascontiguousarray(y, self.dtype if self.task == "values" else np.intc)
        pointers = [one.ctypes.data_as(ctypes.c_void_p) for one in (X, y)]
        self.code.m_loop(*pointers, len(X), self.run.number(forgetting))

    def values(self, X, q):
        return self.run.write("predict" if self.task == "values" else "decision", X, q)


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("task", ["values", "two", "three"])
def test_after_many_updates_the_model_is_that_of_partial_fit(task, dtype, tmp_path):
    model = fitted(task)
    device = Device(tmp_path, model, task, dtype, [*STRICT, "-O2"])
    X, y = data(100_000, 1, task)
    new, _ = data(200, 2, task)
    first = model._fitted_to.expansion()(new)
    np.testing.assert_allclose(device.values(new, first.shape[1]), first, rtol=0, atol=1e-4 * np.abs(first).max())
    device.learn(X, y)
    truth = model.partial_fit(X, y).expansion_(new)
    atol = 1e-4 * np.abs(truth).max()
    np.testing.assert_allclose(device.values(new, truth.shape[1]), truth, rtol=0, atol=atol)
    np.testing.assert_allclose(device.code.m_error(), model.held_out_error_, rtol=0.02)


@pytest.mark.parametrize("task", ["values", "three"])
def test_whole_turns_of_the_ridge_are_exact(task, tmp_path):
    """After a multiple of the number of features the ridge is that of partial_fit."""
    model = fitted(task)
    X, y = data(7 * features_of(model), 1, task)
    new, _ = data(50, 2, task)
    device = Device(tmp_path, model, task, options=[*STRICT, "-O1"])
    device.learn(X, y)
    truth = model.partial_fit(X, y).expansion_(new)
    np.testing.assert_allclose(device.values(new, truth.shape[1]), truth, rtol=0, atol=1e-7)


def test_the_error_is_that_of_rows_before_they_were_learned(tmp_path):
    model = fitted("values")
    device, (X, y) = Device(tmp_path, model, "values"), data(30, 1, "values")
    np.testing.assert_allclose(device.code.m_error(), model.held_out_error_)
    weight, total = model._fitted_to.weight, model._fitted_to.error
    for i in range(30):
        total += ((device.values(X[i : i + 1], 2)[0] - y[i]) ** 2).sum()
        device.learn(X[i : i + 1], y[i : i + 1])
    np.testing.assert_allclose(device.code.m_error(), total / (weight + 30))


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_merging_is_that_of_python(dtype, tmp_path):
    task, new = "values", data(50, 9, "values")[0]
    one, other = (Device(tmp_path / name, fitted(task), task, dtype) for name in "ab")
    turns = features_of(fitted(task))
    halves = [data(n * turns, n, task) for n in (40, 25)]  # the one begins anew on the way
    one.learn(*halves[0])
    other.learn(*halves[1])
    one.code.m_merge(ctypes.c_void_p(other.code.m_state()))
    models = [fitted(task).partial_fit(*half) for half in halves]
    truth = models[0].merge(models[1]).expansion_(new)
    atol = 1e-7 if dtype == "double" else 1e-4
    np.testing.assert_allclose(one.values(new, 2), truth, rtol=0, atol=atol * np.abs(truth).max())


def test_forgetting_follows_a_change(tmp_path):
    """With forgetting the weights of old rows are powers of it: a weighted ridge of all rows."""
    task, model = "values", fitted("values")
    device, (X, y) = Device(tmp_path, model, task), data(2000, 1, task)
    device.learn(X, -y, 0.99)
    new, _ = data(50, 2, task)
    sums = model._fitted_to
    Z = np.column_stack([np.ones(2000), model.basis_.features(X)])
    w = 0.99 ** np.arange(2000)[::-1]
    gram = Z.T @ (w[:, None] * Z) + sums.alpha * w.sum() * np.diag([0.0] + [1.0] * (Z.shape[1] - 1))
    coef = np.linalg.solve(gram, Z.T @ (w[:, None] * -y))
    truth = np.column_stack([np.ones(50), model.basis_.features(new)]) @ coef
    # the old rows count 0.99 ** 2000; the ridge is that of the turns
    np.testing.assert_allclose(device.values(new, 2), truth, atol=0.02)
    assert np.abs(device.values(new, 2) + model.predict(new)).max() < 0.5 * np.abs(model.predict(new)).max()


def test_what_is_not_finite_is_not_learned(tmp_path):
    device, (X, y) = Device(tmp_path, fitted("values"), "values"), data(3, 1, "values")
    new, _ = data(5, 2, "values")
    before = device.values(new, 2)
    device.learn(np.array([[np.nan, 0.0]]), y[:1])
    for bad in (np.nan, np.inf):
        device.learn(X[:1], np.array([[0.0, bad]]))
    for forgetting in (0.0, 1.5, np.nan):
        device.learn(X, y, forgetting)
    assert np.array_equal(device.values(new, 2), before)
    classes = Device(tmp_path / "two", fitted("two"), "two")
    before = classes.values(new, 1)
    classes.learn(X, np.array([2, -1, 7]))
    assert np.array_equal(classes.values(new, 1), before)


def test_the_sanitizers_find_nothing(tmp_path):
    """In a program of its own: updates, an error, a merge with what it sent before."""
    main = """
#include <string.h>
int main(void)
{
    float x[2] = {0.1f, 0.2f}, out[3], sent[m_N_STATE];
    for (int i = 0; i < 50; i++) {
        x[0] += 0.01f;
        if (!m_update(x, i % 3, 0.99f)) return 1;
    }
    memcpy(sent, m_state(), sizeof sent);
    m_merge(sent);
    m_predict_proba(x, out);
    return m_error() >= 0 && m_N_STATE > 0 && m_predict(x) >= 0 ? 0 : 2;
}
"""
    (tmp_path / "m.c").write_text(to_c(fitted("three"), name="m", dtype="float", update=True) + main)
    build(tmp_path, *SANITIZED, "-Wconversion", "-Wdouble-promotion", "-Wshadow", "m.c", "-o", "m")
    assert subprocess.run([str(tmp_path / "m")], check=False).returncode == 0


def test_inside_of_a_pipeline(tmp_path):
    X, y = data(300, 0, "two")
    pipe = make_pipeline(StandardScaler(), KernelClassifier(n_vectors=6)).fit(X * 50 + 7, y)
    more, labels = data(20 * features_of(pipe[-1]), 1, "two")
    device = Device(tmp_path, pipe, "two")
    device.learn(more * 50 + 7, labels)
    pipe[-1].partial_fit(pipe[0].transform(more * 50 + 7), labels)
    new = data(50, 2, "two")[0] * 50 + 7
    np.testing.assert_allclose(device.values(new, 1)[:, 0], pipe.decision_function(new), atol=1e-7)
    proba = device.run.write("predict_proba", new, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_logistic_regression_cannot_be_updated(tmp_path):
    X, y = data(300, 0, "two")
    model = fitted("two")
    assert model.loss_ == "logistic"
    with pytest.warns(UserWarning, match="update=True begins with .* least squares .* which this KernelClassifier has"):
        to_c(model, update=True)
    model = KernelClassifier().partial_fit(X, y, basis=model.basis_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        device = Device(tmp_path, model, "two")
    np.testing.assert_allclose(device.run.write("predict_proba", X, 2), model.predict_proba(X), atol=1e-9)


def test_what_cannot_learn_is_refused(tmp_path):
    X, y = data(100, 0, "two")
    with pytest.raises(TypeError, match=r"update=True is for KernelClassifier and KernelRegressor, .* got FeatureVec"):
        to_c(FeatureVectorRegressor(max_vectors=4).fit(X, y), update=True)
    with pytest.raises(ValueError, match="update=True counts every sample once; fit this KernelClassifier without"):
        to_c(KernelClassifier(n_vectors=4, class_weight={0: 2.0, 1: 1.0}).fit(X, y), update=True)
    other = FeatureVectorRegressor(max_vectors=4).fit(X, y).basis_
    with pytest.raises(
        ValueError, match=r"update=True needs vectors that KernelRegressor has chosen, .* leave basis out"
    ):
        to_c(KernelRegressor().partial_fit(X, y, basis=other), update=True)
    model = KernelClassifier(n_vectors=4).fit(X, y)
    for more in ({"coverage": 0.9}, {"explain": True}):
        with pytest.raises(ValueError, match=f"leave {next(iter(more))} or update out"):
            to_c(model, update=True, **more)
    save(model, tmp_path / "m.npz")
    with pytest.raises(ValueError, match="came from a file, which holds no sums over its samples"):
        to_c(load(tmp_path / "m.npz"), update=True)
