r"""Logistic regression on the features of a model, for probabilities.

Minimizes :math:`-\tfrac1w \sum_i w_i \log p_i + \tfrac12\, \rho\, \|W\|_F^2`, with the softmax (of two classes: the
logistic function) of ``W' z + b``. Rows held out choose the ridge :math:`\rho`, and between this and the coefficients
of least squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.special import expit, log_expit, logsumexp, softmax

from fewkern.arrays.linalg import one_hot
from fewkern.arrays.optimize import minimize_smooth
from fewkern.learn.compare import Comparison, Key
from fewkern.learn.objective import Rows, features

__all__ = ["Logistic", "choose_logistic", "fit_logistic"]

Host = np.ndarray[Any, Any]
# Ridges that are compared, in units of that of least squares: a logistic loss is a quarter as curved as a squared one.
_RIDGES = (2.5, 0.5, 0.1, 0.02)
_STEPS = 60
_TOL = 1e-5


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
    weights = np.concatenate(comparison.weights)
    held = np.concatenate(comparison.rows)
    every = np.arange(rows.n)
    folds = []
    for own, candidates in zip(comparison.rows, comparison.candidates):
        fitted = np.setdiff1d(every, own)
        geometry = candidates[key].geometry
        folds.append((features(rows.take(fitted), geometry), fitted, features(rows.take(own), geometry)))
    n_classes = int(codes.max()) + 1
    own_codes = [codes[fitted] for _, fitted, _ in folds]
    solved: list[tuple[Host, Host] | None] = [None] * len(folds)
    for factor in _RIDGES:
        ridge = factor * alpha
        # a class of one row may be in no fold but its own
        solved = [
            fit_logistic(Z, own, rows.weights[fitted], ridge, n_classes, begin)
            for (Z, fitted, _), own, begin in zip(folds, own_codes, solved)
        ]
        scores = np.concatenate([new @ W + b for (_, _, new), (W, b) in zip(folds, solved)])
        found, wrong = _judged(scores, codes[held], weights)
        if found < log_loss and wrong <= errors:
            best, log_loss = Logistic(ridge, held, scores, solved[0]), found
        if found > before:  # the likelihood has one peak along the ridges
            break
        before = found
    return best


def _judged(scores: Host, codes: Host, weights: Host) -> tuple[float, float]:
    """Mean log loss, and the share of wrong classes."""
    share = weights / weights.sum()
    if scores.shape[1] == 1:
        right = np.where(codes == 1, scores[:, 0], -scores[:, 0])
        return float(-(share @ log_expit(right))), float(share @ (right < 0))
    logs = scores[np.arange(len(codes)), codes] - logsumexp(scores, axis=1)
    return float(-(share @ logs)), float(share @ (scores.argmax(axis=1) != codes))


def fit_logistic(
    Z: Host,
    codes: Host,
    weights: Host,
    ridge: float,
    n_classes: int | None = None,
    begin: tuple[Host, Host] | None = None,
) -> tuple[Host, Host]:
    """Coefficients ``(p, q)`` and constants ``(q,)`` of the scores: one for two classes, else one per class.

    ``begin`` is a solution for another ridge or other rows, from which the search sets out.
    """
    share = weights / weights.sum()
    mean = share @ Z
    centred = Z - mean
    # in coordinates in which the features are uncorrelated, as far as the ridge lets them
    gram = centred.T @ (share[:, None] * centred)
    gram[np.diag_indices_from(gram)] += ridge + np.finfo(float).eps * np.trace(gram)
    factor = scipy.linalg.cholesky(gram, lower=True)
    A = scipy.linalg.solve_triangular(factor, centred.T, lower=True).T
    inverse = scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
    metric = ridge * (inverse @ inverse.T)
    n_classes = n_classes or int(codes.max()) + 1
    q = 1 if n_classes == 2 else n_classes
    own = (codes == 1).astype(float)[:, None] if q == 1 else one_hot(codes, n_classes, np.float64)
    rate = np.clip(share @ own, 1e-9, 1 - 1e-9)
    constant = np.log(rate / (1 - rate)) if q == 1 else np.log(rate)

    def loss(x: Host) -> tuple[float, Host]:
        V, b = x[:-q].reshape(-1, q), x[-q:]
        scores = A @ V + b
        if q == 1:
            value = float(-(share @ log_expit(np.where(own > 0, scores, -scores)[:, 0])))
            residual = expit(scores) - own
        else:
            value = float(share @ (logsumexp(scores, axis=1) - np.sum(own * scores, axis=1)))
            residual = softmax(scores, axis=1) - own
        residual = share[:, None] * residual
        pulled = metric @ V
        gradient = np.concatenate([(A.T @ residual + pulled).ravel(), residual.sum(axis=0)])
        return value + 0.5 * float(np.sum(V * pulled)), gradient

    first = np.concatenate([np.zeros(A.shape[1] * q), constant])
    if begin is not None:
        W, b = begin
        first = np.concatenate([(factor.T @ W).ravel(), b + mean @ W])
    found = minimize_smooth(loss, first, max_iter=_STEPS, tol=_TOL)
    W = inverse.T @ found.x[:-q].reshape(-1, q)
    return W, found.x[-q:] - mean @ W if math.isfinite(found.value) else constant
