import numpy as np
import pytest

from fewkern.core.gram import Gram
from fewkern.kernels import Gaussian, Polynomial
from fewkern.vectors.leave_one_out import loo_paths, solve
from fewkern.vectors.selection import Selecting, select_vectors
from tests.oracles import fvs

RIDGES = [0.0, 1e-3, 1.0]


def features(X, kernel=Gaussian(width=1.5), limit=8):
    return select_vectors(Gram(kernel, X), Selecting(), limit).G


def loo_path(G, Y, ridge, weights=None):
    return loo_paths(G, Y, (ridge,), weights)[0]


@pytest.fixture
def G(rng):
    return features(rng.standard_normal((30, 2)))


@pytest.fixture(params=["none", "real", "with zeros"])
def weights(request, rng):
    if request.param == "none":
        return None
    w = rng.random(30) + 0.1
    if request.param == "with zeros":
        w[[3, 8, 20]] = 0.0
    return w


@pytest.mark.parametrize("outputs", [1, 3, 5])
@pytest.mark.parametrize("ridge", RIDGES)
def test_path_equals_refits(G, rng, ridge, outputs, weights):
    Y = rng.standard_normal((30, outputs))
    path = loo_path(G, Y, ridge, weights)
    w = np.ones(30) if weights is None else weights
    assert path.error.shape == path.spread.shape == (9,)
    for L in range(9):
        error = np.sum((Y - fvs.leave_one_out(G[:, :L], Y, ridge, w)) ** 2, axis=1)
        mean = np.average(error, weights=w)
        assert path.error[L] == pytest.approx(mean, rel=1e-8)
        variance = np.average((error - mean) ** 2, weights=w)
        assert path.spread[L] == pytest.approx(np.sqrt(variance * np.sum(w**2) / np.sum(w) ** 2), rel=1e-6)


@pytest.mark.parametrize("ridge", RIDGES)
def test_solution_and_its_held_out_values(G, rng, ridge, weights):
    Y = rng.standard_normal((30, 2))
    found = solve(G, Y, ridge, weights)
    w = np.ones(30) if weights is None else weights
    beta = fvs.refit(G, Y, ridge, w)
    np.testing.assert_allclose(found.W, beta[1:], atol=1e-8)
    np.testing.assert_allclose(found.offset, beta[0], atol=1e-8)
    np.testing.assert_allclose(found.held_out, fvs.leave_one_out(G, Y, ridge, w), atol=1e-8)


def test_ridges_share_a_factorization_and_nothing_else(G, rng, weights):
    Y = rng.standard_normal((30, 2))
    for path, ridge in zip(loo_paths(G, Y, tuple(RIDGES), weights), RIDGES):
        alone = loo_path(G, Y, ridge, weights)
        np.testing.assert_array_equal(path.error, alone.error)
        np.testing.assert_array_equal(path.spread, alone.spread)


def test_blocks_of_rows_give_the_same(G, rng, monkeypatch):
    Y = rng.standard_normal((30, 2))
    whole = loo_path(G, Y, 1e-3)
    monkeypatch.setattr("fewkern.backend.blocks.row_blocks.__defaults__", (60, None))
    np.testing.assert_allclose(loo_path(G, Y, 1e-3).error, whole.error, rtol=1e-12)


def test_constant_in_the_span_of_the_vectors(rng):
    """(x'y + 1)^2 spans the constants, so the last vector and the free constant say the same."""
    G = features(rng.standard_normal((30, 2)), Polynomial(degree=2, gamma=1.0, coef0=1.0))
    assert G.shape[1] == 6
    Y = rng.standard_normal((30, 1))
    expected = np.mean((Y - fvs.leave_one_out(G, Y, 0.0)) ** 2)
    assert loo_path(G, Y, 0.0).error[6] == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(solve(G, Y, 0.0).held_out, fvs.leave_one_out(G, Y, 0.0), atol=1e-6)


def test_as_many_unknowns_as_samples_have_no_error(rng):
    X = rng.standard_normal((8, 2))
    path = loo_path(features(X, Gaussian(width=0.5)), rng.standard_normal((8, 1)), 0.0)
    assert path.error.shape == (9,)
    assert np.all(np.isfinite(path.error[:7]))
    assert np.all(np.isinf(path.error[7:]))


def test_a_ridge_gives_an_error_to_any_number_of_vectors(rng):
    G, Y = features(rng.standard_normal((8, 2)), Gaussian(width=0.5)), rng.standard_normal((8, 1))
    assert G.shape[1] == 8
    path = loo_path(G, Y, 0.1)
    held_out = fvs.leave_one_out(G, Y, 0.1)
    assert path.error[8] == pytest.approx(np.mean((Y - held_out) ** 2))
    np.testing.assert_allclose(solve(G, Y, 0.1).held_out, held_out, atol=1e-9)


def test_samples_of_weight_zero_do_not_count_as_samples(rng):
    X, Y = rng.standard_normal((40, 2)), rng.standard_normal((40, 1))
    weights = np.where(np.arange(40) < 20, 1.0, 0.0)
    gram = Gram(Gaussian(width=1.0), X)
    G = select_vectors(gram, Selecting(), 20, weights).G
    with_zeros, without = loo_path(G, Y, 0.0, weights), loo_path(G[:20], Y[:20], 0.0)
    np.testing.assert_allclose(with_zeros.error, without.error, rtol=1e-4)
    assert np.all(np.isinf(with_zeros.error[19:]))


def test_a_sample_that_decides_its_own_value_is_not_predicted_well(rng):
    """With a narrow kernel a chosen sample has leverage one: left out, nothing but the constant is known of it."""
    X, Y = rng.standard_normal((60, 10)), rng.standard_normal((60, 1))
    G = features(X, Gaussian(width=0.05), limit=30)
    path = loo_path(G, Y, 0.0)
    assert path.error[30] > 0.9 * path.error[0]
    held_out = solve(G, Y, 0.0).held_out
    chosen = np.any(G > 0.5, axis=1)
    others = (Y.sum() - Y) / 59
    np.testing.assert_allclose(held_out[chosen], others[chosen], atol=0.2)


def test_more_unknowns_than_samples_gives_the_shortest_solution(rng):
    G, Y = rng.standard_normal((5, 8)), rng.standard_normal((5, 1))
    found = solve(G, Y, 0.0)
    np.testing.assert_allclose(G @ found.W + found.offset, Y, atol=1e-10)


def test_other_array_libraries(G, rng, foreign):
    to, back = foreign
    Y, w = rng.standard_normal((30, 2)), rng.random(30)
    for ridge in (0.0, 0.1):
        there = loo_path(to(G), to(Y), ridge, to(w))
        np.testing.assert_allclose(back(there.error), loo_path(G, Y, ridge, w).error, rtol=1e-8)
        np.testing.assert_allclose(back(solve(to(G), to(Y), ridge, to(w)).W), solve(G, Y, ridge, w).W, rtol=1e-6)
