"""Models as ONNX and C: the file of either, and what it does to a row of a table (medians, categories, scales)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fewkern.core.preparation import Prepared, Scaling
from fewkern.io import to_c, to_onnx
from fewkern.io.plan import Copy, Inputs, Lookup
from fewkern.tables.columns import CategoryColumn, DateColumn, NumberColumn
from fewkern.tables.dates import text_of_day
from fewkern.tables.encoder import TableEncoder

__all__ = ["prepared", "write_code"]


def write_code(model: Any, path: Path, name: str, options: dict[str, Any]) -> Path:
    """Write a model as ONNX or C, by the suffix of ``path``; ``name`` begins names in C, and options may be None."""
    given = {key: value for key, value in options.items() if value is not None}
    if path.suffix.lower() == ".onnx":
        to_onnx(model, path, **given)
    elif path.suffix.lower() == ".c":
        to_c(model, path, name=name, **given)
    else:
        raise ValueError(f"{path.name}: expected a file that ends in .onnx or .c, got {path.suffix or 'no suffix'!r}.")
    return path


def prepared(encoder: TableEncoder, estimator: Any, fill: bool = True) -> Prepared:
    """The estimator with the inputs of its table: one per column, of a date one per feature.

    ``fill``: missing numbers get the median of their column; a density leaves them missing.
    """
    names: list[str] = []
    parts: list[Copy | Lookup] = []
    texts: dict[int, tuple[str, ...]] = {}
    notes: list[str] = []
    for column in encoder.columns_:
        place = len(names)
        if isinstance(column, NumberColumn):
            names.append(column.name)
            parts.append(Copy(place, float(column.median) if fill else None))
        elif isinstance(column, CategoryColumn):
            names.append(column.name)
            texts[place] = (*column.levels, *column.spellings)
            size, rows = len(column.levels), column.places(texts[place])
            keys = np.arange(len(rows), dtype=float)
            parts.append(Lookup(Copy(place, None), keys, np.eye(size)[rows], np.zeros(size)))
        else:
            filled = column.split(np.array([column.median]))[0]
            parts += [Copy(place + k, float(value) if fill else None) for k, value in enumerate(filled)]
            names += column.features
            notes.append(_about_dates(column))
    if fill:
        notes.append("A missing number is NaN: the median of its column is put in its place.")
    if texts:
        notes.append("A missing category is a text that is none of the categories.")
    standard = Scaling(np.asarray(encoder.mean_, float), 1.0 / np.asarray(encoder.scale_, float))
    # per unit of the columns of the table, not of the standardized ones
    log_unit = -float(np.log(encoder.scale_).sum())
    inputs = Inputs(len(names), tuple(parts), texts) if fill else None
    return Prepared(estimator, standard, tuple(names), log_unit, tuple(notes), inputs)


def _about_dates(column: DateColumn) -> str:
    what = {
        "day": f"days since 1970-01-01 (fitted: {text_of_day(column.low)} to {text_of_day(column.high)})",
        "season": "sine and cosine of 2 pi days / 365.2425",
        "week": "sine and cosine of 2 pi (floor(days) + 3) / 7",
        "hour": "sine and cosine of 2 pi days",
    }
    return f"Inputs of the date {column.name!r}: " + "; ".join(what[part] for part in column.parts) + "."
