"""RSM: the concave-convex procedure in its two forms, and one convex step of both."""

from dataclasses import replace

import numpy as np
import pytest

from fewkern import graphs
from fewkern.margins import soft
from fewkern.margins.embedding import regularized_scatter
from fewkern.margins.graphs import AllPairs
from fewkern.margins.soft import ListedPairs, RankedPairs, SoftMargin, all_violate, score_order, soft_margin_direction
from fewkern.margins.soft import recursive_soft_margin as recurse
from tests.oracles.margins import (
    align,
    fisher_weights,
    labelled,
    neighbor_weights,
    pairs_of,
    soft_margin_directions,
)


def data(seed=0, n=60, q=5, classes=3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    Z = rng.normal(size=(n, q)) + 1.5 * rng.normal(size=(classes, q))[codes]
    return Z - Z.mean(axis=0), codes


def recursive_soft_margin(Z, pair, **settings):
    return recurse(Z, pair, SoftMargin(**settings))


def pair_for(rule, Z, codes):
    return rule.build(Z, labelled(Z, codes))


@pytest.mark.parametrize(
    "rule", [graphs.Fisher(), graphs.UDP(2), graphs.LPP(3), graphs.LFDA(4)], ids=lambda r: type(r).__name__
)
@pytest.mark.parametrize("delta_rel", [0.5, 5.0, 50.0])
def test_sorted_form_equals_the_explicit_one(rule, delta_rel, monkeypatch):
    Z, codes = data(n=80)
    pair = pair_for(rule, Z, codes)
    exact = recursive_soft_margin(Z, pair, n_components=1, C=delta_rel)
    monkeypatch.setattr(soft, "_MAX_LISTED_PAIRS", 0)
    fast = recursive_soft_margin(Z, pair, n_components=1, C=delta_rel)
    a, b = exact.steps[0], fast.steps[0]
    assert np.all(np.diff(b.objectives) < 0)
    assert a.delta_0 == pytest.approx(b.delta_0, rel=0.5)  # ranges over all pairs, or over those of the graph
    if a.delta == pytest.approx(b.delta, rel=1e-9):
        assert a.at_zero == pytest.approx(b.at_zero, rel=1e-9)
        assert abs(exact.directions[:, 0] @ fast.directions[:, 0]) > 0.998
        assert b.objectives[-1] <= a.objectives[-1] * (1 + 2e-3)


@pytest.mark.parametrize("seed", [0, 41, 42])
@pytest.mark.parametrize("delta_rel", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("name", ["fisher", "udp"])
def test_directions_equal_those_with_every_pair_written_out(name, delta_rel, seed):
    Z, codes = data(seed, n=45, q=4)
    if name == "fisher":
        rule, within, pairs, v = graphs.Fisher(), fisher_weights(codes), pairs_of(45, codes), 1 / 45
    else:
        rule, within = graphs.UDP(2), neighbor_weights(Z, 2)
        pairs, v = pairs_of(45, removed=np.nonzero(within)), 1.0
    W, values = soft_margin_directions(Z, within, pairs, v, 2, delta_rel)
    result = recursive_soft_margin(Z, pair_for(rule, Z, codes), n_components=2, C=delta_rel)
    ours = np.array([step.objectives[-1] for step in result.steps])
    assert np.all(ours <= values * (1 + 1e-6))
    # liblinear may miss a pair that meets, and then ends higher; a later direction is another problem
    same = np.logical_and.accumulate(ours >= values * (1 - 1e-6))
    assert same[0]
    np.testing.assert_allclose(align(W, result.directions)[:, same], W[:, same], atol=1e-3)


def test_below_delta_0_the_direction_is_the_gini_fixed_point():
    Z, codes = data(seed=1)
    pair = pair_for(graphs.Fisher(), Z, codes)
    S, pairs = regularized_scatter(pair, Z, 1e-2), pair.pairs()
    results = [recursive_soft_margin(Z, pair, n_components=1, C=d) for d in (1e-4, 0.05, 0.4)]
    for other in results[1:]:
        np.testing.assert_allclose(other.directions, results[0].directions, atol=1e-7)
    w = results[0].directions[:, 0]
    again = all_violate(Z, S, pairs, score_order(Z, w, np.arange(len(Z))))[0]
    np.testing.assert_allclose(again / np.linalg.norm(again), w, atol=1e-7)


def test_margin_and_weight_scale_together():
    """(f, delta) -> (c f, c delta) maps w to c w; with f fixed at one that is v -> v / c in the pairs."""
    Z, codes = data(seed=2)
    pair = pair_for(graphs.Fisher(), Z, codes)
    S, edges = regularized_scatter(pair, Z, 1e-2), pair.pairs().edges()
    w0 = np.random.default_rng(0).normal(size=Z.shape[1])
    w, step = soft_margin_direction(Z, S, edges, w0, SoftMargin(C=10.0))
    c = 3.0
    # f = c is f = 1 with v / c and the whole sum times c
    other = replace(edges, v=edges.v / c, count=edges.count * c)
    scaled, _ = soft_margin_direction(Z, S, other, w0, SoftMargin(C=c * step.delta, scale_C=False))
    np.testing.assert_allclose(scaled, c * w, rtol=1e-5)


def test_metric_scatter_is_orthonormal_in_it():
    Z, codes = data()
    pair = pair_for(graphs.Fisher(), Z, codes)
    W = recursive_soft_margin(Z, pair, n_components=5, metric="scatter").directions
    np.testing.assert_allclose(W.T @ regularized_scatter(pair, Z, 1e-2) @ W, np.eye(5), atol=1e-9)


def test_all_components_span_the_samples():
    Z, codes = data(q=4)
    result = recursive_soft_margin(Z, pair_for(graphs.Fisher(), Z, codes), n_components=9)
    assert (result.directions.shape, result.stop) == ((4, 4), "rank")
    np.testing.assert_allclose(result.directions @ result.directions.T, np.eye(4), atol=1e-12)
    nothing = np.zeros((6, 3))
    assert recursive_soft_margin(nothing, pair_for(graphs.PCA(), nothing, None)).directions.shape == (3, 0)
    distance = lambda A: ((A[:, None] - A[None]) ** 2).sum(axis=2)  # noqa: E731
    np.testing.assert_allclose(distance(Z @ result.directions), distance(Z), atol=1e-9)


@pytest.mark.parametrize("rule", [graphs.UDP(1), graphs.Fisher()], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_choose_the_minimum(rule, seed):
    """Few samples in many dimensions: projections meet exactly, and other coordinates round them otherwise."""
    rng = np.random.default_rng(seed)
    codes = np.arange(30) % 15
    Z = rng.normal(size=(30, 29)) + rng.normal(size=(15, 29))[codes]
    Z -= Z.mean(axis=0)
    turn = np.linalg.qr(rng.normal(size=(29, 29)))[0]
    settings = {"n_components": 8, "ridge": 1.0, "C": 0.01, "scale_C": False}
    W = recursive_soft_margin(Z, pair_for(rule, Z, codes), **settings).directions
    turned = recursive_soft_margin(Z @ turn, pair_for(rule, Z @ turn, codes), **settings).directions
    np.testing.assert_allclose(align(W, turn @ turned), W, atol=1e-5)


def test_equal_projections_change_places():
    Z = np.array([[0.0], [1.0], [1.0 + 1e-12], [2.0]])
    order = score_order(Z, np.ones(1), np.arange(4))
    assert order.tolist() == [0, 2, 1, 3]
    assert score_order(Z, np.ones(1), order).tolist() == [0, 1, 2, 3]
    assert score_order(Z, np.zeros(1), order).tolist() == [3, 1, 2, 0]


# A convex step by both solvers


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
