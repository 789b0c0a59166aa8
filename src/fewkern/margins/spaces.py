"""Samples seen by a recursion over directions: find a direction, take it out, go on in the complement.

Two forms of the same thing (methods A1, A2). :class:`Reflected` holds explicit centred features and turns the direction
that is taken out into the first axis by a Householder reflection, which is then dropped: the dimension shrinks by
one, and the directions are orthonormal to rounding. :class:`Constrained` leaves ``X`` as it is (sparse, say) and
carries the directions as constraints ``<w, w_j> = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fewkern.backend.linalg import weighted_gram
from fewkern.backend.namespace import Array, device, namespace, take_rows

__all__ = ["Constrained", "Reflected", "Space", "reflect"]


class Space(Protocol):
    """What a direction finder may ask of the samples."""

    @property
    def dimension(self) -> int: ...
    @property
    def coordinates(self) -> int: ...
    @property
    def like(self) -> Array: ...
    def times(self, w: Array) -> Array: ...
    def transposed_times(self, a: Array) -> Array: ...
    def normal(self, theta: Array) -> Array: ...
    def subset(self, rows: Array) -> Space: ...
    def largest_norm(self) -> float: ...
    def without(self, U: Array) -> tuple[Space, Array, Array]: ...


def reflect(A: Array, u: Array) -> tuple[Array, Array]:
    """``A H`` without its first column, and ``A u``, for the reflection ``H`` of the unit vector ``u`` to an axis."""
    xp = namespace(A, u)
    sign = -1.0 if float(u[0]) < 0 else 1.0
    # v = u + sign(u_1) e_1: no cancellation, and v'v = 2 (1 + |u_1|)
    head = u[:1] + sign
    v = xp.concat([head, u[1:]])
    Au = A @ u
    Av = Au + sign * A[:, 0]
    scale = 1.0 / (1.0 + abs(float(u[0])))
    return A[:, 1:] - (scale * Av)[:, None] * v[None, 1:], Au


@dataclass(frozen=True)
class Reflected:
    """Explicit features ``A`` in coordinates of the complement; ``Q`` takes those back to the original ones."""

    A: Array
    Q: Array

    @classmethod
    def start(cls, Z: Array) -> Reflected:
        """The features ``Z``, centred by the caller, nothing taken out yet."""
        return cls(Z, namespace(Z).eye(Z.shape[1], dtype=Z.dtype, device=device(Z)))

    @property
    def dimension(self) -> int:
        """Directions left."""
        return int(self.A.shape[1])

    @property
    def coordinates(self) -> int:
        """Entries of a direction."""
        return int(self.Q.shape[0])

    @property
    def like(self) -> Array:
        """An array whose library, device and dtype the results have."""
        return self.A

    def times(self, w: Array) -> Array:
        """Projections of all samples on ``w``."""
        return self.A @ w

    def transposed_times(self, a: Array) -> Array:
        """``sum_i a_i x_i``."""
        return self.A.T @ a

    def normal(self, theta: Array) -> Array:
        """``sum_i theta_i x_i x_i'``."""
        return weighted_gram(self.A, theta)

    def subset(self, rows: Array) -> Reflected:
        """The same space with only these samples."""
        return Reflected(take_rows(self.A, rows), self.Q)

    def largest_norm(self) -> float:
        """Length of the longest sample that is left."""
        xp = namespace(self.A)
        return float(xp.max(xp.sum(self.A * self.A, axis=1))) ** 0.5 if self.dimension else 0.0

    def without(self, U: Array) -> tuple[Reflected, Array, Array]:
        """The space less the orthonormal columns of ``U``, those in original coordinates, and the features."""
        xp = namespace(U)
        A, Q = self.A, self.Q
        directions, features = [], []
        while U.shape[1]:
            u = U[:, 0] / xp.linalg.vector_norm(U[:, 0])
            A, z = reflect(A, u)
            Q, w = reflect(Q, u)
            U = reflect(U.T, u)[0].T[:, 1:]
            directions.append(w)
            features.append(z)
        return Reflected(A, Q), xp.stack(directions, axis=1), xp.stack(features, axis=1)


@dataclass(frozen=True)
class Constrained:
    """Samples ``X - 1 mean'`` (never formed) under ``<w, w_j> = 0`` for the orthonormal columns of ``W``.

    ``norms`` holds the squared lengths of the samples that are left. Directions live in original coordinates.
    """

    X: Array
    mean: Array
    W: Array
    norms: Array

    @classmethod
    def start(cls, X: Array, mean: Array, norms: Array) -> Constrained:
        """Nothing taken out yet; ``norms`` are squared lengths of the centred rows."""
        xp = namespace(mean)
        return cls(X, mean, xp.zeros((mean.shape[0], 0), dtype=mean.dtype, device=device(mean)), norms)

    @property
    def dimension(self) -> int:
        """Directions left: centred samples have one dimension less than their number."""
        return min(int(self.W.shape[0]), int(self.X.shape[0]) - 1) - int(self.W.shape[1])

    @property
    def coordinates(self) -> int:
        """Entries of a direction."""
        return int(self.W.shape[0])

    @property
    def like(self) -> Array:
        """An array whose library, device and dtype the results have."""
        return self.mean

    def _project(self, w: Array) -> Array:
        return w - self.W @ (self.W.T @ w)

    def times(self, w: Array) -> Array:
        """Projections of all samples on ``w``."""
        w = self._project(w)
        return self.X @ w - self.mean @ w

    def transposed_times(self, a: Array) -> Array:
        """``sum_i a_i x_i``."""
        xp = namespace(self.mean)
        total = xp.sum(a, axis=0)
        shift = self.mean * total if a.ndim == 1 else self.mean[:, None] * total[None, :]
        return self._project(self.X.T @ a - shift)

    def normal(self, theta: Array) -> Array:
        """``sum_i theta_i x_i x_i'``, of the size of the feature space."""
        xp = namespace(self.mean)
        cross = (self.X.T @ theta)[:, None] * self.mean[None, :]
        N = weighted_gram(self.X, theta) - cross - cross.T
        N = N + xp.sum(theta) * self.mean[:, None] * self.mean[None, :]
        return self._project(self._project(N).T)

    def subset(self, rows: Array) -> Constrained:
        """The same space with only these samples."""
        return Constrained(take_rows(self.X, rows), self.mean, self.W, take_rows(self.norms, rows))

    def largest_norm(self) -> float:
        """Length of the longest sample that is left."""
        xp = namespace(self.norms)
        return max(float(xp.max(self.norms)), 0.0) ** 0.5

    def without(self, U: Array) -> tuple[Constrained, Array, Array]:
        """The space less the orthonormal columns of ``U``, those in original coordinates, and the features."""
        xp = namespace(U)
        # Projected twice: one pass leaves rounding that the recursion would carry along.
        Q, R = xp.linalg.qr(self._project(self._project(U)))
        U = xp.where(xp.linalg.diagonal(R)[None, :] < 0, -Q, Q)
        Z = self.X @ U - (self.mean @ U)[None, :]
        norms = self.norms - xp.sum(Z * Z, axis=1)
        return Constrained(self.X, self.mean, xp.concat([self.W, U], axis=1), norms), U, Z
