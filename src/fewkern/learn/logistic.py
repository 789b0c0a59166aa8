r"""Logistic regression on the features of a model, for probabilities.

Minimizes :math:`-\tfrac1w \sum_i w_i \log p_i + \tfrac12\, \rho\, \|W\|_F^2`, with the softmax (of two classes: the
logistic function) of ``W' z + b``. Rows held out choose the ridge :math:`\rho`, and between this and the coefficients
of least squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_expit, logsumexp

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import asarray_like, to_numpy
from fewkern.arrays.optimize import fit_logistic, indicators
from fewkern.core.samples import Population
from fewkern.core.scores import ClassScores, class_values
from fewkern.learn.compare import Comparison, Key
from fewkern.learn.fitting import Fitted
from fewkern.learn.objective import Rows, features
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import fit_temperature

Host = np.ndarray[Any, Any]
# Ridges that are compared, in units of that of least squares: a logistic loss is a quarter as curved as a squared one.
_RIDGES = (2.5, 0.5, 0.1, 0.02)


@dataclass(frozen=True)
class Logistic:
    """A ridge that rows held out prefer to least squares, and the scores of those rows."""

    ridge: float
    """Per unit of weight."""
    held: Host
    """Positions of the rows held out."""
    scores: Host
    coefficients: tuple[Host, Host]
    """Of one of the folds: where a fit to all rows begins."""


def choose_logistic(
    rows: Rows, codes: Host, comparison: Comparison, key: Key, alpha: float, to_beat: tuple[float, float]
) -> Logistic | None:
    """The ridge of greatest held-out likelihood; None where that is not greater than least squares'.

    ``to_beat`` are the mean log loss and the error rate of least squares on the rows held out; the number of errors
    must not rise either.
    """
    log_loss, errors = to_beat
    best, before = None, math.inf
    weights, held = comparison.weights, comparison.rows
    every = np.arange(rows.n)
    folds = []
    for fold in comparison.folds:
        fitted = np.setdiff1d(every, fold.rows)
        geometry = fold.candidates[key].geometry
        folds.append((features(rows.take(fitted), geometry), fitted, features(rows.take(fold.rows), geometry)))
    # a class of one row may be in no fold but its own
    own = indicators(codes, int(codes.max()) + 1)
    solved: Sequence[tuple[Host, Host] | None] = [None] * len(folds)
    for factor in _RIDGES:
        ridge = factor * alpha
        coefficients = [
            fit_logistic(Z, own[fitted], rows.weights[fitted], ridge, begin)
            for (Z, fitted, _), begin in zip(folds, solved)
        ]
        scores = np.concatenate([new @ W + b for (_, _, new), (W, b) in zip(folds, coefficients)])
        found, wrong = _judged(scores, codes[held], weights)
        if found < log_loss and wrong <= errors:
            best, log_loss = Logistic(ridge, held, scores, coefficients[0]), found
        if found > before:  # the likelihood has one peak along the ridges
            break
        before, solved = found, coefficients
    return best


@one_thread()
def as_logistic(fitted: Fitted, population: Population) -> Fitted:
    """The same vectors with the coefficients of logistic regression, where rows held out ask for it.

    All rows must be in the sample that chose the vectors; of more rows least squares needs sums only.
    """
    found, samples = fitted.learned, population.sample
    if found is None or found.comparison is None or population.n > found.samples.n:
        return fitted
    codes = to_numpy(found.samples.codes)
    place = to_numpy(fitted.held_out.samples.codes)
    if len(np.unique(codes)) < samples.n_classes:
        return fitted
    scores = class_values(fitted.held_out.values)
    factor = fit_temperature(scores, fitted.held_out.samples.codes, fitted.held_out.samples.weights)
    logs = to_numpy(ClassScores(factor=factor).log_probabilities(fitted.held_out.values))
    weights = to_numpy(fitted.held_out.samples.weights)
    log_loss = float(-(weights @ logs[np.arange(len(place)), place]) / weights.sum())
    to_beat = log_loss, fitted.held_out.error_rate()
    chosen = choose_logistic(found.rows, codes, found.comparison, found.key, found.ridge, to_beat)
    if chosen is None:
        return fitted
    like = samples.weights
    Z = to_numpy(fitted.basis.features(found.samples.X)).astype(np.float64)
    own, weights = indicators(codes, samples.n_classes), to_numpy(found.samples.weights)
    W, b = fit_logistic(Z, own, weights, chosen.ridge, chosen.coefficients)
    expansion = fitted.basis.expand(*(asarray_like(part, like, dtype=like.dtype) for part in (W, b)))
    held = HeldOut(chosen.scores.astype(found.samples.weights.dtype), found.samples.take(chosen.held))
    return replace(fitted, expansion=expansion, held_out=held, loss="logistic")


def _judged(scores: Host, codes: Host, weights: Host) -> tuple[float, float]:
    """Mean log loss, and the share of wrong classes."""
    share = weights / weights.sum()
    if scores.shape[1] == 1:
        right = np.where(codes == 1, scores[:, 0], -scores[:, 0])
        return float(-(share @ log_expit(right))), float(share @ (right < 0))
    logs = scores[np.arange(len(codes)), codes] - logsumexp(scores, axis=1)
    return float(-(share @ logs)), float(share @ (scores.argmax(axis=1) != codes))
