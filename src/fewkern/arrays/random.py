"""Generators from scikit-learn's ``random_state``."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["random_generator", "seed_from"]


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
