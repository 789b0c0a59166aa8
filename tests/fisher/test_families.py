"""What the two kinds of machines say of their settings, and where their paths lead."""

import numpy as np
import pytest

from fewkern.core.statistics import Statistics
from fewkern.fisher.forward import ForwardFamily, forward_columns
from fewkern.fisher.lq import PENALTIES, LqFamily
from fewkern.kernels import Gaussian
from tests.fisher.helpers import fit


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) > 0, 1.0, -1.0)[:, None]
    return Gaussian(length_scale=1.0)(X, X), Y, np.ones(60)


@pytest.mark.parametrize("q", [0.5, 1.0, 2.0])
def test_penalties_follow_the_units_of_kernel_and_targets(q, columns):
    """A kernel ``a`` times as large and targets ``b`` times as long give the same machine, times ``b / a``."""
    K, Y, weights = columns
    family = LqFamily(q)
    start = None if q == 1 else "ridge"
    plain, scaled = family.settings(1.0, 1.0), family.settings(3.0, 2.0)
    assert plain == PENALTIES
    for i in (2, 6):
        # from the ridge solution, which scales exactly: q < 1 has many minima
        one = fit(K, Y, plain[i], weights, start, q=q, tol=1e-13)
        other = fit(3.0 * K, 2.0 * Y, scaled[i], weights, start, q=q, tol=1e-13)
        np.testing.assert_array_equal(other.support, one.support)
        np.testing.assert_allclose(other.coef, one.coef * 2 / 3, rtol=1e-4, atol=1e-6)


def test_forward_machines_have_the_sizes_asked_for(columns):
    K, Y, weights = columns
    machines = list(ForwardFamily().path(K, Y, weights, (1, 2, 5)))
    assert [machine.size for machine in machines] == [1, 2, 5]
    path = forward_columns(K, Y, 5, weights=weights)
    for machine in machines:
        np.testing.assert_allclose(machine.values(K), path.discriminant(machine.size).values(K))
    fitted = ForwardFamily().fit(K, Y, weights, 3)
    assert fitted.size == 3
    assert len(fitted.objectives) >= 3
    assert np.all(np.diff(fitted.objectives) <= 0)


def test_a_forward_path_ends_with_its_columns(columns):
    K, Y, weights = columns
    family, few = ForwardFamily(), K[:, :4]
    assert [machine.size for machine in family.path(few, Y, weights, tuple(range(1, 21)))] == [1, 2, 3, 4]
    assert family.fit(few, Y, weights, 20).size == 4
    # a path that ends before the only size asked for gives its largest machine
    assert [machine.size for machine in family.path(few, Y, weights, (20,))] == [4]


@pytest.mark.parametrize("family", [LqFamily(), LqFamily(1.0), ForwardFamily()])
def test_a_refit_to_the_sums_of_the_same_rows_changes_nothing(family, columns):
    """Coefficients, objective (5) or shares left, and how the fit ended."""
    K, Y, weights = columns
    setting = 6 if family.axis == "n_vectors" else 0.01
    fitted = family.fit(K, Y, weights, setting)
    sums = Statistics.of(K[:, fitted.support], Y, weights)
    again = family.refit(fitted, sums)
    np.testing.assert_array_equal(again.support, fitted.support)
    np.testing.assert_allclose(again.coef, fitted.coef, rtol=1e-4)
    np.testing.assert_allclose(again.objectives[-1], fitted.objectives[-1], rtol=1e-6)
    assert again.ending.stop == fitted.ending.stop
    if family.axis == "n_vectors":
        np.testing.assert_allclose(again.objectives, fitted.objectives, atol=1e-8)
