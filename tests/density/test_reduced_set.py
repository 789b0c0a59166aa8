"""RSDE: its programme against the definition, and its cross-validation by hand."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern.arrays.sampling import plain_folds
from fewkern.core.path import Stop
from fewkern.density.problem import DensityProblem
from fewkern.density.simplex import (
    CV_PARZEN_BANDWIDTHS,
    active_set,
    reduced_set,
    reduced_set_by_updates,
    reduced_set_width,
)
from tests.oracles import density as oracle


def _data(n=50, seed=0):
    rng = np.random.default_rng(seed)
    w = 0.5 + rng.random(n)
    return DensityProblem.of(rng.normal(size=(n, 2)), w, 0.4)


def test_weights_solve_the_programme_of_the_definition():
    problem = _data()
    X = problem.Z
    B = oracle.normal_matrix(X, X, np.sqrt(2) * 0.6)
    v = problem.w @ oracle.normal_matrix(X, X, 0.6)
    expected = active_set(B, v).weights
    found = reduced_set(problem, 0.6)
    np.testing.assert_array_equal(found.mixture.rows, np.flatnonzero(expected))
    np.testing.assert_allclose(found.mixture.weights, expected[expected > 0], atol=1e-9)
    assert (found.solution.stop, found.solution.gap <= 1e-8) == (Stop.CONVERGED, True)


def test_candidates_and_multiplicative_updates():
    problem = _data()
    some = np.array([1, 5, 20, 33])
    assert set(reduced_set(replace(problem, candidates=some), 0.6).mixture.rows) <= set(some)
    exact, slow = reduced_set(problem, 0.6).mixture, reduced_set_by_updates(problem, 0.6).mixture
    assert len(exact.rows) <= len(slow.rows)
    assert slow.weights.sum() == pytest.approx(1, abs=1e-12)
    assert slow.weights.min() > 1e-4 * 0.99


def test_cross_validated_error_by_hand():
    problem = _data(30)
    X, w, folds = problem.Z, problem.w, np.arange(30) % 3
    path = reduced_set_width(problem, plain_folds(30, 3))
    assert path.axes["bandwidth"] == tuple(0.4 * factor for factor in CV_PARZEN_BANDWIDTHS)
    assert path.chosen == (int(np.argmin(path.error)),)
    width = 0.4 * CV_PARZEN_BANDWIDTHS[3]
    total = 0.0
    for fold in range(3):
        inside = folds != fold
        fit = reduced_set(DensityProblem.of(X[inside], w[inside], 0.4), width).mixture
        centres = X[inside][fit.rows]
        square = fit.weights @ oracle.normal_matrix(centres, centres, np.sqrt(2) * width) @ fit.weights
        held_out = oracle.normal_matrix(X[~inside], centres, width) @ fit.weights
        total += np.sum(w[~inside] * (square - 2 * held_out))
    assert path.error[3] == pytest.approx(total * 2 * np.pi * 0.4**2, rel=1e-9)
