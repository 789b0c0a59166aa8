"""Graphs of nearest neighbors, a few centers, and which samples are equal; NumPy arrays and sparse matrices only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from fewkern.arrays.linalg import neg_squared_distances
from fewkern.arrays.namespace import Array, is_sparse

# Largest number of centers: more hardly change the baseline of an explanation, whose cost is proportional to them.
_CENTERS = 16
# A center is the mean of at least this number of rows, so that none is a row.
_LEAST_CENTER_ROWS = 5
_CENTER_ITERATIONS = 20
# Means over more rows than these do not change in the third digit.
MOST_ROWS = 2000


def _edges_to_matrix(i: Any, j: Any, n: int) -> Any:
    """0/1 symmetric matrix with the given entries and their mirror images."""
    H = sp.csr_matrix((np.ones(len(i)), (i, j)), shape=(n, n))
    H = H.maximum(H.T).tocsr()
    H.setdiag(0)
    H.eliminate_zeros()
    H.data[:] = 1.0
    return H


def neighbors(X: Array, k: int) -> Any:
    """Symmetric 0/1 graph: an edge where either end is among the ``k`` nearest neighbors of the other."""
    from sklearn.neighbors import kneighbors_graph

    n = X.shape[0]
    if n < 2:
        return sp.csr_matrix((n, n))
    G = kneighbors_graph(X, min(k, n - 1), mode="connectivity").tocoo()
    return _edges_to_matrix(G.row, G.col, n)


def class_neighbors(X: Array, codes: Array, k: int) -> Any:
    """:func:`neighbors` inside every class."""
    rows, columns = [], []
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        H = neighbors(X[members], k).tocoo()
        rows.append(members[H.row])
        columns.append(members[H.col])
    return _edges_to_matrix(np.concatenate(rows), np.concatenate(columns), X.shape[0])


def nearest_between(X: Array, codes: Array, count: int) -> Any:
    """0/1 graph of the ``count`` shortest pairs from every class to all others."""
    from sklearn.neighbors import NearestNeighbors

    rows, columns = [], []
    for c in np.unique(codes):
        inside, outside = np.flatnonzero(codes == c), np.flatnonzero(codes != c)
        if not len(outside):
            continue
        # The shortest `count` pairs are among the `count` shortest of every member.
        search = NearestNeighbors(n_neighbors=min(count, len(outside))).fit(X[outside])
        distance, index = search.kneighbors(X[inside])
        take = np.argsort(distance, axis=None, kind="stable")[:count]
        rows.append(np.repeat(inside, index.shape[1])[take])
        columns.append(outside[index.ravel()[take]])
    if not rows:
        return sp.csr_matrix((X.shape[0], X.shape[0]))
    return _edges_to_matrix(np.concatenate(rows), np.concatenate(columns), X.shape[0])


def split_by_label(H: Any, codes: Array) -> tuple[Any, Any]:
    """Edges of ``H`` inside classes, and between them."""
    coo = H.tocoo()
    same = codes[coo.row] == codes[coo.col]
    parts = [sp.csr_matrix((coo.data[m], (coo.row[m], coo.col[m])), shape=H.shape) for m in (same, ~same)]
    return parts[0], parts[1]


def class_radius(X: Array, codes: Array, k: int) -> Array:
    """Distance of every sample to its ``k``-th neighbor of the same class; to the farthest if there are fewer.

    A sample that is alone in its class has the radius zero.
    """
    from sklearn.neighbors import NearestNeighbors

    radius = np.zeros(X.shape[0], X.dtype)
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        if len(members) > 1:
            search = NearestNeighbors(n_neighbors=min(k, len(members) - 1)).fit(X[members])
            radius[members] = search.kneighbors()[0][:, -1]
    return radius


def symmetric_weights(V: Any, owner: str) -> Any:
    """A user's square matrix of weights in CSR form, without its diagonal, checked: symmetric, not negative."""
    V = sp.csr_matrix(V, dtype=float)
    V.setdiag(0)
    V.eliminate_zeros()
    if not np.all(np.isfinite(V.data)):
        raise ValueError(f"{owner}: the weights of a graph must be finite, got NaN or infinity.")
    if abs(V - V.T).max() > 1e-10 * max(abs(V).max(), 1e-300):
        raise ValueError(f"{owner}: graph weights must be symmetric; pass (V + V.T) / 2.")
    if V.nnz and V.data.min() < 0:
        raise ValueError(
            f"{owner}: graph weights must not be negative, got {V.data.min():.3g}; a negative weight cannot define a "
            "margin."
        )
    return V


