"""The rows of a table: an array, or a data frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fewkern.arrays.namespace import is_sparse, to_numpy
from fewkern.reporting.formatting import is_missing


def sample_rows(positions: Any, limit: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """At most ``limit`` of some rows, drawn without replacement, in order; ``positions`` may be their number."""
    positions = np.arange(positions) if isinstance(positions, int) else positions
    return positions if len(positions) <= limit else np.sort(rng.choice(positions, limit, replace=False))


@dataclass(frozen=True)
class TableRows:
    """A table whose cells keep their types.

    The report only ever takes rows, and gives a column the cells of other rows. So a category stays a category, and a
    date a date, and no value appears that the table does not have.
    """

    data: Any

    @classmethod
    def of(cls, X: Any) -> TableRows:
        """The rows of ``X``, a data frame or anything that becomes an array."""
        if hasattr(X, "iloc"):
            return cls(X)
        if is_sparse(X):
            X = X.toarray()
        values = to_numpy(X)
        if values.ndim != 2:
            raise ValueError(f"report: X must be a table with rows and columns, got an array of shape {values.shape}.")
        return cls(values)

    def __len__(self) -> int:
        return int(self.data.shape[0])

    @property
    def is_frame(self) -> bool:
        """Whether the columns have names of their own."""
        return hasattr(self.data, "iloc")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; those of an array are numbers."""
        if self.is_frame:
            return tuple(str(name) for name in self.data.columns)
        return tuple(f"feature {j}" for j in range(self.data.shape[1]))

    @property
    def _at(self) -> Any:
        """What takes positions of rows and columns: an attribute of a data frame, or an array itself."""
        return getattr(self.data, "iloc", self.data)

    def take(self, positions: Any) -> TableRows:
        """The rows at ``positions``."""
        return TableRows(self._at[np.asarray(positions, dtype=int)])

    def select(self, columns: Any) -> Any:
        """The columns at the positions ``columns``, in the type of the table."""
        return self._at[:, list(columns)]

    def cells(self, j: int, positions: Any = slice(None)) -> Any:
        """Column ``j`` of the rows at ``positions``, in the type that it has in the table."""
        return self._at[positions, j]

    def replaced(self, j: int, cells: Any) -> TableRows:
        """The same rows with other cells in column ``j``, in order."""
        data = self.data.copy()
        if self.is_frame:
            data.isetitem(j, cells.set_axis(data.index))
        else:
            data[:, j] = cells
        return TableRows(data)

    def values(self, j: int) -> np.ndarray[Any, Any]:
        """Column ``j`` as an array of Python objects."""
        return np.array(list(self.cells(j)), dtype=object)

    def numbers(self, j: int) -> np.ndarray[Any, Any] | None:
        """Column ``j`` as numbers with NaN for missing cells, or None where it holds anything else.

        Numbers may be written as texts: a table can come from a file as it stands there.
        """
        found = [np.nan if is_missing(v) or v == "" else v for v in self.values(j)]
        if any(isinstance(v, (bytes, bool, np.bool_)) for v in found):
            return None
        try:
            return np.array([float(v) for v in found])
        except (TypeError, ValueError):
            return None

    def label(self, position: int) -> str:
        """What a row is called: its entry in the index of a data frame, or its number from 0."""
        return str(self.data.index[position] if self.is_frame else position)
