"""The first sheet of an Excel workbook, through openpyxl."""

from __future__ import annotations

import io
from typing import Any

from fewkern.arrays.texts import missing_package
from fewkern.tables.frames import pandas
from fewkern.tables.layout import header_row, note_on_title, unique_names

__all__ = ["read_workbook"]


def read_workbook(name: str, content: bytes, skip: int | None = None) -> tuple[Any, tuple[str, ...]]:
    """A data frame with the cells of a workbook, and notes on how it was read."""
    if content[:4] != b"PK\x03\x04":
        raise ValueError(f"{name} is no .xlsx workbook; save it as .xlsx or CSV in a spreadsheet program.")
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
    title, rows = filled[0]
    notes = []
    if len(filled) > 1:
        notes.append(f"the workbook has {len(filled)} sheets: {title!r} was read; save another one as CSV to use it")
    above = header_row(rows)[0] if skip is None else skip
    if above and skip is None:
        notes.append(note_on_title(" ".join(str(cell) for cell in rows[0] if cell is not None), above))
    rows = [row for row in rows[above:] if any(cell is not None for cell in row)]
    width = max((k + 1 for row in rows for k, cell in enumerate(row) if cell is not None), default=0)
    names, twice = unique_names((rows[0] + [None] * width)[:width]) if rows else ([], [])
    cells = [(row + [None] * width)[:width] for row in rows[1:]]
    columns = {column: [row[k] for row in cells] for k, column in enumerate(names)}
    return pandas().DataFrame(columns), (*notes, *twice)
