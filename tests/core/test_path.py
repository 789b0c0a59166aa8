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
    ("curve", "chosen", "open_end"), [([3, 2, 1], 2, True), ([3, 1, 2], 1, False), ([3, 2, 1], 1, False)]
)
def test_open_end_is_a_falling_error_at_the_end_of_the_budget(curve, chosen, open_end):
    assert trace([curve], (0, chosen)).open_end is open_end


def test_an_end_is_open_only_if_the_last_quarter_of_the_budget_paid():
    assert trace([[3.0, 1.0, 0.95, 0.9, 0.75]], (0, 4)).open_end
    # within a standard error, and a negligible part of the whole fall
    assert not trace([[3.0, 1.0, 0.95, 0.9, 0.85]], (0, 4)).open_end
    assert not trace([[300.0, 1.0, 0.95, 0.9, 0.75]], (0, 4)).open_end


def test_curve_and_open_end_in_every_array_library(foreign):
    to, back = foreign
    error = to(np.array([[3.0, 1.0, 0.95, 0.9, 0.75]]))
    found = Path({"length_scale": (1.0,), "n_vectors": (0, 1, 2, 3, 4)}, error, 0.1 * error, (0, 4))
    np.testing.assert_array_equal(back(found.curve[1]), back(error)[0])
    assert found.open_end


def test_penalties_have_no_open_end():
    error = np.array([[3.0, 2.0, 1.0]])
    found = Path({"length_scale": (1.0,), "alpha": (3.0, 2.0, 1.0)}, error, error, (0, 2), size=np.array([[1, 2, 3]]))
    assert not found.open_end
    assert found.at_edge == ("alpha",)
    np.testing.assert_array_equal(found.curve[0], [1, 2, 3])


def test_at_edge_names_axes_where_the_end_was_taken_and_there_was_a_choice():
    assert trace([[3, 2], [2, 1], [3, 3]], (1, 1)).at_edge == ()
    assert trace([[3, 2], [2, 1], [3, 0]], (2, 1)).at_edge == ("length_scale",)
    assert trace([[3, 2]], (0, 1)).at_edge == ()


def test_smallest_within_an_allowance():
    error = np.array([[0.5, 0.22, 0.20], [0.4, 0.21, 0.25]])
    size = np.array([[0, 4, 9], [0, 4, 9]])
    assert smallest_within(error, size, 0.0) == (0, 2)
    assert smallest_within(error, size, 0.02) == (1, 1)
    assert smallest_within(error, size, 0.5) == (1, 0)
    # an allowance of its own for every model
    assert smallest_within(error, size, np.array([[0.0, 0.02, 0.0], [0.0, 0.0, 0.0]])) == (0, 1)


def test_smallest_within_skips_what_was_not_followed():
    assert smallest_within(np.array([np.inf, 0.3]), np.array([1, 2]), 1.0) == (1,)


def test_stops_compare_with_their_text():
    assert Stop.MAX_ITER == "max_iter"
    assert str(Stop.FLAT) == "flat"


def test_sizes_that_were_not_tried_say_nothing_of_the_end():
    error = np.array([[np.inf, np.inf, 0.5, 0.2], [0.9, 0.4, np.inf, np.inf]])
    axes = {"origin": (0.0, 1.0), "n_vectors": (3.0, 6.0, 20.0, 80.0)}
    assert Path(axes, error, 0.01 * np.ones((2, 4)), (0, 3)).open_end
    assert not Path(axes, error, 0.01 * np.ones((2, 4)), (0, 2)).open_end
    assert Path(axes, error, 0.01 * np.ones((2, 4)), (1, 1)).open_end
    assert Path(axes, error, 0.01 * np.ones((2, 4)), (1, 1)).at_edge == ()


class Numbers:
    """What is left of a list; ``width`` of them are taken at a time, largest first."""

    def __init__(self, values, width=1):
        self.left, self.width = sorted(values, reverse=True), width

    def find(self):
        return self.left[: self.width] or Stop.RANK

    def remove(self, found):
        self.left = self.left[len(found) :]
        return found


def test_until_nothing_is_left():
    done = peel(Numbers([3, 1, 2]), limit=10)
    assert (done.records, done.stop) == ((3, 2, 1), Stop.RANK)


def test_until_the_limit():
    state = Numbers([3, 1, 2])
    done = peel(state, limit=2)
    assert (done.records, done.stop, state.left) == ((3, 2), Stop.LIMIT, [1])


def test_a_block_may_give_several_records():
    assert peel(Numbers(range(5), width=2), limit=3).records == (4, 3, 2, 1)


def test_nothing_asked():
    assert peel(Numbers([1]), limit=0).records == ()
