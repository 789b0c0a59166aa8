"""Weights between samples, and the scatter they give: no n x n matrix for weights that classes define.

A graph pair says which samples belong together (*intrinsic*) and which should be apart (*penalty*). Everything a
direction finder asks of a graph is its scatter ``Z' L Z``, ``L = diag(V 1) - V``; a margin method also asks for the
pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import class_sums, neg_squared_distances, one_hot, sum_by_index, weighted_gram
from fewkern.arrays.namespace import Array
from fewkern.arrays.neighbors import sparse_edges, sparse_laplacian_scatter
from fewkern.arrays.storable import storable

__all__ = [
    "AllPairs",
    "BetweenClasses",
    "ClassMeans",
    "Complement",
    "Degrees",
    "Edges",
    "Factor",
    "GraphPair",
    "LocalAffinity",
    "LocalBetween",
    "LocalWithin",
    "PairSet",
    "SparseWeights",
    "Weights",
    "WithinClasses",
]


@storable
@dataclass(frozen=True)
class PairSet:
    """Unordered pairs with a common weight ``v``: all pairs, without those inside a class and without some edges.

    ``importance`` holds sample weights ``p``; a pair counts ``p_i p_j`` times.
    """

    v: float
    importance: Array
    codes: Array | None = None
    removed: tuple[Array, Array] | None = None

    def edges(self) -> Edges:
        """The pairs one by one: ``O(n^2)`` of them."""
        p = self.importance
        n = int(p.shape[0])
        keep = np.tril(np.ones((n, n), dtype=bool), k=-1)
        if self.codes is not None:
            keep = keep & (self.codes[:, None] != self.codes[None, :])
        if self.removed is not None:
            upper = np.maximum(*self.removed) * n + np.minimum(*self.removed)
            gone = sum_by_index(np.ones(upper.shape), upper, n * n)
            keep = keep & (gone.reshape(n, n) == 0)
        i, j = np.nonzero(keep)
        return Edges(i, j, np.full(len(i), self.v), p[i] * p[j])


@storable
@dataclass(frozen=True)
class Edges:
    """Pairs ``(i, j)`` with weights ``v`` in the margin and ``count`` in the sum."""

    i: Array
    j: Array
    v: Array
    count: Array

    def edges(self) -> Edges:
        """Itself: the pairs one by one."""
        return self


class Weights(Protocol):
    """Symmetric weights ``V >= 0`` between samples."""

    def scatter(self, Z: Array) -> Array:
        """``Z' L Z`` of shape ``(q, q)``."""

    def pairs(self) -> PairSet | Edges:
        """The pairs with a positive weight."""


def _total(Z: Array, p: Array) -> Array:
    """Scatter about the weighted mean."""
    return weighted_gram(Z - (p @ Z)[None, :] / np.sum(p), p)


def _class_means(Z: Array, p: Array, codes: Array, n_classes: int) -> tuple[Array, Array]:
    """Weighted mean and mass of every class; a class without samples has mass zero."""
    mass = class_sums(p[:, None], codes, n_classes)[:, 0]
    sums = class_sums(p[:, None] * Z, codes, n_classes)
    return sums / np.where(mass > 0, mass, 1.0)[:, None], mass


def _within(Z: Array, p: Array, codes: Array, factors: Array) -> Array:
    """Sum over the classes of ``factors_k`` times the scatter about the class mean."""
    member = one_hot(codes, int(factors.shape[0]), Z.dtype)
    means, _ = _class_means(Z, p, codes, int(factors.shape[0]))
    return weighted_gram(Z - member @ means, p * (member @ factors))


@storable
@dataclass(frozen=True)
class AllPairs:
    """``V_ij = v p_i p_j`` for every pair; with ``v = 1 / sum(p)`` the total scatter."""

    v: float
    importance: Array

    def scatter(self, Z: Array) -> Array:
        return self.v * float(np.sum(self.importance)) * _total(Z, self.importance)

    def pairs(self) -> PairSet:
        return PairSet(self.v, self.importance)


@storable
@dataclass(frozen=True)
class WithinClasses:
    """``V_ij = p_i p_j / P_k`` inside class ``k`` of mass ``P_k``: Fisher's within-class scatter, exactly."""

    codes: Array
    n_classes: int
    importance: Array

    def scatter(self, Z: Array) -> Array:
        return _within(Z, self.importance, self.codes, np.ones(self.n_classes))

    def pairs(self) -> Edges:
        raise ValueError("WithinClasses: pairs inside a class belong together; they have no margin.")


@storable
@dataclass(frozen=True)
class BetweenClasses:
    """``V_ij = v p_i p_j`` between classes, zero inside."""

    codes: Array
    n_classes: int
    v: float
    importance: Array

    def scatter(self, Z: Array) -> Array:
        p = self.importance
        mass = class_sums(p[:, None], self.codes, self.n_classes)[:, 0]
        return self.v * (float(np.sum(p)) * _total(Z, p) - _within(Z, p, self.codes, mass))

    def pairs(self) -> PairSet:
        return PairSet(self.v, self.importance, codes=self.codes)


@storable
@dataclass(frozen=True)
class ClassMeans:
    """Fisher's between-class scatter, a factor of rank ``c - 1`` from the class sums.

    As weights it would be ``1/n - 1/n_k`` inside a class, which is negative: a ratio may use it, a margin may not.
    """

    codes: Array
    n_classes: int
    importance: Array

    def scatter(self, Z: Array) -> Array:
        p = self.importance
        means, mass = _class_means(Z, p, self.codes, self.n_classes)
        return weighted_gram(means - (p @ Z)[None, :] / np.sum(p), mass)

    def pairs(self) -> Edges:
        raise ValueError(
            "ClassMeans: its weights inside a class are negative, and a negative weight cannot define a margin; use "
            "BetweenClasses."
        )


