"""From a settled job to a fitted model: rows held out, what they say, the fit on all rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewkern.arrays.progress import titled
from fewkern.base import BudgetWarning, path_of
from fewkern.reporting.evaluation import linear_predictions
from fewkern.tables.encoder import EncodedTable, TableEncoder
from fewkern.tables.evaluate import (
    Counted,
    HeldOutRows,
    Judgement,
    judge_classes,
    judge_density,
    judge_fit,
    judge_numbers,
    judge_several,
)
from fewkern.tables.resolve import FEWEST_ROWS, Job
from fewkern.tables.suspect import contradiction, deciding_column

__all__ = [
    "FittedTable",
    "KnownRows",
    "Part",
    "all_notes",
    "complete_rows",
    "expected_warnings",
    "fit_job",
    "judge_itself",
    "judge_part",
    "known_rows",
    "split_rows",
    "vector_rows",
]

# From this number of rows on, the model whose error was measured is kept: the rows held out would hardly change it, and
# the fit takes half as long.
_KEEP_ROWS = 20_000
# Draws of groups to hold out, of which one is taken.
_DRAWS = 10


@dataclass(frozen=True)
class Part:
    """A model of some of the rows of a job."""

    encoder: TableEncoder
    estimator: Any
    rows: np.ndarray[Any, Any]
    """Positions in the frame of the job, of those that are in memory."""
    encoded: EncodedTable
    seconds: float


@dataclass(frozen=True)
class KnownRows:
    """Rows that are in memory: all that were fitted, or a sample of them."""

    rows: np.ndarray[Any, Any]
    """Positions in the table."""
    missing: np.ndarray[Any, Any]
    """Their missing cells, ``(n, number of columns)``."""
    y: np.ndarray[Any, Any] | None
    """Their targets."""


@dataclass(frozen=True)
class FittedTable:
    """A fitted model and what is known of it."""

    encoder: TableEncoder
    estimator: Any
    known: KnownRows
    """Rows that it was fitted to."""
    count: int
    """How many it was fitted to."""
    kept: np.ndarray[Any, Any] | None
    """Which of the known rows became vectors, or where these started; None where that is not known."""
    held_out: HeldOutRows | None
    judgement: Judgement | None
    seconds: tuple[float, ...]
    """Of the check on rows held out, if there was one, and of the fit."""
    notes: tuple[str, ...] = field(default=())


def fit_job(job: Job) -> FittedTable:
    """Measure the error on rows held out, then fit to all rows (above 20,000 rows the measured model is kept)."""
    job.build()  # settings that do not exist are named before anything is fitted
    complete, notes = complete_rows(job)
    train, test, why = split_rows(job, complete)
    checked, held_out, judgement = None, None, None
    with expected_warnings(job):
        steps = 1 if test is None or _keeps(len(complete)) else 2
        if test is not None:
            with titled(f"1/{steps} held-out check on {len(test):,} rows"):
                checked = _fit(job, train)
            held_out, judgement = judge_part(job, checked, test)
            why += _leak(job, checked, test, judgement)
        if checked is not None and _keeps(len(complete)):
            final = checked
            notes.append(
                f"fitted to {len(train):,} of {len(complete):,} rows; the error was measured on the others (holdout 0, "
                "--holdout 0, fits all rows)"
            )
        else:
            with titled(f"{steps}/{steps} all {len(complete):,} rows"):
                final = _fit(job, complete)
    seconds = (final.seconds,) if checked is None or checked is final else (checked.seconds, final.seconds)
    known = known_rows(job, final)
    judged = judgement or judge_itself(job, final)
    return FittedTable(
        final.encoder, final.estimator, known, len(known.rows), vector_rows(final.estimator), held_out, judged,
        seconds, all_notes(job, final, [*notes, *why, *_contradiction(job, final, judged)]),
    )  # fmt: skip


@contextmanager
def expected_warnings(job: Job) -> Iterator[None]:
    """Without the warnings of which the model speaks in its notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        if "n_components" not in job.request.settings:  # nobody asked for as many as we did
            warnings.filterwarnings("ignore", message=".*n_components=.* was asked for")
        yield


