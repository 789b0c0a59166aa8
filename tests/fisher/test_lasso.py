"""The lasso and the group lasso by active sets: optimality conditions, duality gap, and how they end."""

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.fisher import lasso as fisher_lasso
from fewkern.fisher.lasso import duality_gap
from fewkern.fisher.problem import ActiveSet, penalized_problem
from fewkern.kernels import Gaussian
from tests.fisher.helpers import lasso

TARGETS = pytest.mark.parametrize("targets", [1, 3])


def problem(n=30, m=8, targets=3, seed=0, spread=1.0):
    """Columns whose lengths differ by a factor of ``spread``."""
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, m)) * np.geomspace(1, spread, m)
    Y = K @ rng.normal(size=(m, targets)) + rng.normal(size=(n, targets))
    return penalized_problem(K, Y)


def dense(fit, found):
    W = np.zeros(found.correlations.shape)
    W[fit.active.S] = fit.active.W
    return W


def value_of(found, W, lam):
    return 0.5 * np.sum((found.target - found.columns @ W) ** 2) + lam * np.linalg.norm(W, axis=1).sum()


def largest(found):
    return np.linalg.norm(found.correlations, axis=1).max()


@TARGETS
@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_optimality_conditions(targets, spread, share):
    """Correlations with the residual are ``lam`` times the direction of the row, and shorter where it is zero."""
    found = problem(n=60, m=40, targets=targets, spread=spread)
    lam = share * largest(found)
    fit = lasso(found, lam, tol=1e-11)
    W = dense(fit, found)
    correlations = found.columns.T @ (found.target - found.columns @ W)
    length, S = np.linalg.norm(W, axis=1), fit.active.S
    assert 0 < len(S) <= (39 if share > 0.01 else 40)
    np.testing.assert_allclose(correlations[S], lam * W[S] / length[S, None], atol=1e-3 * lam)
    assert np.linalg.norm(correlations, axis=1).max() <= lam * (1 + 1e-3)


@TARGETS
def test_the_objective_never_rises_and_the_ending_says_how_it_ended(targets):
    found = problem(n=50, m=40, targets=targets, seed=3)
    lam = 0.05 * largest(found)
    fit = lasso(found, lam)
    assert np.all(np.diff(fit.objectives) <= 1e-9 * fit.objectives[0])
    assert fit.ending.stop == Stop.CONVERGED
    assert fit.ending.tol == (1e-7 if targets == 1 else 1e-5)
    assert fit.ending.reached <= fit.ending.tol
    assert fit.ending.n_iter == len(fit.objectives)
    assert np.all(np.diff(fit.active.S) > 0)
    assert fit.objectives[-1] == pytest.approx(value_of(found, dense(fit, found), lam), rel=1e-9)
    exact = duality_gap(fit.active, fit.active.gradient(), fit.objectives[-1], lam)
    assert exact == pytest.approx(fit.ending.reached, abs=1e-9)


@TARGETS
def test_any_start_ends_at_the_solution(targets):
    """At the solution it is one round; with every sign turned, or with all columns, it is the same solution."""
    found = problem(n=50, m=20, targets=targets)
    lam = 0.1 * largest(found)
    fit = lasso(found, lam, tol=1e-11)
    assert lasso(found, lam, fit.active, tol=1e-9).ending.n_iter == 1
    rng = np.random.default_rng(1)
    everything = ActiveSet.of(found, np.arange(20), rng.normal(size=(20, targets)))
    for start in (fit.active.at(-fit.active.W), everything):
        again = lasso(found, lam, start, tol=1e-11)
        np.testing.assert_array_equal(again.active.S, fit.active.S)
        np.testing.assert_allclose(again.active.W, fit.active.W, atol=1e-4)


def test_the_group_lasso_needs_few_steps(monkeypatch):
    """On collinear columns: without its sweeps, or without its extrapolation, it takes 300 steps or more."""
    X = np.random.default_rng(0).standard_normal((80, 2))
    Y = np.column_stack([np.sin(X[:, 0] * (j + 1)) + X[:, 1] / (j + 1) for j in range(3)])
    found = penalized_problem(Gaussian(length_scale=0.6)(X, X), Y)
    monkeypatch.setattr(fisher_lasso, "MAX_ITERATIONS", 150)
    fit = lasso(found, 0.3 * largest(found), tol=1e-6)
    assert fit.ending.stop == Stop.CONVERGED
    assert fit.ending.reached <= 1e-6


@TARGETS
def test_nothing_is_kept_from_the_largest_correlation_on(targets):
    found = problem(targets=targets)
    assert lasso(found, 1.001 * largest(found)).active.size == 0
    assert lasso(found, 0.99 * largest(found)).active.size == 1
    everything = ActiveSet.of(found, np.arange(8), np.ones((8, targets)))
    assert lasso(found, 10 * largest(found), everything).active.size == 0
