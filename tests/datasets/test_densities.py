"""The paper's two densities: samples that follow them, integrals of one."""

import numpy as np
import pytest
from scipy import integrate

from fewkern.datasets import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)


def test_example_one_integrates_to_one():
    # the cusps at -2 are put on the ends of the pieces
    pieces = [(-40.0, -2.0), (-2.0, 40.0)]
    total = sum(
        integrate.dblquad(lambda y, x: gaussian_laplacian_density([[x, y]])[0], *a, *b, epsabs=1e-6)[0]
        for a in pieces
        for b in pieces
    )
    assert total == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("make", "density", "mean", "variance"),
    [
        (make_gaussian_laplacian, gaussian_laplacian_density, [0, 0], [0.5 + 1 / 0.49 + 4, 0.5 + 1 / 0.25 + 4]),
        (make_three_gaussians, three_gaussians_density, [0] * 6, [5 / 3 + 2 / 3, 4 / 3 + 2 / 3] * 3),
    ],
)
def test_samples_have_the_moments_of_the_density(make, density, mean, variance):
    X = make(40_000, random_state=0)
    np.testing.assert_allclose(X.mean(axis=0), mean, atol=0.06)
    np.testing.assert_allclose(X.var(axis=0), variance, rtol=0.04)
    np.testing.assert_array_equal(X[:3], make(40_000, random_state=0)[:3])
    assert np.all(density(X[:100]) > 0)


@pytest.mark.parametrize(
    ("make", "density", "scale"),
    [(make_gaussian_laplacian, gaussian_laplacian_density, 3.5), (make_three_gaussians, three_gaussians_density, 1.8)],
)
def test_density_integrates_to_one_by_importance_sampling(make, density, scale):
    rng = np.random.default_rng(0)
    m = make(2, random_state=0).shape[1]
    Z = rng.normal(size=(200_000, m)) * scale
    proposal = np.exp(-0.5 * (Z**2).sum(axis=1) / scale**2) / (2 * np.pi * scale**2) ** (m / 2)
    assert np.mean(density(Z) / proposal) == pytest.approx(1, abs=0.03)
