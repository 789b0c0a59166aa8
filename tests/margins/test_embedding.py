"""Graph embedding against scikit-learn and the Foley-Sammon definition."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from fewkern import graphs
from fewkern.margins.embedding import graph_embedding, principal_space, regularized_scatter
from tests.oracles.margins import align, foley_sammon, labelled


def build(rule, Z, codes=None):
    return rule.build(Z, labelled(Z, codes))


@pytest.mark.parametrize("loader", [load_iris, load_wine])
def test_fda_is_lda(loader):
    X, y = loader(return_X_y=True)
    X, y = X[: len(X) - 17], y[: len(X) - 17]  # unequal classes
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = graph_embedding(Z, build(graphs.Fisher(), Z, y), ridge=0.0).directions
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(Z, y).scalings_[:, :2]
    unit = lda / np.linalg.norm(lda, axis=0)
    np.testing.assert_allclose(align(unit, ours / np.linalg.norm(ours, axis=0)), unit, atol=1e-7)


def test_pca_is_pca():
    X = load_wine().data
    Z = X - X.mean(axis=0)
    ours = graph_embedding(Z, build(graphs.PCA(), Z), n_components=5)
    theirs = PCA(5).fit(X)
    np.testing.assert_allclose(align(theirs.components_.T, ours.directions), theirs.components_.T, atol=1e-7)
    np.testing.assert_allclose(ours.values, theirs.explained_variance_ * (len(X) - 1), rtol=1e-9)


def test_recursive_fda_is_foley_sammon():
    X, y = load_iris(return_X_y=True)
    Z = X - X.mean(axis=0)
    pair = build(graphs.Fisher(), Z, y)
    ours = graph_embedding(Z, pair, recursive=True, n_components=4, ridge=1e-2)
    want = foley_sammon(pair.penalty.scatter(Z), regularized_scatter(pair, Z, 1e-2), 4)
    np.testing.assert_allclose(align(want, ours.directions), want, atol=1e-7)
    assert ours.stop == "limit"
    assert graph_embedding(Z, pair, recursive=True, n_components=9).stop == "rank"


def test_directions_are_orthonormal_in_the_denominator():
    X, y = load_iris(return_X_y=True)
    Z = X - X.mean(axis=0)
    pair = build(graphs.Fisher(), Z, y)
    W = graph_embedding(Z, pair).directions
    np.testing.assert_allclose(W.T @ regularized_scatter(pair, Z, 1e-2) @ W, np.eye(2), atol=1e-9)


def test_ridge_rule():
    rng = np.random.default_rng(0)
    Z, codes = rng.normal(size=(6, 20)), np.array([0, 0, 1, 1, 2, 2])
    Z -= Z.mean(axis=0)
    V = principal_space(Z)
    assert V.shape == (20, 5)
    pair = build(graphs.Fisher(), Z, codes)
    S = regularized_scatter(pair, Z @ V, 0.1)
    plain = pair.intrinsic.scatter(Z @ V)
    np.testing.assert_allclose(S, plain + 0.1 * np.trace(plain) / 5 * np.eye(5), atol=1e-12)
    # one sample per class: nothing to divide by
    assert np.array_equal(regularized_scatter(build(graphs.Fisher(), Z, np.arange(6)), Z @ V, 0.1), np.eye(5))


def test_with_rho_to_zero_the_first_directions_are_in_the_null_space():
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(3), 4)
    Z = rng.normal(size=(12, 40))
    Z -= Z.mean(axis=0)
    pair = build(graphs.Fisher(), Z, codes)
    W = graph_embedding(Z, pair, recursive=True, n_components=2, ridge=1e-10).directions
    assert np.abs(W.T @ pair.intrinsic.scatter(Z) @ W).max() < 1e-8


def test_degenerate_samples():
    nothing = np.zeros((5, 3))
    assert graph_embedding(nothing, build(graphs.PCA(), nothing)).directions.shape == (3, 0)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20, 2))
    Z = np.column_stack([Z, Z[:, 0], np.zeros(20)])
    Z -= Z.mean(axis=0)
    codes = np.arange(20) % 2
    result = graph_embedding(Z, build(graphs.Fisher(), Z, codes), recursive=True, n_components=4)
    assert (result.directions.shape[1], result.stop) == (2, "rank")
