"""The self-test that goes with a C file: it passes, and it fails where it should."""

import subprocess

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import fewkern
from fewkern import FeatureVectorDiscriminant, FeatureVectorPCA, ForwardDensity, KernelRegressor, to_c, to_c_test
from fewkern.datasets import make_banana
from tests.io.running import STRICT, build


def differing(folder, code=None):
    """Number of rows of which the compiled file does not say what the test expects."""
    if code is not None:
        (folder / "m.c").write_text(code)
    build(folder, *STRICT, "-Dm_TEST_MAIN", "m.c", "m_test.c", "-o", "m")
    return subprocess.run([str(folder / "m")], check=False).returncode


def write(folder, model, X, dtype="double"):
    to_c_test(model, X, folder / "m_test.c", name="m", dtype=dtype)
    return to_c(model, folder / "m.c", name="m", dtype=dtype)


MODELS = {
    "classes": FeatureVectorDiscriminant(max_vectors=6, alpha=1e-2),
    "values": KernelRegressor(n_vectors=5),
    "components": FeatureVectorPCA(max_vectors=4, n_components=2),
    "density": ForwardDensity(),
    "pipeline": make_pipeline(SimpleImputer(), KernelRegressor(n_vectors=5)),
}


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("name", MODELS)
def test_it_passes(name, dtype, tmp_path):
    X, y = make_banana(100, random_state=0)
    X = X.astype(np.float32).astype(float)
    y = X[:, 0] * X[:, 1] if name in ("values", "pipeline") else y
    if name == "pipeline":
        X[::5, 0] = np.nan
    write(tmp_path, MODELS[name].fit(X, y), X, dtype)
    assert differing(tmp_path) == 0


def test_it_fails_where_the_file_is_another_one(tmp_path):
    X, _ = make_banana(100, random_state=0)
    code = write(tmp_path, KernelRegressor(n_vectors=5).fit(X, X[:, 0] * X[:, 1]), X)
    assert differing(tmp_path, code.replace("gap * gap", "gap * gap * 1.000001")) > 10
    other = to_c(KernelRegressor(n_vectors=5).fit(X, X[:, 0]), name="m")
    assert differing(tmp_path, other) == 20


def test_tables_with_texts(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = make_banana(100, random_state=0)
    frame = pandas.DataFrame({"size": X[:, 0], "wood": np.where(X[:, 1] > 0, "ash", "birch").astype(object), "y": y})
    frame.loc[frame.index[::7], "size"] = np.nan
    frame["price"] = [f"{price:.2f} €" for price in 900 + 50 * X[:, 1]]
    frame["day"] = pandas.date_range("2024-01-01", periods=100).astype(str)
    model = fewkern.TableModel(max_vectors=5, holdout=0).fit(frame, "y")
    write(tmp_path, model, frame)
    assert differing(tmp_path) == 0
    with pytest.raises(ValueError, match="the table lacks the column 'size' that the model was fitted with"):
        to_c_test(model, frame.drop(columns="size"))
    with pytest.raises(TypeError, match="to_c_test: X must be rows for the model, got 'test"):
        to_c_test(model, "test.c", X)
    with pytest.raises(ValueError, match="to_c_test: X has no rows"):
        to_c_test(model, frame.iloc[:0])


def test_a_column_that_is_not_there():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_banana(60)[0], columns=["a", "b"])
    model = KernelRegressor(n_vectors=3).fit(frame, frame["a"])
    with pytest.raises(ValueError, match="to_c_test: X has no column 'b', an input of the file"):
        to_c_test(model, frame[["a"]])
