"""Rows and vectors in the cells and units of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.plotting.model import FittedModel, change_of_unit
from fewkern.reporting.formatting import cell, is_missing, number
from fewkern.reporting.subject import Subject

__all__ = ["Listing", "in_units", "list_rows", "list_vectors", "rows_of_vectors"]

Vector = np.ndarray[Any, Any]
_MOST_COLUMNS, _MOST_NAMES = 15, 2


@dataclass(frozen=True)
class Listing:
    """Some rows of a table: original cells, as texts."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    """Names of the rows."""


def list_rows(subject: Subject, positions: Sequence[int], order: tuple[str, ...]) -> Listing:
    """Cells of some rows: first the columns that name rows, then those of the model in the given order."""
    shown = [*_naming_columns(subject), *_by_importance(subject, order)]
    columns = [subject.rows.take(positions).values(j) for j in shown]
    cells = tuple(tuple(cell(column[i]) for column in columns) for i in range(len(positions)))
    names = tuple(subject.rows.label(i) for i in positions)
    return Listing(tuple(subject.rows.names[j] for j in shown), cells, names)


def _by_importance(subject: Subject, order: tuple[str, ...]) -> list[int]:
    """Columns that the model uses, those named in ``order`` first; no more than can be read."""
    place = {name: k for k, name in enumerate(order)}
    return sorted(subject.used, key=lambda j: place.get(subject.rows.names[j], len(place)))[:_MOST_COLUMNS]


def _naming_columns(subject: Subject) -> list[int]:
    """Columns that the model does not use and that tell rows apart: keys and names."""
    others = [j for j in range(len(subject.rows.names)) if j not in subject.used]
    found = []
    for j in others:
        values = [str(v) for v in subject.rows.values(j) if not is_missing(v)]
        if len(values) == len(subject.rows) == len(set(values)):
            found.append(j)
    return found[:_MOST_NAMES]


def rows_of_vectors(subject: Subject) -> list[int | None]:
    """The row of the table that every vector is; None where it is none of them."""
    if subject.moved:
        return [None] * len(subject.vectors)
    vectors, samples = subject.held_samples
    known: dict[bytes, int] = {}
    for place, row in enumerate(samples + 0.0):
        known.setdefault(row.tobytes(), place)
    indices = getattr(subject.core.expansion_, "indices", None)
    stated: list[int | None] = [None] * len(vectors) if indices is None else [int(i) for i in to_numpy(indices)]
    places: list[int | None] = []
    for row, position in zip(vectors + 0.0, stated):
        # of equal rows the one that the model names
        if position is not None and position < len(samples) and (samples[position] == row).all():
            places.append(position)
        else:
            places.append(known.get(row.tobytes()))
    return places


def list_vectors(subject: Subject, places: list[int | None], order: tuple[str, ...]) -> Listing:
    """Cells of the vectors; ``places`` are the rows that they are."""
    found = [place for place in places if place is not None]
    if len(found) == len(places):
        return list_rows(subject, found, order)
    used = _by_importance(subject, order)
    names = tuple(subject.rows.names[j] for j in used)
    frame = subject.model.kept() if hasattr(subject.model, "kept") else None
    if frame is not None and set(names) <= set(map(str, frame.columns)) and len(frame) == len(places):
        columns = [frame[name].tolist() for name in names]
        return Listing(names, tuple(tuple(cell(column[m]) for column in columns) for m in range(len(places))))
    columns = [_back(subject, j) for j in used]
    return Listing(names, tuple(tuple(column[m] for column in columns) for m in range(len(places))))


def _back(subject: Subject, j: int) -> list[str]:
    """What the vectors have in column ``j``: a number in the units of the table, or the level that they are nearest to.

    Where the features of a column are neither the column in other units nor its levels, their numbers.
    """
    features, V = subject.features[j], subject.vectors
    unit = _unit(subject, j) if len(features) == 1 else None
    if unit is not None:
        return [number(v, 4) for v in (V[:, features[0]] - unit[0]) / unit[1]]
    levels = _levels(subject, j)
    if levels is None:
        return [", ".join(number(v, 3) for v in row) for row in V[:, features]]
    U = subject.samples[:, features]
    low, high = U.min(axis=0), U.max(axis=0)
    shares = (V[:, features] - low) / (high - low)
    top = shares.argmax(axis=1)
    return [f"{levels[k]} ({shares[m, k]:.2f})" for m, k in enumerate(top)]


def _levels(subject: Subject, j: int) -> list[str] | None:
    """The category that every feature of column ``j`` stands for, if each is an indicator of one."""
    values = [cell(v) for v in subject.rows.values(j)]
    names = []
    for k in subject.features[j]:
        u = subject.samples[:, k]
        found = {values[i] for i in np.flatnonzero(u == u.max())}
        if len(np.unique(u)) != 2 or len(found) != 1:
            return None
        names.append(found.pop())
    return names


def in_units(subject: Subject) -> FittedModel | None:
    """The model and its samples with the units of the table; None where features are not columns in other units."""
    if subject.samples.shape[1] != len(subject.inputs) or len(subject.used) != len(subject.inputs):
        return None
    found = [_unit(subject, j) for j in subject.inputs if len(subject.features[j]) == 1]
    if len(found) < len(subject.inputs) or None in found:
        return None
    names = [subject.rows.names[j] for j in subject.inputs]
    shift, factor = np.array(found, dtype=float).T
    return FittedModel(subject.core, subject.samples, names, names, shift, factor)


def _unit(subject: Subject, j: int) -> tuple[float, float] | None:
    """Shift and factor with which column ``j`` becomes its one feature; None if it is no change of unit."""
    values = subject.numbers(j)
    return None if values is None else change_of_unit(values, subject.samples[:, subject.features[j][0]])
