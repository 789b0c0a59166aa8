"""The penalized problem and its active set against the same things written out, and the proof of a solution."""

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.fisher.lasso import duality_gap
from fewkern.fisher.problem import ActiveSet, penalized_problem, ridge_rows
from tests.fisher.helpers import lasso, problem_of
from tests.fisher.test_lq import problem
from tests.oracles import kfd


def dense_gap(A, Y, W, lam):
    """Objective less the dual value of the scaled residual, over half the square of the target."""
    residual = Y - A @ W
    pull = np.linalg.norm(A.T @ residual, axis=1).max()
    dual_point = residual * min(1.0, lam / pull)
    value = 0.5 * np.sum(residual**2) + lam * np.linalg.norm(W, axis=1).sum()
    dual = 0.5 * np.sum(Y**2) - 0.5 * np.sum((Y - dual_point) ** 2)
    return (value - dual) / (0.5 * np.sum(Y**2))


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("gram", [True, False])
def test_the_gap_is_objective_less_dual_and_bounds_the_distance_from_the_minimum(targets, gram, rng):
    K, Y = problem(n=30, targets=targets)
    made = problem_of(K[:, :8], Y, gram)
    lam = 0.02 * 30
    best = lasso(made, lam, tol=1e-8)
    lowest = best.active.objective(lam, 1.0)
    for W in (best.active, ActiveSet.of(made, np.arange(8), 0.1 * rng.standard_normal((8, targets)))):
        value = W.objective(lam, 1.0)
        gap = duality_gap(W, W.gradient(), value, lam)
        full = np.zeros((8, targets))
        full[W.S] = W.W
        assert gap == pytest.approx(dense_gap(made.columns, made.target, full, lam), abs=1e-12)
        assert value - lowest <= (gap + 1e-8) * made.square / 2
    assert best.ending.reached <= 1e-8
    assert gap > 1e-3


def test_without_a_component_the_gap_is_that_of_zero():
    K, Y = problem(n=30)
    made = penalized_problem(K, Y)
    none = ActiveSet.empty(made)
    top = float(np.abs(made.correlations).max())
    assert (none.size, none.objective(1.0, 1.0)) == (0, made.square / 2)
    # nothing pulls harder than the penalty: zero is the solution, and the gap says so
    assert duality_gap(none, none.gradient(), made.square / 2, 1.01 * top) == pytest.approx(0, abs=1e-12)
    assert duality_gap(none, none.gradient(), made.square / 2, 0.5 * top) > 0.05


@pytest.mark.parametrize("targets", [1, 3])
def test_more_than_rounding_allows_ends_with_the_precision(targets):
    K, Y = problem(targets=targets, width=0.5)
    ending = lasso(penalized_problem(K, Y), 1e-6, tol=0.0).ending
    assert (ending.stop, ending.criterion) == (Stop.PRECISION, "relative duality gap")
    assert 0 < ending.tol < 1e-12
    assert ending.reached > ending.tol


def test_weights_are_repetitions_and_their_unit_does_not_matter():
    K, Y = problem(n=20)
    w = np.where(np.arange(20) < 6, 2.0, 1.0)
    rows = np.r_[np.arange(20), np.arange(6)]
    weighted = penalized_problem(K, Y, w)
    repeated = penalized_problem(K[rows], Y[rows])
    # the weights add up to n, so everything is 20/26 of what the repeated rows give
    np.testing.assert_allclose(weighted.correlations, repeated.correlations * 20 / 26, atol=1e-10)
    assert weighted.square == pytest.approx(repeated.square * 20 / 26)
    np.testing.assert_allclose(weighted.column_means, repeated.column_means, atol=1e-12)
    np.testing.assert_allclose(weighted.target_means, repeated.target_means, atol=1e-12)
    again = penalized_problem(K, Y, 7 * w)
    np.testing.assert_allclose(again.columns, weighted.columns)
    equal = penalized_problem(K, Y, np.full(20, 3.0))
    np.testing.assert_array_equal(equal.columns, penalized_problem(K, Y).columns)


@pytest.mark.parametrize("columns", [5, 40])
def test_the_ridge_start_is_the_same_from_both_sides(columns):
    K, Y = problem(n=20)
    wide = np.hstack([K, K**2])[:, :columns]
    made = penalized_problem(wide, Y)
    A = made.columns
    exact = np.linalg.solve(A.T @ A + 0.3 * np.eye(columns), A.T @ made.target)
    np.testing.assert_allclose(ridge_rows(made, 0.3), exact, atol=1e-9)


@pytest.mark.parametrize("gram", [True, False])
def test_an_active_set_is_the_problem_on_some_columns(gram, rng):
    K, Y = problem(n=30, targets=2)
    made = problem_of(K[:, :10], Y, gram)
    S, W = np.array([7, 2, 5]), rng.standard_normal((3, 2))
    active = ActiveSet.of(made, S, W)
    A = made.columns[:, S]
    residual = made.target - A @ W
    np.testing.assert_allclose(active.G, A.T @ A, atol=1e-12)
    np.testing.assert_allclose(active.norms, np.sum(A**2, axis=0))
    np.testing.assert_allclose(active.gradient(), made.columns.T @ residual, atol=1e-10)
    for q in (0.5, 0.7, 1.0, 2.0):
        want = 0.5 * np.sum(residual**2) + 0.3 * np.sum(np.linalg.norm(W, axis=1) ** q)
        assert active.objective(0.3, q) == pytest.approx(want, rel=1e-12)
    joined = ActiveSet.of(made, S[:1], W[:1]).join(S[1:], W[1:])
    np.testing.assert_allclose(joined.G, active.G, atol=1e-12)
    np.testing.assert_allclose(joined.B, active.B)
    np.testing.assert_array_equal(active.where(np.array([True, False, True])).S, [7, 5])
    # ascending, and without what is zero
    np.testing.assert_array_equal(active.at(W * [[1], [0], [1]]).sorted().S, [5, 7])


def test_more_components_than_samples_are_kept_as_columns_until_they_are_few(rng):
    K, Y = problem(n=10)
    wide, W = np.hstack([K, K**2]), rng.standard_normal((20, 1))
    many, same = (ActiveSet.of(problem_of(wide, Y, gram), np.arange(20), W) for gram in (False, True))
    assert many.G is None
    assert many.objective(0.1, 0.5) == pytest.approx(same.objective(0.1, 0.5), rel=1e-12)
    np.testing.assert_allclose(many.norms, same.norms)
    eleven, ten = many.take(np.arange(11)), many.take(np.arange(10))
    assert eleven.G is None
    np.testing.assert_allclose(ten.G, same.G[:10, :10], atol=1e-12)


def test_the_bias_is_what_the_means_leave():
    K, Y = problem(n=20)
    free = penalized_problem(K, Y)
    machine = free.discriminant(ActiveSet.of(free, np.array([4]), np.array([[3.0]])))
    np.testing.assert_allclose(machine.offset, Y.mean() - 3 * K[:, 4].mean())
    assert kfd.objective(K, Y, np.r_[machine.offset, np.eye(20)[4] * 3], 0.1, 1, False) == pytest.approx(
        ActiveSet.of(free, np.array([4]), np.array([[3.0]])).objective(2.0, 1.0)
    )
