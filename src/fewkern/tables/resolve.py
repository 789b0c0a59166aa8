"""What is fitted to which rows of a table: task, model, target and columns, before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewkern.tables.estimators import build, check_model
from fewkern.tables.frames import as_column, listed, nearest
from fewkern.tables.schema import Schema, infer_schema
from fewkern.tables.target import Target, resolve_target
from fewkern.tables.tasks import BY_CLASS, TASKS

__all__ = ["FEWEST_ROWS", "Job", "Request", "resolve"]

FEWEST_ROWS = 4
# Components of a table that is reduced, if nobody says how many: what can be drawn.
_COMPONENTS = 2


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

    def __post_init__(self) -> None:
        if self.task not in ("auto", *TASKS):
            raise ValueError(f"task: expected auto, {', '.join(TASKS)}, got {self.task!r}.")

    @property
    def supervised(self) -> bool:
        """Whether the model looks at a target."""
        return self.task not in ("reduce", "density") or (self.task == "reduce" and self.model in BY_CLASS)


@dataclass(frozen=True)
class Job:
    """A request with everything settled, and the rows it is about."""

    request: Request
    frame: Any
    """The used columns of the usable rows."""
    names: tuple[str, ...]
    """All columns of the table but the target."""
    rows: np.ndarray[Any, Any]
    """Positions of the usable rows in the table."""
    y: np.ndarray[Any, Any] | None
    task: str
    model: str
    target: str | None
    schema: Schema
    settings: dict[str, Any]
    notes: tuple[str, ...]

    def build(self) -> Any:
        """The estimator, not fitted."""
        offered = {"random_state": self.request.random_state, "verbose": self.request.verbose}
        return build(self.task, self.model, self.settings, offered)


def resolve(frame: Any, target: Any, request: Request) -> Job:
    """Task, model, target and columns of a data frame.

    ``target`` is the name of a column, an array with a target per row, or None.
    """
    notes: list[str] = []
    name, column, frame = _target_column(frame, target)
    if request.supervised and column is None:
        if not len(frame.columns):
            raise ValueError("the table has no columns.")
        name, column, frame = _target_column(frame, str(frame.columns[-1]))
        notes.append(f"no target given: took the last column, {name!r}")
    task, rows, y, settings = request.task, np.arange(len(frame)), None, dict(request.settings)
    if request.supervised:
        found = resolve_target(str(name), column, "auto" if task == "reduce" else task)
        rows, y = found.rows, found.values
        if task == "reduce":
            settings |= _reducer_settings(found, str(name), request.model)
        else:
            task = found.task
            notes += found.notes
    if len(rows) < FEWEST_ROWS:
        raise ValueError(f"the table has {len(rows)} usable rows; fitting needs at least {FEWEST_ROWS}.")
    if not len(frame.columns):
        raise ValueError("the table has no column besides the target.")
    frame = frame if len(rows) == len(frame) else frame.iloc[rows]
    drop = tuple(column for column in request.drop if column != name)
    schema = infer_schema(frame, drop, request.keep, numbers_only=task == "density")
    if task == "reduce":
        settings = {"n_components": _COMPONENTS} | settings
        notes += _notes_on_words(schema)
    model = check_model(task, request.model)
    names = tuple(map(str, frame.columns))
    return Job(request, schema.typed(frame), names, rows, y, task, model, name, schema, settings, tuple(notes))


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
    which = (
        f"columns {listed(words)} hold text and take" if len(words) > 1 else f"column {words[0]!r} holds text and takes"
    )
    return [f"{which} part as categories (name it as target, or in drop, to leave it out)"]


def _target_column(frame: Any, target: Any) -> tuple[str | None, Any, Any]:
    """Name and cells of the target, and the other columns."""
    if target is None:
        return None, None, frame
    if isinstance(target, str):
        if target not in frame.columns:
            raise ValueError(f"target: there is no column {target!r}; {nearest(target, frame.columns)}")
        return target, frame[target], frame.drop(columns=[target])
    column = as_column(target, len(frame), "target")
    name = str(column.name) if column.name is not None else "target"
    return name, column.reset_index(drop=True), frame
