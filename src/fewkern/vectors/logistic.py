r"""From least squares to logistic regression on the same vectors, as far as held-out samples ask for it (methods F15).

Least squares on class indicators can hide a class that lies between others, the more so the more classes there are,
and its values stay near those of the indicators however far a sample is from the border: one factor makes them
probabilities that are timid there, or rash near the border. With :math:`F` the values of the least-squares model,
:math:`a` their temperature and :math:`Q` the features of its vectors, standardized over the samples and with a column
of ones, the scores

.. math:: S = a F + Q D, \qquad \min_D \sum_i w_i \Big[\log \sum_c e^{S_{ic}} - S_{i,y_i}\Big] + \tfrac\rho2 \|D\|_F^2

are least squares for a large penalty :math:`\rho` and logistic regression for a small one. Two classes have one score,
as everywhere. The path is followed from large to small, in every fold. Of the models that make no more held-out errors
than least squares, the one with the greatest held-out likelihood is taken if that is clearly greater.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fewkern.backend.linalg import logsumexp, one_hot, solve_shifted, solve_triangular
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.optimize import host_vector, minimize_smooth
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.core.samples import Samples
from fewkern.core.scores import class_values
from fewkern.vectors.calibration import fit_temperature
from fewkern.vectors.leave_one_out import HeldOut, solve

__all__ = [
    "PENALTIES",
    "Fold",
    "Folds",
    "Logistic",
    "Part",
    "Stage",
    "choose_logistic",
    "logistic_path",
    "refitted_folds",
]

# Penalties on the path, around the default of logistic regression elsewhere. More of them are no better on 14 sets.
PENALTIES = (100.0, 10.0, 3.0, 1.0)
# The search for one penalty starts at the solution for the one before: a few steps are enough.
_MAX_ITER, _TOL = 50, 1e-5
# Newton's steps end when no score changes by more: the next change would be the square of it.
_SETTLED = 1e-4
# Standard errors of the paired difference by which the likelihood must be greater than that of least squares.
_PROOF = 0.5
# Folds, where the model comes without its own.
_FOLDS = 5


@dataclass(frozen=True)
class Part:
    """Samples, what a least-squares model says of them, and the standardized features of its vectors."""

    samples: Samples
    values: Array
    """``F``, shape ``(n, n_classes)``, or ``(n, 1)`` for two classes."""
    features: Array
    """``Q``, shape ``(n, m + 1)``."""

    def take(self, rows: Array) -> Part:
        """The part at the positions ``rows``."""
        return Part(self.samples.take(rows), take_rows(self.values, rows), take_rows(self.features, rows))


@dataclass(frozen=True)
class Stage:
    """A least-squares model, and how its vectors become standardized features."""

    model: KernelExpansion
    basis: KernelBasis
    """On the vectors of the model."""
    factor: Array
    """Lower triangular ``R'`` with ``Q = [1 Z] R^{-1}``."""

    @classmethod
    def of(cls, model: KernelExpansion, basis: KernelBasis, samples: Samples) -> Stage:
        """For a model that was fitted to the samples."""
        Z, w = basis.features(samples.X), samples.weights / namespace(samples.weights).sum(samples.weights)
        xp = namespace(Z)
        mean = w @ Z
        spread = xp.sqrt(w @ (Z - mean) ** 2)
        spread = xp.where(spread > 0, spread, xp.ones_like(spread))
        one = xp.ones_like(mean[:1])
        # (Z - mean) / spread = [1 Z] R^{-1} with R = [1 mean; 0 diag(spread)]
        factor = xp.concat([one, spread])[:, None] * xp.eye(1 + mean.shape[0], dtype=Z.dtype, device=device(Z))
        factor[1:, 0] = mean
        return cls(model, basis, factor)

    def part(self, samples: Samples) -> Part:
        """What the model says of samples, and their features ``Q = [1 Z] R^{-1}``."""
        Q = solve_triangular(self.factor, _design(self.basis, samples.X).T).T
        return Part(samples, self.model(samples.X), Q)

    def moved(self, temperature: float, D: Array) -> KernelExpansion:
        """The scores ``a F + Q D`` as one sum of kernels."""
        B = solve_triangular(self.factor, D, transposed=True)
        step, model = self.basis.expand(B[1:, :], B[0, :]), self.model
        coef, offset = temperature * model.coef + step.coef, temperature * model.offset + step.offset
        return replace(model, coef=coef, offset=offset)


@dataclass(frozen=True)
class Fold:
    """Samples that a model was fitted to, and others, by the same model."""

    fitted: Part
    judged: Part


@dataclass(frozen=True)
class Folds:
    """Models of one kind, each fitted without some samples."""

    judged: Samples
    """The samples that are judged in all folds, one after the other."""
    folds: tuple[Fold, ...]


@dataclass(frozen=True)
class Logistic:
    """Logistic regression on the vectors of a model."""

    expansion: KernelExpansion
    """One score per class, or one for two classes."""
    penalty: float
    held_out: HeldOut
    """Scores of samples by models that were fitted without them."""


def refitted_folds(stage: Stage, samples: Samples, ridge: float) -> Folds | None:
    """Least squares on the vectors of a stage, refitted without the samples of every fold; None without folds.

    Fair where the choice of the vectors did not look at classes.
    """
    splits = samples.folds(_FOLDS)
    if not splits:
        return None
    whole, Z = stage.part(samples), stage.basis.features(samples.X)
    found, held = [], []
    for train, test in splits:
        fit, judge = (asarray_like(rows, samples.rows, dtype=samples.rows.dtype) for rows in (train, test))
        solution = solve(take_rows(Z, fit), take_rows(samples.targets, fit), ridge, take_rows(samples.weights, fit))
        again = replace(whole, values=Z @ solution.W + solution.offset)
        found.append(Fold(again.take(fit), again.take(judge)))
        held.append(judge)
    return Folds(samples.take(namespace(samples.rows).concat(held)), tuple(found))


