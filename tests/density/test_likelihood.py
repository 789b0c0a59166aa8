"""EM with a floor, and FCR-ML."""

import numpy as np
import pytest
from scipy import stats
from sklearn.mixture import GaussianMixture

from fewkern.backend.folds import plain_folds
from fewkern.core.trace import Stop
from fewkern.density import likelihood
from fewkern.density.problem import DensityProblem, RoundMixture
from tests.oracles import density as oracle


def _data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[n // 2 :] += 5.0
    return DensityProblem.of(X, 0.5 + rng.random(n), 0.4)


def _start(X):
    return RoundMixture(X[[0, 1, -1]], np.array([1.0, 2.0, 1.5]), np.array([0.3, 0.3, 0.4]))


def test_one_iteration_equals_the_textbook():
    problem = _data()
    X, w = problem.Z, problem.w
    start = _start(X)
    R = oracle.normal_matrix(X, start.centers, start.widths) * start.weights
    R = R / R.sum(axis=1, keepdims=True) * w[:, None]
    mass = R.sum(axis=0)
    centres = (R.T @ X) / mass[:, None]
    squares = np.array([R[:, j] @ ((X - centres[j]) ** 2).sum(axis=1) for j in range(3)])
    found = likelihood.expectation_maximization(problem, start, 0.01, 1).mixture
    np.testing.assert_allclose(found.weights, mass, rtol=1e-10)
    np.testing.assert_allclose(found.centers, centres, rtol=1e-10)
    np.testing.assert_allclose(found.widths, np.sqrt(squares / mass / 2), rtol=1e-9)


def test_likelihood_never_falls_and_is_what_it_says():
    problem = _data()
    mixture, last = _start(problem.Z), -np.inf
    for _ in range(25):
        mixture = likelihood.expectation_maximization(problem, mixture, 0.9, 1).mixture
        density = oracle.normal_matrix(problem.Z, mixture.centers, mixture.widths) @ mixture.weights
        value = likelihood.log_likelihood(problem, mixture)
        assert value == pytest.approx(problem.w @ np.log(density), rel=1e-10)
        assert value >= last - 1e-12
        assert np.all(mixture.widths >= 0.9)
        last = value


def test_agrees_with_scikit_learn_at_convergence():
    X = _data().Z
    problem = DensityProblem.of(X, np.ones(len(X)))
    found = likelihood.expectation_maximization(problem, _start(X), 1e-3, 2000).mixture
    peer = GaussianMixture(
        3, covariance_type="spherical", tol=1e-12, max_iter=5000, reg_covar=0,
        means_init=found.centers, weights_init=found.weights / found.weights.sum(), precisions_init=found.widths**-2,
    ).fit(X)  # fmt: skip
    assert likelihood.log_likelihood(problem, found) == pytest.approx(peer.score(X), abs=1e-6)


def test_a_kernel_that_no_sample_answers_for_does_no_harm():
    start = RoundMixture(np.array([[0.0, 0.0], [1e6, 1e6]]), np.ones(2), np.array([0.5, 0.5]))
    found = likelihood.expectation_maximization(_data(), start, 0.1, 5).mixture
    assert np.all(np.isfinite(found.centers))
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)


def test_forward_likelihood_finds_two_lumps():
    fit = likelihood.forward_likelihood(_data(300))
    assert fit.selected == 1
    assert fit.stop is Stop.ERROR
    mixture = fit.models[1]
    order = np.argsort(mixture.centers[:, 0])
    np.testing.assert_allclose(mixture.centers[order], [[0, 0], [5, 5]], atol=0.3)
    np.testing.assert_allclose(mixture.widths, 1.0, atol=0.15)


def test_bic_counts_the_parameters_and_the_first_model_is_one_normal_law():
    problem = _data()
    X, w = problem.Z, problem.w
    fit = likelihood.forward_likelihood(problem, max_vectors=2)
    mean = w @ X
    width = np.sqrt(w @ ((X - mean) ** 2).sum(axis=1) / 2)
    log_p = w @ stats.multivariate_normal(mean, width**2 * np.eye(2)).logpdf(X)
    size = 1 / np.sum(w**2)
    assert fit.bic[0] == pytest.approx(-2 * size * log_p + 3 * np.log(size), rel=1e-9)
    assert fit.stop is Stop.LIMIT
    assert fit.selected == int(np.argmin(fit.bic))
    assert fit.trace.setting == {"n_vectors": fit.selected + 1}


def test_entry_is_the_best_over_rows_widths_and_shares():
    problem = _data(40)
    X, w = problem.Z, problem.w
    mixture = RoundMixture((w @ X)[None], np.array([3.0]), np.ones(1))
    found = likelihood.Entries(problem).best(mixture, 0.5)
    width, share = found.widths[1], found.weights[1]
    row = int(np.flatnonzero(np.all(X == found.centers[1], axis=1))[0])
    np.testing.assert_allclose(found.weights[0], 1 - share)
    y = oracle.normal_matrix(X, mixture.centers, mixture.widths)[:, 0]

    def gain(j, s, a):
        return w @ np.log((1 - a) * y + a * oracle.normal_matrix(X, X[[j]], s)[:, 0])

    widths = (0.5, 0.6, 0.8, 1.04, 1.44, 2.08, 3.0)
    best = max(gain(j, s, a) for j in range(40) for s in widths for a in (0.5, 0.25, 0.2))
    assert gain(row, width, share) == pytest.approx(best, rel=1e-12)


def test_em_ends_when_the_likelihood_hardly_rises():
    problem = _data()
    rough = likelihood.expectation_maximization(problem, _start(problem.Z), 0.1, 500, 1e-3).mixture
    exact = likelihood.expectation_maximization(problem, _start(problem.Z), 0.1, 500).mixture
    gap = likelihood.log_likelihood(problem, exact) - likelihood.log_likelihood(problem, rough)
    assert 1e-9 < gap < 0.05


def test_size_by_held_out_likelihood():
    problem = _data(150)
    folds = plain_folds(150, 3)
    found = likelihood.choose_size(problem, folds, max_vectors=4, tolerance=0.0)
    # two kernels by hand
    total = 0.0
    for train, test in folds:
        model = likelihood.forward_likelihood(problem.part(train), max_vectors=2, patience=None).models[1]
        density = oracle.normal_matrix(problem.Z[test], model.centers, model.widths) @ model.weights
        total -= problem.w[test] @ np.log(density)
    assert found.trace.error[1] == pytest.approx(total, rel=1e-9)
    assert found.size == int(np.argmin(found.trace.error)) + 1
    assert likelihood.choose_size(problem, folds, max_vectors=4, tolerance=1.0).size == 2
    assert likelihood.choose_size(problem, folds, max_vectors=1).stop is Stop.LIMIT
    assert likelihood.choose_size(problem, folds).stop is Stop.ERROR


def test_least_width_falls_with_the_number_of_dimensions():
    rng = np.random.default_rng(0)
    widths = [DensityProblem.of(rng.normal(size=(600, m)), np.ones(600)).least_width for m in (2, 6, 14, 40, 256)]
    assert widths[:2] == [1.5, 1.5]
    assert np.all(np.diff(widths) <= 0)
    assert 1.0 < widths[-1] < 1.1
