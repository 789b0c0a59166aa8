"""Directions taken out of samples by reflections: what is left is orthogonal."""

import numpy as np
import pytest

from fewkern.margins.embedding import Reflected, reflect


@pytest.fixture
def Z(rng):
    Z = rng.standard_normal((12, 5))
    return Z - Z.mean(axis=0)


def units(rng, d, count):
    """Orthonormal columns."""
    return np.linalg.qr(rng.standard_normal((d, count)))[0]


@pytest.mark.parametrize("first", [0.7, -0.7, 0.0, 1.0, -1.0])
def test_a_reflection_keeps_lengths_and_leaves_the_complement(first, rng):
    u = np.r_[first, rng.standard_normal(4)]
    u = u / np.linalg.norm(u) if abs(first) < 1 else np.r_[first, np.zeros(4)]
    A = rng.standard_normal((7, 5))
    rest, along = reflect(A, u)
    assert rest.shape == (7, 4)
    np.testing.assert_allclose(along, A @ u)
    np.testing.assert_allclose(rest @ rest.T, A @ A.T - np.outer(along, along), atol=1e-12)
    # u itself has nothing in its complement
    np.testing.assert_allclose(reflect(u[None, :], u)[0], 0, atol=1e-15)


def test_a_space_without_directions_has_less_dimensions_and_shorter_samples(Z, rng):
    space = Reflected.start(Z)
    assert (space.dimension, space.W.shape) == (5, (5, 0))
    assert space.largest_norm() == pytest.approx(np.linalg.norm(Z, axis=1).max())
    U = units(rng, 5, 2)
    # columns that are not quite of length one are meant as directions
    left, features = space.without(U * [1.0, 1 + 1e-9])
    assert left.dimension == 3
    np.testing.assert_allclose(features, Z @ U, atol=1e-8)
    np.testing.assert_allclose(left.W, U, atol=1e-8)
    np.testing.assert_allclose(left.A @ left.A.T, Z @ Z.T - (Z @ U) @ (Z @ U).T, atol=1e-8)
    # Q takes directions of the complement back, orthogonal to what was taken out
    np.testing.assert_allclose(left.Q.T @ left.Q, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(left.Q.T @ U, 0, atol=1e-8)
    np.testing.assert_allclose(Z @ left.Q, left.A, atol=1e-8)
    none, _ = left.without(np.eye(3))
    assert (none.dimension, none.largest_norm()) == (0, 0.0)
    np.testing.assert_allclose(none.W.T @ none.W, np.eye(5), atol=1e-9)
