"""The density algorithms give the same numbers on NumPy, array-api-strict and torch."""

import numpy as np
import pytest

from fewkern.backend.namespace import to_numpy
from fewkern.density import bandwidth, constrained, integrated, integrated_cv, likelihood, regression, simplex
from fewkern.density.mixture import KernelMixture

X = np.random.default_rng(0).normal(size=(50, 2))
X[25:] += 3.0
W = np.random.default_rng(1).random(50)
W = W / W.sum()


@pytest.fixture(params=["array_api_strict", "torch"])
def convert(request):
    xp = pytest.importorskip(request.param)
    return xp.asarray


def _compare(results, expected, tolerance=1e-9):
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(to_numpy(found), wanted, rtol=tolerance, atol=1e-12)


def _bandwidth(a):
    found = bandwidth.least_squares_width(a(X), a(W))
    other = bandwidth.likelihood_width(a(X), a(W))
    return found.width, found.scores, other.width, other.scores


def _simplex(a):
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    B, v = a(np.exp(-D / 4)), a(np.exp(-D / 2) @ W)
    return simplex.active_set(B, v).weights, simplex.mnqp(B, v, iterations=50).weights


def _constrained(a):
    target = constrained.parzen_target(a(X), a(X), a(W), 0.4)
    fit = constrained.forward_constrained(a(X), a(W), target, 0.4, a(np.arange(50)), gamma=2.0)
    again = constrained.refit_jointly(a(X), a(W), target, 0.4, fit)
    return fit.indices, fit.widths, fit.weights, again.widths, again.weights


def _integrated(a):
    fit = integrated.forward_integrated(a(X), a(W), 0.4, a(np.arange(50)), max_vectors=5)
    folds = a(np.arange(50) % 2)
    cv = integrated_cv.cross_validate(a(X), a(W), 0.4, a(np.arange(50)), folds, gammas=(1.5,), max_vectors=2)
    return fit.indices, fit.widths, fit.weights, cv.scores[1.5]


def _likelihood(a):
    fit = likelihood.forward_likelihood(a(X), a(W), 0.4, a(np.arange(50)), max_vectors=3, iterations=20)
    return fit.mixture.centres, fit.mixture.widths, fit.mixture.weights


def _forward(a):
    target = constrained.parzen_target(a(X), a(X), a(W), 0.4)
    skd = regression.sparse_kernel_density(a(X), a(W), target, 0.4, a(np.arange(50)), 0.9, passes=2)
    target = regression.distribution_target(a(X), a(X), a(W))
    sdc = regression.sparse_density_construction(a(X), a(W), target, a(np.arange(50)), 0.9, passes=2)
    return skd.indices, skd.weights, sdc.indices, sdc.weights


def _mixture(a):
    p = KernelMixture(a(X[:5]), a(np.full(5, 0.2)), a(np.linspace(0.5, 1, 5)), a(np.array([1.0, 2.0])), a(np.arange(5)))
    q = KernelMixture(a(X[5:9]), a(np.full(4, 0.25)), a(np.ones(4)), a(np.array([[1.0, 0.3], [0.0, 1.0]])))
    return p.log_density(a(X)), p.cdf(a(X)), q.log_density(a(X)), p.l2_distance(q), p(a(X)), p.like(a(X)).indices


@pytest.mark.parametrize(
    "algorithm", [_bandwidth, _simplex, _constrained, _integrated, _likelihood, _forward, _mixture]
)
def test_same_numbers(convert, algorithm):
    _compare(algorithm(convert), [np.asarray(x) for x in algorithm(np.asarray)], 1e-7)
