"""Probabilities of every classifier: calibrated, consistent with predictions, and never worse than guessing."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from benchmarks.calibration import calibration_error
from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    ForwardKernelFisher,
    KernelClassifier,
    ParzenDensity,
    SparseKernelFisher,
)
from fewkern.kernels import Gaussian
from tests.checks.everyone import CLASSIFIERS, every, name

# Log loss on digits (600 samples) at most. Before probabilities were calibrated on samples held out it was higher.
DIGITS = [
    (KernelClassifier(), 0.12),
    (FeatureVectorDiscriminant(), 0.12),
    (ForwardKernelFisher(max_vectors=50), 0.12),
    (SparseKernelFisher(q=2, alpha=1e-3), 0.08),
]
# Strong penalties, narrow and wide kernels: what makes a fitted function nearly constant.
EXTREMES = [
    FeatureVectorDiscriminant(alpha=1e4, max_vectors=10),
    FeatureVectorDiscriminant(kernel=Gaussian(length_scale=0.05), n_vectors=10),
    SparseKernelFisher(q=2, alpha=10.0),
    ForwardKernelFisher(n_vectors=1),
    DensityClassifier(estimator=ParzenDensity(bandwidth=0.05)),
]


@pytest.mark.parametrize(("model", "limit"), DIGITS, ids=name)
def test_ten_classes(model, limit):
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    X, y = X[rows] / 16, y[rows]
    P = clone(model).fit(X[:600], y[:600]).predict_proba(X[600:])
    assert log_loss(y[600:], P) < limit
    assert calibration_error(P.max(axis=1), P.argmax(axis=1) == y[600:]) < 0.03


@every(CLASSIFIERS)
def test_wine(model):
    """Three classes, 89 samples to train on: a calibration error of .06 is chance. The order of the scores is kept."""
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = clone(model).fit(X[::2], y[::2])
    P = model.predict_proba(X[1::2])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(P.argmax(axis=1), model.predict(X[1::2]))
    assert log_loss(y[1::2], P) < 0.25
    assert calibration_error(P.max(axis=1), P.argmax(axis=1) == y[1::2]) < 0.1
    order = np.argsort(model.decision_function(X[1::2]), axis=1)
    assert np.all(np.diff(np.take_along_axis(P, order, axis=1), axis=1) >= 0)
    X, y = X[y < 2], y[y < 2]
    model = clone(model).fit(X, y)
    assert np.all(np.diff(model.predict_proba(X)[np.argsort(model.decision_function(X)), 1]) >= 0)


def problem(seed, n_classes):
    """Balanced classes around centers at a random distance: few samples, often many features; as many to test on."""
    rng = np.random.default_rng(seed)
    n, d = n_classes * int(rng.integers(5, 20)), int(10 ** rng.uniform(0, 2.5))
    centers = rng.standard_normal((n_classes, d))
    centers *= 3 * rng.random() / np.linalg.norm(centers, axis=1, keepdims=True)
    codes = np.arange(5 * n) % n_classes
    X = centers[codes] + rng.standard_normal((5 * n, d))
    return X[:n], codes[:n], X[n:], codes[n:]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS + EXTREMES, ids=name)
def test_no_accuracy_below_chance(model, n_classes):
    """Scores of held-out samples may fall with their classes where nothing is learned: no link may reverse them."""
    chance, right, tests = 1 / n_classes, [], []
    for seed in range(4):
        X, y, X_new, y_new = problem(seed, n_classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(model).fit(X, y)
        right.append(np.sum(fitted.predict(X_new) == y_new))
        tests.append(len(y_new))
        P = fitted.predict_proba(X_new)
        # equal to rounding where nothing was learned
        assert np.all(P[np.arange(len(P)), fitted.predict(X_new)] > P.max(axis=1) - 1e-9)
    right, tests = np.array(right), np.array(tests)
    # four standard deviations of a fair guess for one problem, three for all of them together
    assert np.all(right > chance * tests - 4 * np.sqrt(chance * (1 - chance) * tests))
    assert right.sum() > chance * tests.sum() - 3 * np.sqrt(chance * (1 - chance) * tests.sum())
