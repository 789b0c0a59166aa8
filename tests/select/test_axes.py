"""Principal and discriminant axes, FVS-PCA and FVS-LDA."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from fewkern import FeatureVectorDiscriminant, FeatureVectorPCA
from fewkern.core.samples import Samples
from fewkern.core.scores import softmax
from fewkern.core.statistics import Statistics
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Linear
from fewkern.select.axes import Spread, discriminant_axes, gaussian_classes, principal_axes
from fewkern.select.leave_one_out import solve


def spread(Z, codes=None, weights=None):
    return Spread.of(Z, Samples.of(Z, weights, codes=codes, n_classes=0 if codes is None else 3))


@pytest.fixture
def Z(rng):
    return rng.standard_normal((60, 5)) * [3, 2, 1, 0.5, 0.1] + 7


@pytest.fixture
def codes(Z):
    return (Z[:, 2] > 7).astype(int) + (Z[:, 3] > 7)


@pytest.mark.parametrize("ridge", [0.0, 20.0])
def test_regression_on_the_points_of_the_classes_gives_the_axes(Z, codes, rng, ridge):
    weights = rng.random(60) + 0.1
    axes = discriminant_axes(spread(Z, codes, weights), ridge)
    solution = solve(Z, axes.points[codes], ridge, weights)
    np.testing.assert_allclose(solution.W, axes.W, atol=1e-10)
    np.testing.assert_allclose(Z @ solution.W + solution.offset, (Z - axes.mean) @ axes.W, atol=1e-10)


def test_an_axis_on_which_the_classes_agree_has_no_points():
    Z = np.repeat(np.eye(2), 3, axis=0) * np.tile([[1.0], [-1.0], [2.0]], (2, 1))
    assert np.all(np.isfinite(discriminant_axes(spread(Z, np.tile([0, 1, 2], 2))).points))


def test_signs_do_not_depend_on_the_order_of_samples(Z, codes, rng):
    order = rng.permutation(60)
    for axes in (principal_axes, discriminant_axes):
        np.testing.assert_allclose(axes(spread(Z[order], codes[order])).W, axes(spread(Z, codes)).W, atol=1e-8)


def test_axes_end_at_the_rank(Z):
    Z[:, 4] = Z[:, 0] + Z[:, 1]
    assert principal_axes(spread(Z)).W.shape == (5, 4)
    same = np.ones((6, 3))
    assert principal_axes(spread(same)).W.shape == (3, 0)
    assert discriminant_axes(spread(same, np.arange(6) % 3)).W.shape == (3, 0)


def test_axes_from_sums_over_parts_are_those_of_the_rows(Z, codes, rng):
    weights, indicators = rng.random(60) + 0.1, np.eye(3)[codes]
    first, second = (Statistics.of(Z[part], indicators[part], weights[part]) for part in (slice(0, 7), slice(7, 60)))
    whole, parts = spread(Z, codes, weights), Spread.of_sums(first + second)
    for axes in (principal_axes, discriminant_axes):
        np.testing.assert_allclose(axes(parts).W, axes(whole).W, atol=1e-10)
        np.testing.assert_allclose(axes(parts).values, axes(whole).values, rtol=1e-10)
    axes = discriminant_axes(whole, 0.3)
    scores = (Z - axes.mean) @ axes.W
    _, means, covariance = gaussian_classes(parts, axes)
    np.testing.assert_allclose(covariance, np.cov((scores - means[codes]).T, aweights=weights, ddof=0), atol=1e-10)


# FVS-LDA


@pytest.fixture
def three():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 50)
    return rng.standard_normal((150, 2)) + 2 * np.column_stack([np.cos(2 * y), np.sin(2 * y)]), y


def test_linear_kernel_is_linear_discriminant_analysis(three):
    X, y = three
    ours = FeatureVectorDiscriminant(kernel=Linear(), alpha=0.0, n_vectors=100).fit(X, y)
    theirs = LinearDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(softmax(ours.decision_function(X)), theirs.predict_proba(X), atol=0.01)
    # six numbers from 150 samples leave little to put right
    assert ours.class_scores_.factor == pytest.approx(1.0, abs=0.3)
    np.testing.assert_allclose(ours.means_, [ours.transform(X[y == c]).mean(axis=0) for c in range(3)], atol=1e-7)
    for j in range(2):
        assert abs(np.corrcoef(ours.transform(X)[:, j], theirs.transform(X)[:, j])[0, 1]) == pytest.approx(1.0)


def test_number_of_components(three):
    X, y = three
    assert FeatureVectorDiscriminant(n_components=1).fit(X, y).transform(X).shape == (150, 1)
    with pytest.warns(UserWarning, match="n_components=3 was asked for, but these samples give only 2"):
        model = FeatureVectorDiscriminant(n_components=3).fit(X, y)
    assert model.transform(X).shape == (150, model.n_components_) == (150, 2)


def test_class_weights_are_other_class_probabilities(three):
    X, y = three
    weights = {0: 0.98 * 3, 1: 0.01 * 3, 2: 0.01 * 3}  # over the shares among the samples
    model = FeatureVectorDiscriminant(class_weight=weights).fit(X, y)
    np.testing.assert_allclose(model.priors_, [0.98, 0.01, 0.01])
    assert np.mean(model.predict(X) == 0) > 0.4


@pytest.mark.parametrize("seed", [1, 3])
def test_probabilities_of_unbalanced_classes_are_as_high_as_they_are_right(seed):
    """Five rows of five hundred ruled a factor by likelihood: .27 was stated, and .93 was right."""

    def draw(rows, rng):
        X = rng.standard_t(1.5, (rows, 7))
        return X, np.digitize(X[:, 0] + 0.3 * X[:, 1], [-30, -8, 2.2, 5, 40])

    rng = np.random.default_rng([77, seed])
    X, y = draw(500, rng)
    new, truth = draw(4000, rng)
    P = FeatureVectorDiscriminant().fit(X, y).predict_proba(new)
    right = np.unique(y)[P.argmax(axis=1)] == truth
    assert P.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.05)


# FVS-PCA


@pytest.fixture
def X():
    return make_banana(90)[0]


def test_all_vectors_give_kernel_pca(X):
    ours = FeatureVectorPCA(n_components=5, kernel=Gaussian(0.8), max_vectors=90).fit(X)
    theirs = KernelPCA(5, kernel="rbf", gamma=1 / (2 * 0.8**2)).fit(X)
    new = make_banana(30, random_state=9)[0]
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(ours.transform(new)), np.abs(theirs.transform(new)), atol=1e-6)


def test_inverse_transform_finds_the_way_back(X, foreign):
    to, back = foreign
    model = FeatureVectorPCA(n_components=8, kernel=Gaussian(1.5), max_vectors=30, fit_inverse_transform=True)
    found = back(model.fit(to(X)).inverse_transform(model.transform(to(X))))
    assert np.mean((found - X) ** 2) < 0.02 * np.mean((X - X.mean(axis=0)) ** 2)
    single = FeatureVectorPCA(n_components=3, fit_inverse_transform=True).fit(X[:, :1])
    assert single.inverse_transform(single.transform(X[:, :1])).shape == (90, 1)


def test_inverse_transform_errors(X):
    model = FeatureVectorPCA(n_components=2, kernel=Linear()).fit(X)
    with pytest.raises(AttributeError, match="has no attribute 'inverse_transform'"):
        model.inverse_transform(np.zeros((3, 2)))
    model.set_params(fit_inverse_transform=True)
    with pytest.raises(ValueError, match="the inverse transform is not fitted; call fit again"):
        model.inverse_transform(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="it cannot go back to sparse samples"):
        model.fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="behind a precomputed kernel"):
        model.set_params(kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match="3 features"):
        model.set_params(kernel="linear").fit(X).inverse_transform(np.zeros((4, 3)))
