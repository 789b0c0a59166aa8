"""Bad input gets a clear error or a correct answer."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

import fewkern
from fewkern import FeatureVectorSelector
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from tests.checks.everyone import ALL, CLASSIFIERS, METHODS, SUPERVISED, VECTORS, every, use

SELECTOR = fewkern.FeatureVectorSelector(max_vectors=8)
REGRESSOR = fewkern.FeatureVectorRegressor(max_vectors=8)
DISCRIMINANT = fewkern.FeatureVectorDiscriminant(max_vectors=8)
PCA = fewkern.FeatureVectorPCA(max_vectors=8)
CHOOSING = [model for model in VECTORS if model in SUPERVISED]


@pytest.fixture
def data():
    return make_banana(40)


@every(CLASSIFIERS)
@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_text_labels(model, missing, data):
    X, y = data
    labels = np.array(["a", "b"], dtype=object)[y]
    labels[2] = missing
    with pytest.raises(ValueError, match=r"y has missing labels \(None, NaN or infinity\); drop those samples first"):
        clone(model).fit(X, labels)
    labels[2] = 3
    with pytest.raises(ValueError, match="y must hold labels of one kind, all text or all numbers"):
        clone(model).fit(X, labels)


@every(VECTORS)
def test_constant_features(model, data):
    """One column without spread changes nothing; nothing but constants leaves the constant answer."""
    X, y = data
    wide = np.column_stack([X, np.full(40, 5.0)])
    settings = {"kernel": Gaussian(length_scale=1.0)}
    plain, more = (clone(model).set_params(**settings).fit(A, y) for A in (X, wide))
    np.testing.assert_allclose(use(more, wide), use(plain, X), atol=1e-6)
    constant = np.full((40, 3), 0.3)
    fitted = clone(model).fit(constant, y)
    if is_regressor(model):
        np.testing.assert_allclose(fitted.predict(constant), y.mean())
    elif is_classifier(model):
        np.testing.assert_allclose(fitted.predict_proba(constant)[0], [0.5, 0.5], atol=1e-3)
    else:
        assert np.all(np.isfinite(fitted.transform(constant)))


@every(VECTORS)
def test_duplicated_rows(model, data):
    X, y = data
    X, y = np.repeat(X[:10], 8, axis=0), np.repeat(y[:10], 8)
    fitted = clone(model).set_params(max_vectors=60, kernel=Gaussian(length_scale=1.0)).fit(X, y)
    rows = [tuple(row) for row in X[fitted.indices_]]
    assert len(rows) == len(set(rows)) <= 10
    assert np.all(np.isfinite(use(fitted, X)))


@every(VECTORS)
def test_zero_kernel_diagonal(model):
    y = np.arange(10) % 2
    with pytest.raises(ValueError, match=r"every sample is a zero vector of the kernel \(k\(x, x\) = 0\)"):
        clone(model).set_params(kernel="linear").fit(np.zeros((10, 2)), y)
    X = np.zeros((10, 2))
    X[:4] = np.eye(2)[[0, 1, 0, 1]]
    fitted = clone(model).set_params(kernel="linear").fit(X, y)
    assert set(fitted.indices_.tolist()) <= {0, 1, 2, 3}
    assert np.all(np.isfinite(use(fitted, X)))


def test_identical_samples_with_a_centre():
    with pytest.raises(ValueError, match="use another kernel, or center=False"):
        FeatureVectorSelector(center=True).fit(np.ones((10, 2)))


@every(ALL)
def test_wrong_types_in_other_array_libraries(model, data, foreign):
    to, _ = foreign
    X, y = data
    with pytest.raises(ValueError, match=r"expected a 2-D array of samples, got shape \(40,\)"):
        clone(model).fit(to(X[:, 0]), to(y))
    with pytest.raises(ValueError, match="complex data is not supported"):
        clone(model).fit(to(X + 1j), to(y))
    with pytest.raises(ValueError, match="the samples contain NaN or infinity; fill or drop them first"):
        clone(model).fit(to(X * np.nan), to(y))
    with pytest.raises(ValueError, match=r"expected at least \d sample"):
        clone(model).fit(to(X[:0]), to(y[:0]))
    fitted = clone(model).fit(to(X), to(y))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* was fitted with 2"):
        use(fitted, to(np.zeros((4, 3))))


@every(CHOOSING)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_two_or_a_few_samples_are_enough(model, n, data):
    X, _ = data
    fitted = clone(model).set_params(max_vectors=None).fit(X[:n], np.arange(n) % 2)
    assert np.all(np.isfinite(fitted.predict(X)))


@every(ALL)
def test_not_fitted(model):
    for method in (*METHODS, "inverse_transform"):
        if hasattr(model, method):
            with pytest.raises(NotFittedError, match=f"This {type(model).__name__} instance is not fitted yet"):
                getattr(clone(model), method)(np.zeros((2, 2)))


@every(SUPERVISED)
def test_target_that_does_not_fit(model, data):
    X, y = data
    with pytest.raises(ValueError, match="X has 40 samples but y has 39"):
        clone(model).fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        clone(model).fit(X, None)


def test_targets_of_the_wrong_kind(data):
    X, y = data
    with pytest.raises(ValueError, match="not compatible with arrays of bytes/strings"):
        clone(REGRESSOR).fit(X, np.array(["a", "b"])[y])
    with pytest.raises(ValueError, match=r"one label per sample|multilabel|Unknown label type"):
        clone(DISCRIMINANT).fit(X, np.column_stack([y, 1 - y]))


@every(ALL)
def test_weights_that_do_not_fit(model, data):
    X, y = data
    for weights, message in (
        (np.ones(39), r"one number per sample, shape \(40,\), got \(39,\)"),
        (np.ones((40, 1)), "one number per sample"),
        (-np.ones(40), "finite, not negative and not all zero"),
        (np.zeros(40), "not all zero"),
        (np.full(40, np.nan), "sample_weight must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("model", "parameter", "value"),
    [
        (SELECTOR, "max_vectors", 0),
        (SELECTOR, "max_vectors", 2.5),
        (SELECTOR, "kernel", 3),
        (SELECTOR, "max_fitness", 0.0),
        (SELECTOR, "max_fitness", 1.1),
        (SELECTOR, "projection", "flat"),
        (SELECTOR, "center", -1),
        (SELECTOR, "center", "yes"),
        (REGRESSOR, "alpha", -1.0),
        (REGRESSOR, "prefer", "cheap"),
        (DISCRIMINANT, "class_weight", "even"),
        (DISCRIMINANT, "n_components", 0),
        (PCA, "n_components", 0),
    ],
)
def test_parameters_of_one_model(model, parameter, value, data):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {type(model).__name__} must be"):
        clone(model).set_params(**{parameter: value}).fit(*data)


@every(VECTORS)
def test_precomputed_kernel_that_is_none(model, data, rng):
    X, y = data
    K = Gaussian(1.0)(X, X)
    A = rng.standard_normal((40, 40))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        clone(model).set_params(kernel="precomputed").fit(A + A.T, y)
    fitted = clone(model).set_params(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match=r"X has 39 features, but .* is expecting 40 features"):
        use(fitted, K[:3, :39])
