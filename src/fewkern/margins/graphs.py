"""Weights between samples, and the scatter they give: no n x n matrix for weights that classes define.

A graph pair says which samples belong together (*intrinsic*) and which should be apart (*penalty*). Everything a
direction finder asks of a graph is its scatter ``Z' L Z``, ``L = diag(V 1) - V``; a margin method also asks for the
pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from fewkern.backend.linalg import sum_by_index, weighted_gram
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows, to_numpy
from fewkern.backend.neighbours import sparse_edges, sparse_laplacian_scatter
from fewkern.backend.storable import storable

__all__ = [
    "AllPairs",
    "BetweenClasses",
    "ClassMeans",
    "Complement",
    "Degrees",
    "Edges",
    "Factor",
    "GraphPair",
    "PairSet",
    "SparseWeights",
    "Weights",
    "WithinClasses",
]


@storable
@dataclass(frozen=True)
class PairSet:
    """Unordered pairs of one common weight ``v``: all pairs, less those inside a class, less some edges.

    ``importance`` holds sample weights ``p``; a pair counts ``p_i p_j`` times.
    """

    v: float
    importance: Array
    codes: Array | None = None
    removed: tuple[Array, Array] | None = None

    def edges(self) -> Edges:
        """The pairs one by one: ``O(n^2)`` of them."""
        xp = namespace(self.importance)
        p = self.importance
        n = int(p.shape[0])
        keep = xp.tril(xp.ones((n, n), dtype=xp.bool, device=device(p)), k=-1)
        if self.codes is not None:
            keep = keep & (self.codes[:, None] != self.codes[None, :])
        if self.removed is not None:
            upper = xp.maximum(*self.removed) * n + xp.minimum(*self.removed)
            gone = sum_by_index(xp.ones(upper.shape, dtype=p.dtype, device=device(p)), upper, n * n)
            keep = keep & (xp.reshape(gone, (n, n)) == 0)
        i, j = xp.nonzero(keep)
        return Edges(
            i, j, xp.full((i.shape[0],), self.v, dtype=p.dtype, device=device(p)), take_rows(p, i) * take_rows(p, j)
        )


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


def _one_hot(codes: Array, n_classes: int, like: Array) -> Array:
    xp = namespace(like)
    return xp.astype(codes[:, None] == xp.arange(n_classes, device=device(like))[None, :], like.dtype)


def _total(Z: Array, p: Array) -> Array:
    """Scatter about the weighted mean."""
    xp = namespace(Z)
    return weighted_gram(Z - (p @ Z)[None, :] / xp.sum(p), p)


def _within(Z: Array, p: Array, codes: Array, factors: Array) -> Array:
    """Sum over the classes of ``factors_k`` times the scatter about the class mean."""
    xp = namespace(Z)
    member = _one_hot(codes, int(factors.shape[0]), Z)
    mass = xp.maximum(p @ member, xp.full((), 1e-300, dtype=Z.dtype, device=device(Z)))
    means = (member * p[:, None]).T @ Z / mass[:, None]
    return weighted_gram(Z - member @ means, p * (member @ factors))


@storable
@dataclass(frozen=True)
class AllPairs:
    """``V_ij = v p_i p_j`` for every pair; with ``v = 1 / sum(p)`` the total scatter."""

    v: float
    importance: Array

    def scatter(self, Z: Array) -> Array:
        xp = namespace(Z)
        return self.v * float(xp.sum(self.importance)) * _total(Z, self.importance)

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
        xp = namespace(Z)
        ones = xp.ones((self.n_classes,), dtype=Z.dtype, device=device(Z))
        return _within(Z, self.importance, self.codes, ones)

    def pairs(self) -> Edges:
        raise ValueError("WithinClasses: pairs inside a class are drawn together, they have no margin.")


@storable
@dataclass(frozen=True)
class BetweenClasses:
    """``V_ij = v p_i p_j`` between classes, zero inside: all pairs less those inside each class."""

    codes: Array
    n_classes: int
    v: float
    importance: Array

    def scatter(self, Z: Array) -> Array:
        xp = namespace(Z)
        p = self.importance
        mass = p @ _one_hot(self.codes, self.n_classes, Z)
        return self.v * (float(xp.sum(p)) * _total(Z, p) - _within(Z, p, self.codes, mass))

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
        xp = namespace(Z)
        p = self.importance
        member = _one_hot(self.codes, self.n_classes, Z)
        mass = xp.maximum(p @ member, xp.full((), 1e-300, dtype=Z.dtype, device=device(Z)))
        means = (member * p[:, None]).T @ Z / mass[:, None]
        return weighted_gram(means - (p @ Z)[None, :] / xp.sum(p), mass)

    def pairs(self) -> Edges:
        raise ValueError(
            "ClassMeans: weights inside a class are negative there, which is no margin; use BetweenClasses."
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
        return Edges(i, j, v, take_rows(self.importance, i) * take_rows(self.importance, j))


@storable
@dataclass(frozen=True)
class Degrees:
    """``Z' diag(V 1) Z``: what locality preserving projections divide by."""

    V: Any
    importance: Array

    def scatter(self, Z: Array) -> Array:
        p = self.importance
        return weighted_gram(Z, p * asarray_like(self.V @ to_numpy(p), p, dtype=p.dtype))

    def pairs(self) -> Edges:
        raise ValueError("Degrees: a diagonal gives a scatter but no pairs.")


@storable
@dataclass(frozen=True)
class Complement:
    """``V_ij = v p_i p_j`` for every pair that is no edge of the sparse 0/1 matrix ``H``."""

    H: Any
    v: float
    importance: Array

    def scatter(self, Z: Array) -> Array:
        n = int(self.importance.shape[0])
        near = sparse_laplacian_scatter(self.H, Z, self.importance)
        if self.H.nnz == n * (n - 1):
            return namespace(near).zeros_like(near)  # not the rounding of a difference
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

    ``intrinsic`` is ``None`` where lengths are measured by the identity (PCA). ``margin`` holds the pairs of a margin
    method where they are not those of the penalty scatter.
    """

    intrinsic: Weights | None
    penalty: Weights
    margin: Weights | None = None

    def pairs(self) -> PairSet | Edges:
        """The pairs that a margin method pushes apart."""
        return (self.penalty if self.margin is None else self.margin).pairs()
