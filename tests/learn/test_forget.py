"""Rows that a model forgets: what is left is a fit to the others on the same vectors."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from fewkern import FeatureVectorRegressor, KernelClassifier, KernelRegressor, load, save
from fewkern.datasets import make_banana
from fewkern.learn.batches import rows_among
from fewkern.learn.policy import POLICY


@pytest.fixture(scope="module")
def table():
    X, y = make_banana(400, random_state=2)
    return X, np.where(y > 0, "right", "left"), np.sin(X[:, 0]) + X[:, 1] + 100.0


def taught(which, X, y, model=None, **given):
    """On the vectors and with the ridge of another model."""
    made = KernelClassifier() if which == 1 else KernelRegressor()
    if model is not None:
        made._policy = replace(POLICY, start=replace(POLICY.start, ridges=(model.alpha_,)))
        given["basis"] = model.basis_
    return made.partial_fit(X, y, **given)


def values(model, X):
    return model.decision_function(X) if isinstance(model, KernelClassifier) else model.predict(X)


@pytest.mark.filterwarnings("ignore:.*among the samples that the model keeps")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("which", [1, 2])
def test_what_is_left_is_a_fit_to_the_other_rows(table, which, weighted, rng):
    X, y = table[0], table[which]
    w = rng.random(400) + 0.5 if weighted else None
    part = (lambda rows: w[rows]) if weighted else (lambda rows: None)
    gone, stay = np.arange(100, 320), np.r_[0:100, 320:400]
    model = taught(which, X[:200], y[:200], sample_weight=part(np.arange(200)))
    model.partial_fit(X[200:], y[200:], sample_weight=part(np.arange(200, 400)))
    other = taught(which, X[stay], y[stay], model, sample_weight=part(stay))
    before = values(model, X)
    for rows in np.array_split(gone, 4):  # in any order, in parts
        model.forget(X[rows], y[rows], sample_weight=part(rows))
    np.testing.assert_allclose(values(model, X), values(other, X), atol=1e-8)
    assert np.abs(values(model, X) - before).max() > 1e-3
    assert model._sums.statistics.count == 180
    # and learns again
    model.partial_fit(X[gone], y[gone], sample_weight=part(gone))
    np.testing.assert_allclose(values(model, X), before, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*among the samples that the model keeps")
def test_after_fit_and_from_files_with_sums(table, tmp_path):
    X, _, t = table
    Y = np.column_stack([t, X[:, 0]])
    model = KernelRegressor(n_vectors=6).fit(X, Y)
    path = save(model, tmp_path / "with", with_sums=True)
    plain = save(model, tmp_path / "without")
    assert path.stat().st_size > plain.stat().st_size
    again = load(path)
    expected = taught(2, X[50:], Y[50:], model)
    for one in (model, again):
        one.forget(X[:50], Y[:50])
        np.testing.assert_allclose(one.predict(X), expected.predict(X), atol=1e-8)
    again.partial_fit(X[:50], Y[:50])
    np.testing.assert_allclose(again.predict(X), load(plain).predict(X), atol=1e-8)
    twice = load(path).merge(load(path))
    np.testing.assert_allclose(twice.predict(X), load(plain).predict(X), atol=1e-8)
    with pytest.raises(ValueError, match=r"came from a file, which holds no sums .* with_sums=True"):
        load(plain).forget(X[:5], Y[:5])
    with pytest.raises(ValueError, match=r"save: this FeatureVectorRegressor has no sums .* Leave with_sums out"):
        save(FeatureVectorRegressor(max_vectors=3).fit(X, t), tmp_path / "none", with_sums=True)
    assert not (tmp_path / "none.npz").exists()


def test_rows_that_cannot_have_been_there(table):
    X, _, t = table
    model = taught(2, X[:200], t[:200])
    before = model.predict(X)
    far = np.array([[50.0, -50.0]])
    for rows, targets, weights in (
        (far, [0.0], None),  # where no row was
        (X[:1], [1e6], None),  # a target that none had
        (X[:5], t[:5], np.full(5, 1e3)),  # with another weight
    ):
        with pytest.raises(ValueError, match=r"KernelRegressor.forget: no rows could have .* nothing was changed"):
            model.forget(rows, targets, sample_weight=weights)
    with pytest.raises(ValueError, match="got 200 rows, but the model has learned from 200, and one must be left"):
        model.forget(X[:200], t[:200])
    with pytest.raises(ValueError, match=r"y has 2 output\(s\), but the first batch had 1"):
        model.forget(X[:5], X[:5])
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_row_that_the_model_keeps_is_told(table):
    X, _, t = table
    model = KernelRegressor(n_vectors=5).fit(X, t)
    kept = rows_among(X, model.novelty_.vectors)
    assert kept.sum() == model.novelty_.vectors.shape[0]
    one, others = np.flatnonzero(kept)[:1], np.flatnonzero(~kept)[:10]
    with pytest.warns(UserWarning, match=r"KernelRegressor.forget: 1 of these rows are among the samples .* still"):
        model.forget(X[one], t[one])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.forget(X[others], t[others])


def test_sparse_rows(rng):
    X = sp.random_array((120, 30), density=0.2, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    model = KernelRegressor(n_vectors=8).fit(X, y)
    assert rows_among(X, model.novelty_.vectors).sum() == model.novelty_.vectors.shape[0]
    expected = taught(2, X[10:], y[10:], model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.forget(X[:10], y[:10])
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


def test_models_that_cannot_forget(table):
    X, y, _ = table
    with pytest.raises(NotFittedError):
        KernelRegressor().forget(X, X[:, 0])
    logistic = KernelClassifier(n_vectors=10).fit(X, y)
    assert logistic.loss_ == "logistic"
    with pytest.raises(ValueError, match=r"KernelClassifier.forget: .* logistic regression, .* by partial_fit"):
        logistic.forget(X[:5], y[:5])
    logistic.partial_fit(X[:5], y[:5]).set_params(class_weight="balanced")
    with pytest.raises(ValueError, match=r'KernelClassifier.forget: with class_weight="balanced" the weight of a row'):
        logistic.forget(X[:5], y[:5])


def test_other_array_libraries(table, foreign):
    to, back = foreign
    X, _, t = table
    model = KernelRegressor(n_vectors=5).fit(X, t)
    theirs = KernelRegressor().partial_fit(to(X), to(t), basis=model.basis_.like(to(X)))
    ours = KernelRegressor().partial_fit(X, t, basis=model.basis_)
    rows = np.arange(40)
    found = back(theirs.forget(to(X[rows]), to(t[rows])).predict(to(X)))
    np.testing.assert_allclose(found, ours.forget(X[rows], t[rows]).predict(X), atol=1e-7)
