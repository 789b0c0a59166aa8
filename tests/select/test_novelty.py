"""Novelty: what the vectors leave unexplained, and what is usual."""

import numpy as np
import pytest

from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    ForwardKernelFisher,
    KernelClassifier,
    SparseKernelFisher,
)
from fewkern.core.kernel import Gram
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian, Polynomial
from fewkern.select.selection import SelectionRule, centered_gram, choose_basis, select_vectors
from fewkern.select.uncertainty import left_out_residual, left_out_shares

MODELS = [
    FeatureVectorRegressor(),
    FeatureVectorRegressor(n_vectors=3),
    FeatureVectorDiscriminant(max_vectors=30),
    FeatureVectorSelector(max_vectors=15),
    FeatureVectorSelector(max_vectors=15, projection="raw"),
    FeatureVectorSelector(max_vectors=15, rule="greedy", projection="symmetric"),
    FeatureVectorPCA(n_components=2, max_vectors=15),
    SparseKernelFisher(alpha=0.02),
    ForwardKernelFisher(n_vectors=4),
]


@pytest.fixture(scope="module")
def banana():
    return make_banana(200)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_between_zero_and_one_and_zero_at_the_vectors(model, banana):
    X, y = banana
    model.fit(X, y)
    shares = model.novelty(X)
    assert np.all((shares >= 0) & (shares <= 1))
    basis = model.novelty_.basis
    assert basis.n_vectors >= (15 if model.get_params().get("n_vectors") != 3 else 3)
    np.testing.assert_allclose(model.novelty(X[basis.indices]), 0, atol=1e-7)
    far = model.novelty(X + 1e3)
    np.testing.assert_allclose(far, 1.0 if basis.center_vectors is None else far[0], atol=1e-8)
    assert 0 < model.novelty_threshold(0.05) < 1


@pytest.mark.parametrize("center", [0, 1, 3])
def test_share_is_the_distance_to_the_span(center, rng):
    """In the feature space of a polynomial, written out."""
    X, new = rng.standard_normal((30, 2)), rng.standard_normal((7, 2))

    def image(x):
        a, b = x.T
        return np.column_stack([a * a, b * b, np.sqrt(2) * a * b, np.sqrt(2) * a, np.sqrt(2) * b, np.ones(len(x))])

    kernel = Polynomial(degree=2, gamma=1.0, coef0=1.0)
    gram = centered_gram(Samples.of(X), kernel, SelectionRule(center=center))
    basis = select_vectors(gram, SelectionRule(), 3).basis()
    middle = image(X)[basis.center_indices].mean(axis=0) if center else 0.0
    V, P = image(X)[basis.indices] - middle, image(new) - middle
    rest = P - P @ np.linalg.pinv(V) @ V
    np.testing.assert_allclose(basis.unexplained(new), (rest**2).sum(1) / (P**2).sum(1), atol=1e-10)


