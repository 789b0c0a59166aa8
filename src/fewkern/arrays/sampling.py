"""Samples of rows that depend on the numbers of the rows and on nothing else: not on where the rows are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["row_keys", "smallest_keys"]

# Every class has at least so many rows in a sample.
_PER_CLASS = 2


def row_keys(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A number in [0, 1) for every row number. It looks random: the mixing function is splitmix64.

    The rows of the smallest keys are a sample without replacement, the same one however the rows are cut into parts.
    """
    x = (np.asarray(rows).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.asarray((x >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def smallest_keys(keys: np.ndarray[Any, Any], labels: np.ndarray[Any, Any] | None, limit: int) -> np.ndarray[Any, Any]:
    """Positions, ascending, of the ``limit`` smallest keys, and of the two smallest of every class."""
    order = np.argsort(keys, kind="stable")
    kept = order[:limit]
    if labels is not None and len(keys) > limit:
        rare = [order[labels[order] == c][:_PER_CLASS] for c in np.unique(labels)]
        kept = np.unique(np.concatenate([kept, *rare]))
    return np.sort(kept)
