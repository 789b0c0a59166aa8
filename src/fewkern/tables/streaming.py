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
from fewkern.tables.streams import DrawnRows, draw_rows, whole_table
from fewkern.tables.target import target_values

__all__ = ["fit_parts"]


def fit_parts(parts: FrameParts, target: Any, request: Request) -> tuple[Job, FittedTable]:
    """Settle and fit a table that comes in parts; a small one as if it were in memory."""
    if target is not None and not isinstance(target, str):
        raise TypeError(
            "target: of a table that comes in parts it is the name of a column, got "
            f"{type(target).__name__}; put the targets into the table, for example by table.assign(target=...)."
        )
    if parts.n <= population.SAMPLE_ROWS:
        job = resolve(whole_table(parts, request.verbose), target, request)
        return job, fit_job(job)
    said: list[str] = []
    if target is None and request.supervised:
        target = str(parts.empty.columns[-1])
        said.append(f"no target given: took the last column, {target!r}")
    held = 0.0 if request.task == "reduce" else request.holdout
    wanted = math.ceil(population.SAMPLE_ROWS / (1 - held))  # so that this many are left to be fitted
    drawn = draw_rows(parts, wanted, target if request.supervised else None, request.verbose)
    job = resolve(drawn.frame, target, request)
    job = replace(job, rows=drawn.numbers[job.rows], notes=(*said, *job.notes, *_notes_on_rows(parts, drawn)))
    try:
        return job, _fit_all(job, parts, drawn)
    except NeedsMemoryError:
        note = f"the model {job.model!r} needs its rows in memory: only {len(job.rows):,} rows were looked at"
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
    target: str | None
    """None where the model does not look at one."""
    filler: Any
    """A target for rows without one: one of those that there are."""
    held_out: np.ndarray[Any, Any]
    """Numbers of rows that are held out, ascending."""

    @classmethod
    def of(cls, job: Job, encoder: TableEncoder, held_out: np.ndarray[Any, Any]) -> _Preparing:
        """For the rows of a job."""
        if job.y is None:
            return cls(encoder, job.task, None, np.zeros(1), held_out)
        return cls(encoder, job.task, job.target, job.y[:1], held_out)

    def __call__(self, first: int, part: Any) -> tuple[Any, Any, Any]:
        encoded = self.encoder.encode(part)
        weights = np.ones(len(part))
        lo, hi = np.searchsorted(self.held_out, [first, first + len(part)])
        weights[self.held_out[lo:hi] - first] = 0.0
        if self.task == "density":
            weights[encoded.gaps] = 0.0
        y, known = self._targets(part)
        weights[~known] = 0.0
        return encoded.values, y, weights

    def _targets(self, part: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Targets as the model predicts them, and which rows have one."""
        if self.target is None:
            return np.zeros(len(part)), np.ones(len(part), dtype=bool)
        numeric = self.filler.dtype.kind == "f"
        found = target_values(part[self.target], "regress" if numeric else "classify", self.filler)
        known = pandas().notna(found)
        values = found[known]
        if numeric and not np.isfinite(values).all():
            raise ValueError(f"the target {self.target!r} holds infinite values; leave these rows out.")
        if self.filler.dtype.kind in "iu" and np.any(values % 1):
            raise ValueError(
                f"the target {self.target!r} holds {values[values % 1 != 0][0]:g}, but was taken as classes that are "
                "whole numbers; name the task, 'classify' or 'regress', or leave these rows out."
            )
        y = np.repeat(self.filler, len(part))
        y[known] = values.astype(self.filler.dtype)
        return y, known
