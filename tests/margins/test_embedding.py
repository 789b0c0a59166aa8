"""Graph embedding against scikit-learn and the Foley-Sammon definition, and GraphEmbedding as an estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from fewkern import GraphEmbedding, graphs
from fewkern.kernels import Gaussian
from fewkern.margins.embedding import graph_embedding, principal_space, regularized_scatter
from fewkern.margins.rules import RULES
from tests.oracles.margins import align, foley_sammon, labelled


def fisher(Z, codes):
    return graphs.Fisher().build(Z, labelled(Z, codes))


def test_fda_is_lda():
    X, y = load_wine(return_X_y=True)
    X, y = X[: len(X) - 17], y[: len(X) - 17]  # unequal classes
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = graph_embedding(Z, fisher(Z, y), ridge=0.0).directions
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(Z, y).scalings_[:, :2]
    unit = lda / np.linalg.norm(lda, axis=0)
    np.testing.assert_allclose(align(unit, ours / np.linalg.norm(ours, axis=0)), unit, atol=1e-7)


def test_pca_and_kernel_pca(iris):
    X, _ = iris
    ours, theirs = GraphEmbedding(graph="pca", n_components=3).fit(X), PCA(3).fit(X)
    np.testing.assert_allclose(align(theirs.transform(X), ours.transform(X)), theirs.transform(X), atol=1e-8)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.explained_variance_ * (len(X) - 1), rtol=1e-9)
    kernel = GraphEmbedding(graph="pca", kernel=Gaussian(length_scale=2.0), n_components=3).fit(X)
    theirs = KernelPCA(3, kernel="rbf", gamma=1 / 8).fit(X)
    np.testing.assert_allclose(align(theirs.transform(X), kernel.transform(X)), theirs.transform(X), atol=1e-5)


def test_fisher_of_iris(iris):
    """Recursive: Foley and Sammon's directions; jointly: orthonormal in the metric of the denominator."""
    X, y = iris
    Z = X - X.mean(axis=0)
    pair = fisher(Z, y)
    S = regularized_scatter(pair, Z, 1e-2)
    ours = graph_embedding(Z, pair, recursive=True, n_components=4, ridge=1e-2)
    want = foley_sammon(pair.penalty.scatter(Z), S, 4)
    np.testing.assert_allclose(align(want, ours.directions), want, atol=1e-7)
    assert ours.stop == "limit"
    assert graph_embedding(Z, pair, recursive=True, n_components=9).stop == "rank"
    W = graph_embedding(Z, pair).directions
    np.testing.assert_allclose(W.T @ S @ W, np.eye(2), atol=1e-9)


def test_ridge_rule():
    rng = np.random.default_rng(0)
    Z, codes = rng.normal(size=(6, 20)), np.array([0, 0, 1, 1, 2, 2])
    Z -= Z.mean(axis=0)
    V = principal_space(Z)
    assert V.shape == (20, 5)
    pair = fisher(Z, codes)
    S = regularized_scatter(pair, Z @ V, 0.1)
    plain = pair.intrinsic.scatter(Z @ V)
    np.testing.assert_allclose(S, plain + 0.1 * np.trace(plain) / 5 * np.eye(5), atol=1e-12)
    # one sample per class: nothing to divide by
    assert np.array_equal(regularized_scatter(fisher(Z, np.arange(6)), Z @ V, 0.1), np.eye(5))
    # without a ridge the first directions are in the null space
    W = graph_embedding(Z, pair, recursive=True, n_components=2, ridge=1e-10).directions
    assert np.abs(W.T @ pair.intrinsic.scatter(Z) @ W).max() < 1e-8


def test_degenerate_samples(rng):
    nothing = np.zeros((5, 3))
    assert graph_embedding(nothing, graphs.PCA().build(nothing, labelled(nothing))).directions.shape == (3, 0)
    Z = rng.normal(size=(20, 2))
    Z = np.column_stack([Z, Z[:, 0], np.zeros(20)])
    Z -= Z.mean(axis=0)
    result = graph_embedding(Z, fisher(Z, np.arange(20) % 2), recursive=True, n_components=4)
    assert (result.directions.shape[1], result.stop) == (2, "rank")


def test_every_graph_fits_and_goes_back(iris):
    X, y = iris
    for name in RULES:
        for recursive in (False, True):
            model = GraphEmbedding(graph=name, recursive=recursive, n_components=2).fit(X, y)
            T = model.transform(X)
            np.testing.assert_allclose(model.transform(model.inverse_transform(T)), T, atol=1e-8)
            assert model.eigenvalues_.shape == (2,)
            assert np.all(np.diff(model.eigenvalues_) <= 1e-9 * model.eigenvalues_[0])


def test_parameters_of_a_graph_in_a_grid_search(iris):
    X, y = iris
    search = GridSearchCV(
        make_pipeline(GraphEmbedding(graph="lpp", n_components=2), KNeighborsClassifier()),
        {"graphembedding__graph__neighbors": [2, 10]},
        cv=3,
    ).fit(X, y)
    chosen = search.best_estimator_[0].graph
    assert chosen == graphs.LPP(search.best_params_["graphembedding__graph__neighbors"])
    assert len(set(np.round(search.cv_results_["mean_test_score"], 6))) == 2
    model = GraphEmbedding(graph=graphs.MFA())
    assert model.get_params()["graph__between"] == 100
    assert clone(model).set_params(graph__within=7).graph == graphs.MFA(within=7)
    assert model.graph == graphs.MFA()
    assert GraphEmbedding().set_params(graph="lpp", graph__neighbors=9).graph == graphs.LPP(9)
    with pytest.raises(ValueError, match=r"MFA has no parameter 'neighbors'; it has \['between', 'within'\]"):
        model.set_params(graph__neighbors=3)
