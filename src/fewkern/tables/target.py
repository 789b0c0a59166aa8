"""Columns that are no features: the target (classes or numbers), groups of rows, and weights of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.reporting.formatting import plural
from fewkern.tables import cells
from fewkern.tables.columns import bad_cells
from fewkern.tables.reading import listed
from fewkern.tables.schema import infer_column

# Whole numbers with at most this many different ones are taken for classes.
_MOST_CLASSES = 20


@dataclass(frozen=True)
class Target:
    """The targets of the rows that have one."""

    task: str
    values: Array
    rows: Array
    """Positions of these rows."""
    notes: tuple[str, ...]


def resolve_target(name: str, column: Any, task: str, merge: bool = False) -> Target:
    """Task, targets and rows; ``task`` may be "auto". ``merge``: spellings of a class are one class.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.tables.target import resolve_target
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
            notes.insert(0, f"{bad_cells(name, column, found.bad, 'number')}; the {rows_were} left out")
        if comma:
            shown = repr(str(column[found.loose].iloc[0]))
            notes.append(f"target {name!r}: texts such as {shown} were read as numbers with a decimal comma")
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


def resolve_targets(columns: Any, task: str, merge: bool = False) -> Target:
    """One target, or several numbers in columns of their own: the rows that have all of them."""
    found = [resolve_target(name, column, task, merge) for name, column in columns.items()]
    if len(found) == 1:
        return found[0]
    for name, target in zip(columns, found):
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
        names = _names(words[rows], values)
        return np.array([names[value] for value in values], dtype=object), rows
    return (values.astype(np.int64) if np.all(values % 1 == 0) else values), rows


def _names(words: Any, values: Any) -> dict[float, str]:
    """The most frequent text of every number; of equally frequent ones the first."""
    counts = Counter(zip(values.tolist(), words))
    return {value: word for (value, word), _ in reversed(counts.most_common())}


def _notes_on_classes(name: str, values: Array) -> list[str]:
    labels, counts = np.unique(values, return_counts=True)
    if len(counts) > 2 and counts.max() == 1:
        raise ValueError(f"the target {name!r} is different in every row: no class can be learned; choose another one.")
    alone = [str(label) for label, count in zip(labels, counts) if count == 1]
    if not alone:
        return []
    which = f"the classes {listed(alone, 3)} have" if len(alone) > 1 else f"the class {alone[0]!r} has"
    return [f"target {name!r}: {which} only one row, too few to learn"]


def target_values(column: Any, task: str, classes: Any, merge: bool = False) -> Array:
    """Targets of new rows in the form that a fitted model predicts them; missing ones are NaN or None."""
    import pandas as pd

    if task == "regress":
        return cells.numbers_as_written(column)[0].values
    known, values = np.asarray(classes), cells.numbers(column).values
    if known.dtype.kind in "iuf":
        return values
    if known.dtype.kind == "b":
        return np.array([None if np.isnan(v) else bool(v) for v in values], dtype=object)
    as_numbers = cells.numbers(pd.Series(known, dtype=object)).values
    words = cells.texts(column)
    if np.isnan(as_numbers).any() or len(set(as_numbers)) < len(known):
        if not merge:
            return words
        key = cells.spelling_key(known)
        spelled = {key(label): label for label in known}
        return np.array([None if word is None else spelled.get(key(word), word) for word in words], dtype=object)
    names = dict(zip(as_numbers.tolist(), known.tolist()))  # the same number may be written otherwise here
    words = [None if word is not None and cells.is_mark(word) else word for word in words]
    return np.array([names.get(value, word) for value, word in zip(values.tolist(), words)], dtype=object)


def known_targets(truth: Array, predicted: Any) -> tuple[Array, Array]:
    """Targets and predictions of the rows whose target is not missing."""
    if truth.ndim == 2:
        known = np.isfinite(truth).all(axis=1)
    else:
        known = np.array([value is not None and value == value for value in truth], dtype=bool)
    return truth[known], np.asarray(predicted)[known]


def row_groups(named: tuple[str, Any], rows: Array) -> tuple[Array, list[str]]:
    """Groups of some rows as whole numbers, with notes; a row without a group is one of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewkern.tables.target import row_groups
    >>> row_groups(("patient", pd.Series(["a", None, "a", "b"])), np.arange(4))
    (array([0, 2, 0, 1]), ["1 row without a 'patient' is a group of its own"])
    """
    name, column = named
    codes, different = cells.factorized(cells.texts(column.iloc[rows]))
    alone = codes < 0
    codes = np.where(alone, len(different) + np.cumsum(alone) - 1, codes)
    if len(np.unique(codes)) < 2:
        raise ValueError(f"groups: {name!r} is the same in all rows; whole groups are held out, so give two or more.")
    one, many = f"row without a {name!r} is a group of its own", f"rows without a {name!r} are groups of their own"
    return codes, [plural(int(alone.sum()), one, many)] if alone.any() else []


def row_weights(named: tuple[str, Any], rows: Array) -> tuple[Any, Array, list[str]]:
    """Weights of some rows, which of the rows have one, and notes."""
    name, column = named
    values = weight_values(name, column.iloc[rows])
    known = ~np.isnan(values)
    if not values[known].any():
        raise ValueError(f"weights: column {name!r} holds no positive number; leave weights out.")
    return values[known], known, left_out(int((~known).sum()), "a weight")


def weight_values(name: str, column: Any) -> Array:
    """Weights of rows; NaN where there is none."""
    found, _ = cells.numbers_as_written(column)
    if found.bad.any():
        raise ValueError(f"weights: {bad_cells(name, column, found.bad, 'number')}; correct them.")
    if (found.values < 0).any():
        raise ValueError(f"weights: column {name!r} holds negative or infinite numbers; weights are positive or 0.")
    return found.values
