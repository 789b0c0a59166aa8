"""Figures from elsewhere beside those that were measured: stored, published, or of another results file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.tables.methods import HELD_OUT
from benchmarks.tables.summary import Comparison, is_ours
from experiments.store import Record

__all__ = ["BEFORE", "STORED", "UCI_PUBLISHED", "Standing", "records_before", "standings", "stored_records"]

STORED, BEFORE = " (stored)", " (before)"
# Columns of the stored figures of peers on split 0.
_STORED = {"boosting": "hgb", "svm": "svm", "forest": "rf", "linear": "linear", "xrfm": "xrfm"}
# Published mean errors on the UCI sets. Dropout: Gal and Ghahramani 2016, on the same splits. The others: the tables
# of bayesian_benchmarks (Salimbeni), on splits of its own: a sparse Gaussian process and a deep one with 100 inducing
# points, and gradient boosting.
_UCI_SETS = ("boston", "concrete", "energy", "power_plant", "wine_red", "yacht")
UCI_PUBLISHED = {
    "SVGP-100": dict(zip(_UCI_SETS, (2.59, 5.97, 0.650, 3.97, 0.627, 0.655))),
    "DGP-100": dict(zip(_UCI_SETS, (2.63, 5.96, 0.486, 3.93, 0.630, 0.476))),
    "boosting": dict(zip(_UCI_SETS, (2.60, 5.39, 0.477, 3.86, 0.615, 0.673))),
    "MC dropout": dict(zip((*_UCI_SETS, "kin8nm"), (2.90, 4.82, 0.54, 4.01, 0.62, 0.67, 0.079))),
}


@dataclass(frozen=True)
class Standing:
    """Mean error of a method beside published ones, and its mean rank among them."""

    method: str
    published: bool
    error: float
    rank: float


def records_before(records: Iterable[Record]) -> list[Record]:
    """Those of our methods, under names of their own."""
    return [{**record, "method": record["method"] + BEFORE} for record in records if is_ours(record["method"])]


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
    other; the ranks of the published ones are those beside the first method. One without a result on some table is
    left out.
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
    errors = {name: comparison.values["error"][name] for name in comparison.methods if comparison.on(name).all()}
    first = np.vstack([field, next(iter(errors.values()))])
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
