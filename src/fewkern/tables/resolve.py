"""Resolve a request: task, model, target, columns and rows of a fit, with notes on rows and columns that look wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from fewkern.arrays.namespace import Array, is_sparse
from fewkern.reporting.comparison import decides_alone
from fewkern.reporting.formatting import label, number, percent, plural
from fewkern.reporting.judgement import is_rare
from fewkern.tables import BY_CLASS, build, check_model
from fewkern.tables.cells import factorized, holds_text, nested, numbers_as_written, texts
from fewkern.tables.columns import bad_cells
from fewkern.tables.reading import as_column, as_frame, listed, nearest
from fewkern.tables.schema import Schema, Target, infer_schema, left_out, resolve_targets

FEWEST_ROWS = 4
# Half-width of the epsilon-insensitive tube where a reducer has a numeric target: the default of SVR in scikit-learn.
_HALF_WIDTH = 0.1
# Largest number of rows that may be extreme.
_MOST_EXTREME = 3
_GROUP_NAME = re.compile(
    r"(.*[ _.-])?((patient|subject|person|proband|participant|customer|client|user|member|student|pupil|household"
    r"|family|animal|donor|batch|session|device|sensor|machine|station|site|store|shop|school|clinic|hospital|account"
    r"|vehicle|group|kunde|patientin|gruppe)s?[ _.-]?(id|nr|no|code|key|number|name)?|id)"
)
_SUM = r"((grand|sub|sub-)?[ -]?totals?|sum|summe|gesamt(summe)?|insgesamt|totale?|suma|somme)"
_TOTAL = re.compile(rf"(?:(?P<before>.+?) +)??{_SUM}(?:[ :]+(?:of |for )?(?P<of>.+))?[ :]*")


@dataclass(frozen=True)
class Request:
    """What the user asks for."""

    task: str = "auto"
    model: str = "auto"
    holdout: float = 0.2
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    random_state: Any = 0
    verbose: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    """Parameters of the estimator."""
    groups: Any = None
    weights: Any = None
    """Names of columns, or a label and a number per row."""
    merge_spellings: bool = False

    @property
    def supervised(self) -> bool:
        """Whether the model looks at a target."""
        return self.task not in ("reduce", "density") or (self.task == "reduce" and self.model in BY_CLASS)


@dataclass(frozen=True)
class Job:
    """A resolved request, and its rows."""

    request: Request
    frame: Any
    """The used columns of the usable rows."""
    names: tuple[str, ...]
    """All columns of the table but target, groups and weights."""
    rows: Array
    """Positions of the usable rows in the table."""
    y: Array | None
    """``(n,)``, or ``(n, n_targets)`` of several targets."""
    task: str
    model: str
    target: Any
    """The name of a column, a tuple of several names, or None."""
    schema: Schema
    settings: dict[str, Any]
    notes: tuple[str, ...]
    groups: Array | None = None
    """Group numbers of the rows."""
    weights: Array | None = None

    def build(self) -> Any:
        """The estimator, not fitted."""
        offered = {"random_state": self.request.random_state, "verbose": self.request.verbose}
        return build(self.task, self.model, self.settings, offered, self.fit_arguments(slice(0)))

    def fit_arguments(self, rows: Any) -> dict[str, Any]:
        """Groups and weights of some rows, as the method ``fit`` of estimators takes them, where there are any."""
        given = {"groups": self.groups, "sample_weight": self.weights}
        return {name: values[rows] for name, values in given.items() if values is not None}

    def loss_weights(self, rows: Any) -> Array | None:
        """How much the error of each of some rows counts: by weights of rows and of classes; None where all are 1."""
        weights = None if self.weights is None else self.weights[rows]
        class_weight = self.settings.get("class_weight")
        if class_weight is None or self.y is None:
            return weights
        factors = compute_sample_weight(class_weight, self.y)[rows]
        return np.asarray(factors if weights is None else factors * weights)


def resolve(frame: Any, target: Any, request: Request) -> Job:
    """Task, model, target and columns of a data frame.

    ``target`` is the name of a column, several names, an array with a target per row, or None.
    """
    notes: list[str] = []
    names = tuple(map(str, frame.columns))
    whole = frame
    columns, frame = _take(frame, target, "target")
    groups, frame = _take_one(frame, request.groups, "groups")
    weights, frame = _take_one(frame, request.weights, "weights")
    if request.supervised and not len(columns.columns):
        if not len(frame.columns):
            raise ValueError("the table has no columns.")
        columns, frame = _take(frame, frame.columns[-1], "target")
        notes.append(f"no target given: using the last column, {columns.columns[0]!r}")
    name = columns.columns[0] if len(columns.columns) == 1 else tuple(columns) or None
    settings, found = dict(request.settings), Target(request.task, None, np.arange(len(frame)), ())
    if request.supervised:
        reduced = request.task == "reduce"
        found = resolve_targets(columns, "auto" if reduced else request.task, request.merge_spellings)
        if reduced:
            settings |= _reducer_settings(found, str(name), request.model)
            found = replace(found, task="reduce", notes=())
    # the word may stand in the column of the groups
    totals, said = total_rows(whole.drop(columns=list(columns), errors="ignore"))
    found = found.only(~totals[found.rows], said)
    if weights is not None:
        weights, known, said = row_weights(weights, found.rows)
        found = found.only(known, said)
    task, rows, y = found.task, found.rows, found.values
    notes += found.notes
    if len(rows) < FEWEST_ROWS:
        raise ValueError(f"the table has {len(rows)} usable rows; fitting needs at least {FEWEST_ROWS}.")
    if not len(frame.columns):
        raise ValueError("the table has no column besides the target.")
    if groups is not None:
        groups, said = row_groups(groups, rows)
        notes += said
    frame = frame if len(rows) == len(frame) else frame.iloc[rows]
    drop = tuple(column for column in request.drop if column in frame.columns or column not in names)
    schema = infer_schema(frame, drop, request.keep, task == "density", request.merge_spellings)
    if task == "reduce":
        settings = {"n_components": 2} | settings  # as many as a picture shows
        notes += _note_on_text_columns(schema)
    model = check_model(task, request.model)
    notes += _about_target(name, y, rows, task, settings)
    if groups is None:
        notes += note_on_groups(frame, schema, y, task)
    used, columns_left = schema.typed(frame), tuple(map(str, frame.columns))
    return Job(request, used, columns_left, rows, y, task, model, name, schema, settings, tuple(notes), groups, weights)


def _about_target(name: Any, y: Any, rows: Array, task: str, settings: dict[str, Any]) -> list[str]:
    """Notes on extreme numbers and on a rare class."""
    if task == "regress":
        columns = [(name, y)] if y.ndim == 1 else zip(name, y.T)
        return [note for one, values in columns for note in extreme_targets(one, values, rows)]
    return note_on_rare_class(y, "class_weight" in settings) if task == "classify" else []


def _reducer_settings(found: Target, name: str, model: str) -> dict[str, Any]:
    """Settings of a reducer with a target of numbers; raises a ValueError if it needs classes."""
    if found.task != "regress":
        return {}
    if model != "margins":
        raise ValueError(f"model {model}: the target {name!r} holds numbers, not classes; use the model 'margins'.")
    return {"epsilon": _HALF_WIDTH}


def _note_on_text_columns(schema: Schema) -> list[str]:
    """A note on text columns of a reduced table, which may be meant as labels, not as features."""
    words = [column.name for column in schema.used if column.kind == "category"]
    if not words:
        return []
    several = len(words) > 1
    which = f"columns {listed(words)} hold text and take" if several else f"column {words[0]!r} holds text and takes"
    return [f"{which} part as categories (name it as target, or in drop, to leave it out)"]


def _take(frame: Any, given: Any, what: str) -> tuple[Any, Any]:
    """The columns of a target (groups, weights), named in the table or given apart, and the rest of the table."""
    names = [given] if isinstance(given, str) else list(given) if _are_names(given, frame) else []
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"{what}: there is no column {name!r}; {nearest(name, frame.columns)}")
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: a column is named twice: {listed(names)}.")
    if given is None or names:
        return frame[names], frame.drop(columns=names)
    if getattr(given, "ndim", 1) == 2 and not is_sparse(given):
        columns = as_frame(given, what, tuple(f"{what} {k + 1}" for k in range(given.shape[1])))
        for name in columns:
            as_column(columns[name], len(frame), what)
    else:
        column = as_column(given, len(frame), what)
        columns = column.to_frame(what if column.name is None else str(column.name))
    return columns.reset_index(drop=True), frame


def _are_names(given: Any, frame: Any) -> bool:
    """Whether a list of texts names columns: one of them does, or there are not as many as rows."""
    if not isinstance(given, list | tuple) or not given or not all(isinstance(name, str) for name in given):
        return False
    return any(name in frame.columns for name in given) or len(given) != len(frame)


def _take_one(frame: Any, given: Any, what: str) -> tuple[Any, Any]:
    """Name and cells of the column of groups or weights (None without one), and the rest of the table."""
    columns, frame = _take(frame, given, what)
    if len(columns.columns) > 1:
        raise ValueError(f"{what}: expected one column, got {listed(columns)}.")
    return next(columns.items(), None), frame


def row_groups(named: tuple[str, Any], rows: Array) -> tuple[Array, list[str]]:
    """Groups of some rows as whole numbers, with notes; a row without a group is one of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewkern.tables.resolve import row_groups
    >>> row_groups(("patient", pd.Series(["a", None, "a", "b"])), np.arange(4))
    (array([0, 2, 0, 1]), ["1 row without a 'patient' is a group of its own"])
    """
    name, column = named
    codes, different = factorized(texts(column.iloc[rows]))
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
    found, _ = numbers_as_written(column)
    if found.bad.any():
        raise ValueError(f"weights: {bad_cells(name, column, found.bad, 'number')}; correct them.")
    if (found.values < 0).any():
        raise ValueError(f"weights: column {name!r} holds negative or infinite numbers; weights are positive or 0.")
    return found.values


def extreme_targets(name: str, values: Array, rows: Array) -> list[str]:
    """A note on rows whose target is far from all others, as a total or a typing error is.

    They are ten interquartile ranges from the median, and four times as far as the farthest of the others.

    Examples
    --------
    >>> import numpy as np
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
    """A column whose values look like groups of rows: by its name, or because it fixes the target.

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
        if named or (each > 3 and _determines(codes, y, task)):
            return column.name, len(different), each
    return None


def note_on_groups(frame: Any, schema: Schema, y: Array | None, task: str) -> list[str]:
    """A note on the column whose values look like groups of rows."""
    found = group_column(frame, schema, y, task)
    if found is None:
        return []
    name, different, each = found
    has = f"column {name!r} has {different:,} values, each in about {each:.0f} rows: if rows of one"
    return [f"{has} value belong together, the error is too optimistic; pass it as groups (--groups {name})"]


def _determines(codes: Array, y: Any, task: str) -> bool:
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


def note_on_rare_class(y: Array, weighted: bool) -> list[str]:
    """A note on a class that is so rare that an error rate says little about it."""
    labels, counts = np.unique(y, return_counts=True)
    rare = int(np.argmin(counts))
    if weighted or counts[rare] < 2 or not is_rare(counts[rare] / len(y), len(labels)):
        return []
    what = f"class {label(labels[rare])} is rare ({percent(counts[rare] / len(y))} of the rows)"
    return [f"{what}: try class_weight 'balanced' (--class-weight balanced), or rank rows by probability (--proba)"]


def notes_on_leakage(names: Sequence[str], job: Job, encoder: Any, fitted: Any, new: Any) -> list[str]:
    """Notes on columns that alone predict the target, as a column does that is filled in after it.

    ``fitted`` and ``new`` are features and targets of rows that the columns are fitted to, and of others.
    """
    (X, y), (Z, truth) = fitted, new
    said = []
    for name in names if len(encoder.columns) > 1 else ():
        own = encoder.features_of(name)
        if decides_alone((X[:, own], Z[:, own]), (y, truth), job.task == "classify"):
            said.append(f"column {name!r} alone decides: is it known before {job.target!r} is? If not, drop it")
    return said
