"""Shares of the columns in a value: the path integral of the gradient, in closed form."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.integrate import quad

from fewkern.arrays.numerics import line_integrals
from fewkern.core.expansion import KernelExpansion
from fewkern.core.explanation import Background, Explanation, background_of, shares
from fewkern.core.gaussians import GaussianExpansion
from fewkern.core.kernels import Gaussian
from tests.core.functions import function, table


def learned(rng, width=1.0):
    """A function of the learner's form with columns that are prepared."""
    f = function(rng, table(rng)[:, [0, 1, 3, 4]], outputs=2, vectors=6)
    return replace(f, basis=replace(f.basis, scales=f.basis.scales / width, directions=f.basis.directions / width))


def of_kernels(rng, d=4, m=6, q=2, width=1.0):
    kernel = Gaussian(width * rng.uniform(0.5, 3, d))
    return KernelExpansion(kernel, rng.normal(size=(m, d)), rng.normal(size=(m, q)), rng.normal(size=q))


def numerical(function, x, center, output):
    """Midpoint sums over the way from one background row, with slopes by central differences of the values."""
    form = isinstance(function, GaussianExpansion)

    def value(T):
        if not form:
            return function(T)[:, output]
        return (function.basis.columns(T) @ function.coef + T @ function.slopes)[:, output]

    start, end = (function.basis.prepared(z[None, :])[0] if form else z for z in (center, x))
    places = (np.arange(4000) + 0.5) / 4000
    way, points = end - start, start + places[:, None] * (end - start)
    steps = 1e-5 * np.eye(len(x))
    return np.array([way[i] * np.mean(value(points + e) - value(points - e)) / 2e-5 for i, e in enumerate(steps)])


@pytest.mark.parametrize("make", [learned, of_kernels])
def test_shares_are_the_path_integral_of_the_gradient(make):
    rng = np.random.default_rng(0)
    function = make(rng)
    X, B = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    weights = np.array([0.3, 0.7])
    found, _ = shares(function, X, Background(background_of(function, B).centers, weights))
    for output in range(2):
        expected = [sum(w * numerical(function, x, b, output) for w, b in zip(weights, B)) for x in X]
        assert_allclose(found[:, :, output], expected, atol=1e-6)


@pytest.mark.parametrize("make", [learned, of_kernels])
@pytest.mark.parametrize("width", [1e-3, 0.05, 1.0, 30.0, 1e4])
def test_shares_add_up_to_the_difference_of_values(make, width):
    rng = np.random.default_rng(1)
    function = make(rng, width=width)
    X, B = rng.normal(size=(300, 4)), rng.normal(size=(16, 4))
    if make is of_kernels:
        X[:6] = function.vectors  # a Gaussian that is one at the end, however narrow
    found, baseline = shares(function, X, background_of(function, B))
    assert np.all(np.isfinite(found))
    assert_allclose(baseline, function(B).mean(axis=0), atol=1e-10)
    assert_allclose(found.sum(axis=1), function(X) - function(B).mean(axis=0), atol=1e-10)


def test_blocks_of_rows_make_no_difference():
    rng = np.random.default_rng(2)
    function = of_kernels(rng)
    X, background = rng.normal(size=(5000, 4)), background_of(function, rng.normal(size=(2, 4)))
    whole = shares(function, X, background)[0]
    assert_allclose(whole[4990:], shares(function, X[4990:], background)[0], atol=1e-14)


def test_sparse_and_single_precision():
    rng = np.random.default_rng(5)
    function = of_kernels(rng)
    X = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.5)
    background = background_of(function, X)
    dense = shares(function, X, background)[0]
    assert_allclose(shares(function, sparse.csr_matrix(X), background)[0], dense)
    assert_allclose(shares(function, X.astype(np.float32), background)[0], dense, atol=1e-5)


@pytest.mark.parametrize("a", [1e-12, 1e-4, 0.0099, 0.0101, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("place", [-40.0, -5.0, -1.0, -0.5, 0.0, 1e-9, 1.0, 5.0])
@pytest.mark.parametrize("off", [0.0, 2.0, 30.0])
def test_line_integrals_against_quadrature(a, place, off):
    """The segment begins ``place`` widths (negative: before the centre) and passes the centre ``off`` widths away."""
    c, g = place * np.sqrt(a), place**2 + off**2

    def integrand(t, power):
        return t**power * np.exp(-(a * t * t + 2 * c * t + g) / 2)

    # the integrand is a bump of width 1 / sqrt(a) around this place
    peak, spread = np.clip(-c / a, 0, 1), 12 / np.sqrt(a)
    ends = max(0.0, peak - spread), min(1.0, peak + spread)
    expected = [quad(integrand, *ends, args=(power,), epsabs=0, epsrel=1e-12, limit=200)[0] for power in (0, 1)]
    values = np.exp(-g / 2), np.exp(-(a + 2 * c + g) / 2)
    found = line_integrals(np.array([a]), np.array([c]), np.array([g]), *(np.array([k]) for k in values))
    assert_allclose(np.ravel(found[0]), expected[0], rtol=1e-9, atol=1e-15)
    assert_allclose(np.ravel(found[1]), expected[1], rtol=1e-7, atol=1e-14)


def test_shares_of_samples_whose_squared_distances_overflow():
    function = of_kernels(np.random.default_rng(8))
    X = np.array([[1e200, -3e199, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    found, baseline = shares(function, X, background_of(function, X[1:]))
    assert_allclose(found[0].sum(axis=0), function.offset - baseline, atol=1e-10)
    assert np.all(found[0, 0] != 0)
    assert not found[0, 2:].any()


def test_predictions_are_the_baseline_and_the_sum_of_the_shares():
    found = Explanation(np.arange(12.0).reshape(2, 3, 2), np.array([1.0, -1.0]), ("a", "b", "c"), ("u", "v"))
    np.testing.assert_array_equal(found.predictions, [[7.0, 8.0], [25.0, 26.0]])
