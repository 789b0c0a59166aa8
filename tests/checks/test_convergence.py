"""An iteration that ends at its limit says so: how many steps, which criterion, which tolerance."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fewkern
from fewkern.datasets import make_banana
from fewkern.density import forward, likelihood, simplex
from fewkern.margins import hinge, svm
from fewkern.select.leave_one_out import solve

X, Y = make_banana(60, random_state=2)


def test_the_limit_is_reported(monkeypatch):
    for module in (hinge, svm):
        monkeypatch.setattr(module, "MAX_ITERATIONS", 2)
    with pytest.warns(ConvergenceWarning, match=r"in 2 interior point iterations: .* gap .* above 1e-09"):
        fewkern.RecursiveSVM().fit(X, Y)


def test_em_reports_its_limit(monkeypatch):
    monkeypatch.setattr(forward, "_ITERATIONS", 2)
    monkeypatch.setattr(likelihood, "ENTRY_ITERATIONS", 1)
    with pytest.warns(
        ConvergenceWarning, match=r"in 2 EM iterations: the mean log density still rose by .* tolerance"
    ) as seen:
        fewkern.ForwardDensity().fit(X)
    assert seen[0].filename == __file__  # where the user called fit


def test_em_says_how_it_ended():
    problem = likelihood.DensityProblem.of(X, np.ones(60))
    start = likelihood.RoundMixture(X[:3], np.full(3, 0.5), np.full(3, 1 / 3))
    short = likelihood.expectation_maximization(problem, start, 0.1, 3, 1e-9)
    assert (short.n_iter, str(short.stop)) == (3, "max_iter")
    assert short.rise > 1e-9
    long = likelihood.expectation_maximization(problem, start, 0.1, 5000, 1e-9)
    assert str(long.stop) == "converged"
    assert long.rise < 1e-9
    assert 3 < long.n_iter < 5000


def test_simplex_descent_that_rounding_ends_is_not_called_converged(monkeypatch):
    B, v = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0.5, -1.0])
    assert str(simplex.active_set(B, v).stop) == "converged"
    monkeypatch.setattr(simplex, "_descend", lambda B, v, S, g: (S, g, 1))
    stuck = simplex.active_set(np.eye(2), np.array([0.5, 0.4]))
    assert str(stuck.stop) == "precision"
    assert stuck.gap > 1e-10


def test_jitter_is_reported():
    G = np.ones((20, 3))
    y = np.linspace(0, 1, 20)[:, None]
    assert solve(G, y, 1.0).jitter == 0.0
    assert solve(1e9 * G, y, 1e-12).jitter > 0.0
    kernel = fewkern.kernels.Linear()
    wide = np.column_stack([np.ones(40) * 1e8, np.linspace(0, 1, 40)])
    with pytest.warns(UserWarning, match=r"FeatureVectorRegressor: with alpha=1e-12 the equations are singular"):
        fewkern.FeatureVectorRegressor(kernel=kernel, alpha=1e-12, n_vectors=1).fit(wide, wide[:, 1])
