"""Any table as a pandas data frame with names that are texts."""

from __future__ import annotations

import difflib
from collections import Counter
from typing import Any

import numpy as np

from fewkern.arrays.partitions import NeedsMemoryError, is_collection
from fewkern.arrays.texts import missing_package

__all__ = ["as_column", "as_frame", "check_names", "listed", "nearest"]

# Names that a message shows.
_SHOWN = 8


def pandas() -> Any:
    """The package pandas, or an error that says how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise missing_package("a table", "pandas") from error
    return pandas


def as_frame(table: Any, who: str, names: tuple[str, ...] | None = None) -> Any:
    """A pandas data frame from one of pandas, polars or pyarrow, a dict of columns, or a two-dimensional array.

    The columns of an array are called ``names``, or x0, x1, ...

    Examples
    --------
    >>> from fewkern.tables.frames import as_frame
    >>> list(as_frame([[1, 2], [3, 4]], "example").columns)
    ['x0', 'x1']
    """
    pd = pandas()
    if is_collection(table):
        raise NeedsMemoryError(
            f"{who}: X is a Dask collection, and this needs a table in memory; pass table.compute() or table.head(n)."
        )
    if isinstance(table, pd.DataFrame):
        frame = table.copy(deep=False)
    elif hasattr(table, "to_pandas"):
        frame = table.to_pandas()
        frame = frame.to_frame() if isinstance(frame, pd.Series) else frame
    elif isinstance(table, dict):
        frame = pd.DataFrame(table)
    else:
        array = np.asarray(table)
        if array.ndim != 2:
            raise ValueError(
                f"{who}: expected a table (a data frame, a dict of columns, or an array of two dimensions), got "
                f"{type(table).__name__} of {array.ndim} dimensions."
            )
        frame = pd.DataFrame(array)
        given = names is not None and len(names) == array.shape[1]
        frame.columns = list(names or ()) if given else [f"x{j}" for j in range(array.shape[1])]
    frame.columns = [str(name) for name in frame.columns]
    check_names(list(frame.columns), who)
    return frame


def check_names(names: list[Any], who: str) -> None:
    """Raise a ValueError if two columns have the same name."""
    counts = Counter(map(str, names))
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(f"{who}: the table has several columns named {twice[0]!r}; rename them.")


def as_column(values: Any, rows: int, who: str) -> Any:
    """A pandas column from one of pandas or polars, or a list or array, with a value for every row."""
    pd = pandas()
    values = values.to_pandas() if hasattr(values, "to_pandas") else values
    column = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values))
    if len(column) != rows:
        raise ValueError(f"{who}: {len(column):,} values for {rows:,} rows.")
    return column


def listed(names: Any) -> str:
    """Some names, and how many there are if these are not all.

    Examples
    --------
    >>> from fewkern.tables.frames import listed
    >>> listed(["a", "b"]), listed([f"x{i}" for i in range(20)])[-15:]
    ("'a', 'b'", '... (20 in all)')
    """
    names = list(names)
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names):,} in all)"


def nearest(name: str, names: Any) -> str:
    """A hint at the column that was probably meant, or at those that there are.

    Examples
    --------
    >>> from fewkern.tables.frames import nearest
    >>> nearest("Churn", ["age", "churn"]), nearest("y", ["age", "churn"])
    ("did you mean 'churn'?", "the table has 'age', 'churn'.")
    """
    names = list(names)
    lowered = {str(known).lower().strip(): known for known in reversed(names)}
    close = difflib.get_close_matches(name.lower().strip(), lowered, n=3, cutoff=0.75)
    if close:
        return f"did you mean {' or '.join(repr(lowered[match]) for match in close)}?"
    return f"the table has {listed(names)}."
