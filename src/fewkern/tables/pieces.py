"""Pieces of files: row groups of Parquet, lines of text between two places, whole files of other kinds.

A text file is cut where a line ends outside of quotes. Its cells stay text, as in :mod:`fewkern.tables.reading`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from fewkern.arrays.frames import Piece
from fewkern.arrays.texts import missing_package
from fewkern.tables.frames import pandas
from fewkern.tables.reading import (
    PARQUET,
    TEXT,
    Marks,
    Style,
    decoded,
    find_style,
    has_commas,
    kind_of,
    read_table,
    read_text,
    separated,
    with_points,
)

__all__ = ["Opened", "is_large", "open_file"]

# A file of more bytes than this (of text, or eight for every cell of Parquet) is read in pieces: as cells it takes
# several times as much memory, and so does the fit.
STREAM_BYTES = 1 << 28
# Bytes of a piece of text: 50,000 rows of 20 numbers.
PIECE_BYTES = 1 << 24
# Bytes of a text file in which the separator and the decimal mark are looked for.
_HEAD_BYTES = 1 << 20


@dataclass(frozen=True)
class Opened:
    """A file of which nothing but the head has been read."""

    path: Path
    pieces: tuple[Piece, ...]
    empty: Any
    """A data frame with its columns, and no rows."""
    types: dict[str, str]
    """What the columns hold, where the file says so."""
    notes: tuple[str, ...] = ()
    style: TextStyle | None = None


def is_large(path: Path) -> bool:
    """Whether a file is better read in pieces."""
    suffix, packed = kind_of(path)
    if packed or not path.is_file():
        return False
    if suffix in PARQUET:
        try:
            meta = _parquet(path).metadata
        except ValueError:
            return False  # whoever reads it says what is wrong
        return bool(8 * meta.num_rows * meta.num_columns > STREAM_BYTES)
    return suffix in TEXT and path.stat().st_size > STREAM_BYTES


def open_file(path: Path, marks: Marks, style: TextStyle | None = None) -> Opened:
    """The pieces of a file; ``style`` is that of the first file of a table, if this is another one."""
    suffix, packed = kind_of(path)
    if suffix in PARQUET and not packed:
        return _open_parquet(path)
    if suffix in TEXT and not packed and path.is_file() and path.stat().st_size:
        return _open_text(path, marks, style)
    found = read_table(path, sep=marks.sep, decimal=marks.decimal, skip=marks.skip)
    return Opened(path, (WholeFile(path, marks),), found.frame.iloc[:0], {}, found.notes)


@dataclass(frozen=True)
class WholeFile:
    """A file that cannot be cut, or is not worth it."""

    path: Path
    marks: Marks

    @property
    def name(self) -> str:
        """Of the file."""
        return self.path.name

    def __call__(self) -> Any:
        return read_table(self.path, sep=self.marks.sep, decimal=self.marks.decimal, skip=self.marks.skip).frame

    def count(self) -> int:
        """Number of rows."""
        return len(self())


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file."""

    path: Path
    group: int
    rows: int

    @property
    def name(self) -> str:
        """Of the file and the group."""
        return f"{self.path.name}, row group {self.group}"

    def __call__(self) -> Any:
        file = _parquet(self.path)
        try:
            return _texts_as_names(file.read_row_group(self.group).to_pandas())
        except Exception as error:
            raise ValueError(f"it cannot be read: the Parquet file is not intact ({error}).") from error

    def count(self) -> int:
        """Number of rows, which the file says."""
        return self.rows


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
        raise ValueError(
            f"{path.name} cannot be read as a table: it is not an intact Parquet file ({error})."
        ) from error


def _open_parquet(path: Path) -> Opened:
    file = _parquet(path)
    groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
    pieces = tuple(RowGroup(path, k, group.num_rows) for k, group in enumerate(groups))
    empty = _texts_as_names(file.schema_arrow.empty_table().to_pandas())
    types = {str(field.name): _family(field.type) for field in file.schema_arrow}
    return Opened(path, pieces, empty, types)


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


@dataclass(frozen=True)
class TextStyle:
    """How the text files of a table are written."""

    style: Style
    commas: tuple[str, ...]
    """Columns whose numbers have decimal commas."""
    skip: int = 0
    """Lines above the header of every file."""


@dataclass(frozen=True)
class Lines:
    """The lines of a text file between two places."""

    path: Path
    written: TextStyle
    header: bytes
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Of the file, with the place."""
        return f"{self.path.name}, bytes {self.start:,} to {self.stop:,}"

    def __call__(self) -> Any:
        frame, _ = separated("this piece", self._text(), self.written.style)
        for name in self.written.commas:
            if name in frame.columns:
                frame[name] = with_points(frame[name])
        return frame

    def count(self) -> int:
        """Number of rows."""
        try:  # one column is enough, and faster
            return len(read_text(self._text(), self.written.style.sep, columns=[0]))
        except pandas().errors.ParserError:
            return len(self())  # which says what is wrong

    def _text(self) -> str:
        with self.path.open("rb") as file:
            file.seek(self.start)
            content = file.read(self.stop - self.start)
        return decoded("this piece", self.header + content)[0]


def _open_text(path: Path, marks: Marks, written: TextStyle | None) -> Opened:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path.name} is UTF-16, which cannot be read in pieces; save it as UTF-8.")
    text, notes = decoded(path.name, head if len(head) < _HEAD_BYTES else _whole_lines(head))
    if not text.strip():
        raise ValueError(f"{path.name} is empty.")
    if written is None:
        style = find_style(text, kind_of(path)[0], marks)
        first, more = separated(path.name, text, replace(style, comma=False))
        commas = tuple(str(name) for name in first if has_commas(first[name])) if style.comma else ()
        written = TextStyle(replace(style, comma=False, skip=0), commas, style.skip)
        notes += style.notes + more
    start = len(b"".join(head.splitlines(keepends=True)[: written.skip]))
    places = _line_ends(path, start)
    header = head[start : places[0]]
    empty = separated(path.name, decoded(path.name, header)[0], written.style)[0]
    pieces = tuple(Lines(path, written, header, start, stop) for start, stop in pairwise(places))
    return Opened(path, pieces, empty, {}, notes, written)


def _whole_lines(head: bytes) -> bytes:
    """The beginning of a file without the line that was cut off at its end."""
    end = len(head)
    while (end := head.rfind(b"\n", 0, end)) >= 0:
        if head.count(b'"', 0, end) % 2 == 0:
            break
    return head[: end + 1]


def _line_ends(path: Path, start: int) -> list[int]:
    """Where a text file is cut: after the header at ``start``, about every ``PIECE_BYTES`` bytes, and at the end.

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
