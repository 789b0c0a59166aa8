"""Factors of a softmax that make probabilities as high as they are right."""

import numpy as np
import pytest

from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores, softmax
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate, fit_temperature, match_confidence, match_temperature

both = pytest.mark.parametrize("fit", [fit_temperature, match_confidence])


def log_likelihood(a, values, codes, weights):
    """By Laplace's rule of succession, written out sample by sample."""
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


@pytest.mark.parametrize("scale", [1e-2, 1e2])
@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_maximises_the_likelihood(data, scale, weighted):
    values, codes, weights = data
    values, w = scale * values, weights if weighted else np.ones(200)
    a = fit_temperature(values, codes, w)
    best = log_likelihood(a, values, codes, w)
    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert log_likelihood(factor * a, values, codes, w) <= best + 1e-9
    assert a * scale == pytest.approx(2.5, rel=0.3)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_confidence_is_the_share_that_is_right(data, weighted):
    values, codes, weights = data
    w = weights if weighted else np.ones(200)
    a = match_confidence(values, codes, w)
    right = np.average(values.argmax(axis=1) == codes, weights=w)
    stated = np.average(softmax(a * values).max(axis=1), weights=w)
    assert stated == pytest.approx((right * w.sum() + 1) / (w.sum() + 2), abs=1e-6)


@both
@pytest.mark.parametrize(("count", "classes"), [(1, 2), (10, 10), (1000, 2)])
def test_separated_classes_are_as_certain_as_their_number_allows(count, classes, fit):
    """Ten classes of ten samples, all of them right, are as sure as two classes of fifty."""
    n = count * classes
    codes = np.repeat(np.arange(classes), count)
    values = np.where(np.arange(classes) == codes[:, None], 1.0, np.where(np.arange(classes) == 0, 0.0, -1e3))
    values[:, 1] = np.where(codes == 0, 0.0, values[:, 1])
    assert softmax(fit(values, codes, np.ones(n)) * values)[0, 0] == pytest.approx((n + 1) / (n + 2), rel=1e-6)


def test_a_few_values_far_off_do_not_rule_the_confidence(data):
    values, codes, weights = data
    before = match_confidence(values, codes, weights)
    values[:3] = np.where(np.arange(3) == codes[:3, None], -1e9, 0.0)
    assert match_confidence(values, codes, weights) == pytest.approx(before, rel=0.1)
    assert fit_temperature(values, codes, weights) < 1e-3


@both
def test_equal_values_are_no_trouble(fit):
    assert np.isfinite(fit(np.zeros((4, 2)), np.array([0, 1, 0, 1]), np.ones(4)))


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


@pytest.mark.parametrize("factor", [1e-6, 0.7, 300.0])
def test_a_factor_that_made_the_targets_is_found_again(factor, rng):
    values, weights = rng.normal(size=(60, 4)) / factor, rng.uniform(0.1, 3.0, 60)
    for w in (None, weights):
        assert match_temperature(values, softmax(2 * factor * values), w) == pytest.approx(2 * factor, rel=1e-6)
