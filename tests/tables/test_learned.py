"""Models of tables whose estimator is learned."""

import numpy as np
import pytest

import fewkern
from fewkern import TableModel, load
from fewkern.app.jobs import rows_inside
from fewkern.base import path_of, vectors_moved
from fewkern.datasets import make_banana
from tests.io.running import run_onnx


@pytest.fixture
def model():
    X, y = make_banana(200)
    return TableModel(holdout=0, max_vectors=8).fit({"a": X[:, 0], "b": 100 * X[:, 1]}, y), X, y


def test_what_is_said_of_it(model):
    found, _, _ = model
    said = dict(found.summary())
    assert said["kernel"].startswith("Gaussian, learned widths, ")
    assert "(of prepared columns)" in said["kernel"]
    assert said["vectors kept"].startswith(str(found.estimator_.n_vectors_))
    assert vectors_moved(found.estimator_)
    assert "were moved, and are not rows of the table. But novelty is measured by rows" in rows_inside(found)
    frame = found.kept()
    assert list(frame.columns) == ["a", "b", "coefficient"]
    assert len(frame) == found.estimator_.n_vectors_


def test_files_and_exports(model, tmp_path):
    found, X, _ = model
    frame = {"a": X[:, 0], "b": 100 * X[:, 1]}
    assert path_of(found.estimator_) is found.estimator_.path_
    again = load(found.save(tmp_path / "m.npz", keep_path=False))
    assert path_of(again.estimator_) is None
    assert (again.predict(frame) == found.predict(frame)).all()
    proto = fewkern.to_onnx(found, dtype="double")
    given = np.column_stack([X[:, 0], 100 * X[:, 1]])
    probabilities = run_onnx(proto, given, "double")["probabilities"]
    np.testing.assert_allclose(probabilities, found.predict_proba(frame), atol=1e-10)
