"""What the three reducers have in common."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM
from fewkern.arrays import sampling
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian
from fewkern.margins import graph_reducers, hinge, reducer, soft, svm

EVERY = [GraphEmbedding, RecursiveSVM, RecursiveSoftMargin]
every = pytest.mark.parametrize("make", EVERY)


@every
def test_nothing_is_left_of_an_earlier_fit(make, iris):
    X, y = iris
    for X_, max_vectors in ((X, 4), (sp.csr_matrix(X), None), (X, None)):
        model = make(n_components=2, max_vectors=max_vectors).fit(X_, y)
        assert model.components_.shape == (2, 4)
        # a linear map keeps no sample
        assert (model.n_vectors_, model.vectors_.shape, model.indices_.shape) == (0, (0, 4), (0,))
    model.set_params(kernel=Gaussian(2.0), max_vectors=20).fit(X, y)
    assert model.n_vectors_ == len(model.indices_) == 20
    np.testing.assert_array_equal(model.vectors_, X[model.indices_])
    for name in ("components_", "mean_"):
        assert not hasattr(model, name)
    with pytest.raises(ValueError, match='use kernel="linear"'):
        model.inverse_transform(model.transform(X))
    model.set_params(kernel="linear", max_vectors=None).fit(X, y)
    with pytest.raises(ValueError, match="expects 2 columns"):
        model.inverse_transform(np.ones((2, 3)))
    np.testing.assert_allclose(model.transform(model.inverse_transform(model.transform(X))), model.transform(X))


@every
def test_the_basis_of_a_kernel_is_bounded(make, iris, monkeypatch):
    X, y = iris
    settings = {"kernel": Gaussian(0.5), "n_components": 2}
    exact = make(max_vectors=len(X), **settings).fit(X, y)
    assert exact.basis_.n_vectors > 50
    # few samples: as without a bound
    np.testing.assert_array_equal(make(**settings).fit(X, y).transform(X), exact.transform(X))
    monkeypatch.setattr(reducer, "_MAX_VECTORS", 50)
    bounded = make(**settings).fit(X, y)
    assert bounded.n_vectors_ == bounded.basis_.n_vectors == 50
    np.testing.assert_array_equal(bounded.transform(X), make(max_vectors=50, **settings).fit(X, y).transform(X))
    assert make(max_vectors=len(X), **settings).fit(X, y).basis_.n_vectors == exact.basis_.n_vectors
    # the linear kernel needs no basis
    assert make(n_components=2).fit(X, y).basis_ is None


@every
def test_as_many_components_as_there_are(make, iris):
    X, y = iris
    with pytest.warns(UserWarning, match=f"{make.__name__}: n_components=100 was asked for, but .* give only [1-4];"):
        few = make(n_components=100).fit(X, y)
    assert few.n_components_ == few.transform(X).shape[1] <= 4
    assert few.stop_ in (Stop.FLAT, Stop.RANK, Stop.FADED)
    assert isinstance(few.stop_, Stop)


def test_recursive_svm_says_that_it_did_not_converge(iris, monkeypatch):
    X, y = iris
    for limit in (2, 14):
        monkeypatch.setattr(hinge, "MAX_ITERATIONS", limit)
        monkeypatch.setattr(svm, "MAX_ITERATIONS", limit)
        message = rf"in {limit} interior point iterations: .* duality gap is .*, above 1e-09; use a smaller C"
        with pytest.warns(ConvergenceWarning, match=message) as w:
            model = RecursiveSVM(n_components=1).fit(X[:100] + 0.3 * X[:100] ** 2, y[:100])
        # after 14 it is accepted, but not solved to the tolerance
        assert model.n_components_ == (limit == 14)
        assert (model.stop_ == "max_iter") == (limit == 2)
        assert model.n_iter_ == limit
    assert len(w) == 1


def test_recursive_soft_margin_says_that_it_did_not_converge(iris, monkeypatch):
    X, y = iris
    enough = RecursiveSoftMargin(n_components=2, C=50.0).fit(X, y)
    assert {step.stop for step in enough.steps_} == {Stop.CONVERGED}
    monkeypatch.setattr(soft, "MAX_STEPS", 1)
    with pytest.warns(
        ConvergenceWarning, match=r"2 of 2 directions did not converge .* of J\(0\) - J; use a smaller C"
    ):
        model = RecursiveSoftMargin(n_components=2, C=50.0).fit(X, y)
    assert {step.stop for step in model.steps_} == {Stop.MAX_ITER}


# More rows than the sample: what comes from the sample, and what from all rows, in memory

N, SAMPLE = 600, 200


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", SAMPLE)


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


def test_neighbors_are_those_of_the_sample(table, small_samples):
    X, y = table
    model = GraphEmbedding(graph="mfa", n_components=2).fit(X, y)
    alone = GraphEmbedding(graph="mfa", n_components=2).fit(*drawn(X, y))
    np.testing.assert_allclose(model.transform(X), alone.transform(X), atol=1e-10)


def test_a_given_graph_is_one_of_all_rows(table, small_samples):
    X, _ = table
    near = sp.diags([np.ones(N - 1), np.ones(N - 1)], [1, -1])
    model = GraphEmbedding(graph=(None, near), n_components=2).fit(X)
    centered = X - X.mean(axis=0)
    L = np.diag(np.asarray(near.sum(axis=1)).ravel()) - near.toarray()
    values = np.linalg.eigvalsh(centered.T @ L @ centered)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-10)


def test_soft_margins_look_at_some_samples(table, monkeypatch, small_samples):
    X, y = table
    near = sp.diags([np.ones(N - 1), np.ones(N - 1)], [1, -1])
    given = RecursiveSoftMargin(graph=(None, near), n_components=1)
    every = clone(given).fit(X).components_
    monkeypatch.setattr(graph_reducers, "_MAX_SOFT_MARGIN_SAMPLES", 100)
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", N)
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
def test_hyperplanes_are_those_of_a_sample_that_stands_for_all_rows(kernel, table, small_samples):
    X, y = table
    settings = {"kernel": kernel, "max_vectors": 12 if kernel != "linear" else None, "n_components": 2}
    model = RecursiveSVM(C=0.1, **settings).fit(X, y)
    alone = RecursiveSVM(C=0.1 * N / SAMPLE, **settings).fit(*drawn(X, y))
    np.testing.assert_allclose(model.transform(X), alone.transform(X), atol=1e-8)
    np.testing.assert_allclose(model.objectives_, alone.objectives_, rtol=1e-8)
    assert set(model.support_) <= set(Samples.of(X, codes=y, n_classes=3).drawn(SAMPLE).rows)
