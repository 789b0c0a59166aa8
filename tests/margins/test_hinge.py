"""The interior point against libsvm, its own optimality conditions, and a step written out."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from fewkern.margins import hinge
from fewkern.margins.hinge import HingeProblem, minimize_hinge


def problem(seed, C=1.0, n=60, q=5, bias=True):
    """Classes that overlap; without a bias also other targets, and a linear term."""
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(n, q))
    X[:, 0] += 0.8 * s
    h, g = (np.ones(n), None) if bias else (rng.uniform(0.5, 1.5, n), rng.normal(size=q))
    return HingeProblem(X, s, h, C * rng.uniform(0.2, 3.0, n), bias, g)


def kkt(hinges, found):
    """Largest violation of the optimality conditions, relative to the box where it is one of a multiplier."""
    a, s, C = found.alpha, hinges.signs, hinges.C
    margin = s * (hinges.X @ found.w + found.bias) - hinges.targets
    slack = np.where(margin > 0, a / C * margin, (1 - a / C) * -margin)
    balance = abs(np.sum(s * a)) / a.sum() if hinges.bias else 0.0
    return max(np.abs(slack).max(), np.abs(found.w - hinges.g - hinges.X.T @ (s * a)).max(), balance)


@pytest.mark.parametrize("seed", range(4))
def test_equals_libsvm(seed):
    hinges = problem(seed)
    ours, Z, y = minimize_hinge(hinges), hinges.X, hinges.signs
    svm = SVC(C=1.0, kernel="linear", tol=1e-10).fit(Z, y, sample_weight=hinges.C)
    w = svm.coef_[0]
    np.testing.assert_allclose(ours.w, w, atol=1e-5)
    value = 0.5 * w @ w + np.sum(hinges.C * np.maximum(1 - y * (Z @ w + svm.intercept_[0]), 0))
    # libsvm stops a little above the optimum, never below
    assert value * (1 - 1e-6) < ours.primal < value * (1 + 1e-12)
    assert ours.stop == "converged"


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("C", "most"), [(1e-3, 145), (1.0, 150), (1e3, 170), (1e6, 225)])
def test_optimality_conditions_at_any_box_after_few_iterations(C, most, bias):
    """A worse start or shorter steps would need more iterations."""
    count = 0
    for seed in range(12):
        hinges = problem(seed, C, bias=bias)
        found = minimize_hinge(hinges)
        assert kkt(hinges, found) < (1e-8 if 1e-3 < C < 1e6 else 1e-6)
        # rounding in sums of this size differs from one CPU to another
        assert found.primal - found.dual < (1e-8 if C < 1e6 else 1e-7) * abs(found.primal)
        w, short = found.w, hinges.targets - hinges.signs * (hinges.X @ found.w + found.bias)
        value = 0.5 * w @ w - hinges.g @ w + hinges.C @ np.maximum(short, 0)
        assert found.primal == pytest.approx(value, rel=1e-9)
        count += found.n_iter
    assert count <= most


@pytest.mark.parametrize("factor", [1e150, 1e200])
def test_samples_too_long_for_the_arithmetic_are_no_solution(factor):
    hinges = problem(0)
    found = minimize_hinge(replace(hinges, X=factor * hinges.X))
    assert str(found.stop) == "precision"
    assert found.error >= 0.5


def test_a_tolerance_beyond_the_arithmetic_ends_soon(monkeypatch):
    monkeypatch.setattr(hinge, "GAP_RTOL", 1e-300)
    found = [minimize_hinge(problem(seed, 1e3, 40, 4)) for seed in range(6)]
    assert max(solution.n_iter for solution in found) <= 25
    assert max(solution.error for solution in found) < 1e-12


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_multipliers_near_a_bound_are_set_on_it(bias, exact, monkeypatch):
    """By the solution of the system of the free ones, which has no gap, or without it."""
    if not exact:
        monkeypatch.setattr(hinge, "_MAX_FREE_MULTIPLIERS", 0)
    hinges = problem(4, n=30, q=3, bias=bias)
    found = minimize_hinge(hinges)
    assert abs(found.primal - found.dual) <= (1e-13 if exact else 1e-7) * abs(found.primal)
    free = (found.alpha > 0) & (found.alpha < hinges.C)
    assert 0 < free.sum() <= (3 + bias if exact else 12)
    np.testing.assert_allclose(found.w, hinges.g + hinges.X.T @ (hinges.signs * found.alpha), atol=1e-12)
    if exact:
        assert found.stop == "converged"
        margin = hinges.signs * (hinges.X @ found.w + found.bias) - hinges.targets
        np.testing.assert_allclose(margin[free], 0, atol=1e-12)
    if bias:
        assert abs(hinges.signs @ found.alpha) < 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_a_solution_that_is_not_exact_enough_has_not_converged(seed):
    found = minimize_hinge(problem(seed, 1e9))
    assert (found.stop == "converged") == (found.error <= hinge.GAP_RTOL)


def test_repeated_samples_share_their_multiplier():
    Z = np.repeat(np.array([[-1.0, 0.2], [1.0, -0.3], [1.5, 1.0]]), [1, 3, 1], axis=0)
    found = minimize_hinge(HingeProblem(Z, np.array([-1.0, 1.0, 1.0, 1.0, 1.0]), np.ones(5), np.full(5, 10.0)))
    np.testing.assert_allclose(found.alpha[1:4], found.alpha[1:4].mean(), rtol=1e-9)
    assert abs(found.primal - found.dual) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_best_bias_is_a_minimizer_with_ties(seed):
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(15) < 0.5, 1.0, -1.0)
    short, C = rng.integers(-2, 3, 15).astype(float), rng.integers(1, 4, 15).astype(float)
    for signs in (s, np.abs(s), -np.abs(s)):  # one-sided: the last break
        least = min(np.sum(C * np.maximum(short - signs * b, 0)) for b in signs * short)
        hinges = HingeProblem(np.zeros((15, 1)), signs, short, C)
        b = hinges.best_bias(short)
        assert hinges.value_at_zero() == least == np.sum(C * np.maximum(short - signs * b, 0))


def test_cleaned_multipliers_balance_and_stay_in_their_boxes():
    hinges = problem(0)
    a = np.random.default_rng(1).uniform(0, 1, 60) * hinges.C
    clean = hinge._clean(hinges, a, 1e-3)
    assert np.sum(hinges.signs * clean) == pytest.approx(0, abs=1e-12)
    assert np.all(clean <= hinges.C)
