"""FCR-SDC: closed forms against deletion, the whole construction against loops, pruning, width safeguards."""

import numpy as np
import pytest

from fewkern.core.trace import Stop
from fewkern.density import constrained
from fewkern.density.constrained import ConstrainedRules, KernelEntry
from fewkern.density.problem import DensityProblem
from tests.oracles import density as oracle

UNIT = 0.4


def _with_target(X, unit=UNIT):
    problem = DensityProblem.of(X, np.ones(len(X)), unit)
    return problem, problem.parzen(X)


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[30:] += 3.0
    return _with_target(X)


def _fit(data, **settings):
    return constrained.forward_constrained(*data, ConstrainedRules(**{"gamma": 2.0, **settings}))


def test_parzen_target_equals_the_sum(data):
    problem, target = data
    expected = oracle.normal_matrix(problem.Z, problem.Z, UNIT) @ problem.w * (2 * np.pi * UNIT**2)
    np.testing.assert_allclose(target, expected, rtol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_closed_forms_equal_deletion(data, weighted):
    problem, target = data
    X, w = problem.Z, problem.w
    if weighted:
        w = np.random.default_rng(1).random(60)
        w = w / w.sum()
    Psi = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * (2 * UNIT) ** 2)) / 4
    y = Psi[:, 3]
    jackknife = constrained.score_candidates(Psi[:, 4:20], y, target, w)
    plain = constrained.score_candidates(Psi[:, 4:20], y, target, w, "ls")
    for q, j in enumerate(range(4, 20)):
        least_squares, score, lam = oracle.mixing_by_deletion(Psi[:, j], y, target, w)
        assert jackknife.loo[q] == pytest.approx(score, rel=1e-9)
        assert jackknife.mixing[q] == pytest.approx(lam, rel=1e-9)
        assert plain.mixing[q] == pytest.approx(least_squares, rel=1e-9)
        assert bool(jackknife.admissible[q]) == (0 <= least_squares <= 1 and 0 <= lam <= 1)


@pytest.mark.parametrize("mode", ["safe", "abs", "bracket"])
@pytest.mark.parametrize("gamma", [1.5, 2.5])
def test_the_construction_equals_the_loops(data, mode, gamma):
    problem, target = data
    found = _fit(data, gamma=gamma, width_rule=mode, max_vectors=12).mixture
    indices, widths, weights = oracle.forward_constrained(problem.Z, target, UNIT, gamma, mode=mode, max_vectors=12)
    np.testing.assert_array_equal(found.rows, indices)
    np.testing.assert_allclose(found.widths, widths, rtol=1e-8)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-8, atol=1e-12)
    assert len(indices) > 2


@pytest.mark.parametrize("seed", range(4))
def test_pruning_changes_nothing_but_the_work(seed):
    data = _with_target(np.random.default_rng(seed).normal(size=(150, 3)))
    fast, slow = _fit(data, gamma=2.0), _fit(data, gamma=2.0, prune=False)
    np.testing.assert_array_equal(fast.mixture.rows, slow.mixture.rows)
    np.testing.assert_array_equal(fast.mixture.weights, slow.mixture.weights)
    assert sum(s.evaluated for s in fast.steps[1:]) < sum(s.evaluated for s in slow.steps[1:])


def test_weights_are_the_recursion_of_the_mixing_numbers():
    np.testing.assert_allclose(constrained.mixture_weights([0.5, 0.2]), [0.1, 0.1, 0.8])
    assert constrained.mixture_weights([]) == [1.0]


def test_trace_has_one_record_per_kernel_and_falling_scores(data):
    found = _fit(data)
    assert len(found.steps) == len(found.mixture.rows)
    assert all(b.loo < a.loo for a, b in zip(found.steps, found.steps[1:]))
    assert all(0 <= step.mixing <= 1 for step in found.steps)
    assert found.mixture.weights.sum() == pytest.approx(1, abs=1e-12)
    assert found.trace.setting == {"n_vectors": len(found.steps)}
    np.testing.assert_array_equal(found.trace.error, [step.loo for step in found.steps])