@pytest.mark.parametrize("groups", [None, np.arange(40) // 4])
def test_left_out_residual_is_that_of_the_other_vectors(groups, rng):
    X = rng.standard_normal((40, 2))
    kernel = Gaussian(1.0)
    chosen = select_vectors(Gram(kernel, X), SelectionRule(), 12)
    each = np.arange(40) if groups is None else groups
    S = chosen.indices[:9]
    for i, residual in enumerate(left_out_residual(chosen, 9, groups)):
        others = X[[s for s in S if each[s] != each[i]]]
        k = kernel(others, X[i : i + 1])[:, 0]
        assert residual == pytest.approx(1 - k @ np.linalg.solve(kernel(others, others), k), abs=1e-8)
    shares = left_out_shares(Samples.of(X, groups=groups), chosen, 9, np.arange(40))
    np.testing.assert_allclose(shares, left_out_residual(chosen, 9, groups), atol=1e-8)  # one length scale has no units
    few = Samples.of(X[:3])  # no folds
    pair = choose_basis(few, Gaussian().resolve(few.X), SelectionRule(), 2)
    assert np.all(left_out_shares(few, pair, 2, np.arange(3)) > 0.01)


def test_units_are_those_of_other_folds(rng):
    """A column with one value that is not zero: it looks usual only in units that it makes itself."""
    X = np.column_stack([rng.standard_normal(60), np.zeros(60)])
    X[17, 1] = 20.0
    selection = choose_basis(Samples.of(X), Gaussian().resolve(X), SelectionRule(rule="random"), 20)
    shares = left_out_shares(Samples.of(X), selection, 20, np.arange(60))
    assert shares[17] > 0.99999
    given = choose_basis(Samples.of(X), Gaussian(length_scale=20.0), SelectionRule(rule="random"), 20)
    assert left_out_shares(Samples.of(X), given, 20, np.arange(60))[17] < 0.9  # one length scale follows no unit


@pytest.mark.parametrize("rows", [120, 250])
@pytest.mark.parametrize("model", [FeatureVectorSelector(), KernelClassifier(n_vectors=4)], ids=["selector", "learner"])
def test_rare_values_raise_no_more_alarms_than_stated(model, rows):
    """Fifty counts that are mostly zero: with units from all rows, 10% of new rows alarmed where 1% were stated."""
    share = np.exp(np.linspace(np.log(0.005), np.log(0.5), 50))
    rates = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = (rng.random((2000, 50)) < share) * np.exp(rng.standard_normal((2000, 50)))
        model.fit(X[:rows], X[:rows, -1] > 0)
        novelty = model.novelty(X[rows:])
        rates.append([np.mean(novelty > model.novelty_threshold(rate)) for rate in (0.01, 0.05)])
    assert np.all(np.mean(rates, axis=0) < [0.02, 0.075])


def test_many_columns_have_fewer_folds_and_no_more_alarms(monkeypatch):
    share, rng = np.exp(np.linspace(np.log(0.005), np.log(0.5), 50)), np.random.default_rng(0)
    X = (rng.random((2000, 50)) < share) * np.exp(rng.standard_normal((2000, 50)))
    many = FeatureVectorSelector().fit(X[:120])
    monkeypatch.setattr("fewkern.select.uncertainty._FOLDED_COLUMNS", 150)
    few = FeatureVectorSelector().fit(X[:120])
    assert np.any(few.novelty_.scores.values != many.novelty_.scores.values)
    assert few.novelty_threshold(0.05) >= many.novelty_threshold(0.05) - 0.01


@pytest.mark.parametrize("groups", [None, np.arange(500) // 2])
def test_some_samples_are_judged_as_all_are(groups, rng):
    X = rng.standard_normal((500, 3))
    samples = Samples.of(X, groups=groups)
    selection = choose_basis(samples, Gaussian(1.0), SelectionRule(), 30)
    every, some = np.arange(500), np.sort(rng.permutation(500)[:80])
    whole = left_out_shares(samples, selection, 30, every)
    np.testing.assert_allclose(left_out_shares(samples, selection, 30, some), whole[some], atol=1e-8)
    ranged = choose_basis(samples, Gaussian().resolve(X), SelectionRule(), 30)  # units of other folds
    whole = left_out_shares(samples, ranged, 30, every)
    np.testing.assert_allclose(left_out_shares(samples, ranged, 30, some), whole[some], atol=0.1)


@pytest.mark.parametrize("model", [FeatureVectorSelector(max_vectors=40), KernelClassifier(n_vectors=4)])
def test_of_many_rows_some_say_what_is_usual(model, monkeypatch):
    for module in ("fewkern.select.uncertainty", "fewkern.learn.fitting"):
        monkeypatch.setattr(f"{module}.MOST_NOVELTY_ROWS", 300)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 3))
    model.fit(X[:2000], X[:2000, 0] > 0)
    assert model.novelty_.scores.effective == 300
    assert np.mean(model.novelty(X[2000:]) > model.novelty_threshold(0.1)) == pytest.approx(0.1, abs=0.05)


@pytest.mark.parametrize("groups", [None, np.arange(200) // 2])
def test_pvalues_say_the_same_as_thresholds(groups, banana):
    """A p-value of at most a rate of false alarms is a novelty above the threshold of that rate."""
    X, y = make_banana(200, random_state=2)
    model = FeatureVectorDiscriminant(max_vectors=20).fit(X, y, groups=groups)
    new = np.vstack([make_banana(1000, random_state=3)[0], 4 * X])
    p = model.novelty_pvalue(new)
    for rate in (0.02, 0.05, 0.1, 0.5):
        np.testing.assert_array_equal(p <= rate, model.novelty(new) > model.novelty_threshold(rate))
    assert np.mean(p[:1000] <= 0.1) == pytest.approx(0.1, abs=0.06)
    assert p.min() == pytest.approx(1 / (1 + model.novelty_.scores.effective))
    assert p[np.argmin(model.novelty(new))] > 0.95


def test_few_vectors_are_filled_up_within_the_budget(banana):
    X, y = banana
    assert FeatureVectorDiscriminant(n_vectors=3).fit(X, y).novelty_.basis.n_vectors == 3
    auto = FeatureVectorDiscriminant(prefer="sparse").fit(X, y)
    assert auto.n_vectors_ < 20
    assert auto.novelty_.basis.n_vectors == 20
    many = FeatureVectorDiscriminant(prefer="accurate", kernel=Gaussian(0.3)).fit(X, y)
    assert many.n_vectors_ > 20
    assert many.novelty_.basis is many.basis_