@dataclass(frozen=True)
class LocalAffinity:
    r"""Affinity :math:`A_{ij} = \exp(-|x_i - x_j|^2 / (r_i r_j))` of the pairs of every class; computed in blocks.

    Parameters
    ----------
    X : array of shape (n, d)
        The samples between which distances are taken.
    radius : array of shape (n,)
        Local scale ``r`` of every sample.
    codes : integer array of shape (n,)
    n_classes : int
    importance : array of shape (n,)
    """

    X: Array
    radius: Array
    codes: Array
    n_classes: int
    importance: Array

    def class_scatters(self, Z: Array, *, far: bool = False) -> Iterator[tuple[float, Array]]:
        """Per class its mass, and ``Z' L Z`` for ``V_ij = p_i p_j A_ij`` inside of it; ``1 - A_ij`` if ``far``."""
        for c in range(self.n_classes):
            members = np.flatnonzero(self.codes == c)
            p, own = self.importance[members], Z[members]
            degree, cross = np.zeros_like(p), np.zeros_like(own)
            for rows in row_blocks(int(members.shape[0]), int(members.shape[0])):
                V = self._block(members[rows], members, far)
                degree[rows] = V @ p
                cross[rows, :] = V @ (p[:, None] * own)
            product = (p[:, None] * own).T @ cross
            yield float(np.sum(p)), weighted_gram(own, p * degree) - (product + product.T) / 2

    def _block(self, rows: Array, members: Array, far: bool) -> Array:
        D = neg_squared_distances(self.X[rows], self.X[members])
        scale = self.radius[rows][:, None] * self.radius[members][None, :]
        # between samples of radius zero: one for equal samples, zero for others
        exponent = D / np.maximum(scale, np.finfo(np.float64).smallest_normal)
        return -np.expm1(exponent) if far else np.exp(exponent)


@dataclass(frozen=True)
class LocalWithin:
    """``V_ij = A_ij p_i p_j / P_k`` inside class ``k`` of mass ``P_k``, ``A`` a local affinity (Sugiyama's LFDA)."""

    near: LocalAffinity

    def scatter(self, Z: Array) -> Array:
        total = np.zeros((Z.shape[1], Z.shape[1]))
        for mass, S in self.near.class_scatters(Z):
            total = total + S / mass
        return total

    def pairs(self) -> Edges:
        raise ValueError("LocalWithin: pairs inside a class belong together; they have no margin.")


@dataclass(frozen=True)
class LocalBetween:
    """``V_ij = p_i p_j / P`` between classes, and ``A_ij p_i p_j (1/P - 1/P_k)`` inside class ``k`` (Sugiyama's LFDA).

    The weights inside a class are negative; the scatter is not: it is Fisher's between-class scatter, where ``A`` is
    one, plus that of the positive weights ``(1 - A_ij) (1/P_k - 1/P)``.
    """

    near: LocalAffinity

    def scatter(self, Z: Array) -> Array:
        near = self.near
        mass = float(np.sum(near.importance))
        total = ClassMeans(near.codes, near.n_classes, near.importance).scatter(Z)
        for own, S in near.class_scatters(Z, far=True):
            total = total + (1.0 / own - 1.0 / mass) * S
        return total

    def pairs(self) -> Edges:
        raise ValueError(
            "LocalBetween: its weights inside a class are negative, and a negative weight cannot define a margin; use "
            "BetweenClasses."
        )


@storable
@dataclass(frozen=True)
class SparseWeights:
    """Any symmetric sparse matrix ``V``, its entries multiplied by ``p_i p_j``."""

    V: Any
    importance: Array

    def scatter(self, Z: Array) -> Array:
        return sparse_laplacian_scatter(self.V, Z, self.importance)

    def pairs(self) -> Edges:
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

    def pairs(self) -> Edges:
        raise ValueError("Degrees: a diagonal gives a scatter but no pairs.")


@storable
@dataclass(frozen=True)
class Complement:
    """``V_ij = v p_i p_j`` for every pair that is not an edge of the sparse 0/1 matrix ``H``."""

    H: Any
    v: float
    importance: Array

    def scatter(self, Z: Array) -> Array:
        n = int(self.importance.shape[0])
        near = sparse_laplacian_scatter(self.H, Z, self.importance)
        if self.H.nnz == n * (n - 1):
            return np.zeros_like(near)  # not the rounding of a difference
        return AllPairs(self.v, self.importance).scatter(Z) - self.v * near

    def pairs(self) -> PairSet:
        i, j, _ = sparse_edges(self.H, self.importance)
        return PairSet(self.v, self.importance, removed=(i, j))


@storable
@dataclass(frozen=True)
class Factor:
    """A Laplacian given as ``L = F F'`` with few columns."""

    F: Array

    def scatter(self, Z: Array) -> Array:
        half = self.F.T @ Z
        return half.T @ half

    def pairs(self) -> Edges:
        raise ValueError(
            "Factor: a factored Laplacian gives a scatter but no pairs; pass the weights as a sparse matrix."
        )


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

    def pairs(self) -> PairSet | Edges:
        """The pairs that a margin method pushes apart."""
        return (self.penalty if self.margin is None else self.margin).pairs()