def test_safe_width_steps_never_raise_the_error(data):
    problem, target = data
    X, w = problem.Z, problem.w
    for centre in range(0, 60, 7):
        D = ((X - X[centre]) ** 2).sum(axis=1)
        y = target * 0.7

        def loss(width):
            e = target - 0.4 * y - 0.6 * (UNIT / width) ** 2 * np.exp(-D / (2 * width**2))
            return np.sum(w * e**2)

        for start in (0.05, 0.4, 3.0):
            width = constrained.tune_width(KernelEntry(problem, target, y, 0.4, D), start, ConstrainedRules(2.0))
            assert loss(width) <= loss(start) * (1 + 1e-12)
            assert 0.02 * UNIT <= width <= 1e3 * UNIT


@pytest.mark.parametrize("mode", ["abs", "bracket"])
def test_literal_width_rules_respect_the_floor(data, mode):
    problem, target = data
    D = ((problem.Z - problem.Z[0]) ** 2).sum(axis=1)
    rules = ConstrainedRules(2.0, eta=50.0, width_rule=mode, floor=0.3)
    width = constrained.tune_width(KernelEntry(problem, target, target, 0.9, D), 0.1, rules)
    assert width >= 0.3 * UNIT


@pytest.mark.parametrize("mode", ["abs", "bracket"])
def test_a_literal_width_that_runs_away_is_left_where_it_is(data, mode):
    problem, target = data
    D = ((problem.Z - problem.Z[0]) ** 2).sum(axis=1)
    rules = ConstrainedRules(2.0, eta=1e40, width_steps=9, width_rule=mode)
    width = constrained.tune_width(KernelEntry(problem, target, 0 * target, 0.0, D), 0.5, rules)
    assert np.isfinite(width)


@pytest.mark.parametrize(
    ("settings", "reason", "size"),
    [
        ({"stop": "size", "max_vectors": 3}, Stop.LIMIT, 3),
        ({"stop": "distance", "tol": 0.9}, Stop.CONVERGED, 1),
        ({"stop": "loo", "tol": 0.99}, Stop.ERROR, 1),
    ],
)
def test_every_stopping_rule_says_why(data, settings, reason, size):
    found = _fit(data, **settings)
    assert (found.stop, len(found.mixture.rows)) == (reason, size)


def test_no_admissible_candidate_ends_the_path():
    X = np.array([[0.0, 0.0], [0.01, 0.0], [0.0, 0.01]])
    found = _fit(_with_target(X, 1.0), stop="size")
    assert (len(found.mixture.rows), found.stop) == (1, Stop.EXHAUSTED)


def test_joint_refit_lowers_the_distance_and_stays_on_the_simplex(data):
    problem, target = data
    X, w = problem.Z, problem.w
    first = _fit(data)
    better = constrained.refit_jointly(*data, first).mixture

    def loss(fit):
        D = ((X[:, None] - X[fit.rows][None]) ** 2).sum(-1)
        F = (UNIT / fit.widths) ** 2 * np.exp(-D / (2 * fit.widths**2))
        return np.sum(w * (target - F @ fit.weights) ** 2)

    assert loss(better) < loss(first.mixture)
    assert abs(better.weights.sum() - 1) < 1e-12
    assert np.all(better.weights > 0)


def test_default_gamma():
    assert constrained.default_gamma(1) == 3.0
    assert constrained.default_gamma(2) == pytest.approx(2.437, abs=1e-3)
    assert constrained.default_gamma(100) == 1.25


def test_the_trace_has_one_score_per_kernel_and_ends_at_the_model(data):
    fit = _fit(data, max_vectors=6)
    trace = fit.trace
    assert trace.axes == {"n_vectors": tuple(float(k) for k in range(1, len(fit.steps) + 1))}
    np.testing.assert_array_equal(trace.error, [step.loo for step in fit.steps])
    assert trace.chosen == (len(fit.steps) - 1,)
    np.testing.assert_array_equal(trace.spread, 0)
