"""Every estimator, with every kernel that can be written out, gives the same in every language as in Python."""

import functools

import numpy as np
import pytest
from sklearn.base import clone, is_regressor

import fewkern
from fewkern.kernels import Gaussian, Laplacian, Linear, LinearSpline, Polynomial
from tests.checks.everyone import public_estimators
from tests.io.running import assert_exported, expected, run_sanitized

KERNELS = {
    "gaussian": Gaussian(length_scale=1.5),
    "widths": Gaussian(length_scale=[1.0, 1.5, 2.0]),
    "laplacian": Laplacian(length_scale=3.0),
    "laplacians": Laplacian(length_scale=[2.0, 3.0, 4.0]),
    "polynomial": Polynomial(degree=3, gamma=0.3),
    "linear": Linear(),
    "spline": LinearSpline(),
}
# Settings to export an estimator with, where those of every test do not do.
SETTINGS = {
    "FeatureVectorSelector": [{"max_vectors": 3}, {"max_vectors": 3, "rule": "greedy", "projection": "symmetric"}],
    "FeatureVectorRegressor": [{"max_vectors": 6, "alpha": 1e-2}],
    "FeatureVectorDiscriminant": [{"max_vectors": 6, "alpha": 1e-2}],
    "FeatureVectorPCA": [{"max_vectors": 4, "n_components": 2}],
    "KernelClassifier": [{"max_vectors": 6}, {"n_vectors": 12}],
    "KernelRegressor": [{"max_vectors": 6}, {"n_vectors": 12}],
    "SparseKernelFisher": [{"alpha": 0.05}, {"alpha": 0.1, "q": 2.0}],
    "ForwardKernelFisher": [{"n_vectors": 4}],
    "RecursiveSVM": [{"n_components": 2, "max_vectors": 6}],
    "RecursiveSoftMargin": [{"n_components": 2, "max_vectors": 6, "alpha": 0.1}],
    "GraphEmbedding": [{"n_components": 2, "max_vectors": 6}],
    "ParzenDensity": [{}, {"scale": "whiten"}],
}
# The spline kernel is not bounded: with the penalties above coefficients cancel, and float has too few figures.
STRONGER = {"SparseKernelFisher": {"alpha": 20.0}}


@functools.cache
def samples():
    """Samples, their three classes, two classes, and new samples, some far outside; all exact in float32."""
    rng = np.random.default_rng(0)
    y = np.arange(75) % 3
    X = rng.standard_normal((75, 3)) + 1.5 * np.eye(3)[y]
    new = np.concatenate([X[:10] + 0.1, 2.5 * rng.standard_normal((15, 3)), [[30.0, -20.0, 10.0]]])
    return (
        X.astype(np.float32).astype(float),
        np.array(["ash", "birch", "cedar"])[y],
        np.where(y == 2, 7, -3),
        new.astype(np.float32).astype(float),
    )


def cases():
    for name, estimator in public_estimators().items():
        kernels = KERNELS if "kernel" in estimator().get_params() else {"": None}
        for i, given in enumerate(SETTINGS.get(name, [{}])):
            for label, kernel in kernels.items():
                if i and label not in ("", "gaussian"):
                    continue
                two = (False, True) if "predict_proba" in dir(estimator) and label in ("", "gaussian") else (False,)
                for binary in two:
                    chosen = given if kernel is None else {**given, "kernel": kernel}
                    if label == "spline":
                        chosen = {**chosen, **STRONGER.get(name, {})}
                    text = "-".join(filter(None, [name, label, str(i) if i else "", "two" if binary else ""]))
                    yield pytest.param(estimator(**chosen), binary, id=text)


@pytest.mark.filterwarnings("ignore:[A-Za-z]*Density.*:UserWarning")
@pytest.mark.parametrize(("model", "binary"), list(cases()))
def test_exports_say_what_the_model_says(model, binary, tmp_path):
    X, three, two, new = samples()
    y = two if binary else three
    if is_regressor(model):
        y = np.sin(X[:, :2])
    check(clone(model).fit(X, y), new, tmp_path)


@pytest.mark.parametrize("binary", [True, False])
def test_the_midpoint_rule(binary, tmp_path):
    """A class of four samples is too small to calibrate on: probabilities are shares of least squares."""
    X, three, two, new = samples()
    y = two if binary else three
    last = np.flatnonzero(y == np.unique(y)[-1])
    X, y = np.delete(X, last[4:], axis=0), np.delete(y, last[4:])
    model = fewkern.SparseKernelFisher(alpha=0.05).fit(X, y)
    check(model, new, tmp_path)
    assert model.class_scores_.shares == (0.0, 1.0)


FAR = np.array([1e3, 1e9])


def wild_samples(new):
    """Far out, as far out as numbers go, infinite, and not a number."""
    signs = np.random.default_rng(1).uniform(-1, 1, (len(FAR), new.shape[1]))
    edge = np.array([[1e300, 1e300, -1e300], [np.inf, 0, 0], [-np.inf, np.inf, 1]])
    none = np.array([[np.nan, 0, 0], [np.nan, np.inf, 1e300]])
    return np.concatenate([FAR[:, None] * signs, edge, none])


def assert_wild(found, fitted, wild, dtype):
    """Far out C says what the model says, in double; where a sample is not a number, neither is an output."""
    truth = expected(fitted, wild[: len(FAR)])
    for name, value in found.items():
        if name == "label":
            continue  # the program has looked its name up
        # a model without vectors, or with none that matters, is a constant
        depends = not np.array_equal(value[0], value[1])
        assert np.isnan(value[-2:]).all() or not depends, name
        if dtype == "double" and name in ("variable", "decision", "log_density"):
            scale = np.abs(truth[name]).max(axis=1, keepdims=True)
            assert np.all(np.abs(value[: len(FAR)] - truth[name]) <= 1e-8 * scale), name
        if name == "probabilities":
            finite = value[np.isfinite(value).all(axis=1)]
            np.testing.assert_allclose(finite.sum(axis=1), 1.0, rtol=1e-5)
            assert finite.min(initial=0.0) >= 0


def check(fitted, new, tmp_path):
    assert_exported(tmp_path, fitted, new)
    wild = wild_samples(new)
    for dtype in ("float", "double"):
        assert_wild(run_sanitized(tmp_path, fitted, wild, dtype), fitted, wild, dtype)
