import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from fewkern import FeatureVectorDiscriminant
from fewkern.core.samples import Samples
from fewkern.core.scores import softmax
from fewkern.core.statistics import Statistics
from fewkern.kernels import Linear
from fewkern.select.axes import Spread, discriminant_axes, gaussian_classes, principal_axes
from fewkern.select.leave_one_out import solve


def labelled(Z, codes, weights=None):
    return Samples.of(Z, weights, codes=codes, n_classes=3)


def about(Z, weights=None):
    return Spread.of(Z, Samples.of(Z, weights))


@pytest.fixture
def Z(rng):
    return rng.standard_normal((60, 5)) * [3, 2, 1, 0.5, 0.1] + 7


@pytest.fixture
def codes(Z, rng):
    return ((Z[:, 2] > 7).astype(int) + (Z[:, 3] > 7)).astype(int)


def test_principal_axes_equal_pca(Z):
    axes = principal_axes(about(Z), 3)
    pca = PCA(3).fit(Z)
    np.testing.assert_allclose(axes.values, pca.explained_variance_ * 59)
    np.testing.assert_allclose(np.abs((Z - axes.mean) @ axes.W), np.abs(pca.transform(Z)), atol=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 0.5, 20.0])
def test_regression_on_the_points_of_the_classes_gives_the_axes(Z, codes, rng, ridge):
    weights = rng.random(60) + 0.1
    axes = discriminant_axes(Spread.of(Z, labelled(Z, codes, weights)), ridge)
    solution = solve(Z, axes.points[codes], ridge, weights)
    np.testing.assert_allclose(solution.W, axes.W, atol=1e-10)
    np.testing.assert_allclose(Z @ solution.W + solution.offset, (Z - axes.mean) @ axes.W, atol=1e-10)


def test_an_axis_on_which_the_classes_agree_has_no_points():
    Z = np.repeat(np.eye(2), 3, axis=0) * np.tile([[1.0], [-1.0], [2.0]], (2, 1))
    axes = discriminant_axes(Spread.of(Z, labelled(Z, np.tile([0, 1, 2], 2))))
    assert np.all(np.isfinite(axes.points))


@pytest.mark.parametrize("ridge", [0.0, 0.5, 20.0])
def test_discriminant_axes_maximise_the_ratio(Z, codes, ridge):
    axes = discriminant_axes(Spread.of(Z, labelled(Z, codes)), ridge)
    A = Z - Z.mean(axis=0)
    T = A.T @ A
    M = np.array([A[codes == c].mean(axis=0) for c in range(3)])
    B = (M.T * np.bincount(codes)) @ M
    values = np.sort(np.linalg.eigvals(np.linalg.solve(T + ridge * np.eye(5), B)).real)[::-1]
    np.testing.assert_allclose(axes.values, values[:2], atol=1e-10)
    ratio = np.diag(axes.W.T @ B @ axes.W) / np.diag(axes.W.T @ (T + ridge * np.eye(5)) @ axes.W)
    np.testing.assert_allclose(ratio, values[:2], atol=1e-10)
    np.testing.assert_allclose(np.var(A @ axes.W, axis=0), 1.0)


def test_signs_do_not_depend_on_the_order_of_samples(Z, codes, rng):
    order = rng.permutation(60)
    np.testing.assert_allclose(principal_axes(about(Z)).W, principal_axes(about(Z[order])).W, atol=1e-8)
    np.testing.assert_allclose(
        discriminant_axes(Spread.of(Z, labelled(Z, codes))).W,
        discriminant_axes(Spread.of(Z[order], labelled(Z[order], codes[order]))).W,
        atol=1e-8,
    )


def test_axes_end_at_the_rank(Z):
    Z[:, 4] = Z[:, 0] + Z[:, 1]
    assert principal_axes(about(Z)).W.shape == (5, 4)
    same = np.ones((6, 3))
    assert principal_axes(about(same)).W.shape == (3, 0)
    assert discriminant_axes(Spread.of(same, labelled(same, np.arange(6) % 3))).W.shape == (3, 0)


def test_axes_from_sums_over_parts_are_those_of_the_rows(Z, codes, rng):
    weights = rng.random(60) + 0.1
    samples = labelled(Z, codes, weights)
    indicators = np.eye(3)[codes]
    sums = sum(
        (Statistics.of(Z[part], indicators[part], weights[part]) for part in (slice(0, 7), slice(7, 60))),
        start=Statistics.of(Z[:0], indicators[:0], weights[:0]),
    )
    whole, parts = Spread.of(Z, samples), Spread.of_sums(sums)
    for one, two in (
        (principal_axes(whole), principal_axes(parts)),
        (discriminant_axes(whole, 0.3), discriminant_axes(parts, 0.3)),
    ):
        np.testing.assert_allclose(two.W, one.W, atol=1e-10)
        np.testing.assert_allclose(two.values, one.values, rtol=1e-10)
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
    theirs = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    np.testing.assert_allclose(softmax(ours.decision_function(X)), theirs.predict_proba(X), atol=0.01)
    # six numbers from 150 samples leave little to put right
    assert ours.class_scores_.factor == pytest.approx(1.0, abs=0.3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
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
    assert np.mean(model.predict(X) == 0) > np.mean(FeatureVectorDiscriminant().fit(X, y).predict(X) == 0)
    np.testing.assert_allclose(model.priors_, [0.98, 0.01, 0.01])


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
