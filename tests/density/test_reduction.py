"""RSDE: its programme against the definition, and its cross-validation by hand."""

import numpy as np
import pytest

from fewkern.density.reduction import CV_FACTORS, reduced_set, reduced_set_width
from fewkern.density.simplex import active_set
from tests.oracles import density as oracle


def _data(n=50, seed=0):
    rng = np.random.default_rng(seed)
    w = 0.5 + rng.random(n)
    return rng.normal(size=(n, 2)), w / w.sum()


def test_weights_solve_the_programme_of_the_definition():
    X, w = _data()
    B = oracle.normal_matrix(X, X, np.sqrt(2) * 0.6)
    v = w @ oracle.normal_matrix(X, X, 0.6)
    expected = active_set(B, v).weights
    found = reduced_set(X, w, 0.6, np.arange(50))
    np.testing.assert_array_equal(found.indices, np.flatnonzero(expected))
    np.testing.assert_allclose(found.weights, expected[expected > 0], atol=1e-9)
    assert (found.stop, found.gap <= 1e-8) == ("optimal", True)


def test_candidates_and_multiplicative_updates():
    X, w = _data()
    some = np.array([1, 5, 20, 33])
    assert set(reduced_set(X, w, 0.6, some).indices) <= set(some)
    exact, slow = reduced_set(X, w, 0.6, np.arange(50)), reduced_set(X, w, 0.6, np.arange(50), exact=False)
    assert len(exact.indices) <= len(slow.indices)
    assert slow.weights.sum() == pytest.approx(1, abs=1e-12)
    assert slow.weights.min() > 1e-4 * 0.99


def test_cross_validated_error_by_hand():
    X, w = _data(30)
    folds = np.arange(30) % 3
    scores = reduced_set_width(X, w, 0.4, np.arange(30), folds)
    assert list(scores) == [0.4 * factor for factor in CV_FACTORS]
    width = 0.4 * CV_FACTORS[3]
    total = 0.0
    for fold in range(3):
        inside = folds != fold
        fit = reduced_set(X[inside], w[inside] / w[inside].sum(), width, np.arange(inside.sum()))
        centres = X[inside][fit.indices]
        square = fit.weights @ oracle.normal_matrix(centres, centres, np.sqrt(2) * width) @ fit.weights
        held_out = oracle.normal_matrix(X[~inside], centres, width) @ fit.weights
        total += np.sum(w[~inside] * (square - 2 * held_out))
    assert scores[width] == pytest.approx(total * 2 * np.pi * 0.4**2, rel=1e-9)
