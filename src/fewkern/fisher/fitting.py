"""What the kernel Fisher classifiers share: parameters, warnings, and the way from samples to fitted attributes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, Protocol

from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.folds import Fold
from fewkern.arrays.namespace import Array, float_dtype, namespace, take_rows, to_numpy
from fewkern.arrays.progress import progress
from fewkern.arrays.random import seed_from
from fewkern.arrays.validation import StrOptions, plain_label
from fewkern.base import check_priors, constraints, keep_class_scores, keep_importances
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernels import as_kernel
from fewkern.core.path import Stop
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores
from fewkern.fisher.all_rows import fit_to_all
from fewkern.fisher.choice import (
    Candidates,
    Chosen,
    Comparing,
    absent_class,
    choose_setting,
    cross_validate,
    fit_within,
)
from fewkern.fisher.families import Family, Fitted
from fewkern.fisher.posterior import fit_posterior
from fewkern.fisher.problem import Ending, Machine
from fewkern.fisher.targets import fisher_targets
from fewkern.fisher.variant import FisherVariant
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.selection import SelectionRule, choose_basis
from fewkern.select.uncertainty import LEAST_VECTORS, novelty_of

__all__ = ["FISHER", "FisherParameters", "class_expansion", "fit_fisher"]

# Classes with fewer samples leave nothing to calibrate on: the midpoint rule is used.
_CALIBRATION_SAMPLES = 5

# Choices are made on at most so many rows: the folds of a fit cost as much as a few hundred of its columns.
CHOICE_ROWS = 5000

# Constraints of the parameters that the classifiers share.
FISHER: dict[str, list[Any]] = constraints(
    "kernel",
    "prefer",
    "max_vectors",
    "max_candidates",
    "priors",
    "class_weight",
    "cv",
    "random_state",
    "verbose",
    variant=[None, StrOptions({"paper"}), FisherVariant],
)


class FisherParameters(Protocol):
    """Parameters of every kernel Fisher classifier."""

    kernel: Any
    prefer: str
    max_vectors: int | None
    max_candidates: int | None
    variant: Any
    priors: Any
    cv: Any
    random_state: Any
    verbose: Any
    classes_: Any


def fit_fisher(estimator: FisherParameters, population: Population, family: Family) -> float:
    """Choose, fit, calibrate; assigns the fitted attributes that all have, and returns the setting taken.

    All of it looks at a sample of the rows. The coefficients of the vectors that are kept then come from all rows.
    """
    samples = population.sample if population.sample.pairwise else population.sample.drawn(CHOICE_ROWS)
    # weights of a collection come in double precision
    weights = namespace(samples.weights).astype(samples.weights, float_dtype(samples.X), copy=False)
    samples = replace(samples, weights=weights)
    priors, variant = check_priors(estimator, samples), FisherVariant.of(estimator.variant)
    seed = seed_from(estimator.random_state)
    plan = Comparing(family, estimator.prefer, estimator.max_vectors, estimator.max_candidates, seed)
    folds = _folds(estimator, samples, plan)
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    chosen, fitted = _choose_and_fit(estimator, samples, plan, folds)
    rule = variant.posterior if _smallest(samples)[0] >= _CALIBRATION_SAMPLES else "least_squares"
    posterior = fit_posterior(rule, chosen.held_out, targets, priors)
    if folds and posterior.rule != rule:
        warnings.warn(
            f"{type(estimator).__name__}: what the model says of samples that it has not seen does not rise with their "
            "classes, so it carries no signal to fit probabilities to; the midpoint rule is used. Look for a better "
            "kernel or length scale, a smaller penalty, or more samples.",
            UserWarning,
            stacklevel=3,
        )
    keep: Any = estimator
    fitted = fit_to_all(population, samples, chosen.candidates, fitted, family, chosen.setting)
    _warn_unless_converged(estimator, fitted.ending)
    keep.expansion_, keep.class_scores_ = class_expansion(samples, chosen.candidates, fitted.machine, posterior.scores)
    _keep_held_out(keep, chosen.judged, posterior.scores, None if priors is None else priors / targets.priors)
    keep_importances(keep, samples)
    keep.kernel_ = chosen.candidates.kernel
    # drawn at random, 20 vectors explain one percent less than by "gain", in half of the time
    selection = choose_basis(samples, keep.kernel_, SelectionRule(rule="random", seed=plan.seed), LEAST_VECTORS)
    keep.novelty_ = novelty_of(samples, selection, samples.original(selection.basis()))
    keep.n_vectors_, keep.vectors_ = keep.expansion_.n_vectors, keep.expansion_.vectors
    keep.indices_ = keep.expansion_.indices
    keep.priors_ = targets.priors if priors is None else priors
    keep.path_ = replace(chosen.trace, objectives=fitted.objectives)
    keep.stop_, keep.n_iter_ = fitted.ending.stop, max(1, fitted.ending.n_iter)
    return chosen.setting


def _choose_and_fit(
    estimator: FisherParameters, samples: Samples, plan: Comparing, folds: list[Fold]
) -> tuple[Chosen, Fitted]:
    """What is chosen, and the machine on all samples, within the budget of vectors."""
    kernel = as_kernel(estimator.kernel)
    with progress(estimator, "comparing machines by cross-validation", plan.n_paths(kernel)) as step:
        chosen = choose_setting(samples, kernel, plan, folds, step)
    fitted, setting = fit_within(samples, chosen, plan)
    if setting == chosen.setting or not folds:
        return replace(chosen, setting=setting), fitted
    path = cross_validate(samples, chosen.candidates, plan.family, (setting,), folds)
    held_out = path.held_out([0] * path.n_folds)
    return replace(chosen, setting=setting, held_out=held_out, judged=held_out), fitted


def _keep_held_out(keep: Any, judged: HeldOut | None, scores: ClassScores, ratio: Array | None) -> None:
    """Assign ``held_out_error_`` and ``held_out_scores_``; ``ratio`` are given priors over the classes' shares."""
    if judged is None:
        keep.held_out_error_ = keep.held_out_scores_ = None
        return
    samples, values = judged.samples, scores.scores(judged.values)
    keep_class_scores(keep, values, samples, ratio)
    xp = namespace(values)
    weights = samples.weights if ratio is None else samples.weights * take_rows(ratio, samples.codes)
    wrong = xp.astype(keep.class_scores_.codes(values) != samples.codes, weights.dtype)
    keep.held_out_error_ = float(xp.sum(weights * wrong) / xp.sum(weights))


