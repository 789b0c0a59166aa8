import numpy as np

from fewkern.arrays.sampling import row_keys, smallest_keys


def test_keys_are_spread_evenly_and_belong_to_the_row():
    keys = row_keys(np.arange(100_000))
    assert 0 <= keys.min() < 1e-4
    assert 0.9999 < keys.max() < 1
    counts = np.histogram(keys, 20, (0, 1))[0]
    assert np.all(np.abs(counts - 5000) < 5 * np.sqrt(5000))
    assert abs(np.corrcoef(keys[:-1], keys[1:])[0, 1]) < 0.02
    np.testing.assert_array_equal(row_keys(np.array([7, 3])), keys[[7, 3]])


def test_the_smallest_are_taken_and_two_of_every_class():
    keys, labels = np.array([0.5, 0.1, 0.9, 0.2, 0.95, 0.3, 0.99]), np.array(list("aabaabb"))
    np.testing.assert_array_equal(smallest_keys(keys, None, 3), [1, 3, 5])
    np.testing.assert_array_equal(smallest_keys(keys, labels, 2), [1, 2, 3, 5])
    np.testing.assert_array_equal(smallest_keys(keys, labels, 7), np.arange(7))
