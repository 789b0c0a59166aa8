"""kFDA_q: the fast forms against the textbook iteration, coordinate descent and scikit-learn."""

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.datasets import make_banana, make_ringnorm, make_waveform
from fewkern.fisher.lq import lq_path
from fewkern.fisher.problem import penalized_problem
from fewkern.kernels import Gaussian
from tests.fisher import helpers
from tests.fisher.helpers import dense
from tests.oracles import kfd


def problem(n=80, width=1.5, seed=0, targets=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    K = Gaussian(length_scale=width)(X, X)
    if targets == 1:
        y = (X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + 0.4 * rng.standard_normal(n) > 0.2).astype(int)
        return K, kfd.targets(y)[:, None]
    Y = np.column_stack([np.sin(X[:, 0] * (j + 1)) + X[:, 1] / (j + 1) for j in range(targets)])
    return K, Y - Y.mean(axis=0)


@pytest.mark.parametrize("q", [0.3, 0.5, 0.8, 1.5, 2.0])
def test_live_components_follow_the_plain_iteration(q):
    K, Y = problem(n=60)
    rho = 0.02
    oracle, values = kfd.iteration_8(K, Y, rho, q, penalize_bias=False, tol=1e-12)
    fit = helpers.fit(K, Y, penalty=rho, q=q, start="ridge", tol=1e-12)
    assert fit.objective == pytest.approx(values[-1], rel=1e-6)
    np.testing.assert_allclose(dense(fit, 60), oracle, atol=1e-4 * np.abs(oracle).max())
    assert q < 2 or fit.ending.n_iter == 1


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
        for start in (None, "ridge"):
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


def test_path_is_exact_at_every_penalty():
    K, Y = problem(seed=5)
    penalties = [0.3, 0.1, 0.01, 0.001]
    for q in (1.0, 0.5):
        for fit, rho in zip(lq_path(penalized_problem(K, Y), penalties, q), penalties):
            alone = helpers.fit(K, Y, penalty=rho, q=q)
            assert fit.setting == rho
            assert fit.objective == pytest.approx(alone.objective, rel=2e-3 if q < 1 else 1e-7)


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
