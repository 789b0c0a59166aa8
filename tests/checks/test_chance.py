"""No classifier is worse than guessing by more than noise, however little there is to learn.

What a model says of samples left out can fall with their classes where nearly nothing is learned; whatever is fitted to
that must not turn the predictions round.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    ForwardKernelFisher,
    ParzenDensity,
    SparseKernelFisher,
)
from fewkern.kernels import Gaussian
from tests.checks.everyone import CLASSIFIERS, name

# Strong penalties, narrow and wide kernels: what makes a fitted function nearly constant.
EXTREMES = [
    FeatureVectorDiscriminant(alpha=1e4, max_vectors=10),
    FeatureVectorDiscriminant(kernel=Gaussian(length_scale=0.05), n_vectors=10),
    SparseKernelFisher(q=2, alpha=10.0),
    ForwardKernelFisher(n_vectors=1),
    DensityClassifier(estimator=ParzenDensity(bandwidth=0.05)),
]


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
