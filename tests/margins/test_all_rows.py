"""More rows than the sample: what comes from the sample, and what from all rows, in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM
from fewkern.core import population
from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian
from fewkern.margins import graph_reducers, reducer

N, SAMPLE = 600, 200


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(population, "SAMPLE_ROWS", SAMPLE)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    X = np.where(rng.random((N, 6)) < 0.5, 0.0, rng.normal(size=(N, 6)))
    X[np.arange(N), y] += 2.0
    return X, y


def drawn(X, y, limit=SAMPLE):
    rows = Samples.of(X, codes=y, n_classes=3).drawn(limit).rows
    return X[rows], y[rows]


@pytest.mark.parametrize("graph", ["lpp", "udp", "mfa", "lsda", "lfda"])
def test_neighbors_are_those_of_the_sample(graph, table):
    X, y = table
    rows = Samples.of(X, codes=y if graph in ("mfa", "lsda", "lfda") else None, n_classes=3).drawn(SAMPLE).rows
    model = GraphEmbedding(graph=graph, n_components=2).fit(X, y)
    alone = GraphEmbedding(graph=graph, n_components=2).fit(X[rows], y[rows])
    np.testing.assert_allclose(model.transform(X), alone.transform(X), atol=1e-10)


def test_a_given_graph_is_one_of_all_rows(table):
    X, _ = table
    near = sp.diags([np.ones(N - 1), np.ones(N - 1)], [1, -1])
    model = GraphEmbedding(graph=(None, near), n_components=2).fit(X)
    centered = X - X.mean(axis=0)
    L = np.diag(np.asarray(near.sum(axis=1)).ravel()) - near.toarray()
    values = np.linalg.eigvalsh(centered.T @ L @ centered)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-10)


def test_soft_margins_look_at_some_samples(table, monkeypatch):
    X, y = table
    near = sp.diags([np.ones(N - 1), np.ones(N - 1)], [1, -1])
    given = RecursiveSoftMargin(graph=(None, near), n_components=1)
    every = clone(given).fit(X).components_
    monkeypatch.setattr(graph_reducers, "_MAX_SOFT_MARGIN_SAMPLES", 100)
    monkeypatch.setattr(population, "SAMPLE_ROWS", N)
    np.testing.assert_array_equal(given.fit(X).components_, every)  # as it is
    model = RecursiveSoftMargin(n_components=2).fit(X, y)
    alone = RecursiveSoftMargin(n_components=2).fit(*drawn(X, y, 100))
    np.testing.assert_allclose(model.transform(X), alone.transform(X), atol=1e-8)


def test_a_basis_of_many_sparse_features_is_bounded(monkeypatch):
    monkeypatch.setattr(reducer, "_MAX_SPARSE_FEATURES", 20)
    rng = np.random.default_rng(1)
    X = sp.random(60, 200, 0.2, random_state=2, format="csr")
    model = GraphEmbedding().fit(X, rng.integers(0, 2, 60))
    assert model.basis_.n_vectors == 20
    assert GraphEmbedding(max_vectors=60).fit(X, rng.integers(0, 2, 60)).basis_.n_vectors > 50


@pytest.mark.parametrize("kernel", ["linear", Gaussian(2.0)])
def test_hyperplanes_are_those_of_a_sample_that_stands_for_all_rows(kernel, table):
    X, y = table
    settings = {"kernel": kernel, "max_vectors": 12 if kernel != "linear" else None, "n_components": 2}
    model = RecursiveSVM(C=0.1, **settings).fit(X, y)
    alone = RecursiveSVM(C=0.1 * N / SAMPLE, **settings).fit(*drawn(X, y))
    np.testing.assert_allclose(model.transform(X), alone.transform(X), atol=1e-8)
    np.testing.assert_allclose(model.objectives_, alone.objectives_, rtol=1e-8)
    assert set(model.support_) <= set(Samples.of(X, codes=y, n_classes=3).drawn(SAMPLE).rows)
