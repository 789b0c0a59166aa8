import warnings

import numpy as np
import pytest
from sklearn.base import clone

from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor
from fewkern.base import BudgetWarning
from fewkern.datasets import make_sinc
from fewkern.kernels import Gaussian


@pytest.fixture
def curve():
    return make_sinc(120, noise=0.1)


def test_held_out_error_is_not_the_least_of_many():
    """Targets without a signal: the least leave-one-out error is below the variance, what is reported is not."""
    rng = np.random.default_rng(0)
    least, honest = [], []
    for _ in range(10):
        X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
        model = FeatureVectorRegressor(prefer="accurate").fit(X, y)
        least.append(model.path_.error.min() / y.var())
        honest.append(model.held_out_error_ / y.var())
    assert np.mean(least) < 0.99
    assert np.mean(honest) > 1.0


def test_preferences_give_smaller_models(curve):
    X, y = curve
    models = [FeatureVectorRegressor(prefer=p).fit(X, y) for p in ("sparse", "balanced", "accurate")]
    assert np.all(np.diff([model.n_vectors_ for model in models]) >= 0)
    assert models[0].stop_ == "size"
    assert FeatureVectorRegressor(n_vectors=30, kernel=Gaussian(0.2)).fit(X, y).n_vectors_ == 30


def test_path_holds_every_path(curve):
    X, y = curve
    model = FeatureVectorRegressor(max_vectors=10).fit(X, y)
    path = model.path_
    # of nine widths every other one and the neighbors of the best, so that both sides of it are known
    assert path.error.shape == path.spread.shape == (6, 6, 11)
    assert 0 < path.chosen[0] < 5
    np.testing.assert_allclose(path.setting["length_scale"] * X.std(axis=0), model.kernel_.length_scale)
    assert (path.setting["alpha"], path.setting["n_vectors"]) == (model.alpha_, model.n_vectors_)
    one = FeatureVectorRegressor(max_vectors=10, kernel=Gaussian(0.5), alpha=0.1).fit(X, y)
    assert one.path_.error.shape == (1, 1, 11)
    assert (one.kernel_.length_scale, one.alpha_) == (0.5, 0.1)
    assert one.path_.axes["length_scale"] == (0.5,)


def test_several_outputs(curve):
    X, y = curve
    Y = np.column_stack([y, np.cos(X[:, 0])])
    model = FeatureVectorRegressor(n_vectors=12, kernel=Gaussian(0.5), alpha=1e-3).fit(X, Y)
    assert model.predict(X).shape == (120, 2)
    for c in range(2):
        alone = FeatureVectorRegressor(n_vectors=12, kernel=Gaussian(0.5), alpha=1e-3).fit(X, Y[:, c])
        np.testing.assert_allclose(model.predict(X)[:, c], alone.predict(X), atol=1e-9)
    assert FeatureVectorRegressor(max_vectors=5).fit(X, y[:, None]).predict(X).shape == (120, 1)


@pytest.mark.parametrize("model", [FeatureVectorRegressor(), FeatureVectorDiscriminant()])
def test_an_error_that_still_falls_at_the_budget_is_named(model):
    x = np.linspace(0, 6, 200)
    X, y = x[:, None], np.sin(4 * x)
    y = y if isinstance(model, FeatureVectorRegressor) else (y > 0).astype(int)
    few = clone(model).set_params(max_vectors=8)
    with pytest.warns(
        BudgetWarning, match=r"FeatureVector\w+: .*still falling.* tried, 8;.*max_vectors=16 or more"
    ) as seen:
        few.fit(X, y)
    assert seen[0].filename == __file__  # where the user called fit
    assert few.path_.open_end
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not clone(model).set_params(max_vectors=16).fit(X, y).path_.open_end
        # as many as were asked for
        clone(model).set_params(n_vectors=10).fit(X, y)


def test_a_default_budget_that_is_too_small_is_named():
    """An oscillation that a tenth of the samples cannot follow; the advice is another."""
    x = np.linspace(0, 6, 400)
    model = FeatureVectorRegressor(kernel=Gaussian(length_scale=0.02))
    with pytest.warns(BudgetWarning, match=r'Use prefer="accurate", or max_vectors=200 or more'):
        model.fit(x[:, None], np.sin(60 * x))
