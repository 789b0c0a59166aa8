r"""From the discriminant to class scores and probabilities.

================ =====================================================================================
rule             posterior of a sample with the discriminant ``f``
================ =====================================================================================
"least_squares"  :math:`\pi_c (1 + \theta_c^T f / s)`; the paper's midpoint threshold, shrunk probabilities
"gaussian"       Gaussian classes with a common covariance: the threshold that is best for such scores
"logistic"       multinomial logistic regression on ``f``
================ =====================================================================================

The last two are fitted to what the machine says of samples it has not seen, in the directions in which it rises with
the targets. The leave-one-out values of a nearly constant function do the opposite, because a free bias moves away from
the sample that is left out, and a link fitted to them would reverse every decision. One factor then makes the
probabilities as sure as the decisions are right: a penalty makes a regression timid, and Gaussian classes with long
tails are not Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from fewkern.arrays.linalg import class_sums, solve_shifted
from fewkern.arrays.logistic import logistic_regression
from fewkern.arrays.namespace import Array, device, namespace, take_rows
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores
from fewkern.fisher.targets import FisherTargets
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate

__all__ = [
    "AffineScores",
    "PosteriorRule",
    "fit_posterior",
    "gaussian_scores",
    "least_squares_scores",
    "logistic_scores",
]

PosteriorRule = Literal["gaussian", "logistic", "least_squares"]
# A class that the machine fits exactly has no spread; this part of the targets' own scale keeps a covariance
# invertible.
_SPREAD = 1e-6
# Ridge on the slopes of the logistic regression, per unit of weight, for targets of unit scale.
_RIDGE = 1e-3


@dataclass(frozen=True)
class AffineScores:
    """One score per class, ``F weights + offset``."""

    weights: Array
    """``(C - 1, C)``."""
    offset: Array
    """``(C,)``."""

    def __call__(self, F: Array) -> Array:
        return F @ self.weights + self.offset[None, :]

    def with_priors(self, ratio: Array) -> AffineScores:
        """Posteriors, up to a common factor, for priors that are ``ratio`` times as large."""
        return AffineScores(self.weights * ratio[None, :], self.offset * ratio)

    def logarithms(self) -> ClassScores:
        """As class scores whose softmax are the probabilities: for two classes one score, the difference of the two."""
        M, c = self.weights, self.offset
        if int(c.shape[0]) > 2:
            return ClassScores(M, c)
        return ClassScores(M[:, 1:] - M[:, :1], c[1:] - c[:1])

    def shares(self) -> ClassScores:
        """As class scores that are the probabilities themselves, up to a common factor."""
        M, c = self.weights, self.offset
        if int(c.shape[0]) > 2:
            return ClassScores(M, c, shares=(0.0, 1.0))
        # the two values add up to a linear function of their difference, which other priors change
        slope, level = float(M[0, 1] - M[0, 0]), float(c[1] - c[0])
        share = float(M[0, 1] + M[0, 0]) / slope if slope else 0.0
        return replace(self.logarithms(), shares=(share, float(c[0] + c[1]) - share * level))


def least_squares_scores(targets: FisherTargets) -> AffineScores:
    r"""The posteriors :math:`\pi_c (1 + \theta_c^T f / s)`, which sum to one.

    For two classes the larger one is that on its side of the paper's threshold :math:`\tfrac N2 (1/N_1 - 1/N_2)`.
    """
    return AffineScores((targets.priors[:, None] * targets.theta / targets.scale).T, targets.priors)


def gaussian_scores(F: Array, codes: Array, targets: FisherTargets, weights: Array) -> AffineScores:
    """Logarithms, up to a constant, of the posteriors of Gaussian classes of common covariance, fitted to ``F``."""
    xp = namespace(F)
    C = targets.n_classes
    mass = class_sums(weights[:, None], codes, C)
    means = class_sums(F * weights[:, None], codes, C) / mass
    D = F - take_rows(means, codes)
    # Paper: none. We: every class counts alike in the covariance, because a heavy class, whose scores the fit has
    # pressed together, would otherwise make the scores of all classes look certain.
    share = weights / take_rows(mass, codes)[:, 0] / C
    S = (D * share[:, None]).T @ D
    floor = _SPREAD * (float(xp.linalg.trace(S)) / int(S.shape[0]) + targets.scale**2)
    M = solve_shifted(S, means.T, floor)
    return AffineScores(M, xp.log(targets.priors) - xp.sum(means * M.T, axis=1) / 2)


def logistic_scores(F: Array, codes: Array, targets: FisherTargets, weights: Array) -> AffineScores:
    """Multinomial logistic regression on ``F``, with a small ridge on the slopes."""
    # in units of the targets the ridge means the same for every problem
    F = F / targets.scale
    slopes, offsets = logistic_regression(F, codes, weights, _RIDGE)
    return AffineScores(slopes / targets.scale, offsets)


@dataclass(frozen=True)
class Posterior:
    """How values of the discriminant become classes and probabilities."""

    scores: ClassScores
    """From the discriminant to one score for two classes (positive: the second), to one per class otherwise."""
    rule: PosteriorRule
    """The rule that was used: "least_squares" where held-out values carry no signal."""


def fit_posterior(
    rule: PosteriorRule, held_out: HeldOut | None, targets: FisherTargets, priors: Array | None = None
) -> Posterior:
    r"""Decision scores and probabilities that never reverse the order of the discriminant.

    Parameters
    ----------
    rule : {"logistic", "gaussian", "least_squares"}
    held_out : HeldOut or None
        Samples with classes, and their discriminant ``(n, C - 1)`` by machines fitted without them; None leaves only
        "least_squares".
    targets : FisherTargets
    priors : array of shape (C,) or None
        With other priors :math:`\pi'` the posteriors are proportional to :math:`\pi'_c p_c / \pi_c`.
    """
    ratio = None if priors is None else priors / targets.priors
    shares = least_squares_scores(targets)
    midpoint = Posterior((shares if ratio is None else shares.with_priors(ratio)).shares(), "least_squares")
    if held_out is None or rule == "least_squares":
        return midpoint
    U = rising_directions(held_out.values, held_out.samples, targets)
    if U.shape[1] == 0:
        return midpoint
    # Paper: the threshold is the midpoint of the targets. We: where held-out samples have equal posteriors, because a
    # penalty shrinks the values and moves the best threshold away from the midpoint; it gives probabilities, too.
    fit = gaussian_scores if rule == "gaussian" else logistic_scores
    samples = held_out.samples
    along = fit(held_out.values @ U, samples.codes, targets, samples.weights)
    scores = calibrate(AffineScores(U @ along.weights, along.offset).logarithms(), held_out)
    return Posterior(scores if ratio is None else scores.with_priors(ratio), rule)


def rising_directions(held_out: Array, samples: Samples, targets: FisherTargets) -> Array:
    """Orthonormal directions ``(C - 1, r)`` in which held-out values rise with the targets; all of them as they are.

    They belong to the positive eigenvalues of the (symmetric) covariance of the two.
    """
    xp = namespace(held_out)
    p = int(held_out.shape[1])
    mean = (samples.weights @ held_out) / xp.sum(samples.weights)
    A = (samples.weights[:, None] * (held_out - mean)).T @ targets.rows(samples.codes)
    values, vectors = xp.linalg.eigh((A + A.T) / 2)
    if bool(xp.all(values > 0)):
        return xp.eye(p, dtype=held_out.dtype, device=device(held_out))
    return xp.take(vectors, xp.nonzero(values > 0)[0], axis=1)
