"""A model of a table that does not fit into memory: choices on rows that are drawn, sums over all rows.

What the columns and the target are is decided on the rows that are drawn, by the same functions as for a table in
memory. A share of them is held out. All other rows of the table are fitted, part by part.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.frames import FrameParts, read_once
from fewkern.arrays.partitions import NeedsMemoryError
from fewkern.arrays.progress import titled
from fewkern.core import population
from fewkern.tables.encoder import TableEncoder
from fewkern.tables.fitting import (
    FittedTable,
    KnownRows,
    Part,
    all_notes,
    complete_rows,
    expected_warnings,
    fit_job,
    judge_itself,
    judge_part,
    known_rows,
    split_rows,
    vector_rows,
)
from fewkern.tables.frames import pandas
from fewkern.tables.resolve import Job, Request, resolve
from fewkern.tables.roles import row_weights
from fewkern.tables.streams import DrawnRows, draw_rows, whole_table
from fewkern.tables.target import target_values

__all__ = ["fit_parts"]


def fit_parts(parts: FrameParts, target: Any, request: Request) -> tuple[Job, FittedTable]:
    """Resolve and fit a table that comes in parts; a small one as if it were in memory."""
    targets = (
        (target,) if isinstance(target, str) else tuple(target or ()) if isinstance(target, list | tuple) else target
    )
    for what, given in (("target", targets), ("groups", request.groups), ("weights", request.weights)):
        if not (given is None or isinstance(given, str) or (what == "target" and isinstance(given, tuple))):
            raise TypeError(
                f"{what}: of a table that comes in parts it is the name of a column, got {type(given).__name__}; put "
                f"the values into the table, for example by table.assign({what}=...)."
            )
    if parts.n <= population.SAMPLE_ROWS:
        job = resolve(whole_table(parts, request.verbose), target, request)
        return job, fit_job(job)
    said: list[str] = []
    if not targets and request.supervised:
        target = str(parts.empty.columns[-1])
        targets = (target,)
        said.append(f"no target given: took the last column, {target!r}")
    held = 0.0 if request.task == "reduce" else request.holdout
    wanted = math.ceil(population.SAMPLE_ROWS / (1 - held))  # so that this many are left to be fitted
    drawn = draw_rows(parts, wanted, targets if request.supervised else (), request.verbose)
    job = resolve(drawn.frame, target, request)
    job = replace(job, rows=drawn.numbers[job.rows], notes=(*said, *job.notes, *_notes_on_rows(parts, drawn)))
    try:
        if job.groups is not None:
            raise NeedsMemoryError("groups: other rows of a group that is held out may be in any part")
        return job, _fit_all(job, parts, drawn)
    except NeedsMemoryError:
        who = f"the model {job.model!r} needs its" if job.groups is None else "groups need all"
        note = f"{who} rows in memory: only {len(job.rows):,} rows were looked at"
        job = replace(job, notes=(*job.notes, note))
        return job, fit_job(job)


def _notes_on_rows(parts: FrameParts, drawn: DrawnRows) -> list[str]:
    notes = [f"what the columns are was decided on {len(drawn.numbers):,} of {parts.n:,} rows"]
    if drawn.lacking:
        rows_were = "rows without a target were" if drawn.lacking > 1 else "row without a target was"
        notes.append(f"{drawn.lacking:,} {rows_were} left out")
    return notes


def _fit_all(job: Job, parts: FrameParts, drawn: DrawnRows) -> FittedTable:
    """Hold out some of the rows that were drawn, and fit to all others."""
    start = time.perf_counter()
    complete, notes = complete_rows(job)
    train, test, why = split_rows(job, complete)
    train = np.sort(train)
    encoder = TableEncoder().learn(job.frame.iloc[train], job.schema, job.names)
    encoded = encoder.encode(job.frame.iloc[train])
    preparing = _Preparing.of(job, encoder, np.arange(0) if test is None else np.sort(job.rows[test]))
    count = parts.n - drawn.lacking - len(preparing.held_out)
    with expected_warnings(job), read_once(), titled(f"{count:,} rows"):
        like = preparing(0, parts.empty)
        X, y, weights = parts.arrays(preparing, like)
        estimator = job.build()
        given = (X,) if job.y is None else (X, y)
        estimator = estimator.fit(*given, sample_weight=weights)
        part = Part(encoder, estimator, train, encoded, time.perf_counter() - start)
        held_out, judgement = (None, None) if test is None else judge_part(job, part, test)
    known = known_rows(job, part)
    return FittedTable(
        encoder, estimator, known, count, _places(known, vector_rows(estimator)), held_out,
        judgement or judge_itself(job, part), (part.seconds,), all_notes(job, part, [*notes, *why]),
    )  # fmt: skip


def _places(known: KnownRows, rows: Any) -> np.ndarray[Any, Any] | None:
    """Where rows of the table are among those that are in memory; None if one is not."""
    if rows is None:
        return None
    places = np.searchsorted(known.rows, rows)
    inside = places < len(known.rows)
    return places if inside.all() and np.array_equal(known.rows[places], rows) else None


@dataclass(frozen=True)
class _Preparing:
    """From a part of the table to features, targets and weights; rows that are not fitted have the weight zero."""

    encoder: TableEncoder
    task: str
    targets: tuple[str, ...]
    """None where the model does not look at one."""
    filler: Any
    """A target for rows without one: one of those that there are."""
    held_out: np.ndarray[Any, Any]
    """Numbers of rows that are held out, ascending."""
    weights: str | None
    """The column with the weights of the rows."""
    merge: Any = None
    """All classes, if spellings of one are one."""

    @classmethod
    def of(cls, job: Job, encoder: TableEncoder, held_out: np.ndarray[Any, Any]) -> _Preparing:
        """For the rows of a job."""
        weights = job.request.weights
        if job.y is None:
            return cls(encoder, job.task, (), np.zeros(1), held_out, weights)
        targets = job.target if isinstance(job.target, tuple) else (job.target,)
        merge = np.unique(job.y) if job.request.merge_spellings and job.y.dtype == object else None
        return cls(encoder, job.task, targets, job.y[:1], held_out, weights, merge)

    def __call__(self, first: int, part: Any) -> tuple[Any, Any, Any]:
        encoded = self.encoder.encode(part)
        weights = np.ones(len(part))
        if self.weights is not None and len(part):
            given, known, _ = row_weights((self.weights, part[self.weights]), np.arange(len(part)))
            weights[known], weights[~known] = given, 0.0
        lo, hi = np.searchsorted(self.held_out, [first, first + len(part)])
        weights[self.held_out[lo:hi] - first] = 0.0
        if self.task == "density":
            weights[encoded.gaps] = 0.0
        y, known = self._targets(part)
        weights[~known] = 0.0
        return encoded.values, y, weights

    def _targets(self, part: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Targets as the model predicts them, and which rows have one."""
        if not self.targets:
            return np.zeros(len(part)), np.ones(len(part), dtype=bool)
        numeric = self.filler.dtype.kind == "f"
        y = np.repeat(self.filler, len(part), axis=0)
        known = np.ones(len(part), dtype=bool)
        for k, name in enumerate(self.targets):
            classes = self.filler if self.merge is None else self.merge
            found = target_values(part[name], "regress" if numeric else "classify", classes, self.merge is not None)
            has = pandas().notna(found)
            values = found[has]
            if self.filler.dtype.kind in "iu" and np.any(values % 1):
                raise ValueError(
                    f"the target {name!r} holds {values[values % 1 != 0][0]:g}, but was taken as classes that are "
                    "whole numbers; name the task, 'classify' or 'regress', or leave these rows out."
                )
            column = y if y.ndim == 1 else y[:, k]
            column[has] = values.astype(self.filler.dtype)
            known &= has
        return y, known
