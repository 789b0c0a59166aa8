"""Samples of other array libraries: the same density as on NumPy, and predictions in the library of the samples."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from fewkern import (
    DensityClassifier,
    ForwardConstrainedDensity,
    ForwardDensity,
    KernelMixture,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
)
from fewkern.arrays.linalg import solve_or_least_squares
from fewkern.arrays.numerics import normal_cdf

X = np.random.default_rng(0).normal(size=(50, 2))
X[25:] += 3.0
W = np.random.default_rng(1).random(50)
DENSITIES = [
    ParzenDensity(),
    ForwardDensity(max_vectors=3),
    ForwardDensity(scale="whiten", max_vectors=3),
    ForwardConstrainedDensity(),
    ReducedSetDensity(bandwidth="silverman"),
    OrthogonalForwardDensity(),
]


def _mixtures(a):
    p = KernelMixture(a(X[:5]), a(np.full(5, 0.2)), a(np.linspace(0.5, 1, 5)), a(np.array([1.0, 2.0])), a(np.arange(5)))
    q = KernelMixture(a(X[5:9]), a(np.full(4, 0.25)), a(np.ones(4)), a(np.array([[1.0, 0.3], [0.0, 1.0]])))
    return p.log_density(a(X)), p.cdf(a(X)), q.log_density(a(X)), p(a(X)), p.like(a(X)).indices


def test_a_mixture_gives_the_same_numbers(foreign):
    to, back = foreign
    for found, expected in zip(_mixtures(to), _mixtures(np.asarray), strict=True):
        assert type(found) is type(to(X))
        np.testing.assert_allclose(back(found), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("density", DENSITIES, ids=lambda density: type(density).__name__)
def test_a_density_is_fitted_in_numpy_and_kept_in_the_library_of_the_samples(density, foreign):
    to, back = foreign
    here, there = clone(density).fit(X, sample_weight=W), clone(density).fit(to(X), sample_weight=to(W))
    for name in ("vectors_", "weights_", "bandwidths_", *(["indices_"] if here.indices_ is not None else [])):
        assert type(getattr(there, name)) is type(to(X))
        np.testing.assert_array_equal(back(getattr(there, name)), getattr(here, name))
    for found in (there.score_samples(to(X)), there.sample(2, random_state=0)):
        assert type(found) is type(to(X))
    np.testing.assert_allclose(back(there.score_samples(to(X))), here.score_samples(X), rtol=1e-9)
    assert isinstance(there.score_samples(X), np.ndarray)


def test_a_classifier_is_fitted_in_numpy_and_kept_in_the_library_of_the_samples(foreign):
    to, back = foreign
    y, base = np.arange(50) // 25, ParzenDensity(bandwidth=0.5)
    here = DensityClassifier(estimator=base).fit(X, y)
    there = DensityClassifier(estimator=base).fit(to(X), to(y))
    for found in (there.priors_, there.expansion_.vectors, there.densities_[0].vectors_, there.predict(to(X))):
        assert type(found) is type(to(X))
    for method in (
        "predict_proba",
        "predict_log_proba",
        "predict_set",
        "predict_joint_log_proba",
        "decision_function",
        "predict",
    ):
        for model in (there, here):  # one that was fitted to NumPy arrays is used elsewhere
            found = getattr(model, method)(to(X))
            assert method == "predict" or type(found) is type(to(X))
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
