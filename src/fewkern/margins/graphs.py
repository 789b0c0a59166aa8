"""Weights between samples, and the scatter they give: no n x n matrix for weights that classes define.

A graph pair says which samples belong together (*intrinsic*) and which should be apart (*penalty*). Ratios of
scatters use ``Z' L Z`` with ``L = diag(V 1) - V``; margin methods also use the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import class_sums, neg_squared_distances, one_hot, weighted_gram
from fewkern.arrays.namespace import Array
from fewkern.arrays.neighbors import sparse_edges, sparse_laplacian_scatter
from fewkern.arrays.storable import storable


class Weights(Protocol):
    """Symmetric weights between samples; those that can define a margin have a method ``pairs`` too."""

    def scatter(self, Z: Array) -> Array:
        """``Z' L Z`` of shape ``(q, q)``."""


@dataclass(frozen=True)
class Edges:
    """Listed pairs ``(i, j)`` with weights ``v`` in the margin and ``count`` in the sum."""

    i: Array
    j: Array
    v: Array
    count: Array


def _class_means(Z: Array, p: Array, codes: Array) -> tuple[Array, Array]:
    """Weighted mean and mass of every class."""
    n_classes = int(np.max(codes)) + 1
    mass = class_sums(p[:, None], codes, n_classes)[:, 0]
    sums = class_sums(p[:, None] * Z, codes, n_classes)
    return sums / mass[:, None], mass


@storable
@dataclass(frozen=True)
class AllPairs:
    """``V_ij = v p_i p_j`` for every pair, or for all but those inside a class, or all but some edges.

    With ``v = 1 / sum(p)`` and nothing left out it gives the total scatter.
    """

    v: float
    importance: Array
    """``p``, the sample weights."""
    codes: Array | None = None
    """Classes, whose own pairs are left out."""
    removed: Any = None
    """Sparse symmetric 0/1 matrix of edges that are left out."""

    def scatter(self, Z: Array) -> Array:
        p = self.importance
        mass, n = float(np.sum(p)), int(p.shape[0])
        total = mass * weighted_gram(Z - (p @ Z)[None, :] / mass, p)
        if self.codes is not None:
            means, own = _class_means(Z, p, self.codes)
            total = total - weighted_gram(Z - means[self.codes], p * own[self.codes])
        if self.removed is not None:
            if self.removed.nnz == n * (n - 1):
                return np.zeros_like(total)  # not the rounding of a difference
            total = total - sparse_laplacian_scatter(self.removed, Z, p)
        return self.v * total

    def pairs(self) -> AllPairs:
        """Itself: the pairs as a rule."""
        return self

    def removed_edges(self) -> tuple[Array, Array]:
        """Ends ``i > j`` of the edges that are left out."""
        if self.removed is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return sparse_edges(self.removed, self.importance)[:2]

    def edges(self) -> Edges:
        """The pairs one by one: ``O(n^2)`` of them."""
        p = self.importance
        n = int(p.shape[0])
        keep = np.tril(np.ones((n, n), dtype=bool), k=-1)
        if self.codes is not None:
            keep = keep & (self.codes[:, None] != self.codes[None, :])
        keep[self.removed_edges()] = False
        i, j = np.nonzero(keep)
        return Edges(i, j, np.full(len(i), self.v), p[i] * p[j])


@storable
@dataclass(frozen=True)
class WithinClasses:
    """``V_ij = p_i p_j / P_k`` inside class ``k`` of mass ``P_k``: Fisher's within-class scatter, exactly."""

    codes: Array
    importance: Array

    def scatter(self, Z: Array) -> Array:
        means, _ = _class_means(Z, self.importance, self.codes)
        return weighted_gram(Z - means[self.codes], self.importance)


