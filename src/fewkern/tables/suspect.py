"""What may be wrong with a table or with an error that looks too good: sentences, each with what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.reporting.evaluation import decides_alone
from fewkern.reporting.formatting import label, number, percent
from fewkern.tables.cells import factorized, holds_text, nested, texts
from fewkern.tables.evaluate import Judgement, is_rare, shown
from fewkern.tables.schema import Schema

# Rows that may be extreme, at most.
_MOST_EXTREME = 3
_GROUP_NAME = re.compile(
    r"(.*[ _.-])?((patient|subject|person|proband|participant|customer|client|user|member|student|pupil|household"
    r"|family|animal|donor|batch|session|device|sensor|machine|station|site|store|shop|school|clinic|hospital|account"
    r"|vehicle|group|kunde|patientin|gruppe)s?[ _.-]?(id|nr|no|code|key|number|name)?|id)"
)
_SUM = r"((grand|sub|sub-)?[ -]?totals?|sum|summe|gesamt(summe)?|insgesamt|totale?|suma|somme)"
_TOTAL = re.compile(rf"(?:(?P<before>.+?) +)??{_SUM}(?:[ :]+(?:of |for )?(?P<of>.+))?[ :]*")


def extreme_targets(name: str, values: Array, rows: Array) -> list[str]:
    """Rows whose target is far from all others, as a total or a typing error is.

    They are ten interquartile ranges from the median, and four times as far as the farthest of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.tables.suspect import extreme_targets
    >>> print(*extreme_targets("margin", np.array([3.0, 4, 5, 6, 7, 8, 9, 5426.6]), np.arange(8)))
    target 'margin': row 8 (5,427) is far from all others: if it is a total or an error, remove it
    """
    if len(values) < 2 * _MOST_EXTREME:
        return []
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    away = np.abs(values - middle)
    order = np.argsort(away)[::-1]
    for count in range(_MOST_EXTREME, 0, -1):
        rest = float(away[order[count]])
        if away[order[count - 1]] > max(10 * (high - low), 4 * rest) and rest > 0:
            found = sorted(order[:count].tolist())
            shown = ", ".join(f"{rows[k] + 1:,} ({number(values[k], 4)})" for k in found)
            are = f"rows {shown} are" if count > 1 else f"row {shown} is"
            these = "they are totals or errors, remove them" if count > 1 else "it is a total or an error, remove it"
            return [f"target {name!r}: {are} far from all others: if {these}"]
    return []


def total_rows(frame: Any) -> tuple[Array, list[str]]:
    """Which rows are totals: the last one, if a cell says so, and subtotals such as ``Total Bern``; and a note.

    No other cell of its column has the text of a total, and several have the text that a subtotal is of.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.tables.suspect import total_rows
    >>> total_rows(pd.DataFrame({"town": ["Bern", "Bern", "Total Bern", "Lyon", "Total"]}))[1]
    ["rows 3 ('Total Bern'), 5 ('Total') look like totals and were left out"]
    """
    said: dict[int, str] = {}
    for name in frame.columns:
        if not holds_text(frame[name]):
            continue
        places, different = factorized(frame[name])
        counts = Counter(dict(zip((cell.strip().lower() for cell in different), np.bincount(places[places >= 0]))))
        for k, cell in enumerate(different):
            found = _TOTAL.fullmatch(cell.strip().lower())
            if found is None or counts[cell.strip().lower()] != 1:
                continue
            row, part = int(np.argmax(places == k)), found["of"] or found["before"]
            if counts[part] > 1 if part else row == len(frame) - 1:
                said.setdefault(row, f"{row + 1:,} ({cell!r})")
    rows = sorted(said)
    if not rows:
        return np.zeros(len(frame), dtype=bool), []
    shown = ", ".join(said[row] for row in rows[:3]) + (f" and {len(rows) - 3:,} more" if len(rows) > 3 else "")
    look = f"row {shown} looks like a total and was" if len(rows) == 1 else f"rows {shown} look like totals and were"
    return np.isin(np.arange(len(frame)), rows), [f"{look} left out"]


def group_column(frame: Any, schema: Schema, y: Array | None, task: str) -> tuple[str, int, float] | None:
    """A column whose values may be those of rows that belong together: by its name, or because it fixes the target.

    It has at least ten values, each in two rows on average: name, number of values, mean number of rows.
    """
    for column in schema.columns:
        named = _GROUP_NAME.fullmatch(column.name.lower()) is not None
        kinds = ("category", "names", "number") if named else ("category", "names")
        if column.kind not in kinds or nested(frame[column.name]):
            continue
        codes, different = factorized(texts(frame[column.name]))
        each = float(np.mean(codes >= 0)) * len(codes) / max(len(different), 1)
        if len(different) < 10 or each < 2:
            continue
        if named or (each > 3 and _fixes(codes, y, task)):
            return column.name, len(different), each
    return None


def group_like(frame: Any, schema: Schema, y: Array | None, task: str) -> list[str]:
    """A sentence about the column whose values may be those of rows that belong together."""
    found = group_column(frame, schema, y, task)
    if found is None:
        return []
    name, different, each = found
    has = f"column {name!r} has {different:,} values, each in about {each:.0f} rows: if rows of one"
    return [f"{has} value belong together, the error is too optimistic; pass it as groups (--groups {name})"]


def _fixes(codes: Array, y: Any, task: str) -> bool:
    """Whether the target is the same in nearly all rows of a value."""
    if y is None or y.ndim > 1 or task not in ("classify", "regress"):
        return False
    known = codes >= 0
    codes, y = codes[known], y[known]
    if task == "classify":
        table = np.zeros((codes.max() + 1, len(np.unique(y))))
        np.add.at(table, (codes, np.unique(y, return_inverse=True)[1]), 1)
        plain = 1 - table.sum(axis=0).max() / len(y)
        return bool(1 - table.max(axis=1).sum() / len(y) <= 0.05 * plain)
    counts = np.bincount(codes)
    within = y - (np.bincount(codes, y) / np.maximum(counts, 1))[codes]
    return bool(np.var(within) <= 0.001 * np.var(y))


def rare_class(y: Array, weighted: bool) -> list[str]:
    """What to do about a class that is too rare for shares of errors to say much."""
    labels, counts = np.unique(y, return_counts=True)
    rare = int(np.argmin(counts))
    if weighted or counts[rare] < 2 or not is_rare(counts[rare] / len(y), len(labels)):
        return []
    what = f"class {label(labels[rare])} is rare ({percent(counts[rare] / len(y))} of the rows)"
    return [f"{what}: try class_weight 'balanced' (--class-weight balanced), or rank rows by probability (--proba)"]


def contradiction(judged: Judgement | None, cross_validated: float | None) -> list[str]:
    """A cross-validated error that the held-out error contradicts, by four standard errors and a factor of two."""
    if judged is None or cross_validated is None or judged.how != "held out" or judged.targets:
        return []
    held, error = judged.value, (judged.high - judged.low) / 4
    low, high = sorted((held, cross_validated))
    if abs(held - cross_validated) <= 4 * error or high <= 2 * low:
        return []
    errors = shown(cross_validated, judged.measure), shown(held, judged.measure)
    two = f"the cross-validated error ({errors[0]}) and the held-out error ({errors[1]})"
    why = "a few rows decide which of them is large; look at these rows before you trust either"
    return [f"{two} contradict each other: {why}"]


def deciding_columns(names: Sequence[str], job: Any, encoder: Any, fitted: Any, new: Any) -> list[str]:
    """Columns that alone predict the target, as one that was filled in afterwards does.

    ``fitted`` and ``new`` are features and targets of rows that the columns are fitted to, and of others.
    """
    (X, y), (Z, truth) = fitted, new
    said = []
    for name in names if len(encoder.columns) > 1 else ():
        own = encoder.features_of(name)
        if decides_alone((X[:, own], Z[:, own]), (y, truth), job.task == "classify"):
            said.append(f"column {name!r} alone decides: is it known before {job.target!r} is? If not, drop it")
    return said
