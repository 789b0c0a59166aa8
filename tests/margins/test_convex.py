"""One convex step: both solvers end at the minimum over all pairs, and so does the penalized one."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fewkern.margins.convex import ListedLoss, ListedPairs, PenalizedSteps, RankedPairs, signed_pairs, solve
from fewkern.margins.graphs import AllPairs


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
    gain = 0.5 * g @ solve(loss.curvature(found, 0.001), g)
    assert gain <= 1e-6 * abs(ranked.value(np.zeros(4)) - value)


def test_smoothed_losses_agree_and_have_their_gradients(case):
    Z, S, pairs, order, w = case
    edges = pairs.edges()
    ranked = RankedPairs(Z, S, pairs, 0.2).loss(order)
    listed = ListedLoss(S, signed_pairs(Z, edges, order), 0.2 * edges.count)
    for mu in (0.5, 0.1):
        value, g = ranked.smooth(w, mu)
        other, other_g = listed.smooth(w, mu)
        assert value == pytest.approx(other, rel=1e-10)
        np.testing.assert_allclose(g, other_g, atol=1e-9)
        for k in range(4):
            e = 1e-5 * np.eye(4)[k]
            rise = (listed.smooth(w + e, mu)[0] - listed.smooth(w - e, mu)[0]) / 2e-5
            assert g[k] == pytest.approx(rise, abs=1e-6)
    # never below the hinge, and equal to it where no pair is near its kink
    assert listed.smooth(w, 1e-9)[0] == pytest.approx(written_out(Z, S, pairs, 0.2, w, order))
    assert listed.smooth(w, 0.5)[0] >= written_out(Z, S, pairs, 0.2, w, order)


@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("ranked", [True, False])
def test_a_penalized_step_ends_at_its_minimum(case, ranked, share):
    Z, S, pairs, order, w = case
    plain = RankedPairs(Z, S, pairs, 0.2) if ranked else ListedPairs(Z, S, pairs.edges(), 0.2)
    pull = np.abs(plain.loss(order).smooth(np.zeros(4), 0.001)[1]).max()
    steps = PenalizedSteps(plain, S, share * pull)
    found = steps.improve(w, order, False)
    assert steps.value(found) == pytest.approx(plain.value(found) + share * pull * np.abs(found).sum())
    loss = plain.loss(order)

    def split(z):
        """The same objective at ``w = z[:4] - z[4:]``, both not negative, where the penalty is linear."""
        value, g = loss.smooth(z[:4] - z[4:], 0.001)
        return value + share * pull * z.sum(), np.r_[g, -g] + share * pull

    start = np.r_[np.maximum(w, 0), np.maximum(-w, 0)]
    best = minimize(split, start, jac=True, bounds=[(0, None)] * 8, options={"maxiter": 5000, "ftol": 1e-14})
    reached = loss.smooth(found, 0.001)[0] + share * pull * np.abs(found).sum()
    assert reached == pytest.approx(best.fun, rel=1e-3)
    # above the strongest pull nothing is left
    assert not PenalizedSteps(plain, S, 1.01 * pull).improve(w, order, False).any()


def test_second_derivatives_of_the_smoothed_loss(case):
    Z, S, pairs, order, w = case
    loss = RankedPairs(Z, S, pairs, 0.2).loss(order)
    H = loss.curvature(w, 0.5)
    for k in range(4):
        e = 1e-5 * np.eye(4)[k]
        np.testing.assert_allclose(
            H[k], (loss.smooth(w + e, 0.5)[1] - loss.smooth(w - e, 0.5)[1]) / 2e-5, rtol=1e-3, atol=1e-3
        )


class Quadratic:
    """Steps on ``sum_k scales_k (w_k - center_k)^2 / 2``, which counts how often it is asked."""

    def __init__(self, scales, center):
        self.scales, self.center, self.asked = scales, center, 0

    def loss(self, order):
        return self

    def smooth(self, w, mu):
        self.asked += 1
        return float(self.scales @ (w - self.center) ** 2) / 2, self.scales * (w - self.center)


@pytest.mark.parametrize("condition", [10.0, 1e4])
def test_accelerated_steps_solve_what_plain_ones_could_not(condition):
    """A lasso with a diagonal matrix has a closed form; plain steps would need about the condition number of them."""
    scales = np.geomspace(1.0, condition, 6)
    center = np.array([1.0, -2.0, 0.5, 3.0, -0.2, 1.0])
    plain = Quadratic(scales, center)
    found = PenalizedSteps(plain, np.diag(scales), 0.3).improve(np.zeros(6), None, False)
    exact = np.sign(center) * np.maximum(np.abs(center) - 0.3 / scales, 0)
    best = scales @ (exact - center) ** 2 / 2 + 0.3 * np.abs(exact).sum()
    reached = scales @ (found - center) ** 2 / 2 + 0.3 * np.abs(found).sum()
    assert best <= reached <= best * (1 + (1e-4 if condition < 100 else 0.03))
    assert plain.asked <= 1500
