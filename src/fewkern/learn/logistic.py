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

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import asarray_like, to_numpy
from fewkern.arrays.optimize import fit_logistic, indicators
from fewkern.core.samples import Population
from fewkern.core.scores import ClassScores
from fewkern.learn.fitting import Fitted
from fewkern.learn.geometry import features
from fewkern.learn.learner import Learned
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate

Host = np.ndarray[Any, Any]
# A sample holds all rows if it has all of their weight, up to rounding.
_ALL = 1.0 + 1e-4


@one_thread()
def as_logistic(fitted: Fitted, population: Population) -> Fitted:
    """The same vectors with the coefficients of logistic regression, where held-out rows favor it.

    It must raise their likelihood, and misclassify no more of them. All rows must be in the sample that chose the
    vectors; of more rows least squares needs sums only.
    """
    found, least = fitted.learned, fitted.held_out
    if found.comparison is None or float(fitted.sums.statistics.weight) > _ALL * float(found.samples.weights.sum()):
        return fitted
    log_loss, wrong = _log_loss(calibrate(ClassScores(), least), least), least.error_rate()
    best, before = None, math.inf
    # a class of one row may be in no fold but its own
    own = indicators(to_numpy(found.samples.codes), found.samples.n_classes)
    for ridge, scores, begin in _fits(found, own):
        held_out = HeldOut(scores.astype(least.values.dtype), least.samples)
        loss = _log_loss(ClassScores(), held_out)
        if loss < log_loss and held_out.error_rate() <= wrong:
            best, log_loss = (ridge, held_out, begin), loss
        if loss > before:  # the likelihood has one peak along the ridges
            break
        before = loss
    if best is None:
        return fitted
    ridge, held_out, begin = best
    Z, weights = to_numpy(fitted.basis.features(found.samples.X)).astype(np.float64), to_numpy(found.samples.weights)
    start = begin if len(begin[0]) == Z.shape[1] else None  # a fold of few rows has fewer vectors
    coefficients = fit_logistic(Z, own, weights, ridge, start, found.comparison.policy.logistic.steps)
    like = population.sample.weights
    expansion = fitted.basis.expand(*(asarray_like(part, like, dtype=like.dtype) for part in coefficients))
    return replace(fitted, expansion=expansion, held_out=held_out, loss="logistic")


def _fits(found: Learned, own: Host) -> Iterator[tuple[float, Host, tuple[Host, Host]]]:
    """For every ridge the scores of the rows held out, and coefficients of one fold, where a fit to all may begin."""
    assert found.comparison is not None
    rows, comparison, folds = found.rows, found.comparison, []
    policy = comparison.policy.logistic
    for part, candidate in enumerate(comparison.candidates[found.key]):
        held = comparison.rows[comparison.parts == part]
        fitted = np.setdiff1d(np.arange(rows.n), held)
        Z, new = (features(rows.of_fold(part).take(some), candidate.geometry) for some in (fitted, held))
        folds.append((Z, fitted, new))
    solved: Sequence[tuple[Host, Host] | None] = [None] * len(folds)
    for factor in policy.ridges:
        ridge = factor * found.ridge
        coefficients = [
            fit_logistic(Z, own[fitted], rows.weights[fitted], ridge, begin, policy.steps)
            for (Z, fitted, _), begin in zip(folds, solved)
        ]
        yield ridge, np.concatenate([new @ W + b for (_, _, new), (W, b) in zip(folds, coefficients)]), coefficients[0]
        solved = coefficients


def _log_loss(scores: ClassScores, held_out: HeldOut) -> float:
    """Mean negative logarithm of the probability of the own class."""
    logs, samples = to_numpy(scores.log_probabilities(held_out.values)), held_out.samples
    codes, weights = to_numpy(samples.codes), to_numpy(samples.weights)
    return float(-(weights @ logs[np.arange(len(codes)), codes]) / weights.sum())
