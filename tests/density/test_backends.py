"""Samples of other array libraries: mixtures give the same numbers, and fits are kept in the library of the samples."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from fewkern import DensityClassifier, ForwardDensity, KernelMixture, ParzenDensity
from fewkern.arrays.linalg import solve_or_least_squares
from fewkern.arrays.numerics import normal_cdf

X = np.random.default_rng(0).normal(size=(50, 2))
X[25:] += 3.0
Y = np.arange(50) // 25
# Indices, weights, no indices, a whole matrix, and one density per class: what the methods have of arrays.
MODELS = [
    ParzenDensity(),
    ForwardDensity(scale="whiten", max_vectors=3),
    DensityClassifier(estimator=ParzenDensity(bandwidth=0.5)),
]


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


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_fit_in_numpy_is_kept_in_the_library_of_the_samples(model, foreign):
    to, back = foreign
    here, there = clone(model).fit(X, Y), clone(model).fit(to(X), to(Y))
    for one, other in zip(getattr(here, "densities_", (here,)), getattr(there, "densities_", (there,))):
        for name in ("vectors_", "weights_", "bandwidths_", "indices_"):
            if getattr(one, name) is not None:
                assert type(getattr(other, name)) is type(to(X))
                np.testing.assert_array_equal(back(getattr(other, name)), getattr(one, name))
        assert type(other.sample(2, random_state=0)) is type(to(X))
    for method in ("score_samples", "predict_set", "predict_joint_log_proba"):  # tests/checks has the others
        if hasattr(here, method):
            found = getattr(there, method)(to(X))
            assert type(found) is type(to(X))
            np.testing.assert_allclose(back(found), getattr(here, method)(X), rtol=1e-9, atol=1e-12)


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
