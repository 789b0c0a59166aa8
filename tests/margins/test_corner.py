"""Hinges of many rows: rounded corners, and the exact solution near them."""

import array_api_strict
import numpy as np
import pytest

from fewkern.margins import corner
from fewkern.margins.corner import Descent, Narrowing, Plane, corner_of, mean_hinge, minimize_many, rounded_hinges
from fewkern.margins.hinge import HingeProblem, minimize_hinge
from fewkern.margins.problems import tube_problem
from fewkern.margins.spaces import Rows


def two_classes(seed=0, n=400, q=8, share=0.5, shift=1.0, C=1.0):
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(n) < share, 1.0, -1.0)
    X = rng.normal(size=(n, q))
    X[:, 0] += shift * s
    return HingeProblem(Rows(X - X.mean(axis=0)), s, np.ones(n), C * rng.uniform(0.5, 1.5, n))


def tube(n=400, q=8):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, q))
    return tube_problem(X[:, 0] + 0.3 * rng.normal(size=n), np.ones(n), 0.1).on(Rows(X - X.mean(axis=0)))


def at(point, mu=0.3):
    return Plane(point[:-1], float(point[-1]), mu)


def test_derivatives_of_rounded_hinges():
    problem, point = two_classes(), np.random.default_rng(2).normal(size=9)
    here, h = rounded_hinges(problem, at(point)), 1e-6
    for k in range(9):
        step = h * np.eye(9)[k]
        up, down = rounded_hinges(problem, at(point + step)), rounded_hinges(problem, at(point - step))
        assert (up.value - down.value) / (2 * h) == pytest.approx(here.slope[k], rel=1e-6)
        np.testing.assert_allclose((up.slope - down.slope) / (2 * h), here.curvature[:, k], rtol=2e-2, atol=5.0)
    assert here.value == pytest.approx(float(problem.C @ np.maximum(shortfall(problem, point), 0)), rel=0.05)


def shortfall(problem, point):
    return problem.shortfall(point[:-1]) - problem.signs * point[-1]


def test_rounded_hinges_of_parts_are_added():
    problem, plane = two_classes(), at(np.linspace(-1, 1, 9))
    whole = rounded_hinges(problem, plane).with_length(plane.w)
    parts = [
        HingeProblem(problem.points.subset(rows), problem.signs[rows], problem.targets[rows], problem.C[rows])
        for rows in (np.arange(150), np.arange(150, 150), np.arange(150, 400))
    ]
    one, none, two = (rounded_hinges(part, plane) for part in parts)
    together = (one + none + two).with_length(plane.w)
    assert together.value == pytest.approx(whole.value, rel=1e-13)
    np.testing.assert_allclose(together.slope, whole.slope, rtol=1e-12)
    np.testing.assert_allclose(together.curvature, whole.curvature, atol=1e-10)


def test_a_descent_ends_where_the_slope_vanishes():
    problem = two_classes()
    descent = Descent(Plane(np.zeros(8), 0.0, 1.5), Narrowing(last=0.1, factor=5.0, rows=8))
    for _ in range(50):
        descent.look(rounded_hinges(problem, descent.trial))
        if descent.done:
            break
    assert descent.done
    assert descent.found == (descent.best, descent.value)
    assert descent.best.mu == 0.1
    found = rounded_hinges(problem, descent.best).with_length(descent.best.w)
    assert np.linalg.norm(found.slope) < 1e-5 * problem.C.sum()
    exact = minimize_hinge(problem)
    assert found.value == pytest.approx(exact.primal, rel=2e-2)


@pytest.mark.parametrize(
    "problem",
    [
        two_classes(),
        two_classes(share=0.05),
        two_classes(shift=6.0),
        two_classes(shift=0.0, share=0.3),
        two_classes(C=1e4),
        two_classes(C=1e-4),
        two_classes(n=120, q=150),
        tube(),
    ],
    ids=["plain", "rare", "separable", "nothing", "hard", "soft", "wide", "tube"],
)
def test_many_rows_give_the_solution_of_the_interior_point(problem, monkeypatch):
    monkeypatch.setattr(corner, "_MANY", 50)
    monkeypatch.setattr(corner, "_WIDE", 2)
    monkeypatch.setattr(corner, "_SOME", 60)
    want, found = minimize_hinge(problem), minimize_many(problem)
    assert found.error < 1e-8
    assert found.primal == pytest.approx(want.primal, rel=1e-8)
    np.testing.assert_allclose(found.w, want.w, atol=1e-4 * max(1.0, np.linalg.norm(want.w)))
    assert np.all((found.alpha >= 0) & (found.alpha <= problem.C))
    assert abs(problem.signs @ found.alpha) <= 1e-7 * found.alpha.sum() + 1e-12


