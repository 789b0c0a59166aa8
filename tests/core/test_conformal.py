"""Quantiles of held-out scores, and what they promise."""

import math

import numpy as np
import pytest

from fewkern.core.conformal import HeldOutScores, Intervals


def test_the_rank_is_that_of_n_plus_one(rng):
    scores = rng.permutation(np.arange(1.0, 100.0))  # 1 to 99
    found = HeldOutScores.of(scores)
    assert [found.quantile(c) for c in (0.01, 0.5, 0.9, 0.95, 0.99)] == [1.0, 50.0, 90.0, 95.0, 99.0]
    assert found.quantile(0.901) == 91.0
    assert found.quantile(0.991) == math.inf
    assert found.most == pytest.approx(0.99)


def test_one_score():
    found = HeldOutScores.of(np.array([3.0]))
    assert (found.quantile(0.5), found.quantile(0.51), found.most) == (3.0, math.inf, 0.5)


def test_quantiles_rise_with_the_coverage(rng):
    found = HeldOutScores.of(rng.exponential(size=57), rng.random(57) + 0.1)
    quantiles = [found.quantile(c) for c in np.linspace(0.01, 0.99, 99)]
    assert quantiles == sorted(quantiles)


def test_a_new_score_is_covered_as_often_as_promised(rng):
    """Exchangeable scores: coverage at least what was asked, and at most 1 / (n + 1) more."""
    n, trials = 19, 20_000
    draws = rng.standard_normal((trials, n + 1)) ** 2
    for coverage in (0.5, 0.73, 0.9):
        reached = np.mean([row[n] <= HeldOutScores.of(row[:n]).quantile(coverage) for row in draws])
        noise = 3 * math.sqrt(coverage * (1 - coverage) / trials)
        assert coverage - noise < reached < coverage + 1 / (n + 1) + noise


def test_many_scores_are_thinned_and_never_promise_too_much(rng):
    scores = rng.exponential(size=50_000)
    found = HeldOutScores.of(scores)
    assert found.values.shape == found.levels.shape == (2000,)
    ordered = np.sort(scores)
    for coverage in (0.01, 0.5, 0.9, 0.97, 0.99, 0.9999):
        exact = ordered[math.ceil(coverage * 50_001) - 1]
        assert exact <= found.quantile(coverage)
        assert np.mean(scores <= found.quantile(coverage)) < coverage + 1.1e-3
    # above 98 % every score is there
    assert found.quantile(0.995) == ordered[math.ceil(0.995 * 50_001) - 1]


def test_equal_weights_are_no_weights(rng):
    scores = rng.random(30)
    plain, weighted = HeldOutScores.of(scores), HeldOutScores.of(scores, np.full(30, 7.5))
    for coverage in (0.1, 0.5, 0.9, 0.96):
        assert plain.quantile(coverage) == weighted.quantile(coverage)
    assert weighted.effective == pytest.approx(30)


def test_whole_weights_are_repetitions_up_to_the_number_of_samples(rng):
    scores, times = rng.random(200), rng.integers(1, 4, 200)
    weighted, repeated = HeldOutScores.of(scores, times.astype(float)), HeldOutScores.of(np.repeat(scores, times))
    assert weighted.effective < 200 < repeated.effective
    for level in (0.2, 0.5, 0.8):
        assert weighted.quantile(level * weighted.most) == repeated.quantile(level * repeated.most)


def test_groups_count_as_one_each(rng):
    scores, groups = rng.random(40), np.repeat(np.arange(10), 4)
    found = HeldOutScores.of(scores, None, groups)
    assert found.effective == pytest.approx(10)
    assert found.quantile(0.92) == math.inf
    uneven = HeldOutScores.of(scores, None, np.array([0] * 31 + list(range(1, 10))))
    assert uneven.effective == pytest.approx(40**2 / (31**2 + 9))


def test_half_widths_with_and_without_a_scale(rng):
    from fewkern import KernelExpansion
    from fewkern.kernels import Gaussian

    scores = (HeldOutScores.of(np.arange(1.0, 10.0)), HeldOutScores.of(np.arange(10.0, 100.0, 10.0)))
    X, values = rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    np.testing.assert_array_equal(Intervals(scores).half_widths(X, values, 0.9), [[9.0, 90.0]] * 4)
    g = KernelExpansion(Gaussian(1.0), np.zeros((1, 2)), np.array([[5.0, 0.0]]), np.array([0.5, 0.0]))
    scaled = Intervals(scores, g, np.array([[0.0, 0.0], [1.0, 0.0]]))
    expected = 9.0 * np.exp(np.clip(g(X)[:, 0], 0.0, 1.0))
    np.testing.assert_allclose(scaled.half_widths(X, values, 0.9)[:, 0], expected)
    np.testing.assert_allclose(scaled.half_widths(X, values, 0.9)[:, 1], 90.0)


def test_other_array_libraries(rng, foreign):
    to, back = foreign
    scores, weights, groups = rng.random(3000), rng.random(3000), rng.integers(0, 50, 3000)
    found, truth = HeldOutScores.of(to(scores), to(weights), to(groups)), HeldOutScores.of(scores, weights, groups)
    np.testing.assert_allclose(back(found.values), truth.values)
    assert found.quantile(0.9) == pytest.approx(truth.quantile(0.9))
    values = Intervals((found,)).half_widths(to(scores[:, None]), to(scores[:, None]), 0.5)
    np.testing.assert_allclose(back(values), truth.quantile(0.5))
