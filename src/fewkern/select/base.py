"""What the estimators on chosen vectors share: parameters, and the search that these describe."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

from fewkern.arrays.progress import progress
from fewkern.arrays.random import seed_from
from fewkern.arrays.validation import Interval, StrOptions
from fewkern.base import CONSTRAINTS, BudgetWarning
from fewkern.core.kernels import as_kernel
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.select.paths import WIDTH_FACTORS
from fewkern.select.rules import RULES
from fewkern.select.search import SearchResult, automatic_model, automatic_space, n_paths
from fewkern.select.selection import SelectionRule

__all__ = ["AUTOMATIC", "MOST_VECTORS", "SELECTION", "search_model", "selection_rule", "warn_open_end"]

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


def selection_rule(rule: str, center: Any, basis_tol: float | None, random_state: Any) -> SelectionRule:
    """How vectors are chosen; ``center="auto"`` is the paper's one sample for the paper's rule, none otherwise."""
    count = int(rule == "greedy") if center == "auto" else int(center)
    return SelectionRule(rule, count, basis_tol, seed=seed_from(random_state))


def search_model(estimator: Any, samples: Samples) -> SearchResult:
    """Length scale, vectors, ridge and size for the targets of the samples, by the parameters of an estimator."""
    space = automatic_space(
        selection_rule(estimator.rule, estimator.center, estimator.basis_tol, estimator.random_state),
        samples.n,
        n_vectors=estimator.n_vectors,
        max_vectors=estimator.max_vectors,
        ridge=estimator.alpha,
        prefer=estimator.prefer,
    )
    kernel = as_kernel(estimator.kernel)
    n_kernels = len(WIDTH_FACTORS) if "length_scale" in kernel.rules else 1
    with progress(estimator, "comparing kernel length scales", n_paths(space, n_kernels, samples.n)) as step:
        return automatic_model(samples, kernel, space, step)


def warn_open_end(estimator: Any, samples: Samples, found: SearchResult) -> None:
    """Warn where the error was still falling at the end of an automatic path, and more samples could be chosen."""
    length = found.full_selection.n_vectors
    ended = found.full_selection.stop is not Stop.LIMIT or length == samples.n
    if estimator.n_vectors is not None or ended or not found.path.open_end:
        return
    advice = 'prefer="accurate", or ' if estimator.max_vectors is None and estimator.prefer != "accurate" else ""
    warnings.warn(
        f"{type(estimator).__name__}: the leave-one-out error was still falling at the largest number of vectors that "
        f"was tried, {length}; the {estimator.n_vectors_} that are kept are too few for these samples. Use "
        f"{advice}max_vectors={min(2 * length, samples.n)} or more; path_ has the errors.",
        BudgetWarning,
        stacklevel=4,
    )
