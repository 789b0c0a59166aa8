"""The residual matrix, the pool of candidates and the rules of pivots, against the matrices written out."""

import numpy as np
import pytest

from fewkern.core.gram import Gram
from fewkern.core.path import Stop
from fewkern.kernels import Gaussian, Linear
from fewkern.select.residual import Pivots, Residual, Selection
from fewkern.select.rules import Gain, Greedy, Pool, Random, Uniform, draw

X = np.random.default_rng(0).normal(size=(30, 3))
KERNEL = Gaussian(length_scale=1.2)
K = KERNEL(X, X)
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, 30)


def state_with(chosen=(), weights=None, basis_tol=1e-12, kernel=KERNEL, rows=X):
    """A residual after the samples ``chosen``, one by one."""
    state = Residual(Gram(kernel, rows), weights, basis_tol, 4, None)
    fitness = []
    for i in chosen:
        fitness += state.remove(Pivots([i], np.sqrt(state.r[i : i + 1])[:, None]))
    return state, fitness


def schur(S):
    """``K - K_S K_SS^-1 K_S'``."""
    S = list(S)
    return K - K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S]) if S else K


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_residual_is_what_the_chosen_ones_leave(weights):
    chosen = [4, 17, 9, 20, 2, 11]
    state, fitness = state_with(chosen, weights)
    R = schur(chosen)
    np.testing.assert_allclose(state.r, np.diag(R), atol=1e-10)
    share = np.full(30, 1 / 30) if weights is None else weights / weights.sum()
    for k in range(6):
        explained = 1 - np.diag(schur(chosen[: k + 1])) / np.diag(K)
        assert fitness[k] == pytest.approx(share @ explained, rel=1e-9)
    rows, S = np.array([0, 9, 5]), np.array([9, 7])
    np.testing.assert_allclose(state.among(rows, S), R[np.ix_(rows, S)], atol=1e-10)
    at = state.G[S][:, :6]
    np.testing.assert_allclose(state.columns(S, at, slice(3, 20)), R[3:20][:, S], atol=1e-10)
    assert state.chosen == chosen
    np.testing.assert_allclose(state.score, np.where(np.diag(R) > 1e-12, np.diag(R), 0.0), atol=1e-10)


def test_a_block_of_pivots_is_as_good_as_one_after_the_other():
    one, fitness = state_with([4, 17, 9])
    block, _ = state_with([4])
    pair = [17, 9]
    factor = np.linalg.cholesky(schur([4])[np.ix_(pair, pair)])
    together = block.remove(Pivots(pair, factor))
    np.testing.assert_allclose(together, fitness[1:], rtol=1e-9)
    np.testing.assert_allclose(block.G[:, :3], one.G[:, :3], atol=1e-10)
    np.testing.assert_allclose(block.r, one.r, atol=1e-10)
    assert block.least == pytest.approx(one.least)


def test_the_least_pivot_is_remembered_also_from_a_start():
    state, _ = state_with([4, 17, 9])
    pivots = [1.0, schur([4])[17, 17], schur([4, 17])[9, 9]]
    assert state.least == pytest.approx(min(pivots))
    start = Selection(state.gram, np.array([4, 17, 9]), state.G[:, :3], np.array([0.1, 0.2, 0.3]), state.r, Stop.LIMIT)
    again = Residual(state.gram, None, 1e-12, 1, start)
    assert again.least == pytest.approx(min(pivots))
    assert again.J == 0.3
    np.testing.assert_array_equal(again.G[:, :3], state.G[:, :3])
    assert again.chosen == [4, 17, 9]
    assert Residual(state.gram, None, 1e-12, 1, None).least == 1.0


def test_samples_of_no_length_or_no_weight_are_not_valid():
    rows = X.copy()
    rows[3] = 0.0
    rows[5] = 1e-9
    weights = np.ones(30)
    weights[7] = 0.0
    state, _ = state_with((), weights, kernel=Linear(), rows=rows)
    assert sorted(np.flatnonzero(~state.valid)) == [3, 5, 7]
    assert state.weight.sum() == pytest.approx(1.0)
    assert state.r[[3, 5, 7]].tolist() == [0.0, 0.0, 0.0]


def test_the_first_of_some_pivots():
    factor = np.linalg.cholesky(K[:3, :3])
    found = Pivots([0, 1, 2], factor)
    head = found.head(2)
    assert head.samples == [0, 1]
    np.testing.assert_array_equal(head.factor, factor[:2, :2])
    assert found.head(3) is found
    assert found.head(5) is found


# Pools


