"""``feature_importances_`` of every model that predicts from a sum of kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR

from fewkern import FeatureVectorDiscriminant, compress, load, save
from fewkern.kernels import Gaussian, Laplacian
from tests.checks.everyone import KERNELS, SUPERVISED, every, fresh

EXPLAINED = [model for model in SUPERVISED if hasattr(type(model), "feature_importances_")]
OF_ANY_KERNEL = [model for model in EXPLAINED if model in KERNELS]


@pytest.fixture
def data(rng):
    """Three features: one decides, one is noise, one is constant."""
    X = rng.normal(size=(80, 3))
    X[:, 2] = 4.0
    return X, X[:, 0]


def fitted(model, data, **parameters):
    X, y = data
    return fresh(model, **parameters).fit(X, (y > 0).astype(int) if is_classifier(model) else y)


def test_who_has_them():
    names = {type(model).__name__ for model in EXPLAINED}
    assert names == {
        "FeatureVectorDiscriminant",
        "FeatureVectorRegressor",
        "ForwardKernelFisher",
        "KernelClassifier",
        "KernelRegressor",
        "SparseKernelFisher",
    }


@every(EXPLAINED)
def test_shares(model, data):
    with pytest.raises(NotFittedError):
        _ = model.feature_importances_
    assert not hasattr(clone(model), "feature_importances_")
    found = fitted(model, data).feature_importances_
    assert found.shape == (3,)
    assert found.sum() == pytest.approx(1)
    assert found[0] > 0.8
    assert found[2] == 0


@every(EXPLAINED)
def test_files_keep_them(model, data, tmp_path):
    model = fitted(model, data)
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


@every(OF_ANY_KERNEL)
def test_no_derivatives(model, data):
    model = fitted(model, data, kernel=Laplacian())
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(AttributeError, match=rf"{type(model).__name__}: feature_importances_ needs the derivatives"):
        _ = model.feature_importances_


@every(EXPLAINED)
def test_sparse_samples_have_none(model, data):
    X, y = data
    assert not hasattr(fitted(model, (sp.csr_matrix(X), y)), "feature_importances_")


def test_a_second_fit_forgets_the_first(data):
    model = fitted(FeatureVectorDiscriminant(max_vectors=12), data)
    model.set_params(kernel=Laplacian()).fit(data[0], (data[1] > 0).astype(int))
    assert not hasattr(model, "feature_importances_")


@pytest.mark.parametrize("machine", [SVC(C=10.0), SVR(C=10.0)])
def test_compressed_models(machine, data, tmp_path):
    X, y = data
    short = compress(machine.fit(X, y > 0 if is_classifier(machine) else y), X, n_vectors=6)
    found = short.feature_importances_
    assert found[0] > 0.6
    assert found[2] == 0
    np.testing.assert_array_equal(load(save(short, tmp_path / "short")).feature_importances_, found)


@pytest.mark.parametrize("slope", [np.inf, np.nan, 1e200])
@every(OF_ANY_KERNEL)
def test_slopes_that_are_no_numbers_are_not_handed_out(model, slope, data):
    """A kernel may be so steep that its slopes, or their squares, overflow: no importances are better than NaN."""

    @dataclass(eq=False, repr=False)
    class Steep(Gaussian):
        def pullback(self, X, V, K, D):
            return super().pullback(X, V, K, D) * 0 + slope

    found = fitted(model, data, kernel=Steep(1.0))
    assert np.all(np.isfinite(found.predict(data[0]).astype(float)))
    assert not hasattr(found, "feature_importances_")
    with pytest.raises(AttributeError, match="feature_importances_ needs the derivatives of the fitted function"):
        _ = found.feature_importances_
