"""Laws of the recursive margin methods on random data (methods A3, B6)."""

from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fewkern import graphs
from fewkern.margins import ranking
from fewkern.margins.embedding import Reflected, graph_embedding
from fewkern.margins.graphs import AllPairs
from fewkern.margins.hinge import HingeProblem, minimize_hinge
from fewkern.margins.ranking import OrderedPairs
from fewkern.margins.recursion import class_problems, recursive_margin
from fewkern.margins.soft import SoftMargin, recursive_soft_margin
from tests.oracles.margins import align, labelled, pair_sums, pairs_of

common = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)


def draw(seed, n, d, classes):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % classes)
    Z = rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[codes]
    return Z - Z.mean(axis=0), codes, rng


def margins(Z, codes, C, **more):
    box = np.broadcast_to(C, len(Z)).astype(float)
    problems = class_problems(codes, int(codes.max()) + 1, box)
    return recursive_margin(Reflected.start(Z), problems, **more)


@common
@given(seed=seeds, n=st.integers(8, 50), d=st.integers(1, 8), exponent=st.floats(-2, 2), classes=st.integers(2, 4))
def test_recursive_svm(seed, n, d, exponent, classes):
    Z, codes, _ = draw(seed, n, d, classes)
    r = margins(Z, codes, 10**exponent)
    W = r.directions
    # 1: orthonormal directions, and what is left gets shorter by the features taken out
    np.testing.assert_allclose(W.T @ W, np.eye(W.shape[1]), atol=1e-11)
    np.testing.assert_allclose(Z @ W, r.features, atol=1e-8)
    np.testing.assert_allclose(Z.T @ r.dual, W, atol=1e-4)
    np.testing.assert_allclose(r.dual.sum(axis=0), 0, atol=1e-7 * (1 + np.abs(r.dual).max(initial=0)))
    assert sum(step.size for step in r.steps) == W.shape[1]
    left = (Z**2).sum(axis=1)
    for z in r.features.T:
        left = left - z**2
        assert left.min() > -1e-9
    # 2 and 3: P_{t+1} >= P_t + |w~_t|^2 / 2, never above the cap, for every problem that is still alive
    for before, after in zip(r.steps, r.steps[1:]):
        for k, P in zip(after.problems, after.objectives):
            j = before.problems.index(k)
            assert P >= before.objectives[j] + before.squared_norms[j] / 2 - 1e-6 * r.caps[k]
            assert P <= r.caps[k] * (1 + 1e-9)
    # 4: it ends for a reason
    assert r.stop in ("flat", "rank", "faded")


@common
@given(seed=seeds, n=st.integers(8, 50), d=st.integers(1, 8), exponent=st.floats(-2, 3))
def test_any_feasible_start_ends_in_the_same_hyperplane(seed, n, d, exponent):
    Z, codes, rng = draw(seed, n, d, 2)
    C = 10**exponent * rng.uniform(0.5, 2.0, n)
    signs, h = np.where(codes == 1, 1.0, -1.0), np.ones(n)
    start = C * rng.integers(0, 3, n) / 2  # on either bound or between them
    up, down = start[signs > 0].sum(), start[signs < 0].sum()
    start = np.where(signs > 0, start * min(up, down) / (up or 1.0), start * min(up, down) / (down or 1.0))
    hinges = HingeProblem(Z, signs, h, C)
    cold = minimize_hinge(hinges)
    warm = minimize_hinge(hinges, start)
    assert warm.stop in ("converged", "precision")
    np.testing.assert_allclose(warm.primal, cold.primal, rtol=1e-7)
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-4 * np.linalg.norm(cold.w) + 1e-7)


