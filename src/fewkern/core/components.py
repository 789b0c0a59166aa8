"""Prepared components of rows with many columns, mostly zeros, which are never made dense."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from fewkern.arrays.namespace import Array, namespace, same_place, to_numpy
from fewkern.arrays.storable import floats, storable
from fewkern.core.gaussians import Preparation


def _check(prepared: ComponentPreparation) -> None:
    prepared.check()
    rows, columns = (int(size) for size in prepared.matrix.shape)
    if columns != prepared.n_columns:
        raise ValueError(f"the preparation of {columns} components has {prepared.n_columns} columns")
    if rows <= columns:
        raise ValueError(f"{rows} columns have no {columns} components: there must be fewer of these")


@storable(knots=floats("k", "c"), values=floats("k", "c"), matrix=floats("d", "c"), check=_check)
@dataclass(frozen=True, kw_only=True)
class ComponentPreparation(Preparation):
    """The map ``t(P' x)``: linear combinations of all columns, each prepared like a column.

    Rows of as many columns as there are components are taken to be components. They are fewer than the columns, so the
    width of a row says which it is.

    Parameters
    ----------
    matrix : array of shape (d, c)
        ``P``, with ``c < d``.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from fewkern.core.components import ComponentPreparation
    >>> t = ComponentPreparation(np.array([[0.0], [2.0]]), np.array([[-1.0], [1.0]]), matrix=np.array([[1.0], [3.0]]))
    >>> t(sp.csr_array(np.array([[1.0, 0.0], [0.5, 0.5]]))).ravel()
    array([0., 1.])
    """

    matrix: Array

    @classmethod
    def of(cls, preparation: Preparation, matrix: Array) -> ComponentPreparation:
        """The preparation of components, behind the matrix that gives them."""
        return cls(**{field.name: getattr(preparation, field.name) for field in fields(preparation)}, matrix=matrix)

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""
        return super().nbytes + to_numpy(self.matrix).nbytes

    def components(self, X: Array) -> Array:
        """The components ``(n, c)`` of the rows."""
        if int(X.shape[1]) == self.n_columns:
            return X
        matrix = namespace(self.matrix).astype(self.matrix, X.dtype, copy=False)
        return X @ matrix

    def __call__(self, X: Array) -> Array:
        """Prepared components, dense, where ``X`` is and in its precision."""
        if not same_place(self.matrix, X):
            return self.like(X)(X)
        return super().__call__(self.components(X))


def sees_components(function: Any) -> bool:
    """Whether a function or a basis sees components of the columns."""
    basis = getattr(function, "basis", function)
    return isinstance(getattr(basis, "preparation", None), ComponentPreparation)


def check_sees_columns(function: Any, caller: str) -> None:
    """Raise a ValueError, in the name of ``caller``, if a function sees components."""
    if sees_components(function):
        rows, columns = function.basis.preparation.matrix.shape
        raise ValueError(
            f"{caller}: needs a model of the columns, but this one sees {columns} components of {rows} columns of "
            "sparse rows; keep fewer columns, or fit to a dense copy."
        )
