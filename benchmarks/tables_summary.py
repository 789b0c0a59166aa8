"""What the results on many tables say: means, ratios, tables that fall behind, ranks beside published ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.tables_methods import BASELINE, HELD_OUT, METHODS
from experiments.store import Record

__all__ = ["Comparison", "Row", "Standing", "behind", "compare", "label", "standings", "stored_records", "summarise"]

# Added to an error before ratios are taken: a table where one method has no error at all must not decide everything.
OFFSET = 0.2
# A table is far behind where the error, with the offset, is so many times that of the best peer.
FAR = 1.5
STORED = " (stored)"
# Columns of the stored figures of peers on split 0.
_STORED = {"boosting": "hgb", "svm": "svm", "forest": "rf", "linear": "linear", "xrfm": "xrfm"}


@dataclass(frozen=True)
class Comparison:
    """Methods on the tables of a task that all of them ran on: ``values[figure][method]`` is an array over the tables.

    A figure is a mean over the splits; NaN where a method does not have it.
    """

    task: str
    methods: list[str]
    tables: list[str]
    left_out: dict[str, list[str]]
    """Tables that are not compared, and the methods without a result there (all, if they have no split in common)."""
    values: Mapping[str, Mapping[str, np.ndarray]]

    @property
    def baseline(self) -> str | None:
        return next((name for name in (BASELINE, BASELINE + STORED) if name in self.methods), None)


@dataclass(frozen=True)
class Row:
    """The figures of a method over the tables of a comparison; pairs are a value and its standard error."""

    method: str
    error: float
    difference: tuple[float, float]
    """To the error of boosting, table by table."""
    ratio: tuple[float, float]
    """Geometric mean of (error + 0.2) over that of boosting."""
    behind: int
    """Tables where (error + 0.2) is more than 1.5 times that of the best other peer."""
    log_loss: float
    vectors: float
    seconds: float
    stated: tuple[float, float]
    """What the model expects its error to be, less its test error."""


@dataclass(frozen=True)
class Standing:
    """Mean error of a method beside published ones, and its mean rank among them."""

    method: str
    published: bool
    error: float
    rank: float


FIGURES = ("error", "log_loss", "vectors", "seconds", "stated")


def label(name: str) -> str:
    plain = name.removesuffix(STORED)
    known = METHODS[plain].label if plain in METHODS else plain
    return known + STORED if name.endswith(STORED) else known


def counted(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def is_ours(name: str) -> bool:
    return name in METHODS and METHODS[name].ours


def compare(records: Iterable[Record], task: str) -> Comparison:
    """The tables and splits of a task on which every method has a result."""
    cells: dict[str, dict[str, dict[int, Record]]] = {}
    for record in records:
        if "failed" not in record and record["task"] == task:
            cells.setdefault(record["set"], {}).setdefault(record["method"], {})[record["split"]] = record
    found = {name for table in cells.values() for name in table}
    order = [*METHODS, *(name + STORED for name in METHODS)]
    methods = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    tables, left_out, kept = [], {}, []
    for table in sorted(cells):
        ran = cells[table]
        common = set.intersection(*(set(ran.get(name, {})) for name in methods))
        if common:
            tables.append(table)
            kept.append({name: [ran[name][split] for split in sorted(common)] for name in methods})
        else:
            left_out[table] = [name for name in methods if name not in ran] or methods
    values = {
        figure: {name: np.array([_mean(cell[name], figure) for cell in kept]) for name in methods} for figure in FIGURES
    }
    return Comparison(task, methods, tables, left_out, values)


def _mean(records: list[Record], figure: str) -> float:
    found = [record.get(figure) for record in records]
    return math.nan if any(value is None for value in found) else float(np.mean(found))


def summarise(comparison: Comparison) -> list[Row]:
    """A row for every method."""
    errors = comparison.values["error"]
    rows = []
    for name in comparison.methods:
        difference = ratio = (math.nan, math.nan)
        if comparison.baseline:
            base = errors[comparison.baseline]
            difference = _with_error(errors[name] - base)
            center, spread = _with_error(np.log((errors[name] + OFFSET) / (base + OFFSET)))
            ratio = math.exp(center), math.exp(center) * spread
        log_loss, vectors, seconds = (comparison.values[key][name] for key in ("log_loss", "vectors", "seconds"))
        rows.append(
            Row(
                name,
                float(errors[name].mean()),
                difference,
                ratio,
                len(behind(comparison, name)),
                float(log_loss.mean()),
                _median(vectors),
                _median(seconds),
                _with_error(comparison.values["stated"][name] - errors[name]),
            )
        )
    return rows


def _median(values: np.ndarray) -> float:
    return math.nan if np.isnan(values).any() else float(np.median(values))


def _with_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error."""
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), spread


