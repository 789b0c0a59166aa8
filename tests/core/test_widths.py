"""Widths by rules: one per feature, in units of the feature."""

import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.arrays.numerics import column_spreads
from fewkern.core.radial import city_block, euclidean, feature_units
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
    np.testing.assert_allclose(other.length_scale, one.length_scale * FACTORS, rtol=1e-9)
    np.testing.assert_allclose(other(X * FACTORS + SHIFTS, X * FACTORS + SHIFTS), one(X, X), atol=1e-9)
    # powers of two are exact, however large
    for factor in (2.0**600, 2.0**-600, 2.0 ** np.array([600.0, -600.0, 0.0, 300.0])):
        np.testing.assert_array_equal(kernel.resolve(X * factor).length_scale, one.length_scale * factor)
    for factor in (2.0**600, 2.0**-600):
        found = kernel.resolve(sp.csr_array(X * factor)).length_scale
        np.testing.assert_array_equal(found, kernel.resolve(sp.csr_array(X)).length_scale * factor)


@pytest.mark.parametrize(("unit", "size"), [("spread", np.std), ("range", np.ptp)])
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
def test_the_rule_is_that_for_samples_in_units(kernel, unit, size, X):
    units = size(X, axis=0)
    np.testing.assert_allclose(feature_units(X, unit), units, rtol=1e-12)
    for rule in ("median", "scale"):
        number = kernel(rule, "common").resolve(X / units).length_scale
        np.testing.assert_allclose(kernel(rule, unit).resolve(X).length_scale, number * units, rtol=1e-12)


def test_a_kernel_says_its_unit(X):
    """ "auto" is the spread; of a length scale that was given the unit means nothing."""
    kernel = Gaussian().resolve(X)
    assert kernel.unit == "spread"
    assert kernel == Gaussian(unit="spread").resolve(X)
    assert kernel.resolve(5 * X) == kernel
    assert repr(Gaussian()) == "Gaussian(length_scale='median')"
    assert repr(Laplacian(unit="range")) == "Laplacian(length_scale='median', unit='range')"
    assert Gaussian(2.0, "range").resolve(X) == Gaussian(2.0, "range") != Gaussian(2.0)


@pytest.mark.parametrize("value", [0.0, 3.7, -1e8, 1e300])
@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian("scale"), Gaussian(unit="range"), Laplacian()], ids=repr)
def test_a_constant_feature_does_no_harm(kernel, value, X):
    noise = abs(value) * np.finfo(float).eps * np.resize([0.0, 1.0], 50)
    for column in (np.full(50, value), value + noise):
        Z = np.column_stack([X, column])
        found = kernel.resolve(Z)
        assert np.all(np.isfinite(found.length_scale))
        assert np.all(found.length_scale > 0)
        np.testing.assert_allclose(found.length_scale[:4], kernel.resolve(X).length_scale, rtol=1e-9)
        np.testing.assert_allclose(found(Z, Z), kernel.resolve(X)(X, X), atol=1e-9)


@pytest.mark.parametrize("n", [10, 80, 81, 300])
def test_a_constant_feature_of_sparse_samples_has_no_spread(n):
    """Shares of all samples add up to one but for rounding."""
    X = np.random.default_rng(0).standard_normal((n, 2))
    X[:, 1] = 4.0
    np.testing.assert_allclose(column_spreads(sp.csr_array(X)), [X[:, 0].std(), 0.0])


def middle(values):
    """The upper of the two middle ones."""
    return np.sort(values)[len(values) // 2]


def test_the_median_of_the_distances_between_different_rows():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [6.0, 8.0], [0.0, 1.0]])
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    assert Gaussian("median", "common").resolve(X).length_scale == pytest.approx(middle(D[D > 0]))
    L = np.abs(X[:, None] - X[None]).sum(axis=2)
    assert Laplacian("median", "common").resolve(X).length_scale == pytest.approx(middle(L[L > 0]))
    np.testing.assert_allclose(euclidean(X), D.ravel(), atol=1e-12)
    np.testing.assert_allclose(city_block(X), L.ravel(), atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("factor", [1e-140, 1.0, 1e140])
def test_equal_rows_far_from_the_origin_have_no_distance(sparse, factor, rng):
    X = np.repeat(rng.standard_normal((5, 3)) * 1e-3 + 7.0, 2, axis=0) * factor
    D = euclidean(sp.csr_array(X) if sparse else X).reshape(10, 10)
    truth = np.sqrt((((X[:, None] - X[None]) / factor) ** 2).sum(axis=2)) * factor
    assert np.all(D[truth == 0] == 0.0)
    np.testing.assert_allclose(D, truth, rtol=1e-2 if sparse else 1e-6)


@pytest.mark.parametrize(("n", "step"), [(1000, 1), (1001, 2), (2500, 3)])
@pytest.mark.parametrize("unit", ["common", "spread"])
def test_a_median_looks_at_no_more_than_a_thousand_rows(n, step, unit, rng):
    X = rng.standard_normal((n, 2))
    units = 1.0 if unit == "common" else X.std(axis=0)
    distances = euclidean((X / units)[::step])
    expected = middle(distances[distances > 0]) * units
    np.testing.assert_allclose(Gaussian("median", unit).resolve(X).length_scale, expected, rtol=1e-12)


@pytest.mark.parametrize("width", [1e306, 1e-306, [1.0, 1e306], [1e-306, 1.0]])
def test_widths_that_a_search_could_not_multiply(width):
    wrong = float(np.max(width)) if np.max(width) > 1 else float(np.min(width))
    with pytest.raises(ValueError, match=f"Gaussian: the length scale is {wrong:.3g}".replace("+", r"\+")):
        Gaussian(width).resolve(np.ones((3, 2)))
    for allowed in (1e304, 1e-304, [1e-304, 1e304]):
        np.testing.assert_array_equal(Gaussian(allowed).resolve(np.ones((3, 2))).length_scale, allowed)


@pytest.mark.parametrize(
    ("width", "unit", "message"),
    [
        (1.0, "inch", "unit must be one of 'auto', 'spread', 'range', 'common', got 'inch'"),
        ("wide", "common", 'length_scale must be a positive number, one number per feature, "median" or "scale", got'),
        (0.0, "common", "length_scale must be a positive number, got 0.0"),
        (np.inf, "common", "length_scale must be a positive number, got inf"),
        ([1.0, 2.0, 3.0], "common", r"got shape \(3,\) for 2 features"),
        ([1.0, 0.0], "common", "every entry of length_scale must be a positive number"),
        ([1.0, np.inf], "common", "every entry of length_scale must be a positive number"),
        ([1.0, np.nan], "common", "every entry of length_scale must be a positive number"),
    ],
)
def test_widths_that_are_none(width, unit, message):
    with pytest.raises(ValueError, match=f"Laplacian: .*{message}"):
        Laplacian(width, unit).resolve(np.ones((3, 2)))
