"""FCR-ISE: objective and leave-one-out against the definitions, a falling path, bounds, cross-validation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fewkern.arrays.folds import plain_folds
from fewkern.core.path import TOLERANCE, Stop
from fewkern.density import integrated
from fewkern.density.choice import paired_errors
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


def test_exchange_does_not_raise_the_objective():
    plain = forward_integrated(_data(), max_vectors=3, patience=None, exchange=False)
    better = forward_integrated(_data(), max_vectors=3, patience=None)
    assert better.steps[1].objective <= plain.steps[1].objective + 1e-12
    assert all(step.exchanged == 0 for step in plain.steps)


@pytest.mark.parametrize("prefer", ["accurate", "balanced", "sparse"])
def test_size_is_the_smallest_within_the_tolerance(fitted, prefer):
    problem, path = fitted
    at, trace = path.choose(TOLERANCE[prefer])
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
    trace = integrated.choose_floor(problem, plain_folds(60, 3), floors=(1.5, 2.0), max_vectors=3)
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


def table_of(problem=None, floor=1.5):
    return integrated._Table.of(problem or _data(), floor)


def model_of(table, count=3):
    model = None
    for _ in range(count):
        found = table.insertion(model)
        model = table.fit([*(model.kernels if model else ()), table.kernel(found)])
    return model


def q_of(table, kernels, weights):
    """Q of kernels and weights, written out in the unit of the table."""
    Z = table.problem.Z
    B = np.array(
        [
            [table.number(((Z[a.row] - Z[b.row]) ** 2).sum(), np.hypot(a.width, b.width)) for b in kernels]
            for a in kernels
        ]
    )
    v = np.array([table.target(k, k.width) for k in kernels])
    g = np.asarray(weights)
    return g @ B @ g - 2 * g @ v


@pytest.mark.parametrize("floor", [1.25, 1.5, 2.0, 12.0])
def test_a_table_goes_from_the_floor_to_the_widest(floor):
    table = table_of(floor=floor)
    assert table.low == pytest.approx(floor * UNIT)
    assert table.high == pytest.approx(max(9.0, floor) * UNIT)
    assert table.widths[0] == pytest.approx(table.low)
    assert np.all(np.diff(table.widths) > 0.05 * floor * UNIT)
    assert table.widths[-1] == pytest.approx(table.high)
    # the square of a kernel at the floor is one
    assert table.squares[0] == pytest.approx(1.0)
    np.testing.assert_allclose(table.squares, (table.low / table.widths) ** 2, rtol=1e-12)


def test_in_many_dimensions_the_widest_kernel_is_still_a_number():
    problem = DensityProblem.of(np.random.default_rng(0).normal(size=(20, 500)), np.ones(20), 1.0)
    table = integrated._Table.of(problem, 1.5)
    assert table.high == pytest.approx(1.5 * 10 ** (150 / 500))
    assert np.all(table.widths <= table.high)
    assert np.all(table.squares > 0)


def test_targets_leave_the_own_sample_out():
    table = table_of()
    problem = table.problem
    for candidate in (0, 17):
        for q in (0, 3):
            kernel = table.kernel(integrated._Insertion(candidate, q, 0.0))
            row, width = kernel.row, float(table.widths[q])
            D = ((problem.Z - problem.Z[row]) ** 2).sum(axis=1)
            values = np.exp(-D / (2 * width**2)) * (problem.unit / width) ** 2
            expected = (problem.w @ values - problem.w[row] * values[row]) / (1 - problem.w[row])
            assert table.V[candidate, q] == pytest.approx(expected, rel=1e-12)
            assert table.target(kernel, width) == pytest.approx(expected, rel=1e-12)
            assert kernel.v == table.V[candidate, q]
            assert kernel.width == width
            assert np.isinf(kernel.D[row])
            assert np.isfinite(np.delete(kernel.D, row)).all()


def test_weights_of_a_model_are_the_best_ones():
    table = table_of()
    model = model_of(table, 4)
    best = q_of(table, model.kernels, model.weights)
    assert model.objective == pytest.approx(best, rel=1e-9)
    assert sum(model.weights) == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        g = np.asarray(model.weights) + 0.02 * rng.normal(size=len(model.weights))
        g = np.clip(g, 0, None)
        assert q_of(table, model.kernels, g / g.sum()) >= best - 1e-12


def test_a_kernel_without_weight_leaves():
    table = table_of()
    # wide kernels, of which a few explain what all of them do
    kernels = [table.kernel(integrated._Insertion(candidate, 9, 0.0)) for candidate in range(0, 80, 8)]
    model = table.fit(kernels)
    assert len(model.kernels) < 10
    assert all(weight > 1e-8 for weight in model.weights)
    assert sum(model.weights) == pytest.approx(1.0)
    assert model.B.shape == (len(model.kernels),) * 2
    np.testing.assert_array_equal(model.v, [kernel.v for kernel in model.kernels])
    assert model.objective == pytest.approx(q_of(table, model.kernels, model.weights), rel=1e-6)


def test_inner_products_are_those_of_kernels():
    table = table_of()
    kernel = table.kernel(integrated._Insertion(5, 2, 0.0))
    for candidate in (5, 30):
        for q in (0, 4):
            D = float(((table.centers[candidate] - table.centers[5]) ** 2).sum())
            expected = table.number(D, np.hypot(kernel.width, float(table.widths[q])))
            assert kernel.P[candidate, q] == pytest.approx(expected, rel=1e-12)


def test_the_gain_of_an_insertion_is_what_a_line_search_finds():
    table = table_of()
    model = model_of(table, 2)
    gains = table._gains(model)
    before = q_of(table, model.kernels, model.weights)
    for candidate, q in ((3, 0), (50, 5), (70, 11)):
        new = table.kernel(integrated._Insertion(candidate, q, 0.0))
        shares = np.linspace(0, 1, 2001)
        values = [q_of(table, [*model.kernels, new], [*(np.asarray(model.weights) * (1 - a)), a]) for a in shares]
        assert gains[candidate, q] == pytest.approx(min(values) - before, abs=1e-6 * abs(before))
    # what is in the model does not enter again
    assert table.insertion(model).candidate not in model.candidates


def test_a_width_search_goes_down_and_stays_inside():
    table = table_of()
    model = model_of(table, 3)
    for j in range(3):
        search = integrated._WidthSearch(table, model.kernels, model.weights, j)
        found = search.best()

        def q(width, j=j):
            kernels = [replace(k, width=width) if i == j else k for i, k in enumerate(model.kernels)]
            return q_of(table, kernels, model.weights)

        assert q(found.width) <= q(model.kernels[j].width) + 1e-12
        assert table.low <= found.width <= table.high
        assert found.v == pytest.approx(table.target(found, found.width))
        np.testing.assert_allclose(found.P, table.products(found.D_candidates, found.width))
        # the loss of the search is Q over twice the share, up to a constant
        a, b = np.log(found.width), np.log(model.kernels[j].width)
        share = model.weights[j]
        difference = (search.loss(a) - search.loss(b)) * share
        assert difference == pytest.approx(q(found.width) - q(model.kernels[j].width), abs=1e-10)
        # within the bracket there is nothing much lower
        wide = np.exp(np.clip(b + np.linspace(-0.15, 0.15, 301), np.log(table.low), np.log(table.high)))
        lowest = min(q(width) for width in wide)
        assert q(found.width) <= lowest + 0.02 * (q(np.exp(b)) - lowest) + 1e-9


def test_the_vertex_of_a_parabola():
    table = table_of()
    model = model_of(table, 2)
    search = integrated._WidthSearch(table, model.kernels, model.weights, 0)
    search.loss = lambda t: 2 * (t - 0.3) ** 2 + 1
    assert search.vertex(0.0, 0.5, 1.0) == pytest.approx(0.3)
    assert search.vertex(0.0, 0.1, 1.0) == pytest.approx(0.3)
    # outside of the bracket its end, and none where there is no minimum or no bracket
    assert search.vertex(0.4, 0.5, 1.0) == pytest.approx(0.4)
    assert search.vertex(-1.0, -0.5, 0.2) == pytest.approx(0.2)
    search.loss = lambda t: -(t**2)
    assert search.vertex(-1.0, 0.0, 1.0) is None
    assert search.vertex(0.0, 0.0, 1.0) is None
    assert search.vertex(0.0, 1.0, 1.0) is None


def test_an_exchange_puts_a_better_kernel_in_place_of_a_worse_one():
    table = table_of()
    exchanged = 0
    for candidate in range(0, 80, 8):
        bad = table.fit([table.kernel(integrated._Insertion(c, 4, 0.0)) for c in (candidate, 79 - candidate)])
        better, count = table.exchange(bad)
        assert better.objective == pytest.approx(q_of(table, better.kernels, better.weights), rel=1e-9)
        assert (better.objective < bad.objective) == (count > 0)
        exchanged += count > 0
    assert exchanged >= 5
    again, none = table.exchange(better)
    assert again.objective <= better.objective
    assert none <= 2
    single = model_of(table, 1)
    assert table.exchange(single) == (single, 0)


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
    assert forward_integrated(_data(), max_vectors=3, exchange=False).steps[-1].exchanged == 0
