"""The fit that both kernel Fisher classifiers share: choose, fit, calibrate, and take coefficients from all rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.namespace import Array, asarray_like, float_dtype, to_numpy
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import Fold, seed_from
from fewkern.arrays.validation import plain_label
from fewkern.base import check_priors, constraints, held_out_scores
from fewkern.core.conformal import HeldOutScores, Novelty
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernel import Kernel
from fewkern.core.kernels import as_kernel
from fewkern.core.path import Path, Stop
from fewkern.core.population import Population
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores
from fewkern.core.statistics import Statistics
from fewkern.fisher.candidates import Candidates
from fewkern.fisher.cross_validation import CVPlan, Family, Selected, absent_class, cross_validate, select_setting
from fewkern.fisher.posterior import fit_posterior
from fewkern.fisher.problem import Discriminant, Ending, FittedDiscriminant
from fewkern.fisher.targets import FisherTargets, fisher_targets
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.selection import SelectionRule, choose_basis
from fewkern.select.uncertainty import LEAST_VECTORS, novelty_of

__all__ = ["CONSTRAINTS", "FisherFit", "class_expansion", "fit_fisher"]

# With fewer samples in a class the midpoint rule is used: there is nothing to calibrate on.
_MIN_CALIBRATION_SAMPLES = 5
# Choices are made on at most this number of rows: the folds of a fit cost as much as a few hundred of its columns.
CHOICE_ROWS = 5000

# Constraints of the parameters that the classifiers share.
CONSTRAINTS: dict[str, list[Any]] = constraints(
    "kernel",
    "prefer",
    "max_vectors",
    "max_candidates",
    "priors",
    "class_weight",
    "cv",
    "random_state",
    "verbose",
)


@dataclass(frozen=True)
class FisherFit:
    """A fitted kernel Fisher classifier: what the estimators assign."""

    rows: Samples
    """Rows on which choices were made, in the caller's array library."""
    kernel: Kernel
    expansion: KernelExpansion
    """Class scores, in the caller's array library."""
    class_scores: ClassScores
    priors: Array
    setting: float
    """Penalty, or number of vectors."""
    trace: Path
    ending: Ending
    held_out_error: float | None
    held_out_scores: HeldOutScores | None
    novelty: Novelty


def fit_fisher(estimator: Any, population: Population, family: Family) -> FisherFit:
    """Choose, fit and calibrate on a sample of the rows, as NumPy arrays; coefficients then come from all rows.

    Only parameters of the estimator are read. Warns where folds or the calibration are impossible, or where the fit
    does not converge.
    """
    rows = population.sample if population.sample.pairwise else population.sample.drawn(CHOICE_ROWS)
    samples = rows.on_host()
    # weights of a collection come in double precision
    samples = replace(samples, weights=samples.weights.astype(float_dtype(samples.X), copy=False))
    priors, seed = check_priors(estimator, samples), seed_from(estimator.random_state)
    plan = CVPlan(family, estimator.prefer, estimator.max_candidates, seed)
    folds = _folds(estimator, samples, plan)
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    selected, fitted = _select_and_fit(estimator, samples, plan, folds)
    enough = _smallest_class(samples)[0] >= _MIN_CALIBRATION_SAMPLES
    posterior = fit_posterior(selected.held_out if enough else None, targets, priors)
    if folds and enough and not posterior.calibrated:
        warnings.warn(
            f"{type(estimator).__name__}: cross-validated scores are not positively correlated with the classes, so "
            "probabilities cannot be fitted to them; the midpoint rule is used. Look for a better kernel or length "
            "scale, a smaller penalty, or more samples.",
            UserWarning,
            stacklevel=3,
        )
    candidates = selected.candidates
    fitted = _fit_to_all(population, samples, candidates, fitted, family)
    _warn_unless_converged(estimator, fitted.ending)
    expansion, scores = class_expansion(samples, candidates, fitted, posterior.scores)
    ratio = None if priors is None else priors / targets.priors
    error, calibration = _held_out(selected.nested, posterior.scores, scores, ratio)
    # drawn at random, 20 vectors explain one percent less than by "gain", in half of the time
    basis = choose_basis(samples, candidates.kernel, SelectionRule(rule="random", seed=seed), LEAST_VECTORS)
    return FisherFit(
        rows=rows,
        kernel=candidates.kernel,
        expansion=expansion.like(rows.X),
        class_scores=scores,
        priors=asarray_like(targets.priors if priors is None else priors, rows.weights),
        setting=fitted.setting,
        trace=replace(selected.trace, objectives=fitted.objectives),
        ending=fitted.ending,
        held_out_error=error,
        held_out_scores=calibration,
        novelty=novelty_of(samples, basis, samples.original(basis.basis())),
    )


