"""Samples of a recursion over directions: find a direction, remove it, continue in the complement.

Two equivalent forms (methods A1, A2). :class:`Reflected` holds explicit centered features: a Householder reflection
maps the removed direction to the first axis, which is dropped, so the dimension shrinks by one, and the directions are
orthonormal to rounding. :class:`Constrained` leaves ``X`` as it is (for sparse samples) and carries the directions as
constraints ``<w, w_j> = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from fewkern.arrays.linalg import weighted_gram
from fewkern.arrays.namespace import Array

__all__ = [
    "Constrained",
    "Points",
    "Reflected",
    "DensePoints",
    "Space",
    "no_columns",
    "norm",
    "reflect",
    "reflect_both",
]


class Points(Protocol):
    """Samples ``x_i`` through products: all that a solver of hinges needs."""

    @property
    def width(self) -> int:
        """Number of entries of ``w``."""

    def times(self, w: Array, /) -> Array:
        """Projections of all samples on ``w``."""

    def transposed_times(self, a: Array, /) -> Array:
        """``sum_i a_i x_i``."""

    def normal(self, theta: Array, /) -> Array:
        """``sum_i theta_i x_i x_i'``."""

    def subset(self, rows: Array, /) -> Points:
        """Only these samples."""


class Space(Points, Protocol):
    """Samples from which directions can be removed."""

    @property
    def n(self) -> int:
        """Number of samples."""

    @property
    def dimension(self) -> int:
        """Number of remaining directions."""

    @property
    def W(self) -> Array:
        """Removed directions: orthonormal columns in original coordinates."""

    def largest_norm(self) -> float:
        """Length of the longest deflated sample."""

    def without(self, U: Array, /) -> tuple[Self, Array]:
        """The complement of the orthonormal columns of ``U``, and the projections of the samples on them."""


def norm(w: Array) -> float:
    """Euclidean length of a vector, by pairwise summation."""
    return float(np.sqrt(np.sum(w * w)))


def reflect(A: Array, u: Array) -> tuple[Array, Array]:
    """``A H`` without its first column, and ``A u``, for the reflection ``H`` of the unit vector ``u`` to an axis."""
    sign = -1.0 if float(u[0]) < 0 else 1.0
    # v = u + sign(u_1) e_1: no cancellation, and v'v = 2 (1 + |u_1|)
    head = u[:1] + sign
    v = np.concatenate([head, u[1:]])
    Au = A @ u
    Av = Au + sign * A[:, 0]
    scale = 1.0 / (1.0 + abs(float(u[0])))
    return A[:, 1:] - (scale * Av)[:, None] * v[None, 1:], Au


def reflect_both(S: Array, u: Array) -> Array:
    """``H S H`` without its first row and column: a symmetric matrix in the complement of ``u``."""
    return reflect(reflect(S, u)[0].T, u)[0]


def no_columns(rows: int) -> Array:
    """A matrix without columns."""
    return np.zeros((rows, 0))


@dataclass(frozen=True)
class DensePoints:
    """Explicit samples, the rows of ``A``."""

    A: Array

    @property
    def n(self) -> int:
        return int(self.A.shape[0])

    @property
    def width(self) -> int:
        return int(self.A.shape[1])

    def times(self, w: Array) -> Array:
        return self.A @ w

    def transposed_times(self, a: Array) -> Array:
        return self.A.T @ a

    def normal(self, theta: Array) -> Array:
        return weighted_gram(self.A, theta)

    def subset(self, rows: Array) -> DensePoints:
        return DensePoints(self.A[rows])


@dataclass(frozen=True)
class Reflected(DensePoints):
    """Explicit features ``A`` in coordinates of the complement; ``Q`` maps them back to the original ones."""

    Q: Array
    W: Array

    @classmethod
    def start(cls, Z: Array, V: Array | None = None) -> Reflected:
        """The features ``Z``, centered by the caller; with ``V``, in the span of its orthonormal columns."""
        Q = np.eye(Z.shape[1]) if V is None else V
        return cls(Z if V is None else Z @ V, Q, no_columns(int(Q.shape[0])))

    @property
    def dimension(self) -> int:
        return self.width

    def largest_norm(self) -> float:
        return float(np.max(np.sum(self.A * self.A, axis=1))) ** 0.5 if self.dimension else 0.0

    def without(self, U: Array) -> tuple[Reflected, Array]:
        A, Q = self.A, self.Q
        directions, features = [self.W], []
        while U.shape[1]:
            u = U[:, 0] / norm(U[:, 0])
            A, z = reflect(A, u)
            Q, w = reflect(Q, u)
            U = reflect(U.T, u)[0].T[:, 1:]
            directions.append(w[:, None])
            features.append(z)
        return Reflected(A, Q, np.concatenate(directions, axis=1)), np.stack(features, axis=1)


@dataclass(frozen=True)
class Constrained:
    """Samples ``X - 1 mean'`` (never formed) under ``<w, w_j> = 0`` for the orthonormal columns of ``W``.

    ``norms`` holds the squared lengths of the deflated samples. Directions are in original coordinates.
    """

    X: Array
    mean: Array
    W: Array
    norms: Array

    @classmethod
    def start(cls, X: Array, mean: Array, norms: Array) -> Constrained:
        """No direction removed; ``norms`` are squared lengths of the centered rows."""
        return cls(X, mean, no_columns(int(mean.shape[0])), norms)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def width(self) -> int:
        return int(self.W.shape[0])

    @property
    def dimension(self) -> int:
        """Number of remaining directions: ``n`` centered samples span at most ``n - 1`` dimensions."""
        return min(self.width, self.n - 1) - int(self.W.shape[1])

    def _project(self, w: Array) -> Array:
        return w - self.W @ (self.W.T @ w)

    def times(self, w: Array) -> Array:
        w = self._project(w)
        return self.X @ w - self.mean @ w

    def transposed_times(self, a: Array) -> Array:
        total = np.sum(a, axis=0)
        shift = self.mean * total if a.ndim == 1 else self.mean[:, None] * total[None, :]
        return self._project(self.X.T @ a - shift)

    def normal(self, theta: Array) -> Array:
        """``sum_i theta_i x_i x_i'``, of the size of the feature space."""
        cross = (self.X.T @ theta)[:, None] * self.mean[None, :]
        N = weighted_gram(self.X, theta) - cross - cross.T
        N = N + np.sum(theta) * self.mean[:, None] * self.mean[None, :]
        return self._project(self._project(N).T)

    def subset(self, rows: Array) -> Constrained:
        return Constrained(self.X[rows], self.mean, self.W, self.norms[rows])

    def largest_norm(self) -> float:
        return max(float(np.max(self.norms)), 0.0) ** 0.5

    def without(self, U: Array) -> tuple[Constrained, Array]:
        # projected twice: one pass leaves rounding errors that the recursion would accumulate
        Q, R = np.linalg.qr(self._project(self._project(U)))
        U = np.where(np.diagonal(R)[None, :] < 0, -Q, Q)
        Z = self.X @ U - (self.mean @ U)[None, :]
        norms = self.norms - np.sum(Z * Z, axis=1)
        return Constrained(self.X, self.mean, np.concatenate([self.W, U], axis=1), norms), Z
