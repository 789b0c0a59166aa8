"""Where the header of a table is, below the title that a program or a person put above it, and names of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

__all__ = ["header_row", "note_on_title", "notes_on_names", "unique_names"]

# Rows in which a header is looked for.
_TITLE_ROWS = 20
# A title is recognized above tables of at least this many columns: above fewer it looks like a header.
_FEWEST_COLUMNS = 3
# Of the rows below a header at least this share must be as wide as the table.
_SHARE = 0.9


def header_row(rows: Sequence[Sequence[Any]]) -> tuple[int, int]:
    """The number of rows above the header, and the width of the table.

    A title fills at most half of the columns of the rows below it; a header fills more, with anything but numbers.

    Examples
    --------
    >>> from fewkern.tables.layout import header_row
    >>> header_row([["Sales"], [], ["town", "units", "price"], ["Bern", "3", "2.5"], ["Lyon", "1", "4"]])
    (2, 3)
    >>> header_row([["town", "units", "price"], ["Bern", "3", "2.5"], ["Lyon", "1", "4"]])
    (0, 3)
    """
    widths = Counter(len(row) for row in rows if any(map(_filled, row)))
    width = max(widths, key=lambda w: (widths[w], w), default=0)
    if width < _FEWEST_COLUMNS:
        return 0, width
    for k, row in enumerate(rows[:_TITLE_ROWS]):
        if 2 * sum(map(_filled, row)) > width:
            below = [len(other) == width for other in rows[k:] if any(map(_filled, other))]
            blank = not any(_filled(cell) for other in rows[:k] for cell in other)
            right = not any(map(_is_number, row)) and sum(below) >= _SHARE * len(below) and len(below) > 1
            return (k if right and not blank else 0), width
    return 0, width


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
    return f"{what} no part of the table: the header is in line {rows + 1} (skip 0, --skip 0, reads from line 1)"


def unique_names(header: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Names of columns, different from each other, and notes on those that were not."""
    names: list[str] = []
    given = [str(cell).strip() if _filled(cell) else f"Unnamed: {k}" for k, cell in enumerate(header)]
    for name in given:
        count = given[: len(names)].count(name)
        names.append(f"{name}.{count}" if count else name)
    return names, notes_on_names(given)


def notes_on_names(header: Sequence[str]) -> list[str]:
    """Sentences about names that several columns have."""
    notes = []
    for column, count in Counter(header).items():
        if count > 1 and column:
            others = ", ".join(f"'{column}.{k}'" for k in range(1, count))
            notes.append(f"{count} columns are named {column!r}: they are called {column!r}, {others}")
    return notes
