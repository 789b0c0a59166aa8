"""Extreme bandwidths, weights, features and splits: a clear error or finite numbers, and no warning of NumPy."""

import numpy as np
import pytest
from sklearn.base import clone

from fewkern import (
    ForwardConstrainedDensity,
    ForwardDensity,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
)
from fewkern.datasets import make_gaussian_laplacian

X = make_gaussian_laplacian(60, random_state=0)
FAR = np.vstack([X[:5], [[1e6, -1e6]], [[1e30, 1e30]]])
DENSITIES = [
    ParzenDensity(),
    ForwardDensity(max_vectors=3),
    ForwardConstrainedDensity(),
    ReducedSetDensity(),
    OrthogonalForwardDensity(),
]
every_density = pytest.mark.parametrize("density", DENSITIES, ids=lambda density: type(density).__name__)
# Kernels that no longer overlap, or all look alike, are worth a warning of ours; those of NumPy are errors.
ours = pytest.mark.filterwarnings("ignore:[A-Z][a-z]+[A-Za-z]*Density:UserWarning")


def _finite(model, dtype=np.float64):
    far = FAR.astype(dtype)
    return all(np.all(np.isfinite(found)) for found in (model.score_samples(far), model.cdf(far), model.sample(3)))


@every_density
@pytest.mark.parametrize("bandwidth", [1e-300, 1e300])
def test_a_bandwidth_out_of_range_is_an_error(density, bandwidth):
    message = rf"{type(density).__name__}: bandwidth must lie between 1e-40 and 1e\+40 in units of the scaled data"
    with pytest.raises(ValueError, match=message):
        clone(density).set_params(bandwidth=bandwidth).fit(X)


@ours
@every_density
@pytest.mark.parametrize(("bandwidth", "dtype"), [(1e-39, "f8"), (1e39, "f8"), (1e-17, "f4"), (1e17, "f4")])
def test_a_bandwidth_within_the_range_gives_finite_numbers(density, bandwidth, dtype):
    assert _finite(clone(density).set_params(bandwidth=bandwidth).fit(X.astype(dtype)), dtype)


@pytest.mark.parametrize(
    ("density", "parameter"),
    [
        (ForwardConstrainedDensity(gamma=1e300), "gamma times Parzen's bandwidth"),
        (OrthogonalForwardDensity(kernel_bandwidth=1e-300), "kernel_bandwidth"),
        (OrthogonalForwardDensity(kernel_bandwidth=1e300, target="distribution"), "kernel_bandwidth"),
    ],
)
def test_other_bandwidths_out_of_range_are_errors(density, parameter):
    with pytest.raises(ValueError, match=rf"{type(density).__name__}: {parameter} must lie between 1e-40 and"):
        density.fit(X)


@ours
@pytest.mark.parametrize("light", [1e-17, 1e-99])
@pytest.mark.parametrize("rule", ["lscv", "likelihood"])
def test_one_sample_of_nearly_all_the_weight(light, rule):
    weights = np.full(60, light)
    weights[5] = 1.0
    if light > 1e-90:
        assert _finite(ParzenDensity(bandwidth=rule, scale="none").fit(X, sample_weight=weights))
    spread_out = 10.0 ** np.linspace(np.log10(light), 0, 60)
    assert _finite(ParzenDensity(bandwidth=rule).fit(X, sample_weight=spread_out))


@every_density
@pytest.mark.parametrize("scale", ["std", "whiten"])
def test_a_feature_whose_spread_has_no_inverse_is_an_error(density, scale):
    with pytest.raises(ValueError, match=r"must differ by more than 7e-306 in every feature that is not constant"):
        clone(density).set_params(scale=scale).fit(X * [1e-310, 1.0])


SPLITS = [
    ([(range(30), range(100, 110))], "cv: a split names row 100, but the rows are 0 to 59"),
    ([(range(30), [-1])], "cv: a split names row -1, but the rows are 0 to 59"),
    ([(range(30), [])], "at least two samples .* but split 0 has 30 and 0"),
    ([(range(30, 60), range(30)), ([1], range(30))], "but split 1 has 1 and 30"),
]


@pytest.mark.parametrize(("cv", "message"), SPLITS)
@pytest.mark.parametrize("density", [ForwardDensity(), ReducedSetDensity()])
def test_splits_that_cannot_be_used_are_errors(density, cv, message):
    with pytest.raises(ValueError, match=message):
        clone(density).set_params(cv=cv).fit(X)


@every_density
@pytest.mark.filterwarnings("ignore:.*features .* are constant:UserWarning")
def test_a_constant_feature_near_the_largest_number_is_a_constant_feature(density):
    flat = np.column_stack([X, np.full(60, 1e308)])
    for scale in ("std", "whiten"):
        model = clone(density).set_params(scale=scale).fit(flat)
        assert np.all(np.isfinite(model.score_samples(flat)))
        one = clone(density).set_params(scale=scale).fit(np.column_stack([X, np.ones(60)]))
        np.testing.assert_allclose(model.bandwidths_, one.bandwidths_)
