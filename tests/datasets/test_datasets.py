"""The generators: they follow their seed and are those of the papers; densities have integrals of one."""

import numpy as np
import pytest
import scipy.stats

from fewkern import datasets
from fewkern.datasets import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)

GENERATORS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("make_")]


def _table(made):
    """Samples alone (of a density), or samples and targets, as one matrix."""
    return np.column_stack(made) if isinstance(made, tuple) else made


@pytest.mark.parametrize("make", GENERATORS, ids=lambda f: f.__name__)
def test_generators_follow_their_seed(make):
    assert len(_table(make(101))) == 101
    np.testing.assert_array_equal(_table(make(20)), _table(make(20, random_state=0)))
    assert not np.array_equal(_table(make(20)), _table(make(20, random_state=1)))
    assert not np.array_equal(_table(make(20, random_state=None)), _table(make(20, random_state=None)))
    for kind in (np.random.default_rng, np.random.RandomState):
        one, same = kind(5), kind(5)
        first = _table(make(20, random_state=one))
        np.testing.assert_array_equal(first, _table(make(20, random_state=same)))
        # what is drawn from moves on
        assert not np.array_equal(first, _table(make(20, random_state=one)))


def test_two_gaussians_are_those_of_the_paper():
    X, y = datasets.make_two_gaussians(40_000)
    scores = []
    for code, mean, variance in ((0, [-1, 0], [1, 1]), (1, [1, 0], [1, 0.1])):
        np.testing.assert_allclose(X[y == code].mean(axis=0), mean, atol=0.03)
        np.testing.assert_allclose(X[y == code].var(axis=0), variance, atol=0.04)
        scores.append(scipy.stats.multivariate_normal(mean, np.diag(variance)).logpdf(X))
    assert 100 * np.mean((scores[1] > scores[0]) == y) == pytest.approx(88.84, abs=0.4)


def test_sinc_without_noise():
    x, y = datasets.make_sinc(7, noise=0.0)
    np.testing.assert_allclose(x[:, 0], [-3, -2, -1, 0, 1, 2, 3])
    np.testing.assert_allclose(y, [0, 0, 0, 1, 0, 0, 0], atol=1e-15)


def test_rings_lie_on_their_radii():
    X, y = datasets.make_rings(90, radii=(1.0, 2.0, 3.0))
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), y + 1.0)
    assert np.bincount(y).tolist() == [30, 30, 30]


@pytest.mark.parametrize(
    ("make", "density", "scale", "variance"),
    [
        (make_gaussian_laplacian, gaussian_laplacian_density, 3.5, [0.5 + 1 / 0.49 + 4, 0.5 + 1 / 0.25 + 4]),
        (make_three_gaussians, three_gaussians_density, 1.8, [5 / 3 + 2 / 3, 4 / 3 + 2 / 3] * 3),
    ],
)
def test_samples_have_the_moments_of_a_density_of_integral_one(make, density, scale, variance):
    X = make(40_000, random_state=0)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=0.06)
    np.testing.assert_allclose(X.var(axis=0), variance, rtol=0.04)
    # importance sampling
    m = X.shape[1]
    Z = np.random.default_rng(0).normal(size=(200_000, m)) * scale
    proposal = np.exp(-0.5 * (Z**2).sum(axis=1) / scale**2) / (2 * np.pi * scale**2) ** (m / 2)
    assert np.mean(density(Z) / proposal) == pytest.approx(1, abs=0.03)
