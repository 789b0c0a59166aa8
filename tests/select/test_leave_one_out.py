import numpy as np
import pytest

from fewkern.core.kernel import Gram
from fewkern.core.samples import Samples, class_targets
from fewkern.kernels import Gaussian
from fewkern.select import leave_one_out
from fewkern.select.leave_one_out import HeldOut, LooScheme, loo_paths, solve, solve_samples
from fewkern.select.selection import SelectionRule, select_vectors
from tests.oracles import fvs

RIDGES = [0.0, 1e-3, 1.0]


def features(X, kernel=Gaussian(length_scale=1.5), limit=8):
    return select_vectors(Gram(kernel, X), SelectionRule(), limit).G


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
    assert path.error.shape == path.std_error.shape == (9,)
    for L in range(9):
        error = np.sum((Y - fvs.leave_one_out(G[:, :L], Y, ridge, w)) ** 2, axis=1)
        mean = np.average(error, weights=w)
        assert path.error[L] == pytest.approx(mean, rel=1e-8)
        variance = np.average((error - mean) ** 2, weights=w)
        assert path.std_error[L] == pytest.approx(np.sqrt(variance * np.sum(w**2) / np.sum(w) ** 2), rel=1e-6)


@pytest.mark.parametrize("ridge", RIDGES)
def test_solution_and_its_held_out_values(G, rng, ridge, weights):
    Y = rng.standard_normal((30, 2))
    found = solve(G, Y, ridge, weights)
    w = np.ones(30) if weights is None else weights
    beta = fvs.refit(G, Y, ridge, w)
    np.testing.assert_allclose(found.W, beta[1:], atol=1e-8)
    np.testing.assert_allclose(found.offset, beta[0], atol=1e-8)
    np.testing.assert_allclose(found.held_out, fvs.leave_one_out(G, Y, ridge, w), atol=1e-8)


@pytest.mark.parametrize("outputs", [1, 5])
def test_some_of_many_samples_are_left_out(G, rng, outputs, weights, monkeypatch):
    """The model is fitted to all; its error is the mean over those that are left out."""
    monkeypatch.setattr(leave_one_out, "MAX_LOO_ROWS", 12)
    samples = Samples.of(rng.standard_normal((30, 1)), weights, targets=rng.standard_normal((30, outputs)))
    G, Y, w = G[samples.rows], samples.targets, samples.weights
    scheme = LooScheme.of(samples)
    rows = scheme.rows
    assert len(set(rows.tolist())) == 12
    for path, ridge in zip(loo_paths(G, Y, tuple(RIDGES), w, scheme), RIDGES):
        for L in range(9):
            error = np.sum((Y - fvs.leave_one_out(G[:, :L], Y, ridge, w)) ** 2, axis=1)[rows]
            mean = np.average(error, weights=w[rows])
            assert path.error[L] == pytest.approx(mean, rel=1e-8)
            # the standard error of a mean over all
            variance = np.average((error - mean) ** 2, weights=w[rows])
            assert path.std_error[L] == pytest.approx(np.sqrt(variance * np.sum(w**2) / np.sum(w) ** 2), rel=1e-6)


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_solution_for_many_samples_is_the_same(G, rng, ridge, weights, monkeypatch):
    samples = Samples.of(rng.standard_normal((30, 1)), weights, targets=rng.standard_normal((30, 2)))
    G = G[samples.rows]
    expected, every = solve_samples(samples, G, ridge)
    np.testing.assert_array_equal(every.values, expected.held_out)
    monkeypatch.setattr(leave_one_out, "MAX_LOO_ROWS", 12)
    found, some = solve_samples(samples, G, ridge)
    np.testing.assert_allclose(found.W, expected.W, atol=1e-9)
    np.testing.assert_allclose(found.offset, expected.offset, atol=1e-9)
    assert some.samples.n == len(some.values) == 12
    at = [samples.rows.tolist().index(row) for row in some.samples.rows.tolist()]
    np.testing.assert_allclose(some.values, every.values[at], atol=1e-9)


