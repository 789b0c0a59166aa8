"""Columns that a ColumnTransformer names in one of its ways."""

from __future__ import annotations

from collections import UserList
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer

__all__ = ["by_name", "positions"]


def _plain(columns: Any) -> Any:
    """The columns of a remainder are a list that warns of changes to come, in some versions of scikit-learn."""
    return columns.data if isinstance(columns, UserList) else columns


def by_name(columns: Any) -> bool:
    """Whether columns are named by texts."""
    columns = _plain(columns)
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    return isinstance(columns, str) or any(isinstance(column, str) for column in columns)


def positions(step: ColumnTransformer, columns: Any) -> Sequence[int]:
    """Numbers of the columns: of a list or a slice of names or numbers, of a mask, of one name or number."""
    names, columns = list(getattr(step, "feature_names_in_", ())), _plain(columns)
    if isinstance(columns, str | int):
        columns = [columns]
    if isinstance(columns, slice):
        start = names.index(columns.start) if isinstance(columns.start, str) else columns.start
        # a slice of names includes the last one
        stop = names.index(columns.stop) + 1 if isinstance(columns.stop, str) else columns.stop
        return range(step.n_features_in_)[start : stop : columns.step]
    if any(isinstance(column, str) for column in columns):
        return [names.index(column) for column in columns]
    return [int(i) for i in np.arange(step.n_features_in_)[np.asarray(columns)]] if len(columns) else []
