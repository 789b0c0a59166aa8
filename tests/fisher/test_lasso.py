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


def columns(n=30, m=8, targets=3, seed=0, spread=1.0):
    """Centered columns, whose lengths differ by a factor of ``spread``, and targets."""
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, m)) * np.geomspace(1, spread, m)
    Y = K @ rng.normal(size=(m, targets)) + rng.normal(size=(n, targets))
    return K - K.mean(axis=0), Y - Y.mean(axis=0)


def collinear(width, targets=3):
    """Columns of a kernel."""
    X = np.random.default_rng(0).standard_normal((80, 2))
    Y = np.column_stack([np.sin(X[:, 0] * (j + 1)) + X[:, 1] / (j + 1) for j in range(targets)])
    return Gaussian(length_scale=width)(X, X), Y


def problem(**how):
    return penalized_problem(*columns(**how))


def dense(active):
    W = np.zeros(active.problem.correlations.shape)
    W[active.S] = active.W
    return W


def largest(found):
    return np.linalg.norm(found.correlations, axis=1).max()


@TARGETS
@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_optimality_conditions(targets, spread, share):
    """Correlations with the residual are ``lam`` times the direction of the row, and shorter where it is zero."""
    K, Y = columns(n=60, m=40, targets=targets, spread=spread)
    found = penalized_problem(K, Y)
    lam = share * largest(found)
    active = lasso(found, lam, tol=1e-11).active
    W, S = dense(active), active.S
    correlations = K.T @ (Y - K @ W)
    assert 0 < len(S) <= (39 if share > 0.01 else 40)
    np.testing.assert_allclose(
        correlations[S], lam * W[S] / np.linalg.norm(W[S], axis=1, keepdims=True), atol=1e-3 * lam
    )
    assert np.linalg.norm(correlations, axis=1).max() <= lam * (1 + 1e-3)


def dense_gap(K, Y, W, lam):
    """Objective less the dual value of the scaled residual, over half the square of the target."""
    residual = Y - K @ W
    dual_point = residual * min(1.0, lam / np.linalg.norm(K.T @ residual, axis=1).max())
    value = 0.5 * np.sum(residual**2) + lam * np.linalg.norm(W, axis=1).sum()
    dual = 0.5 * np.sum(Y**2) - 0.5 * np.sum((Y - dual_point) ** 2)
    return (value - dual) / (0.5 * np.sum(Y**2))


@TARGETS
def test_the_gap_is_objective_less_dual_and_bounds_the_distance_from_the_minimum(targets, rng):
    K, Y = columns(targets=targets)
    found = penalized_problem(K, Y)
    for lam in (0.1 * largest(found), 0.9 * largest(found)):
        best = lasso(found, lam, tol=1e-8)
        lowest = best.active.objective(lam, 1.0)
        anywhere = ActiveSet.of(found, np.arange(8), rng.standard_normal((8, targets)))
        for active in (best.active, anywhere, ActiveSet.empty(found)):
            value = active.objective(lam, 1.0)
            gap = duality_gap(active, active.gradient(), value, lam)
            assert gap == pytest.approx(dense_gap(K, Y, dense(active), lam), abs=1e-12)
            np.testing.assert_allclose(active.gradient(), K.T @ (Y - K @ dense(active)), atol=1e-10)
            assert value - lowest <= (gap + 1e-8) * found.square / 2
        assert best.ending.reached <= 1e-8
        assert gap > 1e-3


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
    assert fit.objectives[-1] == pytest.approx(fit.active.objective(lam, 1.0), rel=1e-9)


@TARGETS
def test_more_than_rounding_allows_ends_with_the_precision(targets):
    found = penalized_problem(*collinear(0.5, targets))
    ending = lasso(found, 1e-6, tol=0.0).ending
    assert (ending.stop, ending.criterion) == (Stop.PRECISION, "relative duality gap")
    assert 0 < ending.tol < 1e-12
    assert ending.reached > ending.tol


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
    K, Y = collinear(0.6)
    found = penalized_problem(K, Y)
    monkeypatch.setattr(fisher_lasso, "MAX_ITERATIONS", 150)
    fit = lasso(found, 0.3 * largest(found), tol=1e-6)
    assert fit.ending.stop == Stop.CONVERGED
    # and says so where it does not settle on its support: two steps on all five columns, which join in one round
    monkeypatch.setattr(fisher_lasso, "MAX_ITERATIONS", 2)
    few = penalized_problem(K[:, :5], Y)
    assert lasso(few, 1e-6, tol=1e-12).ending.stop == Stop.MAX_ITER


@TARGETS
def test_nothing_is_kept_from_the_largest_correlation_on(targets):
    found = problem(targets=targets)
    assert lasso(found, 1.001 * largest(found)).active.size == 0
    assert lasso(found, 0.99 * largest(found)).active.size == 1
    everything = ActiveSet.of(found, np.arange(8), np.ones((8, targets)))
    assert lasso(found, 10 * largest(found), everything).active.size == 0
