"""Recursions where numbers are of very different size: large boxes, long columns, few samples, poor graphs."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import scale

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM
from fewkern.kernels import Gaussian
from fewkern.margins import soft


def large_boxes():
    """A regression and two classes, and how many directions there are at least and at most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    for C, width in ((100.0, 0.5), (1000.0, 1.0)):
        yield RecursiveSVM(epsilon=0.1, C=C, kernel=Gaussian(length_scale=width)), X, y, (1, 39)
    X, y = load_breast_cancer(return_X_y=True)
    yield RecursiveSVM(C=1e4, kernel=Gaussian(length_scale=5.0)), scale(X)[:200], y[:200], (21, 199)


@pytest.mark.parametrize(("model", "X", "y", "between"), list(large_boxes()))
def test_coefficients_belong_to_the_directions(model, X, y, between):
    model.fit(X, y)
    assert between[0] <= model.n_components_ <= between[1]
    assert np.abs(model.transform(X)).max() < 10
    V, coef = model.vectors_, model.expansion_.coef
    np.testing.assert_allclose(coef.T @ model.kernel_(V, V) @ coef, np.eye(model.n_components_), atol=1e-3)


@pytest.mark.parametrize("C", [10.0, 100.0, 1e4])
def test_never_more_directions_than_there_are(C):
    X = np.random.default_rng(3).normal(size=(12, 12))
    model = RecursiveSVM(C=C, class_weight="balanced").fit(X, np.arange(12) % 2)
    assert model.n_components_ <= 11
    # nothing outside of the span of the centred samples
    span = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:11]
    W = model.components_
    np.testing.assert_allclose(W - W @ span.T @ span, 0, atol=1e-8)
    kernel = RecursiveSVM(C=C, kernel=Gaussian(length_scale=3.0), class_weight="balanced").fit(X, np.arange(12) % 2)
    assert kernel.n_components_ <= 11


def test_small_units_are_not_flat():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 0] += y
    small = RecursiveSVM().fit(1e-5 * X, y)
    # a box so small for the data that all multipliers are at their bound: the difference of the means
    assert small.n_components_ == 1
    want = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(small.components_[0], want / np.linalg.norm(want), atol=1e-6)


@pytest.mark.filterwarnings("ignore:RecursiveSoftMargin. n_components=5 was asked for")
@pytest.mark.parametrize("metric", ["euclidean", "scatter"])
@pytest.mark.parametrize("seed", range(4))
def test_a_penalty_that_sees_two_directions(metric, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5))
    V = np.zeros((60, 60))
    V[0, 1] = V[1, 0] = V[2, 3] = V[3, 2] = 1
    near = np.triu(rng.random((60, 60)) < 0.1, 1) * 1.0
    near = near + near.T
    near[V > 0] = 0
    for pair in ((near, V), (None, V)):
        model = RecursiveSoftMargin(graph=pair, n_components=5, metric=metric).fit(X)
        assert np.isfinite(model.components_).all()
        if pair[0] is None or metric == "scatter":
            # directions lie in the span of the two gaps; otherwise the ridge turns them out of it
            assert model.n_components_ == 2
            assert model.stop_ == "flat"


def test_a_sparse_factor_is_a_graph(rng):
    X = rng.normal(size=(60, 4))
    i, j = rng.permutation(60)[:20].reshape(2, 10)
    F = sp.csr_matrix((np.r_[np.ones(10), -np.ones(10)], (np.r_[i, j], np.r_[np.arange(10), np.arange(10)])), (60, 10))
    sparse, dense = (GraphEmbedding(graph=(None, A), n_components=2).fit(X) for A in (F, F.toarray()))
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-10)


def test_a_huge_weight_of_the_smoothed_hinge_leaves_the_value_at_zero(monkeypatch):
    X, y = load_wine(return_X_y=True)
    monkeypatch.setattr(soft, "_MAX_LISTED_PAIRS", 0)
    (step,) = RecursiveSoftMargin(n_components=1, C=1e12, scale_C=False).fit(scale(X), y).steps_
    assert step.objectives[-1] < 1e-2 * step.at_zero
