"""From a resolved job to a fitted model: the error on held-out rows, then the fit to all rows.

Of a table that does not fit into memory rows are drawn. What columns and target are is decided on them, by the same
functions as for a table in memory, and some of them are held out. All others are fitted, part by part.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from fewkern.arrays.frames import FrameParts, read_once
from fewkern.arrays.namespace import Array
from fewkern.arrays.partitions import NeedsMemoryError
from fewkern.arrays.progress import titled
from fewkern.base import BudgetWarning, path_of
from fewkern.core import population
from fewkern.reporting.comparison import linear_predictions, normal_log_density
from fewkern.reporting.formatting import plural
from fewkern.tables.columns import Encoded
from fewkern.tables.encoder import TableEncoder, named
from fewkern.tables.frames import draw_rows, fetch_rows, pandas
from fewkern.tables.judgement import (
    HeldOutRows,
    Judgement,
    contradiction,
    judge_density,
    judge_fit,
    judge_held_out,
    notes_on_leakage,
)
from fewkern.tables.resolve import FEWEST_ROWS, Job, Request, resolve
from fewkern.tables.target import left_out, target_values, weight_values

# From this number of rows on, the model whose error was measured is kept: the rows held out would hardly change it, and
# the fit takes half as long.
_KEEP_ROWS = 20_000


@dataclass(frozen=True)
class Part:
    """A model of some of the rows of a job."""

    encoder: TableEncoder
    estimator: Any
    rows: Array
    """Positions in the frame of the job, of those that are in memory."""
    encoded: Encoded
    count: int
    """Rows that it was fitted to, in memory or not."""
    kept: Array | None
    """Which rows of the part became vectors, or where these started; None where that is not known."""
    seconds: float


@dataclass(frozen=True)
class FittedTable:
    """A fitted model, its error and its notes."""

    part: Part
    held_out: HeldOutRows | None
    judgement: Judgement | None
    seconds: tuple[float, ...]
    """Of the check on rows held out, if there was one, and of the fit."""
    notes: tuple[str, ...]


def fit_job(job: Job, parts: FrameParts | None = None, lacking: int = 0) -> FittedTable:
    """Measure the error on rows held out, then fit to all rows (above 20,000 rows the measured model is kept).

    The rows of the job may be drawn from a table in parts; then the others are fitted with them, and the measured model
    is kept. ``lacking`` of the others have no target.
    """
    job.build()  # settings that do not exist are named before anything is fitted
    complete, notes = _complete_rows(job)
    train, test, why = split_rows(job, complete)
    once = test is None or parts is not None or len(complete) >= _KEEP_ROWS
    title = f"1/1 all {len(complete):,} rows"
    if test is not None:
        title = f"1/{1 if once else 2} held-out check on {len(test):,} rows"
    held_out, judgement = None, None
    with _expected_warnings(job):
        with titled(title if parts is None else f"{parts.n:,} rows"):
            part = _fit(job, train) if parts is None else _fit_all(job, train, test, parts, lacking)
        seconds = [part.seconds]
        if test is not None:
            held_out, judgement = _judge_part(job, part, test)
            why += _leak(job, part, test, judgement)
        if not once:
            with titled(f"2/2 all {len(complete):,} rows"):
                part = _fit(job, complete)
            seconds.append(part.seconds)
        elif test is not None and parts is None:
            notes.append(
                f"fitted to {len(train):,} of {len(complete):,} rows; the error was measured on the others "
                "(holdout 0, --holdout 0, fits all rows)"
            )
    judgement = judgement or _judge_itself(job, part)
    doubts = contradiction(judgement, own_error(job, part.estimator))
    said = _all_notes(job, part, [*notes, *why, *doubts])
    return FittedTable(part, held_out, judgement, tuple(seconds), said)


@contextmanager
def _expected_warnings(job: Job) -> Iterator[None]:
    """Suppress the warnings that the notes of the model state."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        if "n_components" not in job.request.settings:  # the number was ours
            warnings.filterwarnings("ignore", message=".*n_components=.* was asked for")
        yield


