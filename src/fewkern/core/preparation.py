"""What happens to a sample before a model sees it: monotone maps of the columns, a scaling, and inputs of exports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from fewkern.arrays.blocks import row_blocks
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
from fewkern.arrays.numerics import interpolated
from fewkern.arrays.storable import floats, storable

__all__ = ["Preparation", "Prepared", "Preparing", "Scaling"]


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


@dataclass(frozen=True)
class Scaling:
    """``u = (x - shift) * factor``, one number per feature in both."""

    shift: Array
    factor: Array

    def then(self, after: Scaling) -> Scaling:
        """This scaling, then another one, as one."""
        return Scaling(self.shift + after.shift / self.factor, self.factor * after.factor)


@dataclass(frozen=True)
class Prepared:
    """A model, and what surrounds it."""

    model: Any
    scaling: Scaling | None = None
    feature_names: tuple[str, ...] | None = None
    log_unit: float = 0.0
    """Added to a log density: its unit of volume."""
    notes: tuple[str, ...] = ()
    """Sentences for whoever uses the model outside of Python."""
    inputs: Any = None
    """How the inputs become features (``fewkern.io.plan.Inputs``); None: they are the features."""


@runtime_checkable
class Preparing(Protocol):
    """Anything that holds a model and its preparation: it can be exported as one."""

    def prepared(self) -> Prepared:
        """The model inside, and what happens to a sample before the model sees it."""
