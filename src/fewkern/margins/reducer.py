"""Base classes of the dimension reducers: samples to features, the parameter ``graph``, and fitted attributes."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.linalg import least_squares
from fewkern.arrays.namespace import Array, asarray_like, float_dtype, is_sparse, move_fields, to_numpy
from fewkern.arrays.neighbors import symmetric_weights
from fewkern.arrays.partitions import rowwise
from fewkern.base import KernelEstimator, check_labelled, check_samples, check_weighted, constraints
from fewkern.core.kernels import Linear, resolve_kernel
from fewkern.core.population import InMemory, Population
from fewkern.core.samples import Samples
from fewkern.margins.features import Features, basis_features, sample_features
from fewkern.margins.graphs import Factor, GraphPair, SparseWeights
from fewkern.margins.rules import RULES, AdditiveRule, GraphRule
from fewkern.populations import labelled_population, weighted_population
from fewkern.select.base import SELECTION, selection_rule

__all__ = ["REDUCER", "Reducer", "on_host"]

# Constraints of the parameters that all reducers have.
REDUCER: dict[str, list[Any]] = constraints(
    *("n_components", "kernel", "class_weight", "basis_tol", "random_state", "max_vectors"),
    rule=SELECTION["rule"],
)
# Vectors of a basis that max_vectors=None allows with a kernel: without a bound the cost is cubic in the samples.
_MAX_VECTORS = 500
# Of sparse samples with the linear kernel, whose basis replaces more features than that.
_MAX_SPARSE_VECTORS = 2000
# Largest sum of a column of a factor, relative to the sum of its absolute values, that counts as zero.
_COLUMN_SUM_RTOL = 1e-8
# Attributes that only some fits have.
_OPTIONAL = ("components_", "mean_", "classes_")


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Base of transformers whose components are linear functions of the samples, or of their kernel features.

    The methods about graphs are for those with a parameter ``graph``.
    """

    graph: Any

    def set_params(self, **params: Any) -> Reducer:
        """Set parameters; ``graph__neighbors=...`` works also while ``graph`` is a name."""
        if any(key.startswith("graph__") for key in params) and "graph" in self._get_param_names():
            self.graph = _as_graph(params.pop("graph", self.graph), type(self).__name__)
        super().set_params(**params)
        return self

    @rowwise
    def transform(self, X: Any) -> Array:
        """Components of the samples, shape ``(n_samples, n_components_)``."""
        X = check_samples(self, X)
        return self.expansion_(X)

    def inverse_transform(self, X: Any) -> Array:
        """Samples whose components are ``X`` and that lie nearest to the mean; only with the linear kernel."""
        check_is_fitted(self)
        name = type(self).__name__
        if not isinstance(self.kernel_, Linear):
            raise ValueError(
                f"{name}: inverse_transform goes back through a linear map, but the kernel is {self.kernel_!r}; "
                'use kernel="linear".'
            )
        T = asarray_like(X, self.components_, dtype=self.components_.dtype)
        if T.ndim != 2 or T.shape[1] != self.n_components_:
            raise ValueError(
                f"{name}: inverse_transform expects {self.n_components_} columns, one per component, got shape "
                f"{tuple(T.shape)}."
            )
        return least_squares(self.components_, T.T).T + self.mean_

    def _reset_fitted(self) -> None:
        """Delete attributes that an earlier fit with other parameters may have set."""
        for name in _OPTIONAL:
            self.__dict__.pop(name, None)

    def _features(self, samples: Samples, *, keep_sparse: bool = False) -> Features:
        """Features for the algorithms: the samples themselves for the linear kernel, those of a basis otherwise.

        Sparse samples of the linear kernel go through a basis too, unless ``keep_sparse``.
        """
        params: Any = self
        kernel, limit = resolve_kernel(params.kernel, samples.X), params.max_vectors
        if isinstance(kernel, Linear) and limit is None and (keep_sparse or not is_sparse(samples.X)):
            return sample_features(samples, kernel)
        if limit is None:
            limit = _MAX_SPARSE_VECTORS if isinstance(kernel, Linear) else _MAX_VECTORS
        how = selection_rule(params.rule, False, params.basis_tol, params.random_state)
        return basis_features(samples, kernel, how, limit)

    def _set_fitted(self, features: Features, W: Array, like: Array, dual: Array | None = None) -> None:
        """Set the attributes of the directions ``W``, as arrays of the library and on the device of ``like``.

        See :meth:`Features.expansion` for ``dual``.
        """
        basis = features.basis
        self.kernel_ = features.kernel
        self.basis_ = None if basis is None else move_fields(features.samples.original(basis), like)
        self.expansion_ = expansion = features.expansion(W, dual).like(like)
        self.n_components_ = self._n_features_out = expansion.n_outputs
        if not features.linear:
            self.vectors_, self.indices_, self.n_vectors_ = expansion.vectors, expansion.indices, expansion.n_vectors
            return
        # one linear function per component: no sample is kept
        self.vectors_, self.n_vectors_ = expansion.vectors[:0, :], 0
        self.indices_ = asarray_like(np.zeros(0, dtype=np.int64), like)
        self.components_ = expansion.vectors
        self.mean_ = asarray_like(features.sample_mean().astype(float_dtype(features.samples.X)), like)

    def _graph(self) -> GraphRule | GraphPair | tuple[Any, Any]:
        return _as_graph(self.graph, type(self).__name__)

    def _needs_classes(self) -> bool:
        graph = self._graph()
        return isinstance(graph, GraphRule) and graph.supervised

    def _additive_rule(self) -> AdditiveRule | None:
        """The graph, if it is a rule whose scatters are sums over rows."""
        graph = self._graph()
        return graph if isinstance(graph, AdditiveRule) else None

    def _rows_in_memory(self, X: Any, y: Any, sample_weight: Any) -> Population:
        """Checked rows, with classes where the graph needs them."""
        if self._needs_classes():
            return InMemory(check_labelled(self, X, y, sample_weight))
        return InMemory(check_weighted(self, X, sample_weight, minimum=2))

    def _rows_of_collection(self, X: Any, y: Any, sample_weight: Any) -> Population:
        """The rows of a Dask collection, for a graph whose scatters are sums over rows."""
        rule = self._additive_rule()
        if rule is None:
            given = repr(self.graph) if isinstance(self.graph, (str, GraphRule)) else "that was given"
            raise TypeError(
                f"{type(self).__name__}: X is a Dask collection, and the graph {given} is one of pairs of samples, "
                'which must be in memory; use graph="fisher" or "pca", or pass some of the rows in memory.'
            )
        if rule.supervised:
            return labelled_population(self, X, y, sample_weight)
        return weighted_population(self, X, sample_weight)

    def _samples(self, population: Population, limit: int | None = None) -> Samples:
        """Samples of the graph: all where the user gave their pairs, else at most ``limit``, or the usual sample."""
        if not isinstance(self._graph(), GraphRule) and isinstance(population, InMemory):
            return population.samples
        samples = population.sample
        return samples if limit is None or samples.pairwise else samples.drawn(limit)

    def _pair(self, features: Features) -> GraphPair:
        """The graph pair of the fitted samples."""
        name, graph, samples = type(self).__name__, self._graph(), features.samples
        if isinstance(graph, GraphRule):
            return graph.build(features.Z, samples)
        if not isinstance(graph, GraphPair):
            return _pair_of_matrices(graph, samples, name)
        if samples.weighted:
            raise ValueError(
                f"{name}: sample_weight does not go with a GraphPair, which has its own weights; pass the two matrices "
                "as a tuple, or a rule of fewkern.graphs."
            )
        return GraphPair(*(_weights_on_host(part) for part in (graph.intrinsic, graph.penalty, graph.margin)))