def class_expansion(
    samples: Samples, candidates: Candidates, machine: Machine, scores: ClassScores
) -> tuple[KernelExpansion, ClassScores]:
    """The class scores themselves as sums of kernels, and how these become probabilities."""
    kernel = candidates.kernel
    rows = take_rows(candidates.rows, machine.support)
    vectors = kernel.pick(samples.X, rows)
    axes = KernelExpansion(kernel, vectors, machine.coef, machine.offset, rows)
    return samples.original(axes.then(scores.weights, scores.offset)), replace(scores, weights=None, offset=None)


def _smallest(samples: Samples) -> tuple[int, int]:
    """Number of samples of the smallest class, and its code."""
    codes = to_numpy(samples.codes)
    return min((int((codes == c).sum()), c) for c in range(samples.n_classes))


def _folds(estimator: FisherParameters, samples: Samples, plan: Comparing) -> list[Fold]:
    """Mixed folds; none where a class is too small, with a warning if there is something to choose by them."""
    name = type(estimator).__name__
    cv = int(estimator.cv) if isinstance(estimator.cv, Integral) else estimator.cv
    folds = samples.folds(cv, plan.seed)
    if not folds and plan.compares:
        count, code = _smallest(samples)
        warnings.warn(
            f"{name}: class {_label(estimator, code)} has {count} sample, too few for cross-validation, so the default "
            f"{plan.family.axis} is used; give {plan.family.axis}, or more samples.",
            UserWarning,
            stacklevel=4,
        )
    absent = absent_class(samples, folds)
    if absent is not None:
        raise ValueError(
            f"{name}: fold {absent[0]} of cv (counted from 0) has no sample of class {_label(estimator, absent[1])} to "
            "train on; shuffle the samples, or use stratified folds (cv=5, or StratifiedKFold)."
        )
    return folds


def _label(estimator: FisherParameters, code: int) -> Any:
    """A class as the user wrote it."""
    return repr(plain_label(to_numpy(estimator.classes_)[code]))


def _warn_unless_converged(estimator: Any, ending: Ending) -> None:
    if ending.stop == Stop.MAX_ITER:
        warnings.warn(
            f"{type(estimator).__name__} did not converge in {ending.n_iter} iterations: {ending.criterion} "
            f"{ending.reached:.2g}, tolerance {ending.tol:.2g}; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
