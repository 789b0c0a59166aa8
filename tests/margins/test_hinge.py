"""The interior point against libsvm and against its own optimality conditions."""

import numpy as np
import pytest
from sklearn.svm import SVC

from fewkern.margins import hinge
from fewkern.margins.hinge import HingeProblem, hinge_at_zero, minimize_hinge
from fewkern.margins.spaces import Rows
from tests.oracles.margins import svr_value


def problem(seed, n=60, q=5):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, q))
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    Z[:, 0] += 0.8 * y
    return Z, y, rng.uniform(0.2, 3.0, n)


def kkt(Z, s, h, C, solution, g=0.0, bias=True):
    """Largest violation of the optimality conditions, relative to the box where it is one of a multiplier."""
    a = solution.alpha
    margin = s * (Z @ solution.w + solution.bias) - h
    slack = np.where(margin > 0, a / C * margin, (1 - a / C) * -margin)
    balance = abs(np.sum(s * a)) / a.sum() if bias else 0.0
    return max(np.abs(slack).max(), np.abs(solution.w - g - Z.T @ (s * a)).max(), balance)


@pytest.mark.parametrize("seed", range(4))
def test_equals_libsvm(seed):
    Z, y, C = problem(seed)
    ours = minimize_hinge(HingeProblem(Rows(Z), y, np.ones(len(y)), C))
    svm = SVC(C=1.0, kernel="linear", tol=1e-10).fit(Z, y, sample_weight=C)
    np.testing.assert_allclose(ours.w, svm.coef_[0], atol=1e-5)
    w = svm.coef_[0]
    value = 0.5 * w @ w + np.sum(C * np.maximum(1 - y * (Z @ w + svm.intercept_[0]), 0))
    # libsvm stops a little above the optimum, never below
    assert value * (1 - 1e-6) < ours.primal < value * (1 + 1e-12)
    assert ours.stop == "converged"


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
def test_optimality_conditions_at_any_box(C):
    Z, y, box = problem(1)
    h = np.ones(len(y))
    solution = minimize_hinge(HingeProblem(Rows(Z), y, h, C * box))
    assert kkt(Z, y, h, C * box, solution) < (1e-8 if C < 1e6 else 1e-6)
    assert solution.primal - solution.dual < 1e-8 * solution.primal


def test_hard_margin():
    Z = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.3], [3.0, 1.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    solution = minimize_hinge(HingeProblem(Rows(Z), y, np.ones(4), np.full(4, 1e9)))
    # the two hulls are nearest along the first axis, two apart
    np.testing.assert_allclose(solution.w, [1.0, 0.0], atol=1e-7)
    assert solution.bias == pytest.approx(-1.0, abs=1e-6)


def test_without_bias_and_with_a_linear_term():
    rng = np.random.default_rng(3)
    G, g = rng.normal(size=(80, 6)), rng.normal(size=6)
    C, h = rng.uniform(0.1, 1.0, 80), rng.uniform(0.5, 1.5, 80)
    ones = np.ones(80)
    solution = minimize_hinge(HingeProblem(Rows(G), ones, h, C, bias=False, linear=g))
    assert kkt(G, ones, h, C, solution, g, bias=False) < 1e-8
    value = 0.5 * solution.w @ solution.w - g @ solution.w + C @ np.maximum(h - G @ solution.w, 0)
    assert solution.primal == pytest.approx(value, rel=1e-9)
    for _ in range(20):
        other = solution.w + 1e-3 * rng.normal(size=6)
        assert 0.5 * other @ other - g @ other + C @ np.maximum(h - G @ other, 0) > value


def test_a_tube_equals_libsvm():
    rng = np.random.default_rng(0)
    Z, C, epsilon = rng.normal(size=(50, 4)), 2.0, 0.3
    y = Z @ rng.normal(size=4) + rng.normal(size=50)
    two = np.vstack([Z, Z])
    s = np.r_[np.ones(50), -np.ones(50)]
    solution = minimize_hinge(HingeProblem(Rows(two), s, np.r_[y - epsilon, -y - epsilon], np.full(100, C)))
    assert solution.primal == pytest.approx(svr_value(Z @ Z.T, y, C, epsilon), rel=1e-6)


def test_conjugate_gradients_give_the_same(monkeypatch):
    Z, y, C = problem(2)
    dense = minimize_hinge(HingeProblem(Rows(Z), y, np.ones(len(y)), C))
    monkeypatch.setattr(hinge, "_DENSE_DIMENSION", 0)
    free = minimize_hinge(HingeProblem(Rows(Z), y, np.ones(len(y)), C))
    np.testing.assert_allclose(free.w, dense.w, atol=1e-7)
    assert free.primal == pytest.approx(dense.primal, rel=2e-8)


def test_the_iteration_limit_is_reported():
    Z, y, C = problem(5)
    assert minimize_hinge(HingeProblem(Rows(Z), y, np.ones(len(y)), C), max_iter=3).stop == "max_iter"


@pytest.mark.parametrize("seed", range(5))
def test_value_at_zero(seed):
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(15) < 0.5, 1.0, -1.0)
    h, C = rng.normal(size=15), rng.uniform(0.1, 2, 15)
    brute = min(np.sum(C * np.maximum(h - s * b, 0)) for b in s * h)
    assert hinge_at_zero(s, h, C) == pytest.approx(brute, rel=1e-12)


def test_value_at_zero_of_two_classes_is_twice_the_lighter_one():
    s = np.r_[np.ones(3), -np.ones(5)]
    assert hinge_at_zero(s, np.ones(8), np.full(8, 2.0)) == pytest.approx(12.0)


def test_a_start_near_the_solution_saves_iterations():
    cold, warm = [], []
    for seed in range(6):
        Z, y, C = problem(seed)
        hinges = HingeProblem(Rows(Z), y, np.ones(len(y)), 100 * C)
        found = minimize_hinge(hinges)
        again = minimize_hinge(hinges, found.alpha)
        assert again.primal == pytest.approx(found.primal, rel=1e-8)
        cold.append(found.n_iter)
        warm.append(again.n_iter)
    assert sum(warm) <= 0.9 * sum(cold)


@pytest.mark.parametrize("factor", [1e150, 1e200])
def test_samples_too_long_for_the_arithmetic_are_no_solution(factor):
    Z, y, C = problem(0)
    found = minimize_hinge(HingeProblem(Rows(factor * Z), y, np.ones(60), C))
    assert str(found.stop) == "precision"
    assert found.error >= 0.5
