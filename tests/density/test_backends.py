"""The density algorithms give the same numbers on NumPy, array-api-strict and torch."""

import numpy as np
import pytest

from fewkern import KernelMixture
from fewkern.arrays.folds import plain_folds
from fewkern.arrays.namespace import to_numpy
from fewkern.density import bandwidth, constrained, integrated, likelihood, simplex
from fewkern.density import orthogonal_regression as regression
from fewkern.density.problem import DensityProblem

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


def _problem(a):
    return DensityProblem.of(a(X), a(W), 0.4)


def _bandwidth(a):
    found = bandwidth.least_squares_width(_problem(a))
    other = bandwidth.likelihood_width(_problem(a))
    return found.width, found.scores, other.width, other.scores


def _simplex(a):
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    B, v = a(np.exp(-D / 4)), a(np.exp(-D / 2) @ W)
    return simplex.active_set(B, v).weights, simplex.mnqp(B, v, iterations=50).weights


def _constrained(a):
    problem = _problem(a)
    target = problem.parzen(problem.Z)
    fit = constrained.forward_constrained(problem, target, constrained.ConstrainedRules(2.0))
    again = constrained.refit_jointly(problem, target, fit).mixture
    return fit.mixture.rows, fit.mixture.widths, fit.mixture.weights, fit.trace.error, again.widths, again.weights


def _integrated(a):
    path = integrated.forward_integrated(_problem(a), max_vectors=5)
    at, trace = path.choose(0.5)
    fit = path.mixture(at)
    cv = integrated.choose_floor(_problem(a), plain_folds(50, 2), floors=(1.5,), max_vectors=2)
    return fit.rows, fit.widths, fit.weights, trace.error, trace.spread, cv.error


def _likelihood(a):
    fit = likelihood.forward_likelihood(_problem(a), max_vectors=3).models[-1]
    choice = likelihood.choose_size(_problem(a), plain_folds(50, 2), max_vectors=3)
    return fit.centers, fit.widths, fit.weights, choice.trace.error, choice.trace.spread


def _forward(a):
    problem, passes = _problem(a), regression.Passes(2)
    skd = regression.sparse_kernel_density(problem, problem.parzen(problem.Z), 0.9, passes).mixture
    target = regression.distribution_target(problem.Z, problem)
    sdc = regression.sparse_density_construction(problem, target, 0.9, passes).mixture
    return skd.rows, skd.weights, sdc.rows, sdc.weights


def _mixture(a):
    p = KernelMixture(a(X[:5]), a(np.full(5, 0.2)), a(np.linspace(0.5, 1, 5)), a(np.array([1.0, 2.0])), a(np.arange(5)))
    q = KernelMixture(a(X[5:9]), a(np.full(4, 0.25)), a(np.ones(4)), a(np.array([[1.0, 0.3], [0.0, 1.0]])))
    return p.log_density(a(X)), p.cdf(a(X)), q.log_density(a(X)), p.l2_distance(q), p(a(X)), p.like(a(X)).indices


@pytest.mark.parametrize(
    "algorithm", [_bandwidth, _simplex, _constrained, _integrated, _likelihood, _forward, _mixture]
)
def test_same_numbers(convert, algorithm):
    _compare(algorithm(convert), [np.asarray(x) for x in algorithm(np.asarray)], 1e-7)
