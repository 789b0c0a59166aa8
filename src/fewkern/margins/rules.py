"""Rules that turn samples and labels into a graph pair (the rows of RSM's table, methods B1), and users' own graphs.

To add a rule: subclass :class:`GraphRule` as a dataclass, write ``build``, and add the class to ``__all__``. Its name
in lower case is then what the estimators accept, and :mod:`fewkern.graphs` exports it. Its fields are parameters, so
that ``graph__neighbors`` works in a grid search as ``kernel__length_scale`` does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.neighbors import (
    class_neighbors,
    class_radius,
    nearest_between,
    neighbors,
    split_by_label,
    symmetric_weights,
)
from fewkern.arrays.storable import storable
from fewkern.core.kernel import Parameters
from fewkern.core.samples import Samples
from fewkern.margins.graphs import (
    AllPairs,
    Degrees,
    GraphPair,
    LocalAffinity,
    SparseWeights,
    WithinClasses,
    between_classes,
)
from fewkern.select.axes import Spread

__all__ = ["LFDA", "LPP", "LSDA", "MFA", "PCA", "UDP", "Fisher", "GraphRule"]


class GraphRule(Parameters, ABC):
    """A rule that says which samples belong together, and which should be apart; its fields are parameters.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from fewkern import GraphEmbedding, graphs
    >>> from fewkern.datasets import make_banana
    >>> @dataclass(eq=False)
    ... class Spread(graphs.GraphRule):
    ...     factor: float = 1.0
    ...     def build(self, Z, samples):
    ...         return graphs.GraphPair(None, graphs.AllPairs(self.factor, samples.weights))
    >>> X, _ = make_banana(50)
    >>> GraphEmbedding(graph=Spread(2.0), n_components=1).fit_transform(X).shape
    (50, 1)
    """

    #: Whether the graph needs classes.
    supervised = False
    #: Whether its scatters are sums over rows, so that it serves any number of them.
    additive = False

    @abstractmethod
    def build(self, Z: Array, samples: Samples) -> GraphPair:
        """The graph pair of the features ``Z``, with the classes and weights of the samples."""

    def scatters(self, spread: Spread) -> tuple[Array | None, Array]:
        """Intrinsic (None: the identity) and penalty scatter of an additive rule, in the coordinates ``spread.V``."""
        raise NotImplementedError  # only additive rules are asked

    def _count(self, name: str) -> int:
        """A parameter that is a number of neighbors or pairs, checked."""
        value = getattr(self, name)
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
            raise ValueError(
                f"graphs.{type(self).__name__}: {name} must be a whole number of at least 1, got {value!r}."
            )
        return int(value)


def _apart(samples: Samples, codes: Array | None = None) -> AllPairs:
    """All pairs, or those of different classes, with the weight ``1/n``, which only sets the scale of delta (B1)."""
    return AllPairs(1.0 / float(np.sum(samples.weights)), samples.weights, codes)


@storable
@dataclass(eq=False)
class Fisher(GraphRule):
    """Fisher discriminant: together inside a class, apart between classes.

    The scatters are Fisher's own, from class sums. A margin method pushes apart all pairs of different classes, with
    the weight ``1/n``.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.Fisher().supervised
    True
    """

    supervised = True
    additive = True

    def build(self, Z: Array, samples: Samples) -> GraphPair:
        codes, p = samples.codes, samples.weights
        return GraphPair(WithinClasses(codes, p), between_classes(codes, p), _apart(samples, codes))

    def scatters(self, spread: Spread) -> tuple[Array, Array]:
        sums = spread.class_sums @ spread.V
        between = sums.T @ (sums / spread.masses[:, None])
        return np.diag(spread.s**2) - between, between


@storable
@dataclass(eq=False)
class PCA(GraphRule):
    """Principal components: all pairs apart, lengths measured by the identity.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.PCA().supervised
    False
    """

    additive = True

    def build(self, Z: Array, samples: Samples) -> GraphPair:
        return GraphPair(None, _apart(samples))

    def scatters(self, spread: Spread) -> tuple[None, Array]:
        return None, np.diag(spread.s**2)


@storable
@dataclass(eq=False)
class LPP(GraphRule):
    """Locality preserving projections: nearest neighbors together, all pairs apart.

    Parameters
    ----------
    neighbors : int, default 3

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.LPP(neighbors=5)
    LPP(neighbors=5)
    """

    neighbors: int = 3

    def build(self, Z: Array, samples: Samples) -> GraphPair:
        H, p = neighbors(Z, self._count("neighbors")), samples.weights
        # The ratio divides by the degrees, as the method is defined; a margin method pushes all pairs apart.
        return GraphPair(SparseWeights(H, p), Degrees(H, p), _apart(samples))


@storable
@dataclass(eq=False)
class UDP(GraphRule):
    """Unsupervised discriminant projection: nearest neighbors together, all other pairs apart.

    Parameters
    ----------
    neighbors : int, default 3

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.UDP(neighbors=1).supervised
    False
    """

    neighbors: int = 3

    def build(self, Z: Array, samples: Samples) -> GraphPair:
        H, p = neighbors(Z, self._count("neighbors")), samples.weights
        return GraphPair(SparseWeights(H, p), AllPairs(1.0, p, removed=H))


@storable
@dataclass(eq=False)
class MFA(GraphRule):
    """Marginal Fisher analysis: neighbors of the same class together, the nearest pairs of different classes apart.

    Parameters
    ----------
    within : int, default 3
        Neighbors of the same class.
    between : int, default 100
        Shortest pairs from every class to all others.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.MFA(within=5)
    MFA(within=5, between=100)
    """

    within: int = 3
    between: int = 100
    supervised = True

    def build(self, Z: Array, samples: Samples) -> GraphPair:
        near = class_neighbors(Z, samples.codes, self._count("within"))
        apart = nearest_between(Z, samples.codes, self._count("between"))
        return GraphPair(SparseWeights(near, samples.weights), SparseWeights(apart, samples.weights))


@storable
@dataclass(eq=False)
class LFDA(GraphRule):
    """Local Fisher discriminant: near pairs of a class together, classes apart, far pairs of a class free.

    Sugiyama's weights, with the affinity of all pairs of a class in local scaling: far parts of a class need not come
    together. A margin method pushes apart all pairs of different classes, with the weight ``1/n``. There are more
    directions than classes. Time grows with the squared size of the classes; no matrix of that size is kept.

    Parameters
    ----------
    neighbors : int, default 7
        The local scale is the distance to this neighbor of the same class.

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.LFDA()
    LFDA(neighbors=7)
    """

    neighbors: int = 7
    supervised = True

    def build(self, Z: Array, samples: Samples) -> GraphPair:
        radius = class_radius(Z, samples.codes, self._count("neighbors"))
        near = LocalAffinity(Z, radius, samples.codes, samples.weights)
        # Inside classes the penalty has negative weights (methods B1), so that a margin uses other pairs.
        return GraphPair(near, replace(near, apart=True), _apart(samples, samples.codes))


@storable
@dataclass(eq=False)
class LSDA(GraphRule):
    """Locality sensitive discriminant: the neighbor graph, split by label into together and apart.

    Parameters
    ----------
    neighbors : int, default 15

    Examples
    --------
    >>> from fewkern import graphs
    >>> graphs.LSDA().supervised
    True
    """

    neighbors: int = 15
    supervised = True

    def build(self, Z: Array, samples: Samples) -> GraphPair:
        same, other = split_by_label(neighbors(Z, self._count("neighbors")), samples.codes)
        return GraphPair(SparseWeights(same, samples.weights), SparseWeights(other, samples.weights))


# The rules by their names.
RULES: dict[str, type[GraphRule]] = {name.lower(): globals()[name] for name in __all__ if name != "GraphRule"}

# What a user may pass: a rule, weights, or the matrices of weights.
Graph: TypeAlias = GraphRule | GraphPair | tuple[Any, Any]


def as_graph(graph: Any, owner: str) -> Graph:
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


def build_pair(graph: Graph, Z: Array, samples: Samples, owner: str) -> GraphPair:
    """The graph pair of the samples that take part; matrices are those of the whole table."""
    if isinstance(graph, GraphRule):
        return graph.build(Z, samples)
    if isinstance(graph, tuple):
        together, apart = graph
        intrinsic = None if together is None else _given_weights(together, samples, owner)
        return GraphPair(intrinsic, _given_weights(apart, samples, owner))
    if samples.weighted:
        raise ValueError(
            f"{owner}: sample_weight does not go with a GraphPair, which has its own weights; pass the two matrices "
            "as a tuple, or a rule of fewkern.graphs."
        )
    return graph


def _given_weights(V: Any, samples: Samples, owner: str) -> SparseWeights:
    """The weights of a square matrix, of the samples that take part."""
    shape = tuple(getattr(V, "shape", ()))
    if shape != (samples.n_all, samples.n_all):
        raise ValueError(
            f"{owner}: a graph matrix must have one row and one column per sample ({samples.n_all}), got shape {shape}."
        )
    return SparseWeights(symmetric_weights(V, owner)[samples.rows][:, samples.rows], samples.weights)
