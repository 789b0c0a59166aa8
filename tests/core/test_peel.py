from fewkern.core.peel import Peeled, Stop, peel


def test_limit():
    assert peel(lambda count: count, lambda found: [found], 3) == Peeled((0, 1, 2), "limit")


def test_stop_says_why():
    result = peel(lambda count: Stop("rank") if count == 2 else count, lambda found: [found], 10)
    assert result == Peeled((0, 1), "rank")


def test_blocks_give_one_record_per_step():
    assert peel(lambda count: count, lambda found: [found, found], 4) == Peeled((0, 0, 2, 2), "limit")


def test_nothing_removed_ends_the_loop():
    assert peel(lambda count: count, lambda found: [], 4) == Peeled((), "exhausted")


def test_limit_of_zero_calls_nothing():
    assert peel(None, None, 0) == Peeled((), "limit")


def test_pivoted_cholesky_in_four_lines():
    """``a`` a unit vector: the loop is the factorisation of a matrix."""
    import numpy as np

    A = np.array([[4.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 1.0, 2.0]])
    R = A.copy()

    def remove(s):
        g = R[:, s] / np.sqrt(R[s, s])
        R[:] -= np.outer(g, g)
        return [g]

    found = peel(lambda _: int(np.argmax(np.diag(R))), remove, 3)
    G = np.array(found.records).T
    np.testing.assert_allclose(G @ G.T, A)
