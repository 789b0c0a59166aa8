"""Rows that are hard to believe: exact predictions without them, and planted errors found."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score

from fewkern import suspects
from fewkern.learn import suspects as module
from fewkern.learn.geometry import Rows, features
from fewkern.learn.policy import POLICY
from fewkern.learn.start import Start, left_out_residuals


def planted(n=400, share=0.1):
    X, y = make_moons(n, noise=0.15, random_state=0)
    wrong = np.random.default_rng(1).random(n) < share
    return X, np.where(wrong, 1 - y, y), wrong


def refitted(Z, Y, ridge, out):
    """Ridge regression with a constant, without the rows ``out``: their residuals."""
    mean, level = Z[~out].mean(axis=0), Y[~out].mean(axis=0)
    F = Z[~out] - mean
    W = np.linalg.solve(F.T @ F + ridge * np.eye(Z.shape[1]), F.T @ (Y[~out] - level))
    return Y[out] - (Z[out] - mean) @ W - level


@pytest.mark.parametrize("units", [np.arange(60), np.arange(60) // 4, np.arange(60) % 7])
def test_residuals_are_those_of_models_fitted_without_the_row_or_its_group(units):
    rng = np.random.default_rng(0)
    T, Y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    groups = units if len(np.unique(units)) < 60 else None
    rows = Rows(T, Y - Y.mean(axis=0), np.ones(60), 0.3 * np.eye(3), groups)
    geometry = Start(np.zeros(3), 1e-3, 0).at(T[:10])
    policy = replace(POLICY, start=replace(POLICY.start, ridges=(1e-1, 1e-3)))
    ridge, residuals = left_out_residuals(rows, geometry, policy)
    assert ridge == 1e-1  # the targets are noise
    for unit in np.unique(units):
        out = units == unit
        expected = refitted(features(rows, geometry), rows.Y, ridge * 60, out)
        np.testing.assert_allclose(residuals[out], expected, rtol=1e-7, atol=1e-10)


def test_planted_labels_come_first():
    X, y, wrong = planted()
    found = suspects(X, y)
    assert roc_auc_score(wrong, found.scores) > 0.95
    assert wrong[found.rows[: wrong.sum()]].mean() > 0.75
    np.testing.assert_array_equal(found.scores[found.rows], np.sort(found.scores)[::-1])
    assert found.scores.min() >= 0
    assert found.scores.max() <= 1
    assert set(found.expected) <= set(y)


def test_several_classes_with_names_in_a_data_frame():
    rng = np.random.default_rng(0)
    names = np.array(["ash", "elm", "oak"])
    codes = rng.integers(3, size=300)
    X = pd.DataFrame(rng.normal(size=(300, 2)) + 9 * np.array([[0, 0], [1, 0], [0, 1]])[codes], columns=["a", "b"])
    given = names[codes].astype(object)
    given[:6] = names[(codes[:6] + 1) % 3]
    found = suspects(X, given)
    assert set(found.rows[:6]) == set(range(6))
    np.testing.assert_array_equal(found.expected[:6], names[codes[:6]])


def test_numbers_are_scored_in_robust_deviations_whatever_their_unit():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    y = X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=300)
    y[:5] += 3.0
    found = suspects(X, y)
    assert set(found.rows[:5]) == set(range(5))
    assert 15 < np.median(found.scores[:5]) < 40
    np.testing.assert_allclose(suspects(X, 1e6 * y + 5).scores, found.scores, rtol=1e-4)


def test_the_order_of_the_rows_does_not_matter():
    X, y, _ = planted(200)
    order = np.random.default_rng(3).permutation(200)
    np.testing.assert_allclose(suspects(X[order], y[order]).scores, suspects(X, y).scores[order], atol=1e-8)


def test_copies_of_a_wrong_row_vouch_for_it_unless_they_are_a_group():
    X, y = make_moons(200, noise=0.15, random_state=0)
    far = int(np.argmax(X[:, 0]))
    X, y, groups = np.r_[X, X[[far] * 15]], np.r_[y, 1 - y[[far] * 15]], np.r_[np.arange(200), [far] * 15]
    together = suspects(X, y, groups=groups).scores[200:]
    assert (together > 0.85).all()
    assert (suspects(X, y).scores[200:] < together).all()


def test_many_rows_are_looked_at_in_parts(monkeypatch):
    X, y, wrong = planted(600)
    monkeypatch.setattr(module.sampling, "SAMPLE_ROWS", 200)
    groups = np.arange(600) // 3
    assert roc_auc_score(wrong, suspects(X, y).scores) > 0.93
    assert roc_auc_score(wrong, suspects(X, y, groups=groups).scores) > 0.93
    samples = module.Samples.of(X, None, targets=y[:, None].astype(float), groups=groups)
    parts = module._parts(samples)
    assert len(parts) == 3
    assert sum(len(np.unique(groups[part])) for part in parts) == 200  # no group in two parts
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(600))


def test_classes_or_numbers():
    X, y, _ = planted(80)
    assert suspects(X, y).scores.max() <= 1  # 0 and 1 are classes
    assert suspects(X, np.arange(80.0)).scores.max() > 1  # more than twenty numbers
    assert suspects(X, y, task="regress").scores.max() > 1
    assert suspects(X.astype(np.float32), y).scores.shape == (80,)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"task": "guess"}, ValueError, "suspects: task must be 'auto', 'classify' or 'regress', got 'guess'"),
        ({"X": sparse.csr_matrix(np.eye(30))}, TypeError, "suspects: X is sparse; pass X.toarray()"),
        ({"y": np.ones(30)}, ValueError, "suspects: y has only one class"),
        ({"y": np.linspace(0, 1, 60).reshape(30, 2)}, ValueError, r"y must be one column, got shape \(30, 2\)"),
        ({"groups": np.zeros(30)}, ValueError, "suspects: groups has only one group"),
    ],
)
def test_bad_input(change, error, match):
    X, y, _ = planted(30)
    given = {"X": X, "y": y} | change
    with pytest.raises(error, match=match):
        suspects(given.pop("X"), given.pop("y"), **given)
