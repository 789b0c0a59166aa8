"""The parts of the lasso on rows: who joins, how rows move, and what the dual says."""

import numpy as np
import pytest

from fewkern.fisher import lasso
from fewkern.fisher.lasso import duality_gap, lasso_rows
from fewkern.fisher.problem import ActiveSet, penalized_problem


def problem(n=30, m=8, targets=3, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, m)) * np.geomspace(1, spread, m)
    Y = K @ rng.normal(size=(m, targets)) + rng.normal(size=(n, targets))
    return penalized_problem(K, Y)


def every(found, seed=1):
    return ActiveSet.of(found, np.arange(found.m), np.random.default_rng(seed).normal(size=found.correlations.shape))


def value_of(found, W, lam):
    return 0.5 * np.sum((found.target - found.columns @ W) ** 2) + lam * np.linalg.norm(W, axis=1).sum()


def test_the_hardest_pulled_join_first_and_not_too_many_at_once():
    rng = np.random.default_rng(0)
    pull = rng.normal(size=(200, 2))
    size = np.linalg.norm(pull, axis=1)
    S = np.array([3, 50])
    found = lasso._violators(S, pull, 1.0)
    outside = [int(i) for i in np.argsort(-size) if size[i] > 1.0 and i not in S]
    assert len(found) == min(lasso._BATCH, len(outside))
    assert found == outside[: len(found)]
    # a quarter of a large support
    S = np.arange(100)
    many = lasso._violators(S, np.full((400, 1), 2.0), 1.0)
    assert many == list(range(100, 100 + max(lasso._BATCH, 25)))
    # what is at the bound, up to rounding, is not beyond it
    assert lasso._violators(np.array([], dtype=int), np.full((3, 1), 1.0 + 1e-16), 1.0) == []
    assert lasso._violators(np.array([], dtype=int), np.full((3, 1), 1.0 + 1e-12), 1.0) == [0, 1, 2]


def test_newcomers_of_one_target_have_the_sign_of_their_pull():
    found = problem(targets=1)
    active = ActiveSet.empty(found)
    pull = active.gradient()
    joined = lasso._join(active, [2, 5], pull, 0.1)
    np.testing.assert_array_equal(np.sign(joined.W[:, 0]), np.sign(pull[[2, 5], 0]))
    assert 0 < np.abs(joined.W).max() <= 1e-30


def test_newcomers_of_several_targets_go_a_part_of_their_own_way():
    found = problem()
    pull = ActiveSet.empty(found).gradient()
    lam = 0.5 * np.linalg.norm(pull, axis=1).min()
    joined = lasso._join(ActiveSet.empty(found), [2, 5], pull, lam)
    for W, i in zip(joined.W, (2, 5)):
        k = found.columns[:, i]
        own = (1 - lam / np.linalg.norm(pull[i])) * pull[i] / (k @ k)
        np.testing.assert_allclose(W, own / 2)
    alone = lasso._join(ActiveSet.empty(found), [2], pull, lam)
    shares = np.linspace(0, 2, 2001)
    values = [value_of(found, np.eye(8)[:, 2:3] * share * alone.W, lam) for share in shares]
    assert shares[np.argmin(values)] == pytest.approx(1.0, abs=2e-3)


def test_a_sweep_sets_every_row_to_its_minimum():
    found = problem()
    lam = 60.0
    active = every(found)
    swept = lasso._sweep_rows(active, lam)
    W = active.W.copy()
    for i in range(8):
        rest = found.target - found.columns @ W + np.outer(found.columns[:, i], W[i])
        pull = found.columns[:, i] @ rest
        size = np.linalg.norm(pull)
        W[i] = 0 if size <= lam else pull * (1 - lam / size) / (found.columns[:, i] @ found.columns[:, i])
    kept = np.flatnonzero(np.linalg.norm(W, axis=1) > 0)
    assert 0 < len(kept) < 8
    np.testing.assert_array_equal(swept.S, kept)
    np.testing.assert_allclose(swept.W, W[kept], rtol=1e-9)


def test_extrapolation_finds_the_limit_of_a_linear_iteration():
    """Iterates ``x <- A x + b`` in two dimensions: three steps determine the limit."""
    A, b = np.array([[0.9, 0.1], [0.0, 0.7]]), np.array([[1.0], [2.0]])
    limit = np.linalg.solve(np.eye(2) - A, b)
    past = [np.zeros((2, 1))]
    for _ in range(4):
        past.append(A @ past[-1] + b)
    found = lasso._extrapolate(past)
    assert np.abs(found - limit).max() < 1e-2 * np.abs(past[-1] - limit).max()
    np.testing.assert_array_equal(lasso._extrapolate([b, b, b]), b)


