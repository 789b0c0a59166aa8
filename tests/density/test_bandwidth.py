"""Parzen widths: scores against the definition term by term, grids, ties."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.density import bandwidth
from fewkern.density.problem import DensityProblem
from tests.oracles import density as oracle

SCORES = [bandwidth.least_squares_scores, bandwidth.likelihood_scores]


def _numbers(scores):
    return np.array([float(score) for score in scores])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    w = rng.random(40)
    return DensityProblem.of(rng.normal(size=(40, 2)), w)


def test_least_squares_scores_equal_the_double_sum(data):
    widths = [0.2, 0.5, 1.0]
    scores = _numbers(bandwidth.least_squares_scores(data, widths)) / (2 * np.pi)
    np.testing.assert_allclose(scores, [oracle.lscv(data.Z, data.w, s) for s in widths], rtol=1e-11)


def test_approximate_scores_equal_the_printed_right_side(data):
    widths = [0.3, 0.7]
    scores = bandwidth.least_squares_scores(DensityProblem.of(data.Z, np.ones(40)), widths, "approximate")
    expected = [oracle.lscv_approximate(data.Z, s) for s in widths]
    np.testing.assert_allclose(_numbers(scores) / (2 * np.pi), expected, rtol=1e-11)


def test_blocks_do_not_change_the_scores(data, monkeypatch):
    whole = [_numbers(scores(data, [0.4])) for scores in SCORES]
    monkeypatch.setattr(bandwidth, "row_blocks", lambda n, _: (slice(i, min(i + 7, n)) for i in range(0, n, 7)))
    for scores, expected in zip(SCORES, whole):
        np.testing.assert_allclose(_numbers(scores(data, [0.4])), expected, rtol=1e-12)


def test_likelihood_scores_equal_the_definition(data):
    widths = [0.2, 0.5, 1.0]
    scores = _numbers(bandwidth.likelihood_scores(data, widths))
    np.testing.assert_allclose(scores, [oracle.likelihood_cv(data.Z, data.w, s) for s in widths], rtol=1e-11)


@pytest.mark.parametrize(
    ("rule", "score"),
    [
        (bandwidth.least_squares_width, lambda X, w, s: oracle.lscv(X, w, s)),
        (bandwidth.likelihood_width, lambda X, w, s: oracle.likelihood_cv(X, w, s)),
    ],
)
def test_the_width_is_the_minimiser_on_the_default_grid(data, rule, score):
    found = rule(data)
    grid = np.asarray(bandwidth.default_grid(data.silverman))
    assert found.stop is Stop.INSIDE
    assert len(grid) == 30
    assert found.width == grid[np.argmin([score(data.Z, data.w, s) for s in grid])]
    assert found.path.setting == {"bandwidth": found.width}


def test_rules_of_thumb_on_the_data_s_own_scale():
    X = 7.0 * np.random.default_rng(0).normal(size=(100, 3)) + 50
    problem = DensityProblem.of(X, np.ones(100))
    mean_deviation = np.sqrt(X.var(axis=0).mean())
    assert problem.silverman == pytest.approx(mean_deviation * (4 / (5 * 100)) ** (1 / 7))
    assert problem.scott == pytest.approx(mean_deviation * 100 ** (-1 / 7))


@pytest.mark.parametrize("factors", [(0.001, 0.01), (30.0, 300.0)])
def test_a_grid_that_misses_the_minimum_grows_towards_it(data, factors):
    best = bandwidth.least_squares_width(data).width
    found = bandwidth.least_squares_width(data, list(best * np.geomspace(*factors, 20)))
    assert found.stop is Stop.INSIDE
    assert found.width == pytest.approx(best, rel=0.15)
    assert np.all(np.diff(found.widths) > 0)


def test_a_grid_hopelessly_far_off_ends_at_its_edge(data):
    found = bandwidth.least_squares_width(data, list(np.geomspace(1e4, 2e4, 3)))
    assert (found.stop, found.tied_pairs) == (Stop.EDGE, 0)
    assert found.width == found.widths[0]


def test_one_width_is_taken_as_it_is(data):
    found = bandwidth.least_squares_width(data, [0.5])
    assert (found.width, found.stop) == (0.5, Stop.INSIDE)


def test_duplicates_that_drive_the_width_to_zero_are_named():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 2, axis=0)
    problem = DensityProblem.of(X, np.ones(60))
    found = bandwidth.least_squares_width(problem)
    assert (found.stop, found.tied_pairs) == (Stop.EDGE, 30)
    assert found.width == min(bandwidth.default_grid(problem.silverman))


@pytest.mark.parametrize(("copies", "expected"), [(1, False), (4, False), (5, True)])
def test_ties_dominate_exactly_when_the_inequality_says_so(copies, expected):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    X[:copies] = X[-copies:]
    n, t, m = 60, copies, 4
    assert (4 * t / (n * (n - 1)) > 2 ** (-m / 2) * (n + 2 * t) / n**2) is expected
    assert bandwidth.ties_dominate(DensityProblem.of(X, np.ones(60))) == (expected, copies)


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("m", [2, 5, 20])
def test_equal_samples_are_counted_exactly(m, copies):
    """Their distance in an expanded square is not zero but rounding, and far from the origin much of it."""
    X = np.repeat(3.0 * np.random.default_rng(m).normal(size=(100, m)) + 1.0, copies, axis=0)
    problem = DensityProblem.of(X, np.ones(len(X)))
    _, pairs = bandwidth.ties_dominate(replace(problem, unit=problem.silverman))
    assert pairs == 100 * copies * (copies - 1) / 2


def test_close_samples_are_not_equal_ones():
    X = np.random.default_rng(0).normal(size=(100, 2))
    problem = DensityProblem.of(np.concatenate([X, X + 1e-7]), np.ones(200))
    assert bandwidth.ties_dominate(replace(problem, unit=0.3))[1] == 0
    assert bandwidth.ties_dominate(replace(problem, unit=3.0))[1] == 100


def test_scores_that_are_out_of_range_keep_their_order():
    scores = [
        bandwidth._Score(value, log)
        for value, log in [(-2, 900), (-1, 800), (-1, 0), (0, 5), (1, -900), (1, 800), (1, 801)]
    ]
    orders = [score.order for score in scores]
    assert orders == sorted(orders)
    assert np.all(np.isfinite([float(score) for score in scores]))


def test_the_width_in_a_thousand_dimensions():
    X = np.random.default_rng(0).normal(size=(40, 1000))
    found = bandwidth.least_squares_width(DensityProblem.of(X, np.ones(40)))
    # the squared distance of two samples is 2 m, and a kernel must reach the nearest ones
    assert 0.5 < found.width < 2
    assert np.all(np.isfinite(found.scores))


@pytest.mark.parametrize("limit", [40, 1000])
def test_every_rule_is_its_own_search_in_units_of_all_samples(limit):
    """A part of the samples wants a larger width, by the power of their numbers that theory gives."""
    X = np.random.default_rng(0).normal(size=(160, 2))
    problem = DensityProblem.of(X, np.ones(160), 1.0)
    grid = [0.2, 0.4, 0.8]
    part = problem if limit > 160 else problem.part(problem.draw(limit, np.random.default_rng(1)))
    factor = (min(limit, 160) / 160) ** (1 / 6)
    searches = {
        "likelihood": lambda widths: bandwidth.likelihood_width(part, widths),
        "lscv": lambda widths: bandwidth.least_squares_width(part, widths, "exact"),
    }
    for rule, search in searches.items():
        found = bandwidth.parzen_width(problem, rule, grid, limit, np.random.default_rng(1))
        alone = search([width / factor for width in grid])
        np.testing.assert_allclose(found.widths, np.array(alone.widths) * factor, rtol=1e-12)
        assert np.isclose(grid, np.array(found.widths)[:, None]).any(axis=0).all()
        assert found.width == pytest.approx(alone.width * factor, rel=1e-12)
        np.testing.assert_array_equal(found.scores, alone.scores)
    for rule, width in (("silverman", problem.silverman), ("scott", problem.scott), (0.7, 0.7)):
        given = bandwidth.parzen_width(problem, rule, None, limit, np.random.default_rng(1))
        assert (given.width, given.stop) == (width, Stop.GIVEN)
