"""Rules that turn samples and labels into a graph pair: the rows of RSM's table (methods B1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fewkern.backend.namespace import Array, asarray_like, is_sparse, namespace, take_rows, to_numpy
from fewkern.backend.neighbours import (
    class_neighbours,
    nearest_between,
    neighbours,
    scaled_affinity,
    split_by_label,
    symmetric_weights,
)
from fewkern.backend.storable import storable
from fewkern.margins.graphs import (
    AllPairs,
    BetweenClasses,
    ClassMeans,
    Complement,
    Degrees,
    Factor,
    GraphPair,
    SparseWeights,
    WithinClasses,
)

__all__ = ["GraphRule", "as_graph", "fisher", "lfda", "lpp", "lsda", "mfa", "pca", "udp"]

_SUPERVISED = {"fisher": True, "pca": False, "lpp": False, "udp": False, "mfa": True, "lfda": True, "lsda": True}


@storable
@dataclass(frozen=True)
class GraphRule:
    """A named graph with its numbers; :meth:`build` looks at the samples."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def supervised(self) -> bool:
        """Whether the graph needs classes."""
        return _SUPERVISED[self.name]

    def build(self, Z: Array, codes: Array | None, n_classes: int, importance: Array) -> GraphPair:
        """The graph pair of the samples ``Z``; ``codes`` are classes 0, 1, ... and ``importance`` sample weights."""
        return _BUILD[self.name](Z, codes, n_classes, importance, **self.params)


def fisher() -> GraphRule:
    """Fisher discriminant: together inside a class, apart between classes.

    The scatters are Fisher's own, from class sums. A margin method pushes apart all pairs of different classes with the
    weight ``1/n``.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.fisher()
    GraphRule(name='fisher', params={})
    """
    return GraphRule("fisher")


def pca() -> GraphRule:
    """Principal components: all pairs apart, lengths measured by the identity.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.pca().supervised
    False
    """
    return GraphRule("pca")


def lpp(neighbors: int = 3) -> GraphRule:
    """Locality preserving projections: nearest neighbours together, all pairs apart.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.lpp(neighbors=5)
    GraphRule(name='lpp', params={'neighbors': 5})
    """
    return GraphRule("lpp", {"neighbors": int(neighbors)})


def udp(neighbors: int = 3) -> GraphRule:
    """Unsupervised discriminant projection: nearest neighbours together, all other pairs apart.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.udp(neighbors=1).supervised
    False
    """
    return GraphRule("udp", {"neighbors": int(neighbors)})


def mfa(within: int = 3, between: int = 100) -> GraphRule:
    """Marginal Fisher analysis: neighbours of the same class together, the nearest pairs of different classes apart.

    Parameters
    ----------
    within : int, default 3
        Neighbours of the same class.
    between : int, default 100
        Shortest pairs from every class to all others.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.mfa(within=5).params
    {'within': 5, 'between': 100}
    """
    return GraphRule("mfa", {"within": int(within), "between": int(between)})


def lfda(neighbors: int = 7) -> GraphRule:
    """Local Fisher discriminant: neighbours inside a class together by a locally scaled affinity, classes apart.

    Only the affinity of nearest neighbours counts; that of the other pairs of a class, which the method as published
    adds, is close to zero where classes are not very elongated.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.lfda().params
    {'neighbors': 7}
    """
    return GraphRule("lfda", {"neighbors": int(neighbors)})


def lsda(neighbors: int = 15) -> GraphRule:
    """Locality sensitive discriminant: the neighbour graph, split by label into together and apart.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.lsda().supervised
    True
    """
    return GraphRule("lsda", {"neighbors": int(neighbors)})


def _mass(p: Array) -> float:
    return float(namespace(p).sum(p))


def _fisher(Z: Array, codes: Array, c: int, p: Array) -> GraphPair:  # noqa: ARG001
    # The uniform weight of the margin pairs only sets the scale of delta (methods B1).
    return GraphPair(WithinClasses(codes, c, p), ClassMeans(codes, c, p), BetweenClasses(codes, c, 1.0 / _mass(p), p))


def _pca(Z: Array, codes: Array | None, c: int, p: Array) -> GraphPair:  # noqa: ARG001
    return GraphPair(None, AllPairs(1.0 / _mass(p), p))


def _lpp(Z: Array, codes: Array | None, c: int, p: Array, neighbors: int) -> GraphPair:  # noqa: ARG001
    H = neighbours(Z, neighbors)
    # The ratio divides by the degrees, as the method is defined; a margin method pushes all pairs apart.
    return GraphPair(SparseWeights(H, p), Degrees(H, p), AllPairs(1.0 / _mass(p), p))


