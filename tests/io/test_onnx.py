import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern
from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor, ForwardDensity, to_onnx
from fewkern.datasets import make_banana, make_sinc
from fewkern.io.onnx import OPSET
from fewkern.kernels import Gaussian, LinearSpline
from tests.io.running import run_onnx, run_reference


@pytest.fixture(scope="module")
def onnx():
    return pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")


@pytest.fixture(scope="module")
def banana():
    X, y = make_banana(150)
    X = X.astype(np.float32).astype(float)
    return X, y, FeatureVectorDiscriminant(kernel=Gaussian(length_scale=1.0), max_vectors=8, alpha=1e-2).fit(X, y)


def test_what_the_file_says_of_itself(onnx, banana, tmp_path):
    _, _, model = banana
    proto = to_onnx(model, tmp_path / "banana.onnx")
    assert onnx.load(tmp_path / "banana.onnx") == proto
    assert [p.name for p in tmp_path.iterdir()] == ["banana.onnx"]
    assert (proto.producer_name, proto.producer_version) == ("fewkern", fewkern.__version__)
    assert [(entry.domain, entry.version) for entry in proto.opset_import] == [("", OPSET)]
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    assert facts == {"model": "FeatureVectorDiscriminant", "classes": "[0, 1]"}
    assert "FeatureVectorDiscriminant, Gaussian kernel, 8 vectors of 2 features" in proto.doc_string
    assert to_onnx(model).SerializeToString() == proto.SerializeToString()
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        to_onnx(model, tmp_path / "nowhere" / "banana.onnx")


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([-3, 7], "i"), (["no", "ŷes"], "O"), ([0.0, 2.0], "f"), ([False, True], "b"), (["a", "b", "c"], "O")],
)
def test_labels_of_every_type(onnx, labels, kind, banana):
    X, _, _ = banana
    y = np.array(labels)[np.arange(len(X)) % len(labels)]
    model = FeatureVectorDiscriminant(max_vectors=5, alpha=1e-1).fit(X, y)
    proto = to_onnx(model, dtype="double")
    for found in (run_onnx(proto, X, "double"), run_reference(proto, X, "double")):
        assert found["label"].tolist() == model.predict(X).tolist()
    assert run_onnx(proto, X, "double")["label"].dtype.kind == kind
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(facts["classes"]) == labels


@pytest.mark.parametrize("n", [0, 1, 7])
def test_any_number_of_rows(onnx, n, banana):
    X, _, model = banana
    found = run_onnx(to_onnx(model), X[:n])
    assert {name: value.shape for name, value in found.items()} == {
        "label": (n,),
        "probabilities": (n, 2),
        "decision": (n, 1),
        "variable": (n, 1),
    }


@pytest.mark.parametrize("d", [2, 40])
def test_far_from_the_origin_float_is_as_good_as_its_input(onnx, d, rng):
    """Few features are subtracted one by one, many through a matrix product; neither loses the distances."""
    X = (rng.standard_normal((100, d)) + 1e4 * rng.standard_normal(d)).astype(np.float32).astype(float)
    y = np.sin(X[:, 0] - X[:, 0].mean())
    model = FeatureVectorRegressor(kernel=Gaussian(length_scale=2.0 * d**0.5), max_vectors=10, alpha=1e-1).fit(X, y)
    found = run_onnx(to_onnx(model), X)["variable"]
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=0, atol=1e-4)


@pytest.mark.parametrize("d", [2, 40])
def test_extreme_samples_give_no_nan(onnx, d, rng):
    X = rng.standard_normal((60, d))
    # in every direction, also towards the vectors: products of opposite signs overflow to infinity minus infinity
    far = np.concatenate([1e9 * np.ones((1, d)), 1e300 * np.ones((1, d)), 1.5e308 * np.sign(X)])
    density = ForwardDensity(bandwidth=1.0, scale="whiten" if d == 2 else "std").fit(X)
    found = run_onnx(to_onnx(density, dtype="double"), far, "double")["log_density"]
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found[0, 0], density.score_samples(far[:1])[0], rtol=1e-9)
    model = FeatureVectorRegressor(kernel=Gaussian(length_scale=1.0), max_vectors=10).fit(X, X[:, 0])
    found = run_onnx(to_onnx(model, dtype="double"), far, "double")["variable"]
    np.testing.assert_allclose(found, np.full((62, 1), model.expansion_.offset[0]), rtol=1e-12)


def test_sparse_float32_foreign_and_scaled_models(onnx, foreign, banana):
    X, y, _ = banana
    to, _ = foreign
    base = FeatureVectorDiscriminant(kernel=Gaussian(length_scale=1.0), max_vectors=5, alpha=1e-2)
    for samples, targets in ((sp.csr_array(X), y), (X.astype(np.float32), y), (to(X), to(y))):
        model = base.fit(samples, targets)
        truth = np.asarray(model.expansion_.like(X)(X))
        np.testing.assert_allclose(run_onnx(to_onnx(model), X)["variable"], truth, rtol=0, atol=1e-5)
    pipeline = make_pipeline(StandardScaler(), base).fit(100 + 10 * X, y)
    found = run_onnx(to_onnx(pipeline, dtype="double"), 100 + 10 * X, "double")
    np.testing.assert_allclose(found["probabilities"], pipeline.predict_proba(100 + 10 * X), rtol=0, atol=1e-10)


def test_feature_names(onnx, banana):
    pd = pytest.importorskip("pandas")
    X, y, _ = banana
    frame = pd.DataFrame(X, columns=["length", "width"])
    for model in (
        FeatureVectorDiscriminant(max_vectors=3),
        make_pipeline(StandardScaler(), ForwardDensity(bandwidth=0.5)),
    ):
        facts = {entry.key: entry.value for entry in to_onnx(model.fit(frame, y)).metadata_props}
        assert json.loads(facts["feature_names"]) == ["length", "width"]


def test_a_number_too_large_for_float(onnx):
    model = fewkern.KernelExpansion(fewkern.kernels.Linear(), np.full((1, 2), 1e300), np.ones((1, 1)), np.zeros(1))
    with pytest.raises(ValueError, match='numbers that no float32 can hold; use dtype="double"'):
        to_onnx(model)


def test_without_onnx_the_error_says_what_to_install(banana, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"to_onnx needs onnx: pip install onnx"):
        to_onnx(banana[2])


def test_every_node_has_a_name_of_its_own():
    """Some versions of ONNX Runtime name the nodes that they merge after the first, and fail if there are two."""
    spline = FeatureVectorRegressor(kernel=LinearSpline(), max_vectors=5).fit(*make_sinc(60))
    names = [node.name for node in to_onnx(spline).graph.node]
    assert all(names)
    assert len(set(names)) == len(names)
