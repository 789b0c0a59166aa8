"""Shares of the inputs in C: those of ``explain``."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

import fewkern
from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor, KernelClassifier, KernelRegressor, to_c
from fewkern.core.explanation import Background, shares
from fewkern.core.gaussians import GaussianExpansion
from fewkern.kernels import Laplacian
from tests.core.functions import function, table
from tests.io.running import STRICT, TYPES, Compiled, compile_library

WARNINGS = [*STRICT, "-O2", "-Wconversion", "-Wdouble-promotion", "-Wshadow"]
TOLERANCE = {"double": 1e-10, "float": 1e-4}


def explained(folder, model, X, q, dtype="double", n_inputs=None):
    """Shares ``(n, d, q)`` of the compiled file, and its baseline."""
    folder.mkdir(exist_ok=True)
    code = compile_library(folder, to_c(model, dtype=dtype, explain=True), options=WARNINGS)
    d, base = n_inputs or X.shape[1], np.zeros(q, TYPES[dtype][1])
    code.model_baseline(base.ctypes.data_as(ctypes.c_void_p))
    return Compiled(code, "model", dtype).write("explain", X, d * q).reshape(len(X), d, q), base


def rows(seed=0):
    """Rows that are exact in float, with a column of a few numbers and a long tail."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=200), rng.integers(0, 3, 200), rng.exponential(size=200), rng.normal(size=200)]
    )
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 3] + np.log(X[:, 2])
    return X.astype(np.float32).astype(float), f


CLASSES = {"two": [0.5], "three": [0, 1.5], "discriminant": [0, 1.5]}
MODELS = {
    "values": KernelRegressor(n_vectors=12),
    "two-values": KernelRegressor(n_vectors=8),
    "two": KernelClassifier(n_vectors=8),
    "three": KernelClassifier(n_vectors=12),
    "no-vectors": KernelRegressor(n_vectors=1),
    "features": FeatureVectorRegressor(max_vectors=10),
    "discriminant": FeatureVectorDiscriminant(max_vectors=10),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", MODELS)
def test_shares_are_those_of_explain(name, dtype, tmp_path):
    X, f = rows()
    y = np.digitize(f, CLASSES[name]) if name in CLASSES else f
    y = np.column_stack([f, X[:, 0]]) if name == "two-values" else y
    model = MODELS[name].fit(X, y)
    if name == "no-vectors":
        basis = replace(model.basis_, vectors=model.basis_.vectors[:0], inverse_widths=np.zeros(0))
        model.expansion_ = GaussianExpansion(basis, np.zeros((0, 1)), model.expansion_.slopes, np.array([2.0]))
    new = np.concatenate([X[:40], 3 * X[:10]])
    found = model.explain(new)
    truth = found.values.reshape(*new.shape, -1)
    values = getattr(model, "decision_function", model.predict)(new).reshape(len(new), -1)
    got, base = explained(tmp_path, model, new, truth.shape[2], dtype)
    atol = TOLERANCE[dtype] * np.ptp(values)
    np.testing.assert_allclose(got, truth, rtol=0, atol=atol)
    np.testing.assert_allclose(got.sum(axis=1) + base, values, rtol=0, atol=2 * atol)
    np.testing.assert_allclose(base, np.ravel(found.baseline), rtol=1e-6)


@pytest.mark.parametrize("given", [{"directions": 3}, {"own_widths": False}, {"linear": 0, "directions": 0}], ids=str)
def test_any_metric_from_the_vectors(given, rng, tmp_path):
    """A function by itself keeps no background; columns without a width have a share through directions and slopes."""
    X = table(rng)
    f = function(rng, X, outputs=2, **given)
    f = replace(f, basis=replace(f.basis, scales=f.basis.scales * np.array([1.0, 0.0, 1.0, 1.0, 0.0])))
    m = f.n_vectors
    truth, baseline = shares(f, X, Background(f.basis.vectors, np.ones(m) / m))
    got, base = explained(tmp_path, f, X, 2)
    np.testing.assert_allclose(got, truth, atol=1e-10)
    np.testing.assert_allclose(base, baseline, atol=1e-10)


def test_far_out_the_sum_holds_still(tmp_path):
    """Where every Gaussian is zero, in float too; what is not a number has no shares."""
    X, f = rows()
    model = FeatureVectorRegressor(max_vectors=10).fit(X, f)
    far = np.array([[1e30, -1e30, 1e20, 0.0], [0, 1e36, 0, 0], [np.nan, 0, 0, 0]])
    got, base = explained(tmp_path, model, far, 1, "float")
    np.testing.assert_allclose(got[:2].sum(axis=1) + base, model.predict(far[:2])[:, None], rtol=0, atol=1e-3)
    assert np.isnan(got[2]).any()


def test_tables_with_texts_and_gaps(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, f = rows()
    wood = np.array(["ash", "birch", "cedar"], dtype=object)[X[:, 1].astype(int)]
    frame = pandas.DataFrame({"size": X[:, 0], "wood": wood, "tail": X[:, 2], "y": f})
    frame.loc[frame.index[::7], "size"] = np.nan
    model = fewkern.TableModel(n_vectors=8, holdout=0).fit(frame, "y")
    truth = model.explain(frame).values
    codes = frame.assign(wood=X[:, 1])[["size", "wood", "tail"]].to_numpy(float)
    got, _ = explained(tmp_path, model, codes, 1)
    np.testing.assert_allclose(got[:, :, 0], truth, atol=1e-10)


def test_what_has_no_shares_is_refused():
    X, f = rows()
    for model in (fewkern.ParzenDensity(), FeatureVectorRegressor(max_vectors=4, kernel=Laplacian(1.0))):
        with pytest.raises(ValueError, match=f"explain=True is for sums of Gaussians.* this {type(model).__name__} is"):
            to_c(model.fit(X, f), explain=True)
