"""What the results on many tables say: means, what they hang on, ratios, signs, and tables that fall behind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.tables.methods import BASELINE, METHODS
from experiments.store import Record

__all__ = ["Beside", "Comparison", "Row", "behind", "compare", "is_ours", "label", "plain", "sign_test", "summarise"]

# Added to an error before ratios are taken: a table where one method has no error at all must not decide everything.
OFFSET = 0.2
# A table is far behind where the error, with the offset, is so many times that of the best peer.
FAR = 1.5
# Tables that contribute most to a difference of means are so many.
LARGEST = 3
FIGURES = ("error", "log_loss", "vectors", "seconds", "wall", "stated", "rows")

Pair = tuple[float, float]
NOTHING = (math.nan, math.nan)


@dataclass(frozen=True)
class Comparison:
    """Methods on the tables of a task: ``values[figure][method]`` is an array over the tables.

    A figure is a mean over the splits that the methods of a table have in common; NaN where there is none.
    """

    task: str
    methods: list[str]
    tables: list[str]
    left_out: dict[str, list[str]]
    """Tables that are not compared, and the methods without a result there (all, if they have no split in common)."""
    values: Mapping[str, Mapping[str, np.ndarray]]
    versus: str | None
    """The method that the others are measured against; None where it was not run."""

    def on(self, name: str) -> np.ndarray:
        """The tables that a method has a result on."""
        return np.isfinite(self.values["error"][name])


@dataclass(frozen=True)
class Beside:
    """A method beside the one that it is measured against, on the tables of both; pairs are a value and its error."""

    difference: Pair
    """Of the errors, table by table."""
    ratio: Pair
    """Geometric mean of (error + 0.2) over the other's."""
    median: float
    """Of the same ratios."""
    lower: int
    higher: int
    p: float
    """Of a two-sided sign test."""
    largest: list[tuple[str, float, float]]
    """The three tables that contribute most to the difference: table, error, error of the other."""
    without: Pair
    """Both mean errors without these."""
    time: Pair
    """Processor time over the other's: median and geometric mean."""


@dataclass(frozen=True)
class Row:
    """The figures of a method over the tables of a comparison that it has a result on."""

    method: str
    tables: int
    error: float
    beside: Beside | None
    """None for the method that the others are measured against."""
    behind: int
    """Tables where (error + 0.2) is more than 1.5 times that of the best other peer."""
    log_loss: float
    vectors: float
    seconds: float
    wall: float
    stated: Pair
    """What the model expects its error to be, less its test error."""


def plain(name: str) -> str:
    """A method without the words behind it that say where its figures are from."""
    return name.partition(" (")[0]


def label(name: str) -> str:
    known = METHODS[plain(name)].label if plain(name) in METHODS else plain(name)
    return known + name.removeprefix(plain(name))


def is_ours(name: str) -> bool:
    return plain(name) in METHODS and METHODS[plain(name)].ours


def ordered(names: Iterable[str]) -> list[str]:
    """In the order of the methods, those that were run before those that were stored."""
    order = list(METHODS)
    return sorted(names, key=lambda n: (order.index(plain(n)) if plain(n) in order else len(order), n))


def compare(records: Iterable[Record], task: str, versus: str = BASELINE) -> Comparison:
    """The tables of a task on which the method that the others are measured against has a result."""
    cells: dict[str, dict[str, dict[int, Record]]] = {}
    for record in records:
        if "failed" not in record and record["task"] == task:
            cells.setdefault(record["set"], {}).setdefault(record["method"], {})[record["split"]] = record
    methods = ordered({name for table in cells.values() for name in table})
    found = next((name for name in methods if versus in (name, plain(name))), None)
    anchor = found or (methods[0] if methods else "")
    tables, left_out, kept = [], {}, []
    for table in sorted(cells):
        ran = cells[table]
        common = sorted(set.intersection(*map(set, ran.values())))
        if anchor in ran and common:
            tables.append(table)
            kept.append({name: [found[split] for split in common] for name, found in ran.items()})
        else:
            left_out[table] = [name for name in methods if name not in ran] or methods
    values = {
        figure: {name: np.array([_mean(cell.get(name, []), figure) for cell in kept]) for name in methods}
        for figure in FIGURES
    }
    return Comparison(task, methods, tables, left_out, values, found)


def _mean(records: list[Record], figure: str) -> float:
    found = [record.get(figure) for record in records]
    return math.nan if not found or any(value is None for value in found) else float(np.mean(found))


def summarise(comparison: Comparison) -> list[Row]:
    """A row for every method that has a result."""
    return [_row(comparison, name) for name in comparison.methods if comparison.on(name).any()]


def _row(comparison: Comparison, name: str) -> Row:
    on = comparison.on(name)
    error, log_loss, vectors, seconds, wall, stated, _ = (comparison.values[key][name][on] for key in FIGURES)
    return Row(
        method=name,
        tables=int(on.sum()),
        error=float(error.mean()),
        beside=None if comparison.versus in (None, name) else beside(comparison, name, comparison.versus),
        behind=len(behind(comparison, name)),
        log_loss=float(log_loss.mean()),
        vectors=_median(vectors),
        seconds=_median(seconds),
        wall=_median(wall),
        stated=_with_error(stated - error),
    )


def beside(comparison: Comparison, name: str, other: str) -> Beside:
    """A method beside another one."""
    both = comparison.on(name) & comparison.on(other)
    tables = [table for table, here in zip(comparison.tables, both) if here]
    error, base = (comparison.values["error"][who][both] for who in (name, other))
    seconds = comparison.values["seconds"]
    difference, logs = error - base, np.log((error + OFFSET) / (base + OFFSET))
    center, spread = _with_error(logs)
    order = np.argsort(-difference * np.sign(difference.mean()), kind="stable")
    largest, others = order[:LARGEST], order[LARGEST:]
    lower, higher = int((difference < 0).sum()), int((difference > 0).sum())
    times = np.log(np.maximum(seconds[name][both], 1e-3) / np.maximum(seconds[other][both], 1e-3))
    return Beside(
        difference=_with_error(difference),
        ratio=(math.exp(center), math.exp(center) * spread),
        median=math.exp(float(np.median(logs))),
        lower=lower,
        higher=higher,
        p=sign_test(lower, higher),
        largest=[(tables[k], float(error[k]), float(base[k])) for k in largest],
        without=(float(error[others].mean()), float(base[others].mean())) if len(others) else NOTHING,
        time=(math.exp(_median(times)), math.exp(float(times.mean()))),
    )


def sign_test(lower: int, higher: int) -> float:
    """Probability of signs that are as uneven or more, if both were as likely; ties do not count."""
    from scipy.stats import binomtest

    return float(binomtest(lower, lower + higher).pvalue) if lower + higher else 1.0


def _median(values: np.ndarray) -> float:
    return math.nan if np.isnan(values).any() else float(np.median(values))


def _with_error(values: np.ndarray) -> Pair:
    """Mean and its standard error."""
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), spread


def behind(comparison: Comparison, name: str) -> list[tuple[str, float, str, float]]:
    """Tables where a method is far behind the best other peer: table, error, that peer and its error."""
    errors = comparison.values["error"]
    peers = [other for other in comparison.methods if not is_ours(other) and other != name]
    found = []
    for k, table in enumerate(comparison.tables):
        best = min((p for p in peers if comparison.on(p)[k]), key=lambda peer: errors[peer][k], default=None)
        if best is not None and errors[name][k] + OFFSET > FAR * (errors[best][k] + OFFSET):
            found.append((table, float(errors[name][k]), best, float(errors[best][k])))
    return found
