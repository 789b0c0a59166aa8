"""What the dimension reducers share: centred features of the samples, and the map back to samples or kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.linalg import least_squares
from fewkern.backend.namespace import Array, asarray_like, device, float_dtype, is_sparse, namespace, take_rows
from fewkern.backend.validation import (
    Interval,
    StrOptions,
    encode_labels,
    random_generator,
    validate_class_weights,
    validate_weights,
)
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import Kernel, Linear, as_kernel
from fewkern.core.samples import Samples
from fewkern.margins.graphs import GraphPair
from fewkern.margins.rules import GraphRule, as_graph, pair_of_matrices
from fewkern.vectors.axes import column_signs
from fewkern.vectors.base import KernelEstimator, build_gram, selector

__all__ = ["REDUCER_CONSTRAINTS", "Features", "Reducer", "fix_signs"]

REDUCER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [None, Interval(Integral, 1, None, closed="left")],
    "kernel": [str, Kernel, callable],
    "max_vectors": [None, Interval(Integral, 1, None, closed="left")],
    "rule": [StrOptions({"gain", "greedy", "random", "uniform"})],
    "tol": [None, Interval(Real, 0, 1, closed="neither")],
    "random_state": [None, Integral, object],
}


@dataclass(frozen=True)
class Features:
    """Centred features in double precision, and where they come from."""

    X: Array
    """The samples that take part (those of weight zero do not)."""
    rows: Array
    """Their row numbers."""
    Z: Array | None
    """Centred features; None where sparse samples serve as they are."""
    mean: Array
    kernel: Kernel
    basis: KernelBasis | None
    """None where the features are the samples themselves."""
    importance: Array
    """Weights of the samples."""
    n_samples: int
    """All samples, those of weight zero included."""


def fix_signs(W: Array, features: Features) -> Array:
    """The entry of largest size in every column made positive: the same samples give the same axes.

    With the linear kernel it is the entry of the component itself, however the samples are stored.
    """
    xp = namespace(W)
    shown = W
    if features.basis is not None and isinstance(features.kernel, Linear) and 0 not in W.shape:
        found = features.basis.expand(xp.astype(W, float_dtype(features.X)), xp.zeros_like(W[0, :]))
        shown = xp.astype(found.vectors.T @ found.coef, W.dtype)
    return W * column_signs(shown)


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Base of the transformers that end in a few linear functions of the samples, or of their images."""

    graph: Any
    max_vectors: int | None
    rule: str
    random_state: Any

    def set_params(self, **params: Any) -> Reducer:
        """Set parameters; ``graph__neighbors=...`` works also while ``graph`` is a name."""
        if any(key.startswith("graph__") for key in params) and "graph" in self._get_param_names():
            self.graph = as_graph(params.pop("graph", self.graph), type(self).__name__)
        super().set_params(**params)
        return self

    def _features(self, X: Array, weights: Array | None, *, sparse_linear: bool = False) -> Features:
        """Features for the algorithms: the samples themselves for the linear kernel, those of a basis otherwise."""
        n = int(X.shape[0])
        X, rows, p = _taking_part(X, weights, as_kernel(self.kernel).pairwise)
        kernel = as_kernel(self.kernel).resolve(X)
        xp = namespace(p)
        if isinstance(kernel, Linear) and self.max_vectors is None and (sparse_linear or not is_sparse(X)):
            mean = (X.T @ p) / xp.sum(p) if is_sparse(X) else p @ xp.astype(X, xp.float64) / xp.sum(p)
            Z = None if is_sparse(X) else xp.astype(X, xp.float64) - mean
            return Features(X, rows, Z, mean, kernel, None, p, n)
        rng = random_generator(self.random_state)
        gram = build_gram(kernel, X, 0, rng)
        limit = gram.n if self.max_vectors is None else self.max_vectors
        importance = None if weights is None else xp.astype(p, float_dtype(X))
        chosen = selector(self, int(rng.integers(2**31)), importance)(gram, limit)
        Z = xp.astype(chosen.G, xp.float64)
        mean = p @ Z / xp.sum(p)
        basis = KernelBasis.from_selection(gram, chosen.indices, chosen.factor)
        return Features(X, rows, Z - mean, mean, kernel, basis, p, n)

    def _keep(self, features: Features, W: Array, dual: Array | None = None) -> None:
        """Assign the map ``x -> W' (z(x) - mean)``; with ``dual``, on the samples that have a coefficient."""
        xp = namespace(W)
        dtype = float_dtype(features.X)
        offset = xp.astype(-features.mean @ W, dtype)
        linear = isinstance(features.kernel, Linear)
        self.kernel_, self.basis_ = features.kernel, features.basis
        if features.basis is None:
            expansion = _linear_expansion(xp.astype(W, dtype), offset)
        elif dual is not None and self.max_vectors is None and not linear:
            support = xp.nonzero(xp.any(dual != 0, axis=1))[0]
            coef = xp.astype(take_rows(dual, support), dtype)
            expansion = KernelExpansion(
                features.kernel, features.kernel.pick(features.X, support), coef, offset, support
            )
        else:
            narrow = xp.astype(W, dtype)
            expansion = features.basis.expand(narrow, offset)
        if linear and features.basis is not None:
            # sum_j c_j <x, v_j> is one linear function: the vectors are not needed any more
            expansion = _linear_expansion(expansion.vectors.T @ expansion.coef, offset)
        if expansion.indices is not None:
            # row numbers of all samples, those of weight zero included
            at = take_rows(features.rows, expansion.indices)
            vectors = at[:, None] if expansion.kernel.pairwise else expansion.vectors
            expansion = replace(expansion, vectors=vectors, indices=at)
        self.expansion_ = expansion
        self.vectors_, self.indices_, self.n_vectors_ = expansion.vectors, expansion.indices, expansion.n_vectors
        self.n_components_ = self._n_features_out = int(W.shape[1])
        if linear:
            self.components_ = expansion.vectors
            mean = features.mean
            if features.basis is not None:
                p = features.importance
                mean = (features.X.T @ p) / xp.sum(p)
            self.mean_ = xp.astype(mean, dtype)

    def transform(self, X: Any) -> Array:
        """Components of the samples, shape ``(n_samples, n_components_)``."""
        check_is_fitted(self)
        return self.expansion_(self._samples(X, reset=False))

    def inverse_transform(self, X: Any) -> Array:
        """Samples whose components are ``X`` and that lie nearest to the mean; only with the linear kernel."""
        check_is_fitted(self)
        name = type(self).__name__
        if not hasattr(self, "components_"):
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

    def _graph(self, features: Features, codes: Array | None) -> GraphPair:
        """The graph pair of the fitted samples from the parameter ``graph``."""
        graph = as_graph(self.graph, type(self).__name__)
        if isinstance(graph, GraphRule):
            return graph.build(features.Z, self._part(features, codes))
        if isinstance(graph, GraphPair):
            weights = features.importance
            if int(features.rows.shape[0]) < features.n_samples or bool(namespace(weights).any(weights != weights[0])):
                raise ValueError(
                    f"{type(self).__name__}: sample_weight does not go with a GraphPair, whose weights are in it "
                    "already; pass the two matrices as a tuple, or a rule of fewkern.graphs."
                )
            return graph
        return pair_of_matrices(graph, self._part(features, codes), type(self).__name__)

    def _part(self, features: Features, codes: Array | None) -> Samples:
        own = None if codes is None else take_rows(codes, features.rows)
        count = 0 if codes is None else int(self.classes_.shape[0])
        return Samples(features.X, features.importance, features.rows, features.n_samples, own, count)

    def _classes(self, X: Array, y: Any, sample_weight: Any) -> tuple[Array | None, Array | None]:
        """Class numbers, and ``classes_``, where the graph asks for them; and the weights of the samples."""
        if not self._needs_classes():
            return None, validate_weights(self, X, sample_weight)
        self.classes_, codes = encode_labels(self, X, y)
        return codes, validate_class_weights(self, X, codes, sample_weight)

    def _needs_classes(self) -> bool:
        graph = as_graph(self.graph, type(self).__name__)
        return isinstance(graph, GraphRule) and graph.supervised


def _taking_part(X: Array, weights: Array | None, pairwise: bool) -> tuple[Array, Array, Array]:
    """Samples of positive weight, their rows, and their weights in double precision."""
    like = X.data if is_sparse(X) else X
    xp = namespace(like)
    n = int(X.shape[0])
    rows = xp.arange(n, device=device(like))
    if weights is None:
        return X, rows, xp.ones((n,), dtype=xp.float64, device=device(like))
    if bool(xp.all(weights > 0)):
        return X, rows, xp.astype(weights, xp.float64)
    rows = xp.nonzero(weights > 0)[0]
    own = take_rows(X, rows)
    return xp.take(own, rows, axis=1) if pairwise else own, rows, xp.astype(take_rows(weights, rows), xp.float64)


def _linear_expansion(W: Array, offset: Array) -> KernelExpansion:
    """``x -> W' x + offset`` as an expansion: the vectors are the components."""
    xp = namespace(W)
    identity = xp.eye(W.shape[1], dtype=W.dtype, device=device(W))
    return KernelExpansion(Linear(), W.T, identity, offset)
