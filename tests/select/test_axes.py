import numpy as np
import pytest
from sklearn.decomposition import PCA

from fewkern.core.samples import Samples
from fewkern.core.statistics import Statistics
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
    _, _, covariance = gaussian_classes(parts, axes)
    inside = (
        scores
        - np.array([np.average(scores[codes == c], axis=0, weights=weights[codes == c]) for c in range(3)])[codes]
    )
    np.testing.assert_allclose(covariance, np.cov(inside.T, aweights=weights, ddof=0), atol=1e-10)
