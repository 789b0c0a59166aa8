"""Graph embedding: directions that maximize a ratio of two scatters, jointly or one by one (methods B3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewkern.arrays.linalg import generalized_eigh
from fewkern.arrays.namespace import Array
from fewkern.core.path import Stop
from fewkern.core.peel import peel
from fewkern.margins.graphs import GraphPair
from fewkern.margins.rules import AdditiveRule
from fewkern.margins.spaces import no_columns, norm, reflect, reflect_both
from fewkern.select.axes import Spread

__all__ = [
    "Embedding",
    "Ratio",
    "Scatters",
    "embedding_of_sums",
    "graph_embedding",
    "principal_space",
    "regularized_scatter",
    "penalty_rank",
]

# Singular values below this fraction of the largest are outside of the span.
_SPAN_RTOL = 1e-10
# The rank is clearly full if the smallest squared singular value exceeds this fraction of the largest; ...
_FULL_RANK_RATIO = 1e-6
# ... they are computed only with at least this many samples per feature.
_TALL_ROWS_PER_FEATURE = 4
# An intrinsic scatter below this fraction of the total scatter is zero.
_ZERO_SCATTER_RATIO = 1e-20
# Smallest ridge that keeps the scatter numerically nonsingular.
_MIN_RIDGE = 1e-13
# Eigenvalues of the penalty scatter below these fractions, of its largest one and of the trace of S, are rounding.
_RANK_RTOL, _RANK_RTOL_BESIDE_S = 1e-10, 1e-24
# No direction is left once the trace of the penalty scatter has fallen to this fraction of its first value.
FLAT_TRACE_RATIO = 1e-12


@dataclass(frozen=True)
class Ratio:
    """Settings: the ratio to maximize, and the number of directions."""

    n_components: int | None = None
    """None: the rank of the penalty scatter."""
    recursive: bool = False
    """One by one, each orthogonal to the previous ones (for Fisher's graph the Foley-Sammon discriminant vectors);
    otherwise the generalized eigenvectors, which are orthogonal in the metric of the denominator."""
    ridge: float = 1e-2
    r"""In units of the mean diagonal of :math:`Z^T L Z`."""
    against: str = "intrinsic"
    """Denominator: "intrinsic" is ``S``, "total" is ``S + S_p``."""
    scaling: str = "scatter"
    """Eigenvectors have length one: "scatter" in the metric of the denominator, "unit" in the Euclidean one."""


@dataclass(frozen=True)
class Embedding:
    """Result of :func:`graph_embedding`."""

    directions: Array
    """``W``, one column per component, in the coordinates of the features."""
    values: Array
    """The ratio of every component."""
    rank: int
    """Dimension of the span of the samples."""
    stop: Stop
    """LIMIT, RANK, or FLAT (the penalty scatter vanishes in the complement)."""


def principal_space(Z: Array) -> Array:
    """Orthonormal basis ``V`` of the span of the centered rows, at their numerical rank."""
    if 0 in Z.shape:
        return no_columns(int(Z.shape[1]))
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
    return _with_ridge(S, np.eye(Z.shape[1]), float(np.sum(Z * Z)), ridge)


def _with_ridge(S: Array | None, identity: Array, total: float, ridge: float) -> Array:
    """``S + ridge tau I``; ``total`` is the squared length of all samples.

    Where the intrinsic scatter is zero (one sample per class), lengths are measured by the identity.
    """
    if S is None:
        return identity
    tau = float(np.trace(S)) / max(int(S.shape[0]), 1)
    if tau <= _ZERO_SCATTER_RATIO * total:
        return identity
    return S + max(ridge, _MIN_RIDGE) * tau * identity


def penalty_rank(B: Array, S: Array) -> int:
    """Numerical rank of the penalty scatter ``B``, whose rounding errors may be large beside ``S``."""
    values = np.linalg.eigvalsh(B)
    floor = max(_RANK_RTOL * float(values[-1]), _RANK_RTOL_BESIDE_S * float(np.trace(S)))
    return int(np.count_nonzero(values > floor))


@dataclass(frozen=True)
class Scatters:
    """Two scatters in the complement of the directions found so far; ``Q`` maps it back to the features."""

    S: Array
    B: Array
    Q: Array

    @property
    def dimension(self) -> int:
        """Dimension of the complement."""
        return int(self.S.shape[0])

    def best(self) -> tuple[Array, float]:
        """Unit vector of the largest ratio ``w'Bw / w'Sw``, and that ratio."""
        values, vectors = generalized_eigh(self.B, self.S)
        u = vectors[:, 0]
        return u / norm(u), float(values[0])

    def without(self, u: Array) -> tuple[Scatters, Array]:
        """The complement of the unit vector ``u``, and ``u`` in the coordinates of the features."""
        Q, w = reflect(self.Q, u)
        return Scatters(reflect_both(self.S, u), reflect_both(self.B, u), Q), w


def graph_embedding(Z: Array, pair: GraphPair, how: Ratio) -> Embedding:
    r"""Directions of the largest ratio

    .. math:: \frac{w^T S_p w}{w^T S w}, \qquad S = Z^T L Z + \rho \tau I, \quad S_p = Z^T L' Z .

    Parameters
    ----------
    Z : array of shape (n, q)
        Centered features.
    pair : GraphPair
    how : Ratio

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
    return _largest_ratios(Scatters(regularized_scatter(pair, Z, how.ridge), pair.penalty.scatter(Z), V), how)


def embedding_of_sums(spread: Spread, rule: AdditiveRule, how: Ratio) -> Embedding:
    """The same as :func:`graph_embedding`, from sums over rows."""
    s = spread.s
    intrinsic, penalty = rule.scatters(spread)
    identity = np.eye(s.shape[0])
    S = _with_ridge(intrinsic, identity, float(np.sum(s * s)), how.ridge)
    return _largest_ratios(Scatters(S, penalty, spread.V), how)


def _largest_ratios(scatters: Scatters, how: Ratio) -> Embedding:
    """Directions from the two scatters, in coordinates of the span of the samples."""
    S, B, V = scatters.S, scatters.B, scatters.Q
    rank = scatters.dimension
    if rank == 0:
        return Embedding(V, np.zeros(0), 0, Stop.RANK)
    if how.against == "total":
        S = S + B
    seen = penalty_rank(B, S)
    wanted = seen if how.n_components is None else how.n_components
    if how.recursive:
        return _one_by_one(Scatters(S, B, V), min(wanted, rank), seen, wanted)
    # eigenvectors of the eigenvalue zero are an arbitrary basis of the null space of the penalty
    count = min(wanted, seen)
    values, vectors = generalized_eigh(B, S)
    W = vectors[:, :count]
    if how.scaling == "unit":
        W = W / np.linalg.norm(W, axis=0)[None, :]
    stop = Stop.LIMIT if count == wanted > 0 else Stop.RANK if count == rank else Stop.FLAT
    return Embedding(V @ W, values[:count].copy(), rank, stop)


def _one_by_one(scatters: Scatters, limit: int, seen: int, wanted: int) -> Embedding:
    rank = scatters.dimension
    state = _ScatterDeflation(scatters, float(np.trace(scatters.B)), seen > 0)
    peeled = peel(state, limit)
    W = np.stack([w for w, _ in peeled.records], axis=1) if peeled.records else scatters.Q[:, :0]
    values = np.array([value for _, value in peeled.records])
    return Embedding(W, values, rank, Stop.RANK if W.shape[1] == rank < wanted else peeled.stop)


@dataclass
class _ScatterDeflation:
    """State of :func:`peel`: the two scatters, deflated."""

    scatters: Scatters
    first: float
    """Trace of the penalty scatter before deflation."""
    sees: bool
    """Whether the penalty scatter has a positive rank."""

    def find(self) -> tuple[Array, float] | Stop:
        if self.scatters.dimension == 0:
            return Stop.RANK
        trace = float(np.trace(self.scatters.B))
        # not by the ratio: with a small ridge it falls by many orders once the null space of S is used up
        if not self.sees or trace <= FLAT_TRACE_RATIO * self.first:
            return Stop.FLAT
        return self.scatters.best()

    def remove(self, found: tuple[Array, float]) -> list[tuple[Array, float]]:
        u, value = found
        self.scatters, w = self.scatters.without(u)
        return [(w, value)]
