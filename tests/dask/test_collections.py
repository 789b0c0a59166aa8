"""Dask collections in the same classes: the same model, whatever the partitions are, and lazy predictions."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    ForwardDensity,
    ForwardKernelFisher,
    GraphEmbedding,
    KernelClassifier,
    KernelRegressor,
    ParzenDensity,
    ReducedSetDensity,
    SparseKernelFisher,
    graphs,
)
from fewkern.arrays import sampling
from fewkern.arrays.partitions import PartitionError
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana
from tests.checks.everyone import public_estimators
from tests.dask.test_same_model import MODELS
from tests.dask.test_same_model import table as three_classes

N, SAMPLE, BLOCK = 900, 240, 128


@pytest.fixture(scope="module")
def table():
    X, y = make_banana(N, random_state=1)
    X = np.column_stack([X, np.cos(X[:, 0])])
    return X, np.where(y > 0, "right", "left"), X[:, 0] * X[:, 1]


CLASSES = ("predict", "predict_proba", "predict_log_proba")
DENSITIES = ("score_samples", "pdf", "cdf")


@pytest.mark.parametrize(
    ("estimator", "methods"),
    [
        (FeatureVectorDiscriminant(max_vectors=10), (*CLASSES, "decision_function")),
        (DensityClassifier(estimator=ForwardDensity(max_vectors=2, cv=None)), (*CLASSES, "predict_joint_log_proba")),
        (ForwardDensity(cv=None, scale="std"), DENSITIES),
        (ParzenDensity(), DENSITIES),
        (ReducedSetDensity(bandwidth="silverman"), DENSITIES),
    ],
)
def test_values_are_lazy_and_of_the_same_kind(table, estimator, methods):
    X, y, _ = table
    model = clone(estimator).fit(X[:200], y[:200])
    lazy = da.from_array(X, chunks=((0, 500, 400), 3))
    for method in methods:
        found = getattr(model, method)(lazy)
        assert isinstance(found, da.Array)
        assert found.dtype == getattr(model, method)(X[:1]).dtype
        np.testing.assert_array_equal(found.compute(), getattr(model, method)(X))
    if methods is DENSITIES:
        assert model.score(lazy) == pytest.approx(model.score(X))


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
    with pytest.raises(ValueError, match="X has an unknown number of features, but the model was fitted with 3"):
        model.predict(da.from_array(X)[:, da.from_array(X).sum(axis=0) > -np.inf])


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
        (
            lambda X: dd.from_dask_array(X[:, :2], columns=["u", "v"]).assign(town="Bern"),
            r"columns town .* hold no numbers; encode them first",
        ),
    ],
)
def test_bad_collections(table, spoil, message):
    X, y, _ = table
    with pytest.raises(ValueError, match=message):
        FeatureVectorDiscriminant().fit(spoil(da.from_array(X, chunks=300)), y)


@pytest.mark.parametrize(
    ("estimator", "y", "weights", "message"),
    [
        (FeatureVectorDiscriminant(), np.full(N, "a"), None, r"only one class \('a'\)"),
        (FeatureVectorRegressor(), np.where(np.arange(N) == 5, np.nan, 1.0), None, "y contains NaN"),
        (FeatureVectorRegressor(), np.full(N, "a"), None, "y must hold numbers"),
        (FeatureVectorDiscriminant(), np.where(np.arange(N) == 5, None, "a"), None, "none of them missing"),
        (FeatureVectorDiscriminant(), np.arange(N) % 2, np.full(N, -1.0), "sample_weight must be one number"),
    ],
)
def test_bad_targets_and_weights(table, estimator, y, weights, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(da.from_array(table[0], chunks=300), y, sample_weight=weights)


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
    for name, estimator in public_estimators().items():
        if estimator not in map(type, MODELS.values()):
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


def sectors():
    """Two classes, each on one side of a line, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + np.pi + 0.3 * rng.standard_normal(N)
    return X, np.array(["a", "b"])[(angle // np.pi).astype(int) % 2]


@pytest.mark.parametrize("q", [0.5, 1.0])
def test_the_objective_is_that_of_all_rows(q):
    """More rows than the sample: (5) with the targets of the sample, at the coefficients that predict."""
    X, y = sectors()
    model = SparseKernelFisher(q=q)
    model.fit(da.from_array(X, chunks=200), da.from_array(y, chunks=200))
    sample = Samples.of(X).drawn(SAMPLE).rows
    share = np.mean(y[sample] == "b")
    targets = np.where(y == "b", 1 / share, -1 / (1 - share))
    # the score is an affine function of the discriminant, whose slope at the minimum of (5) makes (5) least
    ours = model.expansion_.coef[:, 0]
    K = model.kernel_(X, model.vectors_)

    def objective(slope):
        residual = targets - slope * K @ ours
        residual = residual - residual.mean()
        return residual @ residual / 2 + model.alpha_ * N * np.sum(np.abs(slope * ours) ** q)

    slope = (K @ ours - (K @ ours).mean()) @ targets / np.sum((K @ ours - (K @ ours).mean()) ** 2)
    least = minimize_scalar(objective, bounds=(0.5 * slope, slope), options={"xatol": 1e-9 * slope})
    assert model.objective_ == model.path_.objectives[-1] == pytest.approx(least.fun, rel=1e-6)
    assert model.n_iter_ == len(model.path_.objectives)


def test_error_reduction_ratios_are_those_of_all_rows():
    X, y = sectors()
    model = ForwardKernelFisher(n_vectors=6).fit(da.from_array(X, chunks=200), da.from_array(y, chunks=200))
    share = np.mean(y[Samples.of(X).drawn(SAMPLE).rows] == "b")
    Y = np.where(y == "b", 1 / share, -1 / (1 - share))
    left = []
    for k in range(7):
        K = np.column_stack([np.ones(N), model.kernel_(X, model.vectors_)[:, :k]])
        left.append(np.sum((Y - K @ np.linalg.lstsq(K, Y, rcond=None)[0]) ** 2) / np.sum(Y**2))
    np.testing.assert_allclose(model.path_.objectives, left, atol=1e-8)
    assert sum(model.error_reduction_) == pytest.approx(1 - left[-1])


@pytest.mark.parametrize("name", ["fisher", "fisher-recursive", "pca-graph"])
def test_scatters_are_those_of_all_rows(name, monkeypatch):
    X, y = three_classes(name)
    X = X + 1e5  # sums of squares alone would lose ten digits here
    there = clone(MODELS[name]).fit(da.from_array(X, chunks=400), y)
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", N)
    here = clone(MODELS[name]).fit(X, y)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-6)


@pytest.mark.parametrize("graph", ["lpp", "udp", graphs.MFA(), (None, np.ones((N, N)))])
def test_graphs_of_pairs_refuse_a_collection(graph, table):
    X, y, _ = table
    message = r'GraphEmbedding: X is a Dask collection, and the graph .* of pairs .* use graph="fisher" or "pca"'
    with pytest.raises(TypeError, match=message):
        GraphEmbedding(graph=graph).fit(da.from_array(X, chunks=300), y)