def test_a_sample_that_decides_its_own_value_is_not_predicted_well(rng):
    """With a narrow kernel a chosen sample has leverage one: left out, nothing but the constant is known of it."""
    X, Y = rng.standard_normal((60, 10)), rng.standard_normal((60, 1))
    G = features(X, Gaussian(length_scale=0.05), limit=30)
    path = loo_path(G, Y, 0.0)
    assert path.error[30] > 0.9 * path.error[0]
    held_out = solve(G, Y, 0.0).held_out
    chosen = np.any(G > 0.5, axis=1)
    others = (Y.sum() - Y) / 59
    np.testing.assert_allclose(held_out[chosen], others[chosen], atol=0.2)


@pytest.mark.parametrize("column", [1, 3, 4])
def test_a_column_that_depends_on_others_adds_nothing(rng, column):
    """Wherever it stands: the errors after it are those of the path without it."""
    G, Y = rng.standard_normal((25, 4)), rng.standard_normal((25, 2))
    twice = np.insert(G, column, 2 * G[:, 0] - 1, axis=1)
    path, plain = loo_path(twice, Y, 0.0), loo_path(G, Y, 0.0)
    np.testing.assert_allclose(path.error, np.insert(plain.error, column, plain.error[column]), rtol=1e-9)
    np.testing.assert_allclose(solve(twice, Y, 0.0).held_out, solve(G, Y, 0.0).held_out, atol=1e-9)


def test_one_sample_alone_on_a_direction_is_predicted_by_the_others(rng):
    """A column that is zero but for one sample: without that sample, nothing is known of the direction."""
    G, Y, w = np.zeros((6, 1)), rng.standard_normal((6, 1)), np.array([1.0, 2, 1, 3, 1, 1])
    G[2] = 5.0
    for weights in (None, w):
        v = np.ones(6) if weights is None else weights
        others = np.array([np.average(np.delete(Y, i), weights=np.delete(v, i)) for i in range(6)])
        held_out = solve(G, Y, 0.0, weights).held_out[:, 0]
        assert held_out[2] == pytest.approx(others[2])
        rest = np.arange(6) != 2
        alone = [np.average(Y[rest & (np.arange(6) != i), 0], weights=v[rest & (np.arange(6) != i)]) for i in range(6)]
        np.testing.assert_allclose(held_out[rest], np.array(alone)[rest])
        # in a path the constant of all samples that is left is what predicts it
        first = (Y[:, 0] - np.average(Y[:, 0], weights=v)) / (1 - v / v.sum())
        errors = np.where(rest, held_out - Y[:, 0], first) ** 2
        assert loo_path(G, Y, 0.0, weights).error[1] == pytest.approx(np.average(errors, weights=v))


def test_errors_of_held_out_values_are_weighted():
    w = np.array([1.0, 2.0, 1.0])
    samples = Samples.of(np.zeros((3, 1)), w, codes=np.array([0, 1, 1]), n_classes=2)
    held_out = HeldOut(np.array([[-0.5], [-0.5], [2.0]]), class_targets(samples))
    assert held_out.error_rate() == pytest.approx(2 / 4)
    assert held_out.squared_error() == pytest.approx((0.25 + 2 * 2.25 + 1) / 4)
    samples = Samples.of(np.zeros((3, 1)), w, codes=np.array([0, 1, 2]), n_classes=3)
    values = np.array([[0.9, 0, 0], [0.5, 0.1, 0], [0, 0, 1.0]])
    assert HeldOut(values, class_targets(samples)).error_rate() == pytest.approx(2 / 4)


def test_some_of_many_held_out_samples(rng):
    held_out = HeldOut(np.arange(10.0)[:, None], Samples.of(np.arange(10.0)[:, None], targets=np.zeros((10, 1))))
    some = held_out.some(4)
    np.testing.assert_array_equal(some.values[:, 0], [0, 3, 6, 9])
    np.testing.assert_array_equal(some.samples.X, some.values)
    assert held_out.some(10) is held_out
