"""Logistic regression on the vectors of a least-squares model."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from fewkern import FeatureVectorClassifier
from fewkern.core.basis import KernelBasis
from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian, Linear, Precomputed
from fewkern.vectors.leave_one_out import HeldOut, class_targets, solve
from fewkern.vectors.logistic import PENALTIES, Part, Stage, _choose, choose_logistic, logistic_path, refitted_folds


@pytest.fixture
def samples(rng):
    """Three classes in a row: least squares on a line hides the one in the middle."""
    codes = np.arange(150) % 3
    X = np.column_stack([2.0 * codes + 0.4 * rng.standard_normal(150), rng.standard_normal(150)])
    return class_targets(Samples.of(X, rng.integers(1, 4, 150).astype(float), codes=codes, n_classes=3))


@pytest.fixture
def stage(samples):
    return fitted_stage(samples)


@pytest.fixture
def pair(rng):
    """Two classes, one of which is far from the border."""
    codes = (np.arange(200) % 4 == 0).astype(int)
    X = np.column_stack([(3.0 + 2.0 * rng.exponential(size=200)) * codes, 0.0 * codes]) + rng.standard_normal((200, 2))
    return class_targets(Samples.of(X, rng.integers(1, 4, 200).astype(float), codes=codes, n_classes=2))


def fitted_stage(samples, standardized_on=None, ridge=0.1):
    kernel, rows = Linear(), np.array([0, 1])
    V = samples.X[rows]
    basis = KernelBasis(kernel, V, np.linalg.cholesky(V @ V.T), rows)
    solution = solve(basis.features(samples.X), samples.targets, ridge, samples.weights)
    return Stage.of(basis.expand(solution.W, solution.offset), basis, standardized_on or samples)


def loss(D, part, temperature, penalty):
    """Written out."""
    scores = temperature * part.values + part.features @ D
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    own = log_p[np.arange(len(scores)), part.samples.codes]
    return -np.sum(part.samples.weights * own) + penalty / 2 * np.sum(D**2)


def test_features_are_standardized(stage, samples):
    Q = stage.part(samples).features
    np.testing.assert_allclose(Q[:, 0], 1.0)
    np.testing.assert_allclose(np.average(Q[:, 1:], axis=0, weights=samples.weights), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.average(Q[:, 1:] ** 2, axis=0, weights=samples.weights), 1.0)


def test_a_constant_feature_is_left_alone(samples):
    still = class_targets(Samples.of(np.ones((6, 2)), codes=np.arange(6) % 3, n_classes=3))
    assert np.all(np.isfinite(fitted_stage(samples, still).part(still).features))


@pytest.mark.parametrize("penalty", [10.0, 0.1, 0.001])
def test_the_solution_is_a_minimum(stage, samples, penalty, rng):
    part = stage.part(samples)
    D = logistic_path(part, 3.0, [penalty])[0]
    best = loss(D, part, 3.0, penalty)
    assert best < loss(np.zeros_like(D), part, 3.0, penalty)
    for _ in range(20):
        assert loss(D + 0.3 * rng.standard_normal(D.shape), part, 3.0, penalty) > best


def test_between_least_squares_and_logistic_regression(stage, samples):
    part = stage.part(samples)
    np.testing.assert_allclose(logistic_path(part, 3.0, [1e6])[0], 0.0, atol=1e-4)
    D = logistic_path(part, 3.0, [0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])[-1]
    theirs = LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(samples.X, samples.codes, samples.weights)
    P = np.exp(3.0 * part.values + part.features @ D)
    np.testing.assert_allclose(P / P.sum(axis=1, keepdims=True), theirs.predict_proba(samples.X), atol=0.05)


def test_moved_is_the_sum_as_kernels(stage, samples, rng):
    D, part = rng.standard_normal((3, 3)), stage.part(samples)
    moved = stage.moved(2.0, D)
    np.testing.assert_allclose(moved(samples.X), 2.0 * part.values + part.features @ D, atol=1e-8)
    assert moved.vectors is stage.model.vectors


def test_weights_are_repetitions(samples):
    again = np.repeat(np.arange(samples.n), samples.weights.astype(int))
    many = class_targets(Samples.of(samples.X[again], codes=samples.codes[again], n_classes=3))
    found = []
    for data in (samples, many):
        one = fitted_stage(data)
        D = logistic_path(one.part(data), 3.0, PENALTIES)[-1]
        found.append(one.moved(3.0, D)(samples.X))
    np.testing.assert_allclose(*found, rtol=1e-2, atol=0.05)


def test_a_class_between_others_is_found(stage, samples):
    hidden = stage.model(samples.X).argmax(axis=1)
    assert np.mean(hidden[samples.codes == 1] == 1) < 0.5
    found = choose_logistic(stage, samples, refitted_folds(stage, samples, 0.1), 3.0)
    seen = found.expansion(samples.X).argmax(axis=1)
    assert np.mean(seen == samples.codes) > 0.95
    assert found.held_out.error_rate() == pytest.approx(np.mean(seen != samples.codes), abs=0.05)


def test_least_squares_mostly_stays_where_it_is_as_good():
    """Three round classes in a triangle, nothing is hidden; half a standard error is reached by chance now and then."""
    codes = np.arange(150) % 3
    X = 2 * np.column_stack([np.cos(2 * np.pi * codes / 3), np.sin(2 * np.pi * codes / 3)])
    changed = 0
    for seed in range(30):
        noise = np.random.default_rng(seed).standard_normal((150, 2))
        samples = class_targets(Samples.of(X + noise, codes=codes, n_classes=3))
        stage = fitted_stage(samples)
        changed += choose_logistic(stage, samples, refitted_folds(stage, samples, 0.1), 3.0) is not None
    assert changed <= 15


def test_a_class_of_one_sample_leaves_least_squares(stage, samples):
    lonely = Samples.of(samples.X, codes=np.where(np.arange(150) == 0, 2, samples.codes % 2), n_classes=3)
    assert refitted_folds(stage, class_targets(lonely), 0.1) is None


def test_other_array_libraries(stage, samples, foreign):
    to, back = foreign
    here = stage.part(samples)
    there = Samples.of(to(samples.X), to(samples.weights), codes=to(samples.codes), n_classes=3)
    D = logistic_path(Part(there, to(here.values), to(here.features)), 3.0, PENALTIES[:2])[-1]
    np.testing.assert_allclose(back(D), logistic_path(here, 3.0, PENALTIES[:2])[-1], atol=1e-6)


def test_the_estimator_says_what_it_minimized(samples):
    X, y = samples.X, samples.codes
    model = FeatureVectorClassifier(kernel=Linear()).fit(X, y)
    assert model.loss_ == "logistic"
    assert model.score(X, y) > 0.95


def test_two_classes_have_one_score(pair):
    """The same as scikit-learn's logistic regression, for the same penalty, if nothing comes from least squares."""
    part = fitted_stage(pair).part(pair)
    assert part.values.shape == (200, 1)
    D = logistic_path(part, 0.0, [30.0, 3.0])[-1]
    theirs = LogisticRegression(C=1 / 3.0, fit_intercept=False, tol=1e-8).fit(part.features, pair.codes, pair.weights)
    np.testing.assert_allclose(D[:, 0], theirs.coef_[0], rtol=0.01)


