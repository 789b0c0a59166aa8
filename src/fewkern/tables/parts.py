"""Tables in parts: several files, or large ones, as one table, and rows that are drawn or fetched by their numbers.

The parts of files are row groups of Parquet, lines of text between two places, and whole files of other kinds. A text
file is cut where a line ends outside of quotes. Its cells stay text, as in :mod:`fewkern.tables.text_files`.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fewkern.arrays.frames import FrameParts, require_dask
from fewkern.arrays.namespace import Array
from fewkern.arrays.partitions import is_collection
from fewkern.arrays.progress import missing_package
from fewkern.arrays.sampling import row_keys, smallest_keys
from fewkern.tables.cells import pandas
from fewkern.tables.reading import (
    PARQUET,
    SUFFIXES,
    ReadTable,
    check_names,
    kind_of,
    nearest,
    parquet_error,
    read_file,
)
from fewkern.tables.text_files import TEXT, Marks, Opened, Piece, Style, cut_text

# A file of more bytes than this (of text, or eight for every cell of Parquet) is read in pieces: as cells it takes
# several times as much memory, and so does the fit.
STREAM_BYTES = 1 << 28


def find_files(names: Sequence[str]) -> tuple[Path, ...]:
    """The files that are meant by names, patterns such as ``part-*.parquet`` and folders, each once.

    Those of a pattern or a folder are in the order of their names. Of a folder, files are left out that are no tables,
    or whose name begins with a dot or an underscore.
    """
    found: dict[Path, None] = {}
    for name in names:
        found |= dict.fromkeys(_matches(name))
    if len(found) > 1 and Path("-") in found:
        raise ValueError("standard input (-) cannot be read together with files.")
    return tuple(found)


def _matches(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        return _inside(path)
    if path.exists() or not glob.has_magic(name):
        return [path]
    found = sorted(Path(match) for match in glob.glob(name, recursive=True))
    found = [path for path in found if path.is_file()]
    if not found:
        raise ValueError(f"no file matches the pattern {name!r}.")
    return found


def _inside(folder: Path) -> list[Path]:
    """The tables in a folder, which must be of one kind."""
    found = [p for p in sorted(folder.iterdir()) if p.is_file() and p.name[0] not in "._"]
    found = [path for path in found if kind_of(path)[0] in SUFFIXES]
    if not found:
        raise ValueError(f"the folder {folder} has no tables: no file in it ends in {', '.join(SUFFIXES)}.")
    kinds = sorted({kind_of(path)[0] for path in found})
    if len(kinds) > 1:
        raise ValueError(
            f"the folder {folder} has files of several kinds ({', '.join(kinds)}); name those that are meant, for "
            f"example '{folder / ('*' + kinds[0])}'."
        )
    return found


def open_tables(files: Sequence[Path], marks: Marks | None = None, verbose: bool = False) -> ReadTable:
    """One table from files: in memory if it is a single one that is not large, otherwise in parts.

    Raises a ValueError, with the names of the file and of the column, if a file has other columns than the first, or
    columns of another type.

    Returns
    -------
    ReadTable
        ``frame`` is a data frame of pandas, or :class:`~fewkern.arrays.frames.FrameParts`, which
        :meth:`TableModel.fit` takes.
    """
    marks = marks or Marks()
    if len(files) == 1 and not _is_large(files[0]):
        return read_file(files[0], marks)
    require_dask(f"several files, and files of more than {STREAM_BYTES >> 20} MiB, are read")
    opened = [_open_file(files[0], marks, None)]
    for path in files[1:]:
        opened.append(_open_file(path, marks, opened[0].style))
        _check_alike(opened[0], opened[-1])
    pieces = [replace(piece, columns=opened[0].columns) for file in opened for piece in file.pieces]
    parts = FrameParts.of_pieces(pieces, opened[0].empty, verbose)
    if not parts.parts:
        raise ValueError(f"{files[0].name}{' and the other files' if len(files) > 1 else ''}: there are no rows.")
    return ReadTable(parts, opened[0].notes)


def _check_alike(first: Opened, other: Opened) -> None:
    """Raise a ValueError if two files do not belong to one table."""
    for name in first.columns:
        if name not in other.columns:
            raise ValueError(f"{other.path.name} lacks the column {name!r}, which {first.path.name} has.")
        kinds = {first.types.get(name, "nothing"), other.types.get(name, "nothing")} - {"nothing"}
        if len(kinds) > 1:
            raise ValueError(
                f"column {name!r} holds {other.types[name]} in {other.path.name}, but {first.types[name]} in "
                f"{first.path.name}; write them with one type."
            )
    for name in other.columns:
        if name not in first.columns:
            raise ValueError(f"{other.path.name} has a column {name!r}, which {first.path.name} lacks.")


def _is_large(path: Path) -> bool:
    """Whether a file is so large that it is read in pieces."""
    suffix, packed = kind_of(path)
    if packed or not path.is_file():
        return False
    if suffix in PARQUET:
        meta = _parquet(path).metadata
        return bool(8 * meta.num_rows * meta.num_columns > STREAM_BYTES)
    return suffix in TEXT and path.stat().st_size > STREAM_BYTES


def _open_file(path: Path, marks: Marks, style: Style | None) -> Opened:
    """The pieces of a file; ``style`` is that of the first file of a table, if this is another one."""
    suffix, packed = kind_of(path)
    if suffix in PARQUET and not packed:
        return _open_parquet(path)
    if suffix in TEXT and not packed and path.is_file() and path.stat().st_size:
        return cut_text(path, suffix, marks, style)
    found = read_file(path, marks)
    whole = Piece(path.name, lambda: read_file(path, marks).frame)
    return Opened(path, [whole], found.frame.iloc[:0], found.notes)


def _parquet(path: Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise missing_package("a Parquet file", "pyarrow") from None
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")
    try:
        return ParquetFile(path)
    except Exception as error:
        raise parquet_error(path.name, error) from error


def _open_parquet(path: Path) -> Opened:
    file = _parquet(path)
    lengths = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    pieces = [
        Piece(f"{path.name}, row group {k}", partial(_row_group, path, k), partial(int, length))
        for k, length in enumerate(lengths)
    ]
    types = {str(field.name): _family(field.type) for field in file.schema_arrow}
    return Opened(path, pieces, _texts_as_names(file.schema_arrow.empty_table().to_pandas()), types=types)


def _row_group(path: Path, group: int) -> Any:
    file = _parquet(path)
    try:
        return _texts_as_names(file.read_row_group(group).to_pandas())
    except Exception as error:
        raise ValueError(f"it cannot be read: the Parquet file is not intact ({error}).") from error


def _texts_as_names(frame: Any) -> Any:
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _family(kind: Any) -> str:
    """What a column of Parquet holds: files of one table may store the same thing in different sizes."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_null(kind):
        return "nothing"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "dates"
    return "truth values" if types.is_boolean(kind) else str(kind)


def as_parts(table: Any, who: str, verbose: bool = False) -> FrameParts | None:
    """The parts of a table that stays where it is; None of a table in memory.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from fewkern.tables.parts import as_parts
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
    check_names(table.columns, who)
    if not all(isinstance(name, str) for name in table.columns):
        table = table.rename(columns={name: str(name) for name in table.columns})
    return table


@dataclass(frozen=True)
class DrawnRows:
    """Rows of a table that are drawn by their numbers; those of parts are merged by ``+``."""

    limit: int
    numbers: Array
    """Numbers of the rows in the whole table, ascending."""
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
