"""Which kernels are compared, and in which unit."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fewkern import FeatureVectorDiscriminant
from fewkern.core.radial import feature_units
from fewkern.core.samples import Samples
from fewkern.kernels import Gaussian, Laplacian, Linear
from fewkern.select.paths import WIDTH_FACTORS, KernelGrid, SearchSpace, units_to_compare
from fewkern.select.search import choose_grid
from fewkern.select.selection import SelectionRule


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


def test_pixels_are_measured_in_their_range():
    X, y = load_digits(n_class=5, return_X_y=True)
    model = FeatureVectorDiscriminant().fit(X[:300], y[:300])
    assert model.kernel_.unit == "range"
    assert model.score(X[300:], y[300:]) > 0.95
