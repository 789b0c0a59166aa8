"""Marginal and conditional densities in closed form."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fewkern import ForwardDensity, KernelMixture
from fewkern.datasets import make_banana


@pytest.fixture(params=["diagonal", "full"])
def mixture(request, rng):
    transform = np.array([0.5, 2.0, 1.0])
    if request.param == "full":
        transform = np.triu(rng.standard_normal((3, 3))) + 2 * np.eye(3)
    weights = np.array([0.5, 0.2, 0.3, 0.0])
    return KernelMixture(rng.standard_normal((4, 3)), weights, np.array([0.7, 1.0, 1.3, 1.0]), transform, np.arange(4))


def as_normals(mixture):
    """Weights, means and covariances of the kernels."""
    A = np.diag(mixture.transform) if mixture.transform.ndim == 1 else mixture.transform
    covariance = np.linalg.inv(A.T @ A)
    return [(g, v, s**2 * covariance) for g, v, s in zip(mixture.weights, mixture.vectors, mixture.bandwidths)]


@pytest.mark.parametrize("columns", [[1], [2, 0], [0, 1, 2]])
def test_marginal_is_that_of_every_normal_kernel(mixture, rng, columns):
    X = rng.standard_normal((6, len(columns)))
    expected = sum(
        g * multivariate_normal(v[columns], S[np.ix_(columns, columns)]).pdf(X) for g, v, S in as_normals(mixture)
    )
    np.testing.assert_allclose(mixture.marginal(columns).pdf(X), expected, rtol=1e-8)


@pytest.mark.parametrize("known", [[0], [2, 1]])
def test_joint_is_marginal_times_conditional(mixture, rng, known):
    X = rng.standard_normal((5, 3))
    rest = [d for d in range(3) if d not in known]
    for x in X:
        conditional = mixture.conditional({d: x[d] for d in known})
        product = mixture.marginal(known).pdf(x[None, known]) * conditional.pdf(x[None, rest])
        np.testing.assert_allclose(product, mixture.pdf(x[None]), rtol=1e-8)


def test_conditional_far_out_is_finite(mixture):
    far = mixture.conditional({0: 1e6})
    assert np.all(np.isfinite(far.mean()))
    assert far.weights.sum() == pytest.approx(1.0)


def test_mean_and_samples_agree(mixture):
    drawn = mixture.sample(40_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), mixture.mean(), atol=0.05)
    part = mixture.conditional({1: 0.3})
    np.testing.assert_allclose(part.sample(40_000, random_state=0).mean(axis=0), part.mean(), atol=0.05)


def test_features_by_name():
    pandas = pytest.importorskip("pandas")
    X, _ = make_banana(100)
    density = ForwardDensity().fit(pandas.DataFrame(X, columns=["left", "right"]))
    np.testing.assert_array_equal(density.marginal(["right"]).vectors, density.marginal([1]).vectors)
    named = density.conditional({"left": 0.5})
    np.testing.assert_array_equal(named.weights, density.conditional({0: 0.5}).weights)
    with pytest.raises(ValueError, match="ForwardDensity: there is no feature 'top'; the features are left, right"):
        density.marginal(["top"])


@pytest.mark.parametrize("columns", [[], [0, 0], [3], [-1], [0.5], ["x"], [True]])
def test_bad_columns(mixture, columns):
    with pytest.raises(ValueError, match=r"KernelMixture.marginal: expected different positions of features, 0 to 2"):
        mixture.marginal(columns)


@pytest.mark.parametrize("given", [{0: 1.0, 1: 1.0, 2: 1.0}, {0: np.nan}])
def test_bad_values(mixture, given):
    with pytest.raises(ValueError, match="expected finite values of fewer than all 3 features"):
        mixture.conditional(given)


def test_bad_requests_of_an_estimator():
    density = ForwardDensity().fit(make_banana(60)[0])
    with pytest.raises(TypeError, match=r"ForwardDensity.conditional: expected a dict from features to values"):
        density.conditional([0])
    with pytest.raises(ValueError, match=r"there is no feature 'left'; give its position"):
        density.marginal(["left"])
