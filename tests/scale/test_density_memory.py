"""Densities at large n: nothing of size n x n, evaluation in blocks."""

import tracemalloc

import numpy as np
import pytest

from fewkern import (
    ForwardConstrainedDensity,
    ForwardDensity,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
)
from fewkern.datasets import make_gaussian_laplacian
from fewkern.density import bandwidth, forward, paper

N, CANDIDATES = 10_000, 200
X = make_gaussian_laplacian(N, random_state=0)

pytestmark = pytest.mark.scale


def _peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "density",
    [
        ForwardDensity(bandwidth=0.1, max_vectors=2),
        ForwardConstrainedDensity(bandwidth=0.1, max_vectors=5),
        ReducedSetDensity(bandwidth=0.2),
        OrthogonalForwardDensity(bandwidth=0.1, max_vectors=5),
        ParzenDensity(),
    ],
    ids=["ml", "paper", "rsde", "skd", "parzen"],
)
def test_fit_needs_memory_of_order_n_times_candidates(density, monkeypatch):
    for place in (forward, paper):
        monkeypatch.setattr(place, "MAX_CANDIDATES", CANDIDATES)
    monkeypatch.setattr(paper, "_MAX_ORTHOGONAL_ROWS", CANDIDATES)
    monkeypatch.setattr(bandwidth, "_SEARCH_ROWS", 500)
    peak = _peak(lambda: density.fit(X))
    assert peak < 4 * 8 * N * CANDIDATES
    assert peak < 0.07 * 8 * N * N


def test_evaluation_is_done_in_blocks():
    model = ParzenDensity(bandwidth=0.2).fit(X)
    queries = X[:600]
    whole = 8 * N * len(queries)
    assert _peak(lambda: model.score_samples(queries)) < 0.8 * whole
    blocks = model.score_samples(queries)
    np.testing.assert_allclose(blocks[::60], [model.score_samples(x[None])[0] for x in queries[::60]], rtol=1e-12)
