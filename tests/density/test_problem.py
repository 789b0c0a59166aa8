"""The input of the algorithms: scaling before isotropic kernels, kernel values, and errors of held-out samples."""

import numpy as np
import pytest

from fewkern.core.samples import Samples
from fewkern.density.problem import AllRows, DensityProblem, paired_errors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) @ np.array([[2.0, 1.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 50.0]]) + 7
W = RNG.random(300)
W = W / W.sum()


def fit_scaling(X, w, scale):
    return AllRows.of(Samples.of(X, w), scale).scaling


@pytest.mark.parametrize("scale", ["none", "std", "whiten"])
def test_invert_goes_back(scale):
    scaling = fit_scaling(X, W, scale)
    np.testing.assert_allclose(scaling.invert(scaling.apply(X)), X, rtol=1e-9)
    assert scaling.constant == 0


@pytest.mark.parametrize("scale", ["none", "std", "whiten"])
def test_a_feature_without_spread_takes_the_mean_of_the_others(scale):
    flat = np.column_stack([X[:, :2], np.full(300, 5.0)])
    scaling = fit_scaling(flat, W, scale)
    assert scaling.constant == 1
    assert np.all(np.isfinite(scaling.transform))
    if scale == "std":
        spread = 1 / scaling.transform
        assert spread[2] == pytest.approx(spread[:2].mean())
        none = fit_scaling(np.ones((5, 2)), np.full(5, 0.2), "std")
        assert (none.constant, none.transform.tolist()) == (2, [1.0, 1.0])


def test_kernel_values_are_in_units_and_stay_finite():
    def kernel(bandwidth, dim, unit):
        return DensityProblem.of(np.zeros((1, dim)), np.ones(1), unit).kernel(D, bandwidth)

    D = np.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(kernel(2.0, 3, 1.0), np.exp(-D / 8) / 8)
    np.testing.assert_allclose(kernel(np.array([2.0, 1.0, 4.0]), 1, 2.0), np.exp(-D / [8, 2, 32]) * [1, 2, 0.5])
    assert np.all(np.isfinite(kernel(np.full(3, 1e-3), 5000, 1.0)))


def test_least_bandwidth_falls_with_the_number_of_dimensions():
    rng = np.random.default_rng(0)
    found = [DensityProblem.of(rng.normal(size=(600, m)), np.ones(600)).least_bandwidth for m in (2, 6, 14, 40, 256)]
    assert found[:2] == [1.5, 1.5]
    assert np.all(np.diff(found) <= 0)
    assert 1.0 < found[-1] < 1.1
    # a cluster of 5% of the samples, and at least 25
    assert [DensityProblem.of(rng.normal(size=(n, 6)), np.ones(n)).least_bandwidth for n in (90, 600)] == pytest.approx(
        [min(1.5, (8 * cluster / 4) ** 0.1) for cluster in (25, 30)]
    )


def test_standard_errors_are_those_of_paired_differences():
    w = np.full(4, 0.25)
    best = np.array([0.0, 1.0, 0.0, 1.0])
    error, spread = paired_errors([best + 0.1 + np.array([0.4, -0.4, 0.4, -0.4]), best, best + 0.5], w)
    np.testing.assert_allclose(error, [0.6, 0.5, 1.0])
    np.testing.assert_allclose(spread, [0.2, 0, 0], atol=1e-15)
