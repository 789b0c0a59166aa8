"""Bounds and periods of features: no mass outside, integral one, and samples that follow the density."""

import numpy as np
import pytest

from fewkern import ForwardDensity, KernelMixture, to_c

rng = np.random.default_rng(0)
LIFETIMES = rng.exponential(size=(400, 1))
UNIFORM = rng.uniform(size=(400, 1))
HOURS = np.column_stack([(23.5 + 2 * rng.normal(size=400)) % 24, rng.exponential(size=400)])


def _integral(density, *axes):
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return density.pdf(grid).sum() * np.prod([axis[1] - axis[0] for axis in axes])


def _middles(low, high, n):
    step = (high - low) / n
    return low + step * (np.arange(n) + 0.5)


@pytest.mark.parametrize(
    ("X", "ends", "axis"),
    [
        (LIFETIMES, (0, None), _middles(0, 30, 20_000)),
        (-LIFETIMES, (None, 0), _middles(-30, 0, 20_000)),
        (UNIFORM, (0, 1), _middles(0, 1, 5000)),
    ],
    ids=["lower", "upper", "both"],
)
def test_bounds_hold_all_of_the_mass(X, ends, axis):
    model = ForwardDensity(bounds={0: ends}).fit(X)
    free = ForwardDensity().fit(X)
    assert _integral(model, axis) == pytest.approx(1, abs=1e-4)
    assert _integral(free, axis) < 0.995
    outside = np.array([[axis[0] - 0.1]]) if ends[0] == 0 else np.array([[axis[-1] + 0.1]])
    assert model.score_samples(outside)[0] == -np.inf
    if np.isfinite(high := ends[1] if ends[1] is not None else np.inf):
        assert model.cdf([[high], [high + 1]]).tolist() == [1, 1]
    drawn = model.sample(3000, random_state=0)
    assert np.all(np.isfinite(model.score_samples(drawn)))
    # samples, distribution function and mean agree
    for point in np.quantile(X, [0.1, 0.5, 0.9]):
        assert np.mean(drawn <= point) == pytest.approx(model.cdf([[point]])[0], abs=0.03)
        below = axis < point
        assert model.cdf([[point]])[0] == pytest.approx(
            model.pdf(axis[below, None]).sum() * (axis[1] - axis[0]), abs=2e-3
        )
    assert model.expansion_.mean()[0] == pytest.approx(drawn.mean(), abs=0.06)


def test_a_sharp_edge_is_met():
    model = ForwardDensity(bounds={0: (0, 1)}).fit(UNIFORM)
    assert model.pdf([[0.0], [0.5], [1.0]]) == pytest.approx(1, abs=0.25)
    zeros = np.concatenate([LIFETIMES, np.zeros((20, 1))]).astype(np.float32)
    at_zero = ForwardDensity(bounds={0: (0, None)}, bandwidth=0.2).fit(zeros)
    assert np.all(np.isfinite(at_zero.score_samples(zeros)))


def test_two_features_with_different_supports():
    model = ForwardDensity(bounds={1: (0, None)}, periodic={0: 24}).fit(HOURS)
    assert _integral(model, _middles(0, 24, 240), _middles(0, 20, 800)) == pytest.approx(1, abs=2e-3)
    assert _integral(model, _middles(-7, 17, 240), _middles(0, 20, 800)) == pytest.approx(1, abs=2e-3)
    drawn = model.sample(2000, random_state=0)
    assert drawn.min() >= 0
    assert drawn[:, 0].max() < 24
    assert model.vectors_.min() >= 0
    assert model.vectors_[:, 0].max() < 24
    at = model.conditional({0: 1.0})
    joint = model.pdf([[1.0, 0.5]])[0]
    assert model.marginal([0]).pdf(np.array([[1.0]]))[0] * at.pdf(np.array([[0.5]]))[0] == pytest.approx(joint)
    assert min(abs(model.expansion_.mean()[0] - 23.5), abs(model.expansion_.mean()[0] + 0.5)) < 0.6
    with pytest.raises(ValueError, match=r"cdf: a feature with a period has no least value"):
        model.cdf(HOURS)
    with pytest.raises(ValueError, match=r"outside the bounds: the density is zero"):
        model.conditional({1: -1.0})
    with pytest.raises(ValueError, match=r"l2_distance: the closed form does not know bounds"):
        model.l2_distance(model)
    with pytest.raises(ValueError, match=r"this ForwardDensity has features with bounds or a period, which"):
        to_c(model)


