"""kFDA_OLS: forward selection against plain Gram-Schmidt and least squares."""

import numpy as np
import pytest

from fewkern.fisher.forward import forward_columns
from fewkern.kernels import Gaussian
from tests.oracles import kfd


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
