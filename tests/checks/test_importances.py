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
from fewkern.learn.base import LearningEstimator
from tests.checks.everyone import KERNELS, SUPERVISED, every, fresh

EXPLAINED = [model for model in SUPERVISED if hasattr(type(model), "feature_importances_")]
OF_ANY_KERNEL = [model for model in EXPLAINED if model in KERNELS]
# Three features: one decides, one is noise, one is constant.
X = np.random.default_rng(0).normal(size=(80, 3)) * [1, 1, 0] + [0, 0, 4]


def fitted(model, X=X, **parameters):
    y = np.random.default_rng(0).normal(size=(80, 3))[:, 0]
    return fresh(model, **parameters).fit(X, y > 0 if is_classifier(model) else y)


def test_who_has_them():
    fisher, vectors = {"ForwardKernelFisher", "SparseKernelFisher"}, {"Discriminant", "Regressor"}
    names = fisher | {f"FeatureVector{name}" for name in vectors} | {"KernelClassifier", "KernelRegressor"}
    assert {type(model).__name__ for model in EXPLAINED} == names


@every([*EXPLAINED, SVC(C=10.0), SVR(C=10.0)])
def test_shares_which_files_keep(model, tmp_path):
    machine = fitted(model)
    if model in EXPLAINED:
        with pytest.raises(NotFittedError):
            _ = model.feature_importances_
        assert not hasattr(clone(model), "feature_importances_")
    else:
        machine = compress(machine, X, n_vectors=6)
    found = machine.feature_importances_
    assert found.shape == (3,)
    assert found.sum() == pytest.approx(1)
    assert found[0] > (0.8 if model in EXPLAINED else 0.6)
    assert found[2] == 0
    np.testing.assert_array_equal(load(save(machine, tmp_path / "model")).feature_importances_, found)


@every(EXPLAINED)
def test_sparse_samples_have_none_but_where_they_have_the_model_of_a_dense_copy(model):
    found = fitted(model, sp.csr_matrix(X))
    assert hasattr(found, "feature_importances_") == isinstance(found, LearningEstimator)


def test_a_second_fit_forgets_the_first():
    model = fitted(FeatureVectorDiscriminant(max_vectors=12))
    model.set_params(kernel=Laplacian()).fit(X, X[:, 0] > 0)
    assert not hasattr(model, "feature_importances_")


@pytest.mark.parametrize("slope", [None, np.inf, np.nan, 1e200])
@every(OF_ANY_KERNEL)
def test_without_derivatives_that_are_numbers_there_are_none(model, slope):
    """A kernel may be so steep that its slopes, or their squares, overflow: no importances are better than NaN."""

    @dataclass(eq=False, repr=False)
    class Steep(Gaussian):
        def pullback(self, X, V, K, D):
            return super().pullback(X, V, K, D) * 0 + slope

    found = fitted(model, kernel=Laplacian() if slope is None else Steep(1.0))
    assert np.all(np.isfinite(found.predict(X).astype(float)))
    assert not hasattr(found, "feature_importances_")
    with pytest.raises(AttributeError, match=rf"{type(model).__name__}: feature_importances_ needs the derivatives"):
        _ = found.feature_importances_
