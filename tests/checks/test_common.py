"""What every estimator must do, whatever it is."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import (
    FeatureVectorClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
)
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Linear

SELECTOR = FeatureVectorSelector(max_vectors=10)
REGRESSOR = FeatureVectorRegressor(max_vectors=12)
CLASSIFIER = FeatureVectorClassifier(max_vectors=12)
DISCRIMINANT = FeatureVectorDiscriminant(max_vectors=12)
PCA = FeatureVectorPCA(n_components=3, max_vectors=10)
ALL = [SELECTOR, REGRESSOR, CLASSIFIER, DISCRIMINANT, PCA]
SUPERVISED = [REGRESSOR, CLASSIFIER, DISCRIMINANT]
TRANSFORMERS = [SELECTOR, DISCRIMINANT, PCA]


def name(value):
    return type(value).__name__ if hasattr(value, "get_params") else None


def every(models):
    return pytest.mark.parametrize("model", models, ids=name)


@pytest.fixture
def data():
    return make_banana(80, random_state=3)


def outputs(model, X):
    """Everything that a fitted model says of samples."""
    return {
        method: np.asarray(getattr(model, method)(X))
        for method in ("predict", "predict_proba", "decision_function", "transform")
        if hasattr(model, method)
    }


def assert_same_outputs(one, other, X, Y=None, tolerance=1e-9):
    ours, theirs = outputs(one, X), outputs(other, X if Y is None else Y)
    assert ours.keys() == theirs.keys()
    for method, value in ours.items():
        if value.dtype.kind in "fc":
            np.testing.assert_allclose(theirs[method], value, atol=tolerance, err_msg=method)
        else:
            np.testing.assert_array_equal(theirs[method], value, err_msg=method)


@every(ALL)
def test_pandas_and_polars_in(model, data):
    X, y = data
    plain = clone(model).fit(X, y)
    for frame, target in ((pd.DataFrame(X, columns=["a", "b"]), pd.Series(y)), (pl.DataFrame(X), pl.Series(y))):
        framed = clone(model).fit(frame, target)
        assert list(framed.feature_names_in_) == list(frame.columns)
        assert_same_outputs(plain, framed, X, frame)


@every(TRANSFORMERS)
def test_frames_out_and_feature_names(model, data):
    X, y = data
    frame = pd.DataFrame(X, index=np.arange(80) + 5)
    frame.columns = ["a", "b"]
    fitted = clone(model).set_output(transform="pandas").fit(frame, y)
    out = fitted.transform(frame)
    names = [f"{type(model).__name__.lower()}{j}" for j in range(out.shape[1])]
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == list(fitted.get_feature_names_out()) == names
    assert out.index.tolist() == frame.index.tolist()
    assert isinstance(clone(model).set_output(transform="polars").fit_transform(X, y), pl.DataFrame)


@every(TRANSFORMERS)
def test_fit_transform_equals_fit_then_transform(model, data):
    X, y = data
    np.testing.assert_allclose(clone(model).fit_transform(X, y), clone(model).fit(X, y).transform(X), atol=1e-7)


@every(ALL)
def test_clone_and_parameters(model, data):
    X, y = data
    before = repr(model.get_params())
    fitted = clone(model).fit(X, y)
    assert repr(fitted.get_params()) == repr(clone(fitted).get_params()) == before
    assert not hasattr(clone(fitted), "kernel_")


@every(ALL)
def test_pickle(model, data):
    X, y = data
    fitted = clone(model).fit(X, y)
    assert_same_outputs(fitted, pickle.loads(pickle.dumps(fitted)), X, tolerance=0)


@every(ALL)
@pytest.mark.parametrize("rule", ["gain", "random", "uniform"])
def test_same_seed_same_model(model, rule, data):
    X, y = data
    one, two, other = (clone(model).set_params(rule=rule, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert one.indices_.tolist() == two.indices_.tolist() != other.indices_.tolist()
    generators = [clone(model).set_params(rule=rule, random_state=np.random.RandomState(4)).fit(X, y) for _ in "ab"]
    assert generators[0].indices_.tolist() == generators[1].indices_.tolist()


@every(ALL)
@pytest.mark.parametrize("rule", ["gain", "greedy"])
def test_fitted_attributes(model, rule, data):
    X, y = data
    fitted = clone(model).set_params(rule=rule).fit(X, y)
    assert fitted.n_vectors_ == len(fitted.indices_) == len(fitted.vectors_)
    np.testing.assert_array_equal(fitted.vectors_, X[fitted.indices_])
    assert np.all(np.diff(fitted.fitness_) >= 0)
    assert isinstance(fitted.kernel_.width, float)
    assert fitted.n_features_in_ == 2
    if hasattr(fitted, "expansion_"):
        assert fitted.expansion_.n_vectors == fitted.n_vectors_


@every(ALL)
@pytest.mark.parametrize("rule", ["gain", "greedy"])
def test_precomputed_kernel_equals_the_direct_one(model, rule, data):
    X, y = data
    kernel = Gaussian(width=0.7)
    new = X[:20] + 0.05
    direct = clone(model).set_params(kernel=kernel, rule=rule).fit(X, y)
    K = kernel(X, X)
    given = clone(model).set_params(kernel="precomputed", rule=rule).fit(K, y)
    assert given.indices_.tolist() == direct.indices_.tolist()
    assert_same_outputs(direct, given, new, kernel(new, X), tolerance=1e-6)


@every(ALL)
@pytest.mark.parametrize("kernel", [Gaussian(width=0.7), Gaussian(width=[0.7, 0.9]), Linear()], ids=["g", "w", "l"])
def test_sparse_equals_dense(model, kernel, data):
    X, y = data
    X = np.where(X > 0.3, X, 0.0)
    X[~X.any(axis=1), 0] = 0.1
    # on a budget that no noise of rounding can exhaust
    dense = clone(model).set_params(kernel=kernel, max_vectors=2).fit(X, y)
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array):
        sparse = clone(model).set_params(kernel=kernel, max_vectors=2).fit(kind(X), y)
        assert_same_outputs(dense, sparse, X, kind(X), tolerance=1e-6)


@every(ALL)
@pytest.mark.parametrize("rule", ["gain", "greedy"])
def test_float32_is_kept(model, rule, data):
    X, y = data
    X = X.astype(np.float32)
    fitted = clone(model).set_params(rule=rule).fit(X, y)
    for method, value in outputs(fitted, X).items():
        if value.dtype.kind == "f":
            assert value.dtype == np.float32, method
    for attribute in ("vectors_", "fitness_", "eigenvalues_", "inertia_", "means_", "covariance_", "priors_"):
        if hasattr(fitted, attribute):
            assert getattr(fitted, attribute).dtype == np.float32, attribute
    if hasattr(fitted, "expansion_"):
        assert fitted.expansion_.coef.dtype == np.float32


@every(ALL)
def test_float32_and_float64_agree(model, data):
    X, y = data
    settings = {"kernel": Gaussian(width=1.0), "max_vectors": 5, "rule": "greedy"}
    small = clone(model).set_params(**settings).fit(X.astype(np.float32), y)
    large = clone(model).set_params(**settings).fit(X, y)
    for one, other in zip(outputs(small, X.astype(np.float32)).values(), outputs(large, X).values()):
        if one.dtype.kind == "f":
            assert np.mean(np.abs(one - other)) < 0.02 * max(1.0, np.abs(other).max())


@every(ALL)
@pytest.mark.parametrize("rule", ["gain", "greedy"])
def test_other_array_libraries(model, rule, data, foreign):
    to, back = foreign
    X, y = data
    settings = {"kernel": Gaussian(width=0.8), "rule": rule}
    here = clone(model).set_params(**settings).fit(X, y)
    there = clone(model).set_params(**settings).fit(to(X), to(y))
    kind = type(to(X))
    for method, value in outputs(here, X).items():
        result = getattr(there, method)(to(X))
        assert isinstance(result, kind), method
        np.testing.assert_allclose(back(result), value, atol=1e-6, err_msg=method)
    for attribute in ("indices_", "vectors_", "fitness_", "classes_", "eigenvalues_", "inertia_", "means_", "priors_"):
        if hasattr(here, attribute):
            assert isinstance(getattr(there, attribute), kind), attribute
            np.testing.assert_allclose(back(getattr(there, attribute)), getattr(here, attribute), atol=1e-6)


@every(SUPERVISED)
def test_automatic_choice_in_other_array_libraries(model, data, foreign):
    to, back = foreign
    X, y = data
    here, there = clone(model).fit(X, y), clone(model).fit(to(X), to(y))
    assert back(there.indices_).tolist() == here.indices_.tolist()
    np.testing.assert_allclose(back(there.predict(to(X))), here.predict(X), atol=1e-6)


@every(SUPERVISED)
def test_pipeline_grid_search_and_cross_validation(model, data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), clone(model))
    prefix = type(model).__name__.lower()
    grid = {f"{prefix}__ridge": [1e-2, 1e4], f"{prefix}__rule": ["gain", "greedy"]}
    search = GridSearchCV(pipe, grid, cv=2).fit(X, y)
    assert search.best_params_[f"{prefix}__ridge"] == 1e-2
    assert cross_val_score(clone(model), X, y, cv=3).mean() > (0.75 if is_classifier(model) else 0.3)


@every(SUPERVISED)
def test_grid_search_on_a_precomputed_kernel(model, data):
    X, y = data
    search = GridSearchCV(clone(model).set_params(kernel="precomputed"), {"ridge": [1e-3, 1e3]}, cv=2)
    assert search.fit(Gaussian(width=0.7)(X, X), y).best_params_ == {"ridge": 1e-3}


@every(SUPERVISED)
def test_integer_weights_are_repetitions(model, data, rng):
    X, y = data
    weights = rng.integers(1, 4, 80)
    again = np.repeat(np.arange(80), weights)
    settings = {"kernel": Gaussian(width=0.8), "n_vectors": 40, "rule": "greedy", "center": False, "ridge": 0.1}
    weighted = clone(model).set_params(**settings).fit(X, y, sample_weight=weights)
    repeated = clone(model).set_params(**settings).fit(X[again], y[again])
    assert again[repeated.indices_].tolist() == weighted.indices_.tolist()
    ours, theirs = outputs(weighted, X), outputs(repeated, X)
    ours.pop("predict_proba", None)  # its factor comes from leave-one-out, which leaves one copy out at a time
    for method, value in ours.items():
        np.testing.assert_allclose(theirs[method], value, atol=1e-6, err_msg=method)


@every([SELECTOR, PCA])
def test_integer_weights_are_repetitions_without_a_target(model, data, rng):
    X, _ = data
    weights = rng.integers(1, 4, 80)
    again = np.repeat(np.arange(80), weights)
    settings = {"kernel": Gaussian(width=0.8), "rule": "greedy", "center": False}
    weighted = clone(model).set_params(**settings).fit(X, sample_weight=weights)
    repeated = clone(model).set_params(**settings).fit(X[again])
    np.testing.assert_allclose(repeated.fitness_, weighted.fitness_, atol=1e-10)
    np.testing.assert_allclose(repeated.transform(X), weighted.transform(X), atol=1e-6)


@every(ALL)
@pytest.mark.parametrize("rule", ["gain", "greedy", "random", "uniform"])
def test_weight_zero_is_as_good_as_absent(model, rule, data):
    X, y = data
    weights = np.ones(80)
    weights[::4] = 0.0
    settings = {"kernel": Gaussian(width=0.8), "rule": rule, "center": False}
    fitted = clone(model).set_params(**settings).fit(X, y, sample_weight=weights)
    assert np.all(weights[fitted.indices_] > 0)
    if rule == "greedy":
        without = clone(model).set_params(**settings).fit(X[weights > 0], y[weights > 0])
        assert np.flatnonzero(weights)[without.indices_].tolist() == fitted.indices_.tolist()
        assert_same_outputs(without, fitted, X, tolerance=1e-6)


@every(SUPERVISED)
def test_half_of_the_weights_zero_with_everything_automatic(model, data):
    """As many vectors as samples of positive weight would look like a perfect model."""
    X, y = data
    y = np.random.default_rng(0).permutation(y)
    weights = np.where(np.arange(80) < 20, 1.0, 0.0)
    fitted = clone(model).set_params(max_vectors="auto", ridge=0.0, kernel=Gaussian(width=0.5)).fit(X, y, weights)
    assert fitted.n_vectors_ < 15


@every(ALL)
def test_callable_kernel(model, data):
    X, y = data

    def kernel(A, B):
        return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / (2 * 0.8**2))

    assert_same_outputs(
        clone(model).set_params(kernel=Gaussian(width=0.8)).fit(X, y),
        clone(model).set_params(kernel=kernel).fit(X, y),
        X,
        tolerance=1e-6,
    )


def test_kinds_of_estimators():
    assert is_classifier(CLASSIFIER)
    assert is_classifier(DISCRIMINANT)
    assert is_regressor(REGRESSOR)
