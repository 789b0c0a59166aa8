"""One pass over the rows of a Dask collection: checks, counts, classes, and a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewkern.arrays.partitions import Partitions
from fewkern.arrays.sampling import row_keys, smallest_keys

__all__ = ["Layout", "Rows", "Survey", "class_codes", "survey"]

Numbers = np.ndarray[Any, Any]
# How many more rows than are wanted a pass brings, so that rows of weight zero seldom make another one necessary.
_SPARE = 1.5


@dataclass(frozen=True)
class Rows:
    """Rows of positive weight, checked."""

    numbers: Numbers
    """In the whole collection."""
    X: Numbers
    targets: Numbers | None
    """Labels, or numbers of shape ``(n, q)``."""
    weights: Numbers

    def take(self, part: Numbers) -> Rows:
        """Those at the positions ``part``."""
        targets = None if self.targets is None else self.targets[part]
        return Rows(self.numbers[part], self.X[part], targets, self.weights[part])

    def __add__(self, other: Rows) -> Rows:
        targets = None
        if self.targets is not None and other.targets is not None:
            targets = np.concatenate([self.targets, other.targets])
        return Rows(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.X, other.X]),
            targets,
            np.concatenate([self.weights, other.weights]),
        )


@dataclass(frozen=True)
class Layout:
    """What the columns of a block are."""

    name: str
    """Of the estimator, for messages."""
    targets: Literal["labels", "numbers"] | None
    weighted: bool

    def read(self, first: int, X: Numbers, *columns: Numbers) -> Rows:
        """Check a block; ``first`` is the number of its first row."""
        where = f"rows {first} to {first + len(X) - 1}"
        X = X.astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)
        if not np.isfinite(X).all():
            raise ValueError(
                f"{self.name}: the samples contain NaN or infinity ({where}); fill or drop them first, for example "
                "with X.fillna or X.dropna."
            )
        targets = self._targets(columns[0], where) if self.targets else None
        weights = columns[-1].astype(X.dtype) if self.weighted else np.ones(len(X), X.dtype)
        if weights.shape != (len(X),) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"{self.name}: sample_weight must be one number per sample, finite and not negative ({where})."
            )
        rows = Rows(np.arange(first, first + len(X)), X, targets, weights)
        return rows if (weights > 0).all() else rows.take(np.flatnonzero(weights > 0))

    def _targets(self, y: Numbers, where: str) -> Numbers:
        if self.targets == "labels":
            if y.ndim == 2 and y.shape[1] == 1:
                y = y[:, 0]
            missing = y != y if y.dtype.kind in "fO" else np.zeros(len(y), bool)
            if y.ndim != 1 or missing.any() or (y.dtype == object and any(label is None for label in y)):
                raise ValueError(f"{self.name}: y must hold one label per sample, none of them missing ({where}).")
            return y
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.name}: y must hold numbers ({where}: {error}).") from error
        if not np.isfinite(y).all():
            raise ValueError(f"{self.name}: y contains NaN or infinity ({where}); drop those samples first.")
        return y[:, None] if y.ndim == 1 else y


@dataclass(frozen=True)
class Survey:
    """What a pass over all rows tells of them; surveys of parts are merged by ``+``."""

    limit: int
    count: int
    """Rows of positive weight."""
    masses: dict[Any, float]
    """Weight of every class."""
    rows: Rows
    """Those of the smallest keys."""

    def __add__(self, other: Survey) -> Survey:
        masses = dict(self.masses)
        for label, mass in other.masses.items():
            masses[label] = masses.get(label, 0.0) + mass
        return _cut(Survey(self.limit, self.count + other.count, masses, self.rows + other.rows))


def _cut(found: Survey) -> Survey:
    """With no more rows than are wanted."""
    rows = found.rows
    labels = rows.targets if found.masses else None
    part = smallest_keys(row_keys(rows.numbers), labels, found.limit)
    return Survey(found.limit, found.count, found.masses, rows.take(part))


@dataclass(frozen=True)
class _Surveyor:
    """What is asked of every block."""

    layout: Layout
    limit: int
    bound: float
    """Rows with a larger key are left where they are, but for those of rare classes."""

    def __call__(self, first: int, X: Numbers, *columns: Numbers) -> Survey:
        rows, masses = self.layout.read(first, X, *columns), {}
        labels = rows.targets if self.layout.targets == "labels" else None
        if labels is not None:
            classes, codes = np.unique(labels, return_inverse=True)
            sums = np.bincount(codes, rows.weights, len(classes))
            masses = dict(zip(classes.tolist(), sums.tolist()))
        keys = row_keys(rows.numbers)
        part = smallest_keys(keys, labels, min(self.limit, int((keys < self.bound).sum())))
        return Survey(self.limit, len(rows.numbers), masses, rows.take(part))


def survey(partitions: Partitions, layout: Layout, limit: int, verbose: bool = False) -> Survey:
    """Check all rows, and bring ``limit`` of them (all, if there are no more), at least two of every class."""
    bound = _SPARE * limit / max(partitions.n, 1)
    found = partitions.total(_Surveyor(layout, limit, bound), "looking at the rows", verbose)
    if len(found.rows.numbers) < min(limit, found.count):
        found = partitions.total(_Surveyor(layout, limit, 1.0), "looking at the rows again", verbose)
    return _cut(found)


def class_codes(labels: Numbers, y: Any) -> Numbers:
    """The class number of every label; ``labels`` are sorted and hold every one of ``y``."""
    return np.searchsorted(labels, y).astype(np.int64)
