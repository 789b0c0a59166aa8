"""The types of the columns of a table, and which of them a model should not see, with notes on both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.tables import cells
from fewkern.tables.cells import pandas
from fewkern.tables.columns import (
    ISO,
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    bad_cells,
    days,
    find_format,
    is_ambiguous,
    parts_of,
)
from fewkern.tables.reading import cut_short, listed, nearest

# A column of text with more distinct values than this is a name or a key, not a category.
_MOST_LEVELS = 100
# Among at most this many different numbers, a text that is no mark of a missing value shows that they are codes.
_MOST_CODES = 20
_UNNAMED = re.compile(r"(Unnamed: \d+|index|)", re.IGNORECASE)
_ID_NAME = re.compile(
    r"(.*[ _.-])?(id|ids|nr|no|num|number|idx|index|key|row|rowid|uuid|guid)|.*[a-z](Id|ID)", re.ASCII
)
_TIME_NAME = re.compile(r".*(year|month|week|day|date|time|hour|minute|second|quarter|jahr|monat|tag|zeit|stunde).*|t")


@dataclass(frozen=True)
class ColumnType:
    """The type of one column."""

    name: str
    kind: Literal["number", "category", "date", "index", "id", "constant", "empty", "names", "dropped", "text"]
    note: str | None = None
    comma: bool = False
    """Numbers are texts with decimal commas."""
    flag: bool = False
    """Numbers are truth values."""
    form: str = ""
    """Of dates."""
    merge: bool = False
    """Spellings of a category are one."""

    @property
    def used(self) -> bool:
        """Whether a model may see the column."""
        return self.kind in ("number", "category", "date")

    def learn(self, column: Any, days_only: bool = False) -> Column:
        """The column as these cells show it."""
        if self.kind == "number":
            return NumberColumn.learn(self.name, column, self.comma, self.flag)
        if self.kind == "date":
            return DateColumn.learn(self.name, column, self.form, ("day",) if days_only else None)
        return CategoryColumn.learn(self.name, column, self.merge)


@dataclass(frozen=True)
class Schema:
    """The types of all columns."""

    columns: tuple[ColumnType, ...]
    notes: tuple[str, ...]
    days_only: bool = False
    """Dates count as days, without season, weekday and hour."""

    @property
    def used(self) -> tuple[ColumnType, ...]:
        """Those that a model may see."""
        return tuple(column for column in self.columns if column.used)

    def typed(self, frame: Any) -> Any:
        """The used columns of the table, with texts that are numbers parsed once."""
        found = {}
        for column in self.used:
            found[column.name] = given = frame[column.name]
            if column.kind == "number" and getattr(given.dtype, "kind", "O") not in "iufb":
                found[column.name] = cells.numbers(given, column.comma).values
        return pandas().DataFrame(found, index=frame.index)


def infer_schema(frame: Any, drop: Any = (), keep: Any = (), numbers_only: bool = False, merge: bool = False) -> Schema:
    """Infer the types of the columns of a data frame.

    Parameters
    ----------
    frame : DataFrame
    drop : names of columns to leave out
    keep : names of columns to use even if they look like an index, a key or names
    numbers_only : bool
        For densities: leave out text, and take dates as days.
    merge : bool
        Take spellings of a category, as ``Yes`` and ``yes``, as one.
    """
    for name in (*drop, *keep):
        if name not in frame.columns:
            what = "drop" if name in drop else "keep"
            raise ValueError(f"{what}: there is no column {name!r}; {nearest(name, frame.columns)}")
    found = [
        ColumnType(name, "dropped") if name in drop else infer_column(name, frame[name], name in keep, merge)
        for name in frame.columns
    ]
    if numbers_only:
        found = [_as_number_only(finding, frame[finding.name]) for finding in found]
    if not any(finding.used for finding in found):
        # an index is better than nothing: a table of one column x = 0, 1, 2, ... is a series
        found = [ColumnType(f.name, "number") if f.kind == "index" and f.name else f for f in found]
    return Schema(tuple(found), _notes(found), numbers_only)


def infer_column(name: str, column: Any, keep: bool = False, merge: bool = False) -> ColumnType:
    """Infer the type of a column.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.tables.schema import infer_column
    >>> infer_column("price", pd.Series([str(i / 2) for i in range(99)] + ["?"])).note
    "column 'price': 1 of 100 cells is not a number ('?'), taken as missing"
    >>> infer_column("code", pd.Series(["1", "2", "A"])).kind, infer_column("plan", pd.Series([2, 2])).kind
    ('category', 'constant')
    """
    if not column.notna().any():
        return ColumnType(name, "empty")
    if (kind := cells.nested(column)) is not None:
        return ColumnType(name, "names", f"column {name!r} holds {kind} and was left out: turn them into columns first")
    if getattr(column.dtype, "kind", "O") == "M":
        return _date(name, column, ISO)
    if (found := _number(name, column, keep)) is not None:
        return found
    if (form := find_format(column)) is not None:
        return _date(name, column, form)
    words = cells.texts(column)
    levels = {text for text in words if text is not None}
    if not levels:
        return ColumnType(name, "empty")
    other = cells.preferred_spellings(words) if merge or len(levels) <= _MOST_LEVELS else {}
    levels -= set(other) if merge else set()
    if len(levels) == 1 and column.notna().all():
        return ColumnType(name, "constant")
    every = len(levels) == column.notna().sum() >= 4
    if (len(levels) > _MOST_LEVELS or every) and not keep:
        if np.mean([text.count(" ") for text in levels]) >= 3:
            note = "holds free text and was left out: turn it into numbers first, for example with TfidfVectorizer"
            return ColumnType(name, "names", f"column {name!r} {note}")
        note = "is different in every row, like a name or a key," if every else f"has {len(levels):,} different texts"
        return ColumnType(name, "names", f"column {name!r} {note} and was left out")
    return ColumnType(name, "category", cells.note_on_spellings(f"column {name!r}", other, merge), merge=merge)


def _number(name: str, column: Any, keep: bool) -> ColumnType | None:
    """A column of numbers, perhaps with a few other cells, or None."""
    found, comma = cells.numbers_as_written(column)
    if not cells.mostly_numbers(found, column):
        return None
    known = found.values[~np.isnan(found.values)]
    different, whole = len(np.unique(known)), bool(np.all(known % 1 == 0))
    if different <= _MOST_CODES and not cells.only_marks(column[found.bad]):
        return None  # codes, of which most are digits
    if whole and different <= _MOST_LEVELS and cells.has_leading_zeros(column):
        return None  # a code such as 007
    if different == 1:
        return ColumnType(name, "constant")
    if not keep and whole and different == column.notna().sum() and (key := _key(name, known)) is not None:
        return key
    note = bad_cells(name, column, found.bad, "number") + ", taken as missing" if found.bad.any() else None
    if found.loose.any():
        shown = repr(str(column[found.loose].iloc[0]))
        how = f"texts such as {shown} were read as numbers" + (" with a decimal comma" if comma else "")
        note = f"{note}; {how}" if note else f"column {name!r}: {how}"
    return ColumnType(name, "number", note, comma, different == 2 and _is_flag(column))


def _is_flag(column: Any) -> bool:
    """Whether the cells are truth values, or texts that name them."""
    if getattr(column.dtype, "kind", "O") in "iuf":
        return False
    return {str(cell).strip().lower() for cell in column.dropna().unique()} <= {"true", "false"}


def _key(name: str, known: Array) -> ColumnType | None:
    """An index or a number of the row: whole numbers, all different, in order or with such a name."""
    if _UNNAMED.fullmatch(name):
        return ColumnType(name, "index", f"column {name!r} numbers the rows and was left out")
    in_order = len(known) >= 10 and bool(np.all(np.diff(known) > 0))  # fewer may be in order by chance
    if _ID_NAME.fullmatch(name):
        what = "holds a different whole number in every row, like a key,"
        return ColumnType(name, "id", f"column {name!r} {what} and was left out (name it in keep to use it)")
    if in_order and not _TIME_NAME.fullmatch(name.lower()):
        what = "counts the rows (whole numbers, all different, in order)"
        return ColumnType(name, "index", f"column {name!r} {what} and was left out (name it in keep to use it)")
    return None


def _date(name: str, column: Any, form: str) -> ColumnType:
    values = days(column, form)
    parts = parts_of(values)
    if not parts:
        return ColumnType(name, "constant")
    bad = np.isnan(values) & column.notna().to_numpy()
    seen = {"day": "elapsed days", "season": "season", "week": "weekday", "hour": "time of day"}
    note = f"column {name!r} holds dates" + (f" ({form})" if form != ISO else "") + ": "
    note += ", ".join(seen[part] for part in parts)
    if is_ambiguous(column, form):
        note += f"; day and month may be swapped: both orders fit, and {form} was used"
    if bad.any():
        note += f"; {int(bad.sum()):,} cells are not dates and count as missing"
    return ColumnType(name, "date", note, form=form)


def _as_number_only(finding: ColumnType, column: Any) -> ColumnType:
    """The type for a density, which takes no text and no truth values."""
    if finding.kind == "category" or finding.flag:
        return ColumnType(finding.name, "text")
    if finding.kind == "date":
        if "day" not in parts_of(days(column, finding.form)):
            return ColumnType(finding.name, "text")
        return ColumnType(finding.name, "date", f"column {finding.name!r} holds dates: elapsed days", form=finding.form)
    return finding


def _notes(found: list[ColumnType]) -> tuple[str, ...]:
    """Notes on the columns; columns that are left out for the same reason share one."""
    notes = []
    left = {"empty": "empty", "constant": "the same in every row", "text": "not numeric, as a density needs,"}
    for kind, what in left.items():
        names = [finding.name for finding in found if finding.kind == kind]
        if len(names) > 1:
            notes.append(f"columns {listed(names)} are {what} and were left out")
        elif names:
            notes.append(f"column {names[0]!r} is {what} and was left out")
    return (*notes, *cut_short([finding.note for finding in found if finding.note], "columns with such remarks"))