def test_the_dual_of_some_columns_is_that_of_the_problem_on_them():
    found = problem()
    active = every(found)
    lam = 5.0
    pull = active.gradient()
    value = active.objective(lam, 1.0)
    R = found.target - found.columns @ active.W
    scale = min(1.0, lam / np.linalg.norm(pull, axis=1).max())
    dual = 0.5 * (found.square - np.sum((found.target - scale * R) ** 2))
    assert duality_gap(active, pull, value, lam) == pytest.approx((value - dual) / (found.square / 2), rel=1e-9)
    nothing = ActiveSet.empty(found)
    assert duality_gap(nothing, nothing.W, found.square / 2, lam) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_rows_are_settled_to_the_tolerance_in_few_turns(spread):
    found = problem(n=60, m=12, spread=spread)
    lam = 0.3 * np.linalg.norm(found.correlations, axis=1).max()
    for tol in (1e-3, 1e-8):
        active, settled = lasso._row_support(every(found), lam, tol, 1000)
        assert settled
        gap = duality_gap(active, active.B - active.G @ active.W, active.objective(lam, 1.0), lam)
        assert gap <= tol
    # with sweeps and extrapolation a few dozens of steps are enough
    assert lasso._row_support(every(found), lam, 1e-8, 60)[1]
    assert not lasso._row_support(every(found), lam, 1e-12, 2)[1]
    assert lasso._row_support(ActiveSet.empty(found), lam, 1e-8, 5)[1]


def test_all_rows_may_die():
    found = problem()
    lam = 10 * np.linalg.norm(found.correlations, axis=1).max()
    active, settled = lasso._row_support(every(found), lam, 1e-8, 1000)
    assert settled
    assert active.size == 0 or np.abs(active.W).max() < 1e-6
    assert lasso_rows(found, lam).active.size == 0


def test_components_that_would_change_their_sign_leave_one_after_the_other():
    """From signs that are all wrong the support is that of the exact solution on the rest."""
    found = problem(targets=1, m=5)
    lam = 3.0
    exact = lasso_rows(found, lam, tol=1e-12)
    start = ActiveSet.of(found, np.arange(5), np.zeros((5, 1)) + exact_dense(exact, 5))
    again = lasso._signed_support(start.where(np.abs(start.W[:, 0]) > 0), lam)
    np.testing.assert_allclose(again.W, exact.active.W, rtol=1e-6)
    wrong = ActiveSet.of(found, exact.active.S, -exact.active.W)
    left = lasso._signed_support(wrong, lam)
    assert left.size < wrong.size
    assert left.objective(lam, 1.0) <= wrong.objective(lam, 1.0)
    # newcomers with a sign that they would leave at once go first
    tiny = ActiveSet.of(found, exact.active.S[:1], -np.sign(exact.active.W[:1]) * lasso._TINY)
    assert lasso._signed_support(tiny, 1e-9).size == 0


def exact_dense(fit, m):
    W = np.zeros((m, 1))
    W[fit.active.S] = fit.active.W
    return W


@pytest.mark.parametrize("targets", [1, 3])
def test_the_objective_never_rises_and_the_ending_says_how_it_ended(targets):
    found = problem(n=50, m=40, targets=targets, seed=3)
    lam = 0.05 * np.linalg.norm(found.correlations, axis=1).max()
    fit = lasso_rows(found, lam)
    assert np.all(np.diff(fit.objectives) <= 1e-9 * fit.objectives[0])
    assert fit.ending.tol == (1e-7 if targets == 1 else 1e-5)
    assert fit.gap == fit.ending.reached <= fit.ending.tol
    assert fit.ending.n_iter == len(fit.objectives)
    assert np.all(np.diff(fit.active.S) > 0)
    assert fit.objectives[-1] == pytest.approx(value_of(found, dense(fit, 40, targets), lam), rel=1e-9)
    exact = duality_gap(fit.active, fit.active.gradient(), fit.objectives[-1], lam)
    assert exact == pytest.approx(fit.gap, abs=1e-9)
    # a start at the solution is one round
    assert lasso_rows(found, lam, fit.active).ending.n_iter <= 2


def dense(fit, m, targets):
    W = np.zeros((m, targets))
    W[fit.active.S] = fit.active.W
    return W
