"""What is fitted to which rows of a table: task, model, target and columns, before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from fewkern.arrays.namespace import Array, is_sparse
from fewkern.tables.frames import as_column, as_frame, listed, nearest
from fewkern.tables.schema import Schema, infer_schema
from fewkern.tables.suspect import extreme_targets, group_like, rare_class, total_rows
from fewkern.tables.target import Target, resolve_targets, row_groups, row_weights
from fewkern.tables.tasks import BY_CLASS, build, check_model

FEWEST_ROWS = 4


@dataclass(frozen=True)
class Request:
    """What the one who fits asks for."""

    task: str = "auto"
    model: str = "auto"
    holdout: float = 0.2
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    random_state: Any = 0
    verbose: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the estimator."""
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
    """A request with everything resolved, and the rows it is about."""

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
    """Whole numbers, equal for rows that belong together."""
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
    name, columns, frame = _take(frame, target, "target")
    groups, frame = _one(*_take(frame, request.groups, "groups"))
    weights, frame = _one(*_take(frame, request.weights, "weights"))
    if request.supervised and not columns:
        if not len(frame.columns):
            raise ValueError("the table has no columns.")
        name, columns, frame = _take(frame, str(frame.columns[-1]), "target")
        notes.append(f"no target given: using the last column, {name!r}")
    task, rows, y, settings = request.task, np.arange(len(frame)), None, dict(request.settings)
    if request.supervised:
        found = resolve_targets(columns, "auto" if task == "reduce" else task, request.merge_spellings)
        rows, y = found.rows, found.values
        if task == "reduce":
            settings |= _reducer_settings(found, str(name), request.model)
        else:
            task = found.task
            notes += found.notes
    # the word may stand in the column of the groups
    totals, said = total_rows(whole.drop(columns=[column for column, _ in columns], errors="ignore"))
    if said:
        known = ~totals[rows]
        rows, y, notes = rows[known], None if y is None else y[known], notes + said
    if weights is not None:
        weights, known, said = row_weights(weights, rows)
        rows, y, notes = rows[known], None if y is None else y[known], notes + said
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
        notes += _notes_on_words(schema)
    model = check_model(task, request.model)
    notes += _about_target(name, y, rows, task, settings)
    if groups is None:
        notes += group_like(frame, schema, y, task)
    used, columns_left = schema.typed(frame), tuple(map(str, frame.columns))
    return Job(request, used, columns_left, rows, y, task, model, name, schema, settings, tuple(notes), groups, weights)


def _about_target(name: Any, y: Any, rows: Array, task: str, settings: dict[str, Any]) -> list[str]:
    """Extreme rows of numbers, a rare class."""
    if task == "regress":
        columns = [(name, y)] if y.ndim == 1 else zip(name, y.T)
        return [note for one, values in columns for note in extreme_targets(one, values, rows)]
    return rare_class(y, "class_weight" in settings) if task == "classify" else []


def _reducer_settings(found: Target, name: str, model: str) -> dict[str, Any]:
    """A reducer that looks at a target of numbers must be one that can."""
    if found.task != "regress":
        return {}
    if model != "margins":
        raise ValueError(f"model {model}: the target {name!r} holds numbers, not classes; use the model 'margins'.")
    return {"task": "regression"}


def _notes_on_words(schema: Schema) -> list[str]:
    """Categories among the features of a reduced table may be what it should only be compared with."""
    words = [column.name for column in schema.used if column.kind == "category"]
    if not words:
        return []
    several = len(words) > 1
    which = f"columns {listed(words)} hold text and take" if several else f"column {words[0]!r} holds text and takes"
    return [f"{which} part as categories (name it as target, or in drop, to leave it out)"]


def _take(frame: Any, given: Any, what: str) -> tuple[Any, list[tuple[str, Any]], Any]:
    """Name, columns by name, and the other columns of a table, of something that is in it or given beside it.

    Several names are a tuple.
    """
    names = (given,) if isinstance(given, str) else given if _are_names(given, frame) else ()
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"{what}: there is no column {name!r}; {nearest(name, frame.columns)}")
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: a column is named twice: {listed(names)}.")
    if given is None or names:
        columns = [(name, frame[name]) for name in names]
        frame = frame.drop(columns=list(names))
    elif getattr(given, "ndim", 1) == 2 and not is_sparse(given):
        table = as_frame(given, what, tuple(f"{what} {k + 1}" for k in range(given.shape[1])))
        columns = [(str(name), as_column(table[name], len(frame), what).reset_index(drop=True)) for name in table]
    else:
        column = as_column(given, len(frame), what)
        columns = [(what if column.name is None else str(column.name), column.reset_index(drop=True))]
    found = tuple(name for name, _ in columns)
    return (found or None) if len(found) != 1 else found[0], columns, frame


def _are_names(given: Any, frame: Any) -> bool:
    """Whether a list of texts names columns: one of them does, or there are not as many as rows."""
    if not isinstance(given, list | tuple) or not given or not all(isinstance(name, str) for name in given):
        return False
    return any(name in frame.columns for name in given) or len(given) != len(frame)


def _one(name: Any, columns: list[tuple[str, Any]], frame: Any) -> tuple[Any, Any]:
    """The one column of groups or weights, or None."""
    if len(columns) > 1:
        raise ValueError(f"expected one column, got {listed(name)}.")
    return (columns[0] if columns else None), frame
