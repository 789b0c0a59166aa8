r"""The learned function: Gaussians with individual widths in a learned metric, and a linear part.

.. math:: f(x) = b + B^T t(x) + \sum_j a_j \exp\bigl(-\tfrac12 s_j^2 \|A^T (t(x) - v_j)\|^2\bigr),
          \qquad A A^T = D^2 + U U^T

with :math:`t` a :class:`Preparation`, ``D`` one inverse width per column, ``U`` a few
directions, and :math:`s_j` the inverse width of vector ``j`` itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fewkern.arrays.blocks import in_blocks
from fewkern.arrays.namespace import Array, move_fields, namespace, same_place, to_numpy
from fewkern.arrays.storable import floats, indices, storable
from fewkern.core.preparation import Preparation as Preparation


def times_metric(T: Array, scales: Array, directions: Array) -> Array:
    """``T M`` with the metric ``M = D^2 + U U'``."""
    return T * scales**2 + (T @ directions) @ directions.T


def gaussians(T: Array, vectors: Array, scales: Array, directions: Array, inverse_widths: Array) -> Array:
    """Gaussians ``(n, m)`` of prepared rows around the vectors; the metric is ``A = [diag(scales), directions]``."""
    xp = namespace(T)
    X, V = (xp.concat([one * scales, one @ directions], axis=1) for one in (T, vectors))
    distances = X @ V.T
    distances *= -2.0
    distances += xp.sum(X * X, axis=1)[:, None]
    distances += xp.sum(V * V, axis=1)[None, :]
    distances = xp.maximum(distances, xp.zeros_like(distances))
    return xp.exp(distances * (-0.5 * inverse_widths * inverse_widths)[None, :])


def _check_basis(basis: GaussianBasis) -> None:
    columns = int(basis.vectors.shape[1])
    found = basis.preparation.n_prepared
    if found != columns:
        raise ValueError(f"the preparation of a GaussianBasis makes {found} columns, not {columns}")


def _check_expansion(expansion: GaussianExpansion) -> None:
    for name, rows in (("coef", expansion.n_vectors), ("slopes", int(expansion.basis.vectors.shape[1]))):
        found = int(getattr(expansion, name).shape[0])
        if found != rows:
            raise ValueError(f"GaussianExpansion.{name} has {found} rows, but its basis {rows}")


@storable(
    vectors=floats("m", "d"),
    scales=floats("d", least=0.0),
    directions=floats("d", "r"),
    inverse_widths=floats("m", above=0.0),
    linear=floats("d", "p"),
    indices=indices("m"),
    check=_check_basis,
)
@dataclass(frozen=True)
class GaussianBasis:
    """Vectors in prepared columns, with the metric, their own widths, and linear features beside the Gaussians.

    Parameters
    ----------
    preparation : Preparation
    vectors : array of shape (m, d)
        In prepared columns.
    scales : array of shape (d,)
        ``D``: one inverse width per column.
    directions : array of shape (d, r)
        ``U``; ``r`` may be zero.
    inverse_widths : array of shape (m,)
        ``s``: one factor per vector.
    linear : array of shape (d, p)
        The linear features are ``t(x) @ linear``; ``p`` may be zero.
    indices : array of shape (m,) or None
        Rows of the training samples that the vectors are, where none was moved.

    Examples
    --------
    >>> from fewkern import KernelRegressor
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1)
    >>> basis = KernelRegressor(n_vectors=5).fit(X, y).basis_
    >>> basis.features(X).shape  # five Gaussians, and one linear feature
    (100, 6)
    """

    preparation: Preparation
    vectors: Array
    scales: Array
    directions: Array
    inverse_widths: Array
    linear: Array
    indices: Array | None = None

    @property
    def n_vectors(self) -> int:
        """Number of vectors."""
        return int(self.vectors.shape[0])

    def prepared(self, X: Array) -> Array:
        """The prepared columns of ``X``, in the precision of the model."""
        T = self.preparation(X)
        return namespace(T).astype(T, self.vectors.dtype, copy=False)

    def columns(self, T: Array) -> Array:
        """Gaussians ``(n, m)`` of prepared rows."""
        return gaussians(T, self.vectors, self.scales, self.directions, self.inverse_widths)

    def features(self, X: Array) -> Array:
        """Features ``(n, m + p)``: the Gaussians, then the linear features."""
        if not same_place(self.vectors, X):
            return self.like(X).features(X)
        T = self.prepared(X)
        return namespace(T).concat([self.columns(T), T @ self.linear], axis=1)

    def expand(self, W: Array, offset: Array) -> GaussianExpansion:
        """The linear function ``z -> W' z + offset`` of the features."""
        m = self.n_vectors
        return GaussianExpansion(self, W[:m, :], self.linear @ W[m:, :], offset)

    def in_precision(self, dtype: Any) -> GaussianBasis:
        """The same basis with numbers of this type; the preparation keeps its own."""
        xp = namespace(self.vectors)
        names = ("vectors", "scales", "directions", "inverse_widths", "linear")
        return replace(self, **{name: xp.astype(getattr(self, name), dtype, copy=False) for name in names})

    def like(self, X: Array) -> GaussianBasis:
        """The same basis with its arrays in the library and on the device of ``X``."""
        return replace(move_fields(self, X), preparation=self.preparation.like(X))


