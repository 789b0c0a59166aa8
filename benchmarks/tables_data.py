"""Real tables and their splits: columns for kernel methods, columns for trees, nothing learned from the test part.

The folder that ``FEWKERN_DATA`` names has ``tables/NAME.npz`` (``X`` with categories as codes and gaps as NaN, ``cat``,
``y``, ``task``), ``tables/talent.csv`` and ``tables/peers.csv``, and ``ida/NAME.npz`` (``X``, ``y``, ``train_idx``,
``test_idx``).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

__all__ = ["CLASSES", "NUMBERS", "PROTOCOLS", "Part", "TablesNotFoundError", "names", "part", "peers", "published"]

CLASSES, NUMBERS = "classification", "regression"
# Rows of a split: at most so many to train, then at most so many to test.
TRAIN_ROWS, TRAIN_SHARE, TEST_ROWS = 3000, 0.75, 4000
# Classes with fewer training rows are left out of both parts.
LEAST_OF_CLASS = 5
# Columns of kernel methods: so many levels of a category; gaps are a column of their own where they are more.
LEVELS, GAPS = 15, 0.02
# Splits of whole tables beside published results; tables with more rows are stored only in part.
WHOLE_SHARE, WHOLE_ROWS = 0.8, 7500


class TablesNotFoundError(Exception):
    """The tables are not on this machine."""


@dataclass(frozen=True)
class Part:
    """A training and a test part; ``raw`` are the columns as they are, of which ``categories`` are codes."""

    task: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    raw: np.ndarray
    raw_test: np.ndarray
    categories: np.ndarray


@dataclass(frozen=True)
class Protocol:
    """A collection of sets and its splits."""

    title: str
    folder: str
    splits: tuple[int, ...]


PROTOCOLS = {
    "tables": Protocol("Real tables, at most 3,000 training rows", "tables", (0, 1)),
    "ida": Protocol("The IDA sets", "ida", (3, 4, 5)),
    "talent": Protocol("Whole tables, 80 % to train, beside published results", "tables", (0, 1, 2)),
}


def names(protocol: str) -> list[str]:
    """The sets of a protocol that are on this machine."""
    folder = _folder(PROTOCOLS[protocol].folder)
    here = sorted(path.stem for path in folder.glob("*.npz"))
    if protocol == "talent":
        whole = {row["name"] for row in published() if int(row["rows"]) <= WHOLE_ROWS}
        here = [name for name in here if name in whole]
    if not here:
        raise TablesNotFoundError(f"no set of {protocol!r} in {folder}.")
    return here


def published() -> list[dict[str, str]]:
    """Published errors of tuned methods, a row per table."""
    return _rows("talent.csv")


def peers() -> list[dict[str, str]]:
    """Errors, vectors and seconds of peers on split 0, as stored with the tables."""
    return _rows("peers.csv")


def _rows(name: str) -> list[dict[str, str]]:
    path = _folder("tables") / name
    if not path.is_file():
        raise TablesNotFoundError(f"{path} is missing.")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _folder(kind: str) -> Path:
    named = os.environ.get("FEWKERN_DATA")
    if not named:
        raise TablesNotFoundError("FEWKERN_DATA is not set: it names the folder of the tables.")
    folder = Path(named).expanduser() / kind
    if not folder.is_dir():
        raise TablesNotFoundError(f"FEWKERN_DATA names a folder without {kind}/: {named}.")
    return folder


def part(protocol: str, name: str, split: int) -> Part:
    """A split of a set, with everything learned from its training part alone."""
    path = _folder(PROTOCOLS[protocol].folder) / f"{name}.npz"
    if not path.is_file():
        raise TablesNotFoundError(f"{path} is missing.")
    return _part(protocol, path, split)


@lru_cache(maxsize=1)
def _part(protocol: str, path: Path, split: int) -> Part:
    with np.load(path) as file:
        table = dict(file)
    raw = table["X"].astype(float)
    if protocol == "ida":
        train, test = (table[key][split].astype(int) for key in ("train_idx", "test_idx"))
        return _cut(CLASSES, standardised(raw, train), raw, table["y"], train, test, np.zeros(raw.shape[1], dtype=bool))
    task, y, categories = str(table["task"]), table["y"], table["cat"].astype(bool)
    train, test = permuted(len(y), split) if protocol == "tables" else permuted_whole(len(y), split)
    if task == CLASSES:
        train, test = without_rare_classes(y, train, test)
    encoded = kernel_columns(raw, categories, train)
    known = np.isfinite(raw[train]).any(axis=0)  # trees cannot bin a column without a value
    return _cut(task, encoded, raw[:, known], y, train, test, categories[known])


def _cut(
    task: str, X: np.ndarray, raw: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, cat: np.ndarray
) -> Part:
    y = y.astype(int if task == CLASSES else float)
    return Part(task, X[train], y[train], X[test], y[test], raw[train], raw[test], cat)


def permuted(rows: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a split."""
    order = np.random.default_rng(100 + split).permutation(rows)
    count = min(TRAIN_ROWS, int(TRAIN_SHARE * rows))
    return order[:count], order[count : count + TEST_ROWS]


def permuted_whole(rows: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths of the rows, and the others."""
    order = np.random.default_rng(200 + split).permutation(rows)
    count = int(WHOLE_SHARE * rows)
    return order[:count], order[count:]


def without_rare_classes(y: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both parts without the classes that have too few training rows."""
    labels, counts = np.unique(y[train], return_counts=True)
    kept = labels[counts >= LEAST_OF_CLASS]
    return train[np.isin(y[train], kept)], test[np.isin(y[test], kept)]


def kernel_columns(raw: np.ndarray, categories: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Columns of numbers without gaps, mean 0 and deviation 1 over the training rows."""
    columns = [
        column
        for values, category in zip(raw.T, categories)
        for column in (_levels(values, train) if category else _filled(values, train))
    ]
    encoded = np.stack(columns, axis=1)
    return standardised(encoded[:, encoded[train].std(axis=0) > 0], train)


def _levels(values: np.ndarray, train: np.ndarray) -> Iterator[np.ndarray]:
    """A column of 0 and 1 for each of the most frequent levels; two levels are one column."""
    known = values[train][np.isfinite(values[train])]
    levels, counts = np.unique(known, return_counts=True)
    levels = levels[np.argsort(-counts)][:LEVELS]
    for level in levels[:1] if len(levels) == 2 else levels:
        yield (values == level).astype(float)


def _filled(values: np.ndarray, train: np.ndarray) -> Iterator[np.ndarray]:
    """The column with the median in its gaps, and a column that says where they are; none if nothing is known."""
    known = np.isfinite(values)
    if not known[train].any():
        return
    yield np.where(known, values, np.median(values[train][known[train]]))
    if np.mean(~known[train]) > GAPS:
        yield (~known).astype(float)


def standardised(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1 over the training rows; constant columns are only centred."""
    spread = X[train].std(axis=0)
    return (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
