import numpy as np
import pytest

from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores, softmax
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate, fit_temperature, match_confidence, match_temperature

FITS = (fit_temperature, match_confidence)


def log_likelihood(a, values, codes, weights):
    """With a doubt of one in so many samples, written out sample by sample."""
    log_p, total, count = np.log(softmax(a * values)), 0.0, weights.sum()
    for i, own in enumerate(codes):
        others = [c for c in range(values.shape[1]) if c != own]
        rival = max(others, key=lambda c: values[i, c])
        total += weights[i] * ((count + 1) * log_p[i, own] + log_p[i, rival]) / (count + 2)
    return total


@pytest.fixture
def data(rng):
    values = rng.standard_normal((200, 3))
    p = softmax(2.5 * values)
    codes = np.array([rng.choice(3, p=row) for row in p])
    return values, codes, rng.random(200)


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


@pytest.mark.parametrize("weighted", [False, True])
def test_the_confidence_is_the_share_that_is_right(data, weighted):
    values, codes, weights = data
    w = weights if weighted else np.ones(200)
    a = match_confidence(values, codes, weights if weighted else None)
    right = np.average(values.argmax(axis=1) == codes, weights=w)
    stated = np.average(softmax(a * values).max(axis=1), weights=w)
    assert stated == pytest.approx((right * w.sum() + 1) / (w.sum() + 2), abs=1e-6)
    assert match_confidence(1e-3 * values, codes, w) == pytest.approx(1e3 * match_confidence(values, codes, w))


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("count", [1, 10, 1000])
def test_separated_classes_are_as_certain_as_their_number_allows(count, classes, fit):
    """Ten classes of ten samples, all of them right, are as sure as two classes of fifty."""
    n = count * classes
    codes = np.repeat(np.arange(classes), count)
    values = np.where(np.arange(classes) == codes[:, None], 1.0, np.where(np.arange(classes) == 0, 0.0, -1e3))
    values[:, 1] = np.where(codes == 0, 0.0, values[:, 1])
    assert softmax(fit(values, codes) * values)[0, 0] == pytest.approx((n + 1) / (n + 2), rel=1e-6)


def test_a_few_values_far_off_do_not_rule_the_confidence(data):
    values, codes, _ = data
    before = match_confidence(values, codes)
    values[:3] = np.where(np.arange(3) == codes[:3, None], -1e9, 0.0)
    assert match_confidence(values, codes) == pytest.approx(before, rel=0.1)
    assert fit_temperature(values, codes) < 1e-3


@pytest.mark.parametrize("fit", FITS)
def test_equal_values_are_no_trouble(fit):
    assert np.isfinite(fit(np.zeros((4, 2)), np.array([0, 1, 0, 1])))


@pytest.mark.parametrize("long_tails", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_calibration_never_reverses_the_scores(long_tails, sign, rng):
    """Also where held-out values fall with the classes: the probabilities are then nearly equal."""
    codes = np.arange(90) % 3
    values = sign * 5 * np.eye(3)[codes] + rng.standard_normal((90, 3))
    samples = Samples.of(values, codes=codes, n_classes=3)
    link = ClassScores(weights=rng.standard_normal((3, 3)) + 3 * np.eye(3), offset=np.array([0.1, 0.0, -0.1]))
    found = calibrate(link, HeldOut(values, samples), long_tails=long_tails)
    assert found.factor > 0
    np.testing.assert_array_equal(found.codes(values), link.codes(values))
    np.testing.assert_array_equal(found.probabilities(values).argsort(axis=1), link.scores(values).argsort(axis=1))
    assert found.probabilities(values).max() > 0.9 if sign > 0 else found.probabilities(values).max() < 0.6


@pytest.mark.parametrize("factor", [1e-6, 0.03, 0.7, 1.0, 5.0, 300.0])
def test_a_factor_that_made_the_targets_is_found_again(factor, rng):
    values = rng.normal(size=(60, 4)) / factor
    targets = softmax(factor * 2.0 * values)
    assert match_temperature(values, targets) == pytest.approx(2.0 * factor, rel=1e-6)
    # the weights of the samples do not matter where all agree
    assert match_temperature(values, targets, rng.uniform(0.1, 3.0, 60)) == pytest.approx(2.0 * factor, rel=1e-6)
