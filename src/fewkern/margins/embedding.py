"""Graph embedding, RSM (2): directions that maximize a ratio of two scatters, jointly or one by one (methods B3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.linalg import generalized_eigh
from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop, peel
from fewkern.margins.graphs import GraphPair
from fewkern.margins.rules import GraphRule
from fewkern.select.axes import Spread

# Singular values below this fraction of the largest are outside of the span.
_SPAN_RTOL = 1e-10
# The rank is clearly full if the smallest squared singular value exceeds this fraction of the largest; they are only
# computed with at least this many samples per feature.
_FULL_RANK_RATIO, _TALL_ROWS_PER_FEATURE = 1e-6, 4
# Squared lengths below this fraction of those of all samples are zero.
ZERO_RATIO = 1e-20
# Smallest ridge that keeps the scatter numerically nonsingular.
_MIN_RIDGE = 1e-13
# Eigenvalues of the penalty scatter below these fractions, of its largest one and of the trace of S, are rounding.
_RANK_RTOL, _RANK_RTOL_BESIDE_S = 1e-10, 1e-24
# No direction is left once the trace of the penalty scatter has fallen to this fraction of its first value.
_FLAT_TRACE_RATIO = 1e-12


def norm(w: Array) -> float:
    """Euclidean length of a vector, by pairwise summation."""
    return float(np.sqrt(np.sum(w * w)))


def reflect(A: Array, u: Array) -> tuple[Array, Array]:
    """``A H`` without its first column, and ``A u``, for the reflection ``H`` of the unit vector ``u`` to an axis."""
    sign = -1.0 if float(u[0]) < 0 else 1.0
    # v = u + sign(u_1) e_1: no cancellation, and v'v = 2 (1 + |u_1|)
    Au = A @ u
    Av = Au + sign * A[:, 0]
    scale = 1.0 / (1.0 + abs(float(u[0])))
    return A[:, 1:] - (scale * Av)[:, None] * u[None, 1:], Au


def reflect_both(S: Array, u: Array) -> Array:
    """``H S H`` without its first row and column: a symmetric matrix in the complement of ``u``."""
    return reflect(reflect(S, u)[0].T, u)[0]


@dataclass(frozen=True)
class Reflected:
    """Centered features in coordinates of the complement of the directions removed.

    A Householder reflection maps a removed direction to the first axis, which is dropped: the dimension shrinks by one,
    and the directions are orthonormal to rounding.
    """

    A: Array
    """One row per sample."""
    Q: Array
    """Maps the complement back to the original coordinates."""
    W: Array
    """Removed directions: orthonormal columns in original coordinates."""

    @classmethod
    def start(cls, Z: Array, V: Array | None = None) -> Reflected:
        """The features ``Z``, centered by the caller; with ``V``, in the span of its orthonormal columns."""
        Q = np.eye(Z.shape[1]) if V is None else V
        return cls(Z if V is None else Z @ V, Q, np.zeros((Q.shape[0], 0)))

    @property
    def dimension(self) -> int:
        """Number of remaining directions."""
        return int(self.A.shape[1])

    def largest_norm(self) -> float:
        """Length of the longest deflated sample."""
        return float(np.max(np.sum(self.A * self.A, axis=1))) ** 0.5 if self.dimension else 0.0

    def without(self, U: Array) -> tuple[Reflected, Array]:
        """The complement of the orthonormal columns of ``U``, and the projections of the samples on them."""
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
class Embedding:
    """Result of :func:`graph_embedding`."""

    directions: Array
    """``W``, one column per component, in the coordinates of the features."""
    values: Array
    """The ratio of every component."""
    stop: Stop
    """LIMIT, RANK, or FLAT (the penalty scatter vanishes in the complement)."""


def principal_space(Z: Array) -> Array:
    """Orthonormal basis ``V`` of the span of the centered rows, at their numerical rank."""
    if Z.shape[0] >= _TALL_ROWS_PER_FEATURE * Z.shape[1]:
        # the Gram matrix shows a clearly full rank at a fraction of the cost; then any basis does
        squares = np.linalg.eigvalsh(Z.T @ Z)
        if float(squares[0]) > _FULL_RANK_RATIO * float(squares[-1]):
            return np.eye(Z.shape[1])
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    floor = max(_SPAN_RTOL, float(np.finfo(np.float64).eps) * max(Z.shape)) * float(s[0])
    rank = int(np.count_nonzero(s > floor))
    return Vt[:rank, :].T


def regularized_scatter(pair: GraphPair, Z: Array, ridge: float) -> Array:
    r"""``S = Z'LZ + ridge tau I`` with ``tau = trace(Z'LZ) / q`` (methods B1); without it RSM (10) has no inverse."""
    S = None if pair.intrinsic is None else pair.intrinsic.scatter(Z)
    return _with_ridge(S, Z.shape[1], float(np.sum(Z * Z)), ridge)


def _with_ridge(S: Array | None, q: int, total: float, ridge: float) -> Array:
    """``S + ridge tau I``; ``total`` is the squared length of all samples.

    Where the intrinsic scatter is zero (one sample per class), lengths are measured by the identity.
    """
    tau = 0.0 if S is None else float(np.trace(S)) / max(q, 1)
    if S is None or tau <= ZERO_RATIO * total:
        return np.eye(q)
    return S + max(ridge, _MIN_RIDGE) * tau * np.eye(q)


def penalty_rank(B: Array, S: Array) -> int:
    """Numerical rank of the penalty scatter ``B``, whose rounding errors may be large beside ``S``."""
    values = np.linalg.eigvalsh(B)
    floor = max(_RANK_RTOL * float(values[-1]), _RANK_RTOL_BESIDE_S * float(np.trace(S)))
    return int(np.count_nonzero(values > floor))


@dataclass
class ScatterDeflation:
    """State of :func:`peel`: features and two scatters in the complement of the directions found so far."""

    space: Reflected
    S: Array
    B: Array

    def __post_init__(self) -> None:
        self.first = float(np.trace(self.B))

    def best(self) -> tuple[Array, float]:
        """Unit vector of the largest ratio ``w'Bw / w'Sw``, and that ratio."""
        values, vectors = generalized_eigh(self.B, self.S)
        u = vectors[:, 0]
        return u / norm(u), float(values[0])

    def find(self) -> tuple[Array, Any] | Stop:
        """The next direction, and the record of it."""
        # not by the ratio: with a small ridge it falls by many orders once the null space of S is used up
        if float(np.trace(self.B)) <= _FLAT_TRACE_RATIO * self.first:
            return Stop.FLAT
        return self.best()

    def remove(self, found: tuple[Array, Any]) -> list[Any]:
        """Deflate."""
        u, record = found
        self.space = self.space.without(u[:, None])[0]
        self.S, self.B = reflect_both(self.S, u), reflect_both(self.B, u)
        return [record]


def graph_embedding(
    Z: Array, pair: GraphPair, n_components: int | None = None, recursive: bool = False, ridge: float = 1e-2
) -> Embedding:
    r"""Directions of the largest ratio

    .. math:: \frac{w^T S_p w}{w^T S w}, \qquad S = Z^T L Z + \rho \tau I, \quad S_p = Z^T L' Z .

    Parameters
    ----------
    Z : array of shape (n, q)
        Centered features.
    pair : GraphPair
    n_components : int or None
        None: the rank of the penalty scatter.
    recursive : bool
        One by one, each orthogonal to the previous ones (for Fisher's graph the Foley-Sammon discriminant vectors);
        otherwise the generalized eigenvectors, which are orthonormal in the metric of the denominator.
    ridge : float
        :math:`\rho`, in units of the mean diagonal :math:`\tau` of :math:`Z^T L Z`.

    Returns
    -------
    Embedding

    Notes
    -----
    The samples are first expressed in an orthonormal basis of their span (methods B3), which removes directions in
    which no pair differs. Cost: :math:`O(n q \min(n, q))` for that, then :math:`O(q^3)`, times the number of
    components if recursive.
    """
    V = principal_space(Z)
    Z = Z @ V
    return _largest_ratios(regularized_scatter(pair, Z, ridge), pair.penalty.scatter(Z), V, n_components, recursive)


def embedding_of_sums(
    spread: Spread, rule: GraphRule, n_components: int | None = None, recursive: bool = False, ridge: float = 1e-2
) -> Embedding:
    """The same as :func:`graph_embedding`, for an additive rule, from sums over rows."""
    intrinsic, penalty = rule.scatters(spread)
    S = _with_ridge(intrinsic, len(spread.s), float(np.sum(spread.s**2)), ridge)
    return _largest_ratios(S, penalty, spread.V, n_components, recursive)


def _largest_ratios(S: Array, B: Array, V: Array, n_components: int | None, recursive: bool) -> Embedding:
    """Directions from the two scatters, in coordinates ``V`` of the span of the samples."""
    rank = int(S.shape[0])
    if rank == 0:
        return Embedding(V, np.zeros(0), Stop.RANK)
    seen = penalty_rank(B, S)
    if seen == 0:
        return Embedding(V[:, :0], np.zeros(0), Stop.FLAT)
    wanted = seen if n_components is None else n_components
    if recursive:
        # the scatters are all that is known of the samples
        state = ScatterDeflation(Reflected.start(np.zeros((0, V.shape[0])), V), S, B)
        peeled = peel(state, min(wanted, rank))
        stop = Stop.RANK if len(peeled.records) == rank < wanted else peeled.stop
        return Embedding(state.space.W, np.array(peeled.records), stop)
    # eigenvectors of the eigenvalue zero are an arbitrary basis of the null space of the penalty
    count = min(wanted, seen)
    values, vectors = generalized_eigh(B, S)
    stop = Stop.LIMIT if count == wanted else Stop.RANK if count == rank else Stop.FLAT
    return Embedding(V @ vectors[:, :count], values[:count].copy(), stop)
