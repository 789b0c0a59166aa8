"""One convex step: both solvers end at the minimum over all pairs, and so does the penalized one."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fewkern.margins.convex import ListedLoss, ListedPairs, RankedPairs, signed_pairs, solve
from fewkern.margins.graphs import PairSet
from fewkern.margins.sparse import _Penalized


@pytest.fixture
def case(rng):
    """Samples, an intrinsic scatter, the pairs between two classes, an order and a start."""
    codes = np.arange(24) % 2
    Z = rng.standard_normal((24, 4)) + 1.2 * codes[:, None] * np.array([1.0, 0.5, 0, 0])
    Z = Z - Z.mean(axis=0)
    S = Z.T @ Z / 24 + 0.1 * np.eye(4)
    w = np.array([0.6, 0.2, -0.1, 0.1])
    return Z, S, PairSet(0.8, np.ones(24), codes), np.argsort(Z @ w), w


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
@pytest.mark.parametrize("near", [True, False])
def test_a_step_ends_at_the_minimum_of_its_order(case, D, near, rng):
    Z, S, pairs, order, w = case
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
    steps = _Penalized(plain, S, share * pull)
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
    assert not _Penalized(plain, S, 1.01 * pull).improve(w, order, False).any()


class Counted:
    """A smooth loss of one's own that counts how often it is asked."""

    def __init__(self, value, gradient, curvature=None):
        self.functions, self.bend, self.asked = (value, gradient), curvature, []

    def smooth(self, w, mu):
        self.asked.append(np.array(w))
        return tuple(f(w) for f in self.functions)

    def curvature(self, w, mu):
        return self.bend(w)


def quadratic(scales, center):
    return Counted(lambda w: float(scales @ (w - center) ** 2) / 2, lambda w: scales * (w - center))


def test_newton_solves_a_quadratic_in_one_step(case):
    Z, S, pairs, _, _ = case
    ranked = RankedPairs(Z, S, pairs, 0.2)
    scales, center = np.array([1.0, 10.0, 100.0, 3.0]), np.array([1.0, -2.0, 0.5, 0.0])
    loss = quadratic(scales, center)
    loss.bend = lambda w: np.diag(scales)
    found = ranked._newton(loss, np.zeros(4), 0.1, 1e-7)
    np.testing.assert_allclose(found, center, atol=1e-12)
    assert len(loss.asked) == 2


def test_newtons_step_is_halved_until_it_goes_down_enough(case):
    """``sqrt(1 + w^2)``: from 2 the whole step leads to -8, far uphill."""
    Z, S, pairs, _, _ = case
    ranked = RankedPairs(Z, S, pairs, 0.2)
    loss = Counted(
        lambda w: float(np.sqrt(1 + w @ w)),
        lambda w: w / np.sqrt(1 + w @ w),
        lambda w: np.eye(1) / np.sqrt(1 + w @ w) ** 3,
    )
    found = ranked._newton(loss, np.array([2.0]), 0.1, 1e-9)
    tried = [float(w[0]) for w in loss.asked]
    # -8, then half of the way, then a quarter, at which the value is lower
    np.testing.assert_allclose(tried[:4], [2.0, -8.0, -3.0, -0.5], atol=1e-12)
    assert abs(found[0]) < 1e-3
    assert len(tried) <= 12


def test_newton_leaves_what_it_cannot_improve(case):
    Z, S, pairs, _, _ = case
    ranked = RankedPairs(Z, S, pairs, 0.2)
    # a gradient that points uphill: no step is short enough
    wrong = Counted(lambda w: float(w @ w), lambda w: -w, lambda w: np.eye(4))
    start = np.ones(4)
    np.testing.assert_array_equal(ranked._newton(wrong, start, 0.1, 1e-9), start)
    assert len(wrong.asked) == 1 + 20  # lengths from one down to a millionth
    flat = Counted(lambda w: 1.0, lambda w: 0 * w, lambda w: np.eye(4))
    np.testing.assert_array_equal(ranked._newton(flat, start, 0.1, 1e-9), start)
    assert len(flat.asked) == 1


@pytest.mark.parametrize(("near", "widths"), [(False, [0.5, 0.1, 0.02, 0.004, 0.001]), (True, [0.004, 0.001])])
def test_widths_become_narrower_and_the_last_is_solved_well(case, near, widths, monkeypatch):
    Z, S, pairs, order, w = case
    ranked = RankedPairs(Z, S, pairs, 0.2)
    seen = []
    monkeypatch.setattr(RankedPairs, "_newton", lambda self, loss, w, mu, tol: seen.append((mu, tol)) or w + 1)
    np.testing.assert_allclose(ranked.improve(w, order, near), w + len(widths))
    assert [mu for mu, _ in seen] == widths
    assert [tol for _, tol in seen] == [1e-3] * (len(widths) - 1) + [1e-7]


@pytest.mark.parametrize(("near", "band"), [(True, 0.05), (False, 0.3)])
def test_pairs_near_their_margin_are_solved_for_and_others_join(case, near, band, monkeypatch):
    from fewkern.margins import convex

    Z, S, pairs, order, w = case
    listed = ListedPairs(Z, S, pairs.edges(), 0.2)
    G = signed_pairs(Z, listed.edges, order)
    counts = []
    inside = convex._inside_band
    monkeypatch.setattr(convex, "_inside_band", lambda G, box, linear: counts.append(len(G)) or inside(G, box, linear))
    best = listed.improve(w, order, near)
    assert counts[0] == np.sum(np.abs(G @ w - 1) <= band)
    assert counts == sorted(counts)
    # from the solution nothing has to join
    counts.clear()
    np.testing.assert_allclose(listed.improve(best, order, near), best, atol=1e-6)
    assert len(counts) <= 2
    # without a pair in the band the linear term is all there is
    np.testing.assert_array_equal(convex._inside_band(np.zeros((0, 4)), np.zeros(0), np.arange(4.0)), np.arange(4.0))


