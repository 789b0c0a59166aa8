"""Any table as a pandas data frame whose column names are strings: objects in memory, and files by their suffix."""

from __future__ import annotations

import difflib
import gzip
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.partitions import NeedsMemoryError, is_collection
from fewkern.arrays.progress import missing_package
from fewkern.tables import text_files
from fewkern.tables.cells import pandas

# Names, or sentences of one kind, that are shown.
_SHOWN = 8
PARQUET = (".parquet", ".pq")
SUFFIXES = (*text_files.TEXT, ".json", ".jsonl", ".ndjson", *PARQUET, ".npz", ".xlsx", ".xls")
# Half of a character, which no file but JSON can hold, and no table should.
_LONE_SURROGATE = re.compile(
    r"(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\)(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def as_frame(table: Any, who: str, names: tuple[str, ...] | None = None) -> Any:
    """A pandas data frame from one of pandas, polars or pyarrow, a dict of columns, or a two-dimensional array.

    The columns of an array are called ``names``, or x0, x1, ...

    Examples
    --------
    >>> from fewkern.tables.reading import as_frame
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
    check_names(frame.columns, who)
    for name in frame:
        _check_cells(frame[name], f"{who}: column {name!r}")
    return frame


def check_names(names: Any, who: str) -> None:
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
    """The first names, and how many there are if these are not all.

    Examples
    --------
    >>> from fewkern.tables.reading import listed
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
    >>> from fewkern.tables.reading import nearest
    >>> nearest("Churn", ["age", "churn"]), nearest("y", ["age", "churn"])
    ("did you mean 'churn'?", "the table has 'age', 'churn'.")
    """
    names = list(names)
    lowered = {str(known).lower().strip(): known for known in reversed(names)}
    close = difflib.get_close_matches(name.lower().strip(), lowered, n=3, cutoff=0.75)
    if close:
        return f"did you mean {' or '.join(repr(lowered[match]) for match in close)}?"
    return f"the table has {listed(names)}."


@dataclass(frozen=True)
class ReadTable:
    """A table from a file, and how it was read."""

    frame: Any
    notes: tuple[str, ...]


def read_table(
    path: str | Path, *, sep: str | None = None, decimal: str | None = None, skip: int | None = None
) -> ReadTable:
    """Read a table: delimited text, JSON, Parquet, NPZ (arrays ``X`` and, if any, ``y``), Excel with openpyxl.

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
    return read_file(path, text_files.Marks(sep, decimal, skip))


def read_file(path: str | Path, marks: text_files.Marks) -> ReadTable:
    """The table in a file."""
    name, content, suffix = _content(path)
    try:
        frame, notes = _parse(name, content, suffix, marks)
    except (ValueError, ImportError):
        raise
    except Exception as error:  # every reader has exceptions of its own
        raise ValueError(f"{name} cannot be read as a table: {error}") from error
    frame.columns = [str(column) for column in frame.columns]
    if not len(frame.columns):
        raise ValueError(f"{name} has no columns.")
    return ReadTable(frame, notes)


def kind_of(path: Path) -> tuple[str, bool]:
    """The suffix of a file name without ``.gz``, and whether the file is compressed."""
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


def _parse(name: str, content: bytes, suffix: str, marks: text_files.Marks) -> tuple[Any, tuple[str, ...]]:
    """A data frame, and notes on how it was read."""
    if suffix in PARQUET:
        return _parquet(name, content), ()
    if suffix == ".npz":
        return _arrays(name, content), ()
    if suffix in (".xlsx", ".xls"):
        return _workbook(name, content, marks.skip)
    text, notes = text_files.decoded(name, content)
    if not text.strip():
        raise ValueError(f"{name} is empty.")
    if suffix in (".json", ".jsonl", ".ndjson"):
        return _json(name, text), notes
    style = text_files.find_style(text, suffix, marks)
    frame, more = text_files.separated(name, text, style)
    return frame, notes + style.notes + more


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
        raise parquet_error(name, error) from error


def parquet_error(name: str, error: Exception) -> ValueError:
    """The error about a file that is no intact Parquet file."""
    return ValueError(f"{name} cannot be read as a table: it is not an intact Parquet file ({error}).")


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


def _workbook(name: str, content: bytes, skip: int | None) -> tuple[Any, tuple[str, ...]]:
    """The first sheet of an Excel workbook that has at least two rows and two columns, through openpyxl."""
    if content[:4] != b"PK\x03\x04":
        raise ValueError(f"{name} is not an .xlsx workbook; save it as .xlsx or CSV in a spreadsheet program.")
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_package(f"{name} is an Excel workbook (CSV works as well), which", "openpyxl") from None
    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = [(sheet.title, [list(row) for row in sheet.iter_rows(values_only=True)]) for sheet in book.worksheets]
    except Exception as error:
        raise ValueError(f"{name} is not an intact .xlsx workbook; save it again, or as CSV ({error}).") from error
    filled = [(title, rows) for title, rows in sheets if any(cell is not None for row in rows for cell in row)]
    if not filled:
        raise ValueError(f"{name} is empty.")
    tables = [sheet for sheet in filled if sum(sum(cell is not None for cell in row) > 1 for row in sheet[1]) > 1]
    title, rows = (tables or filled)[0]
    notes = []
    if len(filled) > 1:
        notes.append(f"the workbook has {len(filled)} sheets: {title!r} was read; save another one as CSV to use it")
    above = text_files.header_row(rows) if skip is None else skip
    if above and skip is None:
        notes.append(text_files.note_on_title(" ".join(str(cell) for cell in rows[0] if cell is not None), above))
    rows = [row for row in rows[above:] if any(cell is not None for cell in row)]
    width = max((k + 1 for row in rows for k, cell in enumerate(row) if cell is not None), default=0)
    header, *cells = [(row + [None] * width)[:width] for row in rows] or [[]]
    given = ["" if cell is None else str(cell).strip() for cell in header]
    given = [column or f"Unnamed: {k}" for k, column in enumerate(given)]
    names = [f"{one}.{count}" if (count := given[:k].count(one)) else one for k, one in enumerate(given)]
    columns = {column: [row[k] for row in cells] for k, column in enumerate(names)}
    return pandas().DataFrame(columns), (*notes, *text_files.notes_on_names(given))
