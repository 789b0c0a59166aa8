"""An iteration that ends at its limit says so: how many steps, which criterion, which tolerance.

Those of fisher and margins are tested with their estimators.
"""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import fewkern
from fewkern.datasets import make_banana
from fewkern.density import forward, likelihood, simplex
from fewkern.select.leave_one_out import solve

X, Y = make_banana(60, random_state=2)


def test_em_reports_its_limit(monkeypatch):
    monkeypatch.setattr(forward, "_ITERATIONS", 2)
    monkeypatch.setattr(likelihood, "ENTRY_ITERATIONS", 1)
    message = r"in 2 EM iterations: the mean log density still rose by .* tolerance"
    with pytest.warns(ConvergenceWarning, match=message) as seen:
        fewkern.ForwardDensity().fit(X)
    assert seen[0].filename == __file__  # where the user called fit


@pytest.mark.parametrize(("limit", "stop"), [(3, "max_iter"), (5000, "converged")])
def test_em_says_how_it_ended(limit, stop):
    problem = likelihood.DensityProblem.of(X, np.ones(60))
    start = likelihood.RoundMixture(X[:3], np.full(3, 0.5), np.full(3, 1 / 3))
    found = likelihood.expectation_maximization(problem, start, 0.1, limit, 1e-9)
    assert found.stop == stop
    assert (found.rise > 1e-9, found.n_iter == limit) == (stop == "max_iter",) * 2


def test_simplex_descent_that_rounding_ends_is_not_called_converged(monkeypatch):
    monkeypatch.setattr(simplex, "_descend", lambda B, v, S, g: (S, g, 1))
    stuck = simplex.active_set(np.eye(2), np.array([0.5, 0.4]))
    assert stuck.stop == "precision"
    assert stuck.gap > 1e-10


def test_jitter_is_reported():
    G = np.ones((20, 3))
    y = np.linspace(0, 1, 20)[:, None]
    assert solve(G, y, 1.0).jitter == 0.0
    assert solve(1e9 * G, y, 1e-12).jitter > 0.0
    wide = np.column_stack([np.ones(40) * 1e8, np.linspace(0, 1, 40)])
    with pytest.warns(UserWarning, match=r"FeatureVectorRegressor: with alpha=1e-12 the equations are singular"):
        fewkern.FeatureVectorRegressor(kernel="linear", alpha=1e-12, n_vectors=1).fit(wide, wide[:, 1])