def known_rows(job: Job, part: Part) -> KnownRows:
    """The rows of a part that are in memory."""
    return KnownRows(job.rows[part.rows], part.encoded.missing, None if job.y is None else job.y[part.rows])


def vector_rows(estimator: Any) -> Any:
    """Which samples became vectors, or where these started; None of kernels that may lie between the samples."""
    return getattr(estimator, "indices_", None) if estimator.n_vectors_ else None


def judge_itself(job: Job, part: Part) -> Judgement | None:
    """What a fit says of itself, where no rows were held out."""
    if job.y is None or job.y.ndim > 1 or getattr(part.estimator, "held_out_error_", None) is None:
        return None
    return judge_fit(job.task, float(part.estimator.held_out_error_), job.y[part.rows], job.loss_weights(part.rows))


def all_notes(job: Job, part: Part, more: list[str]) -> tuple[str, ...]:
    """What was guessed, left out or replaced."""
    return (*job.notes, *part.encoder.notes_, *more, *_notes_on_fit(part.estimator))


def _contradiction(job: Job, part: Part, judged: Judgement | None) -> list[str]:
    """The two errors that a summary shows must not contradict each other."""
    error = getattr(part.estimator, "held_out_error_", None)
    if error is None or job.y is None:
        return []
    extreme = any(note.endswith(("remove it", "remove them")) for note in job.notes)
    return contradiction(judged, float(error) ** (1 if job.task == "classify" else 0.5), extreme)


def _leak(job: Job, part: Part, test: np.ndarray[Any, Any], judged: Judgement | None) -> list[str]:
    """A column that alone decides."""
    importances = getattr(part.estimator, "feature_importances_", None)
    if job.y is None or importances is None:
        return []
    y = job.y
    encoder, new = part.encoder, part.encoder.encode(job.frame.iloc[test]).values
    ends = np.cumsum([0, *(len(column.features) for column in encoder.columns_)])

    def features(name: str) -> tuple[Any, Any, Any, Any]:
        k = encoder.columns.index(name)
        own = slice(ends[k], ends[k + 1])
        return part.encoded.values[:, own], y[part.rows], new[:, own], y[test]

    found = deciding_column(encoder.columns, encoder.by_column(importances), features, judged, str(job.target))
    return [] if any("--groups" in note for note in job.notes) else found


def _keeps(rows: int) -> bool:
    return rows >= _KEEP_ROWS


def complete_rows(job: Job) -> tuple[np.ndarray[Any, Any], list[str]]:
    """All rows; of a density, those without a gap: a value put in its place would be a spike."""
    rows = np.arange(len(job.frame))
    if job.task != "density":
        return rows, []
    encoder = TableEncoder().learn(job.frame, job.schema, job.names)
    gaps = encoder.encode(job.frame).gaps
    if not gaps.any():
        return rows, []
    rows = rows[~gaps]
    if len(rows) < FEWEST_ROWS:
        raise ValueError(
            f"only {len(rows)} of {len(gaps):,} rows have no missing value, and a density needs complete rows; drop "
            "the columns with gaps."
        )
    return rows, [f"{int(gaps.sum()):,} rows with missing values were left out: a density is of complete rows"]


def _fit(job: Job, rows: np.ndarray[Any, Any]) -> Part:
    start = time.perf_counter()
    frame = job.frame.iloc[rows]
    encoder = TableEncoder().learn(frame, job.schema, job.names)
    encoded = encoder.encode(frame)
    given = (encoded.values,) if job.y is None else (encoded.values, job.y[rows])
    estimator = job.build().fit(*given, **job.fit_arguments(rows))
    return Part(encoder, estimator, rows, encoded, time.perf_counter() - start)


