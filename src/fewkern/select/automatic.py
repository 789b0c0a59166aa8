"""What the estimators do in ``fit`` whose length scale, ridge and number of vectors are chosen by leave-one-out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fewkern.arrays.progress import progress
from fewkern.base import BudgetWarning
from fewkern.core.conformal import Intervals
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import as_kernel
from fewkern.core.path import Stop
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.select.all_rows import expansion_from, feature_statistics
from fewkern.select.grid import WIDTH_FACTORS
from fewkern.select.intervals import fit_intervals
from fewkern.select.leave_one_out import HeldOut, solve_samples
from fewkern.select.novelty import familiar_basis, novelty_of
from fewkern.select.parameters import selecting
from fewkern.select.search import Found, automatic_model, held_out_values
from fewkern.select.searching import Searching

__all__ = [
    "AutomaticParameters",
    "Regression",
    "fit_regression",
    "keep_model",
    "search_model",
    "warn_of_jitter",
    "warn_open_end",
]


class AutomaticParameters(Protocol):
    """Parameters of the estimators whose length scale, ridge and number of vectors are chosen by leave-one-out."""

    kernel: Any
    n_vectors: Any
    max_vectors: Any
    alpha: Any
    prefer: str
    rule: str
    center: Any
    basis_tol: float | None
    random_state: Any
    verbose: Any


@dataclass(frozen=True)
class Regression:
    """The regression on the vectors that a search has found, and its predictions for samples that are left out."""

    expansion: KernelExpansion
    held_out: HeldOut
    """By leave-one-out, at settings that other samples chose."""
    intervals: Intervals
    jitter: float
    """What rounding made necessary beside the ridge."""


def search_model(estimator: AutomaticParameters, samples: Samples) -> Found:
    """Length scale, vectors, ridge and size for the targets of the samples."""
    plan = Searching.automatic(
        selecting(estimator.rule, estimator.center, estimator.basis_tol, estimator.random_state),
        samples.n,
        n_vectors=estimator.n_vectors,
        max_vectors=estimator.max_vectors,
        ridge=estimator.alpha,
        prefer=estimator.prefer,
    )
    kernel = as_kernel(estimator.kernel)
    widths = len(WIDTH_FACTORS) if "length_scale" in kernel.rules else 1
    with progress(estimator, "comparing kernel length scales", plan.n_paths(widths, samples.n)) as step:
        return automatic_model(samples, kernel, plan, step)


def fit_regression(population: Population, found: Found) -> Regression:
    """FVS-LR on the vectors that were found among the sample; coefficients come from all rows."""
    samples = population.sample
    solution, left_out = solve_samples(samples, found.Z, found.ridge)
    expansion = found.basis.expand(solution.W, solution.offset)
    if population.n > samples.n:
        expansion = expansion_from(feature_statistics(population, found.basis), found.basis, found.ridge)
    held_out = held_out_values(samples, found) or left_out
    intervals = fit_intervals(held_out, familiar_basis(found.selection, found.n_vectors))
    if intervals.scale is not None:
        intervals = replace(intervals, scale=samples.original(intervals.scale))
    return Regression(expansion, held_out, intervals, solution.jitter)


def keep_model(estimator: Any, samples: Samples, found: Found, expansion: KernelExpansion) -> None:
    """Assign the fitted attributes that these estimators have in common."""
    estimator.alpha_, estimator.path_, estimator.stop_ = found.ridge, found.trace, found.stop
    estimator.fitness_ = found.selection.fitness[: found.n_vectors]
    estimator.basis_ = samples.original(found.basis)
    estimator.novelty_ = novelty_of(samples, found.selection, estimator.basis_)
    estimator.expansion_ = expansion = samples.original(expansion)
    estimator.kernel_, estimator.indices_ = expansion.kernel, expansion.indices
    estimator.n_vectors_, estimator.vectors_ = expansion.n_vectors, expansion.vectors


def warn_of_jitter(estimator: Any, jitter: float) -> None:
    """Say so where rounding asked for a larger ridge."""
    if jitter > 0:
        warnings.warn(
            f"{type(estimator).__name__}: with alpha={estimator.alpha_:.3g} the equations are singular in this "
            f"precision; {jitter:.3g} was added to it. Use a larger alpha, fewer vectors or a larger basis_tol.",
            UserWarning,
            stacklevel=4,
        )


def warn_open_end(estimator: Any, samples: Samples, found: Found) -> None:
    """Say so where the error was still falling at the end of an automatic path, and more samples could be chosen."""
    length = found.longest.n_vectors
    ended = found.longest.stop is not Stop.LIMIT or length == samples.n
    if estimator.n_vectors is not None or ended or not found.trace.open_end:
        return
    advice = 'prefer="accurate", or ' if estimator.max_vectors is None and estimator.prefer != "accurate" else ""
    warnings.warn(
        f"{type(estimator).__name__}: the leave-one-out error was still falling at the largest number of vectors that "
        f"was tried, {length}; the {estimator.n_vectors_} that are kept are too few for these samples. Use "
        f"{advice}max_vectors={min(2 * length, samples.n)} or more; path_ has the errors.",
        BudgetWarning,
        stacklevel=4,
    )
