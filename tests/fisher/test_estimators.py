"""SparseKernelFisher, ForwardKernelFisher and fisher_path as a user meets them."""

from typing import get_type_hints

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.model_selection import KFold, StratifiedGroupKFold

from fewkern import ForwardKernelFisher, SparseKernelFisher
from fewkern.core.path import Stop
from fewkern.fisher import fisher_path, lasso, lq
from fewkern.kernels import Gaussian
from tests.fisher import helpers
from tests.oracles import kfd

X, Y = make_moons(160, noise=0.25, random_state=0)
X_NEW, Y_NEW = make_moons(1000, noise=0.25, random_state=1)
FIXED = {"kernel": Gaussian(length_scale=0.6), "alpha": 0.003}
MODELS = [
    SparseKernelFisher(**FIXED),
    SparseKernelFisher(q=1, **FIXED),
    SparseKernelFisher(q=2, **FIXED),
    ForwardKernelFisher(kernel=Gaussian(length_scale=0.6), n_vectors=12),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_accurate_with_the_samples_that_are_named(model):
    model = clone(model).fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.9
    np.testing.assert_array_equal(model.vectors_, X[model.indices_])
    assert model.n_vectors_ == len(model.indices_) == model.expansion_.n_vectors
    assert np.all(np.any(model.expansion_.coef != 0, axis=1))


def assert_proportional(model, coef, sign=1):
    """Class scores of two classes are an affine function of the discriminant: coefficients differ by a factor."""
    ours, coef = model.expansion_.coef[:, 0], np.ravel(coef)
    factor = (ours @ coef) / (coef @ coef)
    assert sign * factor > 0
    np.testing.assert_allclose(ours, factor * coef, rtol=1e-4, atol=1e-6 * np.abs(ours).max())


@pytest.mark.parametrize("q", [0.5, 1.0])
def test_the_model_that_predicts_minimizes_the_objective_of_the_paper(q):
    """Penalty and width by cross-validation: ``objective_`` is (5) at the model; q = 1 is scikit-learn's lasso."""
    model = SparseKernelFisher(q=q).fit(X, Y)
    K, targets = model.kernel_(X, X), kfd.targets(Y)
    alone = helpers.fit(K, targets[:, None], penalty=model.alpha_, q=q)
    np.testing.assert_array_equal(alone.support, model.indices_)
    assert_proportional(model, alone.coef)
    exact = kfd.objective(K, targets[:, None], helpers.dense(alone, len(X)), model.alpha_, q, penalize_bias=False)
    assert model.objective_ == model.path_.objectives[-1] == pytest.approx(exact, rel=1e-6)
    if q == 1:
        peer = Lasso(alpha=model.alpha_, tol=1e-5, max_iter=100_000).fit(K, targets)
        f, scores = peer.predict(model.kernel_(X_NEW, X)), model.decision_function(X_NEW)
        assert np.corrcoef(f, scores)[0, 1] > 0.9999


def test_forward_selection_is_least_squares_on_its_columns():
    model = ForwardKernelFisher().fit(X, Y)
    assert model.path_.axes["n_vectors"][-1] == 100
    K = kfd.augmented(model.kernel_(X, model.vectors_))
    omega = np.linalg.lstsq(K, kfd.targets(Y), rcond=None)[0]
    assert_proportional(model, omega[1:])
    left = np.sum((kfd.targets(Y) - K @ omega) ** 2) / np.sum(kfd.targets(Y) ** 2)
    assert model.path_.objectives[-1] == pytest.approx(left)


def checkerboard(n, squares, seed):
    """Classes of the fields of a board, five percent of the labels turned round."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, squares, (n, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(int) ^ (rng.random(n) < 0.05)


AUTOMATIC = [SparseKernelFisher(), SparseKernelFisher(q=1.0), ForwardKernelFisher()]
ids = {"argvalues": AUTOMATIC, "ids": ["q=.5", "q=1", "OLS"]}


@pytest.mark.parametrize("model", **ids)
@pytest.mark.parametrize(("squares", "limit"), [(3, 0.11), (4, 0.13)])
def test_checkerboards_are_learned_in_any_order_of_the_rows(model, squares, limit):
    """1,000 rows, shuffled or sorted by a feature or by class; a tenth of a board's error is noise of the test."""
    board, y = checkerboard(1000, squares, seed=0)
    new = checkerboard(4000, squares, seed=1)
    for order in (slice(None), np.argsort(board[:, 0]), np.lexsort((board[:, 1], y))):
        fitted = clone(model).fit(board[order], y[order])
        assert 1 - fitted.score(*new) < limit
        assert abs(fitted.held_out_error_ - (1 - fitted.score(*new))) < 0.04


@pytest.mark.parametrize("model", **ids)
def test_whole_groups_are_held_out(model):
    """Twenty near copies of each of 24 samples whose classes are coins: only groups show that nothing is learned."""
    rng = np.random.default_rng(0)
    centers, coins = 3 * rng.standard_normal((24, 2)), np.arange(24) % 2
    groups = np.repeat(np.arange(24), 10)
    A, t = centers[groups] + 0.01 * rng.standard_normal((240, 2)), coins[groups]
    apart, together = clone(model).fit(A, t), clone(model).fit(A, t, groups=groups)
    assert apart.held_out_error_ < 0.05
    assert together.held_out_error_ > 0.25
    by_splitter = clone(model).set_params(cv=StratifiedGroupKFold(4)).fit(A, t, groups=groups)
    assert by_splitter.held_out_error_ > 0.25
    with pytest.raises(ValueError, match=r"groups must have one label per sample, shape \(240,\), got \(239,\)"):
        clone(model).fit(A, t, groups=groups[1:])


def test_scores_without_signal_fall_back_to_the_midpoint_rule_with_a_warning():
    """Pairs of samples of different classes: what is held out has its neighbor, of the other class, to learn from."""
    A, t = np.repeat(np.arange(40.0), 2)[:, None], np.arange(80) % 2
    A[1::2] += 0.01
    model = SparseKernelFisher(kernel=Gaussian(length_scale=0.2), alpha=1e-3)
    with pytest.warns(UserWarning, match=r"SparseKernelFisher: cross-validated scores.*midpoint rule is used"):
        model.fit(A, t)
    assert model.held_out_error_ > 0.5


def test_classes_too_small_to_calibrate_on_have_the_midpoint_rule():
    """Four samples of a class: the threshold is the midpoint of the targets, as in the paper."""
    rows = np.r_[np.flatnonzero(Y == 0)[:40], np.flatnonzero(Y == 1)[:4]]
    A, t = X[rows], Y[rows]
    model = SparseKernelFisher(**FIXED).fit(A, t)
    fit = helpers.fit(Gaussian(length_scale=0.6)(A, A), kfd.targets(t)[:, None], penalty=0.003, q=0.5)
    f = fit.values(Gaussian(length_scale=0.6)(X_NEW, A))[:, 0]
    n1, n2 = 4, 40
    expected = 2 * n1 * n2 / 44**2 * (f - 44 / 2 * (1 / n1 - 1 / n2))
    np.testing.assert_allclose(model.decision_function(X_NEW), expected, atol=1e-6)
    shares = np.clip(np.column_stack([1 - expected, 1 + expected]) / 2, 0, None)
    np.testing.assert_allclose(model.predict_proba(X_NEW), shares / shares.sum(axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("budget", [2, 5, 9])
def test_budget_of_vectors_is_kept(budget):
    for model in (
        SparseKernelFisher(max_vectors=budget, prefer="accurate"),
        SparseKernelFisher(max_vectors=budget, kernel=Gaussian(length_scale=0.3), alpha=1e-4),
        SparseKernelFisher(max_vectors=budget, q=1),
        ForwardKernelFisher(max_vectors=budget),
    ):
        model.fit(X, Y)
        assert 1 <= model.n_vectors_ <= budget
        assert model.score(X_NEW, Y_NEW) > (0.8 if budget > 2 else 0.7)
    forward = ForwardKernelFisher(kernel=Gaussian(length_scale=0.2), n_vectors=9, max_vectors=budget).fit(X, Y)
    assert forward.n_vectors_ == budget


def test_forward_number_of_vectors_by_cross_validation():
    model = ForwardKernelFisher(max_vectors=25).fit(X, Y)
    assert 1 <= model.n_vectors_ <= 25
    assert model.stop_ == (Stop.SIZE if model.n_vectors_ < 25 else Stop.LIMIT)
    assert model.score(X_NEW, Y_NEW) > 0.9
    assert sum(model.error_reduction_) == pytest.approx(1 - model.path_.objectives[-1])
    assert len(model.error_reduction_) == model.n_vectors_ + 1
    assert not SparseKernelFisher(kernel=Gaussian(length_scale=0.6)).fit(X, Y).path_.open_end
    assert (
        ForwardKernelFisher(kernel=Gaussian(length_scale=0.6), max_vectors=3, prefer="accurate")
        .fit(X, Y)
        .path_.open_end
    )


def test_tiny_classes_do_without_cross_validation_and_say_so():
    for model, word in ((SparseKernelFisher(), "alpha"), (ForwardKernelFisher(), "n_vectors")):
        with pytest.warns(UserWarning, match=rf"class 'b' has 1 sample, too few.*default {word} is used; give {word}"):
            model.fit([[0.0], [1.0], [3.0]], ["a", "a", "b"])
        assert model.predict([[3.0]]) == ["b"]
        assert model.path_.error.shape == (1, 1)


def test_a_fold_without_a_class_is_explained():
    order = np.argsort(Y, kind="stable")
    message = (
        r"Kernel.*: fold 0 of cv \(counted from 0\) has no sample of class 0 to train on; shuffle the samples, or use "
        r"stratified folds"
    )
    for model in (SparseKernelFisher(cv=KFold(2)), ForwardKernelFisher(cv=KFold(2))):
        with pytest.raises(ValueError, match=message):
            model.fit(X[order], Y[order])


def test_path_goes_from_few_to_many():
    model = SparseKernelFisher(q=1, kernel=Gaussian(length_scale=0.6))
    path = fisher_path(model, X, Y, alphas=8)
    assert path.n_vectors[0] <= 1
    assert path.n_vectors[-1] > path.n_vectors[1]
    assert np.all(np.diff(path.objectives) < 0)
    assert path.errors[-1] < path.errors[0]
    assert set(path.stops) == {Stop.CONVERGED}
    alone = clone(model).set_params(alpha=path.alphas[4]).fit(X, Y)
    np.testing.assert_array_equal(path.expansions[4].indices, alone.indices_)
    assert_proportional(alone, path.expansions[4].coef)
    assert path.errors[4] == pytest.approx(np.mean((path.expansions[4](X)[:, 0] > 0) != Y))
    assert not hasattr(model, "classes_")
    assert path.alphas[-1] == pytest.approx(path.alphas[0] / 1000)
    of_some = fisher_path(SparseKernelFisher(), X, Y, np.arange(160) >= 40, alphas=[0.001, 0.1])
    assert of_some.alphas == (0.1, 0.001)
    assert of_some.expansions[1].indices.min() >= 40
    with pytest.raises(ValueError, match="'q' parameter of SparseKernelFisher"):
        fisher_path(SparseKernelFisher(q=3), X, Y)
    assert get_type_hints(fisher_path)["model"] is SparseKernelFisher


@pytest.mark.parametrize(
    ("params", "labels", "criterion"),
    [
        ({"q": 0.5, "alpha": 1e-4}, Y, "relative change of the objective"),
        ({"q": 1, "alpha": 1e-4}, Y, "relative duality gap"),
        ({"q": 1, "alpha": 1e-4}, np.arange(160) % 3, "relative duality gap"),
        ({"q": 0.5}, np.arange(160) % 3, "relative change of the objective"),
    ],
)
def test_no_convergence_is_a_warning(params, labels, criterion, monkeypatch):
    monkeypatch.setattr(lasso if params["q"] == 1 else lq, "MAX_ITERATIONS", 2)
    message = rf"did not converge in 2 iterations: {criterion} \S+, tolerance 1e-0\d; use a larger alpha"
    with pytest.warns(ConvergenceWarning, match=message):
        model = SparseKernelFisher(**{**FIXED, **params}).fit(X, labels)
    assert model.stop_ == Stop.MAX_ITER


@pytest.mark.parametrize(
    ("params", "labels", "weights", "message"),
    [
        ({}, Y, (Y == 0).astype(float), "class .* has no sample of positive weight"),
        ({"q": 0.0}, Y, None, "'q' parameter of SparseKernelFisher"),
        ({"alpha": 0.0}, Y, None, "'alpha' parameter of SparseKernelFisher"),
        ({"max_vectors": 0}, Y, None, "'max_vectors' parameter of SparseKernelFisher"),
        ({"kernel": "precomputed"}, Y, None, "fit needs the square kernel matrix"),
        (
            {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)},
            Y,
            None,
            "the kernel returned values that are not",
        ),
        ({"q": 2, "max_vectors": 3}, Y, None, "q = 2 drops no sample, so max_vectors cannot be kept; use q <= 1"),
    ],
)
def test_bad_input_is_explained(params, labels, weights, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelFisher(**{**FIXED, **params}).fit(X, labels, sample_weight=weights)
