"""One monotone, piecewise linear map per column, which every column passes before a learned model looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.columns import interpolated
from fewkern.arrays.namespace import (
    Array,
    device,
    float_dtype,
    is_sparse,
    move_fields,
    namespace,
    same_place,
    to_numpy,
)
from fewkern.arrays.storable import floats, storable

__all__ = ["Preparation"]


@storable(knots=floats("k", "d"), values=floats("k", "d"), check=lambda preparation: preparation.check())
@dataclass(frozen=True)
class Preparation:
    r"""The map :math:`t_a(x) = v_{0a} + \sum_k \sigma_{ka}\,\min(\max(x - \kappa_{ka}, 0), g_{ka})` of column ``a``.

    It is linear between the knots :math:`\kappa_{ka}`, with :math:`g_{ka}` the distance to the next knot and
    :math:`\sigma_{ka}` the slope, and constant beyond the first and the last one.

    Parameters
    ----------
    knots : array of shape (k, d)
        Ascending in every column; a column with fewer distinct knots repeats its last one.
    values : array of shape (k, d)
        Value of the map at every knot.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.preparation import Preparation
    >>> t = Preparation(np.array([[0.0], [1.0], [3.0]]), np.array([[-1.0], [0.0], [1.0]]))
    >>> t(np.array([[-5.0], [0.5], [2.0], [9.0]])).ravel()
    array([-1. , -0.5,  0.5,  1. ])
    >>> t.inverse(np.array([[-0.5], [0.5]])).ravel()
    array([0.5, 2. ])
    """

    knots: Array
    values: Array

    def check(self) -> None:
        """Raise a ValueError if there are no knots, or if these or their values descend."""
        if not int(self.knots.shape[0]):
            raise ValueError("a preparation needs at least one knot per column.")
        for name in ("knots", "values"):
            array = to_numpy(getattr(self, name))
            if not (array[1:] >= array[:-1]).all():
                raise ValueError(f"the {name} of a preparation must ascend in every column.")

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.knots.shape[1])

    @cached_property
    def pieces(self) -> tuple[Array, Array]:
        """Length and rise of every linear piece, each of shape ``(k - 1, d)``; a piece of length zero has rise 0.

        Not the slope: in a column of tiny numbers that is infinite.
        """
        xp = namespace(self.knots)
        gaps = self.knots[1:, :] - self.knots[:-1, :]
        rises = self.values[1:, :] - self.values[:-1, :]
        return gaps, xp.where(gaps > 0, rises, xp.zeros_like(rises))

    def __call__(self, X: Array) -> Array:
        """Prepared columns ``(n, d)``, dense, where ``X`` is and in its precision."""
        if not same_place(self.knots, X):
            return self.like(X)(X)
        xp, dtype = namespace(X), float_dtype(X)
        knots, first = xp.astype(self.knots, dtype, copy=False), xp.astype(self.values[0, :], dtype, copy=False)
        gaps, rises = (xp.astype(part, dtype, copy=False) for part in self.pieces)
        lengths = xp.where(gaps > 0, gaps, xp.ones_like(gaps))
        out = xp.empty(X.shape, dtype=dtype, device=device(X))
        for rows in row_blocks(int(X.shape[0]), 3 * self.n_columns, like=X):
            part = X[rows, :]
            block = xp.astype(part.toarray() if is_sparse(part) else part, dtype, copy=False)
            total = xp.zeros_like(block) + first
            for k in range(int(gaps.shape[0])):
                way = xp.minimum(xp.maximum(block - knots[k, :], xp.zeros_like(block)), gaps[k, :])
                total += rises[k, :] * (way / lengths[k, :])
            out[rows, :] = total
        return out

    def inverse(self, T: Array) -> Array:
        """Values of the columns that are prepared as ``T``, as far as the map reaches; its ends beyond that."""
        return interpolated(T, self.values, self.knots)

    def like(self, X: Array) -> Preparation:
        """The same map with its arrays in the library and on the device of ``X``."""
        return move_fields(self, X)
