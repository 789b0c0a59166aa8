"""What fitted models refuse, and in which words."""

import numpy as np
import pytest

from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Linear, Polynomial

X, Y = make_banana(40)
NO_SHARES = [0, 1, 1.5, -0.1, np.nan, "0.9", None, True]
BLIND = r"vectors explain every sample with the kernel .*use the kernel Gaussian"
UNKNOWN = r": the kernel Precomputed does not give k"
REFUSED = [
    *(("regressor", "predict_interval", (X, c), r"Regressor: coverage must be a number .* 1 .*got") for c in NO_SHARES),
    *(("classifier", "predict_set", (X, c), "Discriminant: coverage must be a number between 0") for c in NO_SHARES),
    *(("classifier", "novelty_threshold", (c,), "Discriminant: false_alarms must be a number") for c in NO_SHARES),
    (
        "regressor",
        "predict_interval",
        (X, 0.99),
        r"coverage 0.99 need at least 99 .* has 40; ask for at most 0.975",
    ),
    ("grouped", "predict_interval", (X,), r"need at least 9 held-out samples \(or groups\), and this model has 5"),
    ("regressor", "predict_quantile", (X, 0.99), r"40 held-out samples .* from 0.025 to 0.975, got q=0.99; fit"),
    ("regressor", "predict_quantile", (X, 1.0), "FeatureVectorRegressor: q must be a number between 0 and 1"),
    ("regressor", "cdf", (X, [1.0, 2.0]), r"y must be a number or an array of shape \(40,\), one .* got shape \(2,\)"),
    ("regressor", "cdf", (X, np.nan), "FeatureVectorRegressor: y has NaN"),
    ("classifier", "novelty_threshold", (0.001,), r"40 samples only support false_alarms=0.024 or more, got 0.001"),
    *((kernel, "novelty", (X,), BLIND) for kernel in ("linear", "quadratic")),
    *((kernel, "novelty_threshold", (), BLIND) for kernel in ("linear", "quadratic")),
    *(("precomputed", ask, (np.eye(40)[:2],), ask + UNKNOWN) for ask in ("novelty", "novelty_pvalue")),
]


@pytest.fixture(scope="module")
def models():
    quadratic = Polynomial(2, gamma=1.0, coef0=0.0)
    return {
        "regressor": FeatureVectorRegressor(max_vectors=5).fit(X, X[:, 0]),
        "grouped": FeatureVectorRegressor(max_vectors=5).fit(X, X[:, 0], groups=np.arange(40) // 8),
        "classifier": FeatureVectorDiscriminant(max_vectors=5).fit(X, Y),
        "precomputed": FeatureVectorDiscriminant(kernel="precomputed", max_vectors=5).fit(Gaussian(1.0)(X, X), Y),
        "linear": FeatureVectorDiscriminant(kernel=Linear(), n_vectors=3).fit(X, Y),
        "quadratic": FeatureVectorDiscriminant(kernel=quadratic, n_vectors=3).fit(X, Y),
    }


@pytest.mark.parametrize(("model", "method", "arguments", "message"), REFUSED)
def test_questions_without_an_answer(models, model, method, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(models[model], method)(*arguments)


def test_the_most_extreme_answers(models):
    model = models["regressor"]
    assert np.all(model.predict_quantile(X, 1 / 41) < model.predict(X))
    assert np.all(model.predict_quantile(X, 40 / 41) > model.predict(X))


def test_the_wrong_kind_of_question(models):
    for model, method, advice in (
        ("regressor", "predict_set", r"FeatureVectorRegressor predicts numbers.*use predict_interval"),
        ("classifier", "predict_interval", r"FeatureVectorDiscriminant predicts classes.*use predict_set"),
    ):
        assert not hasattr(models[model], method)
        with pytest.raises(AttributeError, match=advice):
            getattr(models[model], method)(X)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0] * 40, "groups has only one group of positive weight; whole groups are held out"),
        ([0, 1] * 19, r"groups must have one label per sample, shape \(40,\), got \(38,\)"),
        ([[0], [1]] * 20, r"groups must have one label per sample"),
        (["a", None] * 20, "groups has missing labels"),
        ([0.0, np.nan] * 20, "groups has missing labels"),
        (np.array([1, "a"] * 20, dtype=object), "groups must hold labels of one kind"),
    ],
)
@pytest.mark.parametrize("estimator", [FeatureVectorRegressor, FeatureVectorDiscriminant])
def test_bad_groups(estimator, groups, message):
    with pytest.raises(ValueError, match=f"{estimator.__name__}: {message}"):
        estimator(max_vectors=5).fit(X, Y, groups=groups)


def test_groups_of_weight_zero_do_not_count():
    with pytest.raises(ValueError, match="only one group of positive weight"):
        FeatureVectorDiscriminant().fit(X, Y, sample_weight=[1.0, 0.0] * 20, groups=[0, 1] * 20)
