"""Parzen bandwidths: scores against the definition term by term, grids, ties."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.density import bandwidth
from fewkern.density.problem import DensityProblem
from tests.oracles import density as oracle

GRID = np.geomspace(0.15, 1.5, 30)
SCORES = {
    "lscv": (bandwidth.least_squares_scores, oracle.lscv, 1 / (2 * np.pi)),
    "likelihood": (bandwidth.likelihood_scores, oracle.likelihood_cv, 1.0),
}
every_rule = pytest.mark.parametrize("rule", SCORES)


def _numbers(scores):
    return scores[:, 0] * np.exp(scores[:, 1])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    w = rng.random(40)
    return DensityProblem.of(rng.normal(size=(40, 2)), w)


@every_rule
def test_scores_equal_the_definition(data, rule):
    scores, definition, unit = SCORES[rule]
    bandwidths = [0.2, 0.5, 1.0]
    expected = [definition(data.Z, data.w, s) for s in bandwidths]
    np.testing.assert_allclose(_numbers(scores(data, bandwidths)) * unit, expected, rtol=1e-11)
    if rule == "lscv":  # the right side of (5), as printed
        scores = scores(DensityProblem.of(data.Z, np.ones(40)), bandwidths, exact=False)
        expected = [oracle.lscv_approximate(data.Z, s) for s in bandwidths]
        np.testing.assert_allclose(_numbers(scores) * unit, expected, rtol=1e-11)


@every_rule
def test_the_bandwidth_is_the_minimiser_on_the_grid(data, rule):
    path, stop, _ = bandwidth.parzen_bandwidth(data, rule)
    grid = path.axes["bandwidth"]
    assert stop is Stop.INSIDE
    np.testing.assert_allclose(grid[:30], data.silverman * GRID)
    assert path.chosen[0] == np.argmin([SCORES[rule][1](data.Z, data.w, s) for s in grid])


def test_rules_of_thumb_on_the_data_s_own_scale():
    X = 7.0 * np.random.default_rng(0).normal(size=(100, 3)) + 50
    problem = DensityProblem.of(X, np.ones(100))
    mean_deviation = np.sqrt(X.var(axis=0).mean())
    expected = {
        "silverman": mean_deviation * (4 / (5 * 100)) ** (1 / 7),
        "scott": mean_deviation * 100 ** (-1 / 7),
        0.7: 0.7,
    }
    for rule, value in expected.items():
        path, stop, _ = bandwidth.parzen_bandwidth(problem, rule)
        assert (path.setting["bandwidth"], stop) == (pytest.approx(value), Stop.GIVEN)


@pytest.mark.parametrize("factor", [3e-3, 40.0])
def test_a_grid_that_misses_the_minimum_grows_towards_it(data, factor, monkeypatch):
    best = bandwidth.parzen_bandwidth(data, "lscv")[0].setting["bandwidth"]
    monkeypatch.setattr(bandwidth, "_GRID_IN_SILVERMANS", factor * GRID)
    path, stop, _ = bandwidth.parzen_bandwidth(data, "lscv")
    assert stop is Stop.INSIDE
    assert path.setting["bandwidth"] == pytest.approx(best, rel=0.15)
    assert len(path.axes["bandwidth"]) > 30
    np.testing.assert_allclose(np.diff(np.log(path.axes["bandwidth"])), np.log(10) / 29)


@pytest.mark.parametrize(("copies", "expected"), [(1, False), (4, False), (5, True)])
def test_ties_dominate_exactly_when_the_inequality_says_so(copies, expected):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    X[:copies] = X[-copies:]
    n, t, m = 60, copies, 4
    assert (4 * t / (n * (n - 1)) > 2 ** (-m / 2) * (n + 2 * t) / n**2) is expected
    assert bandwidth.ties_dominate(DensityProblem.of(X, np.ones(60))) == (expected, copies)
    # close samples are not equal ones
    close = DensityProblem.of(np.concatenate([X[20:30], X[20:30] + 1e-7]), np.ones(20))
    assert [bandwidth.ties_dominate(replace(close, unit=unit))[1] for unit in (0.3, 3.0)] == [0, 10]


def test_scores_that_are_out_of_range_keep_their_order():
    scores = np.array([(-2, 900), (-1, 800), (-1, 0), (0, 5), (1, -900), (1, 800), (1, 801)], dtype=float)
    for k in range(len(scores)):
        assert bandwidth.smallest_score(scores[k:]) == 0
        assert bandwidth.smallest_score(scores[k:][::-1]) == len(scores) - k - 1


@every_rule
def test_the_bandwidth_of_many_samples_comes_from_some_of_them(rule, monkeypatch):
    """A part of the samples wants a larger bandwidth, by the power of their numbers that theory gives."""
    problem = DensityProblem.of(np.random.default_rng(0).normal(size=(160, 2)), np.ones(160))
    alone, _, _ = bandwidth.parzen_bandwidth(problem.part(problem.draw(40, np.random.default_rng(1))), rule)
    monkeypatch.setattr(bandwidth, "_SEARCH_ROWS", 40)
    path, _, _ = bandwidth.parzen_bandwidth(problem, rule, np.random.default_rng(1))
    expected = np.array(alone.axes["bandwidth"]) * (40 / 160) ** (1 / 6)
    np.testing.assert_allclose(path.axes["bandwidth"], expected, rtol=1e-12)
    np.testing.assert_array_equal(path.error, alone.error)
    assert path.chosen == alone.chosen
