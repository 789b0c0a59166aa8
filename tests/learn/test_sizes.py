"""Numbers of vectors that were asked for, and what lies outside the table."""

import warnings

import numpy as np
import pytest

from fewkern import KernelClassifier, KernelRegressor
from fewkern.base import BudgetWarning
from fewkern.datasets import make_banana, make_sinc


@pytest.mark.parametrize("size", [1, 2, 5, 30, 90])
def test_a_number_of_vectors_is_kept_to(size):
    model = KernelRegressor(n_vectors=size).fit(*make_sinc(120, noise=0.1))
    assert model.n_vectors_ == size
    assert model.path_.axes["n_vectors"] == (size,)
    assert KernelRegressor(n_vectors=size).fit(*make_sinc(8)).n_vectors_ == min(size, 8)


@pytest.mark.parametrize("most", [1, 4, 30])
def test_larger_models_than_allowed_only_teach(most):
    model = KernelClassifier(max_vectors=most).fit(*make_banana(300))
    assert model.n_vectors_ <= most
    assert max(model.path_.axes["n_vectors"]) <= most
    distilled = model.path_.error[1]
    assert np.isfinite(distilled).any()
    assert distilled.min() < 0.6


def test_a_budget_that_is_too_small_is_said_where_fit_was_called():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(600, 1))
    with pytest.warns(BudgetWarning, match="still falling .* tried, 6. Use max_vectors=12") as caught:
        KernelRegressor(max_vectors=6).fit(X, np.sin(5 * X[:, 0]))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRegressor(n_vectors=6).fit(X, np.sin(5 * X[:, 0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_lies_far_outside_the_table_is_novel(dtype):
    X, y = make_banana(300)
    model = KernelClassifier().fit(X.astype(dtype), y)
    limit = model.novelty_threshold()
    far = np.array([[1e6, 0.0], [-1e30, 0.0], [0.0, 40.0], [0.3, -1e9]], dtype=dtype)
    assert (model.novelty(far) > limit).all()
    assert np.mean(model.novelty(make_banana(300, random_state=1)[0].astype(dtype)) > limit) < 0.15
