"""What the columns of a table are, which of them a model should not see, and what the target is, with notes on all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.reporting.formatting import plural
from fewkern.tables import cells, columns
from fewkern.tables.cells import pandas
from fewkern.tables.reading import cut_short, listed, nearest

# A column of text with more distinct values than this is a name or a key, not a category.
_MOST_LEVELS = 100
# Among at most this many different numbers, a text that is no mark of a missing value shows that they are codes.
_MOST_CODES = 20
# Whole numbers with at most this many different ones are taken for classes.
_MOST_CLASSES = 20
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
    """Format of dates."""
    parts: tuple[str, ...] | None = None
    """Parts of dates; None: those that vary enough."""
    merge: bool = False
    """Spellings of a category are one."""

    @property
    def used(self) -> bool:
        """Whether a model may see the column."""
        return self.kind in ("number", "category", "date")

    def learn(self, column: Any) -> columns.Column:
        """The column as these cells show it."""
        if self.kind == "number":
            return columns.NumberColumn.learn(self.name, column, self.comma, self.flag)
        if self.kind == "date":
            return columns.DateColumn.learn(self.name, column, self.form, self.parts)
        return columns.CategoryColumn.learn(self.name, column, self.merge)


@dataclass(frozen=True)
class Schema:
    """The types of all columns."""

    columns: tuple[ColumnType, ...]
    notes: tuple[str, ...]

    @property
    def used(self) -> tuple[ColumnType, ...]:
        """The columns that a model may see."""
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

    ``drop`` are left out, ``keep`` used even if they look like an index, a key or names. ``numbers_only`` is for
    densities: text is left out, and dates are days. ``merge``: spellings of a category, as ``Yes`` and ``yes``, are
    one.
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
    return Schema(tuple(found), _notes(found))


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
        return _date(name, column, columns.ISO)
    if (found := _number(name, column, keep)) is not None:
        return found
    if (form := columns.find_format(column)) is not None:
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
    note = columns.bad_cells(name, column, found.bad, "number") + ", taken as missing" if found.bad.any() else None
    if found.loose.any():
        how = _how_read(column, found, comma)
        note = f"{note}; {how}" if note else f"column {name!r}: {how}"
    return ColumnType(name, "number", note, comma, different == 2 and _is_flag(column))


def _how_read(column: Any, found: cells.Numbers, comma: bool) -> str:
    shown = repr(str(column[found.loose].iloc[0]))
    return f"texts such as {shown} were read as numbers" + (" with a decimal comma" if comma else "")


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
    values = columns.days(column, form)
    parts = columns.parts_of(values)
    if not parts:
        return ColumnType(name, "constant")
    bad = np.isnan(values) & column.notna().to_numpy()
    seen = {"day": "elapsed days", "season": "season", "week": "weekday", "hour": "time of day"}
    note = f"column {name!r} holds dates" + (f" ({form})" if form != columns.ISO else "") + ": "
    note += ", ".join(seen[part] for part in parts)
    if columns.is_ambiguous(column, form):
        note += f"; day and month may be swapped: both orders fit, and {form} was used"
    if bad.any():
        note += f"; {int(bad.sum()):,} cells are not dates and count as missing"
    return ColumnType(name, "date", note, form=form)


def _as_number_only(finding: ColumnType, column: Any) -> ColumnType:
    """The type for a density, which takes no text and no truth values."""
    if finding.kind == "category" or finding.flag:
        return ColumnType(finding.name, "text")
    if finding.kind == "date":
        if "day" not in columns.parts_of(columns.days(column, finding.form)):
            return ColumnType(finding.name, "text")
        return replace(finding, note=f"column {finding.name!r} holds dates: elapsed days", parts=("day",))
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


@dataclass(frozen=True)
class Target:
    """The targets of the rows that have one, or all rows where there is no target."""

    task: str
    values: Any
    """None where there is no target."""
    rows: Array
    """Positions of these rows."""
    notes: tuple[str, ...]

    def only(self, known: Array, notes: Sequence[str]) -> Target:
        """The targets of some rows; ``notes`` say why the others were left out."""
        values = None if self.values is None else self.values[known]
        return Target(self.task, values, self.rows[known], (*self.notes, *notes))


def resolve_target(name: str, column: Any, task: str, merge: bool = False) -> Target:
    """Task, targets and rows; ``task`` may be "auto". ``merge``: spellings of a class are one class.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.tables.schema import resolve_target
    >>> found = resolve_target("price", pd.Series([str(i / 7) for i in range(30)] + ["?", None]), "auto")
    >>> found.task, len(found.values)
    ('regress', 30)
    >>> found.notes[0]
    "column 'price': 1 of 31 cells is not a number ('?'); the row was left out"
    """
    notes: list[str] = []
    if (kind := cells.nested(column)) is not None:
        raise ValueError(f"the target {name!r} holds {kind}; choose another target, or turn them into numbers.")
    found, comma = cells.numbers_as_written(column)
    if task == "auto":
        task, note = guess_task(name, column)
        notes += [note] if note else []
    if task == "regress":
        if not cells.mostly_numbers(found, column):
            raise ValueError(f"task 'regress': the target {name!r} holds text; use the task 'classify'.")
        rows = np.flatnonzero(~np.isnan(found.values))
        values = found.values[rows]
        if found.bad.any():
            rows_were = "rows were" if found.bad.sum() > 1 else "row was"
            notes.insert(0, f"{columns.bad_cells(name, column, found.bad, 'number')}; the {rows_were} left out")
        if comma:
            notes.append(f"target {name!r}: {_how_read(column, found, comma)}")
    else:
        values, rows = _labels(column, found)
        if values.dtype == object:
            other = cells.preferred_spellings(values)
            note = cells.note_on_spellings(f"target {name!r}", other, merge)
            notes += [note] if note else []
            values = np.array([other.get(value, value) for value in values], dtype=object) if merge else values
    lacking = len(column) - len(rows) - int(found.bad.sum() if task == "regress" else 0)
    notes += left_out(lacking, "a target")
    if task == "classify":
        notes += _notes_on_classes(name, values)
    return Target(task, values, rows, tuple(notes))


def left_out(count: int, what: str) -> list[str]:
    """A note on rows without a target or a weight, if there are any."""
    return [f"{plural(count, f'row without {what} was', f'rows without {what} were')} left out"] if count else []


def resolve_targets(targets: Any, task: str, merge: bool = False) -> Target:
    """One target, or several numbers in columns of their own: the rows that have all of them."""
    found = [resolve_target(name, column, task, merge) for name, column in targets.items()]
    if len(found) == 1:
        return found[0]
    for name, target in zip(targets, found):
        if target.task != "regress":
            raise ValueError(
                f"several targets must be numbers, but {name!r} holds classes; fit a model of its own to it, or name "
                "the task 'regress'."
            )
    rows = found[0].rows
    for target in found[1:]:
        rows = np.intersect1d(rows, target.rows)
    values = np.column_stack([target.values[np.searchsorted(target.rows, rows)] for target in found])
    return Target("regress", values, rows, tuple(dict.fromkeys(note for target in found for note in target.notes)))


def guess_task(name: str, column: Any) -> tuple[str, str | None]:
    """The task for a target, and a note if the guess is uncertain.

    Text, truth values and few different whole numbers are classes; everything else is a number.
    """
    if getattr(column.dtype, "kind", "O") == "b":
        return "classify", None
    found, _ = cells.numbers_as_written(column)
    known = found.values[~np.isnan(found.values)]
    flags = {text.lower() for text in cells.texts(column.head(1000)) if text} <= {"true", "false"}
    if not cells.mostly_numbers(found, column) or flags:
        _refuse_names(name, column)
        return "classify", None
    counts = np.unique(known, return_counts=True)[1]
    few, codes = len(counts) <= _MOST_CLASSES, cells.has_leading_zeros(column)
    if few and (codes or not cells.only_marks(column[found.bad])):  # codes, of which most are digits
        return "classify", None
    if codes or np.any(known % 1):
        return "regress", None
    if len(counts) <= 2:
        return "classify", None
    what = f"target {name!r} has {len(counts):,} different whole numbers"
    as_number = "taken as a number (the task 'classify' takes them as classes)"
    if not few:
        return "regress", f"{what}: {as_number}" if len(counts) <= 5 * _MOST_CLASSES else None
    if len(counts) > 10 and counts.min() < 0.01 * len(known):
        return "regress", f"{what}, some of them rare, like counts: {as_number}"
    return "classify", f"{what}: taken as classes (the task 'regress' takes them as numbers)"


def _refuse_names(name: str, column: Any) -> None:
    """Raise a ValueError if the texts of a target are dates, names or keys."""
    different = column.nunique()
    if infer_column(name, column).kind == "date":
        raise ValueError(f"the target {name!r} holds dates; choose another target, or turn it into a number first.")
    if different > max(100, len(column) / 2):
        raise ValueError(
            f"the target {name!r} has {different:,} different texts in {len(column):,} rows, like names or keys; "
            "choose another target (or the task 'classify', to take each as a class)."
        )


def _labels(column: Any, found: cells.Numbers) -> tuple[Array, Array]:
    """Class labels as they are written, and the rows that have one.

    Texts that are the same number, as ``1`` and ``1.0``, are one class, named by the most frequent of them. Columns of
    floating-point numbers that are whole are whole numbers: a missing cell makes such columns of them.
    """
    filled = column.notna().to_numpy()
    if all(isinstance(cell, (bool, np.bool_)) for cell in column[filled]):
        return np.asarray(column[filled], dtype=bool), np.flatnonzero(filled)
    words = cells.texts(column)
    marks = np.array([text is not None and cells.is_mark(text) for text in words], dtype=bool)
    known = ~np.isnan(found.values)
    if (found.bad & ~marks).any() or cells.has_leading_zeros(column) or not known.any():
        rows = np.flatnonzero([text is not None for text in words])
        return words[rows], rows
    rows = np.flatnonzero(known)
    values = found.values[rows]
    if any(isinstance(cell, str) for cell in column.iloc[rows]):
        counts = Counter(zip(values.tolist(), words[rows]))
        # the most frequent text of every number; of equally frequent ones the first
        names = {value: word for (value, word), _ in reversed(counts.most_common())}
        return np.array([names[value] for value in values], dtype=object), rows
    return (values.astype(np.int64) if np.all(values % 1 == 0) else values), rows


def _notes_on_classes(name: str, values: Array) -> list[str]:
    labels, counts = np.unique(values, return_counts=True)
    if len(counts) > 2 and counts.max() == 1:
        raise ValueError(f"the target {name!r} is different in every row: no class can be learned; choose another one.")
    alone = [str(label) for label, count in zip(labels, counts) if count == 1]
    if not alone:
        return []
    which = f"the classes {listed(alone, 3)} have" if len(alone) > 1 else f"the class {alone[0]!r} has"
    return [f"target {name!r}: {which} only one row, too few to learn"]
