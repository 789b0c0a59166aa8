"""Columns that are no features: groups of rows that belong together, and weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.tables.cells import factorized, numbers_as_written, texts
from fewkern.tables.columns import bad_cells

__all__ = ["row_groups", "row_weights"]


def row_groups(named: tuple[str, Any], rows: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Groups of some rows as whole numbers, with notes; a row without a group is one of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fewkern.tables.roles import row_groups
    >>> row_groups(("patient", pd.Series(["a", None, "a", "b"])), np.arange(4))
    (array([0, 2, 0, 1]), ["1 row without a 'patient' is a group of its own"])
    """
    name, column = named
    codes, different = factorized(texts(column.iloc[rows]))
    alone = codes < 0
    codes = np.where(alone, len(different) + np.cumsum(alone) - 1, codes)
    if len(np.unique(codes)) < 2:
        raise ValueError(f"groups: {name!r} is the same in all rows; whole groups are held out, so give two or more.")
    count = int(alone.sum())
    said = "rows without {} are groups of their own" if count > 1 else "row without {} is a group of its own"
    return codes, [f"{count:,} {said.format(f'a {name!r}')}"] if count else []


def row_weights(named: tuple[str, Any], rows: np.ndarray[Any, Any]) -> tuple[Any, np.ndarray[Any, Any], list[str]]:
    """Weights of some rows, which of the rows have one, and notes."""
    name, column = named
    column = column.iloc[rows]
    found, _ = numbers_as_written(column)
    if found.bad.any():
        raise ValueError(f"weights: {bad_cells(name, column, found.bad, 'number')}; correct them.")
    if np.isinf(found.values).any() or (found.values < 0).any():
        raise ValueError(f"weights: column {name!r} holds negative or infinite numbers; weights are positive or 0.")
    known = ~np.isnan(found.values)
    if not found.values[known].any():
        raise ValueError(f"weights: column {name!r} holds no positive number; leave weights out.")
    lacking = int((~known).sum())
    rows_were = "rows without a weight were" if lacking > 1 else "row without a weight was"
    return found.values[known], known, [f"{lacking:,} {rows_were} left out"] if lacking else []
