"""Dominance counts by bits of ranks; tests/laws has the sums over pairs that they give."""

import numpy as np
import pytest

from fewkern.margins.ranking import prefix_dominance


@pytest.mark.parametrize("n", [1, 2, 3, 8, 33, 100])
def test_dominance_counts_are_exact_integers(n):
    rng = np.random.default_rng(n)
    rank = rng.permutation(n)
    queries = rng.integers(0, n + 1, (2, n))
    values = rng.integers(-5, 6, (n, 2))
    for got, query in zip(prefix_dominance(rank, queries, values), queries):
        want = [values[: query[t]][rank[: query[t]] < t].sum(axis=0) for t in range(n)]
        np.testing.assert_array_equal(got, want)
