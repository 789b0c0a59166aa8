"""Graphs as a user may give them: a name, a rule, a pair of weights, or two matrices."""

from __future__ import annotations

from typing import Any

from fewkern.arrays.namespace import Array, asarray_like, is_sparse, namespace, take_rows, to_numpy
from fewkern.arrays.neighbors import symmetric_weights
from fewkern.core.samples import Samples
from fewkern.margins.graphs import Factor, GraphPair, SparseWeights
from fewkern.margins.rules import RULES, GraphRule

__all__ = ["as_graph", "pair_of_matrices"]

# Largest sum of a column of a factor, beside the sum of its sizes, that counts as zero.
_ZERO_SUM = 1e-8


def as_graph(graph: Any, owner: str) -> GraphRule | GraphPair | tuple[Any, Any]:
    """A graph from what a user may pass: a name, a rule, a pair object, or two matrices."""
    if isinstance(graph, (GraphRule, GraphPair)):
        return graph
    if isinstance(graph, str) and graph in RULES:
        return RULES[graph]()
    if isinstance(graph, tuple) and len(graph) == 2:
        return graph
    raise ValueError(
        f"{owner}: graph must be one of {sorted(RULES)}, a rule of fewkern.graphs, a GraphPair or two weight "
        f"matrices (intrinsic, penalty); got {graph!r}."
    )


def pair_of_matrices(matrices: tuple[Any, Any], samples: Samples, owner: str) -> GraphPair:
    """Two matrices over the whole table as a pair for the samples that take part.

    A square matrix holds weights, a tall one is a factor of a Laplacian, and ``None`` is the identity.
    """
    intrinsic, penalty = matrices
    together = None if intrinsic is None else _given_weights(intrinsic, samples, owner)
    return GraphPair(together, _given_weights(penalty, samples, owner))


def _given_weights(V: Any, samples: Samples, owner: str) -> SparseWeights | Factor:
    if getattr(V, "ndim", 0) != 2 or V.shape[0] != samples.n_all:
        raise ValueError(
            f"{owner}: a graph matrix must have one row per sample ({samples.n_all}), got shape "
            f"{getattr(V, 'shape', None)}."
        )
    if V.shape[0] != V.shape[1]:
        return Factor(take_rows(_factor(V, samples.weights, owner), samples.rows))
    rows = to_numpy(samples.rows)
    return SparseWeights(symmetric_weights(V, owner)[rows][:, rows], samples.weights)


def _factor(V: Any, like: Array, owner: str) -> Array:
    """A factor ``F`` of a Laplacian ``L = F F'``: finite, and ``L 1 = 0``."""
    F = asarray_like(V.toarray() if is_sparse(V) else V, like, dtype=like.dtype)
    xp = namespace(F)
    if not bool(xp.all(xp.isfinite(F))):
        raise ValueError(f"{owner}: the weights of a graph must be finite, got NaN or infinity.")
    if float(xp.max(xp.abs(xp.sum(F, axis=0)))) > _ZERO_SUM * float(xp.max(xp.sum(xp.abs(F), axis=0))):
        raise ValueError(
            f"{owner}: the columns of a factor F must sum to zero, or F F' is not the Laplacian of a graph; pass "
            "F - F.mean(axis=0)."
        )
    return F
