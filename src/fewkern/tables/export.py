"""Models as ONNX, C, JavaScript and SQL: the files, and what they do to a row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fewkern.core.expansion import Prepared, Scaling
from fewkern.io import to_c, to_js, to_onnx, to_sql
from fewkern.io.plan import Copy, Inputs, Lookup
from fewkern.tables.columns import CategoryColumn, DateColumn, NumberColumn
from fewkern.tables.dates import text_of_day
from fewkern.tables.encoder import TableEncoder

SUFFIXES = (".onnx", ".c", ".ino", ".js", ".mjs", ".sql")
"""Of the files that :func:`write_code` writes."""


def write_code(model: Any, path: Path, name: str, options: dict[str, Any]) -> Path:
    """Write a model in the language of the suffix of ``path``; ``name`` begins names in C, and options may be None."""
    given, suffix = {key: value for key, value in options.items() if value is not None}, path.suffix.lower()
    if suffix not in (".c", ".ino"):
        _refuse(path, given, "explain", "shares are written in C")
    if suffix == ".onnx":
        to_onnx(model, path, **given)
    elif suffix in (".c", ".ino"):
        to_c(model, path, name=name, **given)
    elif suffix in (".js", ".mjs"):
        _refuse(path, given, "dtype", "the numbers of JavaScript are doubles")
        to_js(model, path, **given)
    elif suffix == ".sql":
        for option in ("dtype", "coverage", "false_alarms"):
            _refuse(path, given, option, "an SQL expression is one value, in double precision")
        to_sql(model, path)
    else:
        known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise ValueError(f"{path.name}: expected a file that ends in {known}, got {suffix or 'no suffix'!r}.")
    return path


def _refuse(path: Path, given: dict[str, Any], option: str, why: str) -> None:
    if option in given:
        raise ValueError(f"{path.name}: {why}; leave {option} out.")


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
