"""Laws of every estimator that takes Dask collections: the same model as in memory, whatever the partitions are."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone, is_regressor

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    ForwardDensity,
    ForwardKernelFisher,
    GraphEmbedding,
    KernelClassifier,
    KernelRegressor,
    RecursiveSVM,
    SparseKernelFisher,
)
from fewkern.arrays import sampling
from fewkern.core.samples import Samples
from fewkern.populations import labelled_population

N, SAMPLE, BLOCK = 900, 240, 128
TWO = {
    "sparse-fisher-auto": SparseKernelFisher(),
    "sparse-fisher-1": SparseKernelFisher(alpha=0.01, q=1.0),
    "forward-fisher-auto": ForwardKernelFisher(),
    "learner": KernelClassifier(max_vectors=12),
    "discriminant": FeatureVectorDiscriminant(max_vectors=20),
}
THREE = {
    "discriminant-weighted": FeatureVectorDiscriminant(max_vectors=20, class_weight={"a": 1, "b": 9, "c": 1}),
    "pca": FeatureVectorPCA(max_vectors=20, n_components=3),
    "selector": FeatureVectorSelector(max_vectors=20),
    "sparse-fisher": SparseKernelFisher(alpha=0.01),
    "sparse-fisher-three-1": SparseKernelFisher(alpha=0.01, q=1.0),
    "sparse-fisher-2": SparseKernelFisher(alpha=0.01, q=2.0),
    "forward-fisher": ForwardKernelFisher(n_vectors=6),
    "svm": RecursiveSVM(n_components=2),
    "svm-kernel": RecursiveSVM(kernel="gaussian", max_vectors=12, n_components=2),
    "svm-balanced": RecursiveSVM(n_components=2, class_weight="balanced"),
    "fisher": GraphEmbedding(),
    "fisher-kernel": GraphEmbedding(kernel="gaussian", max_vectors=12),
    "fisher-recursive": GraphEmbedding(recursive=True, n_components=3),
    "pca-graph": GraphEmbedding(graph="pca", n_components=2),
    "pca-basis": GraphEmbedding(graph="pca", max_vectors=3, n_components=2),
    "density": ForwardDensity(max_vectors=6),
    "density-bic": ForwardDensity(max_vectors=6, cv=None, scale="whiten"),
}
NUMBERS = {
    "learner of numbers": KernelRegressor(max_vectors=12),
    "regressor": FeatureVectorRegressor(max_vectors=20),
    "svm-tube": RecursiveSVM(n_components=2, epsilon=0.1),
}
MODELS = TWO | THREE | NUMBERS
every_model = pytest.mark.parametrize("name", MODELS)


def table(name: str) -> tuple[Any, Any]:
    """Samples of two or three classes, or with numbers."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2 if name in TWO else 3, N)
    X = rng.normal(size=(N, 3)) + 1.5 * np.eye(3)[codes]
    return X, X[:, 0] + np.abs(X[:, 1]) if name in NUMBERS else np.array(["a", "b", "c"])[codes]


def values(model: Any, X: Any) -> Any:
    names = ("predict_proba", "score_samples", "transform", "predict")
    return getattr(model, next(name for name in names if hasattr(model, name)))(X)


def assert_same(name: str, there: Any, here: Any, X: Any, tolerance: float = 1e-10) -> None:
    if name != "selector":  # in memory it looks at all rows
        np.testing.assert_allclose(values(there, X), values(here, X), atol=tolerance)
        np.testing.assert_allclose(there.vectors_, here.vectors_, atol=tolerance)
    assert isinstance(there.vectors_, np.ndarray)
    if getattr(there, "indices_", None) is not None:
        np.testing.assert_array_equal(X[there.indices_], there.vectors_)


@every_model
def test_the_same_model_as_in_memory_and_for_any_chunking(name):
    X, y = table(name)
    here, there, other = (clone(MODELS[name]) for _ in range(3))
    there.fit(da.from_array(X, chunks=((0, 400, 1, 499), (1, 2))), da.from_array(y, chunks=77))
    assert_same(name, there, here.fit(X, y), X)
    other.fit(da.from_array(X, chunks=(N, 3)), y)
    np.testing.assert_array_equal(values(other, X), values(there, X))
    if is_regressor(here):
        assert here.score(X, y) > 0.8


@every_model
def test_a_sample_of_all_rows_is_the_fit_in_memory(name, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", N)
    X, y = table(name)
    here, there = clone(MODELS[name]).fit(X, y), clone(MODELS[name]).fit(da.from_array(X, chunks=400), y)
    np.testing.assert_allclose(values(there, X), values(here, X), atol=1e-10)
    assert getattr(here, "held_out_error_", None) == getattr(there, "held_out_error_", None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 1, "b": 9, "c": 1}])
def test_the_sample_is_that_in_memory_to_the_bit(class_weight, dtype):
    X, y = table("discriminant-weighted")
    X, weights = X.astype(dtype), np.random.default_rng(0).integers(0, 3, N)
    model = FeatureVectorDiscriminant(class_weight=class_weight)
    here = labelled_population(model, X, y, weights).sample
    there = labelled_population(model, *(da.from_array(a, chunks=300) for a in (X, y, weights))).sample
    for name in ("X", "weights", "rows", "codes"):
        a, b = getattr(here, name), getattr(there, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith(("learner", "svm-balanced"))])
def test_rows_of_weight_zero_are_absent_and_single_precision_stays(name):
    X, y = table(name)
    X, weights = X.astype(np.float32), np.random.default_rng(0).integers(1, 3, N).astype(np.float32)
    weights[128:256] = weights[::2] = 0  # a whole block is absent
    chunked = [da.from_array(a, chunks=(300, *a.shape[1:])) for a in (X, y, weights)]
    there = clone(MODELS[name]).fit(chunked[0], chunked[1], sample_weight=chunked[2])
    here = clone(MODELS[name]).fit(X, y, sample_weight=weights)
    assert_same(name, there, here, X, 2e-4)
    if getattr(there, "indices_", None) is not None:
        assert np.all(weights[there.indices_] > 0)
    if hasattr(there, "expansion_") and hasattr(there.expansion_, "coef"):
        assert there.expansion_.coef.dtype == np.float32


@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith(("learner", "selector", "svm"))])
def test_rows_outside_of_the_sample_count(name):
    """Vectors come from the sample and coefficients from all rows, but for margins, which see the sample alone."""
    X, y = table(name)
    sample = Samples.of(X).drawn(SAMPLE).rows
    weights = np.where(np.isin(np.arange(N), sample) | (X[:, 0] < 0.5), 1.0, 20.0)
    one, two = (clone(MODELS[name]).fit(da.from_array(X, chunks=300), y, sample_weight=w) for w in (None, weights))
    here, there = values(one, X), values(two, X)
    assert np.abs(there - here).max() > 0.01 * np.abs(here).max()
    if getattr(two, "indices_", None) is not None:
        assert set(two.indices_) <= set(sample)
