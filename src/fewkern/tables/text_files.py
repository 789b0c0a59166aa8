"""Text files as cells of text, whole or in pieces: encoding, separator, decimal mark and title are detected.

Cells stay text: what a column means is decided by :mod:`fewkern.tables.schema` when a model is fitted, and by the model
itself when it predicts, never by what happens to be in one file.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from fewkern.tables.cells import pandas

TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
_SEPARATORS = (",", ";", "\t", "|")
_NAMES = {"\t": "tab", " ": "space"}
_COMMA_NUMBER = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][-+]?\d+)?")
_POINT_NUMBER = re.compile(r"[-+]?\d+\.\d+([eE][-+]?\d+)?")
_COMMA_OR_WHOLE = r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?(?:[eE][-+]?\d+)?"
# Texts of missing cells; "NA" may be Namibia.
_MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"]
_MISSING += ["NULL", "NaN", "None", "n/a", "nan", "null"]


# Bytes of a piece of text: 50,000 rows of 20 numbers.
PIECE_BYTES = 1 << 24
# Bytes of a text file in which the separator and the decimal mark are looked for.
_HEAD_BYTES = 1 << 20


@dataclass(frozen=True)
class Marks:
    """The format of text files, as far as the user gave it."""

    sep: str | None = None
    """A character, or ``tab``."""
    decimal: str | None = None
    skip: int | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.sep in ("\\t", "tab"):
            object.__setattr__(self, "sep", "\t")
        if self.sep is not None and len(self.sep) != 1:
            raise ValueError(f"sep must be one character, got {self.sep!r}.")


@dataclass(frozen=True)
class Style:
    """The format of a text file."""

    sep: str
    commas: tuple[str, ...] | None
    """Columns whose numbers have decimal commas; None: those whose cells look like it."""
    notes: tuple[str, ...]
    skip: int = 0
    """Lines above the header."""


@dataclass(frozen=True)
class Piece:
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
class Opened:
    """A file of which only the head has been read."""

    path: Path
    pieces: Sequence[Piece]
    empty: Any
    """A data frame with its columns, and no rows."""
    notes: tuple[str, ...] = ()
    style: Style | None = None
    """How a text file is written."""
    types: dict[str, str] = field(default_factory=dict)
    """What the columns hold, where the file says so."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(map(str, self.empty.columns))


def decoded(name: str, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and how it was encoded if that is unusual."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return content.decode("utf-16"), ("read as UTF-16",)
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} begins like UTF-16 but is not: {error}.") from error
    if b"\0" in content:
        raise ValueError(f"{name} holds binary data, not text.")
    try:
        return content.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        # every byte is a character of this one, as in a file that Excel wrote in the West
        return content.decode("cp1252", errors="replace"), ("the text is not UTF-8: read as Windows-1252",)


def find_style(text: str, suffix: str, marks: Marks) -> Style:
    """Separator, decimal mark and lines above the header, with a note where they are not the usual ones."""
    lines = text.splitlines()[:100]
    usual = "\t" if suffix in (".tsv", ".tab") else ","
    found, skip = _find_layout(lines, usual, marks)
    cells = [cell.strip() for row in csv.reader(lines[skip + 1 :], delimiter=found) for cell in row]
    commas = sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
    points = sum(_POINT_NUMBER.fullmatch(cell) is not None for cell in cells)
    comma = marks.decimal == "," if marks.decimal else found != "," and commas > points
    said = []
    if marks.sep is None and found != usual:
        said.append(f"the separator {_NAMES.get(found, repr(found))}")
    if marks.decimal is None and comma:
        said.append("decimal commas")
    notes = [f"read with {' and '.join(said)}"] if said else []
    if skip and marks.skip is None:
        notes.append(note_on_title(next(line for line in lines if line.strip()), skip))
    return Style(found, None if comma else (), tuple(notes), skip)


