"""Intervals around predictions, and sets of classes."""

import numpy as np
import pytest
from sklearn.base import clone

from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    ForwardKernelFisher,
    SparseKernelFisher,
)
from fewkern.core.samples import Samples
from fewkern.datasets import make_banana, make_sinc
from fewkern.kernels import Gaussian
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.selection import SelectionRule, choose_basis
from fewkern.select.uncertainty import fit_intervals
from tests.oracles import fvs

CLASSIFIERS = [
    FeatureVectorDiscriminant(max_vectors=10),
    SparseKernelFisher(alpha=0.02),
    ForwardKernelFisher(n_vectors=6),
    DensityClassifier(),
]


def test_the_ends_are_quantiles_of_leave_one_out_residuals():
    X, y = make_sinc(150, noise=0.1)
    model = FeatureVectorRegressor(kernel=Gaussian(0.5), n_vectors=7, alpha=0.01).fit(X, y)
    assert model.intervals_.scale is None
    residuals = np.sort(y - fvs.leave_one_out(model.basis_.features(X), y[:, None], 0.01)[:, 0])
    low, high = model.predict_interval(X[:3], 0.9).T - model.predict(X[:3])
    np.testing.assert_allclose(low, residuals[int(0.05 * 151) - 1], rtol=1e-6)
    np.testing.assert_allclose(high, residuals[int(np.ceil(0.95 * 151)) - 1], rtol=1e-6)
    np.testing.assert_allclose(model.predict_std(X[:3]), np.sqrt(np.mean(residuals**2)), rtol=1e-6)


def log_normal(n, seed, growing=False):
    """Noise with a long tail above; its size grows along a feature that the mean does not depend on."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    size = 0.05 + 0.2 * np.abs(X[:, 1]) if growing else 0.3
    return X, np.sin(X[:, 0]) + size * (np.exp(0.7 * rng.standard_normal(n)) - np.exp(0.245))


@pytest.mark.parametrize("growing", [False, True])
def test_both_tails_of_skewed_noise(growing):
    """About as many new rows below as above. With symmetric intervals 0.1% lie below and 10% above."""
    tails = []
    for seed in range(10):
        model = FeatureVectorRegressor().fit(*log_normal(200, seed, growing))
        X, y = log_normal(2000, 100 + seed, growing)
        lower, upper = model.predict_interval(X, 0.9).T
        tails.append([np.mean(y < lower), np.mean(y > upper)])
    # standard error of these means: 0.5 points
    np.testing.assert_allclose(np.mean(tails, axis=0), 0.05, atol=0.015)


def test_intervals_quantiles_and_the_cdf_agree():
    X, y = log_normal(300, 0, growing=True)
    model = FeatureVectorRegressor().fit(X, np.column_stack([y, -y]))
    assert model.intervals_.scale is not None
    ends = model.predict_interval(X, 0.8)
    for k, q in enumerate((0.1, 0.9)):
        np.testing.assert_allclose(model.predict_quantile(X, q), ends[:, :, k])
        np.testing.assert_allclose(model.cdf(X, ends[:, :, k]), q, atol=1.5 / 300)
    np.testing.assert_allclose(model.cdf(X[:2], 0.3), model.cdf(X[:2], np.full((2, 2), 0.3)))
    assert model.predict_std(X).shape == (300, 2)
    new, truth = log_normal(4000, 1, growing=True)
    # the spread follows the noise, and probabilities of what came are uniform
    size = model.predict_std(new)[:, 0]
    loud = np.abs(new[:, 1]) > 2
    error = (truth - model.predict(new)[:, 0]) ** 2
    for part in (loud, ~loud):
        assert np.sqrt(error[part].mean()) == pytest.approx(np.sqrt(np.mean(size[part] ** 2)), rel=0.35)
    probability = model.cdf(new, np.column_stack([truth, -truth]))
    np.testing.assert_allclose(
        np.quantile(probability, [0.25, 0.5, 0.75], axis=0).T, [[0.25, 0.5, 0.75]] * 2, atol=0.06
    )


def test_no_scale_without_need(rng):
    """Equal noise everywhere: a scale is the exception that has to be proved."""
    found = 0
    for seed in range(20):
        X, y = make_sinc(120, noise=0.2, random_state=seed)
        samples = Samples.of(X, targets=y[:, None])
        basis = choose_basis(samples, Gaussian(0.5), SelectionRule(), 10).basis()
        values = y[:, None] + 0.2 * rng.standard_normal((120, 1))
        found += fit_intervals(HeldOut(values, samples), basis).scale is not None
    assert found <= 2


def test_scale_of_one_output_leaves_the_other_as_it_is(rng):
    X = rng.uniform(0, 1, (300, 2))
    samples = Samples.of(X, targets=np.zeros((300, 2)))
    basis = choose_basis(samples, Gaussian(0.5), SelectionRule(), 20).basis()
    noise = rng.standard_normal((300, 2)) * np.column_stack([np.exp(2 * X[:, 1]), np.ones(300)])
    found = fit_intervals(HeldOut(noise, samples), basis)
    half = found.times_scale(X, noise, found.ends(0.9)[1])
    assert np.ptp(half[:, 0]) > half[:, 0].mean()
    assert np.ptp(half[:, 1]) == 0
    alone = fit_intervals(HeldOut(noise[:, 1:], Samples.of(X, targets=np.zeros((300, 1)))), basis)
    np.testing.assert_allclose(half[:, 1], alone.ends(0.9)[1][0])


def test_perfect_predictions_have_intervals_of_no_width():
    X = np.linspace(-1, 1, 80)[:, None]
    samples = Samples.of(X, targets=X)
    basis = choose_basis(samples, Gaussian(0.5), SelectionRule(), 5).basis()
    assert fit_intervals(HeldOut(X, samples), basis).ends(0.9) == ([0.0], [0.0])


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_sets_cover_new_samples_and_grow_with_the_coverage(model):
    X, y = make_banana(400, random_state=3)
    new, truth = make_banana(4000, random_state=4)
    fitted = clone(model).fit(X, y)
    accuracy, top, before = fitted.score(new, truth), fitted.predict_proba(new).argmax(axis=1), np.False_
    for coverage in (0.3, 0.8, 0.95, 0.99, 0.9999):
        sets = fitted.predict_set(new, coverage)
        assert np.all(sets[np.arange(4000), top])
        assert np.all(before <= sets)
        before = sets
        if coverage in (0.95, 0.99):
            reached = sets[np.arange(4000), truth].mean()
            assert reached > accuracy
            assert reached == pytest.approx(coverage, abs=0.025)
    assert sets.all()
