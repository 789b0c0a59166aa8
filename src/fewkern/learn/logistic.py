r"""Logistic regression on the features of a model, for probabilities.

Minimizes :math:`-\tfrac1w \sum_i w_i \log p_i + \tfrac12\, \rho\, \|W\|_F^2`, with the softmax (of two classes: the
logistic function) of ``W' z + b``. Rows held out choose the ridge :math:`\rho`, and between this and the coefficients
of least squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_expit, logsumexp

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import asarray_like, to_numpy
from fewkern.arrays.optimize import fit_logistic, indicators
from fewkern.core.samples import Population
from fewkern.core.scores import ClassScores, class_values
from fewkern.learn.fitting import Fitted
from fewkern.learn.learner import Learned
from fewkern.learn.objective import features
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import fit_temperature

Host = np.ndarray[Any, Any]
# Ridges that are compared, in units of that of least squares: a logistic loss is a quarter as curved as a squared one.
_RIDGES = (2.5, 0.5, 0.1, 0.02)


@one_thread()
def as_logistic(fitted: Fitted, population: Population) -> Fitted:
    """The same vectors with the coefficients of logistic regression, where held-out rows favor it.

    It must raise their likelihood, and misclassify no more of them. All rows must be in the sample that chose the
    vectors; of more rows least squares needs sums only.
    """
    found, samples = fitted.learned, population.sample
    if found is None or found.comparison is None or population.n > found.samples.n:
        return fitted
    codes, least, comparison = to_numpy(found.samples.codes), fitted.held_out, found.comparison
    factor = fit_temperature(class_values(least.values), least.samples.codes, least.samples.weights)
    logs = to_numpy(ClassScores(factor=factor).log_probabilities(least.values))
    place, weights = to_numpy(least.samples.codes), to_numpy(least.samples.weights)
    log_loss = float(-(weights @ logs[np.arange(len(place)), place]) / weights.sum())
    best, before = None, math.inf
    # a class of one row may be in no fold but its own
    own = indicators(codes, samples.n_classes)
    for ridge, scores, begin in _fits(found, own):
        loss, wrong = _judged(scores, codes[comparison.rows], comparison.weights)
        if loss < log_loss and wrong <= least.error_rate():
            best, log_loss = (ridge, scores, begin), loss
        if loss > before:  # the likelihood has one peak along the ridges
            break
        before = loss
    if best is None:
        return fitted
    ridge, scores, begin = best
    Z, weights = to_numpy(fitted.basis.features(found.samples.X)).astype(np.float64), to_numpy(found.samples.weights)
    coefficients = fit_logistic(Z, own, weights, ridge, begin)
    like = samples.weights
    expansion = fitted.basis.expand(*(asarray_like(part, like, dtype=like.dtype) for part in coefficients))
    held_out = HeldOut(scores.astype(weights.dtype), found.samples.take(comparison.rows))
    return replace(fitted, expansion=expansion, held_out=held_out, loss="logistic")


def _fits(found: Learned, own: Host) -> Iterator[tuple[float, Host, tuple[Host, Host]]]:
    """For every ridge the scores of the rows held out, and coefficients of one fold, where a fit to all may begin."""
    assert found.comparison is not None
    rows, every, folds = found.rows, np.arange(found.rows.n), []
    for fold in found.comparison.folds:
        fitted = np.setdiff1d(every, fold.rows)
        geometry = fold.candidates[found.key].geometry
        folds.append((features(rows.take(fitted), geometry), fitted, features(rows.take(fold.rows), geometry)))
    solved: Sequence[tuple[Host, Host] | None] = [None] * len(folds)
    for factor in _RIDGES:
        ridge = factor * found.ridge
        coefficients = [
            fit_logistic(Z, own[fitted], rows.weights[fitted], ridge, begin)
            for (Z, fitted, _), begin in zip(folds, solved)
        ]
        yield ridge, np.concatenate([new @ W + b for (_, _, new), (W, b) in zip(folds, coefficients)]), coefficients[0]
        solved = coefficients


def _judged(scores: Host, codes: Host, weights: Host) -> tuple[float, float]:
    """Mean log loss, and the share of wrong classes."""
    share = weights / weights.sum()
    if scores.shape[1] == 1:
        right = np.where(codes == 1, scores[:, 0], -scores[:, 0])
        return float(-(share @ log_expit(right))), float(share @ (right < 0))
    logs = scores[np.arange(len(codes)), codes] - logsumexp(scores, axis=1)
    return float(-(share @ logs)), float(share @ (scores.argmax(axis=1) != codes))
