"""Orthogonal forward regression, SKD and SDC."""

import numpy as np
import pytest

from experiments.fcr_updates import mnqp
from fewkern.core.path import Stop
from fewkern.density import orthogonal as regression
from fewkern.density.problem import DensityProblem
from fewkern.density.simplex import active_set
from tests.oracles import density as oracle


def _regression(n=40, c=12, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.random((n, c))
    return F, F[:, [2, 5, 7]] @ [1.0, 0.5, 0.3] + 0.05 * rng.normal(size=n)


def _data(n=70, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    X[n // 2 :] += 3.0
    return DensityProblem.of(X, np.ones(n), 0.4)


def test_score_equals_press_and_every_step_is_the_best():
    F, y = _regression()
    found = regression.orthogonal_forward(F, y, np.zeros(12), skip=1e-12)
    for k, step in enumerate(found.steps):
        before = list(found.columns[:k])
        scores = {j: oracle.press(F[:, [*before, j]], y) for j in range(12) if j not in before}
        assert step.loo == pytest.approx(scores[step.column], rel=1e-8)
        assert step.loo == pytest.approx(min(scores.values()), rel=1e-8)
    assert found.stop is Stop.ERROR


@pytest.mark.parametrize("penalties", [np.zeros(12), np.linspace(0.1, 1.0, 12)])
def test_weights_solve_the_orthogonal_ridge(penalties):
    F, y = _regression()
    found = regression.orthogonal_forward(F, y, penalties, skip=1e-12, limit=3)
    S = list(found.columns)
    # Gram-Schmidt by hand: F_S = W A, theta = W'y / (W'W + lambda), beta = A^-1 theta
    W, A = np.zeros((40, 3)), np.eye(3)
    for k, j in enumerate(S):
        W[:, k] = F[:, j]
        for i in range(k):
            A[i, k] = W[:, i] @ F[:, j] / (W[:, i] @ W[:, i])
            W[:, k] -= A[i, k] * W[:, i]
    theta = W.T @ y / ((W**2).sum(axis=0) + penalties[S])
    np.testing.assert_allclose(found.weights, np.linalg.solve(A, theta), rtol=1e-9)
    assert found.residual == pytest.approx(np.sum((y - F[:, S] @ found.weights) ** 2), rel=1e-9)
    assert {2, 5, 7} == set(S)


def test_nonnegative_refuses_columns_that_would_make_a_weight_negative():
    F, y = _regression()
    y = y - 0.6 * F[:, 3]
    free = regression.orthogonal_forward(F, y, np.zeros(12), skip=1e-12)
    kept = regression.orthogonal_forward(F, y, np.zeros(12), skip=1e-12, nonnegative=True)
    assert free.weights.min() < 0
    assert kept.weights.min() >= 0
    assert len(kept.columns) >= 1


def test_skip_passes_over_columns_that_are_nearly_in_the_model():
    rng = np.random.default_rng(0)
    base = rng.random((30, 2))
    F = np.column_stack([base, base[:, 0] + 1e-3 * rng.random(30)])
    y = base @ [1.0, 1.0] + 1e-3 * rng.normal(size=30)
    found = regression.orthogonal_forward(F, y, np.zeros(3), skip=1e-2)
    assert len(found.columns) == 2
    assert found.stop is Stop.EXHAUSTED


def test_distribution_target_equals_counting():
    problem = DensityProblem.of(_data(30).Z, np.random.default_rng(1).random(30))
    expected = oracle.distribution_function(problem.Z, problem.w)
    np.testing.assert_allclose(regression.distribution_target(problem.Z, problem), expected)


def test_sparse_kernel_density_solves_the_simplex_programme_on_its_columns():
    problem = _data()
    target = problem.parzen(problem.Z)
    found = regression.sparse_kernel_density(problem, target, 0.9)[0]
    F = oracle.normal_matrix(problem.Z, found.centers, 0.9) * (2 * np.pi * 0.4**2)
    expected = active_set(F.T @ F, F.T @ target).weights
    np.testing.assert_allclose(found.weights, expected / expected.sum(), atol=1e-6)
    assert len(found.rows) < 35
    assert found.weights.min() >= 1e-6
    slow = regression.sparse_kernel_density(problem, target, 0.9, solve=mnqp)[0]
    assert len(slow.rows) >= len(found.rows)
    assert set(found.rows.tolist()) <= set(slow.rows.tolist())


def test_columns_of_zeros_are_nothing_to_choose_from():
    _, y = _regression()
    found = regression.orthogonal_forward(np.zeros((40, 3)), y, np.zeros(3), skip=1e-12)
    assert (found.stop, len(found.columns)) == (Stop.PRECISION, 0)
    # one column that is taken leaves nothing of a column like it, which is another reason
    twice = np.ones((40, 2))
    found = regression.orthogonal_forward(twice, np.ones(40) + y - y.mean(), np.zeros(2), skip=1e-12)
    assert len(found.columns) == 1
    assert found.stop is not Stop.PRECISION
