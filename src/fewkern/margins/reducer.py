"""What the dimension reducers share: centered features of the samples, the parameter ``graph``, fitted attributes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.linalg import least_squares
from fewkern.arrays.namespace import Array, asarray_like, float_dtype, is_sparse, move_fields
from fewkern.arrays.partitions import rowwise
from fewkern.arrays.sampling import seed_from
from fewkern.base import KernelEstimator, check_samples, constraints
from fewkern.core.expansion import KernelBasis, KernelExpansion
from fewkern.core.kernels import Kernel, Linear, resolve_kernel
from fewkern.core.path import Stop
from fewkern.core.samples import Population, Samples, with_indicators
from fewkern.core.statistics import Statistics
from fewkern.select.axes import Spread, column_signs
from fewkern.select.selection import Selection, SelectionRule, choose_basis

# Constraints of the parameters that all reducers have.
REDUCER: dict[str, list[Any]] = constraints("n_components", "kernel", "max_vectors", "random_state")
# Vectors of a basis that max_vectors=None allows with a kernel: without a bound the cost is cubic in the samples; and
# features above which sparse samples with the linear kernel have a basis, of this number of vectors.
_MAX_VECTORS, _MAX_SPARSE_FEATURES = 500, 2000


@dataclass(frozen=True)
class Features:
    """Centered features in double precision, and where they come from."""

    samples: Samples
    """Samples with weights in double precision."""
    kernel: Kernel
    Z: Array
    """Centered features."""
    mean: Array
    """The mean that was subtracted."""
    selection: Selection | None
    """The vectors of the basis; None where the features are the samples themselves."""
    center: Array
    """Mean of the samples that ``mean`` belongs to; read only with the linear kernel."""

    @cached_property
    def basis(self) -> KernelBasis | None:
        """Basis on the chosen vectors; None where the features are the samples themselves."""
        return None if self.selection is None else self.selection.basis()

    @property
    def linear(self) -> bool:
        """Whether directions are linear functions of the samples."""
        return isinstance(self.kernel, Linear)

    @property
    def complete(self) -> bool:
        """Whether the features span all samples."""
        chosen = self.selection
        return chosen is None or chosen.stop == Stop.RANK or chosen.n_vectors == self.samples.n

    def components(self, W: Array) -> Array:
        """Directions among the features as vectors of samples, one per row; only with the linear kernel."""
        if self.basis is None:
            return W.T
        expansion = self.basis.expand(W, np.zeros_like(W[0, :]))
        return (expansion.vectors.T @ expansion.coef).T

    def with_signs(self, W: Array) -> Array:
        """``W`` with the largest entry of every column made positive: the same samples give the same axes.

        With the linear kernel it is the entry of the component itself, however the samples are stored.
        """
        axes = self.components(W.astype(float_dtype(self.samples.X))).T if self.linear else W
        return W * column_signs(axes).astype(W.dtype)

    def expansion(self, W: Array, dual: Array | None = None) -> KernelExpansion:
        """The map ``x -> W' (z(x) - mean)``; with ``dual`` on the samples that have a coefficient there.

        With the linear kernel it is one linear function, whose "vectors" are the components.
        """
        X = self.samples.X
        dtype = float_dtype(X)
        offset, narrow = (-self.mean @ W).astype(dtype), W.astype(dtype)
        if self.linear:
            identity = np.eye(W.shape[1], dtype=dtype)
            return KernelExpansion(Linear(), self.components(narrow), identity, offset)
        assert self.basis is not None
        if dual is None:
            return self.samples.original(self.basis.expand(narrow, offset))
        support = np.flatnonzero(np.any(dual != 0, axis=1))
        coef = dual[support].astype(dtype)
        vectors = self.kernel.pick(X, support)
        return self.samples.original(KernelExpansion(self.kernel, vectors, coef, offset, support))


def _dense(X: Array) -> Array:
    return X.toarray() if is_sparse(X) else X


def features_of_all(features: Features, population: Population) -> tuple[Features, Spread]:
    """Features of the sample about the mean of all rows, and the spread of all rows about it, in one pass."""
    moments = partial(_moments, features.basis, features.mean)
    spread = Spread.of_sums(population.total(moments, int(features.mean.shape[0]) + 1))
    mean = center = features.mean + spread.mean
    if features.linear and features.basis is not None:
        # the mean of the features on a basis is not that of the samples
        sums = population.total(_row_sums, features.samples.X.shape[1])
        center = sums[:-1] / sums[-1]
    return replace(features, Z=features.Z - spread.mean, mean=mean, center=center), spread


def _moments(basis: KernelBasis | None, shift: Array, samples: Samples) -> Statistics:
    """Sums over a block of rows: of the features and their products, by class.

    ``shift`` is near the mean: far from zero, sums of squares would lose their digits.
    """
    samples = with_indicators(samples.on_host())
    Z = _dense(samples.X) if basis is None else basis.features(samples.X)
    return Statistics.of(Z.astype(np.float64) - shift, samples.targets, samples.weights)


def _row_sums(samples: Samples) -> Array:
    """Weighted sum of dense or sparse rows, and of their weights."""
    samples = samples.on_host()
    weights = samples.weights.astype(np.float64)
    return np.append(samples.X.T @ weights, np.sum(weights))


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Base of transformers whose components are linear functions of the samples, or of their kernel features."""

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
        for name in ("components_", "mean_", "classes_"):
            self.__dict__.pop(name, None)

    def _features(self, samples: Samples) -> Features:
        """Features for the algorithms: the samples themselves for the linear kernel, those of a basis otherwise.

        Sparse samples of the linear kernel go through a basis too, if they have many features.
        """
        params: Any = self
        samples, limit, chosen = samples.on_host(), params.max_vectors, None
        kernel, p = resolve_kernel(params.kernel, samples.X), samples.weights.astype(np.float64)
        linear, wide = isinstance(kernel, Linear), is_sparse(samples.X) and samples.X.shape[1] > _MAX_SPARSE_FEATURES
        if not linear or wide or limit is not None:
            default = _MAX_SPARSE_FEATURES if linear else _MAX_VECTORS
            how = SelectionRule(seed=seed_from(params.random_state))
            chosen = choose_basis(samples, kernel, how, default if limit is None else limit)
        Z = (_dense(samples.X) if chosen is None else chosen.G).astype(np.float64)
        mean = center = p @ Z / np.sum(p)
        if linear and chosen is not None:
            center = samples.X.T @ p / np.sum(p)
        return Features(replace(samples, weights=p), kernel, Z - mean, mean, chosen, center)

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
        self.mean_ = asarray_like(features.center.astype(float_dtype(features.samples.X)), like)
