"""Both families: their settings and refits, and forward selection against plain Gram-Schmidt and least squares."""

import numpy as np
import pytest

from fewkern.core.statistics import Statistics
from fewkern.fisher.forward import ForwardFamily, forward_columns
from fewkern.fisher.lq import PENALTIES, LqFamily
from fewkern.kernels import Gaussian
from tests.fisher.helpers import fit
from tests.oracles import kfd


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
    np.testing.assert_allclose(PENALTIES, 10.0 ** -np.arange(0.5, 5.0, 0.5))
    for i in (2, 6):
        # from the ridge solution, which scales exactly: q < 1 has many minima
        one = fit(K, Y, plain[i], weights, start, q=q, tol=1e-13)
        other = fit(3.0 * K, 2.0 * Y, scaled[i], weights, start, q=q, tol=1e-13)
        np.testing.assert_array_equal(other.support, one.support)
        np.testing.assert_allclose(other.coef, one.coef * 2 / 3, rtol=1e-4, atol=1e-6)


def test_forward_models_have_the_sizes_asked_for_or_all_columns(columns):
    K, Y, weights = columns
    family, few = ForwardFamily(), K[:, :4]
    path, models = forward_columns(K, Y, 5, weights=weights), list(family.path(K, Y, weights, (1, 2, 5)))
    assert [model.size for model in [*models, family.fit(K, Y, weights, 3)]] == [1, 2, 5, 3]
    for model in models:
        np.testing.assert_allclose(model.values(K), path.discriminant(model.size).values(K))
    assert [model.size for model in family.path(few, Y, weights, tuple(range(1, 21)))] == [1, 2, 3, 4]
    # a path that ends before the only size asked for gives its largest model
    assert [model.size for model in [*family.path(few, Y, weights, (20,)), family.fit(few, Y, weights, 20)]] == [4, 4]


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


def problem(n=70, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    Y = np.column_stack([np.sin((j + 1) * X[:, 0]) + X[:, 1] ** 2 for j in range(targets)])
    return Gaussian(length_scale=1.0)(X, X), Y + 0.1 * rng.standard_normal(Y.shape)


@pytest.mark.parametrize("targets", [1, 3])
def test_order_and_ratios_are_those_of_gram_schmidt(targets):
    K, Y = problem(targets=targets)
    path = forward_columns(K, Y, limit=15)
    order, ratios = kfd.gram_schmidt_selection(K, Y, 15)
    np.testing.assert_array_equal(path.order, order)
    np.testing.assert_allclose(path.ratios, ratios, rtol=1e-6, atol=1e-12)
    assert path.stop == "limit"


def test_coefficients_are_least_squares_at_every_size():
    K, Y = problem(targets=2)
    path = forward_columns(K, Y, limit=8)
    total = np.sum(Y**2)
    for size in (0, 1, 5, 8):
        A = kfd.augmented(K[:, path.order[:size]])
        exact = np.linalg.lstsq(A, Y, rcond=None)[0]
        machine = path.discriminant(size)
        np.testing.assert_allclose(np.vstack([machine.offset, machine.coef]), exact, rtol=1e-5, atol=1e-7)
        rss = np.sum((Y - A @ exact) ** 2)
        assert sum(path.ratios[: size + 1]) == pytest.approx(1 - rss / total, rel=1e-9)


def test_equal_columns_are_never_both_chosen_and_the_rank_ends_it():
    K, Y = problem(n=30)
    few = K[:, :4]
    path = forward_columns(np.hstack([few, few, few[:, :1] + few[:, 1:2]]), Y, limit=9)
    assert path.stop == "rank"
    assert len({int(j) % 4 for j in path.order if j < 8}) == sum(int(j) < 8 for j in path.order)
    assert len(path.order) == 4


def test_it_ends_when_nothing_of_the_targets_is_left():
    K, Y = problem()
    path = forward_columns(K, K[:, :2] @ np.ones((2, 1)), limit=60)
    assert path.stop == "fitness"
    left = forward_columns(K, Y, limit=9).residuals
    np.testing.assert_allclose(left, 1 - np.cumsum(forward_columns(K, Y, limit=9).ratios), atol=1e-12)
