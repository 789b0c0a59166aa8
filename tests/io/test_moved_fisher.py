"""Kernel Fisher machines whose vectors were moved: files of other languages decide as the model does."""

import ctypes

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import ForwardKernelFisher, SparseKernelFisher, load, save, to_onnx
from tests.fisher.helpers import classes
from tests.io.running import compiled, run_onnx

MODELS = [(ForwardKernelFisher, 2), (SparseKernelFisher, 3)]


@pytest.fixture(scope="module", params=MODELS, ids=["two classes", "three classes"])
def moved(request):
    """A model with moved vectors and a width per feature, behind a scaler, and samples that it has not seen."""
    estimator, n_classes = request.param
    X, codes, _ = classes(90, n_classes)
    labels = np.array(["no", "yes", "perhaps"])[codes]
    model = make_pipeline(StandardScaler(), estimator(refine=True, max_vectors=8)).fit(X, labels)
    own = model[-1]
    assert own.refined_
    assert not np.allclose(own.vectors_, model[0].transform(X)[own.indices_])
    assert len(set(np.ravel(own.kernel_.width).tolist())) == X.shape[1]
    return model, classes(60, n_classes, seed=7)[0]


def test_c_decides_as_the_model(moved, tmp_path):
    model, X = moved
    code, truth = compiled(tmp_path, model), model.decision_function(X)
    decision = code.write("decision", X, truth[:1].size)
    np.testing.assert_allclose(decision.reshape(truth.shape), truth, rtol=1e-9, atol=1e-9)
    assert [code.label(number) for number in code.give("predict", X, ctypes.c_int)] == model.predict(X).tolist()


def test_onnx_decides_as_the_model(moved):
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    model, X = moved
    found = run_onnx(to_onnx(model, dtype="double"), X, "double")
    assert found["label"].tolist() == model.predict(X).tolist()
    truth = model.decision_function(X)
    np.testing.assert_allclose(found["decision"].reshape(truth.shape), truth, rtol=1e-9, atol=1e-9)


def test_a_file_keeps_what_was_moved(moved, tmp_path):
    model, X = moved
    save(model[-1], tmp_path / "moved.npz")
    again = load(tmp_path / "moved.npz")
    assert again.refined_
    np.testing.assert_array_equal(again.vectors_, model[-1].vectors_)
    Z = model[0].transform(X)
    np.testing.assert_array_equal(again.decision_function(Z), model[-1].decision_function(Z))
