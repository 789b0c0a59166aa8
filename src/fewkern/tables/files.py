"""Several files, or large ones, as one table in parts.

The parts are row groups of Parquet, lines of text between two places, and whole files of other kinds. A text file is
cut where a line ends outside of quotes. Its cells stay text, as in :mod:`fewkern.tables.text_files`.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from fewkern.arrays.frames import FrameParts, require_dask
from fewkern.arrays.progress import missing_package
from fewkern.tables import text_files
from fewkern.tables.frames import pandas
from fewkern.tables.reading import PARQUET, SUFFIXES, ReadTable, kind_of, parquet_error, read_file

# A file of more bytes than this (of text, or eight for every cell of Parquet) is read in pieces: as cells it takes
# several times as much memory, and so does the fit.
STREAM_BYTES = 1 << 28
# Bytes of a piece of text: 50,000 rows of 20 numbers.
PIECE_BYTES = 1 << 24
# Bytes of a text file in which the separator and the decimal mark are looked for.
_HEAD_BYTES = 1 << 20


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


def open_tables(
    files: Sequence[Path],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    skip: int | None = None,
    verbose: bool = False,
) -> ReadTable:
    """One table from files: in memory if it is a single one that is not large, otherwise in parts.

    Raises a ValueError, with the names of the file and of the column, if a file has other columns than the first, or
    columns of another type.

    Returns
    -------
    ReadTable
        ``frame`` is a data frame of pandas, or :class:`~fewkern.arrays.frames.FrameParts`, which
        :meth:`TableModel.fit` takes.
    """
    marks = text_files.marks_of(sep, decimal, skip)
    if len(files) == 1 and not _is_large(files[0]):
        return read_file(files[0], marks)
    require_dask(f"several files, and files of more than {STREAM_BYTES >> 20} MiB, are read")
    opened = [_open_file(files[0], marks, None)]
    for path in files[1:]:
        opened.append(_open_file(path, marks, opened[0].style))
        _check_alike(opened[0], opened[-1])
    columns = list(map(str, opened[0].empty.columns))
    pieces = [replace(piece, columns=columns) for file in opened for piece in file.pieces]
    parts = FrameParts.of_pieces(pieces, opened[0].empty, verbose)
    if not parts.parts:
        raise ValueError(f"{files[0].name}{' and the other files' if len(files) > 1 else ''}: there are no rows.")
    return ReadTable(parts, opened[0].notes)


def _check_alike(first: _Opened, other: _Opened) -> None:
    """Raise a ValueError if two files do not belong to one table."""
    ours, theirs = list(map(str, first.empty.columns)), list(map(str, other.empty.columns))
    for name in ours:
        if name not in theirs:
            raise ValueError(f"{other.path.name} lacks the column {name!r}, which {first.path.name} has.")
        kinds = {first.types.get(name, "nothing"), other.types.get(name, "nothing")} - {"nothing"}
        if len(kinds) > 1:
            raise ValueError(
                f"column {name!r} holds {other.types[name]} in {other.path.name}, but {first.types[name]} in "
                f"{first.path.name}; write them with one type."
            )
    for name in theirs:
        if name not in ours:
            raise ValueError(f"{other.path.name} has a column {name!r}, which {first.path.name} lacks.")


@dataclass(frozen=True)
class _Piece:
    """A piece of a file."""

    name: str
    """Of the file, with the place."""
    read: Callable[[], Any]
    rows: Callable[[], int] | None = None
    """Counts the rows, where that is faster than reading them."""
    columns: Sequence[str] = ()
    """Those of the table, in their order."""

    def __call__(self) -> Any:
        return self._named(self.read)[self.columns]

    def count(self) -> int:
        """Number of rows."""
        return len(self()) if self.rows is None else int(self._named(self.rows))

    def _named(self, read: Callable[[], Any]) -> Any:
        """What ``read`` returns; an error says what was read."""
        try:
            return read()
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error


@dataclass(frozen=True)
class _Opened:
    """A file of which only the head has been read."""

    path: Path
    pieces: Sequence[_Piece]
    empty: Any
    """A data frame with its columns, and no rows."""
    types: dict[str, str]
    """What the columns hold, where the file says so."""
    notes: tuple[str, ...] = ()
    style: text_files.Style | None = None
    """How a text file is written."""


def _is_large(path: Path) -> bool:
    """Whether a file is so large that it is read in pieces."""
    suffix, packed = kind_of(path)
    if packed or not path.is_file():
        return False
    if suffix in PARQUET:
        meta = _parquet(path).metadata
        return bool(8 * meta.num_rows * meta.num_columns > STREAM_BYTES)
    return suffix in text_files.TEXT and path.stat().st_size > STREAM_BYTES


def _open_file(path: Path, marks: text_files.Marks, style: text_files.Style | None) -> _Opened:
    """The pieces of a file; ``style`` is that of the first file of a table, if this is another one."""
    suffix, packed = kind_of(path)
    if suffix in PARQUET and not packed:
        return _open_parquet(path)
    if suffix in text_files.TEXT and not packed and path.is_file() and path.stat().st_size:
        return _open_text(path, marks, style)
    found = read_file(path, marks)
    whole = _Piece(path.name, lambda: read_file(path, marks).frame)
    return _Opened(path, [whole], found.frame.iloc[:0], {}, found.notes)


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


def _open_parquet(path: Path) -> _Opened:
    file = _parquet(path)
    lengths = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    pieces = [
        _Piece(f"{path.name}, row group {k}", partial(_row_group, path, k), partial(int, length))
        for k, length in enumerate(lengths)
    ]
    types = {str(field.name): _family(field.type) for field in file.schema_arrow}
    return _Opened(path, pieces, _texts_as_names(file.schema_arrow.empty_table().to_pandas()), types)


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


def _open_text(path: Path, marks: text_files.Marks, style: text_files.Style | None) -> _Opened:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path.name} is UTF-16, which cannot be read in pieces; save it as UTF-8.")
    text, notes = text_files.decoded(path.name, head if len(head) < _HEAD_BYTES else _whole_lines(head))
    if not text.strip():
        raise ValueError(f"{path.name} is empty.")
    if style is None:
        style = text_files.find_style(text, kind_of(path)[0], marks)
        first, more = text_files.separated(path.name, text, replace(style, commas=()))
        notes += style.notes + more
        style = replace(style, commas=text_files.comma_columns(first) if style.commas is None else ())
    below = replace(style, skip=0)
    start = len(b"".join(head.splitlines(keepends=True)[: style.skip]))
    places = _line_ends(path, start)
    header = head[start : places[0]]
    pieces = []
    for place in pairwise(places):
        lines = partial(_lines, path, header, place)
        name = f"{path.name}, bytes {place[0]:,} to {place[1]:,}"
        pieces.append(_Piece(name, partial(_read_lines, lines, below), partial(_count_lines, lines, below)))
    empty, _ = text_files.separated(path.name, text_files.decoded(path.name, header)[0], below)
    return _Opened(path, pieces, empty, {}, notes, style)


def _lines(path: Path, header: bytes, place: tuple[int, int]) -> str:
    """The header of a text file, and its lines between two places."""
    with path.open("rb") as file:
        file.seek(place[0])
        content = file.read(place[1] - place[0])
    return text_files.decoded("this piece", header + content)[0]


def _read_lines(text: Callable[[], str], style: text_files.Style) -> Any:
    return text_files.separated("this piece", text(), style)[0]


def _count_lines(text: Callable[[], str], style: text_files.Style) -> int:
    try:  # one column is enough, and faster
        return len(text_files.read_text(text(), style.sep, columns=[0]))
    except pandas().errors.ParserError:
        return len(_read_lines(text, style))  # which says what is wrong


def _whole_lines(head: bytes) -> bytes:
    """The beginning of a file without the line that was cut off at its end."""
    end = len(head)
    while (end := head.rfind(b"\n", 0, end)) >= 0:
        if head.count(b'"', 0, end) % 2 == 0:
            break
    return head[: end + 1]


def _line_ends(path: Path, start: int) -> list[int]:
    """Offsets of the cuts of a text file: after the header at ``start``, every ``PIECE_BYTES`` or so, and the end.

    A line ends outside of quotes, of which a cell that holds a line break has one on each side.
    """
    places: list[int] = []
    quotes, at = 0, start
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(PIECE_BYTES):
            end, seen = -1, 0
            while (end := block.find(b"\n", end + 1)) >= 0:
                quotes += block.count(b'"', seen, end)
                seen = end
                if quotes % 2 == 0 and (places or block[: end + 1].strip() or at > start):
                    places.append(at + end + 1)
                    break
            quotes += block.count(b'"', seen)
            at += len(block)
    return [*places, at] if not places or places[-1] < at else places
