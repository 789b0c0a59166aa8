"""Sums of kernels: the function of a model, the vectors and features that it comes from, and what surrounds a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

from fewkern.arrays.blocks import in_blocks
from fewkern.arrays.linalg import divide_where, solve_triangular
from fewkern.arrays.namespace import (
    Array,
    concat_rows,
    device,
    is_sparse,
    move_fields,
    namespace,
    same_place,
    take_rows,
    to_numpy,
)
from fewkern.arrays.storable import floats, indices, samples, storable
from fewkern.core.kernel import Gram, Kernel

Projection = Literal["nested", "symmetric", "raw"]
# Least pivot of a factor in a file, over the largest one: selections end long before.
_LEAST_PIVOT = 1e-12


def _check_expansion(read: KernelExpansion) -> None:
    widths = getattr(read.kernel, "length_scale", None)
    if getattr(widths, "ndim", 0) == 1 and widths.shape[0] != read.vectors.shape[1]:  # type: ignore[union-attr]
        raise ValueError("the kernel of a KernelExpansion has the length scales of other features")


@storable(
    check=_check_expansion,
    vectors=samples("m", "d"),
    coef=floats("m", "q"),
    offset=floats("q"),
    indices=indices("m"),
)
@dataclass(frozen=True)
class KernelExpansion:
    r"""The function :math:`f(x) = \sum_j c_j k(x, v_j) + b`, with :math:`c_j` a row of ``q`` numbers.

    An immutable value. All that a fitted model does with new samples (predict, transform, save, export, plot)
    reads this object and nothing else.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    vectors : array of shape (m, d)
        The samples that were kept.
    coef : array of shape (m, q)
    offset : array of shape (q,)
    indices : array of shape (m,) or None
        Rows of the training samples that ``vectors`` are, where they are samples.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern import KernelExpansion
    >>> from fewkern.kernels import Gaussian
    >>> f = KernelExpansion(Gaussian(1.0), np.array([[0.0], [1.0]]), np.array([[1.0], [-1.0]]), np.zeros(1))
    >>> f(np.array([[0.5]])).round(3)
    array([[0.]])
    >>> f.n_vectors
    2
    """

    kernel: Kernel
    vectors: Array
    coef: Array
    offset: Array
    indices: Array | None = None

    @property
    def n_vectors(self) -> int:
        """Number of samples kept."""
        return int(self.vectors.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of values per sample."""
        return int(self.coef.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that a prediction needs."""
        vectors = self.vectors.data if is_sparse(self.vectors) else self.vectors
        return sum(to_numpy(a).nbytes for a in (vectors, self.coef, self.offset))

    def __call__(self, X: Array) -> Array:
        """Values ``(n, q)`` at the rows of ``X``, computed in row blocks, where ``X`` is: the model comes along."""
        if not same_place(self.coef, X):
            return self.like(X)(X)
        return in_blocks(self._values, X, self.n_vectors)

    def _values(self, X: Array) -> Array:
        xp = namespace(self.coef)
        if not self.n_vectors:
            return xp.broadcast_to(self.offset, (X.shape[0], self.n_outputs)) + 0.0
        return xp.astype(self.kernel(X, self.vectors), self.coef.dtype, copy=False) @ self.coef + self.offset

    def then(self, weights: Array, offset: Array | None = None) -> KernelExpansion:
        """The affine map ``values @ weights + offset`` of this function's values, as one function."""
        moved = self.offset @ weights
        return replace(self, coef=self.coef @ weights, offset=moved if offset is None else moved + offset)

    def like(self, X: Array) -> KernelExpansion:
        """The same expansion with its arrays in the library and on the device of ``X``."""
        return move_fields(self, X)


def share_left(diag: Array, explained: Array) -> Array:
    """``1 - explained / diag``, in [0, 1]; zero where there is nothing to explain."""
    xp = namespace(diag)
    share = 1.0 - divide_where(diag > 0, explained, diag, 1.0)
    return xp.clip(share, 0.0, 1.0)


def _check_basis(basis: KernelBasis) -> None:
    """Raise a ValueError if the factor is singular, or only a part of a center is there."""
    pivots = namespace(basis.factor).linalg.diagonal(basis.factor)
    if pivots.shape[0] and not float(pivots.min()) > _LEAST_PIVOT * float(pivots.max()):
        raise ValueError("the factor of a KernelBasis is singular")
    parts = ("center_vectors", "center_weights", "center_indices", "center_square", "vector_shift")
    if len({getattr(basis, part) is None for part in parts}) > 1:
        raise ValueError("KernelBasis has only a part of a center")


@storable(
    check=_check_basis,
    vectors=samples("m", "d"),
    factor=floats("m", "m"),
    indices=indices("m"),
    center_vectors=samples("c", "d"),
    center_weights=floats("c"),
    center_indices=indices("c"),
    vector_shift=floats("m"),
)
@dataclass(frozen=True)
class KernelBasis:
    r"""Vectors :math:`v_1, \dots, v_L` with the triangular factor :math:`C`, :math:`K_{SS} = C C^T`.

    ============ =============================================== ==========================================
    projection   features of ``x``                               remark
    ============ =============================================== ==========================================
    "nested"     :math:`z = C^{-1} k_S(x)`, (10') of methods F8  the first ``l`` belong to the first ``l`` vectors
    "symmetric"  :math:`z = K_{SS}^{-1/2} k_S(x)`, FVS (10)      "nested" up to a rotation
    "raw"        :math:`z = k_S(x)`, FVS (9)                     kernel columns as they are
    ============ =============================================== ==========================================

    In the first two ``Z Z^T`` approximates ``K``. Centering (FVS, Appendix A) needs ``center_vectors`` and their
    ``center_weights``; the kernel then is the centered one, and :meth:`expand` still returns an expansion
    in the plain kernel, on the vectors and the center together.

    Examples
    --------
    >>> from fewkern import FeatureVectorSelector
    >>> from fewkern.datasets import make_banana
    >>> X, _ = make_banana(100)
    >>> basis = FeatureVectorSelector(max_vectors=5).fit(X).basis_
    >>> basis.features(X).shape, basis.head(2).n_vectors
    ((100, 5), 2)
    """

    kernel: Kernel
    vectors: Array
    factor: Array
    indices: Array
    projection: Projection = "nested"
    center_vectors: Array | None = None
    center_weights: Array | None = None
    center_indices: Array | None = None
    center_square: float | None = None
    """``k(c, c)``: from the fit, because it needs the matrix of all samples of the center."""
    vector_shift: Array | None = None
    """``k(v, c) - k(c, c)`` for every vector ``v``: what centering adds to a column besides ``k(x, c)``."""

    @classmethod
    def from_selection(cls, gram: Gram, S: Array, factor: Array, projection: Projection = "nested") -> KernelBasis:
        """Basis on the samples ``S`` of ``gram`` with ``K[S, S] = factor factor'``."""
        kernel, center = gram.kernel, gram.center
        basis = cls(kernel, kernel.pick(gram.X, S), factor, S, projection)
        if center is None:
            return basis
        return replace(
            basis,
            center_vectors=kernel.pick(gram.X, center.indices),
            center_weights=center.weights,
            center_indices=center.indices,
            center_square=center.square,
            vector_shift=take_rows(center.row, S) - center.square,
        )

    @property
    def n_vectors(self) -> int:
        """Number of vectors; those of the center are not counted."""
        return int(self.factor.shape[0])

    def head(self, count: int) -> KernelBasis:
        """Basis of the first ``count`` vectors."""
        return replace(
            self,
            vectors=self.vectors[:count, :],
            factor=self.factor[:count, :count],
            indices=self.indices[:count],
            vector_shift=None if self.vector_shift is None else self.vector_shift[:count],
        )

    def like(self, X: Array) -> KernelBasis:
        """The same basis with its arrays in the library and on the device of ``X``."""
        return self if same_place(self.factor, X) else move_fields(self, X)

    def _columns(self, X: Array) -> Array:
        """Kernel columns ``k(x, v)`` (of the centered kernel, if there is a center)."""
        K = self.kernel(X, self.vectors)
        if self.center_vectors is not None:
            to_center = self.kernel(X, self.center_vectors) @ self.center_weights
            K = K - to_center[:, None] - self.vector_shift[None, :]  # type: ignore[index]
        return K

    def features(self, X: Array) -> Array:
        """Features ``Z`` of shape ``(n, L)``."""
        basis = self.like(X)
        K = basis._columns(X)
        if self.projection == "raw":
            return K
        return solve_triangular(basis.factor, K.T).T if self.projection == "nested" else K @ basis._inverse_root

    def unexplained(self, X: Array) -> Array:
        """Share of ``k(x, x)`` that the vectors do not explain, ``1 - |z|^2 / k(x, x)``, in [0, 1]."""
        basis = replace(self.like(X), projection="nested")

        def shares(rows: Array) -> Array:
            Z = basis.features(rows)
            return share_left(basis._diag(rows), namespace(Z).sum(Z * Z, axis=1))

        return in_blocks(shares, X, basis.n_vectors)

    def _diag(self, X: Array) -> Array:
        """``k(x, x)`` (of the centered kernel, if there is a center)."""
        own = self.kernel.diag(X)
        if self.center_vectors is None:
            return own
        return own - 2.0 * (self.kernel(X, self.center_vectors) @ self.center_weights) + self.center_square

    def rotate(self, G: Array) -> Array:
        """Features of the training rows from their Cholesky rows ``G = K_S C^{-T}``, without a kernel evaluation."""
        if self.projection == "nested":
            return G
        K = G @ self.factor.T
        return K if self.projection == "raw" else K @ self._inverse_root

    def expand(self, W: Array, offset: Array) -> KernelExpansion:
        """The linear function ``z -> W' z + offset`` of the features, as a sum of kernels."""
        if self.projection == "nested":
            A = solve_triangular(self.factor, W, transposed=True)
        else:
            A = W if self.projection == "raw" else self._inverse_root @ W
        if self.center_vectors is None:
            return KernelExpansion(self.kernel, self.vectors, A, offset, self.indices)
        # k~(x, v) = k(x, v) - sum_j b_j k(x, c_j) - shift(v): the center takes minus the sum of the coefficients.
        xp = namespace(A)
        at_center = -self.center_weights[:, None] * xp.sum(A, axis=0)[None, :]  # type: ignore[index]
        return KernelExpansion(
            self.kernel,
            concat_rows(self.vectors, self.center_vectors),
            xp.concat([A, at_center], axis=0),
            offset - self.vector_shift @ A,
            xp.concat([self.indices, self.center_indices]),
        )

    def expansion(self) -> KernelExpansion:
        """The features themselves as sums of kernels, one output per feature."""
        xp, L, dtype = namespace(self.factor), self.n_vectors, self.factor.dtype
        place = device(self.factor)
        return self.expand(xp.eye(L, dtype=dtype, device=place), xp.zeros((L,), dtype=dtype, device=place))

    @cached_property
    def _inverse_root(self) -> Array:
        """``K_SS^{-1/2}`` from the singular values of the factor, so that rounding is not squared."""
        xp = namespace(self.factor)
        U, s, _ = xp.linalg.svd(self.factor)
        return (U / s[None, :]) @ U.T


@dataclass(frozen=True)
class Standardization:
    """``u = (x - shift) * factor``, one number per feature in both."""

    shift: Array
    factor: Array

    def then(self, after: Standardization) -> Standardization:
        """This scaling, then another one, as one."""
        return Standardization(self.shift + after.shift / self.factor, self.factor * after.factor)


@dataclass(frozen=True)
class Prepared:
    """A model with the preparation of its inputs, for export."""

    model: Any
    scaling: Standardization | None = None
    feature_names: tuple[str, ...] | None = None
    log_unit: float = 0.0
    """Added to a log density: its unit of volume."""
    notes: tuple[str, ...] = ()
    """Notes for users of the exported model."""
    inputs: Any = None
    """How the inputs become features (``fewkern.io.plan.Inputs``); None: they are the features."""
    rows: Callable[[Any], Any] | None = None
    """Turns rows as the model takes them into a data frame of the inputs; None: they are the same."""


@runtime_checkable
class Preparing(Protocol):
    """Anything that holds a model and its preparation: it can be exported as one."""

    def prepared(self) -> Prepared:
        """The model inside, and what happens to a sample before the model sees it."""