def _udp(Z: Array, codes: Array | None, c: int, p: Array, neighbors: int) -> GraphPair:  # noqa: ARG001
    H = neighbours(Z, neighbors)
    return GraphPair(SparseWeights(H, p), Complement(H, 1.0, p))


def _mfa(Z: Array, codes: Array, c: int, p: Array, within: int, between: int) -> GraphPair:  # noqa: ARG001
    return GraphPair(
        SparseWeights(class_neighbours(Z, codes, within), p), SparseWeights(nearest_between(Z, codes, between), p)
    )


def _lfda(Z: Array, codes: Array, c: int, p: Array, neighbors: int) -> GraphPair:
    # Paper (Sugiyama): the affinity of all pairs of a class. We: of nearest neighbours, because the rest is close to
    # zero and would be an n_k x n_k matrix.
    xp = namespace(Z)
    A = scaled_affinity(Z, class_neighbours(Z, codes, neighbors), neighbors)
    sizes = xp.asarray([float(xp.sum(xp.where(codes == k, p, xp.zeros_like(p)))) for k in range(c)])
    root = 1.0 / xp.sqrt(asarray_like(sizes, p, dtype=p.dtype))
    # V_ij = A_ij / n_k: the class size enters through the importances, one root from either end
    own = p * xp.take(root, codes)
    return GraphPair(SparseWeights(A, own), BetweenClasses(codes, c, 1.0 / _mass(p), p))


def _lsda(Z: Array, codes: Array, c: int, p: Array, neighbors: int) -> GraphPair:  # noqa: ARG001
    same, other = split_by_label(neighbours(Z, neighbors), codes)
    return GraphPair(SparseWeights(same, p), SparseWeights(other, p))


_BUILD: dict[str, Callable[..., GraphPair]] = {
    "fisher": _fisher,
    "pca": _pca,
    "lpp": _lpp,
    "udp": _udp,
    "mfa": _mfa,
    "lfda": _lfda,
    "lsda": _lsda,
}


def as_graph(graph: Any, owner: str) -> GraphRule | GraphPair | tuple[Any, Any]:
    """A graph from what a user may pass: a name, a rule, a pair object, or two matrices."""
    if isinstance(graph, (GraphRule, GraphPair)):
        return graph
    if isinstance(graph, str) and graph in _SUPERVISED:
        return {"fisher": fisher, "pca": pca, "lpp": lpp, "udp": udp, "mfa": mfa, "lfda": lfda, "lsda": lsda}[graph]()
    if isinstance(graph, tuple) and len(graph) == 2:
        return graph
    raise ValueError(
        f"{owner}: graph must be one of {sorted(_SUPERVISED)}, a rule of fewkern.graphs, a GraphPair or two weight "
        f"matrices (intrinsic, penalty); got {graph!r}."
    )


def pair_of_matrices(matrices: tuple[Any, Any], n: int, rows: Array, importance: Array, owner: str) -> GraphPair:
    """Two matrices as a pair: square ones are weights, tall ones factors of a Laplacian, ``None`` the identity.

    ``rows`` are those of the ``n`` samples that take part.
    """
    host = to_numpy(rows)

    def one(V: Any) -> SparseWeights | Factor:
        if getattr(V, "ndim", 0) != 2 or V.shape[0] != n:
            raise ValueError(
                f"{owner}: a graph matrix must have one row per sample ({n}), got shape {getattr(V, 'shape', None)}."
            )
        if V.shape[0] != V.shape[1]:
            return Factor(take_rows(_factor(V, importance, owner), rows))
        return SparseWeights(symmetric_weights(V, owner)[host][:, host], importance)

    intrinsic, penalty = matrices
    return GraphPair(None if intrinsic is None else one(intrinsic), one(penalty))


def _factor(V: Any, like: Array, owner: str) -> Array:
    """A factor ``F`` of a Laplacian ``L = F F'``: finite, and ``L 1 = 0``."""
    F = asarray_like(V.toarray() if is_sparse(V) else V, like, dtype=like.dtype)
    xp = namespace(F)
    if not bool(xp.all(xp.isfinite(F))):
        raise ValueError(f"{owner}: the weights of a graph must be finite, got NaN or infinity.")
    if float(xp.max(xp.abs(xp.sum(F, axis=0)))) > 1e-8 * max(float(xp.max(xp.sum(xp.abs(F), axis=0))), 1e-300):
        raise ValueError(
            f"{owner}: the columns of a factor F must sum to zero, or F F' is not the Laplacian of a graph; pass "
            "F - F.mean(axis=0)."
        )
    return F