def test_two_classes_take_the_logistic_loss_where_it_is_better(pair):
    model = FeatureVectorClassifier(kernel=Linear()).fit(pair.X, pair.codes)
    assert model.loss_ == "logistic"
    assert model.expansion_.n_outputs == 1
    P = model.predict_proba(pair.X)
    np.testing.assert_array_equal(model.predict(pair.X), P.argmax(axis=1))
    theirs = LogisticRegression().fit(pair.X, pair.codes)
    assert log_loss(pair.codes, P) < 1.1 * log_loss(pair.codes, theirs.predict_proba(pair.X))


def held_out_path(margins):
    """Models on a path, by how far the score of 400 samples is on the right side."""
    codes = np.arange(400) % 2
    samples = Samples.of(np.zeros((400, 1)), codes=codes, n_classes=2)
    return [HeldOut(samples, ((2 * codes - 1) * np.asarray(one))[:, None]) for one in margins]


def test_a_likelier_model_with_more_errors_is_not_taken(rng):
    """The values of the first are hardly worth more than their signs."""
    right = np.where(np.arange(400) < 40, -1.0, 1.0)
    first = right * rng.exponential(size=400)
    likely = np.where(np.arange(400) < 42, -0.1, 3.0)
    assert _choose(held_out_path([first, likely])) == 0
    assert _choose(held_out_path([first, np.where(np.arange(400) < 40, -0.1, 3.0)])) == 1


def test_the_greatest_likelihood_is_taken_if_it_is_clearly_greater(rng):
    first = np.where(np.arange(400) < 40, -1.0, 1.0) * rng.exponential(size=400)
    good, wave = np.where(np.arange(400) < 40, -0.1, 3.0), np.sin(np.arange(400.0))
    assert _choose(held_out_path([first, 0.5 * first + 0.5 * good, good, 0.7 * first + 0.3 * good])) == 2
    assert _choose(held_out_path([good + 0.05 * wave, good - 0.05 * wave])) == 0
    assert _choose(held_out_path([good - 0.05 * wave, good + 0.05 * wave])) == 0


def test_two_classes_keep_to_a_ridge_that_is_given(pair):
    assert FeatureVectorClassifier(kernel=Linear(), ridge=1e-3).fit(pair.X, pair.codes).loss_ == "squared"


def test_a_precomputed_kernel_gives_the_same(samples):
    X, y = samples.X, samples.codes
    kernel, settings = Gaussian(3.0), {"n_vectors": 6, "ridge": 1.0}
    plain = FeatureVectorClassifier(kernel=kernel, **settings).fit(X, y)
    given = FeatureVectorClassifier(kernel=Precomputed(), **settings).fit(kernel(X, X), y)
    assert plain.loss_ == given.loss_
    np.testing.assert_allclose(given.predict_proba(kernel(X, X)), plain.predict_proba(X), atol=1e-6)
