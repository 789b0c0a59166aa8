import numpy as np
import pytest

from fewkern.algorithms.calibration import fit_temperature, softmax


def log_likelihood(a, values, codes, weights):
    p = softmax(a * values)
    return np.sum(weights * np.log(p[np.arange(len(codes)), codes]))


@pytest.fixture
def data(rng):
    values = rng.standard_normal((200, 3))
    p = softmax(2.5 * values)
    codes = np.array([rng.choice(3, p=row) for row in p])
    return values, codes, rng.random(200)


def test_softmax_is_safe_and_sums_to_one():
    p = softmax(np.array([[1000.0, 999.0], [-1000.0, 0.0]]))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[0], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)])


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_maximises_the_likelihood(data, scale, weighted):
    values, codes, weights = data
    values = scale * values
    w = weights if weighted else np.ones(200)
    a = fit_temperature(values, codes, weights if weighted else None)
    best = log_likelihood(a, values, codes, w)
    for other in (0.5 * a, 0.9 * a, 0.999 * a, 1.001 * a, 1.1 * a, 2 * a):
        assert log_likelihood(other, values, codes, w) <= best + 1e-9
    assert a * scale == pytest.approx(2.5, rel=0.3)


def test_values_that_say_nothing_give_nearly_equal_probabilities(rng):
    values, codes = rng.standard_normal((500, 2)), rng.integers(0, 2, 500)
    a = fit_temperature(np.where(codes[:, None] == [0, 1], -np.abs(values), np.abs(values)), codes)
    assert 0 <= a < 0.01


def test_separated_classes_give_a_large_but_finite_factor():
    values = np.array([[1.0, 0.0], [0.0, 1.0]])
    a = fit_temperature(values, np.array([0, 1]))
    assert np.isfinite(a)
    assert softmax(a * values)[0, 0] > 0.999


def test_equal_values_are_no_trouble():
    assert np.isfinite(fit_temperature(np.zeros((4, 2)), np.array([0, 1, 0, 1])))


def test_other_array_libraries(data, foreign):
    to, _ = foreign
    values, codes, weights = data
    here = fit_temperature(values, codes, weights)
    assert fit_temperature(to(values), to(codes), to(weights)) == pytest.approx(here, rel=1e-6)