@pytest.mark.parametrize("shift", [3.0, 11.3, -50.0])
def test_a_shift_round_the_period_shifts_the_density(shift):
    model = ForwardDensity(periodic={0: 24}).fit(HOURS)
    moved = HOURS + [shift, 0]
    other = ForwardDensity(periodic={0: 24}).fit(np.column_stack([moved[:, 0] % 24, moved[:, 1]]))
    points = HOURS[:50]
    np.testing.assert_allclose(other.score_samples(points + [shift, 0]), model.score_samples(points), atol=1e-6)
    np.testing.assert_allclose(model.score_samples(points + [24, 0]), model.score_samples(points), atol=1e-9)


def test_a_wide_kernel_round_a_short_period_is_uniform():
    mixture = KernelMixture(
        np.array([[0.3]]), np.ones(1), np.array([50.0]), np.ones(1), None, np.array([[-np.inf], [np.inf]]), np.ones(1)
    )
    x = np.linspace(-2, 2, 41)[:, None]
    np.testing.assert_allclose(mixture.pdf(x), 1, atol=0.02)
    # to 1.5%, in samples too: it counts as half a period wide
    ripple = np.mean(np.cos(2 * np.pi * (mixture.sample(10**6, random_state=0) - 0.3)))
    assert ripple == pytest.approx(np.exp(-0.5 * np.pi**2), abs=0.003)


def test_images_are_those_of_the_definition():
    """The sum over many reflections, written out."""
    c, s = np.array([0.2, 0.9]), np.array([0.3, 0.1])
    mixture = KernelMixture(
        c[:, None], np.array([0.4, 0.6]), s, np.ones(1), None, np.array([[0.0], [1.0]]), np.array([np.inf])
    )
    x = np.linspace(0, 1, 21)
    images = np.concatenate([2.0 * np.arange(-5, 6)[:, None] + c, 2.0 * np.arange(-5, 6)[:, None] - c])
    normal = np.exp(-0.5 * ((x[:, None, None] - images) / s) ** 2) / (s * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(mixture.pdf(x[:, None]), normal.sum(axis=1) @ mixture.weights, rtol=1e-7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": {0: (0, 10)}}, r"feature 0 has bounds \(0, 10\), but \d+ of 400 samples lie outside"),
        ({"bounds": {0: (5, 1)}}, r"bounds of feature 0 must be two numbers \(low, high\), .* got \(5, 1\)"),
        ({"bounds": {0: 3}}, r"bounds of feature 0 must be two numbers"),
        ({"bounds": {0: (None, None)}}, r"bounds of feature 0 must be two numbers"),
        ({"bounds": {7: (0, 1)}}, r"bounds names the feature 7, but there are features 0 to 1"),
        ({"bounds": {"hour": (0, 1)}}, r"there is no feature 'hour'"),
        ({"periodic": {0: -1}}, r"the period of feature 0 must be a positive number, got -1"),
        ({"periodic": {1: 24}, "bounds": {1: (0, 99)}}, r"feature 1 has bounds and a period"),
        ({"periodic": {0: 24}, "scale": "whiten"}, r"need kernels that are products"),
    ],
)
def test_bad_supports(settings, message):
    with pytest.raises(ValueError, match=message):
        ForwardDensity(**settings).fit(HOURS)
