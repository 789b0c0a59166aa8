"""Fits and predictions at many samples: nothing of size n x n, evaluation in blocks."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from fewkern import (
    ForwardConstrainedDensity,
    ForwardDensity,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
    SparseKernelFisher,
)
from fewkern.datasets import make_banana, make_gaussian_laplacian
from fewkern.density import bandwidth, forward, paper
from fewkern.fisher import problem
from fewkern.kernels import Gaussian

N, CANDIDATES = 10_000, 200
X = make_gaussian_laplacian(N, random_state=0)
FISHER = SparseKernelFisher(kernel=Gaussian(length_scale=0.5), alpha=1e-3)

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
def test_a_density_needs_memory_of_order_n_times_candidates(density, monkeypatch):
    for place in (forward, paper):
        monkeypatch.setattr(place, "MAX_CANDIDATES", CANDIDATES)
    monkeypatch.setattr(paper, "_MAX_ORTHOGONAL_ROWS", CANDIDATES)
    monkeypatch.setattr(bandwidth, "_SEARCH_ROWS", 500)
    peak = _peak(lambda: density.fit(X))
    assert peak < 4 * 8 * N * CANDIDATES
    assert peak < 0.07 * 8 * N * N


def test_a_density_is_evaluated_in_blocks():
    model = ParzenDensity(bandwidth=0.2).fit(X)
    queries = X[:600]
    assert _peak(lambda: model.score_samples(queries)) < 0.8 * 8 * N * len(queries)
    blocks = model.score_samples(queries)
    np.testing.assert_allclose(blocks[::60], [model.score_samples(x[None])[0] for x in queries[::60]], rtol=1e-12)


@pytest.mark.parametrize("q", [0.5, 1.0])
def test_a_kernel_fisher_machine_needs_memory_of_order_n_times_candidates(q, monkeypatch):
    monkeypatch.setattr(problem, "_MAX_CANDIDATES", 60)
    X, y = make_banana(2 * N)
    model = clone(FISHER).set_params(q=q)
    # an n by n matrix would be 300 times that
    assert _peak(lambda: model.fit(X, y)) < 6 * 8 * 2 * N * 60
    assert model.n_vectors_ <= 60
    assert model.score(X, y) > 0.85


def test_many_samples_have_a_candidate_basis_unasked():
    X, y = make_banana(3500)
    assert clone(FISHER).fit(X, y).n_vectors_ <= 500
    few = clone(FISHER).fit(np.round(X, 1), y)
    assert len(np.unique(few.vectors_, axis=0)) == few.n_vectors_