def split_rows(job: Job, rows: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Any, list[str]]:
    """Rows to fit and rows to hold out (None: no check), and why there is none; whole groups are held out."""
    from sklearn.model_selection import train_test_split

    if not job.request.holdout or job.task == "reduce":
        return rows, None, []
    stratify = None
    if job.task == "classify" and job.y is not None:
        counts = np.unique(job.y, return_counts=True)[1]
        if counts.min() < 3 and len(counts) < 3:
            return rows, None, ["too few rows of a class to hold any out: the error is not measured"]
        enough = counts.min() >= 2 and round(job.request.holdout * len(rows)) >= len(counts)
        stratify = job.y if enough and round((1 - job.request.holdout) * len(rows)) >= len(counts) else None
    if job.groups is not None:
        train, test = _split_groups(job, rows)
    else:
        train, test = train_test_split(
            rows, test_size=job.request.holdout, random_state=job.request.random_state, stratify=stratify
        )
    if len(train) < 2:
        return rows, None, ["too few rows to hold any out: the error is not measured"]
    return train, test, []


def _split_groups(job: Job, rows: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Whole groups to hold out; of several draws the one whose classes, or means, are most like those of all rows."""
    from sklearn.model_selection import GroupShuffleSplit

    assert job.groups is not None
    share = job.request.holdout
    draws = GroupShuffleSplit(_DRAWS, test_size=share, random_state=job.request.random_state)
    targets = np.zeros((len(rows), 1)) if job.y is None else job.y[rows].reshape(len(rows), -1)
    if job.task == "classify":
        targets = (targets == np.unique(targets)).astype(float)

    def unlike(split: Any) -> float:
        held = targets[split[1]].mean(axis=0) - targets.mean(axis=0)
        return float(np.abs(held / np.maximum(targets.std(axis=0), 1e-300)).max()) + abs(
            len(split[1]) / len(rows) - share
        )

    train, test = min(draws.split(rows, groups=job.groups[rows]), key=unlike)
    return rows[train], rows[test]


def judge_part(job: Job, part: Part, test: np.ndarray[Any, Any]) -> tuple[HeldOutRows | None, Judgement | None]:
    """Predictions for the rows that the model did not see, and how good they are."""
    new, train = part.encoder.encode(job.frame.iloc[test]).values, part.encoded.values
    if job.task == "density":
        unit = np.log(part.encoder.scale_).sum()
        values = np.asarray(part.estimator.score_samples(new)) - unit
        return None, judge_density(values, _normal(train, new) - unit)
    assert job.y is not None
    y, truth, weights = job.y[part.rows], job.y[test], job.loss_weights(part.rows)
    probabilities = part.estimator.predict_proba(new) if hasattr(part.estimator, "predict_proba") else None
    held_out = HeldOutRows(job.rows[test], truth, part.estimator.predict(new), probabilities)
    counted = Counted(job.loss_weights(test), None if job.groups is None else job.groups[test])
    linear = linear_predictions(train, y, new, job.task, 0, weights)
    if job.task == "classify":
        labels, codes = np.unique(y, return_inverse=True)
        majority = labels[int(np.argmax(np.bincount(codes, weights)))]
        return held_out, judge_classes(held_out, majority, linear, counted, part.estimator.classes_)
    mean = np.average(y, axis=0, weights=weights)
    if y.ndim == 2:
        return held_out, judge_several(held_out, mean, linear, counted, job.target)
    return held_out, judge_numbers(held_out, float(mean), linear, counted)


def _normal(train: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Log density of one normal distribution, kept from being flat by a little of the unit."""
    d = train.shape[1]
    cov = np.atleast_2d(np.cov(train, rowvar=False)) + 1e-6 * np.eye(d)
    z = np.linalg.solve(np.linalg.cholesky(cov), (new - train.mean(axis=0)).T)
    return np.asarray(-0.5 * ((z**2).sum(axis=0) + d * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1]))


def _notes_on_fit(estimator: Any) -> list[str]:
    # vectors that were moved are not those of the path
    moved = getattr(estimator, "refined_", False)
    if moved or not getattr(path_of(estimator), "open_end", False):
        return []
    return ["the error was still falling at the budget of vectors: prefer='accurate' or a larger max_vectors may help"]
