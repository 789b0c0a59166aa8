"""Recursive margins and graph embedding of Dask collections: the directions of all rows, however they are cut."""

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM, graphs
from fewkern.core import population
from fewkern.core.samples import Samples

N, SAMPLE, BLOCK = 1000, 250, 256
MODELS = {
    "svm": RecursiveSVM(n_components=2),
    "svm-kernel": RecursiveSVM(kernel="gaussian", max_vectors=12, n_components=2),
    "svm-balanced": RecursiveSVM(n_components=2, class_weight="balanced"),
    "svm-tube": RecursiveSVM(n_components=2, task="regression"),
    "fisher": GraphEmbedding(),
    "fisher-kernel": GraphEmbedding(kernel="gaussian", max_vectors=12),
    "fisher-recursive": GraphEmbedding(recursive=True, n_components=3),
    "pca": GraphEmbedding(graph="pca", n_components=2),
    "pca-basis": GraphEmbedding(graph="pca", max_vectors=3, n_components=2),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, N)
    X = rng.normal(size=(N, 4)) + np.array([[1.5, 0, 0, 3], [0, 1.5, 0, 3], [0, 0, 1.5, 3]])[codes]
    return X, np.array(["a", "b", "c"])[codes], X[:, 0] + np.abs(X[:, 1])


def targets(name, table):
    return table[2] if name == "svm-tube" else table[1]


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_as_in_memory(name, table):
    X, y = table[0], targets(name, table)
    here = clone(MODELS[name]).fit(X, y)
    there = clone(MODELS[name]).fit(da.from_array(X, chunks=(333, 2)), da.from_array(y, chunks=100))
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-10)
    np.testing.assert_array_equal(there.indices_, here.indices_)
    assert isinstance(there.expansion_.coef, np.ndarray)
    np.testing.assert_array_equal(X[there.indices_], there.vectors_)


@pytest.mark.parametrize("name", MODELS)
def test_a_sample_of_all_rows_is_the_fit_in_memory(name, table, monkeypatch):
    monkeypatch.setattr(population, "SAMPLE_ROWS", N)
    X, y = table[0], targets(name, table)
    here = clone(MODELS[name]).fit(X, y)
    there = clone(MODELS[name]).fit(da.from_array(X, chunks=400), y)
    np.testing.assert_array_equal(there.transform(X), here.transform(X))


@settings(max_examples=2, deadline=None)
@given(st.lists(st.integers(0, N), max_size=5))
@pytest.mark.parametrize("name", ["svm", "svm-kernel", "fisher-kernel", "pca"])
def test_the_same_model_for_any_chunking(table, name, cuts):
    X, y = table[0], table[1]
    chunks = tuple(b - a for a, b in pairwise([0, *sorted(cuts), N]))
    whole = da.from_array(X, chunks=(N, 4))
    one = clone(MODELS[name]).fit(whole, y)
    other = clone(MODELS[name]).fit(whole.rechunk((chunks, (1, 3))), da.from_array(y, chunks=(chunks,)))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


@pytest.mark.parametrize("name", ["svm", "svm-tube"])
def test_hyperplanes_of_a_collection_are_those_of_its_sample(name, table):
    X, y = table[0], targets(name, table)
    there = clone(MODELS[name]).fit(da.from_array(X, chunks=400), y)
    codes = None if name == "svm-tube" else np.unique(y, return_inverse=True)[1]
    rows = Samples.of(X, codes=codes, n_classes=3).drawn(SAMPLE).rows
    alone = clone(MODELS[name]).set_params(C=N / SAMPLE).fit(X[rows], y[rows])
    np.testing.assert_allclose(there.transform(X), alone.transform(X), atol=1e-8)


@pytest.mark.parametrize("name", ["fisher", "fisher-recursive", "pca"])
def test_scatters_are_those_of_all_rows(name, table, monkeypatch):
    X, y, _ = table
    X = X + 1e5  # sums of squares alone would lose ten digits here
    there = clone(MODELS[name]).fit(da.from_array(X, chunks=400), y)
    monkeypatch.setattr(population, "SAMPLE_ROWS", N)
    here = clone(MODELS[name]).fit(X, y)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-6)


@pytest.mark.parametrize("name", ["svm-kernel", "svm-tube", "fisher-kernel", "pca-basis"])
def test_rows_of_weight_zero_are_absent(name, table):
    X, y = table[0], targets(name, table)
    w = np.ones(N)
    w[256:512] = w[::2] = 0  # a whole block is absent
    chunked = [da.from_array(a, chunks=(300, *a.shape[1:])) for a in (X, y, w)]
    there = clone(MODELS[name]).fit(chunked[0], chunked[1], sample_weight=chunked[2])
    kept = np.flatnonzero(w)
    here = clone(MODELS[name]).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-10)
    assert np.isin(there.indices_, kept).all()


def test_mean_of_a_linear_model_on_a_basis(table):
    X = table[0]
    model = clone(MODELS["pca-basis"]).fit(da.from_array(X, chunks=300))
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=1e-12)


def test_single_precision_stays(table):
    X, y, _ = table
    for model in (MODELS["svm-kernel"], MODELS["fisher-kernel"]):
        found = clone(model).fit(da.from_array(X.astype(np.float32), chunks=300), y)
        assert found.vectors_.dtype == found.expansion_.coef.dtype == np.float32


@pytest.mark.parametrize("graph", ["lpp", "udp", graphs.MFA(), (None, np.ones((N, N)))])
def test_graphs_of_pairs_refuse_a_collection(graph, table):
    X, y, _ = table
    message = r'GraphEmbedding: X is a Dask collection, and the graph .* of pairs .* use graph="fisher" or "pca"'
    with pytest.raises(TypeError, match=message):
        GraphEmbedding(graph=graph).fit(da.from_array(X, chunks=300), y)


@pytest.mark.parametrize("graph", ["fisher", "pca"])
def test_soft_margins_refuse_a_collection(graph, table):
    X, y, _ = table
    with pytest.raises(TypeError, match=r"RecursiveSoftMargin: X is a Dask collection, and .* needs all samples in"):
        RecursiveSoftMargin(graph=graph).fit(da.from_array(X, chunks=300), y)


def test_two_columns_of_targets(table):
    X, _, t = table
    with pytest.raises(ValueError, match="one number per sample, got 2 columns"):
        RecursiveSVM(task="regression").fit(da.from_array(X, chunks=300), np.column_stack([t, t]))
