"""What may be wrong with a table, before any model is kept: suspicious rows, copies, columns, and how rows are ordered.

Everything rests on one quick model (:mod:`fewkern.learn.suspects`), whose predictions for rows that it has not seen
are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays import sampling
from fewkern.arrays.namespace import Array
from fewkern.core.samples import Samples, class_targets
from fewkern.learn.suspects import Suspects, hold_out, leave_out, suspects
from fewkern.reporting.formatting import label, number, percent, plural
from fewkern.reporting.judgement import Counted
from fewkern.tables.cells import pandas
from fewkern.tables.columns import CategoryColumn, days
from fewkern.tables.encoder import TableEncoder
from fewkern.tables.fitting import learn_columns
from fewkern.tables.parts import as_parts, draw_rows
from fewkern.tables.reading import as_frame, cut_short, listed
from fewkern.tables.resolve import Job, Request, group_column, notes_on_leakage, resolve

# A column is nearly constant if one value fills this share of the rows.
_CONSTANT_SHARE = 0.99
# Rows by which a column is tried alone.
_LEAKAGE_ROWS = 4000
# Share of the rows that are last in time, and of those that are held out at random beside them.
_LAST_SHARE, _N_FIFTHS = 0.2, 5
_ONE_BY_ONE, _RANDOM_FIFTHS = "rows one by one", "random fifths"
# An error is clearly larger than another by this number of standard errors of the mean difference, by this factor, and
# on this number of rows.
_CLEAR_ERRORS, _CLEAR_FACTOR, _CLEAR_ROWS = 3.0, 1.1, 10
# Scores above which a number, and a class, is counted.
_FAR_DEVIATIONS, _WRONG_SHARE = 4.0, 0.8


@dataclass(frozen=True)
class HeldOutError:
    """The error of the quick model on rows that were held out in one way."""

    how: str
    value: float
    """Share of wrong classes, or root mean squared error."""
    beside: float
    """The same rows, held out one by one; the last ones, in random fifths: with models of as many rows."""
    clear: bool
    """Whether it is larger than that, and not by chance."""
    against: str = "one by one"
    """How the same rows were held out."""


@dataclass(frozen=True)
class TableCheck:
    """The findings about a table."""

    task: str
    target: str
    findings: tuple[str, ...]
    errors: tuple[HeldOutError, ...]
    """Rows held out one by one, in random fifths, in whole groups, and the last fifth."""
    rows: Any
    """All rows as a data frame, the least credible first: number, score, target and expected target, cells."""

    @property
    def suspicious(self) -> Any:
        """Rows whose class has a probability below 20%, or whose number is four deviations off."""
        rows = self.rows
        return rows[_contradicted(self.task, rows["score"], rows["given"], rows["expected"])]

    def text(self, count: int = 10) -> str:
        """Findings, errors side by side, and at most ``count`` of the least credible rows."""
        lines = [f"{self.target}: {len(self.rows):,} rows, {'numbers' if self.task == 'regress' else 'classes'}"]
        lines += ["", "Worth a look:" if self.findings else "Nothing unusual about columns and copies."]
        lines += [f"- {finding}" for finding in self.findings]
        lines += ["", "Error of a quick model on rows that were held out:"]
        width = max(len(error.how) for error in self.errors)
        for error in self.errors:
            lines.append(f"  {error.how:{width}}  {_error_text(self.task, error.value)}")
            if error.how not in (_ONE_BY_ONE, _RANDOM_FIFTHS):
                lines[-1] += f"  ({_error_text(self.task, error.beside)} on the same rows, {error.against})"
        return "\n".join([*lines, "", *self._least_credible(count)])

    def _least_credible(self, count: int) -> list[str]:
        """The suspicious rows, and how many there are."""
        regress, suspicious = self.task == "regress", self.suspicious
        does = f"a {self.target!r} that " + (
            "is more than four deviations off" if regress else "the other rows contradict"
        )
        lines = []
        for row, score, given, expected in suspicious.head(count).iloc[:, :4].itertuples(index=False):
            if regress:
                text = f"{number(given, 4)}, expected {number(expected, 4)} ({score:.1f} deviations)"
            else:
                name, share = label(given), percent(1 - score)
                text = f"{name}, expected {label(expected)} (probability of {name}: {share})"
            lines.append(f"  row {row:,}: {text}")
        have = "has" if len(suspicious) == 1 else "have"
        what = f"{len(suspicious):,} of {len(self.rows):,} rows {have} {does}"
        return [what + (", least credible first:" if lines else ""), *lines]


def _contradicted(task: str, scores: Any, given: Any, expected: Any) -> Any:
    """Which rows the others contradict."""
    return scores > _FAR_DEVIATIONS if task == "regress" else (expected != given) & (scores > _WRONG_SHARE)


def check_table(table: Any, target: Any = None, request: Request | None = None) -> TableCheck:
    """Check a table: a data frame, or one in parts, of which at most 20,000 rows are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.tables.check import check_table
    >>> X, y = make_banana(200, random_state=0)
    >>> table = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "side": y == 1})
    >>> found = check_table(pd.concat([table, table.head(3)]), "side")
    >>> found.findings
    ('3 rows are copies of others (row 201 of row 1, 202 of 2, 203 of 3): a held-out copy is not new to the model',)
    """
    request = request or Request()
    if request.task not in ("auto", "classify", "regress"):
        raise ValueError(f"check: the task must be 'auto', 'classify' or 'regress', got {request.task!r}.")
    frame, numbers, drawn = _in_memory(table, target, request)
    job = resolve(frame, target, request)
    if isinstance(job.target, tuple):
        raise ValueError(f"check: one target at a time, got {listed(job.target)}; check each by itself.")
    (encoder, encoded), y = learn_columns(job), job.y
    assert y is not None
    places = numbers[job.rows] + 1
    found = suspects(encoded.values, y, task=job.task, groups=job.groups)  # type: ignore[arg-type]
    apart, name = _in_groups(frame, target, job)
    contradicted = _contradicted(job.task, found.scores, y, found.expected)
    more = [*_copies(apart, numbers[apart.rows] + 1), *_nearly_constant(encoder, job)]
    more += _deciding(encoder, encoded.values, job, name, np.flatnonzero(~contradicted))
    errors = _errors(apart, name)
    more += [_note_on_larger_error(job, one) for one in errors if one.clear]
    rows = _ranked(frame.iloc[job.rows], y, found, places)
    findings = (*drawn, *job.notes, *encoder.notes_, *more)
    return TableCheck(job.task, str(job.target), findings, errors, rows)


def _in_memory(table: Any, target: Any, request: Request) -> tuple[Any, Array, list[str]]:
    """The table or a sample of its rows, the row numbers, and a note if it is a sample."""
    parts = as_parts(table, "check", request.verbose)
    if parts is None:
        frame = as_frame(table, "check")
        return frame, np.arange(len(frame)), []
    few = parts.n <= sampling.SAMPLE_ROWS
    needed = () if few else (target or str(parts.empty.columns[-1]),)
    drawn = draw_rows(parts, sampling.SAMPLE_ROWS, needed, request.verbose)
    said = f"{len(drawn.numbers):,} of {parts.n:,} rows were drawn and looked at"
    return drawn.frame, drawn.numbers, [] if few else [said]


def _ranked(frame: Any, y: Array, found: Suspects, places: Array) -> Any:
    """The rows in their order, with their cells."""
    own = {"row": places, "score": np.round(found.scores, 4), "given": y, "expected": found.expected}
    beside = frame.reset_index(drop=True).rename(columns={name: f"{name} (cell)" for name in own})
    table = pandas().concat([pandas().DataFrame(own), beside], axis=1)
    return table.iloc[found.rows].reset_index(drop=True)


def _copies(job: Job, places: Array) -> list[str]:
    """Rows that are copies of others, in other groups too, and equal rows with different classes."""
    pd, said = pandas(), []
    cells = pd.factorize(pd.util.hash_pandas_object(job.frame, index=False))[0]
    whole = pd.factorize(pd.Series(list(zip(cells, pd.factorize(job.y)[0]))))[0]
    first = np.unique(whole, return_index=True)[1][whole]
    copies = np.flatnonzero(first != np.arange(len(whole)))
    if len(copies):
        shown = [f"{places[k]:,} of {places[first[k]]:,}" for k in copies[:3]]
        shown[0] = shown[0].replace("of", "of row")
        what = f"{plural(len(copies), 'row is a copy of another', 'rows are copies of others')} (row {', '.join(shown)}"
        said.append(f"{what}{', ...' if len(copies) > 3 else ''}): a held-out copy is not new to the model")
    if job.groups is not None:
        apart = int(np.sum(job.groups[copies] != job.groups[first[copies]]))
        one, many = "copy is in another group than its original", "copies are in other groups than their originals"
        said += [f"{plural(apart, one, many)}: groups do not keep them together"] if apart else []
    if job.task == "classify":
        per_cells = pd.Series(whole).groupby(cells).nunique()
        ambiguous = int((per_cells.to_numpy()[cells] > 1).sum())
        what = f"{ambiguous:,} rows are equal to others but for {job.target!r}"
        said += [f"{what}: no model can be right about all of them"] if ambiguous else []
    return said


def _nearly_constant(encoder: TableEncoder, job: Job) -> list[str]:
    """Columns that are the same in nearly all rows."""
    said = []
    for column in encoder.columns_:
        counts = job.frame[column.name].value_counts(dropna=False)
        if _CONSTANT_SHARE <= counts.iloc[0] / len(job.frame) < 1:
            value = counts.index[0]
            shown = label(value) if isinstance(column, CategoryColumn) else f"{value}"
            share = percent(counts.iloc[0] / len(job.frame))
            said.append(f"column {column.name!r} is {shown} in {share} of the rows: it carries little information")
    return list(cut_short(said, "such columns"))


def _deciding(encoder: TableEncoder, X: Array, job: Job, groups: str | None, credible: Array) -> list[str]:
    """Columns but that of the groups which alone predict the target, on some of the rows that are credible.

    The others may be wrong, and would hide a column that knows what is right.
    """
    y: Any = job.y
    order = np.random.default_rng(0).permutation(credible)[:_LEAKAGE_ROWS]
    fitted, new = order[: len(order) // 2], order[len(order) // 2 :]
    names = [name for name in encoder.columns if name != groups]
    return notes_on_leakage(names, job, encoder, (X[fitted], y[fitted]), (X[new], y[new]))


def _in_groups(frame: Any, target: Any, job: Job) -> tuple[Job, str | None]:
    """The job with groups, where a column was given or looks like one, and the name of the column."""
    given = job.request.groups
    if given is not None:
        return job, given if isinstance(given, str) else "groups"
    found = group_column(frame.iloc[job.rows], job.schema, job.y, job.task)
    if found is None or not set(job.frame.columns) - {found[0]}:
        return job, None
    return resolve(frame, target, replace(job.request, groups=found[0])), found[0]


def _errors(job: Job, name: str | None) -> tuple[HeldOutError, ...]:
    """Errors of the quick model on rows held out one by one, at random, in whole groups, and in time, side by side."""
    X, y = learn_columns(job)[1].values, np.asarray(job.y)
    classes, codes = np.unique(y, return_inverse=True)
    if job.task == "classify":
        samples = class_targets(Samples.of(X, None, codes=codes, n_classes=len(classes)))
    else:
        samples = Samples.of(X, None, targets=y[:, None].astype(float))
    one_by_one = _losses(leave_out(samples).values, samples)
    fifths = np.random.default_rng(0).permutation(len(y)) % _N_FIFTHS
    at_random = _losses(leave_out(replace(samples, groups=fifths)).values, samples)
    found = [_compared(job, _ONE_BY_ONE, one_by_one, one_by_one), _compared(job, _RANDOM_FIFTHS, at_random, at_random)]
    if job.groups is not None:
        together = _losses(leave_out(replace(samples, groups=job.groups)).values, samples)
        found.append(_compared(job, f"whole groups of {name!r}", together, one_by_one, job.groups))
    last, how = _last_rows(job)
    if 0 < last.sum() < len(last) and (samples.codes is None or len(set(codes[~last])) == samples.n_classes):
        later = _losses(hold_out(samples, last), samples.take(np.flatnonzero(last)))
        found.append(replace(_compared(job, how, later, at_random[last]), against="in random fifths"))
    return tuple(found)


def _losses(values: Array, samples: Samples) -> Array:
    """The 0/1 loss or the squared error of every row."""
    if samples.codes is None:
        return np.asarray(np.sum((values - samples.targets) ** 2, axis=1))
    codes = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
    return np.asarray((codes != samples.codes).astype(float))


def _compared(job: Job, how: str, losses: Array, beside: Array, groups: Array | None = None) -> HeldOutError:
    root = math.sqrt if job.task == "regress" else float
    gap, error = Counted(None, groups).mean(losses - beside)
    value, other = root(losses.mean()), root(beside.mean())
    clear = gap > _CLEAR_ERRORS * error and value > _CLEAR_FACTOR * other and len(losses) >= _CLEAR_ROWS
    return HeldOutError(how, value, other, clear)


def _last_rows(job: Job) -> tuple[Array, str]:
    """The last fifth of the rows, by the first column of dates or in the order of the table; ties are not split."""
    n, dates = len(job.frame), [column for column in job.schema.used if column.kind == "date"]
    time, how = np.arange(n, dtype=float), "the last fifth of the rows"
    if dates:
        time = np.nan_to_num(days(job.frame[dates[0].name], dates[0].form), nan=-np.inf)
        how = f"the last fifth by {dates[0].name!r}"
    return time > np.quantile(time, 1 - _LAST_SHARE, method="lower"), how


def _note_on_larger_error(job: Job, found: HeldOutError) -> str:
    value, beside = _error_text(job.task, found.value), _error_text(job.task, found.beside)
    two = f"{value}, but {beside} where the same rows are held out {found.against}"
    return f"{found.how} held out: the error is {two}; expect the larger one"


def _error_text(task: str, value: float) -> str:
    return percent(value) if task == "classify" else f"RMSE {number(value, 4)}"
