"""How good a model of a table is: its error on rows held out, with an interval, beside those of simple answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewkern.arrays.storable import storable
from fewkern.reporting.simple import wilson

__all__ = [
    "HeldOutRows",
    "Judgement",
    "judge_classes",
    "judge_density",
    "judge_numbers",
]

# Two-sided 95 %, and one-sided 95 % for "better than".
_Z, _Z_BETTER = 1.96, 1.645


@storable
@dataclass(frozen=True)
class HeldOutRows:
    """Rows that a model did not see, and what it says of them."""

    rows: Any
    """Positions in the table that was fitted."""
    truth: Any
    predicted: Any
    probabilities: Any = None
    """``(n, n_classes)`` of a classifier, else None."""


@storable
@dataclass(frozen=True)
class Judgement:
    """An error with its interval, and those of simple answers."""

    measure: Literal["error", "rmse", "log density"]
    rows: int
    value: float
    low: float
    high: float
    """A 95 % interval."""
    baseline: float
    """The same measure of the simplest answer: the most frequent class, the mean, one normal distribution."""
    baseline_name: str
    linear: float | None
    """Of a linear model, where one was fitted."""
    verdict: str
    found: str | None = None
    """How many rows of the rarer of two classes are found."""
    r2: float | None = None
    how: Literal["held out", "cross-validated"] = "held out"


def _verdict(gain: np.ndarray[Any, Any], name: str, rows: int) -> str:
    """Whether losses that are smaller by ``gain`` on average are smaller beyond chance."""
    mean = float(gain.mean())
    noise = float(gain.std(ddof=1)) / math.sqrt(rows) if rows > 1 else math.inf
    if mean <= 0:
        return f"no better than {name}"
    if mean < _Z_BETTER * noise:
        return f"hardly better than {name}: on {rows:,} rows the difference may be chance"
    return f"better than {name}"


def judge_classes(held_out: HeldOutRows, majority: Any, linear: Any = None) -> Judgement:
    """Share of wrong classes; ``majority`` is the most frequent class of the rows that were fitted."""
    truth, predicted = np.asarray(held_out.truth), np.asarray(held_out.predicted)
    wrong, plain = truth != predicted, truth != majority
    n = len(truth)
    low, high = wilson(int(wrong.sum()), n)
    name = f"always answering {_label(majority)}"
    verdict = _verdict(plain.astype(float) - wrong, name, n)
    return Judgement(
        "error", n, float(wrong.mean()), low, high, float(plain.mean()), name,
        None if linear is None else float(np.mean(truth != linear)), verdict, _found(truth, predicted),
    )  # fmt: skip


def _label(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


def _found(truth: np.ndarray[Any, Any], predicted: np.ndarray[Any, Any]) -> str | None:
    """Of two classes, how many rows of the rarer one are found."""
    labels, counts = np.unique(truth, return_counts=True)
    if len(labels) != 2:
        return None
    rare = labels[int(np.argmin(counts))]
    hits = int(np.sum((truth == rare) & (predicted == rare)))
    named = int(np.sum(predicted == rare))
    text = f"{hits:,} of {int(counts.min()):,} rows of class {_label(rare)}"
    return text + (f"; {hits:,} of {named:,} answers {_label(rare)} are right" if named else "")


def judge_numbers(held_out: HeldOutRows, mean: float, linear: Any = None) -> Judgement:
    """Root mean squared error; ``mean`` is that of the targets that were fitted."""
    truth, predicted = np.asarray(held_out.truth, float), np.asarray(held_out.predicted, float)
    squares, plain = (truth - predicted) ** 2, (truth - mean) ** 2
    n = len(truth)
    mse = float(squares.mean())
    half = _Z * float(squares.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    name = f"always answering the mean, {mean:.4g}"
    spread = float(np.var(truth))
    return Judgement(
        "rmse", n, math.sqrt(mse), math.sqrt(max(0.0, mse - half)), math.sqrt(mse + half) if n > 1 else math.inf,
        math.sqrt(float(plain.mean())), name,
        None if linear is None else math.sqrt(float(np.mean((truth - linear) ** 2))),
        _verdict(plain - squares, name, n), r2=1 - mse / spread if spread else None,
    )  # fmt: skip


def judge_fit(task: str, error: float, y: np.ndarray[Any, Any]) -> Judgement:
    """The error that a fit itself reports (share of wrong classes, or mean squared error), where no rows were held out.

    The interval of a root mean squared error takes the errors for normal.
    """
    n = len(y)
    if task == "classify":
        labels, counts = np.unique(y, return_counts=True)
        low, high = wilson(round(error * n), n)
        value, baseline = error, 1.0 - float(counts.max()) / n
        name, r2 = f"always answering {_label(labels[int(np.argmax(counts))])}", None
    else:
        spread = float(np.var(y))
        value, baseline = math.sqrt(error), math.sqrt(spread)
        part = _Z / math.sqrt(2 * n)
        low, high = value * max(0.0, 1 - part), value * (1 + part)
        name, r2 = f"always answering the mean, {float(np.mean(y)):.4g}", 1 - error / spread if spread else None
    no_better = value >= baseline * (1 - 1e-9)
    verdict = f"no better than {name}" if no_better else f"better than {name}"
    if not no_better and baseline <= high:
        verdict = f"hardly better than {name}: on {n:,} rows the difference may be chance"
    measure: Any = "error" if task == "classify" else "rmse"
    return Judgement(measure, n, value, low, high, baseline, name, None, verdict, r2=r2, how="cross-validated")


def judge_density(values: np.ndarray[Any, Any], normal: np.ndarray[Any, Any]) -> Judgement:
    """Mean log density of rows held out; ``normal`` is that of one normal distribution."""
    n, mean = len(values), float(values.mean())
    half = _Z * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    name = "one normal distribution"
    verdict = _verdict(values - normal, name, n)
    return Judgement("log density", n, mean, mean - half, mean + half, float(normal.mean()), name, None, verdict)
