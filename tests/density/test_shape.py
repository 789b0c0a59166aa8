"""One shape for all kernels, learned by EM."""

import numpy as np
import pytest

from fewkern import ForwardDensity
from fewkern.density.likelihood import ShapedGrowth, choose_shape, covariance_ridge
from fewkern.density.problem import DensityProblem

COVARIANCE = np.array([[1.0, 0.95, 0.0], [0.95, 1.0, 0.3], [0.0, 0.3, 1.0]])


def _lumps(n, seed=0):
    """Two lumps of one shape, apart in a direction that their common covariance hides."""
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(3), COVARIANCE, n)
    X[::2] += [-6.0, 6.0, 0.0]
    return X


def _problem(X):
    return DensityProblem.of(X, np.ones(len(X)), 0.3)


def test_the_shape_is_the_covariance_inside_the_kernels():
    growth = ShapedGrowth(_problem(_lumps(3000)), 0.5)
    growth.grow()
    S = np.linalg.inv(growth.to_round @ growth.to_round)
    assert np.linalg.det(growth.to_round) == pytest.approx(1)
    np.testing.assert_allclose(S / S[0, 0], COVARIANCE, atol=0.08)
    np.testing.assert_allclose(growth.problem.Z, growth.given.Z @ growth.to_round, atol=1e-8)
    # whatever the unit
    X = _lumps(60)
    shapes = [ShapedGrowth(DensityProblem.of(c * X, np.ones(60), 0.3 * c), 0.5).to_round for c in (1.0, 1e-9)]
    np.testing.assert_allclose(*shapes, rtol=1e-6)


def test_correlated_columns_get_a_shape_and_independent_ones_none():
    X, T = _lumps(400), _lumps(2000, seed=1)
    shaped, plain = ForwardDensity().fit(X), ForwardDensity(scale="std").fit(X)
    assert shaped.scale_ == "shape"
    assert plain.scale_ == "std"
    assert shaped.expansion_.transform.shape == (3, 3)
    assert shaped.score(T) / len(T) > plain.score(T) / len(T) + 0.1
    free = ForwardDensity().fit(np.random.default_rng(0).normal(size=(300, 3)))
    assert free.scale_ == "std"
    assert free.expansion_.transform.ndim == 1
    assert ForwardDensity().fit(X[:, :1]).scale_ == "std"


def test_a_rotation_of_the_samples_rotates_the_density():
    X, T = _lumps(400), _lumps(200, seed=1)
    R, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    first, turned = ForwardDensity().fit(X), ForwardDensity().fit(X @ R)
    assert first.scale_ == turned.scale_ == "shape"
    # up to the ridge, which is tied to the axes
    np.testing.assert_allclose(turned.score_samples(T @ R), first.score_samples(T), atol=0.05)


def test_few_rows_of_many_columns_are_safe():
    X = np.random.default_rng(0).normal(size=(25, 40))
    S = covariance_ridge(np.cov(X.T), 25)
    assert np.linalg.eigvalsh(S).min() > 0.3
    assert np.all(np.isfinite(ForwardDensity(bandwidth="silverman").fit(X).score_samples(X)))
    # a column twice: the covariance is singular
    twice = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])
    found = choose_shape(_problem(twice), 3)
    assert found is not None
    assert np.all(np.isfinite(found))
