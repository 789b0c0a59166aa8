import numpy as np
import pytest

from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian, Linear
from fewkern.vectors.grid import KernelGrid
from fewkern.vectors.leave_one_out import loo_paths
from fewkern.vectors.search import Searching, automatic_model, search
from fewkern.vectors.selection import Selecting, choose_basis

WIDTHS = (0.05, 0.5, 5.0)
RIDGES = (0.0, 1e-2)
GRID = KernelGrid.of(*(Gaussian(width) for width in WIDTHS))


@pytest.fixture
def samples(rng):
    x = np.sort(rng.uniform(-3, 3, 80))
    return Samples.of(x[:, None], targets=(np.sin(2 * x) + 0.1 * rng.standard_normal(80))[:, None])


def run(samples, tolerance, limit=20, ceiling=0):
    return search(samples, GRID, Searching(Selecting(), RIDGES, limit, ceiling, tolerance))


def test_takes_the_least_error_of_all_paths(samples):
    found = run(samples, 0.0)
    every = {}
    for k, width in enumerate(WIDTHS):
        G = choose_basis(samples, Gaussian(width=width), Selecting(), 20).G
        for r, ridge in enumerate(RIDGES):
            path = loo_paths(G, samples.targets, (ridge,))[0]
            np.testing.assert_allclose(found.trace.error[k, r, : len(path.error)], path.error, rtol=1e-10)
            every |= {(k, r, L): path.error[L] for L in range(1, len(path.error))}
    best = min(every, key=every.get)
    assert found.trace.chosen == best
    assert (found.kernel.width, found.ridge, found.n_vectors) == (WIDTHS[best[0]], RIDGES[best[1]], best[2])
    assert found.trace.setting == {"width": 0.5, "ridge": found.ridge, "n_vectors": found.n_vectors}


def test_tolerance_gives_the_smallest_model_within_the_standard_error(samples):
    exact, half, one = (run(samples, t) for t in (0.0, 0.5, 1.0))
    assert one.n_vectors <= half.n_vectors <= exact.n_vectors
    least = exact.trace.error[exact.trace.chosen]
    threshold = least + exact.trace.spread[exact.trace.chosen]
    assert one.trace.error[one.trace.chosen] <= threshold
    smaller = one.trace.error[:, :, 1 : one.n_vectors]
    assert np.all(smaller > threshold)


def test_no_tolerance_takes_the_whole_path(samples):
    found = run(samples, None)
    assert found.n_vectors == found.selection.n_vectors
    ends = found.trace.error[:, :, found.n_vectors]
    assert found.trace.error[found.trace.chosen] == ends[np.isfinite(ends)].min()


def test_paths_go_on_while_that_pays():
    x = np.linspace(0, 1, 200)
    samples = Samples.of(x[:, None], targets=np.sin(60 * x)[:, None])

    def run(ceiling):
        return search(samples, KernelGrid.of(Gaussian(0.02)), Searching(Selecting(), (1e-6,), 8, ceiling, 0.0))

    short, long = run(8), run(100)
    assert short.n_vectors == 8
    assert long.n_vectors > 16
    assert long.selection.indices[:8].tolist() == short.selection.indices.tolist()


def test_progress_is_reported(samples):
    seen = []
    search(samples, GRID, Searching(Selecting(), (0.0,), 5, 5, 0.0), seen.append)
    assert seen == [1, 2, 3]


def test_progress_counts_the_paths_that_are_continued(samples):
    seen, longer = [], Searching(Selecting(), (1e-6,), 2, 16, 0.0)
    assert longer.n_paths(3, samples.n) == 3 * 4  # 2, 4, 8, 16 vectors
    search(samples, GRID, longer, seen.append)
    assert seen[:3] == [1, 2, 3]
    assert seen == sorted(set(seen))
    assert 3 < seen[-1] <= 12


def test_progress_of_the_search_on_all_samples(samples, monkeypatch):
    seen, how = [], Searching(Selecting(), (1e-6,), 4, 0, 0.0)
    monkeypatch.setattr("fewkern.vectors.search._SEARCH_ROWS", samples.n - 1)
    automatic_model(samples, Gaussian(), how, seen.append)
    assert seen == list(range(1, how.n_paths(9, samples.n) + 1))


def plan(n=80, **parameters):
    settings = {"n_vectors": "auto", "max_vectors": "auto", "ridge": "auto", "prefer": "balanced"} | parameters
    return Searching.automatic(Selecting(), n, **settings)


def test_automatic_lengths():
    assert (plan(80).limit, plan(80).ceiling) == (40, 8)
    assert (plan(5000).limit, plan(5000).ceiling) == (100, 500)
    assert plan(5000, prefer="accurate").ceiling == 1000
    assert (plan(5000, max_vectors=7).limit, plan(5000, max_vectors=7).ceiling) == (7, 0)
    assert plan(5000, n_vectors=7).tolerance is None


def test_units_of_the_data_do_not_matter(samples):
    """With the linear kernel a unit of the samples is a unit of the ridge."""
    small, large = (
        automatic_model(Samples.of(unit * samples.X, targets=samples.targets), Linear(), plan()) for unit in (1.0, 1e3)
    )
    assert small.trace.chosen == large.trace.chosen
    np.testing.assert_allclose(large.ridge, 1e6 * small.ridge)
