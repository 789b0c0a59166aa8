"""Helpers of the backend that the densities brought with them."""

import numpy as np
import pytest
from scipy.stats import norm

from fewkern.arrays.linalg import solve_or_least_squares
from fewkern.arrays.numerics import normal_cdf


def test_normal_cdf(foreign):
    to, back = foreign
    x = np.linspace(-8, 8, 17)
    np.testing.assert_allclose(normal_cdf(x), norm.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(back(normal_cdf(to(x))), norm.cdf(x), rtol=1e-9)


def test_a_regular_system_is_solved():
    A, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(solve_or_least_squares(A, b), np.linalg.solve(A, b))


@pytest.mark.parametrize("gap", [0.0, 1e-17])
def test_a_singular_system_has_the_shortest_least_squares_solution(gap):
    A, b = np.array([[1.0, 1.0], [1.0, 1.0 + gap]]), np.array([2.0, 2.0])
    np.testing.assert_allclose(solve_or_least_squares(A, b), [1.0, 1.0], rtol=1e-9)