def _vector_rows(estimator: Any) -> Any:
    """The samples that became vectors, or from which these started; None if vectors are no samples."""
    return getattr(estimator, "indices_", None) if estimator.n_vectors_ else None


def own_error(job: Job, estimator: Any) -> float | None:
    """The cross-validated error that a fit reports: error rate, or root mean squared error."""
    error = getattr(estimator, "held_out_error_", None)
    if error is None or job.y is None or job.y.ndim > 1:
        return None
    return math.sqrt(error) if job.task == "regress" else float(error)


def _judge_itself(job: Job, part: Part) -> Judgement | None:
    """The judgement by the error that the fit itself reports, where no rows were held out."""
    error = own_error(job, part.estimator)
    if error is None or job.y is None:
        return None
    return judge_fit(job.task, error, job.y[part.rows], job.loss_weights(part.rows))


def _all_notes(job: Job, part: Part, more: list[str]) -> tuple[str, ...]:
    """What was guessed, left out or replaced."""
    notes = [*job.notes, *part.encoder.notes_, *more]
    if getattr(path_of(part.estimator), "open_end", False):
        falling = "the error was still falling at the budget of vectors"
        notes.append(f"{falling}: prefer='accurate' or a larger max_vectors may help")
    return tuple(notes)


def _leak(job: Job, part: Part, test: Array, judged: Judgement | None) -> list[str]:
    """Notes on those of the three most important columns that alone predict the target."""
    importances, encoder = getattr(part.estimator, "feature_importances_", None), part.encoder
    grouped = any("--groups" in note for note in job.notes)
    if importances is None or grouped or judged is None or job.y is None or job.y.ndim > 1:
        return []
    if not judged.verdict.startswith("better"):
        return []
    most = np.argsort(encoder.by_column(importances))[::-1][:3]
    new = encoder.encode(job.frame.iloc[test]).values
    fitted = part.encoded.values, job.y[part.rows]
    return notes_on_leakage([encoder.columns[k] for k in most], job, encoder, fitted, (new, job.y[test]))


def _complete_rows(job: Job) -> tuple[Array, list[str]]:
    """All rows; of a density, those without a gap: a value put in its place would be a spike."""
    rows = np.arange(len(job.frame))
    if job.task != "density":
        return rows, []
    gaps = learn_columns(job)[1].gaps
    if not gaps.any():
        return rows, []
    rows = rows[~gaps]
    if len(rows) < FEWEST_ROWS:
        raise ValueError(
            f"only {len(rows)} of {len(gaps):,} rows have no missing value, and a density needs complete rows; drop "
            "the columns with gaps."
        )
    return rows, [f"{plural(int(gaps.sum()), 'row')} with missing values left out: a density is of complete rows"]


def learn_columns(job: Job, rows: Any = slice(None)) -> tuple[TableEncoder, Encoded]:
    """The columns as some rows show them, and the features of these rows."""
    frame = job.frame.iloc[rows]
    encoder = TableEncoder().learn(frame, job.schema, job.names)
    return encoder, encoder.encode(frame)


def _fit(job: Job, rows: Array) -> Part:
    start = time.perf_counter()
    encoder, encoded = learn_columns(job, rows)
    given = (encoded.values,) if job.y is None else (encoded.values, job.y[rows])
    estimator = job.build().fit(*given, **job.fit_arguments(rows))
    seconds = time.perf_counter() - start
    return Part(encoder, estimator, rows, encoded, len(rows), _vector_rows(estimator), seconds)


