"""Sparse rows: the model of the dense copy where columns are few, and components of many, never made dense."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge, RidgeClassifier

from fewkern import KernelClassifier, KernelRegressor, compress, load, report, save
from fewkern.core.components import sees_components
from fewkern.core.samples import Samples, class_targets
from fewkern.io import to_c, to_onnx
from fewkern.learn import fitting
from fewkern.learn.components import _Problem, find_components
from fewkern.learn.learner import learn
from fewkern.learn.policy import POLICY

KINDS = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix)


def texts(n, d=600, classes=3, seed=0, length=40):
    """Word counts of rows about one topic each, with Zipf's frequencies; and the topics."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, d + 1) * np.exp(rng.standard_normal((classes, d)) * (rng.random(d) < 0.2))
    y = rng.integers(classes, size=n)
    counts = [rng.multinomial(length, frequency[topic] / frequency[topic].sum()) for topic in y]
    return sp.csr_array(np.array(counts, dtype=float)), y


@pytest.fixture(scope="module")
def news():
    return texts(700)


def problem(X, y, weights=None):
    return class_targets(Samples.of(X, weights, codes=y, n_classes=int(y.max()) + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_few_columns_give_the_model_of_the_dense_copy(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)) * (rng.random((200, 5)) < 0.5)
    y = X[:, 0] * X[:, 1] + X[:, 2]
    dense, sparse = KernelRegressor().fit(X, y), KernelRegressor().fit(kind(X), y)
    np.testing.assert_array_equal(sparse.predict(kind(X)), dense.predict(X))
    np.testing.assert_array_equal(sparse.vectors_, dense.vectors_)
    np.testing.assert_array_equal(sparse.feature_importances_, dense.feature_importances_)
    np.testing.assert_array_equal(sparse.explain(kind(X[:9])).values, dense.explain(X[:9]).values)
    np.testing.assert_array_equal(sparse.novelty(kind(X[:9])), dense.novelty(X[:9]))
    assert sparse.held_out_error_ == dense.held_out_error_
    labels = (y > 0).astype(int)
    dense, sparse = KernelClassifier().fit(X, labels), KernelClassifier().fit(kind(X), labels)
    np.testing.assert_array_equal(sparse.predict_proba(kind(X)), dense.predict_proba(X))


def test_many_columns_are_at_least_as_good_as_a_linear_model(news):
    X, y = news
    model = KernelClassifier().fit(X[:400], y[:400])
    assert sees_components(model.expansion_)
    wrong, linear = (
        1 - model.score(X[400:], y[400:]),
        1 - RidgeClassifier().fit(X[:400], y[:400]).score(X[400:], y[400:]),
    )
    assert wrong < linear
    assert model.n_vectors_ < 100
    assert abs(wrong - model.held_out_error_) < 0.06
    np.testing.assert_allclose(model.predict_proba(X[400:].toarray()), model.predict_proba(X[400:]), atol=1e-12)
    assert model.vectors_.shape == (model.n_vectors_, POLICY.sparse.components + 3)


def test_products_that_no_linear_model_sees():
    rng = np.random.default_rng(0)
    Z, labels = rng.standard_normal((900, 3)), rng.integers(300, size=900)
    X = sp.hstack([sp.csr_array(Z), sp.csr_array(np.eye(300)[labels])]).tocsr()
    y = Z[:, 0] * Z[:, 1] + Z[:, 2] + 0.3 * rng.standard_normal(300)[labels]
    model = KernelRegressor().fit(X[:600], y[:600])
    assert Ridge().fit(X[:600], y[:600]).score(X[600:], y[600:]) < 0.6
    assert model.score(X[600:], y[600:]) > 0.85


def test_a_column_in_other_units_is_not_lost():
    X, y = texts(500, d=400, classes=2)
    rng = np.random.default_rng(1)
    price = rng.uniform(1e5, 2e5, 500)
    plain = KernelRegressor().fit(X, y.astype(float))
    mixed = KernelRegressor().fit(sp.hstack([X, price[:, None]]).tocsr(), y.astype(float))
    assert mixed.held_out_error_ < 1.3 * plain.held_out_error_


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_sparse_matrix_and_integers(kind, news):
    X, y = news[0][:200], news[1][:200]
    expected = KernelClassifier(n_vectors=5).fit(X, y)
    whole = kind(X.astype(np.int64))
    assert sp.issparse(whole)
    model = KernelClassifier(n_vectors=5).fit(whole, y)
    np.testing.assert_array_equal(model.predict_proba(whole), expected.predict_proba(X))


def test_entries_in_any_order_and_twice(news):
    X, y = news[0][:150].tocoo(), news[1][:150]
    order = np.random.default_rng(0).permutation(X.nnz)
    halves = np.tile(X.data[order] / 2, 2), (np.tile(X.row[order], 2), np.tile(X.col[order], 2))
    messy = sp.coo_array(halves, X.shape)
    indptr = np.r_[0, np.cumsum(np.bincount(messy.row, minlength=150))]
    by_row = np.argsort(messy.row, kind="stable")
    messy = sp.csr_array((messy.data[by_row], messy.col[by_row], indptr), X.shape)
    assert not messy.has_canonical_format
    before = messy.data.copy()
    model, expected = KernelClassifier(n_vectors=5).fit(messy, y), KernelClassifier(n_vectors=5).fit(X.tocsr(), y)
    np.testing.assert_array_equal(messy.data, before)
    np.testing.assert_allclose(model.predict_proba(messy), expected.predict_proba(X), atol=1e-9)


def test_single_precision_is_kept(news):
    X, y = news[0].astype(np.float32), news[1].astype(np.float32)
    model = KernelRegressor(n_vectors=6).fit(X, y)
    assert model.predict(X).dtype == np.float32
    assert model.basis_.preparation.matrix.dtype == np.float32
    double = KernelRegressor(n_vectors=6).fit(news[0], news[1])
    assert abs(model.held_out_error_ / double.held_out_error_ - 1) < 0.2


def test_the_order_of_rows_changes_nothing(news):
    X, y = news
    order = np.argsort(y, kind="stable")
    one, other = KernelClassifier(n_vectors=6).fit(X, y), KernelClassifier(n_vectors=6).fit(X[order], y[order])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


# the regressions


def test_predictions_are_those_of_regressions_on_other_folds(news):
    found = find_components(problem(*news), POLICY.sparse)
    task, linear = found.problem, found.samples.X[np.argsort(found.problem.place), POLICY.sparse.components :]
    X = task.X.toarray()
    assert len(np.unique(task.fold)) == 5
    for k in range(5):
        out = task.fold == k
        model = Ridge(found.ridge).fit(X[~out], task.Y[~out])
        expected = (X[out] - X.mean(axis=0)) @ model.coef_.T + found.shift
        np.testing.assert_allclose(linear[out], expected, atol=2e-3 * np.ptp(expected))
    whole = (news[0] @ found.matrix[:, POLICY.sparse.components :])[np.argsort(task.place)]
    assert np.sum((whole - found.shift - task.Y) ** 2) < np.sum(
        (linear - found.shift - task.Y) ** 2
    )  # it has seen them


def test_rows_held_out_are_in_no_regression(news):
    task = _Problem.of(problem(*news), POLICY.sparse)
    out = np.arange(task.n) % 5 == 0
    lies = np.where(out[:, None], -9.0 * task.Y, task.Y)
    np.testing.assert_array_equal(task.left_out(50.0, lies, out), task.left_out(50.0, task.Y, out))
    assert np.abs(task.left_out(50.0, lies) - task.left_out(50.0, task.Y)).max() > 0.1


def test_folds_of_the_learner_have_components_of_their_own(news, monkeypatch):
    seen = []
    monkeypatch.setattr(fitting, "learn", lambda *given: seen.append(learn(*given)) or seen[0])
    KernelClassifier(n_vectors=4).fit(*news)
    rows, comparison = seen[0].rows, seen[0].comparison
    assert len(rows.views) == comparison.parts.max() + 1 > 1
    p = POLICY.sparse.components
    for view in rows.views:
        np.testing.assert_array_equal(view.T[:, :p], rows.T[:, :p])
        assert np.abs(view.T[:, p:] - rows.T[:, p:]).max() > 0.01


def test_equal_rows_and_groups_share_a_fold_and_classes_are_dealt_out(news):
    X, y = news
    task = _Problem.of(problem(sp.vstack([X, X[:50]]).tocsr(), np.r_[y, y[:50]]), POLICY.sparse)
    fold = task.fold[task.place]
    np.testing.assert_array_equal(fold[-50:], fold[:50])
    counts = np.array([np.bincount(fold[:700][y == c], minlength=5) for c in range(3)])
    assert (counts.max(axis=1) - counts.min(axis=1) <= 25).all()
    groups = np.arange(700) // 7
    grouped = class_targets(Samples.of(X, codes=y, n_classes=3, groups=groups))
    task = _Problem.of(grouped, POLICY.sparse)
    fold = task.fold[task.place]
    assert all(len(np.unique(fold[groups == g])) == 1 for g in range(100))


def test_a_weight_of_two_is_a_row_that_occurs_twice(news):
    X, y = news[0][:300], news[1][:300]
    twice = np.arange(300) % 3 == 0
    weighted = find_components(problem(X, y, np.where(twice, 2.0, 1.0)), POLICY.sparse)
    repeated = find_components(problem(sp.vstack([X, X[twice]]).tocsr(), np.r_[y, y[twice]]), POLICY.sparse)
    assert repeated.ridge == pytest.approx(weighted.ridge)
    np.testing.assert_allclose(repeated.matrix, weighted.matrix, atol=1e-3 * np.abs(weighted.matrix).max())
    np.testing.assert_allclose(repeated.samples.X[:300], weighted.samples.X, atol=1e-2)


def test_many_targets_are_compared_by_few_combinations():
    X, y = texts(400, classes=12)
    found = find_components(problem(X, y), POLICY.sparse)
    assert found.matrix.shape == (600, POLICY.sparse.components + 12)


# what is rare or broken


def test_empty_rows_and_columns():
    X, y = texts(300)
    X = sp.csr_array(sp.vstack([sp.hstack([X, sp.csr_array((300, 200))]), sp.csr_array((9, 800))]))
    y = np.r_[y, np.zeros(9, int)]
    model = KernelClassifier().fit(X, y)
    assert np.isfinite(model.predict_proba(sp.csr_array((3, 800)))).all()
    nothing = KernelClassifier().fit(sp.csr_array((40, 800)), np.arange(40) % 2)
    np.testing.assert_allclose(nothing.predict_proba(sp.csr_array((1, 800))), 0.5, atol=1e-6)
    flat = KernelRegressor().fit(X, np.full(309, 3.0))
    np.testing.assert_allclose(flat.predict(X), 3.0)


@pytest.mark.parametrize("n", [2, 3, 5, 9, 11])
def test_few_rows(n):
    X, _ = texts(n)
    y = np.arange(n) % 2
    assert KernelClassifier().fit(X, y).predict(X).shape == (n,)
    assert np.isfinite(KernelRegressor().fit(X, y.astype(float)).predict(X)).all()


@pytest.mark.parametrize("unit", [2.0**-660, 2.0**500, 2.0**990])
def test_units_far_from_one(unit, news):
    X, y = news[0][:200], news[1][:200].astype(float)
    expected = KernelRegressor(n_vectors=5).fit(X, y).predict(X)
    np.testing.assert_allclose(KernelRegressor(n_vectors=5).fit(X * unit, y).predict(X * unit), expected, atol=1e-9)


def test_equal_rows_have_no_regression():
    X = sp.csr_array(np.tile(texts(1)[0].toarray(), (30, 1)))
    y = np.arange(30.0)
    np.testing.assert_allclose(KernelRegressor().fit(X, y).predict(X), 14.5, atol=1e-6)


def test_several_outputs_weights_and_groups(news):
    X, y = news
    Y = np.stack([y == 0, y == 1], axis=1).astype(float)
    weights = np.where(np.arange(700) < 600, 1.0, 0.0)
    model = KernelRegressor().fit(X, Y, sample_weight=weights, groups=np.arange(700) // 2)
    assert model.predict_interval(X, 0.8).shape == (700, 2, 2)
    assert model.score(X[600:], Y[600:]) > 0.3


def test_no_row_is_made_dense(monkeypatch):
    n, d = 1500, 40_000
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=5e-4, rng=rng, format="csr")
    y = (X[:, :2000].sum(axis=1) > X[:, 2000:4000].sum(axis=1)).astype(int)
    dense, numbers = 8 * n * d, 8 * (n + d) * (POLICY.sparse.components + 1)
    tracemalloc.start()
    model = KernelClassifier(n_vectors=8).fit(X, y)
    model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * numbers < dense / 5
    assert model.expansion_.nbytes < 1.5 * 8 * d * (POLICY.sparse.components + 1)


# going on, and taking away


def test_batches_on_the_same_components(news):
    X, y = news
    model = KernelClassifier(n_vectors=6).partial_fit(X[:400], y[:400])
    first = model.held_out_error_
    assert abs(first - KernelClassifier(n_vectors=6).fit(X[:400], y[:400]).held_out_error_) < 0.04
    model.partial_fit(X[400:], y[400:])
    again = KernelClassifier(n_vectors=6).partial_fit(X[:400], y[:400])
    more = KernelClassifier().partial_fit(X[400:], y[400:], basis=again.basis_)
    np.testing.assert_allclose(again.merge(more).decision_function(X), model.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match=r"KernelClassifier.forget: .* components of sparse rows.*; fit a new model"):
        model.forget(X[:5], y[:5])


def test_what_needs_columns_is_refused(news, tmp_path):
    X, y = news
    model = KernelClassifier(n_vectors=6).fit(X, y)
    asked = {
        "KernelClassifier.explain": lambda: model.explain(X[:2]),
        "to_c": lambda: to_c(model),
        "to_onnx": lambda: to_onnx(model.expansion_),
        "compress": lambda: compress(model, X.toarray()),
        "report": lambda: report(model, X, y),
    }
    for caller, ask in asked.items():
        with pytest.raises(
            ValueError, match=f"^{caller}: needs a model of the columns, .* 19 components of 600 columns"
        ):
            ask()
    with pytest.raises(AttributeError, match="needs the derivatives of the fitted function in the columns"):
        _ = model.feature_importances_
    assert model.background_ is None
    assert model.novelty(X[:3]).shape == (3,)
    for sums in (False, True):
        again = load(save(model, tmp_path / "m.npz", with_sums=sums))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.novelty(X[:9]), model.novelty(X[:9]))
    again.partial_fit(X[:50], y[:50])


def test_copies_of_rows_held_out_are_in_no_regression(news):
    found = find_components(
        problem(sp.vstack([news[0], news[0][:100]]).tocsr(), np.r_[news[1], news[1][:100]]), POLICY.sparse
    )
    honest = found.without(np.arange(100)).X
    found.problem.Y[found.problem.place[700:]] *= -9.0
    np.testing.assert_array_equal(found.without(np.arange(100)).X, honest)
