"""Parameters that both estimators of the learner have, and what they accept."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from fewkern.arrays.validation import Interval
from fewkern.base import CONSTRAINTS

__all__ = ["PARAMETERS"]

PARAMETERS: dict[str, list[Any]] = {
    "n_vectors": [None, Interval(Integral, 1, None, closed="left")],
    **{name: CONSTRAINTS[name] for name in ("max_vectors", "prefer", "random_state", "verbose")},
}
