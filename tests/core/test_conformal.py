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
    found = HeldOutScores.of(np.array([3.0]))
    assert (found.quantile(0.5), found.quantile(0.51), found.most) == (3.0, math.inf, 0.5)


def test_many_scores_are_thinned_and_never_promise_too_much(rng):
    scores = rng.exponential(size=50_000)
    found = HeldOutScores.of(scores)
    assert found.values.shape == found.levels.shape == (2000,)
    ordered = np.sort(scores)
    for coverage in (0.01, 0.5, 0.9, 0.97, 0.99, 0.9999):
        exact = ordered[math.ceil(coverage * 50_001) - 1]
        assert exact <= found.quantile(coverage)
        assert np.mean(scores <= found.quantile(coverage)) < coverage + 1.1e-3
    # above 99 % every score is there
    assert found.quantile(0.995) == ordered[math.ceil(0.995 * 50_001) - 1]


def test_whole_weights_are_repetitions_up_to_the_number_of_samples(rng):
    scores, times = rng.random(200), rng.integers(1, 4, 200)
    weighted, repeated = HeldOutScores.of(scores, times.astype(float)), HeldOutScores.of(np.repeat(scores, times))
    assert weighted.effective < 200 < repeated.effective
    assert HeldOutScores.of(scores, np.full(200, 7.5)).effective == pytest.approx(200)
    for level in (0.2, 0.5, 0.8):
        assert weighted.quantile(level * weighted.most) == repeated.quantile(level * repeated.most)


def test_groups_count_as_one_each(rng):
    scores, groups = rng.random(40), np.repeat(np.arange(10), 4)
    found = HeldOutScores.of(scores, None, groups)
    assert found.effective == pytest.approx(10)
    assert found.quantile(0.92) == math.inf
    uneven = HeldOutScores.of(scores, None, np.array([0] * 31 + list(range(1, 10))))
    assert uneven.effective == pytest.approx(40**2 / (31**2 + 9))


def test_the_lower_quantile_is_the_mirror_image_of_the_upper_one(rng):
    for n, weights in ((57, rng.random(57) + 0.1), (57, None), (5000, None)):
        scores = rng.exponential(size=n)
        found, mirrored = HeldOutScores.of(scores, weights), HeldOutScores.of(-scores, weights)
        for share in (0.001, 0.02, 0.05, 0.3, 0.5, 0.9):
            lower, upper = found.lower_quantile(share), -mirrored.quantile(1 - share)
            if n < 5000 or not np.isfinite(upper):
                assert lower == upper
            else:  # thinned: never more below than promised
                assert np.mean(scores < lower) <= share
                assert np.mean(scores < lower) > share - 0.0025


def test_a_new_score_falls_on_each_side_as_often_as_promised(rng):
    n, trials, coverage = 39, 20_000, 0.9
    draws = np.exp(rng.standard_normal((trials, n + 1)))
    ends = np.array([HeldOutScores.of(row[:n]).central(coverage) for row in draws])
    below, above = np.mean(draws[:, n] < ends[:, 0]), np.mean(draws[:, n] > ends[:, 1])
    noise = 3 * math.sqrt(0.05 * 0.95 / trials)
    assert below == pytest.approx(0.05, abs=noise)
    assert above == pytest.approx(0.05, abs=noise)


def test_too_few_samples_for_two_tails_have_symmetric_ends(rng):
    draws = rng.standard_normal((20_000, 13)) + 0.5
    ends = np.array([HeldOutScores.of(row[:12]).central(0.9) for row in draws])
    np.testing.assert_array_equal(ends[:, 0], -ends[:, 1])
    inside = np.mean(np.abs(draws[:, 12]) <= ends[:, 1])
    assert inside == pytest.approx(12 / 13, abs=0.008)  # 0.9 needs the largest of twelve


def test_sizes_keep_the_weights(rng):
    scores, weights = rng.standard_normal(40), rng.random(40) + 0.1
    found, truth = HeldOutScores.of(scores, weights), HeldOutScores.of(np.abs(scores), weights)
    np.testing.assert_array_equal(found.sizes().values, truth.values)
    np.testing.assert_allclose(found.sizes().levels, truth.levels)
    assert found.root_mean_square**2 == pytest.approx(np.average(scores**2, weights=weights))


