"""What the estimators on an automatic basis do in ``fit``: search, move the vectors where that pays, assign."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fewkern.backend.namespace import is_sparse
from fewkern.backend.progress import progress
from fewkern.backend.random import random_generator
from fewkern.base import BudgetWarning
from fewkern.core.basis import KernelBasis
from fewkern.core.conformal import Intervals
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import as_kernel
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.scores import class_values
from fewkern.core.statistics import Statistics
from fewkern.core.trace import TOLERANCE, Stop
from fewkern.vectors.all_rows import expansion_from, feature_statistics, with_targets
from fewkern.vectors.calibration import fit_temperature
from fewkern.vectors.grid import WIDTH_FACTORS
from fewkern.vectors.intervals import fit_intervals
from fewkern.vectors.leave_one_out import HeldOut
from fewkern.vectors.logistic import Fold, Folds, Stage, choose_logistic, refitted_folds
from fewkern.vectors.novelty import familiar_basis, novelty_of
from fewkern.vectors.parameters import refine_of, selecting
from fewkern.vectors.race import FoldModel
from fewkern.vectors.refine_choice import (
    SIZES,
    RefineChoice,
    RefinePlan,
    Unrefined,
    choose_refined,
    unrefined_model,
)
from fewkern.vectors.search import SEARCH_ROWS, Found, Trial, automatic_model, held_out_values
from fewkern.vectors.searching import Searching

__all__ = [
    "AutomaticParameters",
    "ClassifyingParameters",
    "Fitted",
    "RefiningParameters",
    "RegressingParameters",
    "fit_classification",
    "fit_regression",
    "keep_expansion",
    "keep_model",
    "search_model",
    "warn_open_end",
]


class AutomaticParameters(Protocol):
    """Parameters of the estimators whose width, ridge and number of vectors are chosen by leave-one-out."""

    kernel: Any
    n_vectors: Any
    max_vectors: Any
    ridge: Any
    prefer: str
    rule: str
    center: Any
    basis_tol: float | None
    random_state: Any
    verbose: Any


class RefiningParameters(AutomaticParameters, Protocol):
    """The same, of the estimators that may move their vectors."""

    refine: Any


class RegressingParameters(RefiningParameters, Protocol):
    """The same, of a regression, which keeps what its intervals need."""

    intervals_: Intervals | None


class ClassifyingParameters(RefiningParameters, Protocol):
    """The same, of a classifier, which says what it minimized."""

    loss_: str


def fit_regression(estimator: RegressingParameters, population: Population) -> Fitted:
    """FVS-LR on the targets of the samples, its vectors moved where that pays; assigns the fitted attributes."""
    fitted = _fit_least_squares(estimator, population)
    found = fit_intervals(fitted.left_out, fitted.around)
    scale = None if found.scale is None else population.sample.original(found.scale)
    estimator.intervals_ = replace(found, scale=scale)
    return fitted


def fit_classification(estimator: ClassifyingParameters, population: Population) -> Fitted:
    """The same for classes, and logistic regression on the same vectors where that pays.

    What logistic regression adds to the coefficients comes from the sample also where there are more rows. A ridge that
    is given is meant for least squares. Two classes keep to it, for which the loss only makes better probabilities;
    several do not, which least squares can hide.
    """
    fitted, samples = _fit_least_squares(estimator, population), with_targets(population.sample)
    estimator.loss_ = "squared"
    if fitted.expansion.n_vectors == 0 or (samples.n_classes == 2 and estimator.ridge != "auto"):
        return fitted
    stage = Stage.of(fitted.expansion, fitted.basis, samples)
    folds = fitted.logistic_folds(samples, stage)
    if folds is None:  # a class of one sample
        return fitted
    found = choose_logistic(stage, samples, folds, fitted.temperature)
    if found is None:
        return fitted
    estimator.loss_ = "logistic"
    keep_expansion(estimator, samples.original(found.expansion))
    return replace(fitted, expansion=found.expansion, held_out=found.held_out, left_out=found.held_out)


@dataclass(frozen=True)
class Fitted:
    """The model of an estimator, and what it says of samples that it has not seen."""

    expansion: KernelExpansion
    basis: KernelBasis
    ridge: float
    held_out: HeldOut
    """By the folds that decided on refinement, else by leave-one-out at the chosen settings."""
    left_out: HeldOut
    """For promises about new samples, at settings that other samples chose. Of vectors that were moved: by folds.
    Else by leave-one-out, which holds out less than folds do."""
    around: KernelBasis
    """On samples, before any were moved."""
    folds: tuple[FoldModel, ...] = ()
    """The model in the folds that chose it, if there were any."""
    sums: Statistics | None = None
    """Of the features of all rows."""

    @property
    def judged(self) -> HeldOut:
        """Values for an honest error: by folds where there are any."""
        return self.held_out if self.folds else self.left_out

    @property
    def temperature(self) -> float:
        samples = self.held_out.samples
        return fit_temperature(class_values(self.held_out.values), samples.codes, samples.weights)

    def logistic_folds(self, samples: Samples, stage: Stage) -> Folds | None:
        """Folds to choose the loss on: those that chose the model, or new ones with its vectors."""
        if not self.folds:
            some = samples if samples.pairwise else samples.some(SEARCH_ROWS, random_generator(0))
            return refitted_folds(stage, some, self.ridge)
        parts = []
        for fold in self.folds:
            own = Stage.of(fold.expansion, KernelBasis.of_expansion(fold.expansion), fold.fitted)
            parts.append(Fold(own.part(fold.fitted), own.part(samples.take(fold.judged))))
        return Folds(self.held_out.samples, tuple(parts))


def _fit_least_squares(estimator: RefiningParameters, population: Population) -> Fitted:
    """Choose on the sample, then take the coefficients from all rows; assigns the fitted attributes."""
    samples = with_targets(population.sample)
    fitted = _fit_sample(estimator, samples)
    sums = feature_statistics(population, fitted.basis)
    fitted = replace(fitted, sums=sums)
    if population.n == samples.n:
        return fitted
    expansion = expansion_from(sums, fitted.basis, fitted.ridge)
    keep_expansion(estimator, samples.original(expansion))
    return replace(fitted, expansion=expansion)


def _fit_sample(estimator: RefiningParameters, samples: Samples) -> Fitted:
    """Search, and move the vectors where that pays."""
    plan, moves = _searching(estimator, samples.n), _moves_vectors(estimator, samples)
    if moves and plan.tolerance is not None:
        # short models are distilled from this one: with prefer="sparse" it is they that shall be few, not it
        plan = replace(plan, tolerance=min(plan.tolerance, TOLERANCE["balanced"]))
    found = search_model(estimator, samples, plan)
    whole, by_one = unrefined_model(samples, found, plan)
    keep_model(estimator, samples, found, whole.expansion)
    around = familiar_basis(found.selection, found.n_vectors)
    fitted = Fitted(whole.expansion, found.basis, found.ridge, by_one, by_one, around)
    _warn_of_jitter(estimator, whole)
    # None where there is nothing to choose, or too few samples for folds
    choice = _choose_refined(estimator, samples, whole, plan, found.trial) if moves else None
    if choice is not None:
        fitted = replace(fitted, held_out=HeldOut(samples.take(choice.rows), choice.held_out), folds=choice.folds)
    if choice is None or not choice.refined:
        warn_open_end(estimator, samples, found)
        return replace(fitted, left_out=held_out_values(samples, found) or by_one)
    _keep_refined(estimator, samples, found, choice)
    basis = KernelBasis.of_expansion(choice.expansion)
    crossed = HeldOut(fitted.held_out.samples, choice.cross_chosen)
    return replace(fitted, expansion=choice.expansion, basis=basis, ridge=choice.ridge, left_out=crossed)


def _choose_refined(
    estimator: RefiningParameters, samples: Samples, whole: Unrefined, plan: Searching, trial: Trial | None
) -> RefineChoice | None:
    refining = RefinePlan(plan, TOLERANCE[estimator.prefer], _sizes(estimator), refine_of(estimator.refine) is True)
    with progress(estimator, "moving vectors, by folds", refining.n_folds if trial is None else 1) as step:
        return choose_refined(samples, whole, refining, trial, step)


def _warn_of_jitter(estimator: RefiningParameters, model: Unrefined) -> None:
    if model.jitter > 0:
        warnings.warn(
            f"{type(estimator).__name__}: with ridge={model.ridge:.3g} the equations are singular in this precision; "
            f"{model.jitter:.3g} was added to the ridge. Use a larger ridge, fewer vectors or a larger basis_tol.",
            UserWarning,
            stacklevel=4,
        )


def search_model(estimator: AutomaticParameters, samples: Samples, plan: Searching | None = None) -> Found:
    """Width, vectors, ridge and size for the targets of the samples."""
    plan = _searching(estimator, samples.n) if plan is None else plan
    kernel = as_kernel(estimator.kernel)
    widths = len(WIDTH_FACTORS) if "width" in kernel.rules else 1
    with progress(estimator, "comparing kernel widths", plan.n_paths(widths, samples.n)) as step:
        return automatic_model(samples, kernel, plan, step)


def keep_model(estimator: Any, samples: Samples, found: Found, expansion: KernelExpansion) -> None:
    """Assign the fitted attributes that the estimators on an automatic basis have in common."""
    estimator.ridge_, estimator.trace_, estimator.stop_ = found.ridge, found.trace, found.stop
    estimator.fitness_ = found.selection.fitness[: found.n_vectors]
    estimator.basis_ = samples.original(found.basis)
    estimator.novelty_ = novelty_of(samples, found.selection, estimator.basis_)
    keep_expansion(estimator, samples.original(expansion))


def warn_open_end(estimator: Any, samples: Samples, found: Found) -> None:
    """Say so where the error was still falling at the end of an automatic path, and more samples could be chosen."""
    length = found.longest.n_vectors
    ended = found.longest.stop is not Stop.LIMIT or length == samples.n
    if estimator.n_vectors != "auto" or ended or not found.trace.open_end:
        return
    advice = 'prefer="accurate", or ' if estimator.max_vectors == "auto" and estimator.prefer != "accurate" else ""
    warnings.warn(
        f"{type(estimator).__name__}: the leave-one-out error was still falling at the largest number of vectors that "
        f"was tried, {length}; the {estimator.n_vectors_} that are kept are too few for these samples. Use "
        f"{advice}max_vectors={min(2 * length, samples.n)} or more; trace_ has the errors.",
        BudgetWarning,
        stacklevel=5,
    )


def _keep_refined(estimator: Any, samples: Samples, found: Found, choice: RefineChoice) -> None:
    """Assign the attributes of a model whose vectors were moved."""
    expansion = samples.original(choice.expansion)
    estimator.basis_ = KernelBasis.of_expansion(expansion)
    estimator.ridge_ = choice.ridge
    estimator.fitness_ = found.selection.fitness[: expansion.n_vectors]
    keep_expansion(estimator, expansion)
    estimator.refined_ = True


def keep_expansion(estimator: Any, expansion: KernelExpansion) -> None:
    """Assign a fitted function, and what it says of the vectors."""
    estimator.expansion_, estimator.kernel_ = expansion, expansion.kernel
    estimator.n_vectors_, estimator.vectors_ = expansion.n_vectors, expansion.vectors
    estimator.indices_ = expansion.indices


def _searching(estimator: AutomaticParameters, n: int) -> Searching:
    how = selecting(estimator.rule, estimator.center, estimator.basis_tol, estimator.random_state)
    return Searching.automatic(
        how,
        n,
        n_vectors=estimator.n_vectors,
        max_vectors=estimator.max_vectors,
        ridge=estimator.ridge,
        prefer=estimator.prefer,
    )


def _moves_vectors(estimator: RefiningParameters, samples: Samples) -> bool:
    """Whether folds shall decide on moving the vectors; an error where that was asked for and cannot be."""
    refine = refine_of(estimator.refine)
    if refine is False:
        return False
    kernel, name = as_kernel(estimator.kernel), type(estimator).__name__
    reason = None
    if not kernel.refinable:
        reason = f"the kernel {type(kernel).__name__} has no derivatives; use Gaussian or Polynomial"
    elif is_sparse(samples.X):
        reason = "moved vectors would not be sparse; pass X as a dense array"
    elif estimator.center not in (False, 0) and (estimator.center != "auto" or estimator.rule == "greedy"):
        reason = "a kernel that is centered at samples cannot move with its vectors; use center=False"
    if refine is True:
        if reason is not None:
            raise ValueError(f"{name}: refine=True cannot be done: {reason}, or refine=False.")
        return True
    # a width that was given as a number is taken as it is
    return reason is None and bool(kernel.rules)


def _sizes(estimator: RefiningParameters) -> tuple[int, ...]:
    """Numbers of vectors that refined models are tried with, where it is not given."""
    if estimator.max_vectors == "auto":
        return SIZES
    most = int(estimator.max_vectors)
    return (*(m for m in SIZES if m < most), most)
