"""Rows that occur more than once are one row, unless few values in every column explain it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fewkern import KernelClassifier, KernelRegressor
from fewkern.core.samples import Samples
from fewkern.learn.copies import copies, without_copies
from fewkern.learn.learner import _folds
from fewkern.learn.policy import POLICY


@pytest.fixture(scope="module")
def friedman():
    X = np.random.default_rng(0).random((150, 6))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + np.random.default_rng(1).standard_normal(150)


def merged(A, labels=None):
    return len(A) - len(np.unique(copies(A, labels)))


@pytest.mark.filterwarnings("ignore:.*copies of others")
def test_a_doubled_table_gives_the_model_of_the_single_one(friedman):
    X, y = friedman
    once, twice = KernelRegressor().fit(X, y), KernelRegressor().fit(np.tile(X, (2, 1)), np.tile(y, 2))
    np.testing.assert_allclose(twice.predict(X), once.predict(X), atol=1e-4)
    np.testing.assert_allclose(twice.held_out_error_, once.held_out_error_, rtol=1e-4)
    np.testing.assert_allclose(twice.predict_interval(X), once.predict_interval(X), atol=1e-3)
    np.testing.assert_allclose(twice.novelty_pvalue(X), once.novelty_pvalue(X), atol=1e-6)
    assert (once.n_copies_, twice.n_copies_) == (0, 150)


@pytest.mark.filterwarnings("ignore:.*copies of others")
def test_an_oversampled_class_is_a_class_of_more_weight(friedman):
    X, y = friedman
    rare = y > np.quantile(y, 0.8)
    again = np.repeat(np.arange(150), np.where(rare, 4, 1))
    copied = KernelClassifier().fit(X[again], rare[again])
    weighted = KernelClassifier().fit(X, rare, sample_weight=np.where(rare, 4.0, 1.0))
    np.testing.assert_allclose(copied.predict_proba(X), weighted.predict_proba(X), atol=1e-6)
    assert copied.loss_ == weighted.loss_
    np.testing.assert_allclose(copied.held_out_error_, weighted.held_out_error_)


@pytest.mark.filterwarnings("ignore:.*copies of others")
def test_near_copies(friedman, rng):
    X, y = friedman
    near = np.tile(X, (3, 1)) + 1e-6 * rng.standard_normal((450, 6))
    model = KernelRegressor().fit(near, np.tile(y, 3))
    assert model.n_copies_ == 300
    assert model.held_out_error_ > 1.0  # the noise has a variance of one


def test_a_warning_says_how_many(friedman):
    X, y = friedman
    with pytest.warns(UserWarning, match="KernelRegressor: 50 of 110 rows are copies of others.*Drop them") as caught:
        KernelRegressor(n_vectors=4).fit(np.concatenate([X[:60], X[:50]]), np.concatenate([y[:60], y[:50]]))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRegressor(n_vectors=4).fit(np.concatenate([X[:60], X[:2]]), np.concatenate([y[:60], y[:2]]))


def test_weights_are_summed_and_first_rows_stay(rng):
    X, again = rng.standard_normal((40, 2)), np.concatenate([[3, 0, 1, 3, 2, 3, 0], np.arange(4, 40)])
    samples = Samples.of(X[again], np.arange(1.0, 44.0), targets=np.zeros((43, 1)))
    found = without_copies(samples)
    np.testing.assert_array_equal(found.rows, [0, 1, 2, 4, *range(7, 43)])
    np.testing.assert_array_equal(found.weights, [1 + 4 + 6, 2 + 7, 3, 5, *range(8, 44)])
    np.testing.assert_array_equal(found.X, X[[3, 0, 1, 2, *range(4, 40)]])
    assert found.n_all == 43


@pytest.mark.parametrize("what", ["targets", "codes", "groups"])
def test_rows_that_differ_in_target_or_group_are_not_copies(what, rng):
    X, other = np.tile(rng.standard_normal((30, 2)), (2, 1)), np.repeat([0, 1], 30)
    labels = {"targets": np.zeros((60, 1))} | {what: other[:, None].astype(float) if what == "targets" else other}
    assert without_copies(Samples.of(X, **labels)).n == 60


def test_gaps_are_equal(rng):
    X = rng.standard_normal((30, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 3] = np.nan
    assert merged(np.concatenate([X, X[:10]])) == 10
    other = X[:10].copy()
    other[np.isnan(X[:10])] = 0.0
    assert merged(np.concatenate([X, other])) == 0


@pytest.mark.parametrize("columns", [1, 3, 8])
def test_tables_of_few_values_stay(columns, rng):
    X = np.concatenate([rng.random((300, columns)) < 0.2, rng.integers(0, 3, (300, 2))], axis=1).astype(float)
    y = rng.random(300) < 0.3
    assert len(np.unique(np.column_stack([X, y]), axis=0)) < 270
    assert merged(X, y[:, None].astype(float)) == 0
    assert merged(np.tile(X, (2, 1)), np.tile(y, 2)[:, None].astype(float)) == 0


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_whole_tables_that_occur_twice_are_found_with_rounded_columns_too(digits, rng):
    X = np.round(3 * rng.standard_normal((200, 6)), digits)
    assert merged(np.tile(X, (2, 1))) == 200


def test_one_common_row_is_no_copy(rng):
    X = np.concatenate([rng.standard_normal((200, 3)), np.zeros((60, 3))])
    X[10:14] = X[:4]
    assert merged(X) == 4


def test_constant_and_tiny_tables():
    for A in (np.zeros((5, 2)), np.zeros((2, 1)), np.zeros((9, 0)), np.full((3, 2), np.nan)):
        assert copies(A).shape == (len(A),)
    assert without_copies(Samples.of(np.zeros((1, 2)), targets=np.zeros((1, 1)))).n == 1


def test_equal_rows_with_other_targets_are_held_out_together(rng):
    X, y = np.tile(rng.standard_normal((60, 2)), (2, 1)), rng.standard_normal((120, 1))
    codes = (y[:, 0] > 0).astype(int)
    for labels in ({}, {"codes": codes, "n_classes": 2}):
        folds = _folds(Samples.of(X, targets=y, **labels), POLICY)
        assert len(folds) == 5
        for fitted, held in folds:
            assert not {tuple(row) for row in X[fitted]} & {tuple(row) for row in X[held]}


def test_the_logistic_loss_is_compared_where_copies_are_left_out():
    """The sample lacks the copies, but not their weight."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 3))
    y = (X[:, 0] + 0.7 * rng.standard_normal(150) > 0).astype(int)
    one = KernelClassifier().fit(X, y)
    with pytest.warns(UserWarning, match="copies"):
        other = KernelClassifier().fit(np.tile(X, (3, 1)), np.tile(y, 3))
    assert one.loss_ == other.loss_ == "logistic"
    np.testing.assert_allclose(
        other.predict_proba(X), one.predict_proba(X), atol=0.01
    )  # a temperature trusts more rows more
