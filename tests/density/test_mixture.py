"""The density value: against sums written out, in the tails; marginal and conditional densities, and integrals."""

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import multivariate_normal

from fewkern import ForwardDensity
from fewkern.datasets import make_banana
from fewkern.density.mixture import ClassMixtures, KernelMixture, product_bound, square_limit

A = np.array([[1.5, 0.4], [0.0, 0.7]])


def _mixture(transform, seed=0, m=2):
    rng = np.random.default_rng(seed)
    weights = rng.random(4)
    return KernelMixture(rng.normal(size=(4, m)), weights / weights.sum(), 0.3 + rng.random(4), transform)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("far", [1e2, 1e8, 1e19, 3e38])
def test_log_density_is_finite_and_falls_outwards(dtype, far):
    values = _mixture(np.ones(2))
    mixture = KernelMixture(
        *[np.asarray(a, dtype) for a in (values.vectors, values.weights, values.bandwidths, values.transform)]
    )
    with np.errstate(all="raise", under="ignore"):
        log_p = mixture.log_density(np.array([[0, 0], [10, 10], [far, -far]], dtype))
    assert log_p.dtype == dtype
    assert np.all(np.isfinite(log_p))
    assert log_p[0] > log_p[1] > log_p[2]


def test_log_density_far_from_the_origin_keeps_its_figures():
    mixture = _mixture(np.ones(2))
    X = np.random.default_rng(1).normal(size=(5, 2))
    shifted = KernelMixture(mixture.vectors + 1e7, mixture.weights, mixture.bandwidths, mixture.transform)
    np.testing.assert_allclose(shifted.log_density(X + 1e7), mixture.log_density(X), atol=1e-6)


def test_cdf_is_the_integral_of_the_density():
    mixture = _mixture(np.array([0.8]), m=1)
    for x in (-1.0, 0.3, 2.0):
        integral, _ = integrate.quad(lambda t: mixture(np.array([[t]]))[0, 0], -20, x)
        assert mixture.cdf(np.array([[x]]))[0] == pytest.approx(integral, abs=1e-9)


@pytest.mark.parametrize("factor", [2.0, -2.0])
def test_cdf_of_one_feature_needs_no_diagonal(factor):
    x = np.linspace(-3, 3, 7)[:, None]
    plain, turned = _mixture(np.array([2.0]), m=1), _mixture(np.array([[factor]]), m=1)
    np.testing.assert_allclose(turned.cdf(x), plain.cdf(x))
    np.testing.assert_allclose(turned.marginal([0]).transform, [2.0])


def test_cdf_of_a_whitened_mixture_is_an_error():
    with pytest.raises(ValueError, match=r'products over the features.*scale="std"'):
        _mixture(A).cdf(np.zeros((1, 2)))


@pytest.mark.parametrize(
    "transforms", [(np.array([1.5, 0.7]), np.array([1.5, 0.7])), (np.array([1.5, 0.7]), A), (A, A.T)]
)
def test_inner_product_and_distance_equal_quadrature(transforms):
    p, q = _mixture(transforms[0]), _mixture(transforms[1], seed=3)
    axis = np.linspace(-12, 12, 481)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    cell = (axis[1] - axis[0]) ** 2
    P, Q = p(grid)[:, 0], q(grid)[:, 0]
    assert p.inner(q) == pytest.approx(np.sum(P * Q) * cell, rel=1e-5)
    assert p.l2_distance(q) == pytest.approx(np.sqrt(np.sum((P - Q) ** 2) * cell), rel=1e-5)
    assert p.l2_distance(p) < 1e-7
    assert p.l2_distance(q) == pytest.approx(q.l2_distance(p), rel=1e-9)


def test_a_kernel_of_weight_zero_is_not_there():
    centers, s = np.array([[0.0], [3.0]]), np.array([1.0, 0.5])
    X = np.linspace(-2, 5, 9)[:, None]
    one = KernelMixture(centers, np.array([1.0, 0.0]), s, np.ones(1))
    alone = KernelMixture(centers[:1], np.ones(1), s[:1], np.ones(1))
    np.testing.assert_allclose(one.log_density(X), alone.log_density(X), rtol=1e-12)
    assert np.all(np.isfinite(one.log_density(np.array([[1e300], [-1e300], [3.0]]))))


@pytest.mark.parametrize("largest", [1e300, 3e38])
def test_numbers_within_their_bounds_do_not_overflow(largest):
    for dim in (1, 7, 500):
        limit = square_limit(dim, largest)
        # twice as far apart as both are from zero
        assert dim * (2 * limit) ** 2 < 1e-4 * largest
        assert dim * (2 * limit) ** 2 > 1e-8 * largest
    A = np.array([[1e3, 2.0], [0.0, -5e3]])
    bound = product_bound(A, largest)
    assert np.all(np.abs(A) @ bound <= 0.5 * largest)
    assert np.all(np.abs(A) * bound[None, :] <= 0.25 * largest)
    np.testing.assert_allclose(bound, 0.25 * largest / (2 * np.array([1e3, 5e3])))
    np.testing.assert_allclose(product_bound(np.array([4.0, -8.0]), largest), 0.25 * largest / np.array([8.0, 16.0]))
    # a matrix that makes numbers smaller sets no wider bound
    np.testing.assert_allclose(product_bound(np.array([1e-6]), largest), [0.25 * largest])


def test_densities_of_several_classes_are_their_logarithms_side_by_side():
    one = KernelMixture(np.array([[0.0], [1.0]]), np.array([0.5, 0.5]), np.ones(2), np.ones(1))
    other = KernelMixture(np.array([[4.0]]), np.ones(1), np.array([0.5]), np.ones(1))
    both = ClassMixtures((one, other))
    X = np.linspace(-1, 5, 7)[:, None]
    np.testing.assert_array_equal(both(X), np.column_stack([one.log_density(X), other.log_density(X)]))
    np.testing.assert_array_equal(both.vectors, [[0.0], [1.0], [4.0]])
    assert (both.n_vectors, both.n_outputs, both.indices) == (3, 2, None)
    assert both.nbytes == one.nbytes + other.nbytes


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
def test_density_and_marginals_are_those_of_every_normal_kernel(mixture, rng, columns):
    X = rng.standard_normal((6, len(columns)))
    expected = sum(
        g * multivariate_normal(v[columns], S[np.ix_(columns, columns)]).pdf(X) for g, v, S in as_normals(mixture)
    )
    np.testing.assert_allclose(mixture.marginal(columns).pdf(X), expected, rtol=1e-8)
    if columns == [0, 1, 2]:
        np.testing.assert_allclose(mixture.log_density(X), np.log(expected), rtol=1e-9)
        np.testing.assert_array_equal(mixture.pdf(X), mixture(X)[:, 0])


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
