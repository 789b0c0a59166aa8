"""Shares of features: derivatives against finite differences, and the laws."""

from __future__ import annotations

import numpy as np
import pytest

import fewkern.core.explanation as sensitivity
from fewkern import KernelExpansion
from fewkern.core.explanation import feature_importances, slopes
from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian, Laplacian, Linear, Polynomial

WIDTHS = np.array([0.7, 1.5, 2.5])
KERNELS = [
    Gaussian(length_scale=1.3),
    Gaussian(length_scale=WIDTHS),
    Polynomial(degree=3, gamma=0.4, coef0=1.0),
    Linear(),
]


def function(kernel, rng, outputs=2, vectors=6, features=3):
    """A sum of kernels with coefficients at random."""
    coef, offset = rng.normal(size=(vectors, outputs)), rng.normal(size=outputs)
    return KernelExpansion(kernel, rng.normal(size=(vectors, features)), coef, offset)


def shares(f, X, weights=None):
    return feature_importances(f, Samples.of(X, weights))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_slopes_and_shares_are_those_of_differences(kernel, rng):
    f, X, step = function(kernel, rng), rng.normal(size=(40, 3)) * [1.0, 0.2, 3.0], 1e-5
    values, total = f(X), np.zeros(3)
    for a in range(3):
        move = step * np.eye(3)[a]
        slope = (f(X + move) - f(X - move)) / (2 * step)
        found = np.stack([slopes(f, X, output)[:, a] for output in range(2)], axis=1)
        np.testing.assert_allclose(found, slope, atol=1e-7 * np.abs(values).max())
        total[a] = X[:, a].var() * np.sum(np.mean(slope**2, axis=0) / values.var(axis=0))
    np.testing.assert_allclose(shares(f, X), total / total.sum(), atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_pulling_back_is_the_gradient_of_the_sum(kernel, shift, rng):
    """Also far from the origin, where products cancel."""
    if shift and not isinstance(kernel, Gaussian):
        pytest.skip("only a kernel of differences does not change with the origin")
    X, V, D = rng.normal(size=(9, 3)) + shift, rng.normal(size=(4, 3)) + shift, rng.normal(size=(9, 4))
    found, expected, step = kernel.pullback(X, V, kernel(X, V), D), np.empty((4, 3)), 1e-4
    for at in np.ndindex(4, 3):
        move = np.zeros((4, 3))
        move[at] = step
        expected[at] = np.sum(D * (kernel(X, V + move) - kernel(X, V - move))) / (2 * step)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    parts = [kernel.pullback(X[rows], V, kernel(X[rows], V), D[rows]) for rows in (slice(0, 4), slice(4, 9))]
    np.testing.assert_allclose(parts[0] + parts[1], found, atol=1e-9)


def test_a_kernel_without_derivatives_says_so(rng):
    V = rng.normal(size=(3, 3))
    assert not Laplacian(1.0).differentiable
    assert all(kernel.differentiable for kernel in KERNELS)
    with pytest.raises(ValueError, match="Laplacian: this kernel has no derivatives; use Gaussian, Polynomial"):
        Laplacian(1.0).pullback(V, V, V, V)


def test_row_blocks_and_many_rows(rng, monkeypatch):
    f, X = function(Gaussian(length_scale=1.0), rng), rng.normal(size=(90, 3))
    whole = shares(f, X)
    monkeypatch.setattr("fewkern.arrays.blocks.BLOCK_ELEMENTS", 50)
    np.testing.assert_allclose(shares(f, X), whole, rtol=1e-12)
    monkeypatch.setattr(sensitivity, "MOST_ROWS", 30)
    np.testing.assert_allclose(shares(f, X), shares(f, X[::3]), rtol=1e-12)


def test_weights_are_repetition(rng):
    f, X, counts = function(Gaussian(length_scale=1.0), rng), rng.normal(size=(30, 3)), rng.integers(0, 4, size=30)
    np.testing.assert_allclose(shares(f, X, counts.astype(float)), shares(f, np.repeat(X, counts, axis=0)), rtol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(length_scale=1.0), Polynomial(gamma=0.3), Linear()], ids=repr)
def test_a_constant_feature_has_no_share(kernel, rng):
    X = rng.normal(size=(40, 3))
    X[:, 1] = 1e8 / 3
    f = KernelExpansion(kernel, X[:5], rng.normal(size=(5, 1)), np.zeros(1))
    assert shares(f, X)[1] == 0
    assert shares(f, X).sum() == pytest.approx(1)


def test_other_libraries(rng, foreign):
    to, back = foreign
    f, X = function(Gaussian(length_scale=WIDTHS), rng), rng.normal(size=(40, 3))
    for dtype, rtol in ((np.float64, 1e-9), (np.float32, 1e-4)):
        there, arrays = to(X.astype(dtype)), (array.astype(dtype) for array in (f.vectors, f.coef, f.offset))
        found = shares(KernelExpansion(f.kernel, *arrays).like(there), there)
        assert isinstance(found, type(there))
        np.testing.assert_allclose(back(found), shares(f, X), rtol=rtol)
