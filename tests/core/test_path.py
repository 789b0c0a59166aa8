import numpy as np
import pytest

from fewkern.core.path import Path, Stop, peel, smallest_within


def trace(error, chosen, **more):
    error = np.asarray(error, dtype=float)
    axes = {"length_scale": tuple(range(error.shape[0])), "n_vectors": tuple(range(error.shape[1]))}
    return Path(axes, error, np.full_like(error, 0.1), chosen, **more)


def test_setting_and_curve_are_those_of_the_chosen_place():
    found = trace([[3, 2, 1], [3, 1.5, 0.5]], (1, 2))
    assert found.setting == {"length_scale": 1, "n_vectors": 2}
    sizes, errors, spread = found.curve
    np.testing.assert_array_equal(sizes, [0, 1, 2])
    np.testing.assert_array_equal(errors, [3, 1.5, 0.5])
    np.testing.assert_array_equal(spread, [0.1] * 3)


@pytest.mark.parametrize(
    ("curve", "chosen", "open_end"),
    [
        ([3, 2, 1], 2, True),
        ([3, 1, 2], 1, False),
        ([3, 2, 1], 1, False),
        # only if the last quarter of the budget paid: by a standard error, and by a part of the whole fall
        ([3, 1, 0.95, 0.9, 0.75], 4, True),
        ([3, 1, 0.95, 0.9, 0.85], 4, False),
        ([300, 1, 0.95, 0.9, 0.75], 4, False),
    ],
)
def test_open_end_is_a_falling_error_at_the_end_of_the_budget(curve, chosen, open_end, foreign):
    to, back = foreign
    for array in (np.asarray, to):
        error = array(np.array([curve], dtype=float))
        found = Path(
            {"length_scale": (1.0,), "n_vectors": tuple(range(len(curve)))}, error, 0 * error + 0.1, (0, chosen)
        )
        assert found.open_end is open_end
        np.testing.assert_array_equal(back(found.curve[1]), curve)


def test_smallest_within_an_allowance():
    error = np.array([[0.5, 0.22, 0.20], [0.4, 0.21, 0.25]])
    size = np.array([[0, 4, 9], [0, 4, 9]])
    assert smallest_within(error, size, 0.0) == (0, 2)
    assert smallest_within(error, size, 0.02) == (1, 1)
    assert smallest_within(error, size, 0.5) == (1, 0)
    assert smallest_within(np.array([np.inf, 0.3]), np.array([1, 2]), 1.0) == (1,)  # what was not followed
    # an allowance of its own for every model
    assert smallest_within(error, size, np.array([[0.0, 0.02, 0.0], [0.0, 0.0, 0.0]])) == (0, 1)


def test_sizes_that_were_not_tried_say_nothing_of_the_end():
    error = np.array([[np.inf, np.inf, 0.5, 0.2], [0.9, 0.4, np.inf, np.inf]])
    axes = {"origin": (0.0, 1.0), "n_vectors": (3.0, 6.0, 20.0, 80.0)}
    assert Path(axes, error, 0.01 * np.ones((2, 4)), (0, 3)).open_end
    assert not Path(axes, error, 0.01 * np.ones((2, 4)), (0, 2)).open_end
    assert Path(axes, error, 0.01 * np.ones((2, 4)), (1, 1)).open_end
    # two sizes of one origin are too few to say whether the error was still falling
    assert not Path({"n_vectors": (3.0, 6.0)}, np.array([0.9, 0.4]), np.full(2, 0.01), (1,)).open_end


class Numbers:
    """What is left of a list; ``width`` of them are taken at a time, largest first."""

    def __init__(self, values, width=1):
        self.left, self.width = sorted(values, reverse=True), width

    def find(self):
        return self.left[: self.width] or Stop.RANK

    def remove(self, found):
        self.left = self.left[len(found) :]
        return found


@pytest.mark.parametrize(
    ("values", "width", "limit", "records", "stop"),
    [
        ([3, 1, 2], 1, 10, (3, 2, 1), Stop.RANK),
        ([3, 1, 2], 1, 2, (3, 2), Stop.LIMIT),
        (range(5), 2, 3, (4, 3, 2, 1), Stop.LIMIT),  # a block gives several records
        ([1], 1, 0, (), Stop.LIMIT),
    ],
)
def test_peel(values, width, limit, records, stop):
    state, steps = Numbers(values, width), []
    done = peel(state, limit, steps.append)
    assert (done.records, done.stop) == (records, stop)
    assert sorted([*done.records, *state.left]) == sorted(values)
    assert steps == list(range(width, len(records) + 1, width))
