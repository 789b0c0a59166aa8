import numpy as np
import pytest

from fewkern.core.gram import Gram
from fewkern.kernels import Gaussian
from fewkern.vectors.leave_one_out import loo_path
from fewkern.vectors.search import search
from fewkern.vectors.selection import select_vectors

WIDTHS = (0.05, 0.5, 5.0)
RIDGES = (0.0, 1e-2)


@pytest.fixture
def data(rng):
    x = np.sort(rng.uniform(-3, 3, 80))
    return x[:, None], (np.sin(2 * x) + 0.1 * rng.standard_normal(80))[:, None]


def select(gram, limit, start=None):
    return select_vectors(gram, rng=np.random.default_rng(0), limit=limit, start=start)


def run(data, tolerance, limit=20, ceiling=0):
    X, Y = data
    grams = [Gram(Gaussian(width=w), X) for w in WIDTHS]
    settings = {"ridges": RIDGES, "select": select, "limit": limit, "ceiling": ceiling, "widths": WIDTHS}
    return search(grams, Y, tolerance=tolerance, **settings)


def test_takes_the_least_error_of_all_paths(data):
    found = run(data, 0.0)
    X, Y = data
    every = {}
    for k, width in enumerate(WIDTHS):
        G = select(Gram(Gaussian(width=width), X), 20).G
        for r, ridge in enumerate(RIDGES):
            path = loo_path(G, Y, ridge)
            np.testing.assert_allclose(found.trace.error[k, r, : len(path.error)], path.error, rtol=1e-10)
            every |= {(k, r, L): path.error[L] for L in range(1, len(path.error))}
    best = min(every, key=every.get)
    assert found.trace.chosen == best
    assert (found.kernel, found.ridge, found.n_vectors) == (best[0], RIDGES[best[1]], best[2])
    assert found.kernel == 1
    np.testing.assert_array_equal(found.trace.curve, found.trace.error[best[0], best[1]])


def test_tolerance_gives_the_smallest_model_within_the_standard_error(data):
    exact, half, one = (run(data, t) for t in (0.0, 0.5, 1.0))
    assert one.n_vectors <= half.n_vectors <= exact.n_vectors
    least = exact.trace.error[exact.trace.chosen]
    threshold = least + exact.trace.spread[exact.trace.chosen]
    assert one.trace.error[one.trace.chosen] <= threshold
    smaller = one.trace.error[:, :, 1 : one.n_vectors]
    assert np.all(smaller > threshold)


def test_no_tolerance_takes_the_whole_path(data):
    found = run(data, None)
    assert found.n_vectors == len(found.selection.indices)


def test_paths_go_on_while_that_pays(rng):
    x = np.linspace(0, 1, 200)
    Y = np.sin(60 * x)[:, None]
    gram = Gram(Gaussian(width=0.02), x[:, None])
    settings = {"ridges": (1e-6,), "select": select, "tolerance": 0.0}
    short = search([gram], Y, limit=8, ceiling=8, **settings)
    long = search([gram], Y, limit=8, ceiling=100, **settings)
    assert short.n_vectors == 8
    assert long.n_vectors > 16
    assert long.selection.indices[:8].tolist() == short.selection.indices.tolist()


def test_progress_is_reported(data):
    X, Y = data
    seen = []
    grams = [Gram(Gaussian(width=w), X) for w in WIDTHS]
    search(grams, Y, ridges=(0.0,), select=select, limit=5, ceiling=5, tolerance=0.0, step=seen.append)
    assert seen == [1, 2, 3]
