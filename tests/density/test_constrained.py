"""FCR-SDC: closed forms against deletion, the construction against loops, pruning, safe bandwidths."""

import numpy as np
import pytest

from fewkern.core.path import Stop
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


def test_closed_forms_equal_deletion(data):
    problem, target = data
    X, w = problem.Z, np.random.default_rng(1).random(60)
    w = w / w.sum()
    Psi = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * (2 * UNIT) ** 2)) / 4
    y = Psi[:, 3]
    jackknife = constrained.score_candidates(Psi[:, 4:20], y, target, w)
    for q, j in enumerate(range(4, 20)):
        least_squares, score, lam = oracle.mixing_by_deletion(Psi[:, j], y, target, w)
        assert jackknife[0][q] == pytest.approx(score, rel=1e-9)
        assert jackknife[1][q] == pytest.approx(lam, rel=1e-9)
        assert bool(jackknife[2][q]) == (0 <= least_squares <= 1 and 0 <= lam <= 1)


@pytest.mark.parametrize("mode", ["safe", "abs"])
@pytest.mark.parametrize("gamma", [1.5, 2.5])
def test_the_construction_equals_the_loops_with_and_without_pruning(data, mode, gamma):
    problem, target = data
    X = problem.Z
    np.testing.assert_allclose(target, oracle.normal_matrix(X, X, UNIT) @ problem.w * (2 * np.pi * UNIT**2), rtol=1e-11)
    found, every = (
        _fit(data, gamma=gamma, bandwidth_rule=mode, max_vectors=12, prune=prune).mixture for prune in (True, False)
    )
    np.testing.assert_array_equal(found.weights, every.weights)
    indices, bandwidths, weights = oracle.forward_constrained(problem.Z, target, UNIT, gamma, mode=mode, max_vectors=12)
    np.testing.assert_array_equal(found.rows, indices)
    np.testing.assert_allclose(found.bandwidths, bandwidths, rtol=1e-8)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-8, atol=1e-12)
    assert len(indices) > 2
    counts = []
    constrained.forward_constrained(problem, target, ConstrainedRules(gamma, max_vectors=4), counts.append)
    assert counts == [1, 2, 3]


@pytest.mark.parametrize("rule", ["safe", "abs"])
def test_a_bandwidth_stays_within_its_bounds(data, rule, monkeypatch):
    entry = entry_of(data)
    for length in (1.0, 50.0, 1e40):
        monkeypatch.setattr(constrained, "_ETA", length)
        for start in (0.021, 1.0, 999.0):
            found = constrained.tune_bandwidth(entry, start * UNIT, rule, steps=9)
            assert 0.02 * UNIT <= found <= (1e3 if rule == "safe" else 1e15) * UNIT


def test_default_gamma():
    assert [constrained.default_gamma(m) for m in (1, 2, 100)] == pytest.approx([3.0, 2.437, 1.25], abs=1e-3)


def test_a_candidate_that_one_sample_decides_is_not_admissible():
    """``h = 1`` where only one sample sees a difference between the model and the candidate."""
    y, target, w = np.array([1.0, 0.5, 0.2]), np.array([0.8, 0.4, 0.3]), np.full(3, 1 / 3)
    Psi = np.column_stack([y + [0.5, 0.0, 0.0], y, y + [-0.5, -0.2, 0.3]])
    loo, _, admissible = constrained.score_candidates(Psi, y, target, w)
    assert not np.any(admissible[:2])
    assert np.all(np.isfinite(loo))


def entry_of(data, mixing=0.4):
    problem, target = data
    D = ((problem.Z - problem.Z[3]) ** 2).sum(axis=1)
    return KernelEntry(problem, target, problem.kernel(((problem.Z - problem.Z[40]) ** 2).sum(axis=1), 0.9), mixing, D)


def test_a_path_ends_where_the_score_rises(data):
    free = _fit(data, to_the_limit=True, max_vectors=30)
    scores = [step.loo for step in free.steps]
    rise = next(k for k in range(1, 30) if scores[k] >= scores[k - 1])
    ended = _fit(data)
    assert (ended.stop, len(ended.steps)) == (Stop.ERROR, rise)
    assert (free.stop, len(free.steps)) == (Stop.LIMIT, 30)
    # or where no candidate is admissible
    near = _fit(_with_target(np.array([[0.0, 0.0], [0.01, 0.0], [0.0, 0.01]]), 1.0), to_the_limit=True)
    assert (near.stop, len(near.steps)) == (Stop.EXHAUSTED, 1)
