import numpy as np
import pytest

from fewkern.arrays.sampling import column_order, grouped_folds, row_keys, row_order, smallest_keys, value_keys


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


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_order_of_rows_knows_neither_the_sign_of_targets_nor_the_names_of_classes(copies, n_classes, rng):
    X = np.repeat(rng.normal(size=(40, 2)), copies, axis=0)
    codes = np.where(rng.random(len(X)) < 0.6, 0, rng.integers(n_classes, size=len(X)))
    y, Y, turn = rng.normal(size=(len(X), 1)), np.eye(n_classes)[codes], rng.permutation(n_classes)
    np.testing.assert_array_equal(row_order(X, -y), row_order(X, y))
    # rows that are equal in everything may change places
    np.testing.assert_array_equal(Y[row_order(X, Y[:, turn])], Y[row_order(X, Y)])
    np.testing.assert_array_equal(X[row_order(X, Y[:, turn])], X[row_order(X, Y)])
    rows = rng.permutation(len(X))
    np.testing.assert_array_equal(y[rows][row_order(X[rows], y[rows])], y[row_order(X, y)])


def test_targets_order_equal_rows_only():
    X = np.arange(30.0)[:, None]
    np.testing.assert_array_equal(row_order(X, np.sin(X)), row_order(X, np.cos(X)))
    # 3 is nearest to the mean of the three, 2 and 4 are equally far from it, and 2 is nearer to the mean of all
    equal, targets = np.array([0.0, 0.0, 0.0, 1.0]), np.array([4.0, 2.0, 3.0, -9.0])
    order = row_order(equal[:, None], targets[:, None])
    assert targets[order[order != 3]].tolist() == [3.0, 2.0, 4.0]


def test_gaps_are_one_value():
    X = np.array([[np.nan, 1.0], [np.nan, 2.0], [3.0, np.nan], [4.0, 2.0], [np.nan, 1.0]])
    filled = np.where(np.isnan(X), 99.0, X)
    y = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(row_order(X, y), row_order(filled, y))
    np.testing.assert_array_equal(column_order(X), column_order(filled))


def test_keys_tell_every_two_rows_apart_but_equal_ones(rng):
    X = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)  # every permutation of every row is there
    X = np.concatenate([X[rng.permutation(64)[:50]], [[0.0, 1.0, np.nan], [-0.0, 1.0, np.nan]]])
    keys = value_keys(X)
    assert len(np.unique(keys)) == 51
    assert keys[-1] == keys[-2]
    np.testing.assert_array_equal(value_keys(X[:, [2, 0, 1]]), keys)


def test_groups_are_dealt_where_every_class_has_fewer_rows_than_there_are_folds():
    folds = grouped_folds(np.array([0, 1, 2, 0]), np.array([0, 1, 2, 3]), 3)
    assert sorted(sorted(held) for _, held in folds) == [[0, 3], [1], [2]]
