"""FCR-ISE: objective, leave-one-out, insertion and cross-validation against their definitions."""

import numpy as np
import pytest

from experiments import fcr_integrated as integrated
from experiments.fcr_integrated import choose_floor, entry_bandwidths, forward_integrated
from fewkern.arrays.sampling import plain_folds
from fewkern.core.path import Stop
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


def _of(mixture):
    return mixture.rows, mixture.bandwidths, mixture.weights


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
    return problem, forward_integrated(problem, max_vectors=8)[0]


def test_objective_of_every_step_is_that_of_the_definition(fitted):
    problem, steps = fitted
    for step in steps:
        assert step.objective == pytest.approx(_objective(problem, *_of(step.mixture)), rel=1e-9)


def test_leave_one_out_terms_equal_deletion(fitted):
    problem, steps = fitted
    for step in steps[:4]:
        expected = oracle.integrated_leave_one_out(problem.Z, problem.w, *_of(step.mixture))
        np.testing.assert_allclose(step.terms, expected * UNITS, rtol=1e-9, atol=1e-10)


def test_first_kernel_is_the_best_single_one():
    problem = _data(30)
    steps, stop = forward_integrated(problem, max_vectors=1, patience=None)
    table = entry_bandwidths(1.5, UNIT)
    best = min(_objective(problem, [j], [s], np.ones(1)) for j in range(30) for s in table)
    assert steps[0].objective <= best + 1e-12
    assert (steps[0].size, stop) == (1, Stop.LIMIT)
    # its bandwidth is tuned within a bracket
    rows, (found,), g = _of(steps[0].mixture)
    near = found * np.exp(np.linspace(-0.02, 0.02, 41))
    inside = near[(near >= 1.5 * UNIT) & (near <= 9 * UNIT)]
    assert steps[0].objective == pytest.approx(min(_objective(problem, rows, [s], g) for s in inside), rel=1e-4)


def test_cross_validation_scores_are_held_out_errors(monkeypatch):
    problem = _data(60)
    X, w = problem.Z, problem.w
    monkeypatch.setattr(integrated, "FLOORS_IN_PARZEN_BANDWIDTHS", (1.5, 2.0))
    path = choose_floor(problem, plain_folds(60, 3), max_vectors=3, tolerance=1.0)
    # two kernels at one floor by hand
    terms, weights = [], []
    for fold in range(3):
        inside = np.arange(60) % 3 != fold
        part = DensityProblem.of(X[inside], w[inside], UNIT)
        steps, _ = forward_integrated(part, floor=2.0, max_vectors=3)
        rows, s, g = _of(next(step for step in steps if step.size == 2).mixture)
        centers = part.Z[rows]
        B = np.array([[oracle.normal(a, b, np.hypot(p, q)) for b, q in zip(centers, s)] for a, p in zip(centers, s)])
        terms.append((g @ B @ g - 2 * oracle.normal_matrix(X[~inside], centers, s) @ g) * 2 * np.pi * UNIT**2)
        weights.append(w[~inside])
    assert path.axes == {"floor": (1.5, 2.0), "n_vectors": (1, 2, 3)}
    assert path.error[1, 1] == pytest.approx(np.concatenate(terms) @ np.concatenate(weights), rel=1e-9)
    assert path.chosen[0] == int(np.argmin(path.error.min(axis=1)))