@dataclass(frozen=True)
class LocalAffinity:
    r"""Sugiyama's weights of LFDA, from the affinity :math:`A_{ij} = \exp(-|x_i - x_j|^2 / (r_i r_j))`; in blocks.

    Together: ``A_ij p_i p_j / P_k`` inside class ``k`` of mass ``P_k``. Apart: ``p_i p_j / P`` between classes, and
    ``A_ij p_i p_j (1/P - 1/P_k)`` inside class ``k``. These are negative, but their scatter is not: it is Fisher's
    between-class scatter, where ``A`` is one, plus that of the positive weights ``(1 - A_ij) (1/P_k - 1/P)``.
    """

    X: Array
    """The samples between which distances are taken."""
    radius: Array
    """Local scale ``r`` of every sample."""
    codes: Array
    importance: Array
    apart: bool = False

    def scatter(self, Z: Array) -> Array:
        p, mass = self.importance, float(np.sum(self.importance))
        total = np.zeros((Z.shape[1], Z.shape[1]))
        if self.apart:
            total = between_classes(self.codes, p).scatter(Z)
        for code in np.unique(self.codes):
            members = np.flatnonzero(self.codes == code)
            share = 1.0 / float(np.sum(p[members])) - (1.0 / mass if self.apart else 0.0)
            total = total + share * self._class_scatter(Z[members], members)
        return total

    def _class_scatter(self, Z: Array, members: Array) -> Array:
        """``Z' L Z`` for ``V_ij = p_i p_j A_ij`` inside a class, or ``p_i p_j (1 - A_ij)``."""
        p = self.importance[members]
        degree, cross = np.zeros_like(p), np.zeros_like(Z)
        for rows in row_blocks(len(members), len(members)):
            D = neg_squared_distances(self.X[members[rows]], self.X[members])
            scale = self.radius[members[rows]][:, None] * self.radius[members][None, :]
            # between samples of radius zero: one for equal samples, zero for others
            exponent = D / np.maximum(scale, np.finfo(np.float64).smallest_normal)
            V = -np.expm1(exponent) if self.apart else np.exp(exponent)
            degree[rows] = V @ p
            cross[rows, :] = V @ (p[:, None] * Z)
        product = (p[:, None] * Z).T @ cross
        return weighted_gram(Z, p * degree) - (product + product.T) / 2


@storable
@dataclass(frozen=True)
class SparseWeights:
    """Any symmetric sparse matrix ``V``, its entries multiplied by ``p_i p_j``."""

    V: Any
    importance: Array

    def scatter(self, Z: Array) -> Array:
        return sparse_laplacian_scatter(self.V, Z, self.importance)

    def pairs(self) -> Edges:
        """The pairs with a positive weight."""
        i, j, v = sparse_edges(self.V, self.importance)
        return Edges(i, j, v, self.importance[i] * self.importance[j])


@storable
@dataclass(frozen=True)
class Degrees:
    """``Z' diag(V 1) Z``: what locality preserving projections divide by."""

    V: Any
    importance: Array

    def scatter(self, Z: Array) -> Array:
        p = self.importance
        return weighted_gram(Z, p * (self.V @ p))


@storable
@dataclass(frozen=True)
class Factor:
    """A Laplacian given as ``L = F F'`` with few columns."""

    F: Array

    def scatter(self, Z: Array) -> Array:
        half = self.F.T @ Z
        return half.T @ half


def between_classes(codes: Array, importance: Array) -> Factor:
    """Fisher's between-class scatter, of rank ``c - 1``.

    As weights it would be ``1/n - 1/n_k`` inside a class, which is negative: a ratio may use it, a margin may not.
    """
    n_classes = int(np.max(codes)) + 1
    root = np.sqrt(class_sums(importance[:, None], codes, n_classes)[:, 0])
    member = one_hot(codes, n_classes, importance.dtype) / root
    return Factor(importance[:, None] * (member - root / np.sum(importance)))


@storable
@dataclass(frozen=True)
class GraphPair:
    """Which samples belong together, and which should be apart.

    Parameters
    ----------
    intrinsic : weights or None
        Samples that belong together; ``None`` measures lengths by the identity (PCA).
    penalty : weights
        Samples that should be apart.
    margin : weights or None
        The pairs of a margin method, where they differ from those of the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern import GraphEmbedding, graphs
    >>> from fewkern.datasets import make_banana
    >>> X, _ = make_banana(50)
    >>> principal = graphs.GraphPair(None, graphs.AllPairs(1 / 50, np.ones(50)))
    >>> GraphEmbedding(graph=principal, n_components=1).fit_transform(X).shape
    (50, 1)
    """

    intrinsic: Weights | None
    penalty: Weights
    margin: Weights | None = None

    def pairs(self) -> AllPairs | Edges:
        """The pairs that a margin method pushes apart."""
        weights: Any = self.penalty if self.margin is None else self.margin
        if not hasattr(weights, "pairs"):
            raise ValueError(
                f"GraphPair: {type(weights).__name__} gives a scatter but no pairs of positive weight, so it cannot "
                "define a margin; give margin=AllPairs(...), or the weights as a sparse matrix."
            )
        found: AllPairs | Edges = weights.pairs()
        return found
