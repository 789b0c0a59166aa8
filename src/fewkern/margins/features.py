"""Centered features of the samples, and the way from directions among them back to samples or kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewkern.arrays.namespace import Array, float_dtype, is_sparse
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import Kernel, Linear
from fewkern.core.path import Stop
from fewkern.core.population import Population
from fewkern.core.samples import Samples, with_indicators
from fewkern.core.statistics import Statistics
from fewkern.select.axes import Spread, column_signs
from fewkern.select.selection import Selection, SelectionRule, choose_basis

__all__ = ["Features", "basis_features", "features_of_all", "sample_features"]


@dataclass(frozen=True)
class Features:
    """Centered features in double precision, and where they come from."""

    samples: Samples
    """With weights in double precision."""
    kernel: Kernel
    Z: Array | None
    """Centered features; None where sparse samples serve as they are."""
    mean: Array
    """The mean that was subtracted."""
    selection: Selection | None = None
    """The vectors of the basis; None where the features are the samples themselves."""
    center: Array | None = None
    """Mean of all rows, where ``samples`` are a sample of them."""

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

    def sample_mean(self) -> Array:
        """Weighted mean of the samples."""
        if self.center is not None:
            return self.center
        if self.basis is None:
            return self.mean
        p = self.samples.weights
        return (self.samples.X.T @ p) / np.sum(p)

    def with_signs(self, W: Array) -> Array:
        """``W`` with the largest entry of every column made positive: the same samples give the same axes.

        With the linear kernel it is the entry of the component itself, however the samples are stored.
        """
        if not self.linear or self.basis is None or 0 in W.shape:
            return W * column_signs(W)
        narrow = W.astype(float_dtype(self.samples.X))
        return W * column_signs((self.components(narrow).T).astype(W.dtype))

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


def sample_features(samples: Samples, kernel: Linear) -> Features:
    """The samples themselves; sparse ones are not made dense, so that ``Z`` is None."""
    p = _double(samples.weights)
    own, X = replace(samples, weights=p), samples.X
    if is_sparse(X):
        return Features(own, kernel, None, (X.T @ p) / np.sum(p))
    X = X.astype(np.float64)
    mean = p @ X / np.sum(p)
    return Features(own, kernel, X - mean, mean)


def basis_features(samples: Samples, kernel: Kernel, how: SelectionRule, limit: int | None) -> Features:
    """Features on a basis of at most ``limit`` chosen samples; None is the numerical rank."""
    chosen = choose_basis(samples, kernel, how, limit)
    p, Z = _double(samples.weights), _double(chosen.G)
    mean = p @ Z / np.sum(p)
    return Features(replace(samples, weights=p), kernel, Z - mean, mean, chosen)


def _double(x: Array) -> Array:
    return x.astype(np.float64)


def features_of_all(features: Features, population: Population) -> tuple[Features, Spread]:
    """Features of the sample about the mean of all rows, and the spread of all rows about it, in one pass."""
    of_block = _Moments(features.basis, features.mean)
    spread = Spread.of_sums(population.total(of_block, int(features.mean.shape[0]) + 1))
    moved = replace(features, Z=features.Z - spread.mean, mean=features.mean + spread.mean)
    if features.linear and features.basis is not None:
        # the mean of the features on a basis is not that of the samples
        moved = replace(moved, center=population.total(_row_sum, features.samples.X.shape[1]).mean)
    return moved, spread


@dataclass(frozen=True)
class _Moments:
    """Sums over a block of rows: of the features and their products, by class."""

    basis: KernelBasis | None
    shift: Array
    """Near the mean: far from zero, sums of squares would lose their digits."""

    def __call__(self, samples: Samples) -> Statistics:
        samples = with_indicators(samples)
        Z = samples.X if self.basis is None else self.basis.features(samples.X)
        return Statistics.of(_double(Z) - self.shift, samples.targets, samples.weights)


@dataclass(frozen=True)
class _RowSum:
    """Weighted sum of rows."""

    total: Array
    weight: float

    def __add__(self, other: _RowSum) -> _RowSum:
        return _RowSum(self.total + other.total, self.weight + other.weight)

    @property
    def mean(self) -> Array:
        return self.total / self.weight


def _row_sum(samples: Samples) -> _RowSum:
    """Of dense or sparse samples."""
    weights = _double(samples.weights)
    return _RowSum(samples.X.T @ weights, float(np.sum(weights)))
