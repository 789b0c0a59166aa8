"""What every estimator must do, whatever it is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from fewkern import FeatureVectorSelector
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Linear
from tests.checks.everyone import (
    ALL,
    CLASSIFIERS,
    KERNELS,
    SUPERVISED,
    TRANSFORMERS,
    VECTORS,
    assert_same_outputs,
    every,
    fresh,
    outputs,
    use,
)

CHOOSING = [model for model in VECTORS if model in SUPERVISED]


@pytest.fixture
def data():
    return make_banana(80, random_state=3)


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


@every([*VECTORS, FeatureVectorSelector(center=True)])
def test_precomputed_kernel_equals_the_direct_one(model, data):
    X, y = data
    kernel = Gaussian(length_scale=0.7)
    new = X[:20] + 0.05
    direct = clone(model).set_params(kernel=kernel).fit(X, y)
    K = kernel(X, X)
    given = clone(model).set_params(kernel="precomputed").fit(K, y)
    assert given.indices_.tolist() == direct.indices_.tolist()
    assert_same_outputs(direct, given, new, kernel(new, X), tolerance=1e-6)


@every(VECTORS)
@pytest.mark.parametrize(
    "kernel", [Gaussian(length_scale=0.7), Gaussian(length_scale=[0.7, 0.9]), Linear()], ids=["g", "w", "l"]
)
def test_sparse_equals_dense(model, kernel, data):
    X, y = data
    X = np.where(X > 0.3, X, 0.0)
    X[~X.any(axis=1), 0] = 0.1
    # on a budget that no noise of rounding can exhaust
    dense = clone(model).set_params(kernel=kernel, max_vectors=2).fit(X, y)
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array):
        sparse = clone(model).set_params(kernel=kernel, max_vectors=2).fit(kind(X), y)
        assert_same_outputs(dense, sparse, X, kind(X), tolerance=1e-6)


@every(CHOOSING)
def test_grid_search_on_a_precomputed_kernel(model, data):
    X, y = data
    search = GridSearchCV(clone(model).set_params(kernel="precomputed"), {"alpha": [1e-3, 1e3]}, cv=2)
    assert search.fit(Gaussian(length_scale=0.7)(X, X), y).best_params_ == {"alpha": 1e-3}


@every(CHOOSING)
def test_half_of_the_weights_zero_with_everything_automatic(model, data):
    """As many vectors as samples of positive weight would look like a perfect model."""
    X, y = data
    y = np.random.default_rng(0).permutation(y)
    weights = np.where(np.arange(80) < 20, 1.0, 0.0)
    fitted = clone(model).set_params(max_vectors=None, alpha=0.0, kernel=Gaussian(length_scale=0.5)).fit(X, y, weights)
    assert fitted.n_vectors_ < 15


@every(KERNELS)
def test_callable_kernel(model, data):
    X, y = data

    def kernel(A, B):
        return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / (2 * 0.8**2))

    assert_same_outputs(
        clone(model).set_params(kernel=Gaussian(length_scale=0.8)).fit(X, y),
        clone(model).set_params(kernel=kernel).fit(X, y),
        X,
        tolerance=1e-6,
    )


@every(ALL)
def test_refit_with_other_settings_forgets_the_first_fit(model, data):
    """Attributes of an earlier fit must not answer for a later one."""
    X, y = data
    again = fresh(model).fit(np.column_stack([X, X[:, 0] ** 2]), (y + 1) % 2)
    if model in KERNELS:
        again.set_params(kernel=Gaussian(length_scale=1.5))
    again.fit(X, y)
    first = fresh(model, **({"kernel": Gaussian(length_scale=1.5)} if model in KERNELS else {})).fit(X, y)
    assert {key for key in vars(again) if key.endswith("_")} == {key for key in vars(first) if key.endswith("_")}
    assert_same_outputs(first, again, X, tolerance=0)


@every(ALL)
def test_float32_comes_back_as_float32(model, data):
    X, y = data
    X = X.astype(np.float32)
    fitted = fresh(model).fit(X, y)
    kept = {name: getattr(fitted, name, None) for name in ("vectors_", "fitness_", "means_", "covariance_", "priors_")}
    kept["coef"] = getattr(getattr(fitted, "expansion_", None), "coef", None)
    for name, value in {**outputs(fitted, X), **kept}.items():
        if value is not None and value.dtype.kind == "f":
            assert value.dtype == np.float32, name


@every(ALL)
def test_other_array_libraries(model, data, foreign):
    """The same choices and answers as in NumPy. A fitted model goes where the new samples are."""
    to, back = foreign
    X, y = data
    kind = type(to(X))
    here, there = fresh(model).fit(X, y), fresh(model).fit(to(X), to(y))
    for method, value in outputs(here, X).items():
        result = getattr(there, method)(to(X))
        assert isinstance(result, kind), method
        np.testing.assert_allclose(back(result), value, atol=1e-5, err_msg=method)
        if value.dtype.kind == "f":  # labels come back in the library of y
            assert isinstance(getattr(there, method)(X), np.ndarray), method
            moved = getattr(here, method)(to(X))
            assert isinstance(moved, kind), method
            np.testing.assert_allclose(back(moved), value, atol=1e-8, err_msg=method)
    if model in VECTORS:
        for attribute in ("indices_", "vectors_", "fitness_", "classes_", "eigenvalues_", "means_", "priors_"):
            if hasattr(here, attribute):
                assert isinstance(getattr(there, attribute), kind), attribute
                np.testing.assert_allclose(back(getattr(there, attribute)), getattr(here, attribute), atol=1e-6)


@every(ALL)
def test_a_sample_of_weight_zero_is_absent(model, data):
    X, y = data
    weights = np.ones(80)
    weights[::4] = 0.0
    kept = weights > 0
    fitted = fresh(model).fit(X, y, sample_weight=weights)
    assert_same_outputs(fresh(model).fit(X[kept], y[kept]), fitted, X, tolerance=1e-7)
    if getattr(fitted, "indices_", None) is not None:
        assert np.all(kept[fitted.indices_])


@every([model for model in ALL if "random_state" in model.get_params()])
def test_random_state(model, data):
    X, y = data
    for state in (None, np.random.default_rng(0)):
        use(fresh(model, random_state=state).fit(X, y), X)
    with pytest.raises(ValueError, match=r"The 'random_state' parameter of .* must be"):
        fresh(model, random_state="abc").fit(X, y)


# at a weight of 50 a constant function is a good kernel Fisher machine
@pytest.mark.filterwarnings("ignore:.*the midpoint rule is used:UserWarning")
@every([model for model in CLASSIFIERS if "class_weight" in model.get_params()])
def test_class_weight(model, data):
    X, y = data
    plain = fresh(model).fit(X, y)
    heavy = fresh(model, class_weight={0: 1.0, 1: 50.0}).fit(X, y)
    assert np.sum(heavy.predict(X) == 1) > np.sum(plain.predict(X) == 1)
    same = fresh(model).fit(X, y, sample_weight=np.where(y == 1, 50.0, 1.0))
    assert_same_outputs(same, heavy, X, tolerance=1e-8)


@every([model for model in ALL if "priors" in model.get_params()])
def test_priors_have_one_rule(model, data):
    X, y = data
    plain, likely = fresh(model).fit(X, y), fresh(model, priors=[0.01, 0.99]).fit(X, y)
    assert likely.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()
    for bad in ([2.0, 2.0], [0.0, 1.0], [0.5, 0.6], [0.2, 0.3, 0.5], [-0.5, 1.5]):
        with pytest.raises(ValueError, match="priors must be 2 positive numbers that add up to 1"):
            fresh(model, priors=bad).fit(X, y)