def behind(comparison: Comparison, name: str) -> list[tuple[str, float, str, float]]:
    """Tables where a method is far behind the best other peer: table, error, that peer and its error."""
    errors = comparison.values["error"]
    peers = [other for other in comparison.methods if not is_ours(other) and other != name]
    if not peers:
        return []
    found = []
    for k, table in enumerate(comparison.tables):
        best = min(peers, key=lambda peer: errors[peer][k])
        if errors[name][k] + OFFSET > FAR * (errors[best][k] + OFFSET):
            found.append((table, float(errors[name][k]), best, float(errors[best][k])))
    return found


def stored_records(rows: Iterable[Mapping[str, str]], without: Iterable[str]) -> list[Record]:
    """Stored figures of peers on split 0 as records, without the methods that were measured here."""
    records = []
    for row in rows:
        for name, column in _STORED.items():
            if name in without or not row.get(column):
                continue
            vectors, seconds = (row.get(f"{kind}_{column}") or None for kind in ("vectors", "cpu_s"))
            if name == "xrfm":
                vectors = round((1 - HELD_OUT) * int(row["n_train"]))
            records.append(
                {
                    "set": row["name"], "split": 0, "method": name + STORED, "task": row["task"],
                    "error": float(row[column]), "vectors": None if vectors is None else int(vectors),
                    "seconds": None if seconds is None else float(seconds),
                }
            )  # fmt: skip
    return records


def standings(comparison: Comparison, rows: Iterable[Mapping[str, str]]) -> tuple[list[Standing], list[str]]:
    """Methods that ran here and published ones by mean error; the published ones that lack a table are named instead.

    The rank of a method that ran here is that among the published ones and itself, so that several do not push each
    other; the ranks of the published ones are those beside the first method.
    """
    published = {row["name"]: row for row in rows}
    names = [key for key in next(iter(published.values())) if key not in ("name", "talent", "task", "rows", "dummy")]
    table = {
        name: np.array([float(published[t][name]) if published[t][name] else math.nan for t in comparison.tables])
        for name in names
    }
    best = table.pop("best", None)
    lacking = [name for name in table if np.isnan(table[name]).any()]
    shown = [name for name in table if name not in lacking]
    field = np.stack([table[name] for name in shown])
    errors = comparison.values["error"]
    first = np.vstack([field, errors[comparison.methods[0]]])
    found = [
        Standing(name, False, float(values.mean()), _rank(np.vstack([field, values]))[-1])
        for name, values in errors.items()
    ]
    found += [Standing(name, True, float(v.mean()), rank) for name, v, rank in zip(shown, field, _rank(first))]
    if best is not None:
        found.append(Standing("best of each table", True, float(best.mean()), math.nan))
    return sorted(found, key=lambda standing: standing.error), lacking


def _rank(errors: np.ndarray) -> list[float]:
    """Mean rank of each row over the columns, ties in the middle."""
    from scipy.stats import rankdata

    return [float(rank) for rank in rankdata(errors, axis=0).mean(axis=1)]
