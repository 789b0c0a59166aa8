import numpy as np

from fewkern.core.path import Stop, peel


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


def test_pivoted_cholesky_is_a_loop_over_what_is_left():
    A = np.array([[4.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 1.0, 2.0]])

    class Left:
        R = A.copy()

        def find(self):
            return int(np.argmax(np.diag(self.R)))

        def remove(self, s):
            g = self.R[:, s] / np.sqrt(self.R[s, s])
            self.R = self.R - np.outer(g, g)
            return [g]

    G = np.array(peel(Left(), limit=3).records).T
    np.testing.assert_allclose(G @ G.T, A)
