"""Generators from scikit-learn's ``random_state``, and samples of rows that depend on their numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["random_generator", "row_keys", "seed_from", "smallest_keys"]


def random_generator(random_state: Any) -> np.random.Generator:
    """A generator from scikit-learn's ``random_state``: an int, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        # drawn from, not advanced in place by several fits of a clone
        return np.random.default_rng(random_state.integers(2**63 - 1))
    return np.random.default_rng(random_state)


def seed_from(random_state: Any) -> int:
    """One number from ``random_state``: every part of a fit that draws starts from it."""
    return int(random_generator(random_state).integers(2**31))


# Rows of every class in a sample, at least.
_CLASS_ROWS = 2


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
        rare = [order[labels[order] == c][:_CLASS_ROWS] for c in np.unique(labels)]
        kept = np.unique(np.concatenate([kept, *rare]))
    return np.sort(kept)
