"""Figures of the FVS paper on few splits (methods F6, F9, F11).

Tolerance of a mean over n splits: 3 sd / sqrt(n) + 0.1. The paper's kernel is exp(-|x - y|^2 / sigma^2), so the width
is sigma / sqrt(2).
"""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor, FeatureVectorSelector
from fewkern.core.kernel import Gram
from fewkern.datasets import make_rings, make_two_gaussians
from fewkern.kernels import Gaussian, Polynomial
from fewkern.select.selection import SelectionRule, select_vectors


def of_sigma(sigma):
    return Gaussian(length_scale=sigma / np.sqrt(2))


def fvs_lr(kernel, vectors, center=True):
    """The paper's rule, centered at the nearest sample, and no ridge."""
    selector = FeatureVectorSelector(kernel=kernel, max_vectors=vectors, rule="greedy", center=center)
    return make_pipeline(selector, LinearRegression())


def assert_mean(values, figure, sd):
    """The mean of some percentages agrees with a figure."""
    assert abs(np.mean(values) - figure) <= 3 * sd / np.sqrt(len(values)) + 0.1, np.mean(values)


@pytest.mark.parametrize(("center", "rate", "sd"), [(True, 88.06, 0.51), (False, 87.69, 0.91)])
def test_two_gaussians_with_23_vectors(center, rate, sd):
    X, y = make_two_gaussians(20_000, random_state=99)
    rates = []
    for seed in range(12):
        model = fvs_lr(of_sigma(1.0), 23, center)
        X_train, y_train = make_two_gaussians(200, random_state=seed)
        model.fit(X_train, 2.0 * y_train - 1)
        assert model[0].n_vectors_ == 23
        rates.append(100 * np.mean((model.predict(X) > 0) == y))
    assert_mean(rates, rate, sd)


def test_rings_need_three_vectors():
    X, y = make_rings(200)
    kernel = Polynomial(degree=2, gamma=1.0, coef0=0.0)
    model = FeatureVectorDiscriminant(kernel=kernel, alpha=0.0, n_vectors=100).fit(X, y)
    assert model.n_vectors_ == 3
    assert model.eigenvalues_ == pytest.approx(1.0)


@pytest.mark.papers
def test_fitness_on_heart_breaks_at_13_vectors(ida):
    data = ida("heart")
    train = data.train_idx[0]
    model = FeatureVectorSelector(kernel=of_sigma(120.0), rule="greedy", max_vectors=14).fit(data.X[train])
    J = model.fitness_
    assert J[12] - J[11] > 0.02
    assert J[13] - J[12] < 0.001


@pytest.mark.papers
@pytest.mark.parametrize(
    ("name", "splits", "error", "sd", "most"),
    [
        ("banana", 4, 10.7, 0.5, 60),
        ("thyroid", 6, 3.9, 2.5, 40),
        ("heart", 6, 18.1, 3.5, 20),
        ("diabetis", 3, 23.4, 1.9, 40),
        ("twonorm", 3, 2.6, 0.2, 80),
    ],
)
def test_errors_with_everything_automatic(ida, name, splits, error, sd, most):
    data = ida(name)
    errors, sizes = [], []
    for train, test in zip(data.train_idx[:splits], data.test_idx[:splits]):
        model = FeatureVectorRegressor().fit(data.X[train], data.y[train])
        errors.append(100 * np.mean(np.sign(model.predict(data.X[test])) != data.y[test]))
        sizes.append(model.n_vectors_)
    assert_mean(errors, error, sd)
    assert np.mean(sizes) <= most


def unexplained(X, kernel, vectors=20, **settings):
    """1 - J_S after some vectors; the mean of three seeds."""
    J = [
        FeatureVectorSelector(kernel=kernel, max_vectors=vectors, center=False, random_state=s, **settings).fit(X)
        for s in range(3)
    ]
    return float(np.mean([1 - model.fitness_[-1] for model in J]))


def test_unexplained_fraction_of_the_rules_on_two_gaussians(monkeypatch):
    X, _ = make_two_gaussians(1000)
    left = {rule: unexplained(X, of_sigma(1.0), rule=rule) for rule in ("gain", "greedy", "random", "uniform")}
    monkeypatch.setattr("fewkern.select.rules._GAIN_DRAWS", 10_000)
    every = [select_vectors(Gram(of_sigma(1.0), X), SelectionRule(seed=s), 20) for s in range(3)]
    every = float(np.mean([1 - found.fitness[-1] for found in every]))
    assert every < left["gain"] < min(left["greedy"], left["random"], left["uniform"])
    # no figure for "uniform": its 0.127 is one draw, of a spread of 0.03 around 0.16
    expected = {"greedy": 0.331, "random": 0.147, "gain": 0.098}
    for rule, figure in expected.items():
        assert left[rule] == pytest.approx(figure, rel=0.25), rule
    assert every == pytest.approx(0.092, rel=0.15)
    spectrum = np.linalg.eigvalsh(of_sigma(1.0)(X, X))[::-1]
    assert 1 - spectrum[:20].sum() / 1000 < every
