"""What the estimators on chosen vectors share: parameters, the search that these describe, fitted attributes."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

from fewkern.arrays.progress import progress
from fewkern.arrays.random import seed_from
from fewkern.arrays.validation import Interval, StrOptions
from fewkern.base import CONSTRAINTS, BudgetWarning, KernelEstimator
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import as_kernel
from fewkern.core.path import Stop
from fewkern.core.samples import Samples
from fewkern.select.paths import WIDTH_FACTORS
from fewkern.select.rules import RULES
from fewkern.select.search import SearchResult, automatic_model, automatic_space, n_paths
from fewkern.select.selection import SelectionRule
from fewkern.select.uncertainty import novelty_of

__all__ = ["AUTOMATIC", "MOST_VECTORS", "SELECTION", "SearchedEstimator", "selection_rule"]

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


class SearchedEstimator(KernelEstimator):
    """Base of the estimators whose length scale, ridge and number of vectors are chosen by leave-one-out."""

    n_vectors: Any
    max_vectors: Any
    alpha: Any
    prefer: str
    rule: str
    center: Any
    basis_tol: float | None
    random_state: Any

    def _search(self, samples: Samples) -> SearchResult:
        """Length scale, vectors, ridge and size for the targets of the samples."""
        space = automatic_space(
            selection_rule(self.rule, self.center, self.basis_tol, self.random_state),
            samples.n,
            n_vectors=self.n_vectors,
            max_vectors=self.max_vectors,
            ridge=self.alpha,
            prefer=self.prefer,
        )
        kernel = as_kernel(self.kernel)
        n_kernels = len(WIDTH_FACTORS) if "length_scale" in kernel.rules else 1
        with progress(self, "comparing kernel length scales", n_paths(space, n_kernels, samples.n)) as step:
            return automatic_model(samples, kernel, space, step)

    def _set_fitted(self, samples: Samples, found: SearchResult, expansion: KernelExpansion) -> None:
        """Set the fitted attributes that these estimators have in common."""
        self.alpha_, self.path_, self.stop_ = found.ridge, found.path, found.stop
        self.fitness_ = found.selection.fitness[: found.n_vectors]
        self.basis_ = samples.original(found.basis)
        self.novelty_ = novelty_of(samples, found.selection, self.basis_)
        self.expansion_ = expansion = samples.original(expansion)
        self.kernel_, self.indices_ = expansion.kernel, expansion.indices
        self.n_vectors_, self.vectors_ = expansion.n_vectors, expansion.vectors

    def _warn_open_end(self, samples: Samples, found: SearchResult) -> None:
        """Warn where the error was still falling at the end of an automatic path, and more samples could be chosen."""
        length = found.full_selection.n_vectors
        ended = found.full_selection.stop is not Stop.LIMIT or length == samples.n
        if self.n_vectors is not None or ended or not found.path.open_end:
            return
        advice = 'prefer="accurate", or ' if self.max_vectors is None and self.prefer != "accurate" else ""
        warnings.warn(
            f"{type(self).__name__}: the leave-one-out error was still falling at the largest number of vectors that "
            f"was tried, {length}; the {self.n_vectors_} that are kept are too few for these samples. Use "
            f"{advice}max_vectors={min(2 * length, samples.n)} or more; path_ has the errors.",
            BudgetWarning,
            stacklevel=4,
        )