def test_signs_of_pairs_follow_the_order(case):
    Z, _, pairs, order, _ = case
    edges = pairs.edges()
    rank = {int(sample): place for place, sample in enumerate(order)}
    for row, i, j in zip(signed_pairs(Z, edges, order), edges.i, edges.j):
        upper, lower = (i, j) if rank[int(i)] > rank[int(j)] else (j, i)
        np.testing.assert_allclose(row, 0.8 * (Z[upper] - Z[lower]))


def test_second_derivatives_of_the_smoothed_loss(case):
    Z, S, pairs, order, w = case
    loss = RankedPairs(Z, S, pairs, 0.2).loss(order)
    H = loss.curvature(w, 0.5)
    for k in range(4):
        e = 1e-5 * np.eye(4)[k]
        np.testing.assert_allclose(
            H[k], (loss.smooth(w + e, 0.5)[1] - loss.smooth(w - e, 0.5)[1]) / 2e-5, rtol=1e-3, atol=1e-3
        )


# Proximal gradients


def test_a_proximal_step_minimizes_its_bound_and_finds_the_curvature():
    scales, center = np.array([5.0, 1.0, 0.5]), np.array([2.0, -1.0, 0.1])
    loss, steps = quadratic(scales, center), _Penalized(None, np.eye(3), 0.3)
    ahead = np.array([0.5, 0.5, 0.5])
    new, value, curvature = steps._step(loss, ahead, 0.1, 1.0)
    g = scales * (ahead - center)
    bounds = {}
    for trial in (1.0, 2.0, 4.0, 8.0):
        step = ahead - g / trial
        z = np.sign(step) * np.maximum(np.abs(step) - 0.3 / trial, 0)
        above = scales @ (ahead - center) ** 2 / 2 + g @ (z - ahead) + trial * (z - ahead) @ (z - ahead) / 2
        bounds[trial] = (z, scales @ (z - center) ** 2 / 2 <= above + 1e-12)
    expected = next(trial for trial, (_, fits) in bounds.items() if fits)
    assert expected > 1.0
    assert curvature == expected
    np.testing.assert_allclose(new, bounds[expected][0])
    assert value == pytest.approx(scales @ (new - center) ** 2 / 2)
    # no doubling where it is not needed
    assert steps._step(loss, ahead, 0.1, 5.0)[2] == 5.0


@pytest.mark.parametrize("condition", [10.0, 1e4])
def test_accelerated_steps_solve_what_plain_ones_could_not(condition):
    """A lasso with a diagonal matrix has a closed form; plain steps would need about the condition number of them."""
    scales = np.geomspace(1.0, condition, 6)
    center = np.array([1.0, -2.0, 0.5, 3.0, -0.2, 1.0])
    loss, steps = quadratic(scales, center), _Penalized(None, np.diag(scales), 0.3)
    found = steps._proximal(loss, np.zeros(6), 0.1)
    exact = np.sign(center) * np.maximum(np.abs(center) - 0.3 / scales, 0)
    best = scales @ (exact - center) ** 2 / 2 + 0.3 * np.abs(exact).sum()
    reached = scales @ (found - center) ** 2 / 2 + 0.3 * np.abs(found).sum()
    assert best <= reached <= best * (1 + (1e-4 if condition < 100 else 0.03))
    assert len(loss.asked) <= 1000


def test_proximal_steps_end_at_once_at_the_solution():
    scales, center = np.array([2.0, 3.0]), np.array([1.0, -1.0])
    loss, steps = quadratic(scales, center), _Penalized(None, np.diag(scales), 0.3)
    exact = np.sign(center) * (np.abs(center) - 0.3 / scales)
    np.testing.assert_allclose(steps._proximal(loss, exact, 0.1), exact, atol=1e-9)
    assert len(loss.asked) <= 8


def test_a_removed_direction_is_out_of_everything(case):
    from types import SimpleNamespace

    from fewkern.margins.sparse import _Left

    Z, S, pairs, _, _ = case
    B = Z.T @ Z
    ridge = 0.2
    plain = S
    ridged = plain + ridge * np.trace(plain) / 4 * np.eye(4)
    left = _Left(Z, ridged, B, pairs, 0.1, SimpleNamespace(ridge=ridge))
    tau = ridge * np.trace(plain) / 4
    assert left.tau == pytest.approx(tau)
    np.testing.assert_allclose(left.given[1], plain)
    for w in (np.array([0.6, 0.8, 0.0, 0.0]), np.array([0.0, 0.6, 0.8, 0.0])):
        left.remove((w, None))
    Q = np.linalg.qr(np.column_stack([[0.6, 0.8, 0, 0], [0, 0.6, 0.8, 0]]))[0]
    P = np.eye(4) - Q @ Q.T
    np.testing.assert_allclose(left.Z, Z @ P, atol=1e-12)
    np.testing.assert_allclose(left.S, P @ plain @ P + tau * np.eye(4), atol=1e-12)
    np.testing.assert_allclose(left.B, P @ B @ P, atol=1e-10)