def sparse_laplacian_scatter(V: Any, Z: Array, scale: Array | None = None) -> Array:
    """``Z' L Z`` with ``L = diag(V 1) - V``, for sparse ``V`` (entries times ``scale_i scale_j``)."""
    if scale is not None:
        D = sp.diags(scale)
        V = D @ V @ D
    degree = np.asarray(V.sum(axis=1)).ravel()
    S = Z.T @ (degree[:, None] * Z) - Z.T @ (V @ Z)
    return ((S + S.T) / 2).astype(Z.dtype, copy=False)


def pairs_scatter(i: Array, j: Array, weights: Array, Z: Array) -> Array:
    """``Z' L Z`` for pairs that are listed one by one, with weights of any sign."""
    V = sp.csr_array((weights, (i, j)), (len(Z), len(Z)))
    degree, cross = V.sum(axis=0) + V.sum(axis=1), Z.T @ (V @ Z)
    scatter: Array = (degree[:, None] * Z).T @ Z - cross - cross.T
    return scatter


def sparse_edges(V: Any, like: Array) -> tuple[Array, Array, Array]:
    """Ends ``i > j`` and weights of the edges of a symmetric matrix, the weights in the precision of ``like``."""
    coo = sp.tril(V, k=-1).tocoo()
    return coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data.astype(like.dtype)


def close_pairs(X: Array, radius: float) -> tuple[Array, Array]:
    """Every pair ``i < j`` of rows that are at most ``radius`` apart."""
    i, j = cKDTree(X).query_pairs(radius, output_type="ndarray").T
    return i, j


def distinct_rows(X: Array) -> tuple[Array, Array]:
    """First row of every distinct sample, ascending, and for every sample the position of its own in that list.

    Equal means equal in every bit, but for the sign of zero.
    """
    seen: dict[Any, int] = {}
    place = np.array([seen.setdefault(key, len(seen)) for key in _row_bytes(X)], dtype=np.int64)
    return np.unique(place, return_index=True)[1], place


def _row_bytes(X: Array) -> Iterator[Any]:
    """What two rows have in common only if they are equal."""
    if not is_sparse(X):
        return (row.tobytes() for row in X + 0.0)  # adding zero turns -0.0 into 0.0
    csr = X.tocsr().copy()
    csr.sum_duplicates()
    csr.eliminate_zeros()
    ends = zip(csr.indptr[:-1], csr.indptr[1:])
    return ((csr.indices[start:stop].tobytes(), csr.data[start:stop].tobytes()) for start, stop in ends)


def weighted_centers(T: Array, weights: Array) -> tuple[Array, Array]:
    """At most 16 centers, by k-means, each the mean of five rows or more where there are enough, and their shares.

    Parameters
    ----------
    T : array of shape (n, d)
        Rows in an order that looks random; of many, the first 2,000 are used.
    weights : array of shape (n,)
    """
    T, weights = T[:MOST_ROWS].astype(np.float64), weights[:MOST_ROWS].astype(np.float64)
    unit = np.abs(T).max() or 1.0  # squares must not overflow
    T = T / unit
    centers = T[_far_apart(T, max(1, min(_CENTERS, len(T) // _LEAST_CENTER_ROWS)))]
    for _ in range(_CENTER_ITERATIONS):
        near = np.argmin(-neg_squared_distances(T, centers), axis=1)
        centers = _means(T, weights, near)[0]
    near = np.argmin(-neg_squared_distances(T, centers), axis=1)
    while len(centers) > 1 and (counts := np.bincount(near, minlength=len(centers))).min() < _LEAST_CENTER_ROWS:
        centers = np.delete(centers, np.argmin(counts), axis=0)
        near = np.argmin(-neg_squared_distances(T, centers), axis=1)
    centers, sums = _means(T, weights, near)
    return centers * unit, sums / sums.sum()


def _means(T: Array, weights: Array, near: Array) -> tuple[Array, Array]:
    """Means and weights of the groups that have rows."""
    own = (near[None, :] == np.unique(near)[:, None]) * weights
    sums = own.sum(axis=1)
    return own @ T / sums[:, None], sums


def _far_apart(T: Array, count: int) -> Array:
    """Rows to begin with, each drawn with probability proportional to its squared distance from the others."""
    rng, chosen = np.random.default_rng(0), [0]
    distances = np.full(len(T), np.inf)
    for _ in range(count - 1):
        distances = np.minimum(distances, ((T - T[chosen[-1]]) ** 2).sum(axis=1))
        if not distances.sum() > 0:
            break
        chosen.append(int(rng.choice(len(T), p=distances / distances.sum())))
    return np.array(chosen)