def on_host(population: Population) -> Population:
    """The same rows as NumPy arrays; sparse rows stay sparse."""
    if not isinstance(population, InMemory):
        return population
    return InMemory(move_fields(population.samples, np.empty(0)))


def _as_graph(graph: Any, owner: str) -> GraphRule | GraphPair | tuple[Any, Any]:
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


def _pair_of_matrices(matrices: tuple[Any, Any], samples: Samples, owner: str) -> GraphPair:
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
        return Factor(_factor(V, owner)[samples.rows])
    return SparseWeights(symmetric_weights(V, owner)[samples.rows][:, samples.rows], samples.weights)


def _factor(V: Any, owner: str) -> Array:
    """A factor ``F`` of a Laplacian ``L = F F'``: finite, and ``L 1 = 0``."""
    F = (V.toarray() if is_sparse(V) else to_numpy(V)).astype(np.float64)
    if not np.all(np.isfinite(F)):
        raise ValueError(f"{owner}: the weights of a graph must be finite, got NaN or infinity.")
    if float(np.max(np.abs(np.sum(F, axis=0)))) > _COLUMN_SUM_RTOL * float(np.max(np.sum(np.abs(F), axis=0))):
        raise ValueError(
            f"{owner}: the columns of a factor F must sum to zero, or F F' is not the Laplacian of a graph; pass "
            "F - F.mean(axis=0)."
        )
    return F


def _weights_on_host(weights: Any) -> Any:
    """Weights of a graph as NumPy arrays; those of the user's own class as they are."""
    return move_fields(weights, np.empty(0)) if is_dataclass(weights) else weights
