"""Numbers at the ends of their range."""

import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.arrays.numerics import all_finite, largest_power, power_of_two, squarable


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_entry_is_found(bad):
    x = np.ones((3, 4))
    assert all_finite(x)
    x[1, 2] = bad
    assert not all_finite(x)
    assert not all_finite(sp.csr_array(x))
    assert all_finite(sp.csr_array(np.eye(3)))


def test_finite_numbers_whose_sum_is_not():
    assert all_finite(np.full(10, 1e308))
    assert not all_finite(np.array([np.inf, -np.inf]))


def test_powers_of_two():
    assert [power_of_two(v) for v in (0.0, 1.0, 1.9, 2.0, 0.3, 1e300)] == [1.0, 1.0, 1.0, 2.0, 0.25, 2.0**996]


def test_squares_of_what_is_squarable_are_numbers():
    for dtype, expected in ((np.float64, 1e140), (np.float32, 3e17)):
        limit = squarable(np.ones(2, dtype))
        assert limit == pytest.approx(expected, rel=0.1)
        assert np.isfinite(1e3 * np.array(limit, dtype) ** 2)
        assert np.array(1 / limit, dtype) ** 2 > np.finfo(dtype).smallest_normal


def test_the_largest_entry_may_be_negative():
    assert largest_power(np.array([[-5.0, 1.0]])) == 4.0
    assert largest_power(np.array([[-1.0, 9.0]])) == 8.0
    assert largest_power(np.zeros((0, 3))) == largest_power(np.zeros((2, 3))) == 1.0
