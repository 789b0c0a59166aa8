"""Models of tables with categories and gaps: files, C and ONNX, and what refuses them."""

import copy

import numpy as np
import pytest

from fewkern import KernelClassifier, KernelRegressor, load, save, to_c, to_js, to_onnx, to_sql
from fewkern.base import check_samples
from fewkern.io import ModelFileError
from tests.fuzz.lies import put, tamper
from tests.io.running import assert_same, expected, run_onnx, run_sanitized
from tests.learn.test_columns import table

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def model_of(estimator, labels=None, **given):
    X, y = table(300)
    return estimator(n_vectors=6, **given).fit(X, y if labels is None else labels(y)), X


def three(y):
    return np.digitize(y, np.quantile(y, [0.3, 0.7]))


def odd(X):
    """Some rows, with unknown levels and gaps in every column."""
    new = X[:30].astype({"town": object, "flag": object})
    new.iloc[0, 1], new.iloc[1, 1], new.iloc[2, 3], new.iloc[3, 2] = "nowhere", None, None, np.nan
    new.iloc[4, 0] = np.nan
    return new


@pytest.mark.parametrize("estimator", [KernelRegressor, KernelClassifier])
def test_a_file_keeps_levels_and_tables(estimator, tmp_path):
    model, X = model_of(estimator, three if estimator is KernelClassifier else None)
    again, new = load(save(model, tmp_path / "model", with_sums=True)), odd(X)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.explain(new).values, model.explain(new).values)
    np.testing.assert_array_equal(again.novelty(new), model.novelty(new))
    assert [None if own is None else own.tolist() for own in again.categories_] == [
        None if own is None else own.tolist() for own in model.categories_
    ]
    assert again.categorical_features == "from_dtype"


def test_a_file_keeps_numbers_as_levels(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(80), rng.integers(3, 6, 80)])
    model = KernelRegressor(categorical_features=[1], n_vectors=4).fit(X, X[:, 1] + X[:, 0])
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.categories_[1].tolist() == [3, 4, 5]


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("labels", [None, three, lambda y: y > 1], ids=["numbers", "three classes", "two classes"])
def test_c_and_onnx_take_codes(labels, dtype, tmp_path):
    """The inputs are the columns of the table as numbers: codes of levels, and NaN for a gap."""
    model, X = model_of(KernelRegressor if labels is None else KernelClassifier, labels)
    codes = check_samples(model, odd(X)).astype(np.float32).astype(float)
    back = copy.copy(model)
    del back.feature_names_in_
    back.categories_ = [None if own is None else np.arange(len(own)) for own in model.categories_]  # codes as levels
    truth = expected(back, codes)
    tolerance = {"double": 1e-9, "float": 2e-3}[dtype]
    assert_same(run_sanitized(tmp_path, model, codes, dtype), truth, tolerance)
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    assert_same(run_onnx(to_onnx(model, dtype=dtype), codes, dtype), truth, tolerance)


def test_numbers_with_gaps_have_one_value_in_c_and_onnx(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3)).astype(np.float32).astype(float)
    y = X[:, 0] + X[:, 1]
    X[rng.random(120) < 0.3, 1] = np.nan
    model = KernelRegressor(n_vectors=5).fit(X, y)
    truth = expected(model, X)
    assert_same(run_sanitized(tmp_path, model, X, "double"), truth, 1e-9)
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    assert_same(run_onnx(to_onnx(model, dtype="double"), X, "double"), truth, 1e-9)


def test_what_cannot_be_written_says_so():
    model, _ = model_of(KernelRegressor)
    for write in (to_js, to_sql, lambda one: to_c(one, dtype="int16")):
        with pytest.raises(ValueError, match="this KernelRegressor was fitted to categories or gaps, which can be"):
            write(model)
    with pytest.raises(ValueError, match="novelty of a KernelRegressor with categories cannot be written yet"):
        to_c(model, false_alarms=0.1)


def test_a_pipeline_before_categories_is_not_written():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = np.column_stack([np.linspace(0, 1, 60), np.arange(60) % 3])
    model = make_pipeline(StandardScaler(), KernelRegressor(categorical_features=[1])).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="a KernelRegressor with categories takes its columns as they are"):
        to_c(model)


@pytest.mark.parametrize(
    ("place", "lie"),
    [
        ("levels.positions", lambda a: a[:-1]),
        ("levels.counts", lambda a: a + 1),
        ("levels.columns", lambda a: a * 0),
        ("columns", lambda a: a * 0),
        ("gaps", lambda a: a * np.nan),
    ],
)
def test_files_that_lie_about_levels_are_refused(place, lie, tmp_path):
    model, _ = model_of(KernelRegressor)
    path = save(model, tmp_path / "model")
    tamper(path, put(f"expansion_.basis.preparation.{place}", lie))
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize(
    "lie",
    [
        lambda own: [*own[:-1], None],
        lambda own: own[:-1],
        lambda own: [own[0], own[1][::-1], *own[2:]],
        lambda own: [own[0], own[1][:-1], *own[2:]],
        lambda own: "abcd",
        lambda own: None,
    ],
)
def test_levels_that_are_not_those_of_the_tables_are_refused(lie, tmp_path):
    model, _ = model_of(KernelRegressor)
    model.categories_ = lie(model.categories_)
    with pytest.raises(ValueError):
        save(model, tmp_path / "model")
