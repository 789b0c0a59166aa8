"""The multiplicative updates of the literature, against the exact solver; the refit of the paper's densities."""

import numpy as np
import pytest

from experiments.fcr_refit import forward_refitted
from experiments.fcr_updates import mnqp, reduced_set_by_updates
from fewkern.density import simplex
from fewkern.density.constrained import ConstrainedRules, forward_constrained
from fewkern.density.problem import DensityProblem


def _density_problem(n=80, width=0.7, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    return np.exp(-D / (4 * width**2)) / 2, np.exp(-D / (2 * width**2)).mean(axis=1)


def test_multiplicative_updates_stay_on_the_simplex_where_the_plain_formula_leaves_it():
    B, v, g = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([5.0, 0.0]), np.array([0.5, 0.5])
    c = g / (B @ g)
    plain = c * (v + (1 - c @ v) / c.sum())
    assert plain.min() < 0
    safe = mnqp(B, v, iterations=1).weights
    assert safe.min() >= 0
    assert safe.sum() == pytest.approx(1, abs=1e-15)


def test_an_update_minimizes_its_bound_on_the_simplex():
    """Sha, Saul and Lee: the gradient of the bound is the same on all weights, and larger where a weight is zero."""
    B, v = _density_problem(20)
    v = v - 0.5 * (np.arange(20) % 2)  # some weights end at zero
    g = np.random.default_rng(1).dirichlet(np.ones(20))
    z = mnqp(B, v, iterations=1, start=g).weights
    slope = (B @ g) * z / g - v
    positive = z > 1e-10
    assert 1 < positive.sum() < 20
    np.testing.assert_allclose(slope[positive], slope[positive][0], atol=1e-9)
    assert slope[~positive].min() >= slope[positive][0] - 1e-9


def test_reduced_set_by_updates():
    X = np.random.default_rng(0).normal(size=(50, 2))
    problem = DensityProblem.of(X, np.ones(50), 0.4)
    exact, slow = simplex.reduced_set(problem, 0.6)[0], reduced_set_by_updates(problem, 0.6)
    assert len(exact.rows) <= len(slow.rows)
    assert slow.weights.sum() == pytest.approx(1, abs=1e-12)
    assert slow.weights.min() > 1e-4 * 0.99


def test_a_joint_refit_lowers_the_distance_to_parzens_estimate():
    X = np.random.default_rng(0).normal(size=(60, 2)) + 3.0 * (np.arange(60)[:, None] >= 30)
    problem = DensityProblem.of(X, np.ones(60), 0.4)
    target = problem.parzen(X)

    def distance(mixture):
        D = ((X[:, None] - mixture.centers[None]) ** 2).sum(-1)
        return np.sum((target - problem.kernel(D, mixture.bandwidths) @ mixture.weights) ** 2)

    paper = forward_constrained(problem, target, ConstrainedRules(2.0)).mixture
    refitted = forward_refitted(problem, 2.0)
    assert distance(refitted) < distance(paper)
    assert set(refitted.rows) <= set(paper.rows)
    assert refitted.weights.sum() == pytest.approx(1, abs=1e-12)
    assert refitted.weights.min() > 0
