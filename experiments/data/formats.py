"""Readers of the formats in which sets are published: comma-separated text, MATLAB files.

Any other format raises an exception.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Arrays", "columns_of", "complete", "matlab", "narrow", "signs", "table_of"]

Arrays = dict[str, np.ndarray[Any, Any]]

_MISSING = "?"


def matlab(content: bytes, *names: str) -> dict[str, Any]:
    """Variables of a MATLAB file."""
    from scipy.io import loadmat

    handle: Any = io.BytesIO(content)
    return dict(loadmat(handle, variable_names=names))


def table_of(content: bytes, width: int) -> np.ndarray[Any, Any]:
    """Cells of a comma-separated text, as strings; empty lines and those that begin with "|" are none of the table."""
    lines = [line for line in content.decode("ascii").splitlines() if line.strip() and not line.startswith("|")]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(f"expected {width} columns, got {len(row)} in row {number}")
    if not rows:
        raise ValueError("expected rows of text, got none")
    return np.array(rows)


def complete(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The rows without a missing value."""
    return table[~np.any(table == _MISSING, axis=1)]


def signs(labels: Iterable[str], positive: str, negative: str) -> np.ndarray[Any, Any]:
    """Labels of two classes as +1 and -1."""
    labels = [str(label) for label in labels]
    strange = sorted(set(labels) - {positive, negative})
    if strange:
        raise ValueError(f"expected labels {positive!r} and {negative!r}, got {strange[0]!r}")
    return np.array([1 if label == positive else -1 for label in labels], dtype=np.int8)


def columns_of(
    table: np.ndarray[Any, Any], names: list[str], numbers: set[str]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Features, their names, and the attributes with categories as codes.

    A category of two levels becomes one column, which is 1 for the later of the two in the order of the alphabet; one
    of more levels becomes a column for each.
    """
    features, titles, coded = [], [], []
    for name, column in zip(names, table.T):
        if name in numbers:
            values = column.astype(float)
            features.append(values)
            titles.append(name)
            coded.append(values)
            continue
        levels, codes = np.unique(column, return_inverse=True)
        shown = range(len(levels)) if len(levels) > 2 else [len(levels) - 1]
        features += [(codes == k).astype(float) for k in shown]
        titles += [f"{name}={levels[k]}" for k in shown]
        coded.append(codes.astype(float))
    return np.column_stack(features), np.array(titles), np.column_stack(coded)


def narrow(text: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same strings in the narrowest type: a column of a table has the width of the whole."""
    return np.array(text.tolist())