@pytest.mark.parametrize("band", [3.0, 1.5])
def test_most_rows_are_in_no_program(band, monkeypatch):
    monkeypatch.setattr(corner, "_AT_CORNER", band)  # of a narrow band some are missing, and join
    problem, sizes = two_classes(n=3000, q=60), []
    original = corner.minimize_hinge

    def watched(own, *rest):
        sizes.append(int(own.C.shape[0]))
        return original(own, *rest)

    monkeypatch.setattr(corner, "minimize_hinge", watched)
    found = minimize_many(problem)
    assert found.primal == pytest.approx(original(problem).primal, rel=1e-9)
    assert sizes
    assert max(sizes) < 600


def test_what_is_not_found_is_left_to_the_interior_point(monkeypatch):
    monkeypatch.setattr(corner, "_MANY", 50)
    monkeypatch.setattr(corner, "_WIDE", 2)
    monkeypatch.setattr(corner, "_JOINS", 0)
    problem = two_classes()
    assert minimize_many(problem).primal == pytest.approx(minimize_hinge(problem).primal, rel=1e-9)


def test_a_corner_that_no_row_is_at_is_not_solved():
    problem = two_classes()
    descent = Descent(Plane(np.zeros(8), 0.0, 0.1), Narrowing(last=0.1, factor=5.0, rows=8))
    for _ in range(50):
        descent.look(rounded_hinges(problem, descent.trial))
        if descent.done:
            break
    assert descent.done
    assert descent.found is None


def test_a_value_at_its_rounding_is_a_solution():
    problem = two_classes()
    descent = Descent(Plane(np.zeros(8), 0.0, 1.5), Narrowing(last=1.5, factor=5.0, rows=8, small=0.0))
    for _ in range(100):
        descent.look(rounded_hinges(problem, descent.trial))
        if descent.done:
            break
    assert descent.found is not None
    slope = rounded_hinges(problem, descent.best).with_length(descent.best.w).slope
    assert np.linalg.norm(slope) < 1e-6 * problem.C.sum()


def test_numbers_that_overflow_are_no_solution():
    problem = two_classes()
    descent = Descent(Plane(np.full(8, np.inf), 0.0, 1.5), Narrowing(last=1.5, factor=5.0, rows=8))
    with np.errstate(all="ignore"):
        for _ in range(20):
            descent.look(rounded_hinges(problem, descent.trial))
    assert descent.done
    assert descent.found is None


def test_corners_get_narrower_as_long_as_rows_are_left():
    how = Narrowing(last=0.1, factor=5.0, rows=10)
    assert how.after(1.0, 50) == 0.2
    assert how.after(1.0, 49) is None
    assert how.after(0.2, 20) == 0.1
    assert how.after(0.1, 1000) is None


def test_the_corner_of_so_many_rows():
    problem, plane = two_classes(), at(np.linspace(-1, 1, 9))
    mu = corner_of(problem, plane, 30)
    assert rounded_hinges(problem, Plane(plane.w, plane.b, mu)).count == 30
    assert np.abs(shortfall(problem, np.linspace(-1, 1, 9))).max() == corner_of(problem, plane, 10**6)


def test_the_mean_hinge():
    assert mean_hinge(np.array([1.0, -1.0]), np.ones(2), np.ones(2)) == 1.0
    assert mean_hinge(np.array([1.0, -1.0, -1.0, -1.0]), np.ones(4), np.ones(4)) == 0.5


def test_the_same_on_the_strict_array_api(monkeypatch):
    monkeypatch.setattr(corner, "_MANY", 50)
    monkeypatch.setattr(corner, "_WIDE", 2)
    problem = two_classes(n=200)
    as_strict = array_api_strict.asarray
    strict = HingeProblem(
        Rows(as_strict(problem.points.A)), *(as_strict(x) for x in (problem.signs, problem.targets, problem.C))
    )
    want, found = minimize_many(problem), minimize_many(strict)
    assert found.primal == pytest.approx(want.primal, rel=1e-10)
    np.testing.assert_allclose(np.asarray(found.w), want.w, atol=1e-6)
