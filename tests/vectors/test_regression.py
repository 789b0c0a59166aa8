import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from fewkern import FeatureVectorClassifier, FeatureVectorDiscriminant, FeatureVectorRegressor
from fewkern.base import BudgetWarning
from fewkern.datasets import make_banana, make_sinc
from fewkern.kernels import Gaussian
from fewkern.vectors.calibration import softmax
from tests.oracles import fvs


@pytest.fixture
def curve():
    return make_sinc(120, noise=0.1)


@pytest.fixture
def banana():
    return make_banana(300)


@pytest.fixture
def three():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 50)
    return rng.standard_normal((150, 2)) + 3 * np.column_stack([np.cos(2 * y), np.sin(2 * y)]), y


@pytest.mark.parametrize("center", [False, True, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_prediction_is_the_regression_on_the_features(curve, ridge, center):
    X, y = curve
    model = FeatureVectorRegressor(ridge=ridge, center=center, n_vectors=9, kernel=Gaussian(0.5))
    model.fit(X, y)
    Z = model.basis_.features(X)
    beta = fvs.refit(Z, y[:, None], ridge, np.ones(120))
    np.testing.assert_allclose(model.predict(X), beta[0] + Z @ beta[1:, 0], atol=1e-6)
    assert model.n_vectors_ == 9 + center
    assert model.predict(X[:5]).shape == (5,)


def test_held_out_error_is_the_error_of_refits(curve):
    X, y = curve
    model = FeatureVectorRegressor(kernel=Gaussian(0.5), n_vectors=8, ridge=0.01).fit(X, y)
    Z = model.basis_.features(X)
    held_out = fvs.leave_one_out(Z, y[:, None], model.ridge_)[:, 0]
    assert model.held_out_error_ == pytest.approx(np.mean((y - held_out) ** 2), rel=1e-4)


def test_held_out_error_is_not_the_least_of_many():
    """Targets without a signal: the least leave-one-out error is below the variance, what is reported is not."""
    rng = np.random.default_rng(0)
    least, honest = [], []
    for _ in range(10):
        X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
        model = FeatureVectorRegressor(refine=False, prefer="accurate").fit(X, y)
        least.append(model.trace_.error.min() / y.var())
        honest.append(model.held_out_error_ / y.var())
    assert np.mean(least) < 0.99
    assert np.mean(honest) > 1.0


def test_preferences_give_smaller_models(curve):
    X, y = curve
    size = {
        p: FeatureVectorRegressor(prefer=p, refine=False).fit(X, y).n_vectors_
        for p in ("sparse", "balanced", "accurate")
    }
    assert size["sparse"] <= size["balanced"] <= size["accurate"]
    assert FeatureVectorRegressor(n_vectors=30, kernel=Gaussian(0.2)).fit(X, y).n_vectors_ == 30


def test_trace_holds_every_path(curve):
    X, y = curve
    model = FeatureVectorRegressor(max_vectors=10, refine=False).fit(X, y)
    trace = model.trace_
    # of nine widths every other one and the neighbors of the best, so that both sides of it are known
    assert trace.error.shape == trace.spread.shape == (6, 6, 11)
    assert 0 < trace.chosen[0] < 5
    np.testing.assert_allclose(trace.setting["width"] * X.std(axis=0), model.kernel_.width)
    assert (trace.setting["ridge"], trace.setting["n_vectors"]) == (model.ridge_, model.n_vectors_)
    one = FeatureVectorRegressor(max_vectors=10, kernel=Gaussian(0.5), ridge=0.1).fit(X, y)
    assert one.trace_.error.shape == (1, 1, 11)
    assert (one.kernel_.width, one.ridge_) == (0.5, 0.1)
    assert one.trace_.axes["width"] == (0.5,)


def test_noise_gets_next_to_no_vectors(rng):
    X, y = rng.standard_normal((100, 5)), rng.standard_normal(100)
    model = FeatureVectorRegressor().fit(X, y)
    assert model.n_vectors_ <= 5
    assert model.held_out_error_ == pytest.approx(y.var(), rel=0.15)


def test_narrow_kernel_does_not_pretend_to_predict(rng):
    X, y = rng.standard_normal((60, 10)), rng.standard_normal(60)
    model = FeatureVectorRegressor(kernel=Gaussian(width=0.05), ridge=0.0, prefer="accurate").fit(X, y)
    assert model.held_out_error_ > 0.9 * y.var()
    labels = y > 0
    labelled = FeatureVectorClassifier(kernel=Gaussian(width=0.05), ridge=0.0, n_vectors=20).fit(X, labels)
    assert labelled.held_out_error_ >= 0.4


def test_several_outputs(curve):
    X, y = curve
    Y = np.column_stack([y, np.cos(X[:, 0])])
    model = FeatureVectorRegressor(n_vectors=12, kernel=Gaussian(0.5), ridge=1e-3).fit(X, Y)
    assert model.predict(X).shape == (120, 2)
    for c in range(2):
        alone = FeatureVectorRegressor(n_vectors=12, kernel=Gaussian(0.5), ridge=1e-3).fit(X, Y[:, c])
        np.testing.assert_allclose(model.predict(X)[:, c], alone.predict(X), atol=1e-9)
    assert FeatureVectorRegressor(max_vectors=5).fit(X, y[:, None]).predict(X).shape == (120, 1)


@pytest.mark.parametrize("model", [FeatureVectorRegressor(refine=False), FeatureVectorDiscriminant()])
def test_an_error_that_still_falls_at_the_budget_is_named(model):
    x = np.linspace(0, 6, 200)
    X, y = x[:, None], np.sin(4 * x)
    y = y if isinstance(model, FeatureVectorRegressor) else (y > 0).astype(int)
    few = clone(model).set_params(max_vectors=8)
    with pytest.warns(BudgetWarning, match=r"FeatureVector\w+: .*still falling.* tried, 8;.*max_vectors=16 or more"):
        few.fit(X, y)
    assert few.trace_.open_end
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not clone(model).set_params(max_vectors=16).fit(X, y).trace_.open_end
        # as many as were asked for
        clone(model).set_params(n_vectors=10).fit(X, y)


def test_a_default_budget_that_is_too_small_is_named():
    """An oscillation that a tenth of the samples cannot follow; the advice is another, and moved vectors may do."""
    x = np.linspace(0, 6, 400)
    model = FeatureVectorRegressor(kernel=Gaussian(width=0.02))
    with pytest.warns(BudgetWarning, match=r'Use prefer="accurate", or max_vectors=200 or more'):
        model.fit(x[:, None], np.sin(60 * x))


def test_sparse_models_are_distilled_from_the_balanced_one(banana):
    """Not from one that is itself too short: that gave more vectors than "balanced", and more error."""
    balanced, sparse = (FeatureVectorClassifier(prefer=prefer).fit(*banana) for prefer in ("balanced", "sparse"))
    assert sparse.trace_.chosen == balanced.trace_.chosen
    assert sparse.n_vectors_ <= balanced.n_vectors_
    still = FeatureVectorClassifier(prefer="sparse", refine=False).fit(*banana)
    assert still.trace_.chosen != balanced.trace_.chosen


def test_paths_go_on_for_a_hard_curve():
    x = np.linspace(0, 1, 600)
    model = FeatureVectorRegressor(kernel=Gaussian(width=0.004), prefer="accurate").fit(x[:, None], np.sin(250 * x))
    assert model.n_vectors_ > 100


def test_many_samples_search_the_width_on_some(rng, monkeypatch):
    monkeypatch.setattr("fewkern.vectors.search.LARGE", 300)
    monkeypatch.setattr("fewkern.vectors.search.SEARCH_ROWS", 200)
    X = rng.uniform(-3, 3, (400, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    for rule in ("gain", "greedy"):
        model = FeatureVectorRegressor(rule=rule, refine=False).fit(X, y, sample_weight=rng.random(400))
        assert model.score(X, y) > 0.95
        np.testing.assert_allclose(model.trace_.setting["width"] * X.std(axis=0), model.kernel_.width)
        assert len(model.trace_.axes["width"]) <= 4


def test_binary_classifier(banana):
    X, y = banana
    model = FeatureVectorClassifier().fit(X, y)
    f, p = model.decision_function(X), model.predict_proba(X)
    assert f.shape == (300,)
    np.testing.assert_array_equal(model.predict(X), (f > 0).astype(int))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.85
    assert model.n_vectors_ < 60


@pytest.mark.parametrize("labels", [["a", "b", "c"], [10, -3, 7], ["x", "longer", ""], [0.5, 1.5, 2.0]])
def test_several_classes_of_any_kind(three, labels):
    X, y = three
    if isinstance(labels[0], float):
        labels = [1.0, 5.0, 2.0]
    target = np.array(labels)[y]
    model = FeatureVectorClassifier().fit(X, target)
    assert model.classes_.tolist() == sorted(labels)
    p = model.predict_proba(X)
    assert p.shape == model.decision_function(X).shape == (150, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert model.score(X, target) > 0.9
    assert model.predict(X).dtype == target.dtype


def test_many_classes(rng):
    y = np.arange(240) % 12
    X = np.column_stack([np.cos(y / 2), np.sin(y / 2)]) * 5 + 0.2 * rng.standard_normal((240, 2))
    assert FeatureVectorClassifier(max_vectors=40).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_calibrated(classes, rng):
    y = rng.integers(0, classes, 1200)
    X = rng.standard_normal((1200, 2)) + 1.5 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    model = FeatureVectorClassifier(max_vectors=20).fit(X[:300], y[:300])
    new, truth = X[300:], y[300:]
    values = model.expansion_(new)
    raw = softmax(values if classes > 2 else np.column_stack([-values[:, 0], values[:, 0]]) / 2)
    assert log_loss(truth, model.predict_proba(new)) < log_loss(truth, raw)
    confident = model.predict_proba(new).max(axis=1)
    assert np.mean(confident) == pytest.approx(model.score(new, truth), abs=0.04)


def test_held_out_error_of_the_classifier_is_that_of_refits(banana):
    """Where nothing is left to choose, leaving one out is all there is to it."""
    X, y = banana
    model = FeatureVectorClassifier(kernel=Gaussian(0.8), n_vectors=15, ridge=0.1).fit(X, y)
    held_out = fvs.leave_one_out(model.basis_.features(X), 2.0 * y[:, None] - 1, model.ridge_)[:, 0]
    assert model.held_out_error_ == pytest.approx(np.mean((held_out > 0) != y))


def test_class_weights(banana):
    X, y = banana
    settings = {"kernel": Gaussian(0.5), "n_vectors": 15, "ridge": 0.1}
    plain = FeatureVectorClassifier(**settings).fit(X, y)
    skewed = FeatureVectorClassifier(class_weight={0: 1, 1: 20}, **settings).fit(X, y)
    assert skewed.predict(X).mean() > plain.predict(X).mean()
    by_hand = FeatureVectorClassifier(**settings).fit(X, y, sample_weight=np.where(y == 1, 20.0, 1.0))
    np.testing.assert_allclose(skewed.decision_function(X), by_hand.decision_function(X), atol=1e-8)


def test_balanced_class_weights(banana):
    X, y = banana
    some = np.flatnonzero((y == 0) | (np.arange(300) % 5 == 0))
    X, y = X[some], y[some]
    settings = {"kernel": Gaussian(0.5), "n_vectors": 15, "ridge": 0.1}
    balanced = FeatureVectorClassifier(class_weight="balanced", **settings).fit(X, y)
    counts = np.bincount(y)
    by_hand = FeatureVectorClassifier(**settings).fit(X, y, sample_weight=len(y) / (2 * counts[y]))
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-8)
    labels = np.array(["no", "yes"])[y]
    named = FeatureVectorClassifier(class_weight={"yes": 20.0, "no": 1.0}, **settings).fit(X, labels)
    assert np.mean(named.predict(X) == "yes") > np.mean(y)


def test_only_the_ratios_of_weights_matter_without_a_ridge(banana):
    X, y = banana
    settings = {"kernel": Gaussian(0.5), "max_vectors": 15, "ridge": 0.0}
    one = FeatureVectorClassifier(**settings).fit(X, y)
    many = FeatureVectorClassifier(**settings).fit(X, y, sample_weight=np.full(300, 1e4))
    np.testing.assert_allclose(one.decision_function(X), many.decision_function(X), atol=1e-6)
    assert many.held_out_error_ == pytest.approx(one.held_out_error_)
