"""The density value: against sums written out, in the tails; marginal and conditional densities, and integrals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from fewkern import ForwardDensity
from fewkern.datasets import make_banana
from fewkern.density.mixture import KernelMixture, _check_mixture, product_bound, square_limit

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
    with pytest.raises(ValueError, match="do not add up to one"):
        _check_mixture(replace(values, weights=values.weights / 2))
    # a kernel of weight zero is not there, and far from the origin no digits cancel
    X = np.random.default_rng(1).normal(size=(5, 2))
    none = replace(values, weights=np.array([0.5, 0.0, 0.25, 0.25]))
    rest = replace(none, **{name: getattr(none, name)[[0, 2, 3]] for name in ("vectors", "weights", "bandwidths")})
    np.testing.assert_allclose(none.log_density(X), rest.log_density(X), rtol=1e-12)
    shifted = replace(values, vectors=values.vectors + 1e7)
    np.testing.assert_allclose(shifted.log_density(X + 1e7), values.log_density(X), atol=1e-6)


@pytest.mark.parametrize("factor", [2.0, -2.0])
def test_cdf_of_one_feature_needs_no_diagonal(factor):
    x = np.linspace(-3, 3, 7)[:, None]
    plain, turned = _mixture(np.array([2.0]), m=1), _mixture(np.array([[factor]]), m=1)
    np.testing.assert_allclose(turned.cdf(x), plain.cdf(x))
    np.testing.assert_allclose(turned.marginal([0]).transform, [2.0])
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


@pytest.mark.parametrize("largest", [1e300, 3e38])
def test_numbers_within_their_bounds_do_not_overflow(largest):
    for dim in (1, 7, 500):
        limit = square_limit(dim, largest)
        # twice as far apart as both are from zero
        assert dim * (2 * limit) ** 2 < 1e-4 * largest
        assert dim * (2 * limit) ** 2 > 1e-8 * largest
    for A, gain in ((np.array([[1e3, 2.0], [0.0, -5e3]]), [1e3, 5e3]), (np.array([4.0, -8.0]), [4.0, 8.0])):
        np.testing.assert_allclose(product_bound(A, largest), 0.25 * largest / (2 * np.array(gain)))
    # a matrix that makes numbers smaller sets no wider bound
    np.testing.assert_allclose(product_bound(np.array([1e-6]), largest), [0.25 * largest])


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
    if mixture.transform.ndim == 1:
        expected = sum(
            g * norm(v[columns], np.sqrt(np.diag(S))[columns]).cdf(X).prod(axis=1) for g, v, S in as_normals(mixture)
        )
        np.testing.assert_allclose(mixture.marginal(columns).cdf(X), expected, rtol=1e-9)


@pytest.mark.parametrize("known", [[0], [2, 1]])
def test_joint_is_marginal_times_conditional(mixture, rng, known):
    X = rng.standard_normal((5, 3))
    rest = [d for d in range(3) if d not in known]
    for x in X:
        conditional = mixture.conditional({d: x[d] for d in known})
        product = mixture.marginal(known).pdf(x[None, known]) * conditional.pdf(x[None, rest])
        np.testing.assert_allclose(product, mixture.pdf(x[None]), rtol=1e-8)
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
    with pytest.raises(TypeError, match=r"ForwardDensity.conditional: expected a dict from features to values"):
        density.conditional([0])
    with pytest.raises(ValueError, match=r"there is no feature 'left'; give its position"):
        ForwardDensity().fit(X).marginal(["left"])


POSITIONS, VALUES = "marginal: expected different positions of features, 0 to 2", "expected finite values of fewer than"


@pytest.mark.parametrize(
    ("method", "bad", "message"),
    [
        *(("marginal", columns, POSITIONS) for columns in ([], [0, 0], [3], [-1], [0.5], ["x"], [True])),
        *(("conditional", given, VALUES) for given in ({0: 1.0, 1: 1.0, 2: 1.0}, {0: np.nan})),
    ],
)
def test_bad_requests(mixture, method, bad, message):
    with pytest.raises(ValueError, match=message):
        getattr(mixture, method)(bad)
