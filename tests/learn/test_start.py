"""Samples that are spread out, rows of a fold, and the sizes that may be kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fewkern import KernelClassifier, KernelRegressor
from fewkern.core.samples import Samples, class_targets
from fewkern.learn.geometry import Rows
from fewkern.learn.learner import _folds as folds_of
from fewkern.learn.learner import _standardized as standardized
from fewkern.learn.policy import POLICY
from fewkern.learn.preparation import fit_preparation
from fewkern.learn.start import choose_start, pivots


def unexplained(X, place):
    """Mean residual of the rows in feature space, beside the samples at ``place``."""
    K = np.exp(-0.5 * np.sum((X[:, None] - X[place][None]) ** 2, axis=-1))
    return float(np.mean(1.0 - np.einsum("ij,ij->i", K @ np.linalg.inv(K[place] + 1e-9 * np.eye(len(place))), K)))


def one_by_one(X, size):
    """The same pivots without chance and without blocks."""
    left, factor = np.ones(len(X)), np.zeros((size, len(X)))
    chosen = []
    for j in range(size):
        k = int(np.argmax(left))
        column = np.exp(-0.5 * np.sum((X - X[k]) ** 2, axis=1)) - factor[:j, k] @ factor[:j]
        factor[j] = column / np.sqrt(left[k])
        left = np.clip(left - factor[j] ** 2, 0.0, None)
        left[chosen + [k]] = 0.0
        chosen.append(k)
    return np.array(chosen)


def test_pivots_in_blocks_explain_as_much_as_pivots_one_by_one():
    X = np.random.default_rng(1).normal(size=(350, 5))
    in_blocks = unexplained(0.5 * X, pivots(X, 60, np.full(5, 0.5), seed=0))
    assert in_blocks < 1.1 * unexplained(0.5 * X, one_by_one(0.5 * X, 60))


def test_copies_of_a_row_are_chosen_once():
    X = np.repeat(np.random.default_rng(2).normal(size=(30, 3)), 10, axis=0)
    assert len(np.unique(X[pivots(X, 30, np.ones(3), seed=0)], axis=0)) >= 28
    place = pivots(X, 60, np.ones(3), seed=0)  # more than there are different ones: copies, but no row twice
    assert len(set(place.tolist())) == 60


def test_columns_that_matter_have_a_narrow_width_from_the_start():
    T = np.random.default_rng(0).normal(size=(400, 12))
    rows = Rows(T, np.sin(3 * T[:, :1]), np.ones(400), 0.3 * np.eye(12))
    scales = choose_start(rows, POLICY, 0).log_scales
    assert scales[0] > scales[1:].max() + 1


def test_no_width_becomes_an_exact_match():
    """Every value of the column has a mean of its own; without a bound the inverse width grows beyond 10,000."""
    rng = np.random.default_rng(1)
    value = np.repeat(np.arange(40), 5)
    y = rng.standard_normal(40)[value]
    T = np.column_stack([value, rng.standard_normal(200)])
    rows = Rows((T - T.mean(axis=0)) / T.std(axis=0), (y - y.mean())[:, None], np.ones(200), 0.3 * np.eye(2))
    assert 5 < np.exp(choose_start(rows, POLICY, 0).log_scales.max()) < 30


def test_more_rows_than_the_search_takes_lose_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=3000)
    model = KernelRegressor()
    model._policy = replace(POLICY, rows=replace(POLICY.rows, search=300), judge=replace(POLICY.judge, rows=60))
    assert model.fit(X, y).score(X, y) > 0.95
    samples = Samples.of(X[:300], targets=y[:300, None])
    assert [(len(fitted), len(held)) for fitted, held in folds_of(samples, model._policy)] == [(240, 60)]


def test_the_largest_model_of_samples_only_teaches_unless_asked_for():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(600, 2))
    y = ((np.floor(X[:, 0]) + np.floor(X[:, 1])) % 2).astype(int)  # 36 squares: nothing short describes them
    chosen = {}
    for most in (None, 300):
        model = KernelClassifier(max_vectors=most)
        few = replace(POLICY.candidates, still=(20, 60), teacher=300, ladder=(4, 8))
        model._policy = replace(POLICY, candidates=few)
        chosen[most] = model.fit(X, y).n_vectors_
    assert chosen[None] <= 60 < chosen[300]


def rare_class():
    codes = np.repeat([0, 1, 2], [1499, 1499, 2])
    X = np.random.default_rng(0).normal(size=(3000, 2))
    return class_targets(Samples.of(X, codes=codes, n_classes=3))


def test_a_rare_class_has_no_large_targets():
    """In units of its own standard deviation its two rows would be at 38."""
    _, Y, _ = standardized(rare_class(), POLICY)
    assert np.abs(Y[:, 2]).max() < 5


def test_a_class_that_no_fold_can_hold_asks_for_none():
    assert len(folds_of(rare_class(), POLICY)) == 1


def test_a_column_of_mostly_one_value_resolves_the_others():
    """With quantiles of all rows five knots are among the others, and five in the gap before them."""
    x = np.where(np.arange(5000) < 4600, 0.0, np.linspace(1.0, 50.0, 5000))
    knots = fit_preparation(x[:, None], np.ones(5000), POLICY).knots[:, 0]
    assert (np.unique(knots) >= x[4600]).sum() >= 9
