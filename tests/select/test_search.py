"""What a search compares, what it chooses, and when it goes on."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fewkern.core.path import Stop
from fewkern.core.radial import feature_units
from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian, Laplacian, Linear
from fewkern.select import paths as paths_module
from fewkern.select import search as module
from fewkern.select.leave_one_out import LooPath, LooScheme, loo_paths
from fewkern.select.paths import (
    WIDTH_FACTORS,
    KernelGrid,
    KernelPath,
    SearchSpace,
    as_table,
    choose_model,
    extend,
    search_length_scales,
    units_to_compare,
)
from fewkern.select.search import automatic_model, automatic_space, choose_grid, in_kernel_units, n_paths, search
from fewkern.select.selection import SelectionRule, choose_basis

WIDTHS = (0.05, 0.5, 5.0)
RIDGES = (0.0, 1e-2)
GRID = KernelGrid(tuple(Gaussian(width) for width in WIDTHS), WIDTHS)


@pytest.fixture
def samples(rng):
    x = np.sort(rng.uniform(-3, 3, 80))
    return Samples.of(x[:, None], targets=(np.sin(2 * x) + 0.1 * rng.standard_normal(80))[:, None])


@pytest.fixture
def many(monkeypatch):
    """Eighty samples are many."""
    for place in (module, paths_module):
        monkeypatch.setattr(place, "MAX_LOO_ROWS", 60)
    monkeypatch.setattr(module, "MAX_SEARCH_ROWS", 50)


def run(samples, tolerance, limit=20, ceiling=0):
    return search(samples, GRID, SearchSpace(SelectionRule(), RIDGES, limit, ceiling, tolerance))


def test_takes_the_least_error_of_all_paths(samples):
    found = run(samples, 0.0)
    every = {}
    for k, width in enumerate(WIDTHS):
        G = choose_basis(samples, Gaussian(length_scale=width), SelectionRule(), 20).G
        for r, ridge in enumerate(RIDGES):
            path = loo_paths(G, samples.targets, (ridge,))[0]
            np.testing.assert_allclose(found.path.error[k, r, : len(path.error)], path.error, rtol=1e-10)
            every |= {(k, r, L): path.error[L] for L in range(1, len(path.error))}
    best = min(every, key=every.get)
    assert found.path.chosen == best
    assert (found.kernel.length_scale, found.ridge, found.n_vectors) == (WIDTHS[best[0]], RIDGES[best[1]], best[2])
    assert found.path.setting == {"length_scale": 0.5, "alpha": found.ridge, "n_vectors": found.n_vectors}


def test_progress_counts_the_paths(samples, many):
    seen, longer = [], SearchSpace(SelectionRule(), (1e-6,), 2, 16, 0.0)
    few = samples.take(np.arange(60))
    assert n_paths(longer, 3, few.n) == 3 * 4  # 2, 4, 8, 16 vectors
    search(few, GRID, longer, seen.append)
    assert seen[:3] == [1, 2, 3]
    assert seen == sorted(set(seen))
    assert 3 < seen[-1] <= 12
    # of many samples at most four length scales are near the best, and the vectors are chosen once more among all
    seen.clear()
    automatic_model(samples, Gaussian(), SearchSpace(SelectionRule(), (1e-6,), 4, 0, 0.0), seen.append)
    assert seen == [1, 2, 3, 4, 5]


def plan(n=80, **parameters):
    settings = {"n_vectors": None, "max_vectors": None, "ridge": "auto", "prefer": "balanced"} | parameters
    return automatic_space(SelectionRule(), n, **settings)


def test_automatic_lengths():
    lengths = {1: (1, 1), 3: (1, 1), 80: (40, 40), 99: (49, 49), 101: (50, 50), 199: (50, 99), 400: (50, 100)}
    lengths |= {407: (50, 100), 408: (51, 100), 799: (99, 100), 900: (100, 100), 5000: (100, 500), 20_000: (100, 1000)}
    assert {n: (plan(n).limit, plan(n).ceiling) for n in lengths} == lengths
    assert [plan(1500, prefer=p).ceiling for p in ("accurate", "balanced", "sparse")] == [750, 150, 150]
    assert [plan(prefer=p).tolerance for p in ("accurate", "balanced", "sparse")] == [0.0, 0.5, 1.0]
    assert (plan(5000, max_vectors=7).limit, plan(5000, max_vectors=7).ceiling) == (7, 0)
    assert plan(5000, n_vectors=7).tolerance is None
    assert plan(5, max_vectors=7).limit == plan(5, n_vectors=7).limit == 5
    assert plan(ridge=0.3).ridges == in_kernel_units(plan(ridge=0.3), Linear(), None).ridges == (0.3,)


def test_units_of_the_data_do_not_matter(samples):
    """With the linear kernel a unit of the samples is a unit of the ridge."""
    small, large = (
        automatic_model(Samples.of(unit * samples.X, targets=samples.targets), Linear(), plan()) for unit in (1.0, 1e3)
    )
    assert small.path.chosen == large.path.chosen
    np.testing.assert_allclose(large.ridge, 1e6 * small.ridge)
    zero = Samples.of(np.zeros((4, 1)), targets=np.zeros((4, 1)))
    assert in_kernel_units(plan(), Linear(), zero).ridges == plan().ridges


# Paths with errors that are given


def given(*errors, std_error=0.1, stop=Stop.LIMIT):
    """Paths of one kernel, one per ridge, with these errors from no vector on."""
    selection = SimpleNamespace(n_vectors=len(errors[0]) - 1, stop=stop)
    return KernelPath(selection, [LooPath(np.array(e, dtype=float), np.full(len(e), std_error)) for e in errors])


def chosen(paths, tolerance):
    space = SearchSpace(SelectionRule(), (0.0,) * len(paths[0].paths), 1, 0, tolerance)
    return choose_model(paths, *as_table(paths), space)


def test_the_smallest_model_with_a_vector_within_the_tolerance():
    paths = [given([0.0, 5.0, 3.0, 2.0, 1.95]), given([0.0, 4.0, 2.04, 2.2])]
    # no vector at all is no model, whatever its error
    assert chosen(paths, 0.0) == (0, 0, 4)
    assert chosen(paths, 0.5) == (0, 0, 3)
    assert chosen(paths, 0.91) == (1, 0, 2)
    # the standard error is that of the best model
    wide = KernelPath(None, [LooPath(np.array([0.0, 3.0, 2.0]), np.array([9.0, 9.0, 0.1]))])
    assert chosen([wide], 5.0) == (0, 0, 2)
    # without a tolerance the path with the best end is taken whole
    paths = [given([9.0, 1.0, 4.0], [9.0, 5.0, 3.0]), given([9.0, 6.0, 3.5], [9.0, 6.0, 2.5])]
    assert chosen(paths, None) == (1, 1, 2)


@dataclass(frozen=True)
class Extendable(KernelPath):
    """A path that is told what comes next, and notes what it was asked for."""

    following: Any
    asked: list
    name: int = -1

    def extended(self, samples, space, limit, within, scheme):
        self.asked.append((self.name, limit))
        return Extendable(**vars(self.following(limit)), following=self.following, asked=self.asked)


def extended(paths, ceiling, following, limit=10, n=100):
    """What every extension of these paths was asked for."""
    asked = []
    paths = [Extendable(**vars(path), following=following, asked=asked, name=k) for k, path in enumerate(paths)]
    space = SearchSpace(SelectionRule(), (0.0,), limit, ceiling, 0.5)
    extend(paths, SimpleNamespace(n=n), space, None, lambda done: None)
    return asked


def falling(length, start=10.0, slope=0.5):
    return [start - slope * k for k in range(length + 1)]


def test_paths_that_compete_are_continued_to_twice_the_length():
    best = given(falling(10))  # ends at 5.0, with a standard error of 0.1
    near, far = given(falling(10, 10.09)), given(falling(10, 10.2))
    ended = given(falling(10), stop=Stop.RANK)
    asked = extended([best, near, far, ended], 15, lambda limit: given(falling(limit)))
    assert asked == [(0, 15), (1, 15)]
    asked = extended([best], 100, lambda limit: given(falling(limit, slope=0.1)))
    # worse than before: once is enough
    assert [limit for _, limit in asked] == [20]
    asked = extended([best], 75, lambda limit: given(falling(limit)))
    assert [limit for _, limit in asked] == [20, 40, 75]
    # half a standard error must be gained
    for end, more in ((4.96, 1), (4.94, 2)):
        asked = extended([best], 40, lambda limit, end=end: given([*falling(limit - 1, 99.0, 0.0), end]))
        assert len(asked) == more


@pytest.mark.parametrize(
    ("limit", "low", "n", "goes_on"),
    [
        # a minimum in the last tenth
        *((10, {8: 1.0}, 100, False), (10, {9: 1.0}, 100, True), (10, {10: 1.0}, 100, True)),
        # of many samples some are left out: an end within half of the standard error, 0.05
        *((10, {5: 1.0, 10: end}, n, yes) for end, n, yes in ((1.04, 10_000, True), (1.06, 10_000, False))),
        (10, {5: 1.0, 10: 1.04}, 5000, False),
        # few vectors that explain next to nothing
        *((50, {5: 7.1}, 100, True), (50, {5: 6.9}, 100, False), (100, {5: 7.1}, 100, False)),
    ],
)
def test_when_a_path_is_continued(limit, low, n, goes_on):
    errors = [low.get(k, 10.0) for k in range(limit + 1)]
    worse = [11.0] * len(errors)  # by another ridge
    asked = extended(
        [given(errors, worse)], 2 * limit, lambda limit: given(falling(limit, 11.0, 0.0)), limit=limit, n=n
    )
    assert bool(asked) is goes_on


def test_many_samples_are_searched_on_some(samples, many, monkeypatch):
    found = automatic_model(samples, Gaussian(), plan())
    assert found.full_selection is found.searched
    assert found.searched.gram.n == 50
    # the vectors are chosen among all, everything else on some
    assert found.selection.gram.n == 80
    assert found.kernel == found.searched.gram.kernel
    assert found.path.setting["n_vectors"] == found.n_vectors
    assert found.path.setting["alpha"] == found.ridge
    assert found.stop is (Stop.SIZE if found.n_vectors < found.searched.n_vectors else found.searched.stop)
    assert len(found.path.axes["length_scale"]) == 4
    assert found.Z.shape == (80, found.n_vectors)
    # a length scale that is given is not searched, the rest is
    given = automatic_model(samples, Gaussian(1.0), plan())
    assert given.searched.gram.n == 50
    assert given.path.axes["length_scale"] == (1.0,)
    monkeypatch.setattr(module, "MAX_SEARCH_ROWS", 1000)
    # a fifth is spared
    assert automatic_model(samples, Gaussian(1.0), plan()).searched.gram.n == 64
    assert automatic_model(samples.take(np.arange(60)), Gaussian(1.0), plan()).searched is None


def test_length_scales_near_the_best_of_a_few_samples_are_the_grid(samples, many):
    grid, how = KernelGrid.around(Gaussian(), samples.X), plan()
    least = [KernelPath.start(samples, kernel, how, LooScheme()).least for kernel in grid.kernels]
    best = least.index(min(least))
    assert module._near_best(samples, grid, how) == grid.some(range(max(0, best - 2), min(best + 2, 9)))
    only = KernelGrid((Gaussian(1.0),), (1.0,))
    assert module._near_best(samples, only, how) is only


@pytest.mark.parametrize(("tolerance", "attribute"), [(0.5, "least"), (None, "last")])
def test_of_many_length_scales_every_other_one_and_the_neighbors_of_the_best_are_followed(
    tolerance, attribute, samples
):
    """The best by the least error, or by that of the whole path where the number of vectors is given."""
    grid, seen = KernelGrid.around(Gaussian(), samples.X), []
    space = SearchSpace(SelectionRule(), (1e-3,), 12, 0, tolerance)
    found = search_length_scales(samples, grid, space, LooScheme(), seen.append)
    best = min(found, key=lambda k: getattr(found[k], attribute))
    assert {1, 3, 5, 7} | {k for k in (best - 1, best, best + 1) if 0 <= k < 9} <= set(found)
    assert len(found) < 9
    assert seen == list(range(1, len(found) + 1))
    few = grid.some([3, 4, 5, 6])
    assert sorted(search_length_scales(samples, few, space, LooScheme(), seen.append)) == [0, 1, 2, 3]


# Which kernels are compared, and in which unit


@pytest.fixture
def X(rng):
    """Two features whose standard deviations and ranges are not proportional."""
    return np.column_stack([rng.uniform(-2, 2, 120), 300.0 * (rng.random(120) < 0.03)])


@pytest.mark.parametrize("kernel", [Gaussian(unit="spread"), Laplacian("scale", "range"), Gaussian(unit="common")])
def test_widths_around_a_rule(kernel, X):
    grid, resolved = KernelGrid.around(kernel, X), kernel.resolve(X)
    units = np.ones(2) if kernel.unit == "common" else feature_units(X, kernel.unit)
    for factor, width, one in zip(WIDTH_FACTORS, grid.widths, grid.kernels, strict=True):
        np.testing.assert_allclose(one.length_scale, factor * resolved.length_scale)
        np.testing.assert_allclose(one.length_scale, width * (units if kernel.unit != "common" else 1.0))


@pytest.mark.parametrize(
    ("kernel", "width"),
    [(Gaussian(0.7), 0.7), (Gaussian([1.0, 2.0]), 1.0), (Linear(), 0.0), (Laplacian(3), 3.0)],
)
def test_what_is_given_is_kept(kernel, width, X):
    grid = KernelGrid.around(kernel, X)
    assert (len(grid), grid.widths) == (1, (width,))
    assert grid.kernels == (kernel.resolve(X),)


def test_units_are_compared_where_they_differ(X, rng):
    assert [kernel.unit for kernel in units_to_compare(Gaussian(), X)] == ["spread", "range"]
    for kernel in (Gaussian(unit="range"), Gaussian(unit="common"), Gaussian(2.0), Linear()):
        assert units_to_compare(kernel, X) == (kernel,)
    normal = np.column_stack([rng.standard_normal((120, 2)) * [1.0, 1e5], np.full(120, 7.0)])
    for same in (normal, X[:, :1], np.ones((5, 2))):
        assert units_to_compare(Gaussian(), same) == (Gaussian(),)


@pytest.mark.parametrize("unit", ["spread", "range"])
def test_leave_one_out_decides_on_the_unit(unit, rng):
    """A rare feature that says nothing should count little, one that says everything should count."""
    rare = rng.random(300) < 0.1
    x = rng.uniform(-1, 1, 300)
    X = np.column_stack([x, np.where(rare, rng.random(300), 0.0)])
    y = np.sin(6 * x) if unit == "range" else np.where(rare, np.sin(8 * X[:, 1]), 0.0)
    samples = Samples.of(X, targets=y[:, None])
    plan = SearchSpace(SelectionRule(), (1e-6, 1e-2), 50, 0, 0.5)
    assert choose_grid(samples, Gaussian(), plan).kernels[0].unit == unit
