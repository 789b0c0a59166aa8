"""From a resolved job to a fitted model and its facts: the error on held-out rows, then the fit to all rows.

From a table that does not fit into memory, rows are drawn. They decide what columns and target are, by the same
functions as for a table in memory, and some of them are held out. All others are fitted, part by part.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from fewkern.arrays import sampling
from fewkern.arrays.frames import FrameParts, read_once
from fewkern.arrays.namespace import Array
from fewkern.arrays.partitions import NeedsMemoryError
from fewkern.arrays.progress import titled
from fewkern.base import BudgetWarning, path_of
from fewkern.reporting.comparison import linear_predictions, normal_log_density
from fewkern.reporting.formatting import plural
from fewkern.reporting.judgement import (
    Judgement,
    answering,
    constant_answer,
    judge,
    judge_density,
    judge_fit,
    measure_text,
)
from fewkern.tables.cells import pandas
from fewkern.tables.columns import Encoded
from fewkern.tables.encoder import TableEncoder, named
from fewkern.tables.facts import FitFacts, HeldOutRows, describe, describe_density
from fewkern.tables.parts import draw_rows, fetch_rows
from fewkern.tables.predicting import target_values
from fewkern.tables.resolve import FEWEST_ROWS, Job, Request, notes_on_leakage, resolve, weight_values
from fewkern.tables.schema import left_out

# From this number of rows on, the model whose error was measured is kept: the rows held out would hardly change it, and
# the fit takes half as long.
_KEEP_ROWS = 20_000


@dataclass(frozen=True)
class FittedTable:
    """A model of the rows of a job, or of some of them, with its error and its notes."""

    encoder: TableEncoder
    estimator: Any
    rows: Array
    """Positions in the frame of the job, of those that are in memory."""
    encoded: Encoded
    count: int
    """Rows that it was fitted to, in memory or not."""
    kept: Array | None
    """Which of the rows in memory became vectors, or where these started; None where that is not known."""
    seconds: tuple[float, ...]
    """Seconds of the check on rows held out, if there was one, and of the fit."""
    held_out: HeldOutRows | None = None
    judgement: Judgement | None = None
    notes: tuple[str, ...] = ()


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
            found = _fit(job, train) if parts is None else _fit_all(job, train, test, parts, lacking)
        if test is not None:
            held_out, judgement = _judge_held_out(job, found, test)
            why += _leak(job, found, test, judgement)
        if not once:
            with titled(f"2/2 all {len(complete):,} rows"):
                again = _fit(job, complete)
            found = replace(again, seconds=found.seconds + again.seconds)
        elif test is not None and parts is None:
            notes.append(
                f"fitted to {len(train):,} of {len(complete):,} rows; the error was measured on the others "
                "(holdout 0, --holdout 0, fits all rows)"
            )
    error = own_error(job, found.estimator)
    if judgement is None and error is not None and job.y is not None:
        judgement = judge_fit(job.task, error, job.y[found.rows], job.loss_weights(found.rows))
    notes += why + contradiction(judgement, error)
    if getattr(path_of(found.estimator), "open_end", False):
        falling = "the error was still falling at the budget of vectors"
        notes.append(f"{falling}: a larger max_vectors may help")
    said = (*job.notes, *found.encoder.notes_, *notes)
    return replace(found, held_out=held_out, judgement=judgement, notes=said)


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


def contradiction(judged: Judgement | None, cross_validated: float | None) -> list[str]:
    """A cross-validated error that the held-out error contradicts, by four standard errors and a factor of two."""
    if judged is None or cross_validated is None or judged.how != "held out" or judged.targets:
        return []
    held, error = judged.value, (judged.high - judged.low) / 4
    low, high = sorted((held, cross_validated))
    if abs(held - cross_validated) <= 4 * error or high <= 2 * low:
        return []
    errors = measure_text(cross_validated, judged.measure), measure_text(held, judged.measure)
    two = f"the cross-validated error ({errors[0]}) and the held-out error ({errors[1]})"
    why = "a few rows decide which of them is large; look at these rows before you trust either"
    return [f"{two} contradict each other: {why}"]


def _leak(job: Job, found: FittedTable, test: Array, judged: Judgement | None) -> list[str]:
    """Notes on those of the three most important columns that alone predict the target."""
    importances, encoder = getattr(found.estimator, "feature_importances_", None), found.encoder
    grouped = any("--groups" in note for note in job.notes)
    if importances is None or grouped or judged is None or job.y is None or job.y.ndim > 1:
        return []
    if not judged.verdict.startswith("better"):
        return []
    most = np.argsort(encoder.by_column(importances))[::-1][:3]
    new = encoder.encode(job.frame.iloc[test]).values
    fitted = found.encoded.values, job.y[found.rows]
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


def _fit(job: Job, rows: Array) -> FittedTable:
    start = time.perf_counter()
    encoder, encoded = learn_columns(job, rows)
    given = (encoded.values,) if job.y is None else (encoded.values, job.y[rows])
    estimator = job.build().fit(*given, **job.fit_arguments(rows))
    seconds = (time.perf_counter() - start,)
    return FittedTable(encoder, estimator, rows, encoded, len(rows), _vector_rows(estimator), seconds)


def _judge_held_out(job: Job, fitted: FittedTable, test: Array) -> tuple[HeldOutRows | None, Judgement]:
    """Predictions for the rows that the model did not see, and how good they are."""
    estimator, train = fitted.estimator, fitted.encoded.values
    new = fitted.encoder.encode(job.frame.iloc[test]).values
    if job.y is None:
        unit = fitted.encoder.log_unit
        values = np.asarray(estimator.score_samples(new)) + unit
        return None, judge_density(values, normal_log_density(train, new) + unit)
    y, weights = job.y[fitted.rows], job.loss_weights(fitted.rows)
    probabilities = estimator.predict_proba(new) if hasattr(estimator, "predict_proba") else None
    groups = None if job.groups is None else job.groups[test]
    held_out = HeldOutRows(
        job.rows[test], job.y[test], estimator.predict(new), probabilities, job.loss_weights(test), groups
    )
    classify = job.task == "classify"
    constant = constant_answer(y, classify, weights)
    answers = {"this model": held_out.predicted}
    answers[answering([constant], classify)] = np.broadcast_to(constant, held_out.truth.shape)
    linear = linear_predictions(train, y, new, classify, weights)
    if linear is not None:
        answers["a linear model"] = linear
    classes = estimator.classes_ if classify else None
    return held_out, judge(held_out.truth, answers, held_out.counted, classes, probabilities)


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


def fit_parts(parts: FrameParts, target: Any, request: Request) -> tuple[Job, FittedTable]:
    """Resolve and fit a table that comes in parts; a small one as if it were in memory."""
    for what, given in (("target", target), ("groups", request.groups), ("weights", request.weights)):
        if not (given is None or isinstance(given, str) or (what == "target" and isinstance(given, list | tuple))):
            raise TypeError(
                f"{what}: of a table that comes in parts it is the name of a column, got {type(given).__name__}; put "
                f"the values into the table, for example by table.assign({what}=...)."
            )
    if parts.n <= sampling.SAMPLE_ROWS:
        job = resolve(fetch_rows(parts, None, request.verbose), target, request)
        return job, fit_job(job)
    notes: list[str] = []
    if not target and request.supervised:
        target = str(parts.empty.columns[-1])
        notes.append(f"no target given: using the last column, {target!r}")
    held = 0.0 if request.task == "reduce" else request.holdout
    wanted = math.ceil(sampling.SAMPLE_ROWS / (1 - held))  # so that this many are left to be fitted
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


def _fit_all(job: Job, train: Array, test: Array | None, parts: FrameParts, lacking: int) -> FittedTable:
    """Fit to all rows of a table in parts but those held out; the columns are as the rows ``train`` show them."""
    start, train = time.perf_counter(), np.sort(train)
    encoder, encoded = learn_columns(job, train)
    held_out = np.arange(0) if test is None else np.sort(job.rows[test])
    classes = None if job.y is None or job.y.dtype.kind == "f" else np.unique(job.y)
    # on its way to workers without its rows, but for one target
    slight = replace(job, frame=None, rows=held_out[:0], y=None if job.y is None else job.y[:1], weights=None)
    reader = partial(_read_part, slight, encoder, classes, held_out)
    with read_once():
        X, y, weights = parts.arrays(reader, reader(0, parts.empty))
        given = (X,) if job.y is None else (X, y)
        estimator = job.build().fit(*given, sample_weight=weights)
    kept, count = _places(job.rows[train], _vector_rows(estimator)), parts.n - lacking - len(held_out)
    return FittedTable(encoder, estimator, train, encoded, count, kept, (time.perf_counter() - start,))


def _places(known: Array, rows: Any) -> Array | None:
    """Positions of rows of the table among those in memory; None if one is not in memory."""
    if rows is None:
        return None
    places = np.searchsorted(known, rows)
    return places if (places < len(known)).all() and np.array_equal(known[places], rows) else None


def _read_part(
    job: Job, encoder: TableEncoder, classes: Any, held_out: Array, first: int, part: Any
) -> tuple[Array, Array, Array]:
    """Features, targets and weights of a part of the table; rows that are not fitted have the weight zero.

    ``job`` has a single target, which stands in for those that are missing; ``classes`` are all that are known, None
    where the targets are numbers; ``held_out`` are the numbers of rows that are held out, ascending.
    """
    encoded = encoder.encode(part)
    weights, name = np.ones(len(part)), job.request.weights
    if name is not None:
        weights = np.nan_to_num(weight_values(name, part[name]))
    lo, hi = np.searchsorted(held_out, [first, first + len(part)])
    weights[held_out[lo:hi] - first] = 0.0
    if job.task == "density":
        weights[encoded.gaps] = 0.0
    y, known = _part_targets(job, classes, part)
    weights[~known] = 0.0
    return encoded.values, y, weights


def _part_targets(job: Job, classes: Any, part: Any) -> tuple[Array, Array]:
    """Targets as the model predicts them, and which rows have one."""
    known = np.ones(len(part), dtype=bool)
    if job.y is None:
        return np.zeros(len(part)), known
    y, task = np.repeat(job.y, len(part), axis=0), "regress" if classes is None else "classify"
    for k, name in enumerate(job.target if isinstance(job.target, tuple) else (job.target,)):
        found = target_values(part[name], task, classes, job.request.merge_spellings)
        has = pandas().notna(found)
        values = found[has]
        if y.dtype.kind in "iu" and np.any(values % 1):
            raise ValueError(
                f"the target {name!r} holds {values[values % 1 != 0][0]:g}, but was taken as classes that are whole "
                "numbers; name the task, 'classify' or 'regress', or leave these rows out."
            )
        column = y if y.ndim == 1 else y[:, k]
        column[has] = values.astype(y.dtype)
        known &= has
    return y, known


def facts_of(found: FittedTable, job: Job, total: float) -> FitFacts:
    """The facts of a fit."""
    kept, estimator = found.kept, found.estimator
    y = None if job.y is None else job.y[found.rows]
    error, r2 = own_error(job, estimator), None
    if error is not None and y is not None and job.task == "regress":
        spread = float(np.var(y))
        r2 = 1.0 - error**2 / spread if spread else None
    return FitFacts(
        rows=found.count, features=len(found.encoder.names), vectors=int(estimator.n_vectors_) or None,
        kernel=describe_density(estimator) if job.task == "density" else describe(estimator),
        bytes=int(estimator.expansion_.nbytes), seconds=found.seconds, total=total,
        cross_validated=error, cross_validated_r2=r2,
        components=int(estimator.n_components_) if job.task == "reduce" else None,
        groups=None if job.groups is None else len(np.unique(job.groups)),
        kept_rows=None if kept is None else job.rows[found.rows][kept],
        kept_missing=None if kept is None else found.encoded.missing[kept],
        kept_target=None if y is None or kept is None else y[kept],
    )  # fmt: skip
