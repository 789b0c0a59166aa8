"""Memory of the kernel Fisher classifiers at many samples."""

import tracemalloc

import numpy as np
import pytest

from fewkern import SparseKernelFisher
from fewkern.datasets import make_banana
from fewkern.fisher import problem
from fewkern.kernels import Gaussian

pytestmark = pytest.mark.scale


@pytest.mark.parametrize("q", [0.5, 1.0])
def test_memory_is_of_the_order_of_samples_times_candidates(q, monkeypatch):
    n, candidates = 20_000, 60
    monkeypatch.setattr(problem, "_MAX_CANDIDATES", candidates)
    X, y = make_banana(n)
    tracemalloc.start()
    try:
        model = SparseKernelFisher(kernel=Gaussian(length_scale=0.5), alpha=1e-3, q=q).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # an n by n matrix would be 300 times that
    assert peak < 6 * 8 * n * candidates
    assert model.n_vectors_ <= candidates
    assert model.score(X, y) > 0.85


def test_many_samples_have_a_candidate_basis_unasked():
    X, y = make_banana(3500)
    model = SparseKernelFisher(kernel=Gaussian(length_scale=0.5), alpha=1e-3).fit(X, y)
    assert model.n_vectors_ <= 500
    few = SparseKernelFisher(kernel=Gaussian(length_scale=0.5), alpha=1e-3).fit(np.round(X, 1), y)
    assert len(np.unique(few.vectors_, axis=0)) == few.n_vectors_
