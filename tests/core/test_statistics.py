from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewkern.core.samples import Samples
from fewkern.core.statistics import Statistics
from fewkern.select.leave_one_out import solve


def table(seed, n=30, L=4, q=2):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, L)), rng.standard_normal((n, q)), rng.random(n) + 0.1


def close(one, other):
    for name in ("gram", "cross", "square", "count"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12)


@given(st.integers(0, 1000), st.lists(st.integers(0, 30), max_size=4))
def test_sums_of_parts_are_those_of_the_whole(seed, cuts):
    Z, Y, w = table(seed)
    edges = [0, *sorted(cuts), 30]
    parts = [Statistics.of(Z[a:b], Y[a:b], w[a:b]) for a, b in pairwise(edges)]
    close(sum(parts[1:], start=parts[0]), Statistics.of(Z, Y, w))


def test_it_is_what_the_names_say(rng):
    Z, Y, w = table(0)
    found = Statistics.of(Z, Y, w)
    mean = np.average(Z, axis=0, weights=w)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.scatter, np.cov(Z.T, aweights=w, ddof=0) * w.sum())
    np.testing.assert_allclose(found.centered_cross, (Z - mean).T @ (w[:, None] * Y), atol=1e-12)
    assert found.weight == pytest.approx(w.sum())
    np.testing.assert_allclose(found.square, w @ Y**2)
    small = np.full((3, 1), 0.1, np.float32)
    assert Statistics.of(small, small, small[:, 0]).gram[1, 1] == pytest.approx(
        np.sum(small.astype(float) ** 3), 1e-12
    )  # in double precision


@pytest.mark.parametrize("ridge", [1e-6, 0.1, 10.0])
def test_the_solution_and_the_leverages_are_those_of_least_squares(ridge):
    Z, Y, w = table(1)
    expected, found = solve(Z, Y, ridge, w), Statistics.of(Z, Y, w).solve(ridge)
    np.testing.assert_allclose(found.W, expected.W, atol=1e-10)
    np.testing.assert_allclose(found.offset, expected.offset, atol=1e-10)
    fit, left = Z @ found.W + found.offset, 1 - found.leverage(Z, w)
    np.testing.assert_allclose(Y - (Y - fit) / left[:, None], expected.held_out, atol=1e-10)


def test_a_sum_over_blocks_of_samples(rng):
    X = rng.standard_normal((50, 3))
    samples = Samples.of(X, rng.random(50), targets=X[:, :1])

    def of(part):
        return Statistics.of(part.X, part.targets, part.weights)

    close(samples.total(of, 1 << 17), of(samples))  # four rows at a time
