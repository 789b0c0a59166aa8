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
