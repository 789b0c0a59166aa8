import numpy as np
import pytest

from fewkern.vectors.calibration import fit_temperature, softmax


def log_likelihood(a, values, codes, weights):
    """With Platt's targets, written out sample by sample."""
    log_p, total = np.log(softmax(a * values)), 0.0
    classes = values.shape[1]
    for i, own in enumerate(codes):
        count = weights[codes == own].sum()
        for c in range(classes):
            target = (count + 1) / (count + classes) if c == own else 1 / (count + classes)
            total += weights[i] * target * log_p[i, c]
    return total


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


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_separated_classes_are_as_certain_as_their_number_allows(count):
    codes = np.repeat([0, 1], count)
    values = np.column_stack([1.0 - codes, codes])
    a = fit_temperature(values, codes)
    assert softmax(a * values)[0, 0] == pytest.approx((count + 1) / (count + 2), rel=1e-6)


def test_equal_values_are_no_trouble():
    assert np.isfinite(fit_temperature(np.zeros((4, 2)), np.array([0, 1, 0, 1])))


def test_other_array_libraries(data, foreign):
    to, _ = foreign
    values, codes, weights = data
    here = fit_temperature(values, codes, weights)
    assert fit_temperature(to(values), to(codes), to(weights)) == pytest.approx(here, rel=1e-6)
