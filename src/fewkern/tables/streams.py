"""Tables that stay where they are: rows are drawn from them by number, or fetched by number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.frames import FrameParts
from fewkern.arrays.partitions import is_collection
from fewkern.arrays.sampling import row_keys, smallest_keys
from fewkern.tables.frames import check_names, nearest, pandas

__all__ = ["DrawnRows", "as_dask_frame", "as_parts", "draw_rows", "fetch_rows", "whole_table"]

# How many more rows than are wanted a pass brings, so that rows without a target seldom make another one necessary.
_SPARE = 1.5


def as_parts(table: Any, who: str, verbose: bool = False) -> FrameParts | None:
    """The parts of a table that stays where it is; None of a table in memory.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from fewkern.tables.streams import as_parts
    >>> as_parts(dd.from_pandas(pd.DataFrame({"a": range(10)}), npartitions=2), "example").lengths
    (5, 5)
    """
    if isinstance(table, FrameParts) or not is_collection(table):
        return table if isinstance(table, FrameParts) else None
    return FrameParts.of_collection(as_dask_frame(table, who), verbose)


def as_dask_frame(table: Any, who: str) -> Any:
    """A Dask data frame with names that are different texts."""
    if not hasattr(table, "columns"):
        raise TypeError(
            f"{who}: expected a Dask data frame, got a Dask {type(table).__name__}; "
            "dask.dataframe.from_dask_array(array, columns=names) makes one of an array."
        )
    check_names(list(table.columns), who)
    if not all(isinstance(name, str) for name in table.columns):
        table = table.rename(columns={name: str(name) for name in table.columns})
    return table


@dataclass(frozen=True)
class DrawnRows:
    """Rows of a table that are drawn by their numbers; those of parts are merged by ``+``."""

    limit: int
    numbers: np.ndarray[Any, Any]
    """Of the rows in the whole table, ascending."""
    frame: Any
    lacking: int
    """Rows without a target, of which none is drawn."""

    def __add__(self, other: DrawnRows) -> DrawnRows:
        numbers = np.concatenate([self.numbers, other.numbers])
        frame = _joined([self.frame, other.frame])
        return _cut(DrawnRows(self.limit, numbers, frame, self.lacking + other.lacking))


def _joined(frames: list[Any]) -> Any:
    """The rows of several parts, with row numbers from 0 as index."""
    filled = [frame for frame in frames if len(frame)]
    return pandas().concat(filled or frames[:1], ignore_index=True)


def _cut(drawn: DrawnRows) -> DrawnRows:
    part = smallest_keys(row_keys(drawn.numbers), None, drawn.limit)
    if len(part) == len(drawn.numbers):
        return drawn
    return replace(drawn, numbers=drawn.numbers[part], frame=drawn.frame.iloc[part])


@dataclass(frozen=True)
class _Drawing:
    """What is asked of every part."""

    limit: int
    needed: tuple[str, ...]
    """Columns without which a row is not drawn."""
    bound: float
    """Rows with a larger key are left where they are."""

    def __call__(self, first: int, part: Any) -> DrawnRows:
        known = part[list(self.needed)].notna().to_numpy().all(axis=1)
        places = np.flatnonzero(known)
        places = places[row_keys(first + places) < self.bound]
        found = DrawnRows(self.limit, first + places, part.iloc[places], int((~known).sum()))
        return _cut(found)


def draw_rows(parts: FrameParts, limit: int, needed: tuple[str, ...] = (), verbose: bool = False) -> DrawnRows:
    """``limit`` rows with a cell in all columns ``needed`` (all, if there are no more), by their numbers alone.

    So a table gives the same rows however it is cut.
    """
    columns = [str(name) for name in parts.empty.columns]
    for name in needed:
        if name not in columns:
            raise ValueError(f"target: there is no column {name!r}; {nearest(name, columns)}")
    bound = _SPARE * limit / max(parts.n, 1)
    found: DrawnRows = parts.total(_Drawing(limit, needed, bound), "drawing rows", verbose)
    if len(found.numbers) < min(limit, parts.n - found.lacking):
        found = parts.total(_Drawing(limit, needed, 1.0), "drawing rows again", verbose)
    order = np.argsort(found.numbers)
    return replace(found, numbers=found.numbers[order], frame=found.frame.iloc[order].reset_index(drop=True))


@dataclass(frozen=True)
class _Fetching:
    numbers: np.ndarray[Any, Any]

    def __call__(self, first: int, part: Any) -> list[Any]:
        lo, hi = np.searchsorted(self.numbers, [first, first + len(part)])
        return [part.iloc[self.numbers[lo:hi] - first]]


def fetch_rows(parts: FrameParts, numbers: Any, verbose: bool = False) -> Any:
    """The rows of these numbers as a data frame, in the order of the table."""
    wanted = np.sort(np.asarray(numbers))
    return _joined(parts.total(_Fetching(wanted), "fetching rows", verbose))


def whole_table(parts: FrameParts, verbose: bool = False) -> Any:
    """All rows in memory."""
    if not parts.parts:
        return parts.empty
    return _joined(parts.total(_whole, "reading the table", verbose))


def _whole(first: int, part: Any) -> list[Any]:  # noqa: ARG001 - called like all others
    return [part]
