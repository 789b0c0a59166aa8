"""The search for better vectors, and what begins and ends it."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern.learn import compare as comparing
from fewkern.learn.compare import Kind, Sizes, teacher_of
from fewkern.learn.geometry import Rows, coefficients
from fewkern.learn.learner import linear_axes
from fewkern.learn.moves import Search, move
from fewkern.learn.objective import objective
from fewkern.learn.policy import POLICY
from fewkern.learn.start import Start, choose_start


def test_a_search_ends_half_way_where_rows_held_out_see_no_gain():
    rng = np.random.default_rng(0)
    T = rng.standard_normal((200, 2))
    rows = Rows(T, np.sin(2 * T[:, :1]) * T[:, 1:], np.ones(200), linear_axes(T, POLICY))
    start, judged = choose_start(rows, POLICY, 0).geometry(rows, 6)[0], []

    def moved(promising):
        found = move(rows, start, Search(8, 0.0, lambda half: judged.append(half) or promising), POLICY)
        return objective(rows, found, POLICY)[0]

    ended, went_on = moved(False), moved(True)
    first, again = (objective(rows, half, POLICY)[0] for half in judged)
    assert first == again == ended
    assert went_on < ended < objective(rows, start, POLICY)[0]


@pytest.mark.parametrize("factor", [0.01, 30.0])
def test_steps_are_taken_in_units_of_the_metric(factor):
    """With the metric in other units every step leads to the same Gaussians."""
    rng = np.random.default_rng(0)
    T = rng.standard_normal((150, 3))
    rows = Rows(T, np.sin(2 * T[:, :1]) * T[:, 1:2], np.ones(150), linear_axes(T, POLICY))
    start = replace(choose_start(rows, POLICY, 0).geometry(rows, 6)[0], directions=rng.normal(0.0, 0.1, (3, 2)))
    scaled_rows = replace(rows, T=T * factor, axes=rows.axes / factor)
    scaled_start = replace(
        start,
        vectors=start.vectors * factor,
        log_scales=start.log_scales - np.log(factor),
        directions=start.directions / factor,
    )
    found, scaled = move(rows, start, Search(8, 0.0), POLICY), move(scaled_rows, scaled_start, Search(8, 0.0), POLICY)
    assert np.abs(found.vectors - start.vectors).max() > 0.1
    np.testing.assert_allclose(scaled.vectors / factor, found.vectors, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scaled.directions * factor, found.directions, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("frequency", "sizes"), [(0.2, (10, 40)), (2.0, (10, 40, 160))])
def test_more_samples_are_tried_as_long_as_they_gain(frequency, sizes):
    X, noise = np.split(np.random.default_rng(0).normal(size=(400, 3)), [2], axis=1)
    Y = np.sin(frequency * X[:, :1]) * np.cos(frequency * X[:, 1:]) + 0.02 * noise
    rows = Rows(X, (Y - Y.mean()) / Y.std(), np.ones(400), linear_axes(X, POLICY))
    start = choose_start(rows, POLICY, 0)
    _, every = teacher_of(rows, start, Sizes((10, 40, 160), (4,), 1, 160), POLICY)
    assert tuple(candidate.size for candidate in every) == sizes


def test_a_rung_is_left_half_way_where_it_has_not_reached_the_least_error(monkeypatch):
    T = np.random.default_rng(0).normal(size=(200, 2))
    Y = np.sin(2.0 * T[:, :1])
    rows = Rows(T, (Y - Y.mean()) / Y.std(), np.ones(200), 0.3 * np.eye(2))
    error, asked = {4: 0.5, 20: 0.4, 32: 0.2, 64: 0.3}, []

    def stay(rows, geometry, search, policy):
        if search.least_gain is None:  # a rung; distilled vectors have no such question
            asked.append((geometry.size, search.promising(geometry)))
        return geometry

    monkeypatch.setattr(comparing, "move", stay)
    start, sizes = Start(np.zeros(2), 1e-3, 0), comparing.Sizes((20,), (4, 32, 64), 1, 20)
    list(comparing.climb(rows, start, sizes, POLICY, lambda geometry: error[geometry.size]))
    assert asked == [(4, True), (32, True), (64, False)]


def test_directions_are_the_leading_ones_of_the_gradients_of_the_function():
    rng = np.random.default_rng(0)
    T = rng.standard_normal((150, 5))
    rows = Rows(T, np.sin(T @ rng.normal(size=(5, 2))), np.ones(150), 0.3 * np.eye(5))
    geometry = replace(choose_start(rows, POLICY, 0).geometry(rows, 8)[0], log_widths=rng.normal(0.0, 0.3, 8))
    geometry = replace(geometry, log_scales=rng.normal(-1.0, 0.7, 5))
    W = coefficients(rows, geometry, POLICY)[0][:8]

    def values(T):
        return geometry.columns(T) @ W

    steps = 1e-5 * np.eye(5)
    gradients = np.concatenate([(values(T + step) - values(T - step)).T[:, :, None] for step in steps], axis=2) / 2e-5
    strengths, axes = np.linalg.eigh(np.einsum("cni,cnj->ij", gradients, gradients))
    count = POLICY.candidates.directions
    found = comparing.with_directions(rows, geometry, POLICY, rng).directions
    expected = axes[:, -count:] * np.sqrt(strengths[-count:] / strengths[-1])
    unit = np.linalg.norm(found, axis=0).max()
    np.testing.assert_allclose(found @ found.T / unit**2, expected @ expected.T, atol=1e-6)


@pytest.mark.parametrize(
    ("n", "fixed", "most", "still", "ladder", "taught"),
    [
        (1000, None, None, (20, 80, 300, 800), (4, 8, 16, 32, 64, 128, 256), [800]),
        (1000, None, 24, (20, 24, 80, 300, 800), (4, 8, 16, 24), [80, 300, 800]),
        (1000, None, 16, (16, 20, 80, 300, 800), (4, 8, 16), [20, 80, 300, 800]),
        (1000, 10, None, (10, 20, 80, 300, 800), (4, 8, 10), [20, 80, 300, 800]),
        (40, None, None, (20, 32), (4, 8, 16), []),
        (7, None, None, (5,), (2, 4), []),
    ],
)
def test_sizes(n, fixed, most, still, ladder, taught):
    found = Sizes.of(n, 1, POLICY, fixed, most)
    assert (found.still, found.ladder) == (still, ladder)
    assert [m for m in found.still if not found.asked(Kind.STILL, m)] == taught  # they only teach


@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_leading_axes_are_those_of_the_singular_value_decomposition(shape):
    A = 0.1 * np.random.default_rng(0).normal(size=shape)
    strengths, axes = comparing.leading_axes(A, 3)
    _, values, V = np.linalg.svd(A)
    np.testing.assert_allclose(strengths, values[2::-1] ** 2)
    np.testing.assert_allclose(np.abs(np.sum(V[2::-1].T * axes, axis=0)), 1)


def test_folds_climb_no_higher_than_the_one_before():
    sizes = Sizes.of(1000, 1, POLICY, None, None)
    assert sizes.up_to(16).ladder == (4, 8, 16)
    assert sizes.up_to(2).ladder == (4,)
