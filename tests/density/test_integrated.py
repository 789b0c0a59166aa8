"""FCR-ISE: objective and leave-one-out against the definitions, a falling path, bounds, cross-validation."""

import itertools

import numpy as np
import pytest

from fewkern.density import integrated, integrated_cv
from tests.oracles import density as oracle

UNIT = 0.4


def _data(n=80, m=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    X[n // 2 :] += 3.0
    w = 0.5 + rng.random(n)
    return X, w / w.sum()


def _objective(X, w, rows, widths, g, m=2):
    """Q of the definition, in the unit of the algorithm."""
    s = len(rows)
    B = [[oracle.normal(X[rows[a]], X[rows[b]], np.hypot(widths[a], widths[b])) for b in range(s)] for a in range(s)]
    v = [
        sum(w[i] * oracle.normal(X[i], X[r], t) for i in range(len(X)) if i != r) / (1 - w[r])
        for r, t in zip(rows, widths)
    ]
    return (g @ np.array(B) @ g - 2 * g @ np.array(v)) * (2 * np.pi * UNIT**2) ** (m / 2)


@pytest.fixture(scope="module")
def fitted():
    X, w = _data()
    return X, w, integrated.forward_integrated(X, w, UNIT, np.arange(len(X)), max_vectors=8)


def test_objective_of_every_step_is_that_of_the_definition(fitted):
    X, w, fit = fitted
    for step in fit.trace:
        g = np.array(step.weights)
        assert step.objective == pytest.approx(_objective(X, w, step.indices, step.widths, g), rel=1e-9)


def test_objective_falls_along_the_path(fitted):
    _, _, fit = fitted
    values = [step.objective for step in fit.trace]
    assert len(values) > 3
    assert all(b < a + 1e-12 for a, b in itertools.pairwise(values))


def test_leave_one_out_terms_equal_deletion(fitted):
    X, w, fit = fitted
    for step, terms in zip(fit.trace[:4], fit.loo_terms):
        expected = oracle.integrated_leave_one_out(X, w, step.indices, step.widths, np.array(step.weights))
        np.testing.assert_allclose(terms, expected * 2 * np.pi * UNIT**2, rtol=1e-9, atol=1e-10)
        assert step.loo == pytest.approx(w @ expected * 2 * np.pi * UNIT**2, rel=1e-9)


def test_widths_stay_inside_the_bounds_and_weights_on_the_simplex(fitted):
    _, _, fit = fitted
    for step in fit.trace:
        assert min(step.widths) >= 1.5 * UNIT * (1 - 1e-12)
        assert max(step.widths) <= 9 * UNIT * (1 + 1e-12)
        assert sum(step.weights) == pytest.approx(1, abs=1e-12)
        assert min(step.weights) > 0
        assert len(set(step.indices)) == len(step.indices)


def test_first_kernel_is_the_best_single_one():
    X, w = _data(30)
    fit = integrated.forward_integrated(X, w, UNIT, np.arange(30), max_vectors=1, size="max")
    table = integrated.width_table(1.5, UNIT)
    best = min(_objective(X, w, [j], [s], np.ones(1)) for j in range(30) for s in table)
    assert fit.trace[0].objective <= best + 1e-12
    assert (len(fit.indices), fit.stop) == (1, "limit")


def test_insertion_is_the_best_over_all_pairs_and_shares():
    X, w = _data(25)
    candidates = np.arange(25)
    fit = integrated.forward_integrated(X, w, UNIT, candidates, max_vectors=1, size="max")
    row, width = int(fit.indices[0]), float(fit.widths[0])
    table = integrated.width_table(1.5, UNIT)
    best = np.inf
    for j in candidates:
        for s in table:
            if j != row:
                for a in np.linspace(0, 1, 41):
                    best = min(best, _objective(X, w, [row, j], [width, s], np.array([1 - a, a])))
    second = integrated.forward_integrated(X, w, UNIT, candidates, max_vectors=2, size="max").trace[1]
    # the refit and the widths that follow the insertion can only lower it
    assert second.objective <= best + 1e-12


def test_exchange_does_not_raise_the_objective():
    X, w = _data()
    plain = integrated.forward_integrated(X, w, UNIT, np.arange(80), max_vectors=3, size="max", exchange=False)
    better = integrated.forward_integrated(X, w, UNIT, np.arange(80), max_vectors=3, size="max")
    assert better.trace[1].objective <= plain.trace[1].objective + 1e-12
    assert all(step.exchanged == 0 for step in plain.trace)


@pytest.mark.parametrize("size", ["loo", "loo-1se", "max"])
def test_sizes(fitted, size):
    X, w, _ = fitted
    fit = integrated.forward_integrated(X, w, UNIT, np.arange(len(X)), max_vectors=8, size=size)
    scores = [step.loo for step in fit.trace]
    if size == "max":
        assert fit.selected == len(fit.trace) - 1
    elif size == "loo":
        assert fit.selected == int(np.argmin(scores))
    else:
        assert fit.selected <= int(np.argmin(scores))
    np.testing.assert_array_equal(fit.indices, fit.trace[fit.selected].indices)


def test_one_standard_error_takes_the_first_model_that_is_close_enough():
    w = np.full(4, 0.25)
    best = np.array([0.0, 1.0, 0.0, 1.0])
    assert integrated.one_standard_error([best + 0.1 + np.array([0.4, -0.4, 0.4, -0.4]), best], w) == 0
    assert integrated.one_standard_error([best + 0.5, best], w) == 1


def test_candidates_limit_the_centres(fitted):
    X, w, _ = fitted
    fit = integrated.forward_integrated(X, w, UNIT, np.array([3, 10, 50, 70]))
    assert set(fit.indices.tolist()) <= {3, 10, 50, 70}


def test_blocks_change_nothing(fitted, monkeypatch):
    X, w, fit = fitted
    monkeypatch.setattr(integrated, "row_blocks", lambda n, _: (slice(i, min(i + 17, n)) for i in range(0, n, 17)))
    again = integrated.forward_integrated(X, w, UNIT, np.arange(len(X)), max_vectors=8)
    np.testing.assert_array_equal(again.indices, fit.indices)
    np.testing.assert_allclose(again.weights, fit.weights, rtol=1e-9)


def test_width_table_keeps_only_what_lies_above_the_floor():
    assert integrated.width_table(1.5, 2.0)[:3] == [3.0, 3.5, 4.0]
    assert integrated.width_table(9.0, 1.0) == [9.0]


def test_cross_validation_scores_are_held_out_errors():
    X, w = _data(60)
    folds = np.arange(60) % 3
    found = integrated_cv.cross_validate(X, w, UNIT, np.arange(60), folds, gammas=(1.5, 2.0), max_vectors=3, patience=2)
    # the first step of one gamma by hand
    terms, weights = [], []
    for fold in range(3):
        inside = folds != fold
        w_in = w[inside] / w[inside].sum()
        fit = integrated.forward_integrated(X[inside], w_in, UNIT, np.arange(inside.sum()), gamma=2.0, max_vectors=3)
        step = fit.trace[0]
        centres, g = X[inside][list(step.indices)], np.array(step.weights)
        s = step.widths
        B = np.array([[oracle.normal(a, b, np.hypot(p, q)) for b, q in zip(centres, s)] for a, p in zip(centres, s)])
        terms.append((g @ B @ g - 2 * oracle.normal_matrix(X[~inside], centres, s) @ g) * 2 * np.pi * UNIT**2)
        weights.append(w[~inside])
    expected = np.concatenate(terms) @ np.concatenate(weights)
    assert found.scores[2.0][0] == pytest.approx(expected, rel=1e-9)
    assert found.gamma == min(found.scores, key=lambda gamma: min(found.scores[gamma]))
    assert 1 <= found.steps <= 3
