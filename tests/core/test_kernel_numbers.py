"""Kernels at the ends of the range of numbers, and kernel functions that do not behave."""

import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.core.kernels import resolve_kernel
from fewkern.datasets import make_banana
from fewkern.kernels import Function, Gaussian, Laplacian, Linear, Polynomial

X, Y = make_banana(30, random_state=4)


def test_gamma_by_rule_has_the_units_of_the_samples():
    assert Polynomial().resolve(X * 2.0**400).gamma == Polynomial().resolve(X).gamma / 2.0**800
    with pytest.raises(ValueError, match=r"one over the variance of the samples is 0, .*scale the samples"):
        Polynomial().resolve(X * 1e200)
    with pytest.raises(ValueError, match=r"one over the variance of the samples is inf"):
        Polynomial().resolve(X * 1e-200)


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
def test_a_width_without_an_inverse_is_refused(kernel):
    with pytest.raises(ValueError, match=r"the length scale is .*e-31\d, but must lie between 1e-305 and 1e\+305"):
        kernel().resolve(X * 1e-310)


@pytest.mark.parametrize("width", [1e-8, 1e-12])
def test_a_narrow_kernel_knows_equal_samples(width):
    """A distance from a product has an error of a few digits of the squared norm, here 1e16 and more."""
    K = Gaussian(width)(X, X)
    np.testing.assert_array_equal(K, np.eye(30))


def test_a_narrow_kernel_is_exact_nearby():
    near = X + np.array([1e-9, 0.0])
    expected = np.exp(-((near[:, 0] - X[:, 0]) ** 2) / 2e-16)
    np.testing.assert_allclose(np.diag(Gaussian(1e-8)(near, X)), expected, rtol=1e-6)


def test_values_that_overflow_are_refused():
    with pytest.raises(ValueError, match=r"Linear\(\): the kernel returned values that are not finite"):
        Linear()(X * 1e200, X * 1e200)
    with pytest.raises(ValueError, match=r"Polynomial\(degree=10, .*scale the samples"):
        resolve_kernel(Polynomial(degree=10, gamma=1e40), X)
    with pytest.raises(ValueError, match="or whose sums are not"):
        resolve_kernel(Linear(), np.full((3, 1), 1e153))
    assert resolve_kernel("linear", X) == Linear()


def test_errors_inside_a_kernel_function():
    def failing(A, B):
        raise error

    for error, expected in ((KeyError("width"), ValueError), (MemoryError(), MemoryError)):
        with pytest.raises(expected):
            Function(failing)(X, X)


def test_kernel_functions_may_return_lists_and_sparse_matrices():
    expected, S = Gaussian(1.0)(X, X), sp.csr_array(X)
    np.testing.assert_array_equal(Function(lambda A, B: Gaussian(1.0)(A, B).tolist())(X, X), expected)
    np.testing.assert_allclose(Function(lambda A, B: A @ B.T)(S, S), X @ X.T)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, r"Function: .*lambda.*: the kernel must return shape \(30, 30\), got \(\)"),
        (np.full((30, 30), "a"), "must return real numbers, got <U1"),
        (np.ones((30, 30)) * 1j, "must return real numbers, got complex128"),
        (
            [[1.0], [1.0, 2.0]],
            r"the kernel failed on samples of shapes \(30, 2\) and \(30, 2\): ValueError: setting an",
        ),
        (np.full((30, 30), np.nan), "Function: .*lambda.*: the kernel returned values that are not finite"),
    ],
)
def test_what_a_kernel_function_must_return(value, message):
    with pytest.raises(ValueError, match=message):
        Function(lambda A, B: value)(X, X)
