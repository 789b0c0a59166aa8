"""Rows of the table as texts, the columns that matter first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fewkern.reporting.subject import Subject
from fewkern.reporting.words import cell, is_missing

__all__ = ["MOST_COLUMNS", "Listing", "in_importance", "listing"]

MOST_COLUMNS, _MOST_NAMES = 15, 2


@dataclass(frozen=True)
class Listing:
    """Some rows of a table: original cells, as texts."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    """What the rows are called."""


def listing(subject: Subject, positions: Sequence[int], order: tuple[str, ...]) -> Listing:
    """Cells of some rows: first the columns that name rows, then those of the model in the given order."""
    shown = [*naming_columns(subject), *in_importance(subject, order)]
    columns = [subject.rows.take(positions).values(j) for j in shown]
    cells = tuple(tuple(cell(column[i]) for column in columns) for i in range(len(positions)))
    names = tuple(subject.rows.label(i) for i in positions)
    return Listing(tuple(subject.rows.names[j] for j in shown), cells, names)


def in_importance(subject: Subject, order: tuple[str, ...]) -> list[int]:
    """Columns that the model uses, those named in ``order`` first; not too many to be read."""
    place = {name: k for k, name in enumerate(order)}
    return sorted(subject.used, key=lambda j: place.get(subject.rows.names[j], len(place)))[:MOST_COLUMNS]


def naming_columns(subject: Subject) -> list[int]:
    """Columns that the model does not use and that tell rows apart: keys and names."""
    others = [j for j in range(len(subject.rows.names)) if j not in subject.used]
    found = []
    for j in others:
        values = [str(v) for v in subject.rows.values(j) if not is_missing(v)]
        if len(values) == len(subject.rows) == len(set(values)):
            found.append(j)
    return found[:_MOST_NAMES]
