"""Sums over pairs by sorting against the pairs one by one."""

import numpy as np
import pytest
import scipy.sparse as sp

from fewkern.margins import ranking
from fewkern.margins.graphs import AllPairs
from fewkern.margins.ranking import OrderedPairs, prefix_dominance
from tests.oracles.margins import pair_sums, pairs_of


@pytest.mark.parametrize("n", [1, 2, 3, 8, 33, 100])
def test_dominance_counts_are_exact_integers(n):
    rng = np.random.default_rng(n)
    rank = rng.permutation(n)
    queries = rng.integers(0, n + 1, (2, n))
    values = rng.integers(-5, 6, (n, 2))
    for got, query in zip(prefix_dominance(rank, queries, values), queries):
        want = [values[: query[t]][rank[: query[t]] < t].sum(axis=0) for t in range(n)]
        np.testing.assert_array_equal(got, want)


def removing(gone, n):
    """Pairs as the sparse matrix of a graph."""
    if gone is None:
        return None
    half = sp.coo_matrix((np.ones(len(gone[0])), gone), (n, n))
    return (half + half.T).tocsr()


def case(seed, n, classes, removed, weighted=True):
    rng = np.random.default_rng(seed)
    codes = None if classes is None else rng.integers(0, classes, n)
    p = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    gone = None
    if removed:
        a, b = rng.integers(0, n, 15), rng.integers(0, n, 15)
        keep = a != b if codes is None else codes[a] != codes[b]
        pairs = np.unique(np.stack([np.maximum(a, b)[keep], np.minimum(a, b)[keep]]), axis=1)
        gone = (pairs[0], pairs[1])
    s = np.round(np.sort(rng.normal(size=n)) + 0.3 * rng.normal(size=n), 1)
    return s, p, codes, gone, rng.normal(size=(n, 3))


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("classes", [None, 3])
@pytest.mark.parametrize("blocks", [7, 1000])
@pytest.mark.parametrize("n", [3, 50, 150])
def test_every_sum_equals_the_sum_over_pairs(n, classes, removed, blocks, monkeypatch):
    monkeypatch.setattr(ranking, "row_blocks", lambda n, _: [slice(a, min(a + blocks, n)) for a in range(0, n, blocks)])
    s, p, codes, gone, X = case(n, n, classes, removed)
    m, mu = 0.73, 0.21
    want = pair_sums(s, p, *pairs_of(n, codes, gone), m, mu, X)
    pairs = OrderedPairs.arranged(AllPairs(1.0, p, codes, removing(gone, n)), np.arange(n))
    np.testing.assert_allclose(pairs.balance(), want["balance"], atol=1e-10)
    np.testing.assert_allclose(pairs.window_value(s, m), want["window"], rtol=1e-10, atol=1e-10)
    value, gradient = pairs.huber(s, m, mu)
    np.testing.assert_allclose(value, want["huber"], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gradient, want["huber_gradient"], atol=1e-9)
    np.testing.assert_allclose(pairs.huber_curvature(s, X, m, mu), want["curvature"], rtol=1e-9, atol=1e-8)


def test_a_pair_set_lists_its_pairs():
    _, p, codes, gone, _ = case(2, 30, 3, True)
    edges = AllPairs(0.5, p, codes, removing(gone, 30)).edges()
    upper, lower = pairs_of(30, codes, gone)
    assert set(zip(edges.i.tolist(), edges.j.tolist())) == set(zip(upper.tolist(), lower.tolist()))
    np.testing.assert_array_equal(edges.count, p[edges.i] * p[edges.j])
    assert np.all(edges.v == 0.5)