def test_ranks_of_new_scores_are_uniform(rng):
    """The cdf of an exchangeable score, and the p-value, which is never too small, whatever the ties."""
    n, trials = 19, 10_000
    draws = rng.integers(0, 6, (trials, n + 1)).astype(float)
    found = [HeldOutScores.of(row[:n]) for row in draws]
    p = np.array([one.pvalues(row[n:])[0] for one, row in zip(found, draws)])
    cdf = np.array([one.cdf(row[n:])[0] for one, row in zip(found, draws)])
    for rate in (0.05, 0.1, 0.5):
        assert np.mean(p <= rate) <= rate + 3 * math.sqrt(rate / trials)
    assert cdf.mean() == pytest.approx(0.5, abs=0.01)
    assert p.min() == pytest.approx(1 / 20)


def test_the_cdf_inverts_the_quantiles(rng):
    found = HeldOutScores.of(rng.standard_normal(99), rng.random(99) + 0.5)
    for q in (0.05, 0.3, 0.7, 0.95):
        value = found.quantile(q) if q > 0.5 else found.lower_quantile(q)
        assert found.cdf(np.array([value]))[0] == pytest.approx(q, abs=0.02)
    values = np.sort(rng.standard_normal(50))
    assert np.all(np.diff(found.cdf(values)) >= 0)
    assert np.all(np.abs(found.cdf(np.array([-9.0, 9.0])) - [0, 1]) < 0.01)


def test_ends_with_and_without_a_scale(rng):
    from fewkern import KernelExpansion
    from fewkern.kernels import Gaussian

    residuals = (HeldOutScores.of(np.arange(-9.0, 10.0)), HeldOutScores.of(np.arange(10.0, 200.0, 10.0)))
    X, values = rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    plain = Intervals(residuals)
    assert plain.ends(0.9) == ([-9.0, 10.0], [9.0, 190.0])
    assert plain.quantiles(0.5) == [0.0, 100.0]
    np.testing.assert_array_equal(plain.times_scale(X, values, plain.ends(0.9)[1]), [[9.0, 190.0]] * 4)
    g = KernelExpansion(Gaussian(1.0), np.zeros((1, 2)), np.array([[5.0, 0.0]]), np.array([0.5, 0.0]))
    scaled = Intervals(residuals, g, np.array([[0.0, 0.0], [1.0, 0.0]]))
    high = scaled.times_scale(X, values, scaled.ends(0.9)[1])
    np.testing.assert_allclose(high[:, 0], 9.0 * np.exp(np.clip(g(X)[:, 0], 0.0, 1.0)))
    np.testing.assert_allclose(high[:, 1], 190.0)
    np.testing.assert_allclose(scaled.cdf(X, values, values + high), np.full((4, 2), 0.95))


def test_other_array_libraries(rng, foreign):
    to, back = foreign
    scores, weights, groups = rng.random(3000), rng.random(3000), rng.integers(0, 50, 3000)
    found, truth = HeldOutScores.of(to(scores), to(weights), to(groups)), HeldOutScores.of(scores, weights, groups)
    np.testing.assert_allclose(back(found.values), truth.values)
    assert found.quantile(0.9) == pytest.approx(truth.quantile(0.9))
    ours, theirs, y = Intervals((truth,)), Intervals((found,)), scores[:, None]
    np.testing.assert_allclose(back(theirs.times_scale(to(y), to(y), theirs.ends(0.5)[0])), ours.ends(0.5)[0][0])
    np.testing.assert_allclose(back(theirs.cdf(to(y), to(y), to(2 * y))), ours.cdf(y, y, 2 * y), atol=1e-6)
    assert theirs.spreads() == pytest.approx(ours.spreads())
    np.testing.assert_allclose(back(found.pvalues(to(scores))), truth.pvalues(scores), atol=1e-6)
