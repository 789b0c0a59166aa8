import json
import sys

import numpy as np
import pytest

import fewkern
from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor, to_onnx
from fewkern.datasets import make_banana, make_sinc
from fewkern.io.onnx_graph import OPSET
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


LABELS = {"i": [-3, 7], "u": [2**63 + 5, 2**63 + 7], "O": ["no", "ŷes", "ž"], "f": [0.0, 2.0], "b": [False, True]}


@pytest.mark.parametrize(("kind", "labels"), LABELS.items())
def test_labels_of_every_type(onnx, kind, labels, banana):
    X, _, _ = banana
    y = np.array(labels)[np.arange(len(X)) % len(labels)]
    model = FeatureVectorDiscriminant(max_vectors=5, alpha=1e-1).fit(X, y)
    proto = to_onnx(model, dtype="double")
    for found in (run_onnx(proto, X, "double"), run_reference(proto, X, "double")):
        assert found["label"].tolist() == model.predict(X).tolist()
    assert run_onnx(proto, X, "double")["label"].dtype.kind == kind
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(facts["classes"]) == labels


def test_no_rows(onnx, banana):
    found = run_onnx(to_onnx(banana[2]), banana[0][:0])
    shapes = {"label": (0,), "probabilities": (0, 2), "decision": (0, 1), "variable": (0, 1)}
    assert {name: value.shape for name, value in found.items()} == shapes


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
