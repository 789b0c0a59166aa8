"""The leave-one-out error that the learner minimizes: its value by refits, its gradient by differences."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fewkern.arrays import blocks
from fewkern.learn.geometry import Geometry, Rows, coefficients
from fewkern.learn.objective import objective, spectrum_of
from fewkern.learn.policy import POLICY
from fewkern.learn.preparation import Warp
from fewkern.learn.start import ridge_errors
from tests.oracles import fvs

LEAST = 1e-3


def with_least_ridge(ridge):
    return replace(POLICY, model=replace(POLICY.model, least_ridge=ridge))


STEERED = with_least_ridge(LEAST)
AXES = 0.3 * np.eye(4)[:, [0, 1, 3]]
PARTS = ["vectors", "log_scales", "log_widths", "directions", "log_ridge", "parameters"]
# Groups of one, of several sizes, and one with more rows than there are features.
GROUPS = np.array([0] * 14 + [1, 2, 2, 2, 5, 5, 7, 8, 8, 8, 8, 8, 9, 9, 9, 9])


def bent(rng):
    """A warp of two columns, of gaps in the second, and of a table with four levels.

    The third column has two knots, and one of the others has a knot less than the first.
    """
    knots = np.sort(rng.standard_normal((5, 3)), axis=0)
    knots[-1, 1], knots[2:, 2] = knots[-2, 1], knots[1, 2]
    starts, units = rng.standard_normal(5), rng.uniform(0.3, 1.0, 5)
    warp = Warp.identity(knots, starts, units, np.array([False, True, False, True]))
    assert warp.columns.tolist() == [0, 1, 3]
    return warp.moved(0.3 * rng.standard_normal(warp.parameters.shape))


def places_of(rng, n):
    """Where the rows have levels (the places 0 to 3), and gaps (4)."""
    places = np.full((n, 4), -1)
    places[:, 3] = rng.integers(0, 4, n)
    places[rng.random(n) < 0.2, 1] = 4
    return places


def problem(outputs=1, weighted=True, n=30, directions=2, log_ridge=math.log(0.01), warped=True):
    rng = np.random.default_rng(7)
    T, Y = rng.standard_normal((n, 4)), rng.standard_normal((n, outputs))
    weights = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    geometry = Geometry(
        rng.standard_normal((5, 4)),
        0.3 * rng.standard_normal(4) - 0.5,
        0.2 * rng.standard_normal(5),
        0.4 * rng.standard_normal((4, directions)),
        log_ridge,
        bent(rng) if warped else None,
    )
    return Rows(T, Y, weights, AXES, places=places_of(rng, n) if warped else None), geometry


def by_hand(T, warp, cells=None):
    """Every column by the rule of a piecewise linear function, with the outer pieces going on.

    Rows with ``cells`` have levels and gaps; vectors stay where they are in columns of levels.
    """
    out, first = T.copy(), warp.knots.size
    positions = warp.starts + warp.units * warp.parameters[(len(warp.knots) - 1) * warp.knots.shape[1] :]
    for own, a in enumerate(warp.columns):
        if own < warp.knots.shape[1]:
            knots, levels = np.unique(warp.knots[:, own]), np.unique(warp.levels[:, own])
            slopes = np.diff(levels) / np.diff(knots)
            out[:, a] = np.interp(T[:, a], knots, levels)
            out[:, a] += slopes[0] * np.minimum(T[:, a] - knots[0], 0) + slopes[-1] * np.maximum(T[:, a] - knots[-1], 0)
        if cells is not None:
            free = cells.place[:, own] >= first
            out[free, a] = positions[cells.place[free, own] - first]
    return out


def features(rows, geometry):
    """Gaussians, written out, and linear features."""
    scales, directions = np.exp(geometry.log_scales), geometry.directions
    K = np.empty((rows.n, geometry.size))
    T, V = rows.T, geometry.vectors
    if geometry.warp is not None:
        T, V = by_hand(T, geometry.warp, rows.cells(geometry.warp)), by_hand(V, geometry.warp)
    for j in range(geometry.size):
        gap = T - V[j]
        squares = np.sum((gap * scales) ** 2, axis=1) + np.sum((gap @ directions) ** 2, axis=1)
        K[:, j] = np.exp(-0.5 * np.exp(2 * geometry.log_widths[j]) * squares)
    return np.column_stack([K, T @ rows.axes])


def refitted(rows, geometry, ridge, groups):
    """Weighted mean of the squared errors of every row by the fit without its group; ``ridge`` is that of the sum."""
    Z, total = features(rows, geometry), 0.0
    for g in np.unique(groups):
        own = groups == g
        beta = fvs.refit(Z[~own], rows.Y[~own], ridge, rows.weights[~own])
        total += rows.weights[own] @ np.sum((rows.Y[own] - beta[0] - Z[own] @ beta[1:]) ** 2, axis=1)
    return total / rows.weights.sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_value_is_the_error_of_refits(outputs, weighted):
    rows, geometry = problem(outputs, weighted)
    ridge = (LEAST + 0.01) * rows.weights.sum()
    expected = refitted(rows, geometry, ridge, np.arange(rows.n))
    prior = POLICY.model.stiffness * outputs / rows.n * np.sum(geometry.warp.parameters**2)
    assert objective(rows, geometry, STEERED)[0] == pytest.approx(expected + prior, rel=1e-10)
    plain = replace(geometry, warp=None)
    expected = refitted(rows, plain, ridge, np.arange(rows.n))
    assert objective(rows, plain, STEERED)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_gradient_is_that_of_central_differences(outputs, weighted, name):
    rows, geometry = problem(outputs, weighted)
    assert_gradient(rows, geometry, name)
    if name != "parameters":
        assert_gradient(rows, replace(geometry, warp=None), name)


def own_spectrum(rows, geometry):
    """Eigenvalues of the products of the centred features."""
    Z = features(rows, geometry)
    F = (Z - rows.weights @ Z / rows.weights.sum()) * np.sqrt(rows.weights)[:, None]
    return np.linalg.eigvalsh(F.T @ F)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_generalized_error_is_that_of_the_mean_leverage(outputs, weighted):
    rows, geometry = problem(outputs, weighted, n=200)
    spectrum = spectrum_of(rows, geometry, STEERED)
    np.testing.assert_allclose(spectrum, own_spectrum(rows, geometry), rtol=1e-8, atol=1e-10)
    ridge = (LEAST + 0.01) * rows.weights.sum()
    Z = np.column_stack([np.ones(rows.n), features(rows, geometry)])
    root = np.sqrt(rows.weights)[:, None]
    penalty = ridge * np.diag([0.0] + [1.0] * (Z.shape[1] - 1))
    H = (root * Z) @ np.linalg.solve((root * Z).T @ (root * Z) + penalty, (root * Z).T)
    residual = root * rows.Y - H @ (root * rows.Y)
    expected = np.sum(residual**2) / rows.weights.sum() / (1 - np.trace(H) / rows.n) ** 2
    prior = POLICY.model.stiffness * outputs / rows.n * np.sum(geometry.warp.parameters**2)
    assert objective(rows, geometry, STEERED, spectrum)[0] == pytest.approx(expected + prior, rel=1e-9)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_gradient_of_the_generalized_error(outputs, weighted, name):
    rows, geometry = problem(outputs, weighted, n=200)
    spectrum = own_spectrum(rows, geometry)
    assert_gradient(rows, geometry, name, spectrum=spectrum)
    if name != "parameters":
        assert_gradient(rows, replace(geometry, warp=None), name, spectrum=spectrum)


def test_blocks_of_rows_add_up(monkeypatch):
    rows, geometry = problem(3, n=200)
    spectrum = own_spectrum(rows, geometry)
    value, gradient = objective(rows, geometry, STEERED, spectrum)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 7 * 13)
    again, parts = objective(rows, geometry, STEERED, spectrum)
    assert again == pytest.approx(value, rel=1e-12)
    for name in PARTS:
        np.testing.assert_allclose(part_of(parts, name), part_of(gradient, name), rtol=1e-9, atol=1e-12)


def test_few_rows_are_left_out_one_by_one():
    rows, geometry = problem(n=8 * 10)
    assert spectrum_of(rows, geometry, STEERED) is not None
    assert spectrum_of(rows.first(8 * 10 - 1), geometry, STEERED) is None


def test_where_rows_are_many_both_errors_agree():
    rows, geometry = problem(n=20_000, weighted=False)
    value = objective(rows, geometry, STEERED)[0]
    assert objective(rows, geometry, STEERED, own_spectrum(rows, geometry))[0] == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("name", PARTS)
def test_gradient_where_leverages_are_at_their_bound(name):
    """With 10 rows and next to no ridge some rows predict themselves."""
    rows, geometry = problem(1, n=10, log_ridge=math.log(1e-7))
    H = np.column_stack([np.ones(10), features(rows, geometry)]) * np.sqrt(rows.weights)[:, None]
    leverages = np.diag(H @ np.linalg.pinv(H))
    assert (leverages > 0.98).any()
    assert (leverages < 0.98).any()
    assert_gradient(rows, geometry, name, with_least_ridge(1e-8), tolerance=1e-4)


def test_without_directions_there_is_nothing_to_turn():
    rows, geometry = problem(directions=0)
    assert objective(rows, geometry, STEERED)[1].directions.shape == (4, 0)
    assert_gradient(rows, geometry, "vectors")


def part_of(geometry, name):
    return geometry.warp.parameters if name == "parameters" else np.asarray(getattr(geometry, name), dtype=float)


def with_part(geometry, name, value):
    if name == "parameters":
        return replace(geometry, warp=geometry.warp.moved(value))
    return replace(geometry, **{name: float(value) if name == "log_ridge" else value})


def assert_gradient(rows, geometry, name, policy=STEERED, tolerance=1e-6, step=1e-5, spectrum=None):
    value = part_of(geometry, name)
    found, expected = part_of(objective(rows, geometry, policy, spectrum)[1], name), np.empty(value.shape)
    for at in np.ndindex(value.shape):
        ends = []
        for sign in (1, -1):
            moved = value.copy()
            moved[at] += sign * step
            ends.append(objective(rows, with_part(geometry, name, moved), policy, spectrum)[0])
        expected[at] = (ends[0] - ends[1]) / (2 * step)
    assert np.abs(expected).max() > 1e-6
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
def test_errors_of_ridges_are_those_of_refits_without_the_row_or_its_group(outputs, weighted, groups):
    rows, geometry = problem(outputs, weighted)
    ridges, own = (0.3, 3.0), np.arange(rows.n) if groups is None else groups
    policy = replace(POLICY, start=replace(POLICY.start, ridges=ridges))
    for ridge, error in zip(ridges, ridge_errors(replace(rows, groups=groups), geometry, policy), strict=True):
        expected = refitted(rows, geometry, ridge * rows.weights.sum(), own)
        assert error == pytest.approx(expected, rel=1e-8)


def test_the_ridge_is_per_unit_of_weight_and_has_a_floor():
    rows, geometry = problem()
    none, floored = with_least_ridge(0.0), replace(geometry, log_ridge=math.log(LEAST))
    heavy = replace(rows, weights=10 * rows.weights)
    value = objective(rows, geometry, STEERED)[0]
    assert objective(heavy, geometry, STEERED)[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(ridge_errors(heavy, geometry, POLICY), ridge_errors(rows, geometry, POLICY), rtol=1e-10)
    # what the floor adds can be said by the ridge itself; without a ridge the floor is left
    other = replace(geometry, log_ridge=math.log(0.01 + LEAST))
    assert objective(rows, other, none)[0] == pytest.approx(value, rel=1e-10)
    least = replace(geometry, log_ridge=-100.0)
    assert objective(rows, least, STEERED)[0] == pytest.approx(objective(rows, floored, none)[0], rel=1e-10)
    assert objective(rows, least, STEERED)[1].log_ridge == pytest.approx(0.0, abs=1e-30)


@pytest.mark.parametrize("outputs", [1, 3])
def test_coefficients_are_those_of_the_regression(outputs):
    rows, geometry = problem(outputs)
    W, offset = coefficients(rows, geometry, STEERED)
    beta = fvs.refit(features(rows, geometry), rows.Y, (0.01 + LEAST) * rows.weights.sum(), rows.weights)
    np.testing.assert_allclose(W, beta[1:], rtol=1e-8)
    np.testing.assert_allclose(offset, beta[0], rtol=1e-8)


def test_a_warp_that_has_learned_nothing_changes_nothing():
    rows, _ = problem()
    knots = bent(np.random.default_rng(3)).knots
    start = Warp.identity(np.column_stack([knots, knots]), np.zeros(0), np.zeros(0), np.zeros(4, dtype=bool))
    assert start.columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(start(rows.T), rows.T, rtol=1e-14, atol=1e-14)
    flags = np.array([[0.0, -1.0], [1.0, 1.0], [1.0, 1.0]])
    flat = Warp.identity(flags, np.zeros(0), np.zeros(0), np.zeros(2, dtype=bool))
    assert flat.columns.size == 0
    np.testing.assert_array_equal(flat(rows.T[:, :2]), rows.T[:, :2])


def test_rows_know_their_cells():
    """Cells are computed once; rows that are taken keep theirs."""
    rows, geometry = problem()
    part = np.array([4, 2, 20])
    np.testing.assert_array_equal(rows.take(part).warped(geometry.warp), rows.warped(geometry.warp)[part])
    np.testing.assert_allclose(
        rows.warped(geometry.warp), by_hand(rows.T, geometry.warp, rows.cells(geometry.warp)), rtol=1e-12
    )


def test_a_vector_that_begins_at_a_row_is_where_the_row_is():
    """Also at a gap and at a level, which vectors do not have; elsewhere it is the row."""
    rows, geometry = problem()
    warp = geometry.warp
    vectors = rows.as_vectors(warp)
    np.testing.assert_allclose(warp(vectors), rows.warped(warp), rtol=1e-10, atol=1e-12)
    known = rows.cells(geometry.warp).place[:, 1] < warp.knots.size
    assert 0 < known.sum() < rows.n
    np.testing.assert_array_equal(vectors[known, :3], rows.T[known, :3])
    np.testing.assert_array_equal(rows.as_vectors(None), rows.T)


def test_a_warp_moves_levels_from_where_the_rows_at_hand_have_them():
    """The moves are parameters, what they start from is not: a fold has positions of its own."""
    _, geometry = problem()
    warp = geometry.warp
    other = replace(warp, starts=warp.starts + 1.0)
    assert warp.based(other).parameters is warp.parameters
    np.testing.assert_allclose(warp.based(other).free, warp.free + 1.0)


def test_finer_maps_are_the_same_maps():
    rows, geometry = problem()
    finer = geometry.warp.finer(4)
    assert len(finer.knots) == 4 * (len(geometry.warp.knots) - 1) + 1
    np.testing.assert_allclose(finer(geometry.vectors), geometry.warp(geometry.vectors), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows.warped(finer), rows.warped(geometry.warp), rtol=1e-12, atol=1e-12)
