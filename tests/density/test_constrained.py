"""FCR-SDC: closed forms against deletion, the whole construction against loops, pruning, width safeguards."""

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
    assert found.path.setting == {"n_vectors": len(found.steps)}
    np.testing.assert_array_equal(found.path.error, [step.loo for step in found.steps])


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
    path = fit.path
    assert path.axes == {"n_vectors": tuple(float(k) for k in range(1, len(fit.steps) + 1))}
    np.testing.assert_array_equal(path.error, [step.loo for step in fit.steps])
    assert path.chosen == (len(fit.steps) - 1,)
    np.testing.assert_array_equal(path.spread, 0)


def test_a_candidate_that_one_sample_decides_is_not_admissible():
    """``h = 1`` where only one sample sees a difference between the model and the candidate."""
    y, target, w = np.array([1.0, 0.5, 0.2]), np.array([0.8, 0.4, 0.3]), np.full(3, 1 / 3)
    Psi = np.column_stack([y + [0.5, 0.0, 0.0], y, y + [-0.5, -0.2, 0.3]])
    found = constrained.score_candidates(Psi, y, target, w)
    assert not found.admissible[0]
    assert not found.admissible[1]
    assert np.all(np.isfinite(found.loo))


@pytest.mark.parametrize(("share", "admissible"), [(0.0, True), (1.0, True), (0.3, True), (-0.1, False), (1.1, False)])
def test_mixing_numbers_from_zero_to_one_are_admissible(share, admissible):
    """Where the target is exactly such a mixture the residuals vanish, and both estimates are its number."""
    y = np.array([1.0, 0.5, 0.25, 2.0])
    psi = np.array([0.5, 1.0, 0.5, 1.0])
    target = share * y + (1 - share) * psi
    for mixing in ("jackknife", "ls"):
        found = constrained.score_candidates(psi[:, None], y, target, np.full(4, 0.25), mixing)
        assert found.mixing[0] == pytest.approx(share, abs=1e-12)
        assert found.loo[0] == pytest.approx(0.0, abs=1e-20)
        assert bool(found.admissible[0]) is admissible


def entry_of(data, mixing=0.4):
    problem, target = data
    D = ((problem.Z - problem.Z[3]) ** 2).sum(axis=1)
    return KernelEntry(problem, target, problem.kernel(((problem.Z - problem.Z[40]) ** 2).sum(axis=1), 0.9), mixing, D)


@pytest.mark.parametrize("width", [0.3, 0.8, 2.0])
def test_the_width_step_is_gauss_newtons(data, width):
    """(11) and (12) with the derivative (13) by differences."""
    entry = entry_of(data)
    now = entry.at(width)
    w, h = entry.problem.w, 1e-6
    slope = (entry.at(width + h).K - entry.at(width - h).K) / (2 * h)
    expected = 0.5 / 0.6 * (w @ (now.e * slope)) / (w @ slope**2)
    assert entry.step(now, 0.5) == pytest.approx(expected, rel=1e-6)
    assert now.loss == pytest.approx(w @ (entry.target - 0.4 * entry.y - 0.6 * now.K) ** 2)


def test_a_flat_kernel_has_no_width_step(data):
    entry = entry_of(data)
    assert entry.step(entry.at(1e90), 0.5) is None


def test_a_step_that_overshoots_is_halved(data):
    entry = entry_of(data)
    now = entry.at(1.0)
    # a step length that overshoots: the widths tried are 1 + move, 1 + move / 2, ...; the first not worse is taken
    eta = 8.0
    move = entry.step(now, eta)
    tried = [min(max(1.0 + move * 0.5**k, 0.02 * UNIT), 1e3 * UNIT) for k in range(7)]
    expected = next(width for width in tried if entry.at(width).loss <= now.loss)
    assert expected != tried[0]
    assert constrained.tune_width(entry, 1.0, ConstrainedRules(gamma=2.0, eta=eta, width_steps=1)) == expected


def test_widths_stay_between_floor_and_cap(data):
    entry = entry_of(data)
    for width in (1.5, 1.7, 1.8):
        rules = ConstrainedRules(gamma=2.0, floor=1.5, cap=1.8, eta=100.0)
        assert 1.5 * UNIT <= constrained.tune_width(entry, width * UNIT, rules) <= 1.8 * UNIT


def test_as_many_width_steps_as_asked_for(data):
    entry, width = entry_of(data), 1.2
    one = ConstrainedRules(gamma=2.0, width_steps=1)
    for steps in range(4):
        assert constrained.tune_width(entry, 1.2, ConstrainedRules(gamma=2.0, width_steps=steps)) == width
        width = constrained.tune_width(entry, width, one)


def test_a_path_ends_where_the_score_does_not_fall_by_the_tolerance(data):
    free = _fit(data, stop="size", max_vectors=8)
    scores = [step.loo for step in free.steps]
    for k in range(1, 6):
        ratio = scores[k] / scores[k - 1]
        if all(scores[j] < (ratio - 1e-9) * scores[j - 1] for j in range(1, k)):
            assert len(_fit(data, tol=1 - ratio + 1e-9, max_vectors=8).steps) == k
            assert len(_fit(data, tol=1 - ratio - 1e-9, max_vectors=8).steps) > k


def test_a_path_ends_within_the_distance(data):
    free = _fit(data, stop="size", max_vectors=8)
    problem, target = data
    for k, step in enumerate(free.steps[:5]):
        partial = _fit(data, stop="size", max_vectors=k + 1).mixture
        values = problem.kernel(((problem.Z[:, None] - partial.centers[None]) ** 2).sum(-1), partial.widths)
        off = target - values @ partial.weights
        assert step.distance == pytest.approx(np.sqrt(problem.w @ off**2 / (problem.w @ target**2)), rel=1e-9)
        ended = _fit(data, stop="distance", tol=step.distance * 1.0001, max_vectors=8)
        first = next(j for j, s in enumerate(free.steps) if s.distance <= step.distance * 1.0001)
        assert len(ended.steps) == first + 1
        assert ended.stop == Stop.CONVERGED


def test_the_first_kernel_is_the_candidate_nearest_to_the_target(data):
    problem, target = data
    Psi = problem.kernel(((problem.Z[:, None] - problem.Z[None]) ** 2).sum(-1), 2.0 * UNIT)
    first = _fit(data, max_vectors=1, width_steps=0)
    assert first.steps[0].index == np.argmin(problem.w @ (target[:, None] - Psi) ** 2)
    assert first.steps[0].width == pytest.approx(2.0 * UNIT)
    assert first.steps[0].loo == pytest.approx((problem.w @ (target[:, None] - Psi) ** 2).min())
    assert first.stop == Stop.LIMIT