def _find_layout(lines: list[str], usual: str, marks: Marks) -> tuple[str, int]:
    """Separator, and lines above the header: with these, most lines have as many cells as the header, and the most."""
    first = marks.skip or 0
    best, most = (usual, first), (0.0, 1, 0)
    for sep in [marks.sep] if marks.sep else sorted(_SEPARATORS, key=lambda s: s != usual):
        reader = csv.reader(lines[first:], delimiter=sep)
        starts, rows = [first], []
        for row in reader:
            rows.append(row)
            starts.append(first + reader.line_num)
        above = header_row(rows) if marks.skip is None else 0
        widths = [len(row) for row in rows[above:] if row] or [0]
        alike = widths.count(widths[0]) / len(widths) if widths[0] > 1 else 0.0
        rank = (alike, widths[0], -above)
        if rank > most or marks.sep:
            best, most = (sep, starts[above]), rank
    return best


def separated(name: str, text: str, style: Style) -> tuple[Any, tuple[str, ...]]:
    """The rows of a text, with notes on its header."""
    pd = pandas()
    notes: list[str] = []
    if style.skip:
        text = "".join(text.splitlines(keepends=True)[style.skip :])
        if not text.strip():
            raise ValueError(f"{name}: nothing is left below the {style.skip:,} lines to skip.")
    try:
        frame = _read_text(text, style.sep)
    except pd.errors.ParserError as error:
        why, shown = str(error), _NAMES.get(style.sep, repr(style.sep))
        if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", why):
            why = f"line {int(found[2]) + style.skip} has {found[3]} cells, the lines before it have {found[1]}"
        raise ValueError(
            f"{name} cannot be read as a table: {why} (separator {shown}; the option sep takes another)."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index(drop=True)
        notes.append(
            "the header has one name fewer than the rows have cells: the first cells were taken as row names and left "
            "out"
        )
    header = next(csv.reader([text.lstrip("\r\n").splitlines()[0]], delimiter=style.sep), [])
    notes += notes_on_names(header)
    frame, codes = _with_codes(frame)
    notes += codes
    for column in comma_columns(frame) if style.commas is None else style.commas:
        if column in frame.columns:
            frame[column] = _with_points(frame[column])
    return frame, tuple(notes)


def _with_codes(frame: Any) -> tuple[Any, list[str]]:
    """``NA`` as a code where all other cells of a column are two capital letters, as in a list of countries."""
    notes = []
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        is_na = (column == "NA").fillna(False).astype(bool)
        if not is_na.any():
            continue
        others = column[~is_na].dropna()
        if not others.str.fullmatch("[A-Z]{2}").all():
            frame.isetitem(place, column.mask(is_na))
        elif len(others):
            notes.append(f"column {str(name)!r}: 'NA' is taken as a code, as the other cells are")
    return frame, notes


def _read_text(text: str, sep: str, **given: Any) -> Any:
    """Parse delimited text; all cells stay texts."""
    return pandas().read_csv(
        io.StringIO(text), sep=sep, dtype=str, skipinitialspace=True, keep_default_na=False, na_values=_MISSING, **given
    )


def _comma_numbers(cells: Any) -> Any:
    """Which texts of a column are numbers with a decimal comma, or whole."""
    return cells.str.fullmatch(_COMMA_OR_WHOLE, na=False).astype(bool)


def comma_columns(frame: Any) -> tuple[str, ...]:
    """Columns of texts of which at least half are numbers with decimal commas."""
    counts = {name: _comma_numbers(frame[name].str.strip()).sum() for name in frame.columns}
    return tuple(name for name, count in counts.items() if count >= max(1, int(frame[name].notna().sum())) / 2)


def _with_points(column: Any) -> Any:
    """A column of texts whose numbers have decimal commas, with points in place of the commas."""
    cells = column.str.strip()
    changed = cells.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return column.where(~_comma_numbers(cells), changed)


def header_row(rows: Sequence[Sequence[Any]]) -> int:
    """The number of rows above the header.

    A title fills at most half of the columns of the rows below it; a header fills more, with anything but numbers. A
    title is recognized above three columns or more: above fewer it looks like a header.

    Examples
    --------
    >>> from fewkern.tables.text_files import header_row
    >>> header_row([["Sales"], [], ["town", "units", "price"], ["Bern", "3", "2.5"], ["Lyon", "1", "4"]])
    2
    >>> header_row([["town", "units", "price"], ["Bern", "3", "2.5"], ["Lyon", "1", "4"]])
    0
    """
    widths = Counter(len(row) for row in rows if any(map(_filled, row)))
    width = max(widths, key=lambda w: (widths[w], w), default=0)
    for k, row in enumerate(rows[:20]) if width >= 3 else ():
        if 2 * sum(map(_filled, row)) > width:
            below = [len(other) == width for other in rows[k:] if any(map(_filled, other))]
            blank = not any(_filled(cell) for other in rows[:k] for cell in other)
            right = not any(map(_is_number, row)) and sum(below) >= 0.9 * len(below) and len(below) > 1
            return k if right and not blank else 0
    return 0


def _filled(cell: Any) -> bool:
    return cell is not None and str(cell).strip() != ""


def _is_number(cell: Any) -> bool:
    try:
        float(str(cell).replace(",", "."))
    except ValueError:
        return False
    return True


def note_on_title(title: str, rows: int) -> str:
    """A sentence about rows above a header."""
    first = title.strip()[:40]
    what = f"the first {rows:,} lines ({first!r}, ...) are" if rows > 1 else f"the first line ({first!r}) is"
    return f"{what} not part of the table: the header is in line {rows + 1} (skip 0, --skip 0, reads from line 1)"


def notes_on_names(header: Sequence[str]) -> list[str]:
    """Sentences about names that several columns have."""
    notes = []
    for column, count in Counter(header).items():
        if count > 1 and column:
            others = ", ".join(f"'{column}.{k}'" for k in range(1, count))
            notes.append(f"{count} columns are named {column!r}: they are called {column!r}, {others}")
    return notes


def cut_text(path: Path, suffix: str, marks: Marks, style: Style | None) -> Opened:
    """Cut a text file, of which only the head is read; ``style`` is that of the first file of a table, if known."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path.name} is UTF-16, which cannot be read in pieces; save it as UTF-8.")
    text, notes = decoded(path.name, head if len(head) < _HEAD_BYTES else _whole_lines(head))
    if not text.strip():
        raise ValueError(f"{path.name} is empty.")
    if style is None:
        style = find_style(text, suffix, marks)
        first, more = separated(path.name, text, replace(style, commas=()))
        notes += style.notes + more
        style = replace(style, commas=comma_columns(first) if style.commas is None else ())
    below = replace(style, skip=0)
    start = len(b"".join(head.splitlines(keepends=True)[: style.skip]))
    places = _line_ends(path, start)
    header = head[start : places[0]]
    pieces = [_text_piece(path, header, place, below) for place in pairwise(places)]
    empty, _ = separated(path.name, decoded(path.name, header)[0], below)
    return Opened(path, pieces, empty, notes, style)


def _text_piece(path: Path, header: bytes, place: tuple[int, int], style: Style) -> Piece:
    """What reads a piece, with its header, and what counts its rows."""

    def lines() -> str:
        with path.open("rb") as file:
            file.seek(place[0])
            content = file.read(place[1] - place[0])
        return decoded("this piece", header + content)[0]

    def read() -> Any:
        return separated("this piece", lines(), style)[0]

    def count() -> int:
        try:  # one column is enough, and faster
            return len(_read_text(lines(), style.sep, usecols=[0], index_col=False))
        except pandas().errors.ParserError:
            return len(read())  # which says what is wrong

    return Piece(f"{path.name}, bytes {place[0]:,} to {place[1]:,}", read, count)


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
