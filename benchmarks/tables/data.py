"""Real tables and their splits: columns for kernel methods, columns for trees, nothing learned from the test part.

The folder that ``FEWKERN_DATA`` names has ``tables/NAME.npz`` and ``many_rows/NAME.npz`` (``X`` with categories as
codes and gaps as NaN, ``cat``, ``y``, ``task``), ``tables/talent.csv`` and ``tables/peers.csv``, ``large/adult.npz``
and ``large/letter.npz``, ``ida/NAME.npz`` (``X``, ``y``, ``train_idx``, ``test_idx``), and ``uci_splits/NAME.npz``
(``X``, ``y``, ``test_idx``).
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

__all__ = [
    "CLASSES", "NUMBERS", "PROTOCOLS", "Part", "Protocol", "TablesNotFoundError", "names", "part", "peers", "published",
    "splits",
]  # fmt: skip

CLASSES, NUMBERS = "classification", "regression"
# Classes with fewer training rows are left out of both parts.
LEAST_OF_CLASS = 5
# Columns of kernel methods: so many levels of a category; gaps are a column of their own where they are more.
LEVELS, GAPS = 15, 0.02
# Tables with more rows are stored only in part, beside those with published results.
WHOLE_ROWS = 7500
# Tables with so many training rows are compared where all rows are.
MANY_ROWS = 8000
# Sets of the folder ``large`` that belong to the tables with many rows.
LARGE = ("adult", "letter")
# Published splits that are run: the first few of sets with more than so many rows, else all.
FEW_SPLITS, FEW_SPLITS_ROWS = 5, 5000


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
class Rows:
    """Training and test rows of a split: the first and the next ones of a permutation."""

    share: float
    train: int = sys.maxsize
    test: int = sys.maxsize
    seed: int = 100

    def __call__(self, rows: int, split: int) -> tuple[np.ndarray, np.ndarray]:
        order = np.random.default_rng(self.seed + split).permutation(rows)
        count = min(self.train, int(self.share * rows))
        return order[:count], order[count:][: self.test]


@dataclass(frozen=True)
class Protocol:
    """A collection of sets and its splits."""

    title: str
    folder: str
    splits: tuple[int, ...]
    rows: Rows | None = None
    """None where the sets have splits of their own."""


PROTOCOLS = {
    "1000": Protocol("Real tables, at most 1,000 training rows", "tables", (0, 1), Rows(0.75, 1000, 4000)),
    "3000": Protocol("Real tables, at most 3,000 training rows", "tables", (0, 1), Rows(0.75, 3000, 4000)),
    "all": Protocol("Real tables, all rows", "many_rows", (0,), Rows(0.8, test=10_000)),
    "talent": Protocol(
        "Whole tables, 80 % to train, beside published results", "tables", (0, 1, 2), Rows(0.8, seed=200)
    ),
    "ida": Protocol("The IDA sets", "ida", (3, 4, 5)),
    "uci": Protocol("UCI sets of numbers, published splits", "uci_splits", tuple(range(20))),
}


def names(protocol: str, categories: bool = False) -> list[str]:
    """The sets of a protocol that are on this machine, or those of them that have categories."""
    here = {path.stem: path for path in _paths(protocol)}
    if protocol == "talent":
        whole = {row["name"] for row in published() if int(row["rows"]) <= WHOLE_ROWS}
        here = {name: path for name, path in here.items() if name in whole}
    if protocol == "all":
        rows = PROTOCOLS[protocol].rows
        here = {name: path for name, path in here.items() if len(rows(_count(path), 0)[0]) >= MANY_ROWS}
    if categories:
        here = {name: path for name, path in here.items() if _categories(path).any()}
    if not here:
        raise TablesNotFoundError(f"no set of {protocol!r} in {_folder(PROTOCOLS[protocol].folder)}.")
    return sorted(here)


def _paths(protocol: str) -> list[Path]:
    folder = _folder(PROTOCOLS[protocol].folder)
    large = [folder.parent / "large" / f"{name}.npz" for name in LARGE] if protocol == "all" else []
    return [*folder.glob("*.npz"), *filter(Path.is_file, large)]


def splits(protocol: str, name: str) -> tuple[int, ...]:
    """The splits of a set that are run unless others are asked for."""
    path, known = _path(protocol, name), PROTOCOLS[protocol].splits
    if protocol == "uci" and _count(path) > FEW_SPLITS_ROWS:
        return known[:FEW_SPLITS]
    return known


def _categories(path: Path) -> np.ndarray:
    """Which columns are categories."""
    with np.load(path) as file:
        found = next((file[key] for key in ("cat", "is_categorical") if key in file), None)
        return np.zeros(file["X"].shape[1], dtype=bool) if found is None else found.astype(bool)


def _count(path: Path) -> int:
    with np.load(path) as file:
        return len(file["y"])


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
    return _part(protocol, _path(protocol, name), split)


def _path(protocol: str, name: str) -> Path:
    for path in _paths(protocol):
        if path.stem == name:
            return path
    raise TablesNotFoundError(f"{_folder(PROTOCOLS[protocol].folder) / name}.npz is missing.")


@lru_cache(maxsize=1)
def _part(protocol: str, path: Path, split: int) -> Part:
    with np.load(path) as file:
        table = dict(file)
    raw, y = table["X"].astype(float), table["y"]
    task = NUMBERS if protocol == "uci" else str(table.get("task", CLASSES))
    categories = _categories(path)
    train, test = _split_rows(protocol, table, split)
    if task == CLASSES:
        train, test = without_rare_classes(y, train, test)
    X = kernel_columns(raw, categories, train) if PROTOCOLS[protocol].rows else standardised(raw, train)
    known = np.isfinite(raw[train]).any(axis=0)  # trees cannot bin a column without a value
    raw, y = raw[:, known], y.astype(int if task == CLASSES else float)
    return Part(task, X[train], y[train], X[test], y[test], raw[train], raw[test], categories[known])


def _split_rows(protocol: str, table: dict[str, np.ndarray], split: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows."""
    rows = PROTOCOLS[protocol].rows
    if rows is not None:
        return rows(len(table["y"]), split)
    test = table["test_idx"][split].astype(int)
    if "train_idx" in table:
        return table["train_idx"][split].astype(int), test
    test = test[test >= 0]  # -1 fills the shorter ones
    return np.setdiff1d(np.arange(len(table["y"])), test), test


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