def _select_and_fit(
    estimator: Any, samples: Samples, plan: CVPlan, folds: list[Fold]
) -> tuple[Selected, FittedDiscriminant]:
    """The selected setting, and its model on all samples, within the budget of vectors."""
    kernel = as_kernel(estimator.kernel)
    with progress(estimator, "comparing models by cross-validation", plan.max_paths(kernel)) as step:
        selected = select_setting(samples, kernel, plan, folds, step)
    targets = fisher_targets(samples.codes, samples.n_classes, samples.weights)
    K, Y = selected.candidates.K, targets.rows(samples.codes)
    fitted = plan.family.fit(K, Y, samples.weights, selected.setting)
    if fitted.setting == selected.setting or not folds:
        return selected, fitted
    path = cross_validate(samples, selected.candidates, plan.family, (fitted.setting,), folds)
    held_out = path.held_out([0] * path.n_folds)
    return replace(selected, held_out=held_out, nested=held_out), fitted


def _held_out(
    nested: HeldOut | None, to_scores: ClassScores, class_scores: ClassScores, ratio: Array | None
) -> tuple[float | None, HeldOutScores | None]:
    """Error of held-out samples, and their scores for ``predict_set``; ``ratio`` is given priors over class shares."""
    if nested is None:
        return None, None
    samples, values = nested.samples, to_scores.scores(nested.values)
    weights = samples.weights if ratio is None else samples.weights * ratio[samples.codes]
    wrong = class_scores.codes(values) != samples.codes
    scores = held_out_scores(class_scores, values, samples, ratio)
    return float(np.sum(weights * wrong) / np.sum(weights)), scores


def _fit_to_all(
    population: Population, sample: Samples, candidates: Candidates, fitted: FittedDiscriminant, family: Family
) -> FittedDiscriminant:
    """The model on the same vectors with the coefficients of all rows; as it is where the sample is all rows.

    Least squares, with or without the penalty of (5), needs only products of the kernel columns with each other and
    with the targets: one pass over the rows. The targets are those of the sample, so that its calibration still holds.
    """
    kernel = candidates.kernel
    if population.n == sample.n or not fitted.size:
        return fitted
    targets = fisher_targets(sample.codes, sample.n_classes, sample.weights)
    vectors = kernel.pick(sample.X, candidates.rows[fitted.support])
    found = family.refit(fitted, population.total(_Products(kernel, vectors, targets), fitted.size + 1))
    coef, offset = (part.astype(fitted.coef.dtype) for part in (found.coef, found.offset))
    return replace(found, coef=coef, offset=offset)


@dataclass(frozen=True)
class _Products:
    """Products of the kernel columns and of the targets over a block of rows."""

    kernel: Kernel
    vectors: Array
    targets: FisherTargets

    def __call__(self, samples: Samples) -> Statistics:
        block = samples.on_host()
        return Statistics.of(self.kernel(block.X, self.vectors), self.targets.rows(block.codes), block.weights)


def class_expansion(
    samples: Samples, candidates: Candidates, model: Discriminant, scores: ClassScores
) -> tuple[KernelExpansion, ClassScores]:
    """The class scores as sums of kernels, and how these become probabilities."""
    kernel, rows = candidates.kernel, candidates.rows[model.support]
    axes = KernelExpansion(kernel, kernel.pick(samples.X, rows), model.coef, model.offset, rows)
    return samples.original(axes.then(scores.weights, scores.offset)), replace(scores, weights=None, offset=None)


def _smallest_class(samples: Samples) -> tuple[int, int]:
    """Number of samples of the smallest class, and its code."""
    codes: Array = samples.codes
    counts = np.bincount(codes, minlength=samples.n_classes)
    return int(counts.min()), int(counts.argmin())


def _folds(estimator: Any, samples: Samples, plan: CVPlan) -> list[Fold]:
    """Shuffled folds; none where a class is too small, with a warning if there is something to choose by them."""
    name = type(estimator).__name__
    cv = int(estimator.cv) if isinstance(estimator.cv, Integral) else estimator.cv
    folds = samples.folds(cv, plan.seed)
    if not folds and plan.compares:
        count, code = _smallest_class(samples)
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


def _label(estimator: Any, code: int) -> str:
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