@common
@given(seed=seeds, n=st.integers(10, 40), d=st.integers(2, 5))
def test_recursive_svm_under_rotation_shift_and_order(seed, n, d):
    Z, codes, rng = draw(seed, n, d, 2)
    r = margins(Z, codes, 1.0, n_components=2)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    order = rng.permutation(n)
    turned = margins((Z @ Q)[order], codes[order], 1.0, n_components=2)
    assert turned.directions.shape == r.directions.shape
    np.testing.assert_allclose(turned.features, r.features[order], atol=1e-4)
    # a shift changes the features by constants only
    moved = margins(Z + rng.normal(size=d), codes, 1.0, n_components=2)
    np.testing.assert_allclose(
        moved.features - moved.features.mean(axis=0), r.features - r.features.mean(axis=0), atol=1e-4
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=seeds,
    n=st.integers(1, 120),
    classes=st.sampled_from([None, 2, 5]),
    share=st.sampled_from([0.0, 0.1, 1.0]),
    m=st.floats(0.01, 5),
    digits=st.integers(0, 3),
    block=st.sampled_from([7, 1000]),
)
def test_sorted_sums_are_the_sums_over_pairs(seed, n, classes, share, m, digits, block):
    rng = np.random.default_rng(seed)
    s = np.round(rng.normal(size=n), digits)  # with ties
    p = rng.integers(0, 4, n).astype(float)
    codes = None if classes is None else rng.integers(0, classes, n)
    apart = np.ones((n, n), bool) if codes is None else codes[:, None] != codes[None, :]
    gone = np.tril(apart & (rng.random((n, n)) < share), -1)
    X = rng.normal(size=(n, 2))
    m += 1e-4 * np.pi  # no score difference is exactly at an edge, where rounding decides
    mu = m / 3
    upper, lower = pairs_of(n, codes, np.nonzero(gone))
    want = pair_sums(s, p, upper, lower, m, mu, X)
    every = AllPairs(0.5, p, codes, sp.csr_matrix(gone | gone.T, dtype=float) if gone.any() else None)
    pairs = OrderedPairs.arranged(every, np.arange(n))
    scale = 1 + np.sum(p) ** 2
    with patch.object(ranking, "row_blocks", lambda n, _: (slice(a, min(a + block, n)) for a in range(0, n, block))):
        curvature = pairs.huber_curvature(s, X, m, mu)
    np.testing.assert_allclose(curvature, want["curvature"], atol=1e-10 * scale / mu)
    np.testing.assert_allclose(pairs.balance(), want["balance"], atol=1e-9)
    np.testing.assert_allclose(pairs.window_value(s, m), want["window"], atol=1e-11 * scale)
    value, gradient = pairs.huber(s, m, mu)
    np.testing.assert_allclose(value, want["huber"], atol=1e-10 * scale)
    np.testing.assert_allclose(gradient, want["huber_gradient"], atol=1e-9 * scale)
    # the same pairs one by one
    edges = every.edges()
    assert set(zip(edges.i.tolist(), edges.j.tolist())) == set(zip(upper.tolist(), lower.tolist()))
    np.testing.assert_array_equal(edges.count, p[edges.i] * p[edges.j])
    assert np.all(edges.v == 0.5)


@common
@given(
    seed=seeds,
    n=st.integers(8, 30),
    q=st.integers(2, 5),
    classes=st.integers(2, 4),
    C=st.sampled_from([0.3, 5.0, 100.0]),
)
def test_soft_margin(seed, n, q, classes, C):
    Z, codes, rng = draw(seed, n, q, classes)
    build = lambda Z, codes: graphs.Fisher().build(Z, labelled(Z, codes))  # noqa: E731
    r = recursive_soft_margin(Z, build(Z, codes), SoftMargin(n_components=2, C=C))
    W = r.directions
    np.testing.assert_allclose(W.T @ W, np.eye(W.shape[1]), atol=1e-11)
    for step in r.steps:
        assert np.all(np.diff(step.objectives) < 0)
        assert step.objectives[-1] < step.at_zero
    # rotation, sample order and names of the classes: the first value stays (a later one hangs on the sign of ties)
    Q = np.linalg.qr(rng.normal(size=(q, q)))[0]
    order, names = rng.permutation(n), rng.permutation(classes)
    turned = recursive_soft_margin(
        (Z @ Q)[order], build((Z @ Q)[order], names[codes][order]), SoftMargin(n_components=1, C=C)
    )
    np.testing.assert_allclose(turned.steps[0].objectives[0], r.steps[0].objectives[0], rtol=1e-6)
    np.testing.assert_allclose(align(W[:, :1], Q @ turned.directions), W[:, :1], atol=2e-3)


@common
@given(
    seed=seeds,
    n=st.integers(10, 30),
    d=st.integers(2, 6),
    rule=st.sampled_from([graphs.Fisher(), graphs.PCA(), graphs.LPP(), graphs.UDP(), graphs.LFDA()]),
)
def test_embedding_under_rotation(seed, n, d, rule):
    Z, codes, rng = draw(seed, n, d, 2)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    for recursive in (False, True):
        a = graph_embedding(Z, rule.build(Z, labelled(Z, codes)), 1, recursive)
        b = graph_embedding(Z @ Q, rule.build(Z @ Q, labelled(Z @ Q, codes)), 1, recursive)
        np.testing.assert_allclose(a.values, b.values, rtol=1e-6)
        np.testing.assert_allclose(
            align(a.directions, Q @ b.directions), a.directions, atol=1e-4 * np.abs(a.directions).max()
        )
