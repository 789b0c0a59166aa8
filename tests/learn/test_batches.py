"""Batches of rows: the coefficients are those of one fit on all of them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from fewkern import FeatureVectorSelector, KernelClassifier, KernelRegressor, load, save
from fewkern.datasets import make_banana
from fewkern.learn.batches import same_basis
from fewkern.learn.policy import POLICY
from fewkern.select.leave_one_out import loo_paths, solve


@pytest.fixture(scope="module")
def table():
    X, y = make_banana(600, random_state=2)
    return X, np.where(y > 0, "right", "left"), np.sin(X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module", params=["gaussians", "kernels"])
def basis(request, table):
    if request.param == "kernels":
        return FeatureVectorSelector(max_vectors=12).fit(table[0][:200]).basis_
    return KernelRegressor(n_vectors=6).fit(table[0][:200], table[2][:200]).basis_


def learner(which, *ridges):
    """For the classes (1) or the numbers (2) of the table; with one ridge there is none to choose."""
    model = KernelClassifier() if which == 1 else KernelRegressor()
    if ridges:
        model._policy = replace(POLICY, start=replace(POLICY.start, ridges=ridges))
    return model


def values(model, X):
    return model.decision_function(X) if isinstance(model, KernelClassifier) else model.predict(X)


def in_batches(model, X, y, cuts, **first):
    for k, (a, b) in enumerate(zip((0, *cuts), (*cuts, len(X)))):
        model.partial_fit(X[a:b], y[a:b], **(first if k == 0 else {}))
    return model


@pytest.mark.parametrize("which", [1, 2])
def test_batches_give_the_model_of_one_fit_on_all_rows(table, basis, which):
    X, y = table[0], table[which]
    model = in_batches(learner(which), X, y, (50, 51, 400), basis=basis)
    targets = (2.0 * (y == "right") - 1 if which == 1 else y)[:, None]
    expected = solve(basis.features(X), targets, 600 * model.alpha_)
    np.testing.assert_allclose(values(model, X), (basis.features(X) @ expected.W + expected.offset)[:, 0], atol=1e-8)
    assert model.origin_ == "given"
    assert model.path_ is None


def test_the_ridge_of_a_given_basis_is_chosen_on_the_first_batch(table, basis):
    X, _, t = table
    model = in_batches(learner(2), X, t, (300,), basis=basis)
    ridges = tuple(300 * ridge for ridge in POLICY.start.ridges)
    errors = [path.error[-1] for path in loo_paths(basis.features(X[:300]), t[:300, None], ridges)]
    assert model.alpha_ == POLICY.start.ridges[int(np.argmin(errors))]


def test_the_first_batch_chooses_what_stays(table):
    X, y, _ = table
    model = KernelClassifier().partial_fit(X[:300], y[:300])
    alone = KernelClassifier().fit(X[:300], y[:300])
    np.testing.assert_array_equal(model.vectors_, alone.vectors_)
    # batches know least squares only; a whole fit may take the coefficients of logistic regression
    least_squares = alone._fitted_to.expansion()
    np.testing.assert_allclose(model.decision_function(X), least_squares(X)[:, 0], atol=1e-12)
    vectors, alpha, before = model.vectors_, model.alpha_, model.decision_function(X)
    model.partial_fit(X[300:], y[300:])
    np.testing.assert_array_equal(model.vectors_, vectors)
    assert model.alpha_ == alpha
    assert np.abs(model.decision_function(X) - before).max() > 1e-3


def test_held_out_errors_are_those_of_leaving_rows_out(table, basis):
    X, _, t = table
    model = learner(2, 1e-4).partial_fit(X, t, basis=basis)
    expected = solve(basis.features(X), t[:, None], 600 * 1e-4)
    assert model.held_out_error_ == pytest.approx(np.mean((expected.held_out[:, 0] - t) ** 2))
    halves = in_batches(learner(2, 1e-4), X, t, (300,), basis=basis)
    assert halves.held_out_error_ == pytest.approx(model.held_out_error_, rel=0.2)


def test_weights_are_repetitions(table, basis, rng):
    X, y, _ = table
    w = rng.integers(0, 3, len(X))
    again = np.repeat(np.arange(len(X)), w)
    one = learner(1, 1e-4).partial_fit(X, y, sample_weight=w, basis=basis)
    two = learner(1, 1e-4).partial_fit(X[again], y[again], basis=basis)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("which", [1, 2])
def test_merged_models_know_what_both_know(table, basis, which, tmp_path):
    X, y = table[0], table[which]
    whole = learner(which, 1e-4).partial_fit(X, y, basis=basis)
    left, right = (learner(which, 1e-4).partial_fit(X[at], y[at], basis=basis) for at in (slice(200), slice(200, 600)))
    del right._policy  # no part of a file
    save(right, tmp_path / "right.npz")
    both = left.merge(load(tmp_path / "right.npz"))
    np.testing.assert_allclose(values(both, X), values(whole, X), atol=1e-8)
    assert both.alpha_ == pytest.approx(1e-4)
    errors = (left.held_out_error_ + 2 * right.held_out_error_) / 3
    assert both.held_out_error_ == pytest.approx(errors)
    assert left._sums.statistics.count == 200
    both.partial_fit(X[:10], y[:10])
    assert both._sums.statistics.count == 610


@pytest.mark.parametrize("which", [1, 2])
def test_merging_is_learning_from_the_batches_of_the_other(table, basis, which):
    X, y = table[0], table[which]
    before, after = slice(300), slice(300, 600)
    left, right = (learner(which).partial_fit(X[at], y[at], basis=basis) for at in (before, after))
    right._sums = replace(right._sums, alpha=3.0 * right._sums.alpha)  # whatever the other one chose
    both = left.merge(right)
    in_turn = learner(which).partial_fit(X[before], y[before], basis=basis).partial_fit(X[after], y[after])
    np.testing.assert_allclose(values(both, X), values(in_turn, X), atol=1e-10)
    assert both.alpha_ == left.alpha_


def test_several_classes_that_come_late(table, basis):
    X, y, _ = table
    y = np.where(X[:, 0] > 1.5, "far", y)
    order = np.argsort(y, kind="stable")
    model = learner(1, 1e-4)
    in_batches(model, X[order], y[order], (5, 300), classes=["far", "left", "right"], basis=basis)
    whole = learner(1, 1e-4).partial_fit(X, y, basis=basis)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("few", [0, 4])
def test_a_first_batch_with_few_rows_of_some_class_says_so(few, table):
    """Sorted rows: all vectors would be where the first class is."""
    X, y, _ = table
    order, classes = np.argsort(y, kind="stable"), ["left", "right"]
    first, message = (
        np.r_[order[:50], order[: -few - 1 : -1]],
        r"fewer than 5 rows of 1 of 2 classes \('right'\), and chooses",
    )
    model = KernelClassifier(n_vectors=3)
    with pytest.warns(UserWarning, match=message) as found:
        model.partial_fit(X[first], y[first], classes=classes)
    assert found[0].filename == __file__
    model.partial_fit(X[order[-50:]], y[order[-50:]])  # warnings are errors: said once
    clone(model).partial_fit(X, y, classes=classes)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (lambda m, X, y: m.partial_fit(X, y).partial_fit(X[:2], ["left", "new"]), "'new' is not one of the classes"),
        (lambda m, X, y: m.partial_fit(X[:5], np.full(5, "a")), "only one class"),
        (lambda m, X, y: m.set_params(class_weight="balanced").partial_fit(X, y), "needs all samples at once"),
        (lambda m, X, y: m.fit(X, y).merge(clone(m).fit(X[:100], y[:100])), "different vectors; fit both"),
        (
            lambda m, X, y: m.partial_fit(X, y).partial_fit(X, y, basis=clone(m).fit(X[:99], y[:99]).basis_),
            "stay those",
        ),
    ],
)
def test_bad_batches(table, steps, message):
    X, y, _ = table
    with pytest.raises(ValueError, match=message):
        steps(KernelClassifier(n_vectors=3), X[:200], y[:200])


def test_models_and_batches_that_do_not_belong_together(table, basis):
    X, y, t = table
    classes = KernelClassifier().partial_fit(X, y, basis=basis)
    numbers = KernelRegressor().partial_fit(X, t, basis=basis)
    with pytest.raises(ValueError, match="the models know different classes"):
        classes.merge(KernelClassifier().partial_fit(X, y == "left", basis=basis))
    with pytest.raises(TypeError, match="only another KernelClassifier"):
        classes.merge(numbers)
    with pytest.raises(ValueError, match=r"y has 2 output\(s\), but the first batch had 1"):
        numbers.partial_fit(X, X)


@pytest.mark.parametrize("which", [1, 2])
def test_batches_after_a_fit_go_on_from_it(table, which, tmp_path):
    X, y = table[0], table[which]
    model = learner(which).fit(X[:400], y[:400])
    save(model, tmp_path / "model.npz")
    model.partial_fit(X[400:], y[400:])
    whole = learner(which, model.alpha_).partial_fit(X, y, basis=model.basis_)
    np.testing.assert_allclose(values(model, X), values(whole, X), rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="came from a file, which holds no sums"):
        load(tmp_path / "model.npz").partial_fit(X[400:], y[400:])


def test_a_basis_equals_itself_and_no_other(table, basis):
    X = table[0]
    assert same_basis(basis, replace(basis))
    assert same_basis(basis, replace(basis, vectors=basis.vectors.copy(), indices=None))
    assert not same_basis(basis, replace(basis, vectors=basis.vectors + 1e-9))
    assert not same_basis(basis, replace(basis, vectors=basis.vectors[1:]))
    assert not same_basis(basis, FeatureVectorSelector(max_vectors=3).fit(X).basis_)
