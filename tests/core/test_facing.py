"""What is prepared for many calls must say what the kernel itself says."""

import numpy as np
import pytest

from fewkern.core.facing import Facing
from fewkern.kernels import Gaussian, Linear, Polynomial

WIDTHS = {"one width": 1.3, "a width per feature": np.array([1.0, 2.0, 0.7])}


@pytest.fixture
def scene(rng):
    """Samples far from the origin, vectors near them, and a matrix to pull back."""
    X = rng.normal(size=(30, 3)) + [1e4, -50.0, 0.0]
    return X, X[:4] + 0.2, rng.normal(size=(30, 4))


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_a_gaussian_that_is_held_equals_the_kernel(scene, width, rng):
    X, V, D = scene
    kernel = Gaussian(width)
    held, plain = kernel.facing(X, V), Facing(kernel, X)
    s = 0.3 * rng.normal(size=kernel.n_scales)
    for name, pulled in (("columns", D), ("among", D[:4])):
        found, expected = getattr(held, name)(V + 0.1, s), getattr(plain, name)(V + 0.1, s)
        np.testing.assert_allclose(found.K, expected.K, rtol=1e-9)
        for one, other in zip(found.pull(pulled), expected.pull(pulled)):
            np.testing.assert_allclose(one, other, atol=1e-9)
    w = rng.uniform(size=30)
    (total, slope), (one, other) = held.trace(w, s), plain.trace(w, s)
    assert total == pytest.approx(one)
    np.testing.assert_array_equal(slope, other)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.3), Gaussian(np.array([1.0, 2.0, 0.7])), Polynomial(gamma=0.3), Linear()]
)
def test_pulling_back_is_the_gradient_of_the_sum(rng, kernel):
    X, V = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    s, h = np.zeros(kernel.n_scales), 1e-6
    facing = kernel.facing(X, V)
    for name, D in (("columns", rng.normal(size=(9, 4))), ("among", rng.normal(size=(4, 4)))):
        columns = getattr(facing, name)
        dV, ds = columns(V, s).pull(D)

        def slope(dv, dt):
            up, down = (np.sum(D * columns(V + f * h * dv, s + f * h * dt).K) for f in (1, -1))
            return (up - down) / (2 * h)

        steps = np.eye(12).reshape(12, 4, 3)
        np.testing.assert_allclose(dV.ravel(), [slope(step, 0.0) for step in steps], atol=1e-7)
        np.testing.assert_allclose(ds, [slope(0.0, step) for step in np.eye(len(s))], atol=1e-7)
