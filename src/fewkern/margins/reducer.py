"""What the dimension reducers share with each other: their samples, features and graphs, and the way back."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.linalg import least_squares
from fewkern.arrays.namespace import Array, asarray_like, device, float_dtype, is_sparse, namespace
from fewkern.arrays.rowwise import rowwise
from fewkern.base import KernelEstimator, check_labelled, check_samples, check_weighted, constraints
from fewkern.core.kernels import Linear, resolve_kernel
from fewkern.core.population import InMemory, Population
from fewkern.core.samples import Samples
from fewkern.margins.features import Features, basis_features, sample_features
from fewkern.margins.given import as_graph, pair_of_matrices
from fewkern.margins.graphs import GraphPair
from fewkern.margins.rules import AdditiveRule, GraphRule
from fewkern.populations import labelled_population, weighted_population
from fewkern.select.base import SELECTION, selection_rule

__all__ = [
    "REDUCER",
    "Reducer",
    "additive_rule",
    "features_of",
    "forget",
    "graph_pair",
    "graph_population",
    "graph_samples",
    "keep",
    "needs_classes",
    "streamed_population",
]

# Constraints of the parameters that all reducers have.
REDUCER: dict[str, list[Any]] = constraints(
    *("n_components", "kernel", "class_weight", "basis_tol", "random_state", "max_vectors"),
    rule=SELECTION["rule"],
)
# Vectors of a basis that max_vectors=None allows with a kernel: without a bound the cost is cubic in the samples.
_MOST_VECTORS = 500
# Of sparse samples with the linear kernel, whose basis replaces more features than that.
_MOST_SPARSE_VECTORS = 2000
# Attributes that only some fits have.
_OPTIONAL = ("components_", "mean_", "classes_")


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Base of the transformers that end in a few linear functions of the samples, or of their images."""

    graph: Any

    def set_params(self, **params: Any) -> Reducer:
        """Set parameters; ``graph__neighbors=...`` works also while ``graph`` is a name."""
        if any(key.startswith("graph__") for key in params) and "graph" in self._get_param_names():
            self.graph = as_graph(params.pop("graph", self.graph), type(self).__name__)
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


def forget(estimator: Any) -> None:
    """Delete what an earlier fit with other parameters may have left."""
    for name in _OPTIONAL:
        vars(estimator).pop(name, None)


def needs_classes(estimator: Reducer) -> bool:
    """Whether the parameter ``graph`` is a rule for samples with classes."""
    graph = as_graph(estimator.graph, type(estimator).__name__)
    return isinstance(graph, GraphRule) and graph.supervised


def graph_population(estimator: Reducer, X: Any, y: Any, sample_weight: Any) -> Population:
    """Checked rows, in memory, with classes where the graph needs them."""
    if needs_classes(estimator):
        return InMemory(check_labelled(estimator, X, y, sample_weight))
    return InMemory(check_weighted(estimator, X, sample_weight, minimum=2))


def streamed_population(estimator: Reducer, X: Any, y: Any, sample_weight: Any) -> Population:
    """The rows of a Dask collection, for a graph whose scatters are sums over rows."""
    rule = additive_rule(estimator)
    if rule is None:
        given = repr(estimator.graph) if isinstance(estimator.graph, (str, GraphRule)) else "that was given"
        raise TypeError(
            f"{type(estimator).__name__}: X is a Dask collection, and the graph {given} is one of pairs of samples, "
            'which must be in memory; use graph="fisher" or "pca", or pass some of the rows in memory.'
        )
    if rule.supervised:
        return labelled_population(estimator, X, y, sample_weight)
    return weighted_population(estimator, X, sample_weight)


def additive_rule(estimator: Reducer) -> AdditiveRule | None:
    """The graph, if it is a rule whose scatters are sums over rows."""
    graph = as_graph(estimator.graph, type(estimator).__name__)
    return graph if isinstance(graph, AdditiveRule) else None


def graph_samples(estimator: Reducer, population: Population, limit: int | None = None) -> Samples:
    """Samples for a graph: all of them where the user gave their pairs, else ``limit``, or the sample of the rows."""
    given = not isinstance(as_graph(estimator.graph, type(estimator).__name__), GraphRule)
    if given and isinstance(population, InMemory):
        return population.samples
    samples = population.sample
    return samples if limit is None or samples.pairwise else samples.drawn(limit)


def features_of(estimator: Any, samples: Samples, *, keep_sparse: bool = False) -> Features:
    """Features for the algorithms: the samples themselves for the linear kernel, those of a basis otherwise.

    Sparse samples of the linear kernel go through a basis too, unless ``keep_sparse``.
    """
    kernel, limit = resolve_kernel(estimator.kernel, samples.X), estimator.max_vectors
    if isinstance(kernel, Linear) and limit is None and (keep_sparse or not is_sparse(samples.X)):
        return sample_features(samples, kernel)
    if limit is None:
        limit = _MOST_SPARSE_VECTORS if isinstance(kernel, Linear) else _MOST_VECTORS
    how = selection_rule(estimator.rule, False, estimator.basis_tol, estimator.random_state)
    return basis_features(samples, kernel, how, limit)


def graph_pair(estimator: Reducer, features: Features) -> GraphPair:
    """The graph pair of the fitted samples from the parameter ``graph``."""
    name, samples = type(estimator).__name__, features.samples
    graph = as_graph(estimator.graph, name)
    if isinstance(graph, GraphRule):
        return graph.build(features.Z, samples)
    if not isinstance(graph, GraphPair):
        return pair_of_matrices(graph, samples, name)
    if samples.weighted:
        raise ValueError(
            f"{name}: sample_weight does not go with a GraphPair, which has its own weights; pass the two matrices as "
            "a tuple, or a rule of fewkern.graphs."
        )
    return graph


def keep(estimator: Any, features: Features, W: Array, dual: Array | None = None) -> None:
    """Assign the fitted attributes of the directions ``W``; see :meth:`Features.expansion` for ``dual``."""
    X, xp = features.samples.X, namespace(W)
    estimator.kernel_ = features.kernel
    estimator.basis_ = None if features.basis is None else features.samples.original(features.basis)
    estimator.expansion_ = expansion = features.expansion(W, dual)
    estimator.n_components_ = estimator._n_features_out = expansion.n_outputs
    if not features.linear:
        estimator.vectors_, estimator.indices_ = expansion.vectors, expansion.indices
        estimator.n_vectors_ = expansion.n_vectors
        return
    # One linear function per component: no sample is kept.
    estimator.n_vectors_ = 0
    estimator.vectors_ = xp.zeros((0, X.shape[1]), dtype=float_dtype(X), device=device(W))
    estimator.indices_ = xp.zeros((0,), dtype=xp.int64, device=device(W))
    estimator.components_ = expansion.vectors
    estimator.mean_ = xp.astype(features.sample_mean(), float_dtype(X))
