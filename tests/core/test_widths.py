"""Widths by rules: one per feature, in units of the feature."""

import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.backend.columns import column_spreads
from fewkern.core.widths import feature_units
from fewkern.kernels import Gaussian, Laplacian

FACTORS, SHIFTS = np.array([2.0**17, 1.0, 1e-5, 1e5]), np.array([0.0, 1e3, 0.0, -7.0])
KERNELS = [
    cls(rule, unit) for cls in (Gaussian, Laplacian) for rule in ("median", "scale") for unit in ("auto", "range")
]


@pytest.fixture
def X(rng):
    return rng.standard_normal((50, 4)) * [1.0, 2.0, 0.3, 5.0] + [0.0, 1.0, 2.0, 30.0]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_rule_follows_the_units_of_every_feature(kernel, X):
    one, other = kernel.resolve(X), kernel.resolve(X * FACTORS + SHIFTS)
    np.testing.assert_allclose(other.width, one.width * FACTORS, rtol=1e-9)
    np.testing.assert_allclose(other(X * FACTORS + SHIFTS, X * FACTORS + SHIFTS), one(X, X), atol=1e-9)


@pytest.mark.parametrize(("unit", "size"), [("spread", np.std), ("range", np.ptp)])
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
def test_the_rule_is_that_for_samples_in_units(kernel, unit, size, X):
    units = size(X, axis=0)
    np.testing.assert_allclose(feature_units(X, unit), units, rtol=1e-12)
    for rule in ("median", "scale"):
        number = kernel(rule, "common").resolve(X / units).width
        np.testing.assert_allclose(kernel(rule, unit).resolve(X).width, number * units, rtol=1e-12)


def test_auto_is_the_spread_and_says_so(X):
    kernel = Gaussian().resolve(X)
    assert kernel.unit == "spread"
    assert kernel == Gaussian(unit="spread").resolve(X)
    assert kernel.resolve(5 * X) == kernel


def test_weights_count_in_the_spread():
    X = np.array([[0.0], [2.0]])
    np.testing.assert_allclose(feature_units(X, "spread", np.array([3.0, 1.0])), [0.75**0.5 * 1.0])


@pytest.mark.parametrize("value", [0.0, 3.7, -1e8, 1e300])
@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian("scale"), Gaussian(unit="range"), Laplacian()], ids=repr)
def test_a_constant_feature_does_no_harm(kernel, value, X):
    noise = abs(value) * np.finfo(float).eps * np.resize([0.0, 1.0], 50)
    for column in (np.full(50, value), value + noise):
        Z = np.column_stack([X, column])
        found = kernel.resolve(Z)
        assert np.all(np.isfinite(found.width))
        assert np.all(found.width > 0)
        np.testing.assert_allclose(found.width[:4], kernel.resolve(X).width, rtol=1e-9)
        np.testing.assert_allclose(found(Z, Z), kernel.resolve(X)(X, X), atol=1e-9)


def test_nothing_but_constant_features():
    X = np.full((5, 2), 3.7)
    np.testing.assert_allclose(Gaussian().resolve(X)(X, X), 1.0)
    np.testing.assert_allclose(Laplacian(unit="range").resolve(X)(X, X), 1.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sparse_equals_dense(kernel, X):
    X = np.where(X > 1.0, X, 0.0) * FACTORS
    X[:, 1] = 0.0
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array):
        found = kernel.resolve(kind(X))
        np.testing.assert_allclose(found.width, kernel.resolve(X).width, rtol=1e-9)
        np.testing.assert_allclose(found(kind(X).tocsr(), kind(X).tocsr()), found(X, X), atol=1e-7)


def test_weighted_spread_of_sparse_samples(X, rng):
    X, weights = np.where(X > 1.0, X, 0.0), rng.random(50)
    found = feature_units(sp.csr_array(X), "spread", weights)
    np.testing.assert_allclose(found, feature_units(X, "spread", weights), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_float32_stays_float32(kernel, X):
    small = (X * FACTORS).astype(np.float32)
    found = kernel.resolve(small)
    assert found(small, small).dtype == np.float32
    np.testing.assert_allclose(found.width, kernel.resolve(X * FACTORS).width, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_other_array_libraries(kernel, X, foreign):
    to, back = foreign
    found = kernel.resolve(to(X))
    assert type(found.width) is type(to(X))
    np.testing.assert_allclose(back(found.width), kernel.resolve(X).width, rtol=1e-12)


@pytest.mark.parametrize("n", [10, 80, 81, 300])
def test_a_constant_feature_of_sparse_samples_has_no_spread(n):
    """Shares of all samples add up to one but for rounding."""
    X = np.random.default_rng(0).standard_normal((n, 2))
    X[:, 1] = 4.0
    np.testing.assert_allclose(column_spreads(sp.csr_array(X)), [X[:, 0].std(), 0.0])
