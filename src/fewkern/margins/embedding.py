r"""Graph embedding: directions that maximise a ratio of two scatters, all at once or one by one (methods B3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fewkern.backend.linalg import generalized_eigh
from fewkern.backend.namespace import Array, device, namespace
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.margins.graphs import GraphPair
from fewkern.margins.spaces import reflect

__all__ = ["Embedding", "graph_embedding", "principal_space", "ridged", "seen_directions"]


@dataclass(frozen=True)
class Embedding:
    """Result of :func:`graph_embedding`."""

    directions: Array
    """``W``, one column per component, in the coordinates of the features."""
    values: Array
    """The ratio that every component attains."""
    rank: int
    """Dimension of the span of the samples."""
    stop: str
    """ "limit", "rank", or "flat" (the penalty sees nothing in what is left)."""


def principal_space(Z: Array, tol: float = 1e-10) -> Array:
    """Orthonormal basis ``V`` of the span of the centred rows: singular values above ``tol`` of the largest."""
    xp = namespace(Z)
    if 0 in Z.shape:
        return xp.zeros((Z.shape[1], 0), dtype=Z.dtype, device=device(Z))
    if Z.shape[0] >= 4 * Z.shape[1]:
        # Squares show a clearly full rank at a fraction of the cost; then any basis does.
        squares = xp.linalg.eigvalsh(Z.T @ Z)
        if float(squares[0]) > 1e-6 * float(squares[-1]):
            return xp.eye(Z.shape[1], dtype=Z.dtype, device=device(Z))
    _, s, Vt = xp.linalg.svd(Z, full_matrices=False)
    floor = max(tol, float(xp.finfo(Z.dtype).eps) * max(Z.shape)) * float(s[0])
    rank = int(xp.sum(xp.astype(s > floor, xp.int64)))
    return Vt[:rank, :].T


def ridged(pair: GraphPair, Z: Array, rho: float) -> Array:
    r"""``S = Z'LZ + rho tau I`` with ``tau = trace(Z'LZ) / q`` (methods B1); without it RSM (10) has no inverse.

    Where the intrinsic scatter is zero (one sample per class), lengths are measured by the identity.
    """
    xp = namespace(Z)
    q = int(Z.shape[1])
    identity = xp.eye(q, dtype=Z.dtype, device=device(Z))
    if pair.intrinsic is None:
        return identity
    S = pair.intrinsic.scatter(Z)
    tau = float(xp.linalg.trace(S)) / max(q, 1)
    if tau <= 1e-20 * float(xp.sum(Z * Z)):
        return identity
    # never singular to rounding, even with rho = 0
    return S + max(rho, 1e-13) * tau * identity


def seen_directions(B: Array, S: Array) -> int:
    """Rank of the penalty scatter ``B``: directions that it sees. Beside ``S`` its rounding must not look like one."""
    xp = namespace(B)
    values = xp.linalg.eigvalsh(B)
    floor = max(1e-10 * float(values[-1]), 1e-24 * float(xp.linalg.trace(S)))
    return int(xp.sum(xp.astype(values > floor, xp.int64)))


def graph_embedding(
    Z: Array,
    pair: GraphPair,
    *,
    n_components: int | None = None,
    recursive: bool = False,
    rho: float = 1e-2,
    against: Literal["intrinsic", "total"] = "intrinsic",
    scaling: Literal["scatter", "unit"] = "scatter",
) -> Embedding:
    r"""Directions of the largest ratio

    .. math:: \frac{w^T S_p w}{w^T S w}, \qquad S = Z^T L Z + \rho \tau I, \quad S_p = Z^T L' Z .

    Parameters
    ----------
    Z : array of shape (n, q)
        Centred features.
    pair : GraphPair
    n_components : int or None
        ``None``: as many as the penalty scatter has rank.
    recursive : bool
        One by one, each orthogonal to those before: for Fisher's graph the Foley-Sammon set of orthogonal discriminant
        vectors. Otherwise the generalised eigenvectors, which are orthogonal in the metric ``S``.
    rho : float
        Ridge, in units of the mean diagonal of ``Z'LZ``.
    against : {"intrinsic", "total"}
        Denominator: ``S``, or ``S + S_p``.
    scaling : {"scatter", "unit"}
        Length of the eigenvectors: one in the metric of the denominator, or one. Recursive directions are orthonormal.

    Returns
    -------
    Embedding

    Notes
    -----
    The samples are first moved to an orthonormal basis of their span (methods B3), where directions seen by no pair are
    gone. Cost: :math:`O(n q \min(n, q))` for that, then :math:`O(q^3)`, times the number of components if recursive.
    """
    xp = namespace(Z)
    V = principal_space(Z)
    rank = int(V.shape[1])
    Z = Z @ V
    B = pair.penalty.scatter(Z)
    S = ridged(pair, Z, rho)
    if against == "total":
        S = S + B
    if rank == 0:
        return Embedding(V, xp.zeros((0,), dtype=Z.dtype, device=device(Z)), 0, "rank")
    values, vectors = generalized_eigh(B, S)
    seen = seen_directions(B, S)
    wanted = seen if n_components is None else n_components
    if not recursive:
        # eigenvectors of the value zero are an arbitrary basis of what the penalty does not see
        count = min(wanted, seen)
        W = vectors[:, :count]
        if scaling == "unit":
            W = W / xp.linalg.vector_norm(W, axis=0)[None, :]
        return Embedding(
            V @ W, values[:count], rank, "limit" if count == wanted > 0 else "rank" if count == rank else "flat"
        )

    state = {"B": B, "S": S, "Q": V}

    def find(count: int) -> tuple[Array, float] | Stop:
        if state["S"].shape[0] == 0:
            return Stop("rank")
        ratios, directions = (values, vectors) if count == 0 else generalized_eigh(state["B"], state["S"])
        # not by the ratio: with a small rho it falls by many orders once the null space of S is used up
        if seen == 0 or float(xp.linalg.trace(state["B"])) <= 1e-12 * float(xp.linalg.trace(B)):
            return Stop("flat")
        u = directions[:, 0]
        return u / xp.linalg.vector_norm(u), float(ratios[0])

    def remove(found: tuple[Array, float]) -> list[tuple[Array, float]]:
        u, value = found
        for name in ("B", "S"):
            state[name] = reflect(reflect(state[name], u)[0].T, u)[0]
        state["Q"], w = reflect(state["Q"], u)
        return [(w, value)]

    peeled = peel(find, remove, min(wanted, rank))  # one more would find nothing
    W = xp.stack([w for w, _ in peeled.records], axis=1) if peeled.records else V[:, :0]
    ratios = xp.asarray([value for _, value in peeled.records], dtype=Z.dtype, device=device(Z))
    return Embedding(W, ratios, rank, "rank" if W.shape[1] == rank < wanted else peeled.stop)
