"""FCR-ISE: objective and leave-one-out against the definitions, a falling path, bounds, cross-validation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fewkern.arrays.sampling import plain_folds
from fewkern.core.path import TOLERANCE, Stop
from fewkern.density import integrated
from fewkern.density.choice import choose_floor, choose_step, paired_errors
from fewkern.density.integrated import forward_integrated
from fewkern.density.problem import DensityProblem
from tests.oracles import density as oracle

UNIT = 0.4


def _data(n=80, m=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    X[n // 2 :] += 3.0
    return DensityProblem.of(X, 0.5 + rng.random(n), UNIT)


# Objectives and terms are in units of the square of a kernel at the floor, 1.5 by default.
UNITS = 2 * np.pi * 2 * (1.5 * UNIT) ** 2


def _objective(problem, rows, widths, g):
    """Q of the definition, in the unit of the algorithm."""
    X, w, s = problem.Z, problem.w, len(rows)
    B = [[oracle.normal(X[rows[a]], X[rows[b]], np.hypot(widths[a], widths[b])) for b in range(s)] for a in range(s)]
    v = [
        sum(w[i] * oracle.normal(X[i], X[r], t) for i in range(len(X)) if i != r) / (1 - w[r])
        for r, t in zip(rows, widths)
    ]
    return (g @ np.array(B) @ g - 2 * g @ np.array(v)) * UNITS


@pytest.fixture(scope="module")
def fitted():
    problem = _data()
    return problem, forward_integrated(problem, max_vectors=8)


def test_objective_of_every_step_is_that_of_the_definition(fitted):
    problem, path = fitted
    for step in path.steps:
        g = np.array(step.weights)
        assert step.objective == pytest.approx(_objective(problem, step.rows, step.widths, g), rel=1e-9)


def test_objective_falls_along_the_path(fitted):
    values = [step.objective for step in fitted[1].steps]
    assert len(values) > 3
    assert all(b < a + 1e-12 for a, b in itertools.pairwise(values))


def test_leave_one_out_terms_equal_deletion(fitted):
    problem, path = fitted
    X, w = problem.Z, problem.w
    for step in path.steps[:4]:
        expected = oracle.integrated_leave_one_out(X, w, step.rows, step.widths, np.array(step.weights))
        np.testing.assert_allclose(step.terms, expected * UNITS, rtol=1e-9, atol=1e-10)


def test_widths_stay_inside_the_bounds_and_weights_on_the_simplex(fitted):
    for step in fitted[1].steps:
        assert min(step.widths) >= 1.5 * UNIT * (1 - 1e-12)
        assert max(step.widths) <= 9 * UNIT * (1 + 1e-12)
        assert sum(step.weights) == pytest.approx(1, abs=1e-12)
        assert min(step.weights) > 0
        assert len(set(step.rows)) == len(step.rows)


def test_first_kernel_is_the_best_single_one():
    problem = _data(30)
    path = forward_integrated(problem, max_vectors=1, patience=None)
    table = integrated.width_table(1.5, UNIT)
    best = min(_objective(problem, [j], [s], np.ones(1)) for j in range(30) for s in table)
    assert path.steps[0].objective <= best + 1e-12
    assert (len(path.steps[0].rows), path.stop) == (1, Stop.LIMIT)


def test_insertion_is_the_best_over_all_pairs_and_shares():
    problem = _data(25)
    first = forward_integrated(problem, max_vectors=1, patience=None).steps[0]
    row, width = first.rows[0], first.widths[0]
    table = integrated.width_table(1.5, UNIT)
    best = np.inf
    for j in range(25):
        for s in table:
            if j != row:
                for a in np.linspace(0, 1, 41):
                    best = min(best, _objective(problem, [row, j], [width, s], np.array([1 - a, a])))
    second = forward_integrated(problem, max_vectors=2, patience=None).steps[1]
    # the refit and the widths that follow the insertion can only lower it
    assert second.objective <= best + 1e-12


def test_the_bandwidth_of_a_kernel_is_tuned_within_its_bracket():
    problem = _data(30)
    step = forward_integrated(problem, max_vectors=1, patience=None).steps[0]
    widths = step.widths[0] * np.exp(np.linspace(-0.02, 0.02, 41))
    inside = widths[(widths >= 1.5 * UNIT) & (widths <= 9 * UNIT)]
    lowest = min(_objective(problem, step.rows, [width], np.ones(1)) for width in inside)
    assert step.objective == pytest.approx(lowest, rel=1e-4)


def test_hundreds_of_dimensions_do_not_underflow():
    problem = DensityProblem.of(np.random.default_rng(0).normal(size=(20, 500)), np.ones(20), 1.0)
    path = forward_integrated(problem, max_vectors=3)
    assert all(np.isfinite(step.objective) and np.all(np.isfinite(step.terms)) for step in path.steps)
    assert max(width for step in path.steps for width in step.widths) <= 1.5 * 10 ** (150 / 500)


def test_exchange_lowers_the_objective(monkeypatch):
    better = forward_integrated(_data(), max_vectors=3, patience=None)
    monkeypatch.setattr(integrated._Table, "exchange", lambda self, model: model)
    plain = forward_integrated(_data(), max_vectors=3, patience=None)
    assert better.steps[1].objective <= plain.steps[1].objective + 1e-12
    assert better.steps[-1].objective < plain.steps[-1].objective


@pytest.mark.parametrize("prefer", ["accurate", "balanced", "sparse"])
def test_size_is_the_smallest_within_the_tolerance(fitted, prefer):
    problem, path = fitted
    at, trace = choose_step(path, TOLERANCE[prefer])
    scores = np.array([problem.w @ step.terms for step in path.steps])
    best = path.steps[int(np.argmin(scores))]
    gaps = [step.terms - best.terms for step in path.steps]
    errors = [np.sqrt(problem.w @ (gap - problem.w @ gap) ** 2 * np.sum(problem.w**2)) for gap in gaps]
    good = [len(s.rows) for s, j, e in zip(path.steps, scores, errors) if j <= scores.min() + TOLERANCE[prefer] * e]
    assert len(path.steps[at].rows) == min(good) == trace.setting["n_vectors"]
    if prefer == "accurate":
        assert at == int(np.argmin(scores))
    assert trace.objectives == tuple(step.objective for step in path.steps)
    np.testing.assert_array_equal(path.mixture(at).rows, path.steps[at].rows)


def test_standard_errors_are_those_of_paired_differences():
    w = np.full(4, 0.25)
    best = np.array([0.0, 1.0, 0.0, 1.0])
    error, spread = paired_errors([best + 0.1 + np.array([0.4, -0.4, 0.4, -0.4]), best, best + 0.5], w)
    np.testing.assert_allclose(error, [0.6, 0.5, 1.0])
    np.testing.assert_allclose(spread, [0.2, 0, 0], atol=1e-15)


def test_candidates_limit_the_centers(fitted):
    path = forward_integrated(replace(fitted[0], candidates=np.array([3, 10, 50, 70])))
    assert set(path.steps[-1].rows) <= {3, 10, 50, 70}


def test_blocks_change_nothing(fitted, monkeypatch):
    problem, path = fitted
    monkeypatch.setattr(integrated, "row_blocks", lambda n, _: (slice(i, min(i + 17, n)) for i in range(0, n, 17)))
    for step, again in zip(path.steps, forward_integrated(problem, max_vectors=8).steps, strict=True):
        assert again.rows == step.rows
        np.testing.assert_allclose(again.weights, step.weights, rtol=1e-9)


def test_width_table_keeps_only_what_lies_above_the_floor():
    assert integrated.width_table(1.5, 2.0)[:3] == [3.0, 3.5, 4.0]
    assert integrated.width_table(9.0, 1.0) == [9.0]


def test_cross_validation_scores_are_held_out_errors():
    problem = _data(60)
    X, w = problem.Z, problem.w
    trace = choose_floor(problem, plain_folds(60, 3), floors=(1.5, 2.0), max_vectors=3, tolerance=1.0)
    # two kernels at one floor by hand
    terms, weights = [], []
    for fold in range(3):
        inside = np.arange(60) % 3 != fold
        path = forward_integrated(DensityProblem.of(X[inside], w[inside], UNIT), floor=2.0, max_vectors=3)
        step = path.steps[path.reaching(2)]
        assert len(step.rows) == 2
        centers, g, s = X[inside][list(step.rows)], np.array(step.weights), step.widths
        B = np.array([[oracle.normal(a, b, np.hypot(p, q)) for b, q in zip(centers, s)] for a, p in zip(centers, s)])
        terms.append((g @ B @ g - 2 * oracle.normal_matrix(X[~inside], centers, s) @ g) * 2 * np.pi * UNIT**2)
        weights.append(w[~inside])
    assert trace.axes == {"floor": (1.5, 2.0), "n_vectors": (1, 2, 3)}
    assert trace.error[1, 1] == pytest.approx(np.concatenate(terms) @ np.concatenate(weights), rel=1e-9)
    assert trace.chosen[0] == int(np.argmin(trace.error.min(axis=1)))


@pytest.mark.parametrize("patience", [1, 3, None])
def test_a_path_ends_after_so_many_steps_without_a_better_score(patience):
    problem = _data(n=40)
    path = forward_integrated(problem, max_vectors=12, patience=patience)
    loo = [float(problem.w @ step.terms) for step in path.steps]
    since, best = 0, np.inf
    for k, value in enumerate(loo):
        since, best = (0, value) if value < best else (since + 1, best)
        if patience is not None and k + 1 < len(loo):
            assert since < patience
    if path.stop == Stop.ERROR:
        assert since == patience
    assert len(path.steps) <= 36


def test_a_path_ends_at_its_size():
    path = forward_integrated(_data(), max_vectors=2, patience=None)
    assert path.stop == Stop.LIMIT
    assert len(path.steps[-1].rows) == 2
    assert path.reaching(1) == 0
    assert path.reaching(99) == len(path.steps) - 1
    calls = []
    forward_integrated(_data(), max_vectors=2, patience=None, step=calls.append)
    assert calls == [len(step.rows) for step in path.steps]
