"""Parzen widths: scores against the definition term by term, grids, ties."""

import numpy as np
import pytest

from fewkern.density import bandwidth
from tests.oracles import density as oracle


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    w = rng.random(40)
    return rng.normal(size=(40, 2)), w / w.sum()


def test_least_squares_scores_equal_the_double_sum(data):
    X, w = data
    widths = [0.2, 0.5, 1.0]
    scores = bandwidth.least_squares_scores(X, w, widths) / (2 * np.pi * 0.2**2)
    np.testing.assert_allclose(scores, [oracle.lscv(X, w, s) for s in widths], rtol=1e-11)


def test_approximate_scores_equal_the_printed_right_side(data):
    X, _ = data
    widths = [0.3, 0.7]
    scores = bandwidth.least_squares_scores(X, np.full(40, 1 / 40), widths, "approximate") / (2 * np.pi * 0.3**2)
    np.testing.assert_allclose(scores, [oracle.lscv_approximate(X, s) for s in widths], rtol=1e-11)


def test_blocks_do_not_change_the_scores(data, monkeypatch):
    X, w = data
    whole = bandwidth.least_squares_scores(X, w, [0.4]), bandwidth.likelihood_scores(X, w, [0.4])
    monkeypatch.setattr(bandwidth, "row_blocks", lambda n, _: (slice(i, min(i + 7, n)) for i in range(0, n, 7)))
    np.testing.assert_allclose(bandwidth.least_squares_scores(X, w, [0.4]), whole[0], rtol=1e-12)
    np.testing.assert_allclose(bandwidth.likelihood_scores(X, w, [0.4]), whole[1], rtol=1e-12)


def test_likelihood_scores_equal_the_definition(data):
    X, w = data
    widths = [0.2, 0.5, 1.0]
    scores = bandwidth.likelihood_scores(X, w, widths)
    np.testing.assert_allclose(scores, [oracle.likelihood_cv(X, w, s) for s in widths], rtol=1e-11)


@pytest.mark.parametrize(
    ("rule", "score"),
    [
        (bandwidth.least_squares_width, lambda X, w, s: oracle.lscv(X, w, s)),
        (bandwidth.likelihood_width, lambda X, w, s: oracle.likelihood_cv(X, w, s)),
    ],
)
def test_the_width_is_the_minimiser_on_the_default_grid(data, rule, score):
    X, w = data
    found = rule(X, w)
    grid = np.asarray(bandwidth.default_grid(X, w))
    assert found.status == "inside"
    assert len(grid) == 30
    assert found.width == grid[np.argmin([score(X, w, s) for s in grid])]


def test_rules_of_thumb_on_the_data_s_own_scale():
    X = 7.0 * np.random.default_rng(0).normal(size=(100, 3)) + 50
    w = np.full(100, 0.01)
    mean_deviation = np.sqrt(X.var(axis=0).mean())
    assert bandwidth.silverman_width(X, w) == pytest.approx(mean_deviation * (4 / (5 * 100)) ** (1 / 7))
    assert bandwidth.scott_width(X, w) == pytest.approx(mean_deviation * 100 ** (-1 / 7))


@pytest.mark.parametrize("factors", [(0.001, 0.01), (30.0, 300.0)])
def test_a_grid_that_misses_the_minimum_grows_towards_it(data, factors):
    X, w = data
    best = bandwidth.least_squares_width(X, w).width
    found = bandwidth.least_squares_width(X, w, list(best * np.geomspace(*factors, 20)))
    assert found.status == "inside"
    assert found.width == pytest.approx(best, rel=0.15)
    assert np.all(np.diff(found.widths) > 0)


def test_a_grid_hopelessly_far_off_ends_at_its_edge(data):
    X, w = data
    found = bandwidth.least_squares_width(X, w, list(np.geomspace(1e4, 2e4, 3)))
    assert found.status == "edge"
    assert found.width == found.widths[0]


def test_one_width_is_taken_as_it_is(data):
    X, w = data
    found = bandwidth.least_squares_width(X, w, [0.5])
    assert (found.width, found.status) == (0.5, "inside")


def test_duplicates_that_drive_the_width_to_zero_are_named():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 2, axis=0)
    w = np.full(60, 1 / 60)
    found = bandwidth.least_squares_width(X, w)
    assert (found.status, found.tied_pairs) == ("duplicates", 30)
    assert found.width == min(bandwidth.default_grid(X, w))


@pytest.mark.parametrize(("copies", "expected"), [(1, False), (4, False), (5, True)])
def test_ties_dominate_exactly_when_the_inequality_says_so(copies, expected):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    X[:copies] = X[-copies:]
    n, t, m = 60, copies, 4
    assert (4 * t / (n * (n - 1)) > 2 ** (-m / 2) * (n + 2 * t) / n**2) is expected
    assert bandwidth.ties_dominate(X, np.full(60, 1 / 60)) == (expected, copies)
