"""Dask collections in the same classes: the same model, whatever the partitions are, and lazy predictions."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    KernelClassifier,
    KernelRegressor,
)
from fewkern.arrays.partitions import PartitionError
from fewkern.core import population
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana
from tests.checks.everyone import public_estimators

N, SAMPLE, BLOCK = 900, 240, 128
STREAMING = {
    "learner": KernelClassifier(max_vectors=12),
    "learner of numbers": KernelRegressor(max_vectors=12),
    "regressor": FeatureVectorRegressor(max_vectors=20),
    "discriminant": FeatureVectorDiscriminant(max_vectors=20),
    "discriminant-weighted": FeatureVectorDiscriminant(max_vectors=20, class_weight={"left": 1, "right": 9}),
    "pca": FeatureVectorPCA(max_vectors=20, n_components=3),
    "selector": FeatureVectorSelector(max_vectors=20),
}


@pytest.fixture(scope="module")
def table():
    X, y = make_banana(N, random_state=1)
    X = np.column_stack([X, np.cos(X[:, 0])])
    return X, np.where(y > 0, "right", "left"), X[:, 0] * X[:, 1]


def values(model, X):
    for method in ("predict_proba", "predict", "transform", "score_samples"):
        if hasattr(model, method):
            return getattr(model, method)(X)
    raise AssertionError(model)


def targets(name, table):
    return table[2] if name in ("regressor", "learner of numbers") else table[1]


@pytest.mark.parametrize("name", STREAMING)
def test_the_same_model_as_in_memory(name, table):
    X, y, model = table[0], targets(name, table), STREAMING[name]
    here = clone(model).fit(X, y)
    there = clone(model)
    there.fit(da.from_array(X, chunks=(333, 2)), da.from_array(y, chunks=100))
    if name != "selector":  # in memory it looks at all rows
        np.testing.assert_array_equal(there.vectors_, here.vectors_)
        np.testing.assert_allclose(values(there, X), values(here, X), atol=1e-10)
    assert isinstance(there.vectors_, np.ndarray)
    if there.indices_ is not None:
        np.testing.assert_array_equal(X[there.indices_], there.vectors_)


@pytest.mark.parametrize("name", ["learner", "discriminant", "pca"])
def test_the_same_model_for_any_chunking(table, name):
    X, y, model = table[0], table[1], STREAMING[name]
    whole = da.from_array(X, chunks=(N, 3))
    one = clone(model).fit(whole, y)
    for chunks in ((450, 450), (0, 1, 0, 898, 1)):
        other = clone(model).fit(whole.rechunk((chunks, (1, 2))), da.from_array(y, chunks=(chunks,)))
        np.testing.assert_array_equal(values(one, X), values(other, X))


def test_the_coefficients_come_from_all_rows(table):
    X, _, t = table
    far = np.flatnonzero(~np.isin(np.arange(N), Samples.of(X).drawn(240).rows))[0]
    other = t.copy()
    other[far] += 1e3
    chunked = da.from_array(X, chunks=300)
    one = FeatureVectorRegressor(max_vectors=5).fit(chunked, t)
    two = FeatureVectorRegressor(max_vectors=5).fit(chunked, other)
    assert np.abs(one.predict(X) - two.predict(X)).max() > 0.1


def test_a_sample_of_all_rows_is_the_fit_in_memory(table, monkeypatch):
    monkeypatch.setattr(population, "SAMPLE_ROWS", N)
    X, y, _ = table
    here, there = KernelClassifier().fit(X, y), KernelClassifier().fit(da.from_array(X, chunks=400), y)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-10)
    assert here.held_out_error_ == there.held_out_error_


@pytest.mark.parametrize("name", ["regressor", "discriminant", "pca", "selector"])
def test_rows_of_weight_zero_are_absent(name, table):
    X, y, model = table[0], targets(name, table), STREAMING[name]
    w = np.ones(N)
    w[::2] = 0
    chunked = [da.from_array(a, chunks=(300, *a.shape[1:])) for a in (X, y, w)]
    there = clone(model).fit(chunked[0], chunked[1], sample_weight=chunked[2])
    here = clone(model).fit(X, y, sample_weight=w)
    if name != "selector":
        np.testing.assert_allclose(values(there, X), values(here, X), atol=1e-10)
    assert np.all(there.indices_ % 2 == 1)


def test_predictions_are_lazy_and_of_the_same_kind(table):
    X, y, _ = table
    model = FeatureVectorDiscriminant(max_vectors=10).fit(X, y)
    lazy = da.from_array(X, chunks=((0, 500, 400), 3))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found = getattr(model, method)(lazy)
        assert isinstance(found, da.Array)
        assert found.dtype == getattr(model, method)(X[:1]).dtype
        np.testing.assert_array_equal(found.compute(), getattr(model, method)(X))


def test_data_frames_give_series_and_data_frames(table):
    X, y, _ = table
    frame = pd.DataFrame(X, columns=["u", "v", "w"], index=np.arange(N) * 2)
    lazy = dd.from_pandas(frame, npartitions=4)
    model = FeatureVectorDiscriminant(max_vectors=10).fit(
        lazy, dd.from_pandas(pd.Series(y, frame.index), npartitions=4)
    )
    assert list(model.feature_names_in_) == ["u", "v", "w"]
    labels, shares = model.predict(lazy), model.predict_proba(lazy)
    assert isinstance(labels, dd.Series)
    assert isinstance(shares, dd.DataFrame)
    pd.testing.assert_series_equal(labels.compute(), pd.Series(model.predict(frame), frame.index), check_dtype=False)
    assert list(shares.columns) == ["left", "right"]
    np.testing.assert_array_equal(shares.compute(), model.predict_proba(frame))
    components = FeatureVectorPCA(max_vectors=5, n_components=2).fit(lazy).transform(lazy)
    assert list(components.columns) == ["featurevectorpca0", "featurevectorpca1"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(lazy.rename(columns={"u": "z"})).compute()


def test_unknown_sizes_and_empty_partitions(table):
    X, y, _ = table
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(y=y)
    lazy = dd.from_pandas(frame, npartitions=6)
    lazy = lazy[lazy.u > 0.1]  # lengths unknown
    kept = frame[frame.u > 0.1]
    here = FeatureVectorDiscriminant(max_vectors=10).fit(kept[["u", "v", "w"]], kept.y)
    there = FeatureVectorDiscriminant(max_vectors=10).fit(lazy[["u", "v", "w"]], lazy.y)
    new = pd.DataFrame(X, columns=["u", "v", "w"])
    np.testing.assert_allclose(there.decision_function(new), here.decision_function(new), atol=1e-10)
    array = da.from_array(X, chunks=(300, 3))
    array = array[array[:, 0] > 0.1]
    assert np.isnan(array.shape[0])
    again = FeatureVectorDiscriminant(max_vectors=10).fit(array, kept.y.to_numpy())
    np.testing.assert_array_equal(again.decision_function(X), there.decision_function(new))
    assert np.isnan(array.shape[0])  # the user's array is as it was


def test_single_precision_stays(table):
    X, y, _ = table
    model = FeatureVectorDiscriminant(max_vectors=10).fit(da.from_array(X.astype(np.float32), chunks=300), y)
    assert model.vectors_.dtype == model.expansion_.coef.dtype == np.float32


def test_rare_classes_are_in_the_sample(table):
    X, y, _ = table
    y = y.copy()
    y[[3, 800]] = "rare"
    model = FeatureVectorDiscriminant(max_vectors=20).fit(da.from_array(X, chunks=100), y)
    assert list(model.classes_) == ["left", "rare", "right"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda X: da.where(da.arange(N, chunks=300)[:, None] == 700, np.nan, X),
            r"NaN or infinity \(rows 640 to 767\)",
        ),
        (lambda X: X.astype(object), "must be numbers"),
        (lambda X: X[:, 0], "2-D"),
        (lambda X: X[:, X.sum(axis=0) > -np.inf], "the number of features of the Dask array is unknown"),
        (lambda X: X[:500], "inconsistent numbers of samples"),
    ],
)
def test_bad_collections(table, spoil, message):
    X, y, _ = table
    with pytest.raises(ValueError, match=message):
        FeatureVectorDiscriminant().fit(spoil(da.from_array(X, chunks=300)), y)


def test_predictions_need_a_known_number_of_features(table):
    X, y, _ = table
    model = FeatureVectorDiscriminant(max_vectors=5).fit(X, y)
    lazy = da.from_array(X, chunks=300)
    with pytest.raises(ValueError, match="X has an unknown number of features, but the model was fitted with 3"):
        model.predict(lazy[:, lazy.sum(axis=0) > -np.inf])


def test_a_frame_with_text_says_what_to_do(table):
    lazy = dd.from_pandas(pd.DataFrame({"u": table[0][:, 0], "town": table[1]}), npartitions=2)
    with pytest.raises(ValueError, match=r"columns town .* hold no numbers; encode them first"):
        FeatureVectorDiscriminant().fit(lazy, table[1])


def test_one_class_and_missing_targets(table):
    X, y, t = table
    lazy = da.from_array(X, chunks=300)
    with pytest.raises(ValueError, match=r"only one class \('a'\)"):
        FeatureVectorDiscriminant().fit(lazy, np.full(N, "a"))
    with pytest.raises(ValueError, match="y contains NaN"):
        FeatureVectorRegressor().fit(lazy, np.where(np.arange(N) == 5, np.nan, t))
    with pytest.raises(ValueError, match="y must hold numbers"):
        FeatureVectorRegressor().fit(lazy, y)
    with pytest.raises(ValueError, match="none of them missing"):
        FeatureVectorDiscriminant().fit(lazy, np.where(np.arange(N) == 5, None, y.astype(object)))
    with pytest.raises(ValueError, match="sample_weight must be one number"):
        FeatureVectorDiscriminant().fit(lazy, y, sample_weight=np.full(N, -1.0))


def test_a_partition_that_fails_is_named(table):
    X, y, _ = table

    def broken(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 2:
            raise OSError("the disk is gone")
        return block

    lazy = da.from_array(X, chunks=(300, 3)).map_blocks(broken, dtype=float)
    model = FeatureVectorDiscriminant()
    with pytest.raises(PartitionError, match=r"partition 2 of the Dask collection .*the disk is gone"):
        model.fit(lazy, y)
    assert not hasattr(model, "expansion_")


def test_estimators_that_need_all_rows_say_so(table):
    X, y, _ = table
    elsewhere = {"ForwardDensity", "ForwardKernelFisher", "GraphEmbedding", "RecursiveSVM", "SparseKernelFisher"}
    for name, estimator in public_estimators().items():
        if name not in elsewhere and estimator not in map(type, STREAMING.values()):
            with pytest.raises(TypeError, match=f"{name}: X is a Dask collection"):
                estimator().fit(da.from_array(X, chunks=300), y)


def test_promises_are_made_block_by_block():
    X = np.random.default_rng(0).normal(size=(300, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    parts, blocks = dd.from_pandas(frame, npartitions=3), da.from_array(X, chunks=(110, 2))
    regression = KernelRegressor(n_vectors=4).fit(frame, X[:, 0] * X[:, 1])
    bounds = regression.predict_interval(parts, coverage=0.8).compute()
    assert list(bounds.columns) == ["lower", "upper"]
    np.testing.assert_allclose(bounds, regression.predict_interval(frame, coverage=0.8))
    np.testing.assert_allclose(regression.novelty(parts).compute(), regression.novelty(frame))
    classes = KernelClassifier(n_vectors=4).fit(X, X[:, 0] > 0)
    np.testing.assert_array_equal(classes.predict_set(blocks, 0.8).compute(), classes.predict_set(X, 0.8))
    two = KernelRegressor(n_vectors=4).fit(X, X[:, :2])
    np.testing.assert_allclose(two.predict_interval(blocks).compute(), two.predict_interval(X))
    with pytest.raises(ValueError, match=r"an answer of shape \(2, 2\), which has no place in a data frame"):
        KernelRegressor(n_vectors=4).fit(frame, X[:, :2]).predict_interval(parts)


def test_some_columns_of_several_small_files(tmp_path):
    """Dask joins small files when only some of their columns are read."""
    X = np.random.default_rng(0).normal(size=(300, 5))
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=X[:, 0] * X[:, 1])
    for k in range(6):
        table[50 * k : 50 * k + 50].to_parquet(tmp_path / f"part{k}.parquet")
    lazy = dd.read_parquet(tmp_path / "*.parquet")
    model = KernelRegressor(n_vectors=4).fit(lazy[["a", "b"]], lazy["y"])
    same = KernelRegressor(n_vectors=4).fit(table[["a", "b"]], table["y"])
    np.testing.assert_allclose(model.predict(lazy[["a", "b"]]).compute(), same.predict(table[["a", "b"]]), atol=1e-8)
