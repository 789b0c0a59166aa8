"""FCR-SDC: closed forms against deletion, the whole construction against loops, pruning, width safeguards."""

import numpy as np
import pytest

from fewkern.density import constrained
from tests.oracles import density as oracle

UNIT = 0.4


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[30:] += 3.0
    w = np.full(60, 1 / 60)
    return X, w, constrained.parzen_target(X, X, w, UNIT)


def _fit(data, **settings):
    X, w, target = data
    return constrained.forward_constrained(X, w, target, UNIT, np.arange(len(X)), **{"gamma": 2.0, **settings})


def test_parzen_target_equals_the_sum(data):
    X, w, target = data
    expected = oracle.normal_matrix(X, X, UNIT) @ w * (2 * np.pi * UNIT**2)
    np.testing.assert_allclose(target, expected, rtol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_closed_forms_equal_deletion(data, weighted):
    X, w, target = data
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
    X, _, target = data
    found = _fit(data, gamma=gamma, width_mode=mode, max_vectors=12)
    indices, widths, weights = oracle.forward_constrained(X, target, UNIT, gamma, mode=mode, max_vectors=12)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.widths, widths, rtol=1e-8)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-8, atol=1e-12)
    assert len(indices) > 2


@pytest.mark.parametrize("seed", range(4))
def test_pruning_changes_nothing_but_the_work(seed):
    X = np.random.default_rng(seed).normal(size=(150, 3))
    w = np.full(150, 1 / 150)
    data = X, w, constrained.parzen_target(X, X, w, UNIT)
    fast, slow = _fit(data, gamma=2.0), _fit(data, gamma=2.0, prune=False)
    np.testing.assert_array_equal(fast.indices, slow.indices)
    np.testing.assert_array_equal(fast.weights, slow.weights)
    assert sum(s.evaluated for s in fast.trace[1:]) < sum(s.evaluated for s in slow.trace[1:])


def test_weights_are_the_recursion_of_the_mixing_numbers():
    np.testing.assert_allclose(constrained.mixture_weights([0.5, 0.2]), [0.1, 0.1, 0.8])
    assert constrained.mixture_weights([]) == [1.0]


def test_trace_has_one_record_per_kernel_and_falling_scores(data):
    found = _fit(data)
    assert len(found.trace) == len(found.indices)
    assert all(b.loo < a.loo for a, b in zip(found.trace, found.trace[1:]))
    assert all(0 <= step.mixing <= 1 for step in found.trace)
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)


def test_safe_width_steps_never_raise_the_error(data):
    X, w, target = data
    for centre in range(0, 60, 7):
        D = ((X - X[centre]) ** 2).sum(axis=1)
        y = target * 0.7

        def loss(width):
            e = target - 0.4 * y - 0.6 * (UNIT / width) ** 2 * np.exp(-D / (2 * width**2))
            return np.sum(w * e**2)

        for start in (0.05, 0.4, 3.0):
            width = constrained.tune_width(D, y, target, w, 0.4, start, unit=UNIT, dim=2)
            assert loss(width) <= loss(start) * (1 + 1e-12)
            assert 0.02 * UNIT <= width <= 1e3 * UNIT


@pytest.mark.parametrize("mode", ["abs", "bracket"])
def test_literal_width_rules_respect_the_floor(data, mode):
    X, w, target = data
    D = ((X - X[0]) ** 2).sum(axis=1)
    width = constrained.tune_width(D, target, target, w, 0.9, 0.1, unit=UNIT, dim=2, eta=50.0, mode=mode, floor=0.3)
    assert width >= 0.3 * UNIT


@pytest.mark.parametrize("mode", ["abs", "bracket"])
def test_a_literal_width_that_runs_away_is_left_where_it_is(data, mode):
    X, w, target = data
    D = ((X - X[0]) ** 2).sum(axis=1)
    width = constrained.tune_width(D, 0 * target, target, w, 0.0, 0.5, unit=UNIT, dim=2, eta=1e40, steps=9, mode=mode)
    assert np.isfinite(width)


@pytest.mark.parametrize(
    ("settings", "reason", "size"),
    [
        ({"stop": "size", "max_vectors": 3}, "limit", 3),
        ({"stop": "distance", "tol": 0.9}, "close to the target", 1),
        ({"stop": "loo", "tol": 0.99}, "leave-one-out score no longer falls", 1),
    ],
)
def test_every_stopping_rule_says_why(data, settings, reason, size):
    found = _fit(data, **settings)
    assert (found.stop, len(found.indices)) == (reason, size)


def test_no_admissible_candidate_ends_the_path():
    X = np.array([[0.0, 0.0], [0.01, 0.0]])
    w = np.array([0.5, 0.5])
    target = constrained.parzen_target(X, X, w, 1.0)
    found = constrained.forward_constrained(X, w, target, 1.0, np.arange(2), gamma=2.0, stop="size")
    assert len(found.indices) <= 2
    assert found.stop in {"no admissible candidate", "limit"}


def test_joint_refit_lowers_the_distance_and_stays_on_the_simplex(data):
    X, w, target = data
    first = _fit(data)
    better = constrained.refit_jointly(X, w, target, UNIT, first)

    def loss(fit):
        D = ((X[:, None] - X[fit.indices][None]) ** 2).sum(-1)
        F = (UNIT / fit.widths) ** 2 * np.exp(-D / (2 * fit.widths**2))
        return np.sum(w * (target - F @ fit.weights) ** 2)

    assert loss(better) < loss(first)
    assert abs(better.weights.sum() - 1) < 1e-12
    assert np.all(better.weights > 0)


def test_default_gamma():
    assert constrained.default_gamma(1) == 3.0
    assert constrained.default_gamma(2) == pytest.approx(2.437, abs=1e-3)
    assert constrained.default_gamma(100) == 1.25
