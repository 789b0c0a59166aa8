"""The parts of the interior point, one by one: starts, Newton's equations, steps, stops and the exact end."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.margins import hinge
from fewkern.margins.hinge import HingeProblem, minimize_hinge
from fewkern.margins.spaces import Rows

BIAS = pytest.mark.parametrize("bias", [True, False])


def problem(seed=0, n=12, q=3, bias=True, scale=1.0):
    rng = np.random.default_rng(seed)
    s = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return HingeProblem(
        Rows(scale * rng.normal(size=(n, q)) + 0.5 * s[:, None]),
        s,
        rng.uniform(0.5, 1.5, n),
        rng.uniform(0.5, 2.0, n),
        bias,
        None if bias else rng.normal(size=q),
    )


def some_point(hinges, seed=1):
    rng = np.random.default_rng(seed)
    n, q = len(hinges.C), hinges.points.width
    a = hinges.C * rng.uniform(0.2, 0.8, n)
    b = float(rng.normal()) if hinges.bias else 0.0
    return hinge._Point(rng.normal(size=q), b, a, hinges.C - a, rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n))


def samples(hinges):
    return hinges.points.times(np.eye(hinges.points.width))


# Starts


@BIAS
@pytest.mark.parametrize("box", [1.0, 1e6])
def test_a_cold_start_is_central(bias, box):
    hinges = problem(bias=bias)
    hinges = replace(hinges, C=box * hinges.C)
    point = hinge._cold_start(hinges)
    mu = hinges.size * hinges.C.mean()
    np.testing.assert_allclose(point.a * point.t, mu, rtol=1e-12)
    np.testing.assert_allclose(point.u * point.xi, mu, rtol=1e-12)
    np.testing.assert_allclose(point.a + point.u, hinges.C, rtol=1e-9)
    surplus = hinges.signs * (samples(hinges) @ point.w) - hinges.targets
    np.testing.assert_allclose(point.t - point.xi, surplus, rtol=1e-9, atol=1e-9 * point.t.max())
    assert point.b == 0.0


@BIAS
@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("box", [1.0, 1e6])
def test_a_cold_start_is_the_best_on_its_ray(bias, scale, box):
    """Of all multiples, up to one, of the equal multipliers its ``w`` has the largest dual value."""
    hinges = problem(3, bias=bias, scale=scale)
    hinges = replace(hinges, C=box * hinges.C)
    size = 1 + np.abs(hinges.targets).max()
    equal = np.minimum(hinges.C / 2, 5 * size)
    ray = samples(hinges).T @ (hinges.signs * equal)
    shares = np.linspace(0, 1, 100_001)
    dual = shares * (hinges.targets @ equal) - 0.5 * ((hinges.g + shares[:, None] * ray) ** 2).sum(axis=1)
    best = shares[np.argmax(dual)]
    np.testing.assert_allclose(hinge._cold_start(hinges).w, hinges.g + best * ray, atol=2e-5 * np.abs(ray).max())


def test_a_cold_start_does_not_go_against_the_linear_term():
    """Where every multiple of the multipliers lowers the dual value, none of it is taken."""
    hinges = problem(3, bias=False)
    equal = np.minimum(hinges.C / 2, 5 * hinges.size)
    ray = samples(hinges).T @ (hinges.signs * equal)
    along = replace(hinges, linear=100 * ray)
    np.testing.assert_allclose(hinge._cold_start(along).w, along.g)


@BIAS
def test_a_warm_start_keeps_its_direction_and_leaves_the_bounds(bias):
    hinges = problem(bias=bias)
    hinges = replace(hinges, C=hinges.C * 10)
    found = minimize_hinge(hinges)
    point = hinge._warm_start(hinges, found.alpha)
    np.testing.assert_allclose(point.w, found.w, atol=1e-7)
    assert point.b == pytest.approx(found.bias, abs=1e-6)
    room = 0.3 * np.minimum(hinges.C, found.alpha.max())
    np.testing.assert_allclose(point.a, np.clip(found.alpha, room, hinges.C - room))
    np.testing.assert_allclose(point.a + point.u, hinges.C)
    surplus = hinges.signs * (samples(hinges) @ point.w + point.b) - hinges.targets
    np.testing.assert_allclose(point.t - point.xi, surplus, atol=1e-12)
    np.testing.assert_allclose(np.minimum(point.t, point.xi), 0.5 * hinges.size)


def test_multipliers_that_are_all_zero_are_no_start():
    hinges = problem()
    cold, none = minimize_hinge(hinges), minimize_hinge(hinges, np.zeros(12))
    assert cold.n_iter == none.n_iter
    np.testing.assert_array_equal(cold.alpha, none.alpha)


# Residuals and Newton's equations


@BIAS
def test_residuals_are_those_of_the_conditions(bias):
    hinges = problem(bias=bias)
    point = some_point(hinges)
    here = hinge._Residuals.at(hinges, point)
    X, s = samples(hinges), hinges.signs
    np.testing.assert_allclose(here.w, point.w - hinges.g - X.T @ (s * point.a))
    assert here.b == pytest.approx(s @ point.a if bias else 0.0)
    margin = s * (X @ point.w + point.b)
    np.testing.assert_allclose(here.p, margin + point.xi - point.t - hinges.targets)
    value = point.w @ point.w / 2 - hinges.g @ point.w + hinges.C @ np.maximum(hinges.targets - margin, 0)
    combined = hinges.g + X.T @ (s * point.a)
    dual = hinges.targets @ point.a - combined @ combined / 2
    assert (here.primal, here.dual) == (pytest.approx(value), pytest.approx(dual))
    gap = abs(value - dual) / (abs(value) + abs(dual))
    off, unbalanced = np.linalg.norm(here.w), abs(here.b)
    relative = max(off / np.linalg.norm(point.w - hinges.g), unbalanced / point.a.sum())
    assert here.error == pytest.approx(max(gap, min(relative, off + unbalanced)))


@BIAS
@pytest.mark.parametrize("dense", [True, False])
def test_a_move_solves_newtons_equations(bias, dense, monkeypatch):
    """All five, written out: stationarity in ``w`` and ``b``, the margins, and both complementarities."""
    if not dense:
        monkeypatch.setattr(hinge, "_DENSE_DIMENSION", 2)
    hinges = problem(bias=bias)
    point = some_point(hinges)
    here = hinge._Residuals.at(hinges, point)
    newton = hinge._Newton.at(hinges, here)
    assert (newton.factor is None) != dense
    rng = np.random.default_rng(5)
    c1, c2 = rng.normal(size=(2, 12))
    move = newton.move(c1, c2)
    X, s = samples(hinges), hinges.signs
    np.testing.assert_allclose(move.w - X.T @ (s * move.a), -here.w, atol=1e-9)
    if bias:
        assert s @ move.a == pytest.approx(-here.b, abs=1e-9)
    else:
        assert move.b == 0.0
    np.testing.assert_allclose(s * (X @ move.w + move.b) + move.xi - move.t, -here.p, atol=1e-9)
    np.testing.assert_allclose(point.a * move.t + point.t * move.a, c1, atol=1e-9)
    np.testing.assert_allclose(point.u * move.xi - point.xi * move.a, c2, atol=1e-9)


def test_conjugate_gradients_end_at_once_where_there_is_nothing_to_solve():
    hinges = problem()
    newton = hinge._Newton.at(hinges, hinge._Residuals.at(hinges, some_point(hinges)))
    np.testing.assert_array_equal(newton._conjugate_gradients(np.zeros(3)), np.zeros(3))


def test_conjugate_gradients_take_as_many_steps_as_there_are_dimensions(monkeypatch):
    hinges = problem()
    newton = hinge._Newton.at(hinges, hinge._Residuals.at(hinges, some_point(hinges)))
    calls = []
    product = hinge._Newton._product
    monkeypatch.setattr(hinge._Newton, "_product", lambda self, v: calls.append(1) or product(self, v))
    right = np.array([1.0, -2.0, 0.5])
    solved = newton._conjugate_gradients(right)
    np.testing.assert_allclose(newton._product(solved), right, rtol=1e-10)
    assert len(calls) <= 3 + 2


# Steps


def test_the_longest_step_stops_at_the_first_zero():
    hinges = problem()
    point = some_point(hinges)
    still = hinge._Move(point.w * 0, 0.0, point.a * 0, point.t * 0, point.xi * 0)
    assert point.longest(still) == pytest.approx(1 / 0.99)
    for field, value in (("t", point.t), ("xi", point.xi), ("a", point.a)):
        change = np.zeros(12)
        change[4] = -4 * value[4]
        assert point.longest(replace(still, **{field: change})) == pytest.approx(0.25)
    # a multiplier that grows takes from its counterpart
    change = np.zeros(12)
    change[7] = 5 * point.u[7]
    assert point.longest(replace(still, a=change)) == pytest.approx(0.2)


def test_a_moved_point_stays_in_its_box_and_mu_is_the_mean_product():
    hinges = problem()
    point = some_point(hinges)
    rng = np.random.default_rng(2)
    move = hinge._Move(rng.normal(size=3), 0.7, rng.normal(size=12), rng.normal(size=12), rng.normal(size=12))
    moved = point.moved(move, 0.1)
    np.testing.assert_allclose(moved.a + moved.u, hinges.C)
    np.testing.assert_allclose(moved.a - point.a, 0.1 * move.a)
    np.testing.assert_allclose(moved.t - point.t, 0.1 * move.t)
    np.testing.assert_allclose(moved.xi - point.xi, 0.1 * move.xi)
    np.testing.assert_allclose(moved.w - point.w, 0.1 * move.w)
    assert moved.b - point.b == pytest.approx(0.07)
    assert point.mu == pytest.approx(np.mean(np.concatenate([point.a * point.t, point.u * point.xi])))


@BIAS
@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_mehrotras(seed, bias):
    """Predictor, centering by the cube of what it gains, corrector; against the whole system, solved as one."""
    hinges = problem(seed, bias=bias)
    point = some_point(hinges, seed)
    here = hinge._Residuals.at(hinges, point)
    X, s, (n, q) = samples(hinges), hinges.signs, (12, 3)

    def solve(c1, c2):
        """Unknowns w, b, a, t, xi."""
        A = np.zeros((q + 1 + 3 * n, q + 1 + 3 * n))
        w, b, a, t, xi = np.split(np.arange(len(A)), np.cumsum([q, 1, n, n]))
        A[w, w], A[np.ix_(w, a)] = 1, -(s[:, None] * X).T
        A[b, a] = s
        if not bias:
            A[b] = 0
            A[b, b] = 1
        rows = a
        A[np.ix_(rows, w)], A[rows, b], A[rows, xi], A[rows, t] = s[:, None] * X, s * bias, 1, -1
        A[t, t], A[t, a] = point.a, point.t
        A[xi, xi], A[xi, a] = point.u, -point.xi
        x = np.linalg.solve(A, np.concatenate([-here.w, [-here.b], -here.p, c1, c2]))
        return hinge._Move(x[w], float(x[b][0]), x[a], x[t], x[xi])

    def room(move):
        pairs = [(point.a, move.a), (point.t, move.t), (point.u, -move.a), (point.xi, move.xi)]
        return min([1 / 0.99] + [float(-x[i] / dx[i]) for x, dx in pairs for i in range(n) if dx[i] < 0])

    ahead = solve(-point.a * point.t, -point.u * point.xi)
    reached = point.moved(ahead, min(1.0, room(ahead)))
    aim = (reached.mu / point.mu) ** 3 * point.mu
    move = solve(aim - point.a * point.t - ahead.a * ahead.t, aim - point.u * point.xi + ahead.a * ahead.xi)
    expected = point.moved(move, min(1.0, 0.99 * room(move)))
    found = hinge._next_point(hinges, here)
    for field in ("w", "b", "a", "u", "t", "xi"):
        np.testing.assert_allclose(getattr(found, field), getattr(expected, field), atol=1e-8, err_msg=field)


# Stops


def errors_of(monkeypatch, errors):
    """Residuals with these errors, one after the other, at points that do not move."""
    hinges = problem()
    here, left = hinge._Residuals.at(hinges, some_point(hinges)), iter(errors)
    monkeypatch.setattr(hinge._Residuals, "at", lambda problem, point: replace(here, point=point, error=next(left)))
    monkeypatch.setattr(hinge, "_next_point", lambda problem, here: here.point)
    monkeypatch.setattr(
        hinge,
        "_exact_or_clean",
        lambda problem, best, stop: hinge.HingeSolution(None, 0.0, None, 0.0, 0.0, best.error, 0, stop),
    )
    return minimize_hinge(hinges, tol=1e-9)


def test_without_progress_near_the_end_it_gives_up_soon(monkeypatch):
    found = errors_of(monkeypatch, [1e-3, 1e-7, 2e-7, 1e-7, 3e-7, 1e-9])
    assert (found.stop, found.n_iter, found.error) == (Stop.PRECISION, 5, 1e-7)


@pytest.mark.parametrize(("waits", "expected"), [(19, (Stop.CONVERGED, 1e-9)), (20, (Stop.PRECISION, 1e-3))])
def test_without_progress_far_from_the_end_it_goes_on(waits, expected, monkeypatch):
    found = errors_of(monkeypatch, [1e-3] + waits * [1e-2] + [1e-9])
    assert (found.stop, found.error) == expected
    assert found.n_iter == 21


def test_progress_resets_the_patience(monkeypatch):
    found = errors_of(monkeypatch, [1e-7, 2e-7, 2e-7, 0.9e-7, 2e-7, 2e-7, 0.8e-7, 1e-9])
    assert (found.stop, found.n_iter) == (Stop.CONVERGED, 8)


def test_an_indefinite_normal_matrix_ends_it(monkeypatch):
    def fail(problem, here):
        raise ValueError("not positive definite")

    monkeypatch.setattr(hinge, "_next_point", fail)
    found = minimize_hinge(problem())
    assert (found.stop, found.n_iter) == (Stop.PRECISION, 1)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
def test_few_iterations_are_enough(C):
    """Interior points need 10 to 30 steps, whatever the box; a worse start or step would need more."""
    counts = [minimize_hinge(replace(p, C=C * p.C)).n_iter for p in (problem(seed, 40, 4) for seed in range(6))]
    assert max(counts) <= 20


# The exact end


@BIAS
def test_the_exact_solution_has_no_gap(bias):
    hinges = problem(4, n=30, bias=bias)
    found = minimize_hinge(hinges)
    assert found.stop == "converged"
    assert abs(found.primal - found.dual) <= 1e-13 * abs(found.primal)
    free = (found.alpha > 0) & (found.alpha < hinges.C)
    margin = hinges.signs * (samples(hinges) @ found.w + found.bias) - hinges.targets
    assert 0 < free.sum() <= hinges.points.width + bias
    np.testing.assert_allclose(margin[free], 0, atol=1e-12)
    if bias:
        assert abs(hinges.signs @ found.alpha) < 1e-12


def test_no_exact_solution_without_free_multipliers_or_with_too_many(monkeypatch):
    hinges = problem(4, n=30)
    alpha = minimize_hinge(hinges).alpha
    free = int(((alpha > 0) & (alpha < hinges.C)).sum())
    assert hinge._crossover(hinges, np.where(alpha > 0, hinges.C, 0.0)) is None
    monkeypatch.setattr(hinge, "_CROSSOVER", free)
    assert hinge._crossover(hinges, alpha) is not None
    monkeypatch.setattr(hinge, "_CROSSOVER", free - 1)
    assert hinge._crossover(hinges, alpha) is None


def test_no_exact_solution_outside_of_the_box():
    hinges = problem(4, n=30)
    found = minimize_hinge(hinges)
    surplus = hinges.signs * (samples(hinges) @ found.w + found.bias) - hinges.targets
    # a sample far beyond its margin, or far short of it, is taken for one at the kink
    for k in (np.argmax(surplus), np.argmin(surplus)):
        wrong = found.alpha.copy()
        wrong[k] = 0.5 * hinges.C[k]
        assert hinge._crossover(hinges, wrong) is None


def test_repeated_samples_share_their_multiplier(monkeypatch):
    Z = np.repeat(np.array([[-1.0, 0.2], [1.0, -0.3], [1.5, 1.0]]), [1, 3, 1], axis=0)
    s = np.array([-1.0, 1.0, 1.0, 1.0, 1.0])
    hinges = HingeProblem(Rows(Z), s, np.ones(5), np.full(5, 10.0))
    found = minimize_hinge(hinges)
    np.testing.assert_allclose(found.alpha[1:4], found.alpha[1:4].mean(), rtol=1e-9)
    assert abs(found.primal - found.dual) < 1e-12
    monkeypatch.setattr(hinge, "_SINGULAR_CROSSOVER", 3)
    assert hinge._crossover(hinges, found.alpha) is None


def test_the_nearer_of_bound_and_kink_decides():
    a, C = np.array([0.1, 0.1, 0.9, 0.9, 0.5]), np.ones(5)
    surplus = np.array([0.2, 0.1, -0.2, -0.1, 0.0])
    np.testing.assert_allclose(hinge._partition(a, C, surplus), [0.0, 0.1, 1.0, 0.9, 0.5])
    # the size of a multiplier is that of the largest one where the box is huge
    np.testing.assert_allclose(hinge._partition(a, 100 * C, surplus), [0.0, 0.1, 0.9, 0.9, 0.5])


def test_cleaning_sets_on_bounds_and_keeps_the_balance():
    s = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    a = np.array([1e-9, 0.4, 1 - 1e-9, 0.6, 0.8])
    hinges = HingeProblem(Rows(np.eye(5)), s, np.ones(5), np.ones(5))
    clean = hinge._clean(hinges, a, 1e-7)
    assert clean[0] == 0.0
    assert s @ clean == pytest.approx(0.0, abs=1e-15)
    assert np.all((clean >= 0) & (clean <= 1))
    np.testing.assert_allclose(clean, [0.0, 0.4, 1.0, 0.6, 0.8], atol=1e-8)
    free = replace(hinges, bias=False)
    np.testing.assert_array_equal(hinge._clean(free, a, 1e-7), [0.0, 0.4, 1.0, 0.6, 0.8])
    np.testing.assert_array_equal(hinge._clean(free, a, 1e-10), a)


def test_cleaning_in_a_huge_box_goes_by_the_size_of_the_multipliers():
    a = np.array([1e-9, 4e-3, 5e-3])
    hinges = HingeProblem(Rows(np.eye(3)), np.ones(3), np.ones(3), np.full(3, 1e9), bias=False)
    np.testing.assert_array_equal(hinge._clean(hinges, a, 1e-6), [0.0, 4e-3, 5e-3])
    np.testing.assert_array_equal(hinge._clean(hinges, a, 1e-7), a)


@pytest.mark.parametrize("more", ["up", "down"])
def test_cleaning_makes_the_larger_side_smaller(more):
    s = np.array([1.0, 1.0, -1.0])
    a = np.array([0.5, 0.5, 0.5]) if more == "up" else np.array([0.1, 0.1, 0.8])
    hinges = HingeProblem(Rows(np.eye(3)), s, np.ones(3), np.ones(3))
    clean = hinge._clean(hinges, a, 0.0)
    expected = [0.25, 0.25, 0.5] if more == "up" else [0.1, 0.1, 0.2]
    np.testing.assert_allclose(clean, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_where_no_exact_solution_is_found_multipliers_near_a_bound_are_set_on_it(dtype, monkeypatch):
    monkeypatch.setattr(hinge, "_crossover", lambda problem, a: None)
    base = problem(4, n=30)
    fields = [np.asarray(x, dtype=dtype) for x in (samples(base), base.signs, base.targets, base.C)]
    hinges = HingeProblem(Rows(fields[0]), *fields[1:])
    found = minimize_hinge(hinges, tol=1e-9 if dtype == np.float64 else 1e-4)
    inside = (found.alpha > 0) & (found.alpha < hinges.C)
    assert 0 < inside.sum() <= 12
    assert abs(hinges.signs @ found.alpha) < (1e-12 if dtype == np.float64 else 1e-4)
    np.testing.assert_allclose(
        found.w, samples(base).T @ (base.signs * found.alpha), atol=1e-12 if dtype == np.float64 else 1e-4
    )


def test_an_exact_solution_that_is_worse_is_not_taken(monkeypatch):
    hinges = problem(4, n=30)
    right = minimize_hinge(hinges)
    monkeypatch.setattr(hinge, "_crossover", lambda problem, a: replace(right, primal=right.dual + 1e-3))
    found = minimize_hinge(hinges)
    assert found.primal - found.dual < 1e-6 * found.primal


def test_cleaning_that_costs_too_much_is_not_done(monkeypatch):
    """With a huge box the iterate itself may be all there is."""
    monkeypatch.setattr(hinge, "_crossover", lambda problem, a: None)
    hinges = problem(4, n=30)
    iterate = {}
    exact = hinge._exact_or_clean

    def note(problem, best, stop):
        iterate["best"] = best
        return exact(problem, best, stop)

    monkeypatch.setattr(hinge, "_exact_or_clean", note)
    monkeypatch.setattr(HingeProblem, "solution", lambda self, a, b=None: replace(found, error=1.0))
    found = hinge.HingeSolution(np.zeros(3), 0.0, np.zeros(30), 1.0, 0.0, 1.0, 0, Stop.CONVERGED)
    result = minimize_hinge(hinges)
    np.testing.assert_array_equal(result.alpha, iterate["best"].point.a)
    np.testing.assert_array_equal(result.w, iterate["best"].point.w)
    assert result.stop == "converged"


@pytest.mark.parametrize("seed", range(5))
def test_the_best_bias_is_a_minimizer_with_ties(seed):
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(15) < 0.5, 1.0, -1.0)
    short, C = rng.integers(-2, 3, 15).astype(float), rng.integers(1, 4, 15).astype(float)

    def value(b):
        return np.sum(C * np.maximum(short - s * b, 0))

    b = hinge._best_bias(s, short, C)
    assert value(b) == min(value(x) for x in s * short)
    assert replace(problem(), signs=s, C=C).best_bias(short) == b
    assert replace(problem(bias=False), signs=s, C=C).best_bias(short) == 0.0


def test_the_bias_of_one_sided_samples_is_their_last_break():
    ones = np.ones(4)
    assert hinge._best_bias(ones, np.array([3.0, 1.0, 2.0, 0.0]), ones) == 3.0
    assert hinge._best_bias(-ones, np.array([3.0, 1.0, 2.0, 0.0]), ones) == -3.0


def test_a_cold_start_of_short_samples_takes_no_more_than_all_of_its_ray():
    hinges = problem(3)
    short = replace(hinges, points=Rows(1e-3 * samples(hinges)))
    equal = np.minimum(short.C / 2, 5 * short.size)
    np.testing.assert_allclose(hinge._cold_start(short).w, samples(short).T @ (short.signs * equal), rtol=1e-9)
