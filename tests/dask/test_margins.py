"""Recursive margins and graph embedding of Dask collections: the directions of all rows, however they are cut."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from fewkern import GraphEmbedding, graphs
from fewkern.core import population

N, SAMPLE, BLOCK = 1000, 250, 256
MODELS = {
    "fisher": GraphEmbedding(),
    "fisher-recursive": GraphEmbedding(recursive=True, n_components=3),
    "pca": GraphEmbedding(graph="pca", n_components=2),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, N)
    X = rng.normal(size=(N, 4)) + np.array([[1.5, 0, 0, 3], [0, 1.5, 0, 3], [0, 0, 1.5, 3]])[codes]
    return X, np.array(["a", "b", "c"])[codes]


@pytest.mark.parametrize("name", MODELS)
def test_scatters_are_those_of_all_rows(name, table, monkeypatch):
    X, y = table
    X = X + 1e5  # sums of squares alone would lose ten digits here
    there = clone(MODELS[name]).fit(da.from_array(X, chunks=400), y)
    monkeypatch.setattr(population, "SAMPLE_ROWS", N)
    here = clone(MODELS[name]).fit(X, y)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-6)


def test_mean_of_a_linear_model_on_a_basis(table):
    X = table[0]
    model = GraphEmbedding(graph="pca", max_vectors=3, n_components=2).fit(da.from_array(X, chunks=300))
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("graph", ["lpp", "udp", graphs.MFA(), (None, np.ones((N, N)))])
def test_graphs_of_pairs_refuse_a_collection(graph, table):
    X, y = table
    message = r'GraphEmbedding: X is a Dask collection, and the graph .* of pairs .* use graph="fisher" or "pca"'
    with pytest.raises(TypeError, match=message):
        GraphEmbedding(graph=graph).fit(da.from_array(X, chunks=300), y)
