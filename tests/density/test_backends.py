"""Samples of other array libraries: mixtures give the same numbers; two functions of arrays that only densities use."""

import numpy as np
import pytest
from scipy.stats import norm

from fewkern import ForwardDensity, KernelMixture
from fewkern.arrays.linalg import solve_or_least_squares
from fewkern.arrays.numerics import normal_cdf

X = np.random.default_rng(0).normal(size=(50, 2))
X[25:] += 3.0


def _mixtures(a):
    p = KernelMixture(a(X[:5]), a(np.full(5, 0.2)), a(np.linspace(0.5, 1, 5)), a(np.array([1.0, 2.0])), a(np.arange(5)))
    q = KernelMixture(a(X[5:9]), a(np.full(4, 0.25)), a(np.ones(4)), a(np.array([[1.0, 0.3], [0.0, 1.0]])))
    parts = [part for one in (p, q) for part in (one.marginal([1]), one.conditional({0: 0.5}))]
    whole = p.log_density(a(X)), p.cdf(a(X)), q.log_density(a(X)), p(a(X)), p.like(a(X)).indices
    return (*whole, *(part.log_density(a(X[:, :1])) for part in parts), a(np.array([p.l2_distance(q)])))


def test_a_mixture_gives_the_same_numbers(foreign):
    to, back = foreign
    for found, expected in zip(_mixtures(to), _mixtures(np.asarray), strict=True):
        assert type(found) is type(to(X))
        np.testing.assert_allclose(back(found), expected, rtol=1e-9, atol=1e-12)
    fitted = ForwardDensity(max_vectors=3).fit(to(X))  # by NumPy, and kept in the library of the samples
    assert type(fitted.vectors_) is type(fitted.sample(2, random_state=0)) is type(to(X))


def test_normal_cdf(foreign):
    to, back = foreign
    x = np.linspace(-8, 8, 17)
    np.testing.assert_allclose(normal_cdf(x), norm.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(back(normal_cdf(to(x))), norm.cdf(x), rtol=1e-9)


@pytest.mark.parametrize("corner", [3.0, 1.0, 1.0 + 1e-17])
def test_a_singular_system_has_the_shortest_least_squares_solution(corner):
    A, b = np.array([[1.0, 1.0], [1.0, corner]]), np.array([2.0, 2.0])
    expected = [2.0, 0.0] if corner == 3.0 else [1.0, 1.0]
    np.testing.assert_allclose(solve_or_least_squares(A, b), expected, rtol=1e-9, atol=1e-12)
