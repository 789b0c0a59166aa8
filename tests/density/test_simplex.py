"""The simplex programme against enumeration of supports; RSDE by hand."""

import numpy as np
import pytest

from fewkern.arrays.sampling import plain_folds
from fewkern.core.path import Stop
from fewkern.density import simplex
from fewkern.density.problem import DensityProblem
from tests.oracles import density as oracle


def _problem(seed, n, positive=True):
    rng = np.random.default_rng(seed)
    A = rng.random((n, n + 2)) if positive else rng.normal(size=(n, n + 2))
    return A @ A.T / n, rng.random(n) * 2


def _density_problem(n=80, width=0.7, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    return np.exp(-D / (4 * width**2)) / 2, np.exp(-D / (2 * width**2)).mean(axis=1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("positive", [True, False])
def test_active_set_equals_enumeration(seed, positive):
    B, v = _problem(seed, 6, positive)
    expected, value = oracle.simplex_by_enumeration(B, v)
    found = simplex.active_set(B, v)
    np.testing.assert_allclose(found.weights, expected, atol=1e-8)
    assert found.objective == pytest.approx(value, abs=1e-12)
    assert found.stop is Stop.CONVERGED
    # optimality: nothing to win off the support, and no slope on it, in units of the problem
    for g in (found.weights, np.arange(1.0, 7) / 21):
        r = (B @ g - v) - g @ (B @ g - v)
        gap = max(-r.min(), (g * np.abs(r)).max()) / max(np.abs(v).max(), np.diag(B).max())
        assert simplex.optimality_gap(B, v, g) == pytest.approx(gap, abs=1e-15)


def test_twin_points_are_solved_by_least_squares():
    B, v = _density_problem(30)
    twins = np.r_[np.arange(30), np.arange(30)]
    found = simplex.active_set(B[np.ix_(twins, twins)], v[twins])
    assert found.objective == pytest.approx(simplex.active_set(B, v).objective, rel=1e-10)
    assert found.gap < 1e-8


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_the_unit_of_the_problem_does_not_matter(factor):
    B, v = _density_problem()
    one, other = simplex.active_set(B, v), simplex.active_set(factor * B, factor * v)
    np.testing.assert_allclose(other.weights, one.weights, atol=1e-9)
    assert other.objective == pytest.approx(factor * one.objective, rel=1e-9)
    assert other.stop == Stop.CONVERGED
    assert one.gap <= 1e-10
    assert 1 < np.count_nonzero(one.weights) < 40
    assert abs(one.weights.sum() - 1) < 1e-12


def _samples(n=50, seed=0):
    rng = np.random.default_rng(seed)
    w = 0.5 + rng.random(n)
    return DensityProblem.of(rng.normal(size=(n, 2)), w, 0.4)


def test_weights_solve_the_programme_of_the_definition():
    problem = _samples()
    X = problem.Z
    B = oracle.normal_matrix(X, X, np.sqrt(2) * 0.6)
    v = problem.w @ oracle.normal_matrix(X, X, 0.6)
    expected = simplex.active_set(B, v).weights
    found, solution = simplex.reduced_set(problem, 0.6)
    np.testing.assert_array_equal(found.rows, np.flatnonzero(expected))
    np.testing.assert_allclose(found.weights, expected[expected > 0], atol=1e-9)
    assert (solution.stop, solution.gap <= 1e-8) == (Stop.CONVERGED, True)


def test_cross_validated_error_by_hand():
    problem = _samples(30)
    X, w, folds = problem.Z, problem.w, np.arange(30) % 3
    path = simplex.reduced_set_bandwidths(problem, plain_folds(30, 3))
    assert path.axes["bandwidth"] == tuple(0.4 * factor for factor in simplex.CV_PARZEN_BANDWIDTHS)
    assert path.chosen == (int(np.argmin(path.error)),)
    width = 0.4 * simplex.CV_PARZEN_BANDWIDTHS[3]
    total = 0.0
    for fold in range(3):
        inside = folds != fold
        fit, _ = simplex.reduced_set(DensityProblem.of(X[inside], w[inside], 0.4), width)
        centres = X[inside][fit.rows]
        square = fit.weights @ oracle.normal_matrix(centres, centres, np.sqrt(2) * width) @ fit.weights
        held_out = oracle.normal_matrix(X[~inside], centres, width) @ fit.weights
        total += np.sum(w[~inside] * (square - 2 * held_out))
    assert path.error[3] == pytest.approx(total * 2 * np.pi * 0.4**2, rel=1e-9)
