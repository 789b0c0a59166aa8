"""The interior point against libsvm, its own optimality conditions, and a step written out."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from fewkern.margins import hinge
from fewkern.margins.hinge import HingeProblem, hinge_at_zero, minimize_hinge
from tests.oracles.margins import svr_value

# Weight of the hinges, and iterations in all for twelve problems.
MOST_ITERATIONS = [(1e-3, 110), (1.0, 130), (1e3, 150), (1e6, 180)]


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
    ours = minimize_hinge(HingeProblem(Z, y, np.ones(len(y)), C))
    svm = SVC(C=1.0, kernel="linear", tol=1e-10).fit(Z, y, sample_weight=C)
    np.testing.assert_allclose(ours.w, svm.coef_[0], atol=1e-5)
    w = svm.coef_[0]
    value = 0.5 * w @ w + np.sum(C * np.maximum(1 - y * (Z @ w + svm.intercept_[0]), 0))
    # libsvm stops a little above the optimum, never below
    assert value * (1 - 1e-6) < ours.primal < value * (1 + 1e-12)
    assert ours.stop == "converged"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
def test_optimality_conditions_at_any_box(C, seed):
    Z, y, box = problem(seed)
    h = np.ones(len(y))
    solution = minimize_hinge(HingeProblem(Z, y, h, C * box))
    assert kkt(Z, y, h, C * box, solution) < (1e-8 if C < 1e6 else 1e-6)
    # rounding in sums of this size differs from one CPU to another
    assert solution.primal - solution.dual < (1e-8 if C < 1e6 else 1e-7) * solution.primal


def test_hard_margin():
    Z = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.3], [3.0, 1.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    solution = minimize_hinge(HingeProblem(Z, y, np.ones(4), np.full(4, 1e9)))
    # the two hulls are nearest along the first axis, two apart
    np.testing.assert_allclose(solution.w, [1.0, 0.0], atol=1e-7)
    assert solution.bias == pytest.approx(-1.0, abs=1e-6)


def test_without_bias_and_with_a_linear_term():
    rng = np.random.default_rng(3)
    G, g = rng.normal(size=(80, 6)), rng.normal(size=6)
    C, h = rng.uniform(0.1, 1.0, 80), rng.uniform(0.5, 1.5, 80)
    ones = np.ones(80)
    solution = minimize_hinge(HingeProblem(G, ones, h, C, bias=False, linear=g))
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
    solution = minimize_hinge(HingeProblem(two, s, np.r_[y - epsilon, -y - epsilon], np.full(100, C)))
    assert solution.primal == pytest.approx(svr_value(Z @ Z.T, y, C, epsilon), rel=1e-6)


def test_the_iteration_limit_is_reported(monkeypatch):
    monkeypatch.setattr(hinge, "MAX_ITERATIONS", 3)
    Z, y, C = problem(5)
    assert minimize_hinge(HingeProblem(Z, y, np.ones(len(y)), C)).stop == "max_iter"


def test_a_start_near_the_solution_saves_iterations():
    cold, warm = [], []
    for seed in range(6):
        Z, y, C = problem(seed)
        hinges = HingeProblem(Z, y, np.ones(len(y)), 100 * C)
        found = minimize_hinge(hinges)
        again = minimize_hinge(hinges, found.alpha)
        assert again.primal == pytest.approx(found.primal, rel=1e-8)
        cold.append(found.n_iter)
        warm.append(again.n_iter)
    assert sum(warm) <= 0.9 * sum(cold)


@pytest.mark.parametrize("factor", [1e150, 1e200])
def test_samples_too_long_for_the_arithmetic_are_no_solution(factor):
    Z, y, C = problem(0)
    found = minimize_hinge(HingeProblem(factor * Z, y, np.ones(60), C))
    assert str(found.stop) == "precision"
    assert found.error >= 0.5


def small(seed=0, n=12, q=3, bias=True):
    """A problem with targets, weights and, without a bias, a linear term."""
    rng = np.random.default_rng(seed)
    s = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, q)) + 0.5 * s[:, None]
    linear = None if bias else rng.normal(size=q)
    return HingeProblem(X, s, rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 2.0, n), bias, linear)


@pytest.mark.parametrize(("C", "most"), MOST_ITERATIONS)
def test_few_iterations_are_enough(C, most):
    """A worse start or shorter steps would need more."""
    problems = [small(seed, 40, 4, bias) for seed in range(6) for bias in (True, False)]
    counts = [minimize_hinge(replace(hinges, C=C * hinges.C)).n_iter for hinges in problems]
    assert sum(counts) <= most


def test_a_tolerance_beyond_the_arithmetic_ends_soon(monkeypatch):
    monkeypatch.setattr(hinge, "GAP_RTOL", 1e-300)
    found = [minimize_hinge(replace(small(seed, 40, 4), C=np.full(40, 1e3))) for seed in range(6)]
    assert max(solution.n_iter for solution in found) <= 25
    assert max(solution.error for solution in found) < 1e-12


def test_an_indefinite_normal_matrix_ends_it(monkeypatch):
    def fail(matrix):
        raise ValueError("not positive definite")

    monkeypatch.setattr(hinge, "cholesky_psd", fail)
    found = minimize_hinge(small())
    assert (str(found.stop), found.n_iter) == ("precision", 1)


@pytest.mark.parametrize("bias", [True, False])
def test_the_exact_solution_has_no_gap(bias):
    hinges = small(4, n=30, bias=bias)
    found = minimize_hinge(hinges)
    assert found.stop == "converged"
    assert abs(found.primal - found.dual) <= 1e-13 * abs(found.primal)
    free = (found.alpha > 0) & (found.alpha < hinges.C)
    margin = hinges.signs * (hinges.X @ found.w + found.bias) - hinges.targets
    assert 0 < free.sum() <= hinges.X.shape[1] + bias
    np.testing.assert_allclose(margin[free], 0, atol=1e-12)
    if bias:
        assert abs(hinges.signs @ found.alpha) < 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_a_solution_that_is_not_exact_enough_has_not_converged(seed):
    Z, y, box = problem(seed)
    found = minimize_hinge(HingeProblem(Z, y, np.ones(len(y)), 1e9 * box))
    assert (found.stop == "converged") == (found.error <= hinge.GAP_RTOL)


@pytest.mark.parametrize("bias", [True, False])
def test_without_it_multipliers_near_a_bound_are_set_on_it(bias, monkeypatch):
    monkeypatch.setattr(hinge, "_MAX_FREE_MULTIPLIERS", 0)
    hinges = small(4, n=30, bias=bias)
    found = minimize_hinge(hinges)
    assert 0 < np.sum((found.alpha > 0) & (found.alpha < hinges.C)) <= 12
    assert found.primal - found.dual < 1e-7 * abs(found.primal)
    np.testing.assert_allclose(found.w, hinges.g + hinges.X.T @ (hinges.signs * found.alpha), atol=1e-12)
    if bias:
        assert abs(hinges.signs @ found.alpha) < 1e-12


def test_repeated_samples_share_their_multiplier():
    Z = np.repeat(np.array([[-1.0, 0.2], [1.0, -0.3], [1.5, 1.0]]), [1, 3, 1], axis=0)
    s = np.array([-1.0, 1.0, 1.0, 1.0, 1.0])
    found = minimize_hinge(HingeProblem(Z, s, np.ones(5), np.full(5, 10.0)))
    np.testing.assert_allclose(found.alpha[1:4], found.alpha[1:4].mean(), rtol=1e-9)
    assert abs(found.primal - found.dual) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_best_bias_is_a_minimizer_with_ties(seed):
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(15) < 0.5, 1.0, -1.0)
    short, C = rng.integers(-2, 3, 15).astype(float), rng.integers(1, 4, 15).astype(float)

    def value(b):
        return np.sum(C * np.maximum(short - s * b, 0))

    assert hinge_at_zero(s, short, C) == min(value(x) for x in s * short)
    hinges = HingeProblem(np.zeros((15, 1)), s, np.ones(15), C)
    assert value(hinges.best_bias(short)) == min(value(x) for x in s * short)
    assert replace(hinges, bias=False).best_bias(short) == 0.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_bias_of_one_sided_samples_is_their_last_break(sign):
    hinges = HingeProblem(np.zeros((4, 1)), np.full(4, sign), np.ones(4), np.ones(4))
    assert hinges.best_bias(np.array([3.0, 1.0, 2.0, 0.0])) == 3.0 * sign
