"""Parameters that the estimators on chosen vectors share: what they accept, and what they mean."""

from __future__ import annotations

from numbers import Real
from typing import Any

from fewkern.arrays.random import seed_from
from fewkern.arrays.validation import Interval, StrOptions
from fewkern.base import CONSTRAINTS
from fewkern.select.rules import RULES
from fewkern.select.selection import Selecting

__all__ = ["AUTOMATIC", "MOST_VECTORS", "SELECTION", "selecting"]

# Largest number of vectors that FeatureVectorSelector and FeatureVectorPCA choose where max_vectors is None.
MOST_VECTORS = 100

# Constraints of the parameters that say how vectors are chosen.
SELECTION: dict[str, list[Any]] = {
    **{name: CONSTRAINTS[name] for name in ("kernel", "center", "basis_tol", "random_state", "verbose")},
    "rule": [StrOptions(set(RULES))],
}

# The same with those of the automatic choice of length scale, ridge and number of vectors.
AUTOMATIC: dict[str, list[Any]] = {
    **SELECTION,
    "n_vectors": CONSTRAINTS["max_vectors"],
    "max_vectors": CONSTRAINTS["max_vectors"],
    "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "prefer": CONSTRAINTS["prefer"],
}


def selecting(rule: str, center: Any, basis_tol: float | None, random_state: Any) -> Selecting:
    """How vectors are chosen; ``center="auto"`` is the paper's one sample for the paper's rule, none otherwise."""
    count = int(rule == "greedy") if center == "auto" else int(center)
    return Selecting(rule, count, basis_tol, seed=seed_from(random_state))
