"""EM with a floor, and FCR-ML."""

import numpy as np
import pytest
from scipy import stats
from sklearn.mixture import GaussianMixture

from fewkern.arrays.sampling import plain_folds
from fewkern.core.path import Stop
from fewkern.density import likelihood
from fewkern.density.choice import choose_size
from fewkern.density.problem import DensityProblem, RoundMixture
from tests.oracles import density as oracle


def _data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[n // 2 :] += 5.0
    return DensityProblem.of(X, 0.5 + rng.random(n), 0.4)


def _choose(problem, folds, **settings):
    return choose_size(problem, folds, **{"floor": 1.5, "max_vectors": 20, "tolerance": 0.5, **settings})


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
    assert fit.path.setting == {"n_vectors": fit.selected + 1}


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
    found = _choose(problem, folds, max_vectors=4, tolerance=0.0)
    # two kernels by hand
    total = 0.0
    for train, test in folds:
        model = likelihood.forward_likelihood(problem.part(train), max_vectors=2, patience=None).models[1]
        density = oracle.normal_matrix(problem.Z[test], model.centers, model.widths) @ model.weights
        total -= problem.w[test] @ np.log(density)
    assert found.path.error[1] == pytest.approx(total, rel=1e-9)
    assert found.size == int(np.argmin(found.path.error)) + 1
    assert _choose(problem, folds, max_vectors=4, tolerance=1.0).size == 2
    assert _choose(problem, folds, max_vectors=1).stop is Stop.LIMIT
    assert _choose(problem, folds).stop is Stop.ERROR


def test_least_width_falls_with_the_number_of_dimensions():
    rng = np.random.default_rng(0)
    widths = [DensityProblem.of(rng.normal(size=(600, m)), np.ones(600)).least_width for m in (2, 6, 14, 40, 256)]
    assert widths[:2] == [1.5, 1.5]
    assert np.all(np.diff(widths) <= 0)
    assert 1.0 < widths[-1] < 1.1


def test_kernels_hardly_anybody_answers_for_stay_where_they_are():
    problem = _data()
    far = RoundMixture(np.array([[0.0, 0.0], [1e6, 1e6]]), np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    found = likelihood.expectation_maximization(problem, far, 0.1, 1).mixture
    np.testing.assert_array_equal(found.centers[1], [1e6, 1e6])
    assert found.widths[1] == 2.0
    np.testing.assert_allclose(found.weights, [1.0, 0.0])


def test_widths_do_not_fall_below_the_floor():
    problem = _data()
    narrow = RoundMixture(problem.Z[[0, -1]], np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    for floor in (0.01, 3.0):
        found = likelihood.expectation_maximization(problem, narrow, floor, 1).mixture
        assert np.all(found.widths >= floor)
        if floor == 3.0:
            np.testing.assert_array_equal(found.widths, [3.0, 3.0])


@pytest.mark.parametrize(("least", "stop"), [(1e9, Stop.CONVERGED), (-1.0, Stop.MAX_ITER)])
def test_em_says_how_many_iterations_and_how_much_they_brought(least, stop):
    problem = _data()
    found = likelihood.expectation_maximization(problem, _start(problem.Z), 0.1, 7, least)
    assert found.stop == stop
    if stop == Stop.MAX_ITER:
        assert found.n_iter == 7
        before = likelihood.expectation_maximization(problem, _start(problem.Z), 0.1, 5, -1.0).mixture
        last = likelihood.expectation_maximization(problem, _start(problem.Z), 0.1, 6, -1.0).mixture
        rise = likelihood.log_likelihood(problem, last) - likelihood.log_likelihood(problem, before)
        assert found.rise == pytest.approx(rise, rel=1e-6)
    else:
        # the first iteration has nothing to rise from
        assert found.n_iter == 1


def test_a_growth_begins_with_one_normal_law():
    problem = _data()
    for floor, width in ((0.1, problem.spread), (1000.0, 1000.0 * problem.unit)):
        growth = likelihood.Growth(problem, floor)
        np.testing.assert_allclose(growth.mixture.centers[0], problem.w @ problem.Z)
        assert growth.floor == pytest.approx(floor * problem.unit)
        assert growth.mixture.widths[0] == pytest.approx(width, rel=1e-6)
        assert growth.mixture.weights.tolist() == [1.0]


@pytest.mark.parametrize("patience", [1, 2, None])
def test_a_path_of_likelihoods_ends_after_steps_without_a_better_bic(patience):
    path = likelihood.forward_likelihood(_data(), max_vectors=6, patience=patience)
    worse = len(path.bic) - 1 - path.selected
    if path.stop == Stop.ERROR:
        assert worse == patience
    else:
        assert len(path.models) == 6
        assert patience is None or worse <= patience
    assert path.selected == np.argmin(path.bic)
    assert path.path.chosen == (path.selected,)
    for k in range(len(path.models) - 1):
        assert patience is None or k - int(np.argmin(path.bic[: k + 1])) < patience
    calls = []
    likelihood.forward_likelihood(_data(), max_vectors=3, patience=None, step=calls.append)
    assert calls == [1, 2]


def test_growth_in_folds_ends_four_steps_after_the_best():
    problem = _data(n=60)
    folds = plain_folds(60, 3)
    steps = []
    found = _choose(problem, folds, max_vectors=12, step=steps.append)
    error = found.path.error
    cost = min(4 / problem.effective_size, 0.02)
    penalized = error + 0.5 * cost * np.arange(1, len(error) + 1)
    assert steps == list(range(1, len(error) + 1))
    if found.stop == Stop.ERROR:
        assert len(error) - 1 - int(np.argmin(penalized)) == 4
    best = int(np.argmin(error))
    allowed = 0.5 * np.maximum(found.path.spread, cost * (best - np.arange(len(error))))
    assert found.size == next(k + 1 for k in range(len(error)) if error[k] - error[best] <= allowed[k])
