"""The method ``explain`` of the estimators."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

import fewkern as fk
from fewkern.arrays.neighbors import weighted_centers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
TWO = np.where(NUMBERS > 1, "b", "a")
THREE = np.digitize(NUMBERS, [0.5, 1.5])


def compressed(model, y):
    return fk.compress(model.fit(X, y), X)


MODELS = {
    "KernelRegressor": lambda: fk.KernelRegressor(n_vectors=8).fit(X, NUMBERS),
    "two targets": lambda: fk.KernelRegressor(n_vectors=8).fit(X, np.c_[NUMBERS, X[:, 2]]),
    "KernelClassifier": lambda: fk.KernelClassifier(n_vectors=8).fit(X, TWO),
    "three classes": lambda: fk.KernelClassifier(n_vectors=8).fit(X, THREE),
    "FeatureVectorRegressor": lambda: fk.FeatureVectorRegressor().fit(X, NUMBERS),
    "FeatureVectorDiscriminant": lambda: fk.FeatureVectorDiscriminant().fit(X, THREE),
    "SparseKernelFisher": lambda: fk.SparseKernelFisher(cv=2).fit(X, TWO),
    "ForwardKernelFisher": lambda: fk.ForwardKernelFisher(cv=2).fit(X, THREE),
    "FeatureVectorPCA": lambda: fk.FeatureVectorPCA(n_components=3, max_vectors=20).fit(X),
    "SVC": lambda: compressed(SVC(), TWO),
    "KernelRidge": lambda: compressed(KernelRidge(kernel="rbf"), NUMBERS),
    "GaussianProcessRegressor": lambda: compressed(GaussianProcessRegressor(RBF(1.0), alpha=0.1), NUMBERS),
}


def values_of(model):
    """What is explained."""
    return next(getattr(model, name) for name in ("decision_function", "predict", "transform") if hasattr(model, name))


@pytest.mark.parametrize("name", MODELS)
def test_shares_add_up_to_the_prediction_and_files_keep_them(name, tmp_path):
    model = MODELS[name]()
    values = values_of(model)
    for background in (None, X[:20]):
        found = model.explain(X, background)
        assert_allclose(found.predictions, values(X), atol=1e-10)
        if background is not None:
            assert_allclose(found.baseline, values(background).mean(axis=0), atol=1e-10)
    assert found.values.shape[:2] == X.shape
    assert 8 < len(model.background_.centers) <= 16
    assert found.feature_names == ("feature 0", "feature 1", "feature 2")
    again = fk.load(fk.save(model, tmp_path / "model.npz"))
    assert_array_equal(again.explain(X[:5]).values, model.explain(X[:5]).values)


def test_classes_and_columns_have_names():
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    found = fk.KernelClassifier(n_vectors=8).fit(frame, THREE).explain(frame.head(4))
    assert found.feature_names == ("u", "v", "w")
    assert found.output_names == (0, 1, 2)
    assert found.values.shape == (4, 3, 3)


def test_what_decides_has_the_largest_share():
    found = fk.KernelRegressor(n_vectors=12).fit(X, NUMBERS).explain(X)
    sizes = np.abs(found.values).mean(axis=0)
    assert sizes[2] < 0.5 * sizes[:2].min()


def test_other_kernels_and_columns_are_refused():
    model = fk.FeatureVectorRegressor(kernel="polynomial").fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"FeatureVectorRegressor\.explain: .* Gaussian kernels only, .*Polynomial"):
        model.explain(X)
    with pytest.raises(ValueError, match="2 features"):
        fk.KernelRegressor(n_vectors=8).fit(X, NUMBERS).explain(X, X[:, :2])


@pytest.mark.parametrize("name", ["FeatureVectorDiscriminant", "SparseKernelFisher", "KernelRidge"])
def test_the_baseline_of_every_model_is_that_of_the_rows(name):
    model = MODELS[name]()
    values = values_of(model)
    spread = values(X).std(axis=0)
    assert_allclose(model.explain(X[:2]).baseline, values(X).mean(axis=0), atol=0.3 * spread.max())
    moved = X + [100.0, 0.0, 0.0]  # in the columns of the samples, wherever these lie
    kept = fk.FeatureVectorRegressor(kernel=fk.kernels.Gaussian(2.0)).fit(moved, NUMBERS).background_
    assert_allclose(kept.weights @ kept.centers * 2.0, moved.mean(axis=0), rtol=1e-9)


def test_precision_and_sparse_samples():
    model = fk.KernelRegressor(n_vectors=8).fit(X.astype(np.float32), NUMBERS.astype(np.float32))
    found = model.explain(X[:5].astype(np.float32))
    assert found.values.dtype == np.float32
    assert_allclose(found.predictions, model.predict(X[:5].astype(np.float32)), atol=1e-4)
    S = sparse.csr_matrix(X * (X > 0))
    model = fk.KernelRegressor(n_vectors=8).fit(S, NUMBERS)
    assert_allclose(model.explain(S[:5]).predictions, model.predict(S[:5]), atol=1e-10)


def test_the_background_of_a_given_basis_is_its_vectors():
    basis = fk.FeatureVectorRegressor(n_vectors=8).fit(X, NUMBERS).basis_
    model = fk.KernelRegressor().partial_fit(X, NUMBERS, basis=basis)
    assert model.background_ is None
    assert_allclose(model.explain(X).baseline, model.predict(model.vectors_).mean(), rtol=1e-9)


def test_centers_stand_for_the_rows_and_are_none():
    rows = np.vstack([RNG.normal(size=(200, 2)), [[50.0, 50.0]]])
    weights = RNG.uniform(0.5, 2, len(rows))
    centers, shares = weighted_centers(rows, weights)
    assert len(centers) <= 16
    assert_allclose(shares.sum(), 1)
    assert_allclose(shares @ centers, weights @ rows / weights.sum())
    assert min(np.abs(rows - center).max(axis=1).min() for center in centers) > 1e-6
    for few in (np.zeros((40, 2)), np.ones((1, 2)), np.repeat(np.eye(2), 10, axis=0)):
        assert len(weighted_centers(few, np.ones(len(few)))[0]) == len(np.unique(few, axis=0))