def choose_logistic(stage: Stage, samples: Samples, folds: Folds, temperature: float) -> Logistic | None:
    """The scores of the penalty with the greatest held-out likelihood, or None where least squares is as good.

    Parameters
    ----------
    stage : Stage
        The least-squares model on all samples.
    samples : Samples
        With classes.
    folds : Folds
        The same kind of model without some of the samples.
    temperature : float
        Of the values of least squares.
    """
    xp = namespace(samples.weights)
    paths = [_judged_path(fold, temperature) for fold in folds.folds]
    held_out = [
        HeldOut(folds.judged, xp.concat([path[k] for path in paths], axis=0)) for k in range(1 + len(PENALTIES))
    ]
    best = _choose(held_out)
    if best == 0:
        return None
    D = logistic_path(stage.part(samples), temperature, PENALTIES[:best])[-1]
    return Logistic(stage.moved(temperature, D), PENALTIES[best - 1], held_out[best])


def _choose(path: Sequence[HeldOut]) -> int:
    """Which model of a path to take; the first is least squares.

    Probabilities are not paid for with decisions: models with more held-out errors than least squares are left out.
    """
    xp, weights = namespace(path[0].values), path[0].samples.weights
    share = weights / xp.sum(weights)
    losses = [_calibrated_loss(one) for one in path]
    no_worse = [k for k, one in enumerate(path) if one.error_rate() <= path[0].error_rate()]
    best = min(no_worse, key=lambda k: float(share @ losses[k]))
    gain = losses[0] - losses[best]
    mean = float(share @ gain)
    return best if mean > _PROOF * math.sqrt(float((share * share) @ (gain - mean) ** 2)) else 0


def logistic_path(part: Part, temperature: float, penalties: Sequence[float]) -> list[Array]:
    """The solutions ``D`` for falling penalties, each from the one before."""
    xp, samples, dtype = namespace(part.values), part.samples, part.values.dtype
    Q, F, w = (xp.astype(one, xp.float64) for one in (part.features, temperature * part.values, samples.weights))
    own, D = one_hot(samples.codes, samples.n_classes, F.dtype), xp.zeros_like(Q.T @ F)
    minimum = _one_score if F.shape[1] == 1 else _score_per_class
    path = []
    for penalty in penalties:
        D = minimum(_Problem(Q, F, own, w, penalty), D)
        path.append(xp.astype(D, dtype))
    return path


@dataclass(frozen=True)
class _Problem:
    """What the likelihood is made of; ``own`` is one in the column of a sample's class."""

    Q: Array
    F: Array
    own: Array
    weights: Array
    penalty: float


def _score_per_class(problem: _Problem, D: Array) -> Array:
    """The minimum from ``D`` on, by L-BFGS-B."""
    xp, Q = namespace(D), problem.Q

    def loss(numbers: Any) -> tuple[float, Any]:
        D = xp.reshape(asarray_like(numbers, Q), shape)
        scores = problem.F + Q @ D
        log_p = scores - logsumexp(scores, axis=1)[:, None]
        value = problem.penalty / 2 * float(xp.sum(D * D))
        value -= float(problem.weights @ xp.sum(problem.own * log_p, axis=1))
        pull = problem.weights[:, None] * (xp.exp(log_p) - problem.own)
        return value, host_vector(Q.T @ pull + problem.penalty * D)

    shape = D.shape
    found = minimize_smooth(loss, host_vector(D), max_iter=_MAX_ITER, tol=_TOL)
    return xp.reshape(asarray_like(found.x, Q), shape)


def _one_score(problem: _Problem, D: Array) -> Array:
    """The same for two classes, by Newton's steps: a few small systems, where L-BFGS-B would take tens of steps."""
    xp, Q = namespace(D), problem.Q
    w, second = problem.weights[:, None], problem.own[:, 1:]
    for _ in range(_MAX_ITER):
        p = 0.5 + 0.5 * xp.tanh(0.5 * (problem.F + Q @ D))
        step = solve_shifted(
            Q.T @ ((w * p * (1.0 - p)) * Q), Q.T @ (w * (p - second)) + problem.penalty * D, problem.penalty
        )
        # where no score changes by more than one, the curvature changes so little that the loss falls
        largest = float(xp.max(xp.abs(Q @ step)))
        D = D - step / max(1.0, largest)
        if largest <= _SETTLED:
            break
    return D


def _design(basis: KernelBasis, X: Array) -> Array:
    Z = basis.features(X)
    xp = namespace(Z)
    return xp.concat([xp.ones_like(Z[:, :1]), Z], axis=1)


def _judged_path(fold: Fold, temperature: float) -> list[Array]:
    """Scores of the samples that are judged: by least squares, then by every solution on the path."""
    start = temperature * fold.judged.values
    return [start, *(start + fold.judged.features @ D for D in logistic_path(fold.fitted, temperature, PENALTIES))]


def _calibrated_loss(held_out: HeldOut) -> Array:
    """Negative log likelihood of every sample, at the best temperature."""
    samples, scores = held_out.samples, class_values(held_out.values)
    scores = fit_temperature(scores, samples.codes, samples.weights) * scores
    own = one_hot(samples.codes, samples.n_classes, scores.dtype)
    return logsumexp(scores, axis=1) - namespace(scores).sum(own * scores, axis=1)