def test_a_pool_eliminates_its_candidates():
    state, _ = state_with([4])
    candidates = np.array([1, 6, 9, 20, 22])
    R = schur([4])[np.ix_(candidates, candidates)]
    pool = Pool(state, candidates, 3)
    for step, j in enumerate((2, 0, 4)):
        np.testing.assert_allclose(pool.score, after(R, (2, 0, 4)[:step]), atol=1e-12)
        pool.take(j)
    assert pool.score[[2, 0, 4]].max() <= 1e-12
    found = pool.pivots()
    assert found.samples == [9, 1, 22]
    block = R[np.ix_([2, 0, 4], [2, 0, 4])]
    np.testing.assert_allclose(found.factor, np.linalg.cholesky(block), atol=1e-12)


def after(R, taken):
    """Diagonal of what is left of a matrix."""
    S = list(taken)
    left = R - R[:, S] @ np.linalg.solve(R[np.ix_(S, S)], R[S]) if S else R
    diagonal = np.diag(left).copy()
    diagonal[S] = 0.0
    return diagonal


# Rules


@pytest.mark.parametrize("block", [1, 3, 40])
def test_greedy_takes_the_highest_score_each_time(block):
    state, _ = state_with(())
    rule = Greedy(state, block, 10, np.random.default_rng(0))
    chosen = []
    while len(chosen) < 10:
        found = rule.block()
        state.remove(found)
        chosen += found.samples
    fitness = [np.mean(1 - np.diag(schur([i]))) for i in range(30)]
    assert chosen[0] == np.argmax(fitness)
    for k in range(1, len(chosen)):
        left = np.diag(schur(chosen[:k])).copy()
        assert left[chosen[k]] == pytest.approx(left.max(), rel=1e-9)


def test_greedy_has_nothing_left_where_all_depend():
    rows = np.vstack([X[:2], X[:2]])
    state, _ = state_with((0, 1), kernel=KERNEL, rows=rows)
    found = Greedy(state, 2, 10, np.random.default_rng(0)).block()
    assert found.samples == []


def test_gain_takes_the_best_of_what_it_drew():
    state, _ = state_with([4], WEIGHTS)
    rule = Gain(state, 3, 1000, np.random.default_rng(0))
    found = rule.block()
    share = WEIGHTS / WEIGHTS.sum()
    taken = [4]
    for i in found.samples:
        R = schur(taken)
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = np.where(np.diag(R) > 1e-2 * np.diag(R).max(), (share @ R**2) / np.diag(R), -1.0)
        assert gain[i] == pytest.approx(gain.max(), rel=1e-6)
        taken.append(i)
    assert 1 <= len(found.samples) <= 3
    # its panel are the columns of G
    other, _ = state_with([4], WEIGHTS)
    other.remove(Pivots(found.samples, found.factor))
    np.testing.assert_allclose(found.panel, other.G[:, 1 : 1 + len(found.samples)], atol=1e-9)


class Coins:
    """A generator whose draws are given."""

    def __init__(self, *draws):
        self.draws = [np.asarray(values, dtype=float) for values in draws]

    def random(self, count):
        values = self.draws.pop(0)
        assert len(values) == count
        return values


def test_a_proposal_is_accepted_by_what_is_left_of_its_residual():
    state, _ = state_with([4])
    order = np.argsort(-np.abs(schur([4])[0]))
    near = int(next(i for i in order if i not in (0, 4)))
    score = np.diag(schur([4]))
    ladder = np.cumsum(state.weight * state.score) / np.sum(state.weight * state.score)
    heights = [ladder[0] / 2, (ladder[near - 1] + ladder[near]) / 2, ladder[0] / 2]
    left = np.diag(schur([4, 0]))[near] / score[near]
    assert 0.01 < left < 0.99
    for coin, accepted in ((left * 0.99, [0, near]), (left * 1.01, [0])):
        # the first is always taken; the same again depends on itself
        found = Random(state, 3, 10, Coins(heights, [0.999, coin, 0.0])).block()
        assert found.samples == accepted


def test_draws_follow_the_shares_and_never_take_a_share_of_zero():
    share = np.array([0.0, 2.0, 0.0, 1.0, 0.0])
    heights = [0.0, 0.3, 0.66, 0.67, 0.9999999999999999]
    assert draw(share, 5, Coins(heights)).tolist() == [1, 1, 1, 3, 3]


def test_uniform_lets_those_wait_that_nearly_depend():
    """Two nearly equal rows: the second of them comes after all others."""
    rows = np.array([[0.0], [1e-3], [4.0], [8.0]])
    state, _ = state_with((), kernel=Gaussian(length_scale=1.0), rows=rows)

    class Ordered:
        def permutation(self, n):
            return np.arange(n)

    rule = Uniform(state, 4, 10, Ordered())
    first = rule.block()
    assert first.samples == [0, 2, 3]
    state.remove(first)
    second = rule.block()
    assert second.samples == [1]
    state.remove(second)
    assert rule.block() == Stop.RANK
