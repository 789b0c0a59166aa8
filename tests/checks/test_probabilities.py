"""Probabilities of every classifier on real sets: calibrated, consistent with predictions, worth their log loss."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from benchmarks.calibration import calibration_error
from fewkern import FeatureVectorDiscriminant, ForwardKernelFisher, KernelClassifier, SparseKernelFisher
from tests.checks.everyone import CLASSIFIERS, every, name

# Log loss on digits (600 samples) at most. Before probabilities were calibrated on samples held out it was higher.
DIGITS = [
    (KernelClassifier(), 0.12),
    (FeatureVectorDiscriminant(), 0.12),
    (ForwardKernelFisher(max_vectors=50), 0.12),
    (SparseKernelFisher(q=2, alpha=1e-3), 0.08),
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    return X[rows] / 16, y[rows]


@pytest.mark.parametrize(("model", "limit"), DIGITS, ids=name)
def test_ten_classes(model, limit, digits):
    X, y = digits
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
