"""One convex step: both solvers end at the minimum over all pairs."""

import numpy as np
import pytest

from fewkern.margins.graphs import AllPairs
from fewkern.margins.soft import ListedPairs, RankedPairs


@pytest.fixture
def case(rng):
    """Samples, an intrinsic scatter, the pairs between two classes, an order and a start."""
    codes = np.arange(24) % 2
    Z = rng.standard_normal((24, 4)) + 1.2 * codes[:, None] * np.array([1.0, 0.5, 0, 0])
    Z = Z - Z.mean(axis=0)
    S = Z.T @ Z / 24 + 0.1 * np.eye(4)
    w = np.array([0.6, 0.2, -0.1, 0.1])
    return Z, S, AllPairs(0.8, np.ones(24), codes), np.argsort(Z @ w), w


def written_out(Z, S, pairs, D, w, order=None):
    """The objective over all pairs; with an order, the convex one with its signs."""
    edges = pairs.edges()
    gap = Z[edges.i] @ w - Z[edges.j] @ w
    if order is None:
        gap = np.abs(gap)
    else:
        rank = np.argsort(order)
        gap = np.where(rank[edges.i] > rank[edges.j], gap, -gap)
    return 0.5 * w @ S @ w + D * np.sum(edges.count * np.maximum(0, 1 - edges.v * gap))


@pytest.mark.parametrize("D", [0.01, 0.2])
@pytest.mark.parametrize(("length", "near"), [(1.0, True), (1.0, False), (-1.0, False), (30.0, False)])
def test_a_step_ends_at_the_minimum_of_its_order_from_any_start(case, D, length, near, rng):
    Z, S, pairs, order, w = case
    w = length * w
    listed, ranked = ListedPairs(Z, S, pairs.edges(), D), RankedPairs(Z, S, pairs, D)
    best = listed.improve(w, order, near)
    lowest = written_out(Z, S, pairs, D, best, order)
    assert lowest < written_out(Z, S, pairs, D, w, order)
    for length in (1e-1, 1e-3, 1e-5):
        for way in rng.standard_normal((20, 4)):
            assert written_out(Z, S, pairs, D, best + length * way, order) >= lowest * (1 - 1e-12)
    # the smoothed hinge is as narrow as a thousandth of the margin
    assert written_out(Z, S, pairs, D, ranked.improve(w, order, near), order) == pytest.approx(lowest, rel=1e-4)
    for steps in (listed, ranked):
        assert steps.value(w) == pytest.approx(written_out(Z, S, pairs, D, w))


@pytest.mark.parametrize("near", [True, False])
def test_the_last_width_is_minimized_to_its_tolerance(case, near):
    Z, S, pairs, order, w = case
    ranked = RankedPairs(Z, S, pairs, 0.2)
    loss, found = ranked.loss(order), ranked.improve(w, order, near)
    value, g = loss.smooth(found, 0.001)
    gain = 0.5 * g @ np.linalg.solve(loss.curvature(found, 0.001), g)
    assert gain <= 1e-6 * abs(ranked.value(np.zeros(4)) - value)


def test_the_smoothed_loss_has_its_derivatives_and_is_never_below_the_hinge(case):
    Z, S, pairs, order, w = case
    loss = RankedPairs(Z, S, pairs, 0.2).loss(order)
    for mu in (0.5, 0.1):
        g = loss.smooth(w, mu)[1]
        for k in range(4):
            e = 1e-5 * np.eye(4)[k]
            rise = (loss.smooth(w + e, mu)[0] - loss.smooth(w - e, mu)[0]) / 2e-5
            assert g[k] == pytest.approx(rise, abs=1e-6)
    H = loss.curvature(w, 0.5)
    for k in range(4):
        e = 1e-5 * np.eye(4)[k]
        bend = (loss.smooth(w + e, 0.5)[1] - loss.smooth(w - e, 0.5)[1]) / 2e-5
        np.testing.assert_allclose(H[k], bend, rtol=1e-3, atol=1e-3)
    # equal to the hinge where no pair is near its kink
    assert loss.smooth(w, 1e-6)[0] == pytest.approx(written_out(Z, S, pairs, 0.2, w, order), rel=1e-5)
    assert loss.smooth(w, 0.5)[0] >= written_out(Z, S, pairs, 0.2, w, order)