@storable(coef=floats("m", "q"), slopes=floats("d", "q"), offset=floats("q"), check=_check_expansion)
@dataclass(frozen=True)
class GaussianExpansion:
    """A learned function: Gaussians around a few vectors, a linear part and a constant.

    An immutable value; predict, save, export and pictures read this object and nothing else.

    Parameters
    ----------
    basis : GaussianBasis
    coef : array of shape (m, q)
        Coefficients of the Gaussians.
    slopes : array of shape (d, q)
        Coefficients of the prepared columns.
    offset : array of shape (q,)

    Examples
    --------
    >>> from fewkern import KernelRegressor
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1)
    >>> model = KernelRegressor(n_vectors=5).fit(X, y)
    >>> f = model.expansion_
    >>> f.n_vectors, f.vectors.shape, f.slopes.shape
    (5, (5, 1), (1, 1))
    >>> bool((f(X)[:, 0] == model.predict(X)).all())
    True
    """

    basis: GaussianBasis
    coef: Array
    slopes: Array
    offset: Array

    @cached_property
    def vectors(self) -> Array:
        """The vectors in the units of the columns, one per row."""
        return self.basis.preparation.inverse(self.basis.vectors)

    @property
    def indices(self) -> Array | None:
        """Rows of the training samples that the vectors are; None where they were moved."""
        return self.basis.indices

    @property
    def n_vectors(self) -> int:
        """Number of vectors."""
        return self.basis.n_vectors

    @property
    def n_outputs(self) -> int:
        """Number of values per sample."""
        return int(self.coef.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that a prediction needs."""
        own = self.basis
        arrays = (own.vectors, own.scales, own.directions, own.inverse_widths, self.coef, self.slopes, self.offset)
        return sum(to_numpy(a).nbytes for a in arrays) + own.preparation.nbytes

    def __call__(self, X: Array) -> Array:
        """Values ``(n, q)`` at the rows of ``X``, computed in row blocks, where ``X`` is."""
        if not same_place(self.coef, X):
            return self.like(X)(X)
        return in_blocks(self._values, X, self.n_vectors + 2 * int(self.slopes.shape[0]))

    def _values(self, X: Array) -> Array:
        T = self.basis.prepared(X)
        return self.basis.columns(T) @ self.coef + T @ self.slopes + self.offset

    def derivatives(self, T: Array, output: int) -> Array:
        """Partial derivatives ``(n, d)`` of one output with respect to the prepared columns."""
        basis = self.basis
        xp, squares = namespace(T), basis.inverse_widths * basis.inverse_widths
        weights = basis.columns(T) * (squares * self.coef[:, output])[None, :]
        pull = weights @ basis.vectors - xp.sum(weights, axis=1)[:, None] * T
        return times_metric(pull, basis.scales, basis.directions) + self.slopes[:, output][None, :]

    def then(self, weights: Array, offset: Array | None = None) -> GaussianExpansion:
        """The affine map ``values @ weights + offset`` of this function's values, as one function."""
        moved = self.offset @ weights
        coef, slopes = self.coef @ weights, self.slopes @ weights
        return replace(self, coef=coef, slopes=slopes, offset=moved if offset is None else moved + offset)

    def like(self, X: Array) -> GaussianExpansion:
        """The same function with its arrays in the library and on the device of ``X``."""
        return replace(move_fields(self, X), basis=self.basis.like(X))

    def in_precision(self, dtype: Any) -> GaussianExpansion:
        """The same function with numbers of this type."""
        xp = namespace(self.coef)
        own = {name: xp.astype(getattr(self, name), dtype, copy=False) for name in ("coef", "slopes", "offset")}
        return replace(self, basis=self.basis.in_precision(dtype), **own)
