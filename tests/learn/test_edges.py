"""Few rows, constant columns and other edges: a model that says what it is, or a clear error."""

from __future__ import annotations

import numpy as np
import pytest

from fewkern import KernelClassifier, KernelRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
Z = np.sin(X[:, 0])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 9, 11, 20])
def test_few_rows(n):
    regressor = KernelRegressor().fit(X[:n], Z[:n])
    classifier = KernelClassifier().fit(X[:n], np.arange(n) % 2)
    assert 1 <= regressor.n_vectors_ <= n
    assert np.isfinite(regressor.predict(X)).all()
    assert np.isfinite(classifier.predict_proba(X)).all()


def test_a_constant_column_and_equal_rows():
    model = KernelClassifier().fit(np.c_[X, np.ones(300)], Y)
    assert model.feature_importances_[3] == 0
    flat = KernelRegressor().fit(np.ones((40, 3)), np.arange(40.0))
    np.testing.assert_allclose(flat.predict(np.ones((1, 3))), 19.5, atol=1e-6)
    constant = KernelRegressor().fit(X, np.full(300, 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0)


def test_prefer_orders_the_sizes():
    sizes = [KernelRegressor(prefer=p).fit(X, Z + X[:, 1] ** 2).n_vectors_ for p in ("sparse", "balanced")]
    assert sizes == sorted(sizes)


def test_samples_as_vectors_are_rows_of_the_table():
    model = KernelRegressor().fit(X[:9], Z[:9])  # too few to hold any out
    assert model.origin_ == "samples"
    np.testing.assert_allclose(model.vectors_, X[model.indices_], atol=1e-8)


def test_several_outputs_are_predicted_together():
    targets = np.stack([Z, X[:, 1], X[:, 2] ** 2], axis=1)
    model = KernelRegressor().fit(X, targets)
    assert model.predict(X).shape == (300, 3)
    assert model.predict_interval(X, 0.8).shape == (300, 3, 2)
    assert model.score(X, targets) > 0.9


def test_the_path_names_what_was_compared():
    model = KernelRegressor().fit(X, Z)
    assert list(model.path_.axes) == ["origin", "n_vectors"]
    # standard errors of a mean over hundreds of rows, not of one row
    path = model.path_
    assert 0 < path.spread[path.chosen] < path.error[path.chosen]
    assert model.path_.setting["n_vectors"] == model.n_vectors_
    assert model.origin_ == ["samples", "distilled", "moved"][int(model.path_.setting["origin"])]
