"""What both kernel Fisher classifiers do: choose, fit, calibrate, and take coefficients from all rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.namespace import Array, float_dtype, to_numpy
from fewkern.arrays.optimize import LogisticSteps, fit_logistic, indicators
from fewkern.arrays.progress import progress
from fewkern.arrays.sampling import Fold, seed_from
from fewkern.arrays.validation import plain_label
from fewkern.base import held_out_scores, importances_of
from fewkern.core.expansion import KernelExpansion
from fewkern.core.explanation import fit_background
from fewkern.core.kernel import Kernel
from fewkern.core.kernels import as_kernel
from fewkern.core.path import Stop
from fewkern.core.samples import Population, Samples
from fewkern.core.scores import ClassScores
from fewkern.core.statistics import Statistics
from fewkern.fisher.cross_validation import CVPlan, Family, Selected, absent_class, cross_validate, select_setting
from fewkern.fisher.problem import Candidates, Discriminant, FisherTargets, fisher_targets
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.selection import SelectionRule, choose_basis
from fewkern.select.uncertainty import LEAST_VECTORS, calibrate, novelty_of

# With fewer samples in a class the midpoint rule is used: there is nothing to calibrate on.
_MIN_CALIBRATION_SAMPLES = 5
# Choices are made on at most this number of rows (methods K6): the folds of a fit cost as much as a few hundred of
# its columns.
CHOICE_ROWS = 5000
# Ridge on the slopes of the logistic regression, for unit weight and targets of unit scale.
_RIDGE_PER_WEIGHT = 1e-3


def fit_fisher(estimator: Any, population: Population, family: Family) -> Discriminant:
    """Choose, fit and calibrate on a sample of the rows, as NumPy arrays; coefficients then come from all rows.

    Assigns the attributes that both classifiers have. Warns where folds or the calibration are impossible, or where the
    fit does not converge.
    """
    rows = population.sample if population.sample.pairwise else population.sample.drawn(CHOICE_ROWS)
    samples = rows.on_host()
    # weights of a collection come in double precision
    samples = replace(samples, weights=samples.weights.astype(float_dtype(samples.X), copy=False))
    seed, codes = seed_from(estimator.random_state), np.asarray(samples.codes)
    sizes = np.bincount(codes, minlength=samples.n_classes)
    plan = CVPlan(family, _folds(estimator, samples, family, sizes, seed), estimator.prefer, seed)
    targets = fisher_targets(codes, samples.n_classes, samples.weights)
    selected, fitted = _select_and_fit(estimator, samples, targets, plan)
    posterior = targets.midpoint_rule()
    if selected.held_out is not None and sizes.min() >= _MIN_CALIBRATION_SAMPLES:
        calibrated = fit_posterior(selected.held_out, targets)
        posterior = calibrated or posterior
        if calibrated is None:
            warnings.warn(
                f"{type(estimator).__name__}: cross-validated scores are not positively correlated with the classes, "
                "so probabilities cannot be fitted to them; the midpoint rule is used. Look for a better kernel or "
                "length scale, a smaller penalty, or more samples.",
                UserWarning,
                stacklevel=3,
            )
    candidates = selected.candidates
    if population.n > samples.n and fitted.size:
        fitted = _fit_to_all(population, samples.X, candidates, targets, fitted, family)
    ending = fitted.ending
    if ending.stop == Stop.MAX_ITER:
        warnings.warn(
            f"{type(estimator).__name__} did not converge in {ending.n_iter} iterations: {ending.criterion} "
            f"{ending.reached:.2g}, tolerance {ending.tol:.2g}; use a larger alpha, or scaled samples.",
            ConvergenceWarning,
            stacklevel=3,
        )
    expansion, estimator.class_scores_ = class_expansion(samples, candidates, fitted, posterior)
    estimator.held_out_error_ = estimator.held_out_scores_ = None
    if selected.nested is not None:
        held_out = replace(selected.nested, values=posterior.scores(selected.nested.values))
        estimator.held_out_error_ = held_out.error_rate()
        estimator.held_out_scores_ = held_out_scores(estimator.class_scores_, held_out.values, held_out.samples)
    # drawn at random, 20 vectors explain one percent less than by "gain", in half of the time
    basis = choose_basis(samples, candidates.kernel, SelectionRule(rule="random", seed=seed), LEAST_VECTORS)
    estimator.novelty_ = novelty_of(samples, basis, samples.original(basis.basis()))
    estimator.kernel_, estimator.expansion_ = candidates.kernel, expansion.like(rows.X)
    estimator.vectors_, estimator.indices_ = estimator.expansion_.vectors, estimator.expansion_.indices
    estimator.n_vectors_ = estimator.expansion_.n_vectors
    estimator.path_ = replace(selected.trace, objectives=fitted.objectives)
    estimator._importances = importances_of(estimator.expansion_, estimator.class_scores_, rows)
    estimator.background_ = fit_background(estimator.expansion_, rows)
    return fitted


def _folds(estimator: Any, samples: Samples, family: Family, sizes: Array, seed: int) -> list[Fold]:
    """Shuffled folds; none where a class is too small, with a warning if there is something to choose by them."""

    def label(code: int) -> str:
        return repr(plain_label(to_numpy(estimator.classes_)[code]))

    name, axis = type(estimator).__name__, family.axis
    cv = int(estimator.cv) if isinstance(estimator.cv, Integral) else estimator.cv
    folds = samples.folds(cv, seed)
    if not folds and len(family.settings(1.0, 1.0)) > 1:
        warnings.warn(
            f"{name}: class {label(sizes.argmin())} has {sizes.min()} sample, too few for cross-validation, so the "
            f"default {axis} is used; give {axis}, or more samples.",
            UserWarning,
            stacklevel=4,
        )
    absent = absent_class(samples, folds)
    if absent is not None:
        raise ValueError(
            f"{name}: fold {absent[0]} of cv (counted from 0) has no sample of class {label(absent[1])} to train on; "
            "shuffle the samples, or use stratified folds (cv=5, or StratifiedKFold)."
        )
    return folds


def _select_and_fit(
    estimator: Any, samples: Samples, targets: FisherTargets, plan: CVPlan
) -> tuple[Selected, Discriminant]:
    """The selected setting, and its model on all samples, within the budget of vectors."""
    kernel = as_kernel(estimator.kernel)
    with progress(estimator, "comparing models by cross-validation", plan.max_paths(kernel)) as step:
        selected = select_setting(samples, targets, kernel, plan, step)
    K, Y = selected.candidates.K, targets.rows(samples.codes)
    fitted = plan.family.fit(K, Y, samples.weights, selected.setting)
    if fitted.setting == selected.setting or not plan.folds:
        return selected, fitted
    path = cross_validate(samples, selected.candidates, plan.family, (fitted.setting,), plan.folds)
    held_out = path.held_out([0] * path.n_folds, targets)
    return replace(selected, held_out=held_out, nested=held_out), fitted


def _fit_to_all(
    population: Population,
    X: Array,
    candidates: Candidates,
    targets: FisherTargets,
    fitted: Discriminant,
    family: Family,
) -> Discriminant:
    """The model on the same vectors, samples of ``X``, with the coefficients of all rows.

    Least squares, with or without the penalty of (5), needs only products of the kernel columns with each other and
    with the targets: one pass over the rows. The targets are those of the sample, so that its calibration still holds.
    """
    kernel = candidates.kernel
    vectors = kernel.pick(X, candidates.rows[fitted.support])
    found = family.refit(fitted, population.total(partial(_products, kernel, vectors, targets), fitted.size + 1))
    coef, offset = (part.astype(fitted.coef.dtype) for part in (found.coef, found.offset))
    return replace(found, coef=coef, offset=offset)


def _products(kernel: Kernel, vectors: Array, targets: FisherTargets, samples: Samples) -> Statistics:
    """Products of the kernel columns and of the targets over a block of rows."""
    block = samples.on_host()
    return Statistics.of(kernel(block.X, vectors), targets.rows(block.codes), block.weights)


def class_expansion(
    samples: Samples, candidates: Candidates, model: Discriminant, scores: ClassScores
) -> tuple[KernelExpansion, ClassScores]:
    """The class scores as sums of kernels, and how these become probabilities."""
    kernel, rows = candidates.kernel, candidates.rows[model.support]
    axes = KernelExpansion(kernel, kernel.pick(samples.X, rows), model.coef, model.offset, rows)
    return samples.original(axes.then(scores.weights, scores.offset)), replace(scores, weights=None, offset=None)


def fit_posterior(held_out: HeldOut, targets: FisherTargets) -> ClassScores | None:
    r"""Decision scores and probabilities that never reverse the order of the discriminant.

    The probabilities of the midpoint rule are shrunk. So a multinomial logistic regression on the discriminant of
    held-out samples takes its place, in the directions in which that discriminant rises with the targets. The
    leave-one-out values of a nearly constant function do the opposite, because a free bias moves away from the sample
    that is left out, and a link fitted to them would reverse every decision. One temperature then calibrates the
    probabilities, which the penalty of the regression shrinks.

    Parameters
    ----------
    held_out : HeldOut
        Samples with classes, and their discriminant ``(n, C - 1)`` by models fitted without them.
    targets : FisherTargets

    Returns
    -------
    scores : ClassScores or None
        From the discriminant to one score for two classes (positive: the second), to one per class otherwise. None
        where the discriminant rises with the targets in no direction.
    """
    samples = held_out.samples
    U = _rising_directions(held_out.values, samples, targets)
    if U.shape[1] == 0:
        return None
    # Paper: the threshold is the midpoint of the targets. We: where held-out samples have equal posteriors, because a
    # penalty shrinks the values and moves the best threshold away from the midpoint; it gives probabilities, too.
    codes: Array = samples.codes
    own = indicators(codes, targets.n_classes)
    # in units of the targets the ridge means the same for every problem
    F = held_out.values @ U / targets.scale
    # two classes have one slope b there, which stands for (-b, b) / 2 here: its square is half as large
    ridge = _RIDGE_PER_WEIGHT / 2 if targets.n_classes == 2 else _RIDGE_PER_WEIGHT
    # to rounding: the slopes are few, and probabilities should not depend on the order of rows
    slopes, offset = fit_logistic(F.astype(np.float64), own, samples.weights, ridge, steps=LogisticSteps(gain=1e-15))
    if targets.n_classes > 2:
        offset = offset - offset.mean()
    scores = ClassScores(U @ slopes.astype(F.dtype) / targets.scale, offset.astype(F.dtype))
    return calibrate(scores, held_out)


def _rising_directions(held_out: Array, samples: Samples, targets: FisherTargets) -> Array:
    """Orthonormal directions ``(C - 1, r)`` in which held-out values rise with the targets.

    They belong to the positive eigenvalues of the symmetric part of the covariance of the two.
    """
    mean = (samples.weights @ held_out) / np.sum(samples.weights)
    A = (samples.weights[:, None] * (held_out - mean)).T @ targets.rows(samples.codes)
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return vectors[:, values > 0]
