"""Predictions are never reversed: accuracy is not below chance by more than noise, however little there is to learn."""

import warnings

import numpy as np
import pytest

from fewkern import SparseKernelFisher
from fewkern.kernels import Gaussian


def gaussians(n, d, length, seed, n_classes=2):
    """Classes around random centers of the given length, for every feature alike; as many samples to test on."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((n_classes, d))
    if n_classes == 2:
        centers[1] = -centers[0]
    centers *= length / np.linalg.norm(centers, axis=1, keepdims=True)
    codes = np.arange(2 * n) % n_classes
    X = centers[codes] + rng.standard_normal((2 * n, d))
    return X[:n], codes[:n], X[n:], codes[n:]


def accuracy(model, data):
    X, y, X_new, y_new = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model.score(X_new, y_new)


@pytest.mark.parametrize(("n", "d"), [(100, 1000), (40, 200)])
def test_many_features_and_few_samples(n, d):
    """Two Gaussian classes at +-mu, |mu| = .2 sqrt(d): nearly constant functions that still separate the classes."""
    data = gaussians(n, d, 0.2 * np.sqrt(d), seed=0)
    for model in (SparseKernelFisher(q=2), SparseKernelFisher(q=2, alpha=10.0)):
        assert accuracy(model, data) > 0.9
        assert model.score(*data[:2]) > 0.9


def test_the_fallback_is_a_warning():
    """Pairs of samples of different classes: what is held out has its neighbor, of the other class, to learn from."""
    X, y = np.repeat(np.arange(40.0), 2)[:, None], np.arange(80) % 2
    X[1::2] += 0.01
    model = SparseKernelFisher(kernel=Gaussian(length_scale=0.2), alpha=1e-3)
    with pytest.warns(UserWarning, match=r"SparseKernelFisher: cross-validated scores.*midpoint rule is used"):
        model.fit(X, y)
    assert model.held_out_error_ > 0.5
