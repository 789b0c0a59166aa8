"""Centered features of the samples, and the way from directions among them back to samples or kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from fewkern.arrays.namespace import Array, device, float_dtype, is_sparse, namespace, take_rows
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import Kernel, Linear
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.select.axes import column_signs
from fewkern.select.selection import Selection, SelectionRule, choose_basis

__all__ = ["Features", "basis_features", "sample_features"]


@dataclass(frozen=True)
class Features:
    """Centered features in double precision, and where they come from."""

    samples: Samples
    """With weights in double precision."""
    kernel: Kernel
    Z: Array | None
    """Centered features; None where sparse samples serve as they are."""
    mean: Array
    """What was subtracted."""
    selection: Selection | None = None
    """The vectors of the basis; None where the features are the samples themselves."""
    center: Array | None = None
    """Mean of the samples themselves, where the mean of ``samples`` is not it: these are some of many rows."""

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
        expansion = self.basis.expand(W, namespace(W).zeros_like(W[0, :]))
        return (expansion.vectors.T @ expansion.coef).T

    def sample_mean(self) -> Array:
        """Weighted mean of the samples."""
        if self.center is not None:
            return self.center
        if self.basis is None:
            return self.mean
        p = self.samples.weights
        return (self.samples.X.T @ p) / namespace(p).sum(p)

    def with_signs(self, W: Array) -> Array:
        """``W`` with the largest entry of every column made positive: the same samples give the same axes.

        With the linear kernel it is the entry of the component itself, however the samples are stored.
        """
        if not self.linear or self.basis is None or 0 in W.shape:
            return W * column_signs(W)
        xp = namespace(W)
        narrow = xp.astype(W, float_dtype(self.samples.X))
        return W * column_signs(xp.astype(self.components(narrow).T, W.dtype))

    def expansion(self, W: Array, dual: Array | None = None) -> KernelExpansion:
        """The map ``x -> W' (z(x) - mean)``; with ``dual`` on the samples that have a coefficient there.

        With the linear kernel it is one linear function, whose "vectors" are the components.
        """
        xp, X = namespace(W), self.samples.X
        dtype = float_dtype(X)
        offset, narrow = xp.astype(-self.mean @ W, dtype), xp.astype(W, dtype)
        if self.linear:
            identity = xp.eye(W.shape[1], dtype=dtype, device=device(W))
            return KernelExpansion(Linear(), self.components(narrow), identity, offset)
        assert self.basis is not None
        if dual is None:
            return self.samples.original(self.basis.expand(narrow, offset))
        support = xp.nonzero(xp.any(dual != 0, axis=1))[0]
        coef = xp.astype(take_rows(dual, support), dtype)
        vectors = self.kernel.pick(X, support)
        return self.samples.original(KernelExpansion(self.kernel, vectors, coef, offset, support))


def sample_features(samples: Samples, kernel: Linear) -> Features:
    """The samples themselves; sparse ones are not made dense, so that ``Z`` is None."""
    xp, p = namespace(samples.weights), _double(samples.weights)
    own, X = replace(samples, weights=p), samples.X
    if is_sparse(X):
        return Features(own, kernel, None, (X.T @ p) / xp.sum(p))
    X = xp.astype(X, xp.float64)
    mean = p @ X / xp.sum(p)
    return Features(own, kernel, X - mean, mean)


def basis_features(samples: Samples, kernel: Kernel, how: SelectionRule, limit: int | None) -> Features:
    """Features on a basis of at most ``limit`` chosen samples; None is the numerical rank."""
    chosen = choose_basis(samples, kernel, how, limit)
    xp, p, Z = namespace(samples.weights), _double(samples.weights), _double(chosen.G)
    mean = p @ Z / xp.sum(p)
    return Features(replace(samples, weights=p), kernel, Z - mean, mean, chosen)


def _double(x: Array) -> Array:
    return namespace(x).astype(x, namespace(x).float64)
