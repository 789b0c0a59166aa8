"""Any table as a pandas data frame whose column names are strings, or as parts from which rows are drawn by number."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fewkern.arrays.frames import FrameParts
from fewkern.arrays.namespace import Array, is_sparse
from fewkern.arrays.partitions import NeedsMemoryError, is_collection
from fewkern.arrays.progress import missing_package
from fewkern.arrays.sampling import row_keys, smallest_keys

# Names, or sentences of one kind, that are shown.
_SHOWN = 8


def pandas() -> Any:
    """The package pandas, or an error that says how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise missing_package("a table", "pandas") from error
    return pandas


def as_frame(table: Any, who: str, names: tuple[str, ...] | None = None) -> Any:
    """A pandas data frame from one of pandas, polars or pyarrow, a dict of columns, or a two-dimensional array.

    The columns of an array are called ``names``, or x0, x1, ...

    Examples
    --------
    >>> from fewkern.tables.frames import as_frame
    >>> list(as_frame([[1, 2], [3, 4]], "example").columns)
    ['x0', 'x1']
    """
    pd = pandas()
    if is_collection(table):
        raise NeedsMemoryError(
            f"{who}: X is a Dask collection, and this needs a table in memory; pass table.compute() or table.head(n)."
        )
    if isinstance(table, pd.DataFrame):
        frame = table.copy(deep=False)
    elif hasattr(table, "to_pandas"):
        frame = table.to_pandas()
        frame = frame.to_frame() if isinstance(frame, pd.Series) else frame
    elif isinstance(table, dict):
        frame = pd.DataFrame(table)
    else:
        if is_sparse(table):
            raise TypeError(
                f"{who}: expected a table, got a sparse matrix; pandas.DataFrame.sparse.from_spmatrix makes one of it. "
                "KernelClassifier and KernelRegressor take sparse matrices as they are."
            )
        array = np.asarray(table)
        if array.ndim != 2:
            raise ValueError(
                f"{who}: expected a table (a data frame, a dict of columns, or an array of two dimensions), got "
                f"{type(table).__name__} of {array.ndim} dimensions."
            )
        frame = pd.DataFrame(array)
        given = names is not None and len(names) == array.shape[1]
        frame.columns = list(names or ()) if given else [f"x{j}" for j in range(array.shape[1])]
    frame.columns = [str(name) for name in frame.columns]
    _check_names(frame.columns, who)
    for name in frame:
        _check_cells(frame[name], f"{who}: column {name!r}")
    return frame


def _check_names(names: Any, who: str) -> None:
    """Raise a ValueError if two columns have the same name."""
    twice = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
    if twice:
        raise ValueError(f"{who}: the table has several columns named {twice[0]!r}; rename them.")


def _check_cells(column: Any, what: str) -> None:
    """Raise a ValueError if a cell fails when it is compared or written as a text, as a signaling NaN does."""
    if column.dtype != object or pandas().api.types.infer_dtype(column) == "string":
        return
    for row, cell in enumerate(column):
        try:
            str(cell)
            pandas().isna(cell)
        except Exception as error:
            raise ValueError(
                f"{what} has a cell in row {row + 1:,} that cannot be read ({type(cell).__name__}: "
                f"{type(error).__name__}); put None in its place, or leave out the column."
            ) from error


def as_column(values: Any, rows: int, who: str) -> Any:
    """A pandas column from one of pandas or polars, or a list or array, with a value for every row."""
    pd = pandas()
    if is_sparse(values):
        raise TypeError(f"{who}: expected one value per row, got a sparse array; pass {who}.toarray().ravel().")
    values = values.to_pandas() if hasattr(values, "to_pandas") else values
    array = values if isinstance(values, pd.Series) else np.asarray(values)
    if array.ndim != 1 or len(array) != rows:
        shown = f"{len(array):,} values" if array.ndim == 1 else f"an array of the shape {array.shape}"
        raise ValueError(f"{who}: expected one value for each of {rows:,} rows, got {shown}.")
    column = pd.Series(array)
    _check_cells(column, who)
    return column


def listed(names: Any, most: int = _SHOWN) -> str:
    """At most so many names, and how many there are if these are not all.

    Examples
    --------
    >>> from fewkern.tables.frames import listed
    >>> listed(["a", "b"]), listed([f"x{i}" for i in range(20)])[-15:]
    ("'a', 'b'", '... (20 in all)')
    """
    names = list(names)
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names):,} in all)"


def cut_short(sentences: Sequence[str], what: str) -> tuple[str, ...]:
    """The first sentences of one kind, and how many there are beyond these."""
    more = len(sentences) - _SHOWN
    return (*sentences[:_SHOWN], f"and {more:,} more {what}") if more > 0 else tuple(sentences)