def split_rows(job: Job, rows: Array) -> tuple[Array, Any, list[str]]:
    """Rows to fit and rows to hold out (None: no check), and why there is none; whole groups are held out."""
    share = job.request.holdout
    if not share or job.task == "reduce":
        return rows, None, []
    stratify = None
    if job.task == "classify" and job.y is not None:
        counts = np.unique(job.y, return_counts=True)[1]
        if counts.min() < 3 and len(counts) < 3:
            return rows, None, ["too few rows of a class to hold any out: the error is not measured"]
        enough = counts.min() >= 2 and min(round(share * len(rows)), round((1 - share) * len(rows))) >= len(counts)
        stratify = job.y if enough else None
    if job.groups is not None:
        train, test = _split_groups(job, rows, job.groups[rows])
    else:
        train, test = train_test_split(rows, test_size=share, random_state=job.request.random_state, stratify=stratify)
    if len(train) < 2:
        return rows, None, ["too few rows to hold any out: the error is not measured"]
    return train, test, []


def _split_groups(job: Job, rows: Array, groups: Array) -> tuple[Array, Array]:
    """Whole groups to hold out; of ten draws the one whose classes, or means, are most like those of all rows."""
    share = job.request.holdout
    draws = GroupShuffleSplit(10, test_size=share, random_state=job.request.random_state)
    targets = np.zeros((len(rows), 1)) if job.y is None else job.y[rows].reshape(len(rows), -1)
    if job.task == "classify":
        targets = (targets == np.unique(targets)).astype(float)
    mean, spread = targets.mean(axis=0), np.maximum(targets.std(axis=0), 1e-300)

    def unlike(split: Any) -> float:
        held = split[1]
        return float(np.abs((targets[held].mean(axis=0) - mean) / spread).max()) + abs(len(held) / len(rows) - share)

    train, test = min(draws.split(rows, groups=groups), key=unlike)
    return rows[train], rows[test]


def _judge_part(job: Job, part: Part, test: Array) -> tuple[HeldOutRows | None, Judgement | None]:
    """Predictions for the rows that the model did not see, and how good they are."""
    new, train = part.encoder.encode(job.frame.iloc[test]).values, part.encoded.values
    if job.task == "density":
        unit = np.log(part.encoder.scale_).sum()
        values = np.asarray(part.estimator.score_samples(new)) - unit
        return None, judge_density(values, normal_log_density(train, new) - unit)
    assert job.y is not None
    y, truth, weights = job.y[part.rows], job.y[test], job.loss_weights(part.rows)
    probabilities = part.estimator.predict_proba(new) if hasattr(part.estimator, "predict_proba") else None
    predicted, groups = part.estimator.predict(new), None if job.groups is None else job.groups[test]
    held_out = HeldOutRows(job.rows[test], truth, predicted, probabilities, job.loss_weights(test), groups)
    linear = linear_predictions(train, y, new, job.task, 0, weights)
    labels = getattr(part.estimator, "classes_", job.target)
    return held_out, judge_held_out(job.task, held_out, (y, weights), linear, labels)


def fit_parts(parts: FrameParts, target: Any, request: Request) -> tuple[Job, FittedTable]:
    """Resolve and fit a table that comes in parts; a small one as if it were in memory."""
    for what, given in (("target", target), ("groups", request.groups), ("weights", request.weights)):
        if not (given is None or isinstance(given, str) or (what == "target" and isinstance(given, list | tuple))):
            raise TypeError(
                f"{what}: of a table that comes in parts it is the name of a column, got {type(given).__name__}; put "
                f"the values into the table, for example by table.assign({what}=...)."
            )
    if parts.n <= population.SAMPLE_ROWS:
        job = resolve(fetch_rows(parts, None, request.verbose), target, request)
        return job, fit_job(job)
    notes: list[str] = []
    if not target and request.supervised:
        target = str(parts.empty.columns[-1])
        notes.append(f"no target given: using the last column, {target!r}")
    held = 0.0 if request.task == "reduce" else request.holdout
    wanted = math.ceil(population.SAMPLE_ROWS / (1 - held))  # so that this many are left to be fitted
    drawn = draw_rows(parts, wanted, named(target) if request.supervised else (), request.verbose)
    job = resolve(drawn.frame, target, request)
    notes += [*job.notes, f"column types were inferred from {len(drawn.numbers):,} of {parts.n:,} rows"]
    job = replace(job, rows=drawn.numbers[job.rows], notes=(*notes, *left_out(drawn.lacking, "a target")))
    try:
        if job.groups is not None:
            raise NeedsMemoryError("groups: other rows of a group that is held out may be in any part")
        return job, fit_job(job, parts, drawn.lacking)
    except NeedsMemoryError:
        who = f"the model {job.model!r} needs its" if job.groups is None else "groups need all"
        note = f"{who} rows in memory: only {len(job.rows):,} rows were used"
        job = replace(job, notes=(*job.notes, note))
        return job, fit_job(job)


