"""kFDA_q: the fast forms against the textbook iteration, coordinate descent and scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, MultiTaskLasso

from fewkern.core.path import Stop
from fewkern.datasets import make_banana, make_ringnorm, make_waveform
from fewkern.fisher.lq import max_penalty
from fewkern.fisher.problem import penalized_problem
from fewkern.kernels import Gaussian
from tests.fisher import helpers
from tests.fisher.helpers import dense, problem_of
from tests.oracles import kfd


def ringnorm(n=200, seed=1):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.5).astype(int)
    Z = rng.standard_normal((n, 20))
    X = np.where(y[:, None] == 1, 2 * Z, Z + 2 / np.sqrt(20))
    return X, y


def problem(n=80, width=1.5, seed=0, targets=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    K = Gaussian(length_scale=width)(X, X)
    if targets == 1:
        y = (X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + 0.4 * rng.standard_normal(n) > 0.2).astype(int)
        return K, kfd.targets(y)[:, None]
    Y = np.column_stack([np.sin(X[:, 0] * (j + 1)) + X[:, 1] / (j + 1) for j in range(targets)])
    return K, Y - Y.mean(axis=0)


@pytest.mark.parametrize(
    ("q", "start", "count", "bias"),
    [(1.0, "auto", 21, 3.301480), (0.5, "lasso", 6, 3.411568), (0.5, "ridge", 6, 3.425602)],
)
def test_exact_outcomes_of_the_reference(q, start, count, bias):
    X, y = ringnorm()
    # exp(-|x - y|^2 / 50) has width 5
    fit = helpers.fit(
        Gaussian(length_scale=5.0)(X, X),
        kfd.targets(y)[:, None],
        penalty=0.01,
        q=q,
        penalize_bias=True,
        start=start,
        tol=1e-12,
    )
    assert len(fit.support) == count
    assert fit.offset[0] == pytest.approx(bias, abs=6e-7)


@pytest.mark.parametrize("penalize_bias", [True, False])
@pytest.mark.parametrize("rho", [0.3, 0.03, 0.003])
def test_q1_is_the_lasso(rho, penalize_bias):
    K, Y = problem(n=30, width=0.3)
    fit = helpers.fit(K, Y, penalty=rho, q=1, penalize_bias=penalize_bias)
    assert fit.ending.stop == Stop.CONVERGED
    assert fit.ending.reached <= 1e-7
    oracle = kfd.coordinate_descent(K, Y, rho, penalize_bias=penalize_bias)
    ours = kfd.objective(K, Y, dense(fit, K.shape[1]), rho, 1, penalize_bias)
    theirs = kfd.objective(K, Y, oracle, rho, 1, penalize_bias)
    assert fit.objective == pytest.approx(ours, rel=1e-10)
    assert ours <= theirs * (1 + 1e-9)
    # collinear columns: the function is determined better than its coefficients
    np.testing.assert_allclose(
        kfd.augmented(K) @ dense(fit, K.shape[1]), kfd.augmented(K) @ oracle, atol=1e-4 * np.abs(Y).max()
    )


def test_q1_is_scikit_learns_lasso():
    K, Y = problem(n=40, width=0.3)
    A = kfd.augmented(K)
    sk = Lasso(alpha=0.02, fit_intercept=False, tol=1e-12, max_iter=200_000).fit(A, Y[:, 0])
    fit = helpers.fit(K, Y, penalty=0.02, q=1, penalize_bias=True)
    np.testing.assert_allclose(dense(fit, 40)[:, 0], sk.coef_, atol=1e-5)


def test_q1_several_targets_is_the_group_lasso():
    K, Y = problem(n=60, targets=3)
    fit = helpers.fit(K, Y, penalty=0.01, q=1)
    sk = MultiTaskLasso(alpha=0.01, tol=1e-10, max_iter=100_000).fit(K, Y)
    theirs = np.vstack([sk.intercept_, sk.coef_.T])
    best = kfd.objective(K, Y, theirs, 0.01, 1, penalize_bias=False)
    assert fit.objective == pytest.approx(kfd.objective(K, Y, dense(fit, 60), 0.01, 1, False), rel=1e-9)
    assert fit.objective <= best * (1 + 2e-5)
    assert len(fit.support) < 60


@pytest.mark.parametrize("penalize_bias", [True, False])
@pytest.mark.parametrize("q", [0.3, 0.5, 0.8, 1.5, 2.0])
def test_live_components_follow_the_plain_iteration(q, penalize_bias):
    K, Y = problem(n=60)
    rho = 0.02
    oracle, values = kfd.iteration_8(K, Y, rho, q, penalize_bias=penalize_bias, tol=1e-12)
    fit = helpers.fit(K, Y, penalty=rho, q=q, penalize_bias=penalize_bias, start="ridge", tol=1e-12)
    assert fit.objective == pytest.approx(values[-1], rel=1e-6)
    np.testing.assert_allclose(dense(fit, 60), oracle, atol=1e-4 * np.abs(oracle).max())


def test_q2_is_one_ridge_solve():
    K, Y = problem()
    A = kfd.augmented(K)
    exact = np.linalg.solve(A.T @ A + 2 * 0.05 * 80 * np.eye(81), A.T @ Y)
    fit = helpers.fit(K, Y, penalty=0.05, q=2, penalize_bias=True)
    assert fit.ending.n_iter == 1
    np.testing.assert_allclose(dense(fit, 80), exact, rtol=1e-8, atol=1e-10)


def test_small_side_equals_large_side():
    K, Y = problem(n=60)
    wide = np.hstack([K, 0.5 * K**2])[:50]
    fit = helpers.fit(wide, Y[:50], penalty=0.02, q=0.5, start="ridge", tol=1e-12)
    full = helpers.path(problem_of(wide, Y[:50], True), [0.02], q=0.5, start="ridge", tol=1e-12)[0]
    np.testing.assert_array_equal(fit.support, full.support)
    np.testing.assert_allclose(fit.coef, full.coef, rtol=1e-6)
    oracle, _ = kfd.iteration_8(wide, Y[:50], 0.02, 0.5, penalize_bias=False, tol=1e-12)
    np.testing.assert_allclose(dense(fit, 120), oracle, atol=1e-4 * np.abs(oracle).max())


def test_objective_below_plain_iteration_at_the_papers_stop():
    X, y = ringnorm(300, seed=4)
    K, Y = Gaussian(length_scale=5.0)(X, X), kfd.targets(y)[:, None]
    # q = .5 has many minima: only from the same start are the two comparable
    for q, start in ((1.0, "auto"), (0.5, "ridge")):
        _, values = kfd.iteration_8(K, Y, 0.01, q, tol=1e-5)
        assert helpers.fit(K, Y, penalty=0.01, q=q, penalize_bias=True, start=start).objective <= values[-1] * (
            1 + 1e-9
        )


def hard_problems(seeds, n=100):
    """Kernel columns and targets of overlapping classes at three widths and penalties."""
    for make in (make_banana, make_ringnorm, make_waveform):
        for seed in range(seeds):
            X, y = make(n, random_state=seed)
            Y = kfd.targets((y > 0).astype(int))[:, None]
            for factor in (0.35, 0.85, 2.0):
                K = Gaussian(length_scale=factor * Gaussian().resolve(X).length_scale)(X, X)
                for penalty in (0.1, 0.01, 0.001):
                    yield K, Y, penalty


def test_no_saddle_is_called_a_minimum():
    left = 0
    for K, Y, penalty in hard_problems(seeds=6):
        for start in ("lasso", "ridge"):
            fit = helpers.fit(K, Y, penalty, q=0.5, start=start)
            assert fit.ending.stop == Stop.CONVERGED
            A = K[:, fit.support] - K[:, fit.support].mean(axis=0)
            curvature = kfd.curvature(A, fit.coef[:, 0], penalty * len(K), 0.5)
            assert len(curvature) == 0 or curvature[0] > -1e-6 * curvature[-1]
            values = np.array(fit.objectives)
            assert np.all(np.diff(values) <= 1e-9 * values[0])
            left += fit.size > 1
    assert left > 200


def test_a_saddle_is_left():
    """Two columns that do the same job: sharing it is a saddle, at which (8) rests; one of them alone is a minimum."""
    n = 40
    t = np.linspace(-1, 1, n)
    K = np.column_stack([t + 0.1 * t**2, t - 0.1 * t**2])
    Y = 4 * t[:, None]
    fit = helpers.fit(K, Y, 0.1, q=0.5, start=np.ones((2, 1)))
    resting, _ = kfd.iteration_8(K, Y, 0.1, 0.5, penalize_bias=False, start=np.ones((3, 1)), tol=1e-9)
    assert np.all(np.abs(resting[1:]) > 1)
    assert fit.size == 1
    assert fit.objective < 0.95 * kfd.objective(K, Y, resting, 0.1, 0.5, penalize_bias=False)


def test_three_starts_are_never_above_the_plain_iteration():
    lower = 0
    for K, Y, penalty in hard_problems(seeds=2):
        best = helpers.fit(K, Y, penalty, q=0.5, start="best")
        _, values = kfd.iteration_8(K, Y, penalty, 0.5, penalize_bias=False, tol=1e-5)
        assert best.objective <= values[-1] * (1 + 1e-9)
        assert best.objective <= helpers.fit(K, Y, penalty, q=0.5, start="ridge").objective * (1 + 1e-9)
        exact = kfd.objective(K, Y, dense(best, K.shape[1]), penalty, 0.5, False)
        assert best.objective == pytest.approx(exact, rel=1e-9)
        lower += best.objective < values[-1] * (1 - 1e-3)
    assert lower > 5
    alone = helpers.fit(K, Y, penalty=0.003, q=0.5, start="best")
    path = helpers.path(penalized_problem(K, Y), [0.01, 0.003], q=0.5, start="best")
    assert path[1].objective == pytest.approx(alone.objective, rel=1e-6)


def test_path_is_exact_at_every_penalty():
    K, Y = problem(seed=5)
    penalties = [0.3, 0.1, 0.01, 0.001]
    for q in (1.0, 0.5):
        for fit, rho in zip(helpers.path(penalized_problem(K, Y), penalties, q=q), penalties):
            alone = helpers.fit(K, Y, penalty=rho, q=q)
            assert fit.setting == rho
            assert fit.objective == pytest.approx(alone.objective, rel=2e-3 if q < 1 else 1e-7)


def test_gram_matrix_given_or_not_is_the_same():
    K, Y = problem(n=90)
    for q in (1.0, 0.5):
        a, b = (helpers.path(problem_of(K[:, :40], Y, gram), [0.01], q=q)[0] for gram in (True, False))
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-5)


def test_max_penalty_is_where_the_first_sample_appears():
    K, Y = problem()
    top = max_penalty(penalized_problem(K, Y))
    assert helpers.fit(K, Y, penalty=1.0001 * top, q=1).size == 0
    assert len(helpers.fit(K, Y, penalty=0.999 * top, q=1).support) >= 1


def test_zero_solution_predicts_the_mean():
    K, Y = problem()
    Y = Y + 3.0
    fit = helpers.fit(K, Y, penalty=1e3, q=0.5)
    assert fit.ending.stop == Stop.CONVERGED
    assert fit.support.shape == (0,)
    assert fit.offset[0] == pytest.approx(Y.mean())
    assert fit.objective == pytest.approx(0.5 * np.sum((Y - Y.mean()) ** 2))


def test_newton_steps_end_the_iteration_early():
    """(8) converges linearly, here in 171 steps; the minimum is the same."""
    K, Y = problem(n=60, width=0.4)
    _, values = kfd.iteration_8(K, Y, 0.05, 0.5, penalize_bias=False, tol=1e-12)
    fit = helpers.fit(K, Y, penalty=0.05, q=0.5, start="ridge", tol=1e-12)
    assert fit.ending.n_iter < len(values) / 3
    assert fit.objective == pytest.approx(values[-1], rel=1e-9)


@pytest.mark.parametrize(("targets", "same", "other"), [(1, "lasso", "ridge"), (3, "ridge", "lasso")])
def test_what_auto_starts_from(targets, same, other):
    K, Y = problem(targets=targets)
    first = {start: helpers.fit(K, Y, 0.01, start=start, max_iter=1).objectives for start in ("auto", same, other)}
    assert first["auto"] == first[same] != first[other]
    # above one there is one minimum, and the ridge solution is the start
    above = [helpers.fit(K, Y, 0.01, q=1.5, start=start, max_iter=1).objectives for start in ("lasso", "ridge")]
    assert above[0] == above[1]


@pytest.mark.parametrize("tol", [None, 1e-4, 1e-12, 0.0])
def test_the_tolerance_is_that_asked_for_but_not_below_rounding(tol):
    K, Y = problem(n=30)
    fit = helpers.fit(K, Y, 0.05, q=1.5, tol=tol)
    assert fit.ending.stop == Stop.CONVERGED
    assert fit.ending.tol == (1e-8 if tol is None else max(tol, 4 * np.finfo(float).eps))
    values = np.array(fit.objectives)
    changes = -np.diff(values) / values[:-1]
    assert fit.ending.n_iter == len(values)
    assert fit.ending.reached == pytest.approx(changes[-1], abs=1e-18)
    assert changes[-1] <= fit.ending.tol
    assert np.all(changes[:-1] > fit.ending.tol)


def test_zero_start_is_refused():
    K, Y = problem(n=20)
    start = np.ones((20, 1))
    start[3] = 0.0
    with pytest.raises(ValueError, match=r"start must have shape \(20, 1\) and no zero row.*1 zero rows"):
        helpers.fit(K, Y, penalty=0.1, q=0.5, start=start)
    given = helpers.fit(K, Y, penalty=0.1, q=0.5, start=np.ones((20, 1)))
    assert given.ending.stop == Stop.CONVERGED


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"penalty": 0.0}, "penalty must be positive, got 0.0"), ({"q": 2.5}, r"q must lie in \(0, 2\], got 2.5")],
)
def test_bad_settings_are_refused(changes, message):
    K, Y = problem(n=20)
    with pytest.raises(ValueError, match=message):
        helpers.fit(K, Y, **{"penalty": 0.1, "q": 0.5, **changes})


def test_iteration_limit_is_reported():
    K, Y = problem()
    ending = helpers.fit(K, Y, penalty=0.001, q=0.5, start="ridge", max_iter=3).ending
    assert (ending.stop, ending.n_iter, ending.tol) == (Stop.MAX_ITER, 3, 1e-8)
    assert ending.reached > ending.tol
    for targets in (1, 3):
        K, Y = problem(targets=targets)
        ending = helpers.lasso(penalized_problem(K, Y), 0.001 * 80, max_iter=1).ending
        assert (ending.stop, ending.n_iter, ending.criterion) == (Stop.MAX_ITER, 1, "relative duality gap")


def test_row_lasso_that_does_not_settle_on_its_support_says_so():
    K, Y = problem(targets=3)
    few = penalized_problem(K[:, :5], Y)
    # five columns join in one round: there is nothing to add, and two steps on them are not enough
    assert helpers.lasso(few, 1e-6, tol=1e-12, max_iter=2).ending.stop == Stop.MAX_ITER
    assert helpers.lasso(few, 1e-6, tol=1e-12).ending.stop in (Stop.CONVERGED, Stop.PRECISION)


def test_float32_keeps_its_dtype_and_its_support():
    K, Y = problem(width=0.5)
    for q in (1.0, 0.5):
        wide, narrow = (helpers.fit(K.astype(t), Y.astype(t), penalty=0.05, q=q) for t in ("float64", "float32"))
        assert narrow.coef.dtype == np.float32
        np.testing.assert_array_equal(wide.support, narrow.support)
        np.testing.assert_allclose(wide.coef, narrow.coef, rtol=1e-2)
