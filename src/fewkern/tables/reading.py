"""Files as data frames: separators, decimal commas, encodings and compression are recognized, and said.

Cells of text files stay text: what a column means is decided by :mod:`fewkern.tables.schema` when a model is fitted,
and by the model itself when it predicts, never by what happens to be in one file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fewkern.arrays.texts import missing_package
from fewkern.tables.frames import pandas
from fewkern.tables.layout import header_row, note_on_title, notes_on_names
from fewkern.tables.workbook import read_workbook

__all__ = [
    "PARQUET",
    "SUFFIXES",
    "TEXT",
    "Marks",
    "ReadTable",
    "Style",
    "check_marks",
    "decoded",
    "find_style",
    "has_commas",
    "kind_of",
    "read_table",
    "read_text",
    "separated",
    "with_points",
]

TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
PARQUET = (".parquet", ".pq")
SUFFIXES = (*TEXT, ".json", ".jsonl", ".ndjson", *PARQUET, ".npz", ".xlsx", ".xls")
_SEPARATORS = (",", ";", "\t", "|")
_NAMES = {"\t": "tab", " ": "space"}
# Lines that are looked at to find the separator and the decimal mark.
_SNIFFED = 100
_COMMA_NUMBER = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][-+]?\d+)?")
_POINT_NUMBER = re.compile(r"[-+]?\d+\.\d+([eE][-+]?\d+)?")
_COMMA_OR_WHOLE = r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?(?:[eE][-+]?\d+)?"
# Half of a character, which no file but JSON can hold, and no table should.
_LONE_SURROGATE = re.compile(
    r"(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\)(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
# Texts of missing cells; "NA" may be Namibia.
_MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"]
_MISSING += ["NULL", "NaN", "None", "n/a", "nan", "null"]
# A column has decimal commas if at least this share of its cells are such numbers.
_SHARE = 0.5


@dataclass(frozen=True)
class Marks:
    """How text files are written, as far as it was said."""

    sep: str | None = None
    decimal: str | None = None
    skip: int | None = None


@dataclass(frozen=True)
class ReadTable:
    """A table from a file, and how it was read."""

    frame: Any
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Style:
    """How a text file is written."""

    sep: str
    comma: bool
    notes: tuple[str, ...]
    skip: int = 0
    """Lines above the header."""


def read_table(
    path: str | Path, *, sep: str | None = None, decimal: str | None = None, skip: int | None = None
) -> ReadTable:
    """Read a table: CSV and the like, JSON, Parquet, NPZ (arrays ``X`` and, if any, ``y``), Excel with openpyxl.

    Parameters
    ----------
    path : str or Path
        ``-`` is standard input. A name may end in ``.gz``.
    sep : str or None, default None
        Separator of a text file; recognized if not given.
    decimal : {".", ","} or None, default None
        Decimal mark of a text file; recognized if not given.
    skip : int or None, default None
        Lines above the header of a text file or a workbook; a title is recognized if not given.

    Returns
    -------
    ReadTable
        ``frame``, with texts as cells if the file is one of text, and ``notes``.

    Examples
    --------
    >>> import os, tempfile
    >>> from fewkern.tables.reading import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("name;size\\nash;3,5\\nbirch;1,25\\n")
    ...     table = read_table(path)
    >>> table.frame["size"].tolist(), table.notes
    (['3.5', '1.25'], ("read with the separator ';' and decimal commas",))
    """
    name, content, suffix = _content(path)
    sep = check_marks(sep, decimal)
    try:
        found = _parse(name, content, suffix, Marks(sep, decimal, skip))
    except (ValueError, ImportError):
        raise
    except Exception as error:  # every reader has exceptions of its own
        raise ValueError(f"{name} cannot be read as a table: {error}") from error
    found.frame.columns = [str(column) for column in found.frame.columns]
    if not len(found.frame.columns):
        raise ValueError(f"{name} has no columns.")
    return found


def check_marks(sep: str | None, decimal: str | None) -> str | None:
    """Check the marks that were given for a text file; returns the separator, of which ``tab`` is a name."""
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    if sep is not None and len(sep) != 1:
        sep = {"\\t": "\t", "tab": "\t"}.get(sep, sep)
        if len(sep) != 1:
            raise ValueError(f"sep must be one character, got {sep!r}.")
    return sep


def kind_of(path: Path) -> tuple[str, bool]:
    """The suffix of a file name, and whether the file is packed (``.gz``)."""
    suffixes = [part.lower() for part in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] == ".gz"
    last = (suffixes[:-1] if packed else suffixes)[-1:]
    return last[0] if last else "", packed


def _content(path: str | Path) -> tuple[str, bytes, str]:
    """Name, content (unpacked) and suffix of a file."""
    if str(path) == "-":
        content = sys.stdin.buffer.read()
        name, suffix = "standard input", ".parquet" if content[:4] == b"PAR1" else ".csv"
    else:
        path = Path(path)
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give the name of a file in it.")
        if not path.is_file():
            raise ValueError(f"there is no file {path}.")
        name, (suffix, _) = path.name, kind_of(path)
        if suffix not in SUFFIXES:
            raise ValueError(
                f"{name}: expected a file that ends in {', '.join(SUFFIXES[:-1])}, or one of these and .gz, got "
                f"{suffix or 'no suffix'!r}."
            )
        content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"{name} is not an intact .gz file: {error}.") from error
    if not content:
        raise ValueError(f"{name} is empty.")
    return name, content, suffix


def _parse(name: str, content: bytes, suffix: str, marks: Marks) -> ReadTable:
    if suffix in PARQUET:
        return ReadTable(_parquet(name, content), ())
    if suffix == ".npz":
        return ReadTable(_arrays(name, content), ())
    if suffix in (".xlsx", ".xls"):
        return ReadTable(*read_workbook(name, content, marks.skip))
    text, notes = decoded(name, content)
    if not text.strip():
        raise ValueError(f"{name} is empty.")
    if suffix in (".json", ".jsonl", ".ndjson"):
        return ReadTable(_json(name, text), notes)
    style = find_style(text, suffix, marks)
    frame, more = separated(name, text, style)
    return ReadTable(frame, notes + style.notes + more)


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
    lines = text.splitlines()[: _SNIFFED + 1]
    lines = lines[:-1] if len(lines) > _SNIFFED else lines
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
    return Style(found, comma, tuple(notes), skip)


def _find_layout(lines: list[str], usual: str, marks: Marks) -> tuple[str, int]:
    """Separator, and the number of lines above the header; where a title misleads, those of the widest table."""
    if marks.skip is not None:
        return marks.sep or _find_separator(lines[marks.skip :], usual), marks.skip
    found = marks.sep or _find_separator(lines, usual)
    skip, width = _title_lines(lines, found)
    if len({len(row) for row in csv.reader(lines, delimiter=found) if row}) > 1:
        width = 0  # no table from the first line on, such as a title with commas above columns with semicolons
    for sep in () if skip or marks.sep else _SEPARATORS:
        other, wide = _title_lines(lines, sep)
        if other and wide > width:
            found, skip, width = sep, other, wide
    return found, skip


def _title_lines(lines: list[str], sep: str) -> tuple[int, int]:
    """Lines above the header, and the width of the table, with a separator."""
    reader = csv.reader(lines, delimiter=sep)
    starts, rows = [0], []
    for row in reader:
        rows.append(row)
        starts.append(reader.line_num)
    above, width = header_row(rows)
    return starts[above], width


def _find_separator(lines: list[str], usual: str) -> str:
    """The separator with which all lines have the same number of cells, of these the one with the most."""
    best, most = usual, (False, 1)
    for sep in sorted(_SEPARATORS, key=lambda s: s != usual):
        counts = Counter(len(row) for row in csv.reader(lines, delimiter=sep) if row)
        if not counts:
            continue
        header = len(next(csv.reader(lines[:1], delimiter=sep), []))
        rank = (len(counts) == 1 and header > 1, header)
        if rank > most:
            best, most = sep, rank
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
        frame = read_text(text, style.sep)
    except pd.errors.ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        why = (
            f"line {int(found[2]) + style.skip} has {found[3]} cells, the lines before it have {found[1]}"
            if found
            else str(error)
        )
        shown = _NAMES.get(style.sep, repr(style.sep))
        raise ValueError(
            f"{name} cannot be read as a table: {why} (separator {shown}; the option sep takes another)."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index(drop=True)
        notes.append(
            "the header has one name less than the rows have cells: the first cells were left out as row names"
        )
    header = next(csv.reader([text.lstrip("\r\n").splitlines()[0]], delimiter=style.sep), [])
    notes += notes_on_names(header)
    frame, codes = _with_codes(frame)
    notes += codes
    if style.comma:
        frame = frame.apply(lambda column: with_points(column) if has_commas(column) else column)
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


def read_text(text: str, sep: str, columns: list[int] | None = None) -> Any:
    """Cells of a text as texts."""
    pd = pandas()
    try:
        return pd.read_csv(
            io.StringIO(text), sep=sep, dtype=str, skipinitialspace=True, usecols=columns, keep_default_na=False,
            na_values=_MISSING,
        )  # fmt: skip
    except pd.errors.ParserError as error:
        if "Calling read(nbytes) on source failed" in str(error):  # a text can always be read: Ctrl-C came in between
            raise KeyboardInterrupt from None
        raise


def has_commas(column: Any) -> bool:
    """Whether the numbers of a column of texts have decimal commas."""
    matches = column.str.strip().str.fullmatch(_COMMA_OR_WHOLE, na=False).astype(bool)
    return bool(matches.sum() >= _SHARE * max(1, int(column.notna().sum())))


def with_points(column: Any) -> Any:
    """A column of texts whose numbers have decimal commas, with points in place of the commas."""
    cells = column.str.strip()
    matches = cells.str.fullmatch(_COMMA_OR_WHOLE, na=False).astype(bool)
    changed = cells.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return column.where(~matches, changed)


def _json(name: str, text: str) -> Any:
    """Records, one per line or in a list, or a dict of columns."""
    pd = pandas()
    text = _LONE_SURROGATE.sub(lambda _: "\\ufffd", text)
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise ValueError(f"{name} is not JSON: {error}.") from error
    if isinstance(found, list) and all(isinstance(row, dict) for row in found):
        return pd.DataFrame(found)
    if isinstance(found, dict):
        columns = {key: list(v.values()) if isinstance(v, dict) else v for key, v in found.items()}
        if columns and all(isinstance(v, list) for v in columns.values()):
            return pd.DataFrame(columns)
    raise ValueError(f"{name}: expected a list of records, one record per line, or a dict of columns.")


def _parquet(name: str, content: bytes) -> Any:
    try:
        return pandas().read_parquet(io.BytesIO(content))
    except ImportError:
        raise missing_package("a Parquet file", "pyarrow") from None
    except Exception as error:
        raise ValueError(f"{name} cannot be read as a table: it is not an intact Parquet file ({error}).") from error


def _arrays(name: str, content: bytes) -> Any:
    """The arrays ``X``, ``y`` and ``feature_names`` of an NPZ archive."""
    if content[:4] != b"PK\x03\x04":
        raise ValueError(f"{name} is not an NPZ archive.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files if key in ("X", "y", "feature_names")}
            files = archive.files
    except ValueError as error:
        what = "holds Python objects, which are not read because they could run code; save numbers or texts"
        raise ValueError(f"{name} " + (what if "pickle" in str(error) else f"is not an NPZ archive: {error}")) from None
    if "header" in files and "X" not in files:
        raise ValueError(f"{name} is a model that fewkern saved, not a table.")
    if "X" not in arrays or arrays["X"].ndim != 2:
        raise ValueError(f"{name}: expected a two-dimensional array named X, got arrays {files}.")
    X = arrays["X"]
    given = "feature_names" in arrays and len(arrays["feature_names"]) == X.shape[1]
    names = [str(n) for n in arrays["feature_names"]] if given else [f"x{j}" for j in range(X.shape[1])]
    frame = pandas().DataFrame(X, columns=names)
    if "y" in arrays:
        if "y" in names:
            raise ValueError(f"{name}: a feature is named 'y', and so is the array of targets; rename the feature.")
        if arrays["y"].shape != (len(X),):
            raise ValueError(f"{name}: y has the shape {arrays['y'].shape} for {len(X)} rows of X.")
        frame["y"] = arrays["y"]
    return frame