def nearest(name: str, names: Any) -> str:
    """A hint: the column that was probably meant, or the columns of the table.

    Examples
    --------
    >>> from fewkern.tables.frames import nearest
    >>> nearest("Churn", ["age", "churn"]), nearest("y", ["age", "churn"])
    ("did you mean 'churn'?", "the table has 'age', 'churn'.")
    """
    names = list(names)
    lowered = {str(known).lower().strip(): known for known in reversed(names)}
    close = difflib.get_close_matches(name.lower().strip(), lowered, n=3, cutoff=0.75)
    if close:
        return f"did you mean {' or '.join(repr(lowered[match]) for match in close)}?"
    return f"the table has {listed(names)}."


def as_parts(table: Any, who: str, verbose: bool = False) -> FrameParts | None:
    """The parts of a table that stays where it is; None of a table in memory.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from fewkern.tables.frames import as_parts
    >>> as_parts(dd.from_pandas(pd.DataFrame({"a": range(10)}), npartitions=2), "example").lengths
    (5, 5)
    """
    if isinstance(table, FrameParts):
        return table
    return FrameParts.of_collection(as_dask_frame(table, who), verbose) if is_collection(table) else None


def as_dask_frame(table: Any, who: str) -> Any:
    """A Dask data frame whose column names are strings, each once."""
    if not hasattr(table, "columns"):
        raise TypeError(
            f"{who}: expected a Dask data frame, got a Dask {type(table).__name__}; "
            "dask.dataframe.from_dask_array(array, columns=names) makes one of an array."
        )
    _check_names(table.columns, who)
    if not all(isinstance(name, str) for name in table.columns):
        table = table.rename(columns={name: str(name) for name in table.columns})
    return table


@dataclass(frozen=True)
class DrawnRows:
    """Rows of a table that are drawn by their numbers; those of parts are merged by ``+``."""

    limit: int
    numbers: Array
    """Of the rows in the whole table, ascending."""
    frame: Any
    lacking: int
    """Rows without a target, of which none is drawn."""

    def __add__(self, other: DrawnRows) -> DrawnRows:
        numbers = np.concatenate([self.numbers, other.numbers])
        both = DrawnRows(self.limit, numbers, _joined([self.frame, other.frame]), self.lacking + other.lacking)
        return both._at(smallest_keys(row_keys(numbers), None, self.limit))

    def _at(self, places: Array) -> DrawnRows:
        return replace(self, numbers=self.numbers[places], frame=self.frame.iloc[places])


def _joined(frames: list[Any]) -> Any:
    """The rows of several parts, with row numbers from 0 as index."""
    filled = [frame for frame in frames if len(frame)]
    return pandas().concat(filled or frames[:1], ignore_index=True)


def _draw(limit: int, needed: tuple[str, ...], bound: float, first: int, part: Any) -> DrawnRows:
    """Rows of a part whose keys are among the smallest, and below ``bound``."""
    known = part[list(needed)].notna().to_numpy().all(axis=1)
    places = np.flatnonzero(known)
    keys = row_keys(first + places)
    places = places[keys < bound]
    places = places[smallest_keys(keys[keys < bound], None, limit)]
    return DrawnRows(limit, first + places, part.iloc[places], int((~known).sum()))


def draw_rows(parts: FrameParts, limit: int, needed: tuple[str, ...] = (), verbose: bool = False) -> DrawnRows:
    """``limit`` rows with a cell in all columns ``needed`` (all, if there are no more), by their numbers alone.

    So a table gives the same rows however it is cut.
    """
    columns = [str(name) for name in parts.empty.columns]
    for name in needed:
        if name not in columns:
            raise ValueError(f"target: there is no column {name!r}; {nearest(name, columns)}")
    # half as many again as are wanted, so that rows without a target seldom make another pass necessary
    bound = 1.5 * limit / max(parts.n, 1)
    found: DrawnRows = parts.total(partial(_draw, limit, needed, bound), "drawing rows", verbose)
    if len(found.numbers) < min(limit, parts.n - found.lacking):
        found = parts.total(partial(_draw, limit, needed, 1.0), "drawing rows again", verbose)
    found = found._at(np.argsort(found.numbers))
    return replace(found, frame=found.frame.reset_index(drop=True))


def _fetch(numbers: Array | None, first: int, part: Any) -> list[Any]:
    if numbers is None:
        return [part]
    lo, hi = np.searchsorted(numbers, [first, first + len(part)])
    return [part.iloc[numbers[lo:hi] - first]]


def fetch_rows(parts: FrameParts, numbers: Any = None, verbose: bool = False) -> Any:
    """The rows of these numbers as a data frame, in the order of the table; None: all rows."""
    if not parts.parts:
        return parts.empty
    wanted, label = (None, "reading the table") if numbers is None else (np.sort(numbers), "fetching rows")
    return _joined(parts.total(partial(_fetch, wanted), label, verbose))
