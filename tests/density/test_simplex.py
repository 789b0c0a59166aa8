"""The simplex programme: both solvers against enumeration of supports and against each other."""

import numpy as np
import pytest

from fewkern.core.trace import Stop
from fewkern.density import simplex
from tests.oracles import density as oracle


def _problem(seed, n, positive=True):
    rng = np.random.default_rng(seed)
    A = rng.random((n, n + 2)) if positive else rng.normal(size=(n, n + 2))
    return A @ A.T / n, rng.random(n) * 2


def _density_problem(n=80, width=0.7, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    return np.exp(-D / (4 * width**2)) / 2, np.exp(-D / (2 * width**2)).mean(axis=1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("positive", [True, False])
def test_active_set_equals_enumeration(seed, positive):
    B, v = _problem(seed, 6, positive)
    expected, value = oracle.simplex_by_enumeration(B, v)
    found = simplex.active_set(B, v)
    np.testing.assert_allclose(found.weights, expected, atol=1e-8)
    assert found.objective == pytest.approx(value, abs=1e-12)
    assert found.stop is Stop.CONVERGED


def test_active_set_gives_exact_zeros_and_a_tiny_gap():
    B, v = _density_problem()
    found = simplex.active_set(B, v)
    assert found.gap <= 1e-8
    assert 1 < np.count_nonzero(found.weights) < 40
    assert abs(found.weights.sum() - 1) < 1e-12
    assert np.all(found.weights >= 0)


def test_active_set_is_not_worse_than_multiplicative_updates():
    B, v = _density_problem()
    exact, slow = simplex.active_set(B, v), simplex.mnqp(B, v)
    assert exact.objective <= slow.objective
    assert slow.objective == pytest.approx(exact.objective, rel=1e-3)


def test_a_constant_in_v_does_not_matter():
    B, v = _density_problem()
    np.testing.assert_allclose(simplex.active_set(B, v + 5).weights, simplex.active_set(B, v).weights, atol=1e-9)


def test_twin_points_are_solved_by_least_squares():
    B, v = _density_problem(30)
    twins = np.r_[np.arange(30), np.arange(30)]
    found = simplex.active_set(B[np.ix_(twins, twins)], v[twins])
    assert found.objective == pytest.approx(simplex.active_set(B, v).objective, rel=1e-10)
    assert found.gap < 1e-8


def test_active_set_stops_at_its_limit():
    B, v = _density_problem()
    found = simplex.active_set(B, v, max_iter=2)
    assert (found.stop, found.n_iter) == (Stop.MAX_ITER, 2)
    assert abs(found.weights.sum() - 1) < 1e-12


def test_multiplicative_updates_stay_on_the_simplex_where_the_plain_formula_leaves_it():
    B, v, g = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([5.0, 0.0]), np.array([0.5, 0.5])
    c = g / (B @ g)
    plain = c * (v + (1 - c @ v) / c.sum())
    assert plain.min() < 0
    safe = simplex.mnqp(B, v, iterations=1).weights
    assert safe.min() >= 0
    assert safe.sum() == pytest.approx(1, abs=1e-15)


def test_multiplicative_updates_never_raise_the_objective():
    B, v = _density_problem()
    g, last = np.full(len(v), 1 / len(v)), np.inf
    for _ in range(60):
        found = simplex.mnqp(B, v, iterations=1, start=g)
        assert found.objective <= last + 1e-15
        assert found.weights.min() > 0
        assert abs(found.weights.sum() - 1) < 1e-12
        g, last = found.weights, found.objective


def test_a_zero_weight_comes_back():
    # from a vertex that is not the solution the plain update could never move
    B, v = np.eye(2), np.array([0.0, 0.5])
    found = simplex.mnqp(B, v, start=np.array([1 - 1e-12, 1e-12]))
    np.testing.assert_allclose(found.weights, [0.25, 0.75], atol=1e-6)


def test_optimality_gap_sees_a_wrong_point():
    B, v = _density_problem()
    assert simplex.optimality_gap(B, v, np.full(len(v), 1 / len(v))) > 1e-3
