"""Scatters of graphs against the matrices written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh

from fewkern import GraphEmbedding, RecursiveSoftMargin, graphs
from fewkern.arrays.neighbors import neighbors
from fewkern.margins import graphs as weights
from fewkern.margins.graphs import AllPairs, Degrees, SparseWeights, WithinClasses, between_classes
from tests.oracles.margins import fisher_weights, labelled, laplacian_scatter, local_fisher_weights


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    codes = np.r_[0, 1, 2, rng.integers(0, 3, 27)]
    return rng.normal(size=(30, 4)) + codes[:, None], codes, np.ones(30)


def test_fisher_scatters_are_the_textbook_ones(data):
    Z, codes, p = data
    pair = graphs.Fisher().build(Z, labelled(Z, codes, p))
    means = np.array([Z[codes == k].mean(axis=0) for k in range(3)])
    within = (Z - means[codes]).T @ (Z - means[codes])
    between = ((means - Z.mean(axis=0)) * np.bincount(codes)[:, None]).T @ (means - Z.mean(axis=0))
    np.testing.assert_allclose(pair.intrinsic.scatter(Z), within, atol=1e-10)
    np.testing.assert_allclose(pair.intrinsic.scatter(Z), laplacian_scatter(fisher_weights(codes), Z), atol=1e-10)
    np.testing.assert_allclose(pair.penalty.scatter(Z), between, atol=1e-10)
    apart = (codes[:, None] != codes[None, :]) / 30
    np.testing.assert_allclose(pair.margin.scatter(Z), laplacian_scatter(apart, Z), atol=1e-10)


def test_sparse_weights_and_degrees(data):
    Z, _, p = data
    V = neighbors(Z, 3)
    dense = V.toarray()
    assert np.array_equal(dense, dense.T)
    assert dense.sum(axis=1).min() >= 3
    np.testing.assert_allclose(SparseWeights(V, p).scatter(Z), laplacian_scatter(dense, Z), atol=1e-9)
    np.testing.assert_allclose(Degrees(V, p).scatter(Z), Z.T @ np.diag(dense.sum(axis=1)) @ Z, atol=1e-9)
    edges = SparseWeights(V, p).pairs()
    assert len(edges.i) == V.nnz // 2
    none = AllPairs(1.0, p, removed=sp.csr_array(1 - np.eye(30)))
    np.testing.assert_array_equal(none.scatter(Z), np.zeros((Z.shape[1], Z.shape[1])))
    others = AllPairs(1.0, p, removed=V)
    assert len(others.edges().i) == 30 * 29 // 2 - V.nnz // 2
    np.testing.assert_allclose(others.scatter(Z), laplacian_scatter(1 - dense, Z), atol=1e-9)


def test_mfa_takes_the_shortest_pairs_between_classes(data):
    Z, codes, p = data
    pair = graphs.MFA(within=2, between=4).build(Z, labelled(Z, codes, p))
    D = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    want = set()
    for k in range(3):
        inside, outside = np.flatnonzero(codes == k), np.flatnonzero(codes != k)
        block = D[np.ix_(inside, outside)]
        for flat in np.argsort(block, axis=None)[:4]:
            a, b = inside[flat // len(outside)], outside[flat % len(outside)]
            want.add((max(a, b), min(a, b)))
    edges = pair.pairs()
    assert set(zip(edges.i.tolist(), edges.j.tolist())) == {(int(a), int(b)) for a, b in want}
    same = pair.intrinsic.V.tocoo()
    assert np.all(codes[same.row] == codes[same.col])


@pytest.mark.parametrize("k", [1, 5, 40])
def test_lfda_is_sugiyamas(data, k, monkeypatch):
    Z, codes, p = data
    within, between = local_fisher_weights(Z, codes, k)
    pair = graphs.LFDA(neighbors=k).build(Z, labelled(Z, codes, p))
    Y = Z @ np.random.default_rng(2).normal(size=(4, 3))  # scatters of other features than distances were taken in
    for blocks in (None, 7):
        if blocks:
            monkeypatch.setattr(weights, "row_blocks", lambda n, _: [slice(a, a + 7) for a in range(0, n, 7)])
        for A in (Z, Y):
            np.testing.assert_allclose(pair.intrinsic.scatter(A), laplacian_scatter(within, A), atol=1e-10)
            np.testing.assert_allclose(pair.penalty.scatter(A), laplacian_scatter(between, A), atol=1e-10)
    assert np.linalg.eigvalsh(pair.penalty.scatter(Z)).min() > 0  # although some weights are negative
    assert between.min() < 0
    edges = pair.pairs().edges()
    assert np.all(codes[edges.i] != codes[edges.j])


def test_lfda_of_repeated_samples_and_lone_ones():
    Z = np.array([[0.0, 0.0]] * 4 + [[1.0, 0.0]] * 4 + [[0.0, 3.0]])
    samples = labelled(Z, np.repeat([0, 1, 2], [4, 4, 1]))
    pair = graphs.LFDA(neighbors=2).build(Z, samples)
    np.testing.assert_allclose(pair.intrinsic.scatter(Z), 0, atol=1e-12)
    fisher = graphs.Fisher().build(Z, samples)
    np.testing.assert_allclose(pair.penalty.scatter(Z), fisher.penalty.scatter(Z), atol=1e-12)


def test_lsda_splits_by_class(data):
    Z, codes, p = data
    lsda = graphs.LSDA(neighbors=6).build(Z, labelled(Z, codes, p))
    both = lsda.intrinsic.V + lsda.penalty.V
    assert (both != neighbors(Z, 6)).nnz == 0
    coo = lsda.penalty.V.tocoo()
    assert np.all(codes[coo.row] != codes[coo.col])


def test_a_users_pair_of_matrices(data):
    Z, codes, _ = data
    V, F = (codes[:, None] == codes[None, :]).astype(float), np.random.default_rng(0).normal(size=(30, 2))
    F = F - F.mean(axis=0)
    centered = Z - Z.mean(axis=0)
    penalty = centered.T @ F @ F.T @ centered
    both = graphs.GraphPair(SparseWeights(sp.csr_matrix(V), np.ones(30)), graphs.Factor(F))
    model = GraphEmbedding(graph=both, alpha=0.0).fit(Z)
    want = eigh(penalty, laplacian_scatter(V, centered), eigvals_only=True)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, want[:2], rtol=1e-8)
    identity = GraphEmbedding(graph=graphs.GraphPair(None, graphs.Factor(F)), n_components=2).fit(Z)
    np.testing.assert_allclose(identity.eigenvalues_, np.linalg.eigvalsh(penalty)[::-1][:2], rtol=1e-8)


def weights_of(V):
    return {"graph": (None, np.array(V, dtype=float))}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (weights_of([[0, 1, 0], [0, 0, 0], [0, 0, 0]]), "symmetric"),
        (weights_of([[0, -1, 0], [-1, 0, 0], [0, 0, 0]]), "not be negative"),
        (weights_of([[0, 1, np.nan], [1, 0, 0], [np.nan, 0, 0]]), "weights of a graph must be finite"),
        (weights_of(np.ones((3, 1))), r"one row and one column per sample \(3\), got shape \(3, 1\)"),
        ({"graph": "fischer"}, "graph must be one of"),
        ({"graph": graphs.GraphPair(None, AllPairs(1.0, np.ones(3)))}, "sample_weight does not go with a GraphPair"),
        *(({"graph": graphs.LPP(k)}, "graphs.LPP: neighbors must be a whole number of") for k in (0, 2.5, "3", True)),
    ],
)
def test_messages(settings, message):
    with pytest.raises(ValueError, match=message):
        GraphEmbedding(**settings).fit(np.eye(3), sample_weight=[1, 2, 3])


def test_a_margin_needs_pairs(data):
    Z, codes, p = data
    parts = [graphs.LFDA().build(Z, labelled(Z, codes)).penalty, between_classes(codes, p), WithinClasses(codes, p)]
    for part in (*parts, Degrees(sp.csr_matrix((30, 30)), p)):
        message = f"{type(part).__name__} gives a scatter but no pairs .* give margin=AllPairs"
        with pytest.raises(ValueError, match=message):
            RecursiveSoftMargin(graph=graphs.GraphPair(None, part)).fit(Z)
