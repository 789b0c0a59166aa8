"""The map from the columns of a table to prepared columns: a monotone map of every number, a table of every category.

A gap (NaN) has a position of its own in every column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from fewkern.arrays.blocks import in_blocks
from fewkern.arrays.namespace import (
    Array,
    asarray_like,
    device,
    float_dtype,
    is_sparse,
    move_fields,
    namespace,
    same_place,
    take_rows,
    to_numpy,
)
from fewkern.arrays.numerics import interpolated, looked_up
from fewkern.arrays.storable import floats, indices, storable

# After the levels of a category a table has the positions of an unknown level and of a gap.
UNKNOWN, GAP = 0, 1
BEYOND = 2


@storable(columns=indices("e"), counts=indices("e"), positions=floats("t"), check=lambda levels: levels.check())
@dataclass(frozen=True)
class Levels:
    """Positions of the levels of categories: one table for every prepared column.

    Parameters
    ----------
    columns : integer array of shape (e,)
        Column of the samples, for every prepared column; a category may have several.
    counts : integer array of shape (e,)
        Number of levels. In the samples these are 0, 1, ..., ``count - 1``; other numbers are unknown levels, NaN is a
        gap.
    positions : array of shape (t,)
        Table after table: the positions of the levels, of an unknown one, and of a gap.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.preparation import Levels
    >>> levels = Levels(np.array([0]), np.array([3]), np.array([-1.0, 0.5, 2.0, 0.0, 7.0]))
    >>> levels(np.array([[2.0], [0.0], [9.0], [np.nan]])).ravel()
    array([ 2., -1.,  0.,  7.])
    """

    columns: Array
    counts: Array
    positions: Array

    def check(self) -> None:
        """Raise a ValueError if the tables are not as long as the numbers of levels say."""
        if int(self.positions.shape[0]) != int(to_numpy(self.counts).sum()) + BEYOND * len(self):
            raise ValueError("the tables of Levels need a position for every level, for an unknown one and for a gap.")

    def __len__(self) -> int:
        return int(self.columns.shape[0])

    @cached_property
    def starts(self) -> Array:
        """Where every table begins."""
        lengths = [count + BEYOND for count in to_numpy(self.counts).tolist()]
        return asarray_like([0, *accumulate(lengths)][: len(lengths)], self.counts, dtype=self.counts.dtype)

    def places(self, X: Array) -> Array:
        """Places in ``positions`` of the levels of the rows of ``X``, shape ``(n, e)``."""
        xp = namespace(X)
        codes = xp.take(X, self.columns, axis=1)
        counts = xp.astype(self.counts, codes.dtype)
        known = (codes >= 0) & (codes < counts)
        beyond = xp.where(xp.isnan(codes), counts + GAP, counts + UNKNOWN)
        return self.starts + xp.astype(xp.where(known, codes, beyond), self.starts.dtype)

    def __call__(self, X: Array) -> Array:
        """Positions ``(n, e)`` of the levels of the rows of ``X``."""
        return looked_up(namespace(X).astype(self.positions, X.dtype), self.places(X))

    def tables(self) -> list[Array]:
        """The table of every prepared column, on the host."""
        positions, starts = to_numpy(self.positions), to_numpy(self.starts).tolist()
        return [positions[start:end] for start, end in zip(starts, [*starts[1:], None])]

    def nearest(self, T: Array, column: int) -> Array:
        """The level of a column of the samples that is nearest to every row ``(n, e)`` of positions, on the host."""
        own = [k for k, one in enumerate(to_numpy(self.columns).tolist()) if one == column]
        tables, xp = self.tables(), namespace(T)
        levels = xp.stack([tables[k][:-BEYOND] for k in own], axis=1)
        if not len(levels):
            return xp.zeros_like(T[:, 0])
        gaps = xp.stack([T[:, k] for k in own], axis=1)[:, None, :] - levels
        return xp.astype(xp.argmin(xp.sum(gaps * gaps, axis=2), axis=1), T.dtype)


@storable(
    knots=floats("k", "a"),
    values=floats("k", "a"),
    gaps=floats("a"),
    columns=indices("a"),
    check=lambda preparation: preparation.check(),
)
@dataclass(frozen=True)
class Preparation:
    r"""The map :math:`t_a(x) = v_{0a} + \sum_k \sigma_{ka}\,\min(\max(x - \kappa_{ka}, 0), g_{ka})` of column ``a``.

    It is linear between the knots :math:`\kappa_{ka}`, with :math:`g_{ka}` the distance to the next knot and
    :math:`\sigma_{ka}` the slope, and constant beyond the first and the last one. Categories have tables instead; their
    prepared columns follow those of the numbers.

    Parameters
    ----------
    knots : array of shape (k, a)
        Ascending in every column; a column with fewer distinct knots repeats its last one.
    values : array of shape (k, a)
        Value of the map at every knot.
    gaps : array of shape (a,) or None
        Value of NaN in every column; None where no gap was seen: then it is zero, the mean.
    columns : integer array of shape (a,) or None
        Columns of the samples that are numbers; None for all.
    levels : Levels or None
        Tables of the other columns.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.preparation import Preparation
    >>> t = Preparation(np.array([[0.0], [1.0], [3.0]]), np.array([[-1.0], [0.0], [1.0]]), gaps=np.array([0.2]))
    >>> t(np.array([[-5.0], [0.5], [2.0], [9.0], [np.nan]])).ravel()
    array([-1. , -0.5,  0.5,  1. ,  0.2])
    >>> t.inverse(np.array([[-0.5], [0.5]])).ravel()
    array([0.5, 2. ])
    """

    knots: Array
    values: Array
    gaps: Array | None = None
    columns: Array | None = None
    levels: Levels | None = None

    def check(self) -> None:
        """Raise a ValueError if there are no knots, if these or their values descend, or if a column has no map."""
        if not int(self.knots.shape[0]):
            raise ValueError("a preparation needs at least one knot per column.")
        for name in ("knots", "values"):
            array = to_numpy(getattr(self, name))
            if not (array[1:] >= array[:-1]).all():
                raise ValueError(f"the {name} of a preparation must ascend in every column.")
        if (self.levels is None) != (self.columns is None):
            raise ValueError("a preparation of some columns needs tables for the others.")
        if self.levels is not None and set(self.sources) != set(range(self.n_columns)):
            raise ValueError("a preparation needs a map or a table for every column.")

    @cached_property
    def sources(self) -> list[int]:
        """The column of the samples behind every prepared column."""
        if self.levels is None:
            return list(range(int(self.knots.shape[1])))
        return [*to_numpy(self.columns).tolist(), *to_numpy(self.levels.columns).tolist()]

    @property
    def n_columns(self) -> int:
        """Number of columns of the samples."""
        return max(self.sources, default=-1) + 1

    @property
    def n_prepared(self) -> int:
        """Number of prepared columns."""
        return len(self.sources)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that a prediction needs."""
        own = [self.knots, self.values, *(one for one in (self.gaps, self.columns) if one is not None)]
        levels = () if self.levels is None else (self.levels.columns, self.levels.counts, self.levels.positions)
        return sum(to_numpy(array).nbytes for array in (*own, *levels))

    def by_column(self, values: Array, axis: int) -> Array:
        """Sums of the numbers of all prepared columns, along an ``axis``, over those of every column of the samples."""
        if self.levels is None:
            return values
        xp = namespace(values)
        each = xp.eye(self.n_columns, dtype=values.dtype, device=device(values))
        of = take_rows(each, asarray_like(self.sources, values, dtype=xp.int64))
        return xp.moveaxis(xp.matmul(xp.moveaxis(values, axis, -1), of), -1, axis)

    @cached_property
    def pieces(self) -> tuple[Array, Array]:
        """Length and rise of every linear piece, each of shape ``(k - 1, a)``; a piece of length zero has rise 0.

        Not the slope: in a column of tiny numbers that is infinite.
        """
        xp = namespace(self.knots)
        gaps = self.knots[1:, :] - self.knots[:-1, :]
        rises = self.values[1:, :] - self.values[:-1, :]
        return gaps, xp.where(gaps > 0, rises, xp.zeros_like(rises))

    def __call__(self, X: Array) -> Array:
        """Prepared columns, dense, where ``X`` is and in its precision."""
        if not same_place(self.knots, X):
            return self.like(X)(X)
        xp, dtype = namespace(X), float_dtype(X)

        def prepared(rows: Array) -> Array:
            rows = xp.astype(rows.toarray() if is_sparse(rows) else rows, dtype, copy=False)
            if self.levels is None:
                return self._numbers(rows)
            return xp.concat([self._numbers(xp.take(rows, self.columns, axis=1)), self.levels(rows)], axis=1)

        return in_blocks(prepared, X, 3 * self.n_prepared)

    def _numbers(self, rows: Array) -> Array:
        """The prepared numbers of some rows."""
        xp, dtype = namespace(rows), rows.dtype
        knots, first = xp.astype(self.knots, dtype), xp.astype(self.values[0, :], dtype)
        lengths, rises = (xp.astype(part, dtype) for part in self.pieces)
        units = xp.where(lengths > 0, lengths, xp.ones_like(lengths))
        total = xp.zeros_like(rows) + first
        for k in range(int(lengths.shape[0])):
            way = xp.minimum(xp.maximum(rows - knots[k, :], xp.zeros_like(rows)), lengths[k, :])
            total += rises[k, :] * (way / units[k, :])
        missing = xp.zeros_like(first) if self.gaps is None else xp.astype(self.gaps, dtype)
        return xp.where(xp.isnan(rows), missing, total)

    @cached_property
    def free(self) -> Array:
        """All positions that no monotone map gives: those of levels, then those of gaps in numbers."""
        xp = namespace(self.knots)
        gaps = xp.zeros_like(self.knots[0, :]) if self.gaps is None else self.gaps
        return gaps if self.levels is None else xp.concat([self.levels.positions, gaps])

    def places(self, X: Array) -> Array:
        """For every row and prepared column the place in ``free`` of its position, -1 where a monotone map gives it."""
        xp = namespace(X)
        numbers = X if self.levels is None else xp.take(X, self.columns, axis=1)
        first = 0 if self.levels is None else int(self.levels.positions.shape[0])
        own = xp.arange(first, first + int(numbers.shape[1]), dtype=xp.int64, device=device(X))
        found = xp.where(xp.isnan(numbers), own, xp.asarray(-1, dtype=xp.int64, device=device(X)))
        return found if self.levels is None else xp.concat([found, xp.astype(self.levels.places(X), xp.int64)], axis=1)

    def with_positions(self, values: Array, free: Array) -> Preparation:
        """The same columns with other values at the knots, and other positions of levels and gaps."""
        if self.levels is None:
            return replace(self, values=values, gaps=None if self.gaps is None else free)
        count = int(self.levels.positions.shape[0])
        return replace(self, values=values, gaps=free[count:], levels=replace(self.levels, positions=free[:count]))

    def inverse(self, T: Array) -> Array:
        """Values of the columns that are prepared as ``T``, as far as the map reaches; its ends beyond that.

        Of categories, the nearest level.
        """
        if self.levels is None:
            return interpolated(T, self.values, self.knots)
        host, xp, count = to_numpy(T), namespace(to_numpy(T)), int(self.knots.shape[1])
        numbers = interpolated(host[:, :count], to_numpy(self.values), to_numpy(self.knots))
        columns = {column: numbers[:, k] for k, column in enumerate(self.sources[:count])}
        for column in dict.fromkeys(self.sources[count:]):
            columns[column] = self.levels.nearest(host[:, count:], column)
        return asarray_like(xp.stack([columns[j] for j in range(self.n_columns)], axis=1), T, dtype=T.dtype)

    def like(self, X: Array) -> Preparation:
        """The same map with its arrays in the library and on the device of ``X``."""
        moved = move_fields(self, X)
        return moved if self.levels is None else replace(moved, levels=move_fields(self.levels, X))
