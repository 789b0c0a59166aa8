"""EM with a floor, and FCR-ML."""

import numpy as np
import pytest
from scipy import stats

from fewkern.arrays.sampling import plain_folds
from fewkern.core.path import Stop
from fewkern.density import likelihood
from fewkern.density.problem import DensityProblem, RoundMixture
from tests.oracles import density as oracle


def _data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[n // 2 :] += 5.0
    return DensityProblem.of(X, 0.5 + rng.random(n), 0.4)


def _choose(problem, folds, **settings):
    return likelihood.choose_size(problem, folds, **{"floor": 1.5, "max_vectors": 20, "tolerance": 0.5, **settings})


def _log_likelihood(problem, mixture):
    return problem.w @ likelihood.log_density(problem.Z, mixture)


def _start(X):
    return RoundMixture(X[[0, 1, -1]], np.array([1.0, 2.0, 1.5]), np.array([0.3, 0.3, 0.4]))


def test_one_iteration_equals_the_textbook():
    problem = _data()
    X, w = problem.Z, problem.w
    start = _start(X)
    R = oracle.normal_matrix(X, start.centers, start.bandwidths) * start.weights
    R = R / R.sum(axis=1, keepdims=True) * w[:, None]
    mass = R.sum(axis=0)
    centres = (R.T @ X) / mass[:, None]
    squares = np.array([R[:, j] @ ((X - centres[j]) ** 2).sum(axis=1) for j in range(3)])
    found = likelihood.expectation_maximization(problem, start, 0.01, 1).mixture
    np.testing.assert_allclose(found.weights, mass, rtol=1e-10)
    np.testing.assert_allclose(found.centers, centres, rtol=1e-10)
    np.testing.assert_allclose(found.bandwidths, np.sqrt(squares / mass / 2), rtol=1e-9)


def test_likelihood_never_falls_and_is_what_it_says():
    problem = _data()
    mixture, last = _start(problem.Z), -np.inf
    for _ in range(25):
        mixture = likelihood.expectation_maximization(problem, mixture, 0.9, 1).mixture
        density = oracle.normal_matrix(problem.Z, mixture.centers, mixture.bandwidths) @ mixture.weights
        value = _log_likelihood(problem, mixture)
        assert value == pytest.approx(problem.w @ np.log(density), rel=1e-10)
        assert value >= last - 1e-12
        assert np.all(mixture.bandwidths >= 0.9)
        last = value


def test_entry_is_the_best_over_rows_widths_and_shares():
    problem = _data(40)
    X, w = problem.Z, problem.w
    growth = likelihood.Growth(problem, 0.5 / 0.4)
    mixture = growth.mixture
    found = growth.entered()
    width, share = found.bandwidths[1], found.weights[1]
    row = int(np.flatnonzero(np.all(X == found.centers[1], axis=1))[0])
    np.testing.assert_allclose(found.weights[0], 1 - share)
    y = oracle.normal_matrix(X, mixture.centers, mixture.bandwidths)[:, 0]

    def gain(j, s, a):
        return w @ np.log((1 - a) * y + a * oracle.normal_matrix(X, X[[j]], s)[:, 0])

    widths = (0.5, 0.6, 0.8, 1.04, 1.44, 2.08, 3.0)
    best = max(gain(j, s, a) for j in range(40) for s in widths for a in (0.5, 0.25, 0.2))
    assert gain(row, width, share) == pytest.approx(best, rel=1e-12)


def test_size_by_held_out_likelihood():
    problem = _data(150)
    folds = plain_folds(150, 3)
    path, _ = _choose(problem, folds, max_vectors=4, tolerance=0.0)
    # two kernels by hand
    total = 0.0
    for train, test in folds:
        model = likelihood.grown(problem.part(train), 1.5, 2)
        density = oracle.normal_matrix(problem.Z[test], model.centers, model.bandwidths) @ model.weights
        total -= problem.w[test] @ np.log(density)
    assert path.error[1] == pytest.approx(total, rel=1e-9)
    assert path.chosen == (int(np.argmin(path.error)),)
    assert _choose(problem, folds, max_vectors=4, tolerance=1.0)[0].setting == {"n_vectors": 2}
    assert _choose(problem, folds, max_vectors=1)[1] is Stop.LIMIT
    steps = []
    path, stop = _choose(problem, folds, step=steps.append)
    error = path.error
    cost = min(4 / problem.effective_size, 0.02)
    penalized = error + 0.5 * cost * np.arange(1, len(error) + 1)
    assert stop is Stop.ERROR
    assert len(error) - 1 - int(np.argmin(penalized)) == 4
    assert steps == list(range(1, len(error) + 1))
    # where a kernel costs more than it gains, four steps after the first one
    assert len(_choose(problem, folds, tolerance=60.0)[0].error) == 5
    best = int(np.argmin(error))
    allowed = 0.5 * np.maximum(path.spread, cost * (best - np.arange(len(error))))
    assert path.setting["n_vectors"] == next(k + 1 for k in range(len(error)) if error[k] - error[best] <= allowed[k])


def test_kernels_without_responsibility_stay_where_they_are():
    problem = _data()
    far = RoundMixture(np.array([[0.0, 0.0], [1e6, 1e6]]), np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    found = likelihood.expectation_maximization(problem, far, 0.1, 1).mixture
    np.testing.assert_array_equal(found.centers[1], [1e6, 1e6])
    assert found.bandwidths[1] == 2.0
    np.testing.assert_allclose(found.weights, [1.0, 0.0])


@pytest.mark.parametrize("limit", [2, 6])
def test_a_path_of_likelihoods_ends_after_three_steps_without_a_better_bic(limit):
    calls, problem = [], _data()
    path, stop = likelihood.choose_size(problem, [], floor=1.5, max_vectors=limit, step=calls.append)
    # the first model is one normal law, of three parameters
    mean, size = problem.w @ problem.Z, 1 / np.sum(problem.w**2)
    variance = problem.w @ ((problem.Z - mean) ** 2).sum(axis=1) / 2
    log_p = problem.w @ stats.multivariate_normal(mean, variance * np.eye(2)).logpdf(problem.Z)
    assert path.error[0] == pytest.approx(-2 * size * log_p + 3 * np.log(size), rel=1e-9)
    best = int(np.argmin(path.error))
    assert path.chosen == (best,)
    assert stop == (Stop.LIMIT if limit == 2 else Stop.ERROR)
    assert len(path.error) == min(limit, best + 4)
    assert calls == list(range(1, len(path.error) + 1))
    mixture = likelihood.grown(_data(), 1.5, best + 1)
    order = np.argsort(mixture.centers[:, 0])
    np.testing.assert_allclose(mixture.centers[order], [[0, 0], [5, 5]], atol=0.5)
    np.testing.assert_allclose(mixture.bandwidths, 1.0, atol=0.2)