def _fit_all(job: Job, train: Array, test: Array | None, parts: FrameParts, lacking: int) -> Part:
    """Fit to all rows of a table in parts but those held out; the columns are as the rows ``train`` show them."""
    start, train = time.perf_counter(), np.sort(train)
    encoder, encoded = learn_columns(job, train)
    reader = _PartReader.of(job, encoder, np.arange(0) if test is None else np.sort(job.rows[test]))
    with read_once():
        X, y, weights = parts.arrays(reader, reader(0, parts.empty))
        given = (X,) if job.y is None else (X, y)
        estimator = job.build().fit(*given, sample_weight=weights)
    kept = _places(job.rows[train], _vector_rows(estimator))
    count = parts.n - lacking - len(reader.held_out)
    return Part(encoder, estimator, train, encoded, count, kept, time.perf_counter() - start)


def _places(known: Array, rows: Any) -> Array | None:
    """Positions of rows of the table among those in memory; None if one is not in memory."""
    if rows is None:
        return None
    places = np.searchsorted(known, rows)
    return places if (places < len(known)).all() and np.array_equal(known[places], rows) else None


@dataclass(frozen=True)
class _PartReader:
    """From a part of the table to features, targets and weights; rows that are not fitted have the weight zero."""

    encoder: TableEncoder
    task: str
    targets: tuple[str, ...]
    """Empty where the model does not look at one."""
    filler: Any
    """A target for rows without one: one of those that there are."""
    classes: Any
    """All that are known; None where the targets are numbers."""
    held_out: Array
    """Numbers of rows that are held out, ascending."""
    request: Request

    @classmethod
    def of(cls, job: Job, encoder: TableEncoder, held_out: Array) -> _PartReader:
        """For the rows of a job."""
        if job.y is None:
            return cls(encoder, job.task, (), np.zeros(1), None, held_out, job.request)
        targets = job.target if isinstance(job.target, tuple) else (job.target,)
        classes = None if job.y.dtype.kind == "f" else np.unique(job.y)
        return cls(encoder, job.task, targets, job.y[:1], classes, held_out, job.request)

    def __call__(self, first: int, part: Any) -> tuple[Any, Any, Any]:
        encoded = self.encoder.encode(part)
        weights, name = np.ones(len(part)), self.request.weights
        if name is not None:
            weights = np.nan_to_num(weight_values(name, part[name]))
        lo, hi = np.searchsorted(self.held_out, [first, first + len(part)])
        weights[self.held_out[lo:hi] - first] = 0.0
        if self.task == "density":
            weights[encoded.gaps] = 0.0
        y, known = self._targets(part)
        weights[~known] = 0.0
        return encoded.values, y, weights

    def _targets(self, part: Any) -> tuple[Array, Array]:
        """Targets as the model predicts them, and which rows have one."""
        y, known = np.repeat(self.filler, len(part), axis=0), np.ones(len(part), dtype=bool)
        task = "regress" if self.classes is None else "classify"
        for k, name in enumerate(self.targets):
            found = target_values(part[name], task, self.classes, self.request.merge_spellings)
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
