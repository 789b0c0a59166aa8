r"""Fisher's discriminant as least squares: the targets, and the way from values to classes (methods K8).

With :math:`\pi_c = N_c / N`, the class points :math:`\theta_c` satisfy :math:`\sum_c \pi_c \theta_c = 0` and
:math:`\sum_c \pi_c \theta_c \theta_c^T = I`; a sample of class ``c`` has the target :math:`s\,\theta_c`,
:math:`s = \prod_c \pi_c^{-1/C}`. For two classes these are the :math:`+N/N_1, -N/N_2` of the KFD paper.

The least-squares posterior of a sample with the discriminant ``f`` is :math:`\pi_c (1 + \theta_c^T f / s)`. Its largest
entry is the midpoint rule of the paper, but its probabilities are shrunk. So a multinomial logistic regression on the
discriminant of held-out samples takes its place, in the directions in which that discriminant rises with the targets.
The leave-one-out values of a nearly constant function do the opposite, because a free bias moves away from the sample
that is left out, and a link fitted to them would reverse every decision. One temperature then calibrates the
probabilities, which the penalty of the regression shrinks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.optimize import fit_logistic, indicators
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores
from fewkern.select.leave_one_out import HeldOut
from fewkern.select.uncertainty import calibrate

# Ridge on the slopes of the logistic regression, for unit weight and targets of unit scale.
_RIDGE_PER_WEIGHT = 1e-3
# Relative gain per step at which it ends: the slopes are few, and probabilities should not depend on the order of rows.
_POSTERIOR_TOL = 1e-15


@dataclass(frozen=True)
class FisherTargets:
    """Class points of the discriminant regression."""

    priors: Array
    """Weighted class shares, ``(C,)``."""
    theta: Array
    """``(C, C - 1)``."""
    scale: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.priors.shape[0])

    @property
    def relative_scale(self) -> float:
        """Scale of the targets over that of equal classes."""
        return self.scale / self.n_classes

    def rows(self, codes: Array) -> Array:
        """Targets ``(n, C - 1)`` of samples with class numbers ``codes``."""
        return self.scale * self.theta[codes]

    def posteriors(self, F: Array) -> Array:
        r"""The least-squares posteriors :math:`\pi_c (1 + \theta_c^T f / s)` of discriminants; they add up to one.

        For two classes the larger one is that on its side of the paper's threshold :math:`\tfrac N2 (1/N_1 - 1/N_2)`.
        """
        return self.priors * (1.0 + F @ self.theta.T / self.scale)

    def values(self, posteriors: Array) -> Array:
        """The discriminant ``f`` whose :meth:`posteriors` are given."""
        return self.scale * (posteriors @ self.theta)

    def midpoint_rule(self) -> ClassScores:
        """Scores whose probabilities are the :meth:`posteriors`."""
        M, c = (self.priors[:, None] * self.theta / self.scale).T, self.priors
        if self.n_classes == 2:  # the difference of the two posteriors, which add up to one
            M, c = M[:, 1:] - M[:, :1], c[1:] - c[:1]
        return ClassScores(M, c, shares=(0.0, 1.0))


def fisher_targets(codes: Array, n_classes: int, weights: Array) -> FisherTargets:
    """Targets for class numbers ``codes`` with positive sample ``weights``; every class must occur.

    Column ``j`` of ``theta`` sets class ``j + 1`` against all earlier ones (any rotation gives the same model), so
    for two classes the second is the positive one.
    """
    mass = np.bincount(codes, weights=weights, minlength=n_classes)
    share = (mass / np.sum(mass)).tolist()
    if min(share) <= 0:
        raise ValueError(f"fisher_targets: class number {share.index(min(share))} has no sample.")
    theta = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        before = sum(share[:j])
        for c in range(j):
            theta[c, j - 1] = -math.sqrt(share[j] / (before * (before + share[j])))
        theta[j, j - 1] = math.sqrt(before / (share[j] * (before + share[j])))
    scale = math.exp(-sum(math.log(p) for p in share) / n_classes)
    return FisherTargets(np.array(share, dtype=weights.dtype), theta.astype(weights.dtype), scale)


def fit_posterior(held_out: HeldOut | None, targets: FisherTargets) -> tuple[ClassScores, bool]:
    r"""Decision scores and probabilities that never reverse the order of the discriminant.

    Parameters
    ----------
    held_out : HeldOut or None
        Samples with classes, and their discriminant ``(n, C - 1)`` by models fitted without them. None gives the
        midpoint rule.
    targets : FisherTargets

    Returns
    -------
    scores : ClassScores
        From the discriminant to one score for two classes (positive: the second), to one per class otherwise.
    calibrated : bool
        Whether the scores were fitted to held-out values; otherwise they are the midpoint rule.
    """
    U = None if held_out is None else _rising_directions(held_out.values, held_out.samples, targets)
    if held_out is None or U is None or U.shape[1] == 0:
        return targets.midpoint_rule(), False
    # Paper: the threshold is the midpoint of the targets. We: where held-out samples have equal posteriors, because a
    # penalty shrinks the values and moves the best threshold away from the midpoint; it gives probabilities, too.
    samples = held_out.samples
    assert samples.codes is not None
    # in units of the targets the ridge means the same for every problem
    F = held_out.values @ U / targets.scale
    # two classes have one slope b there, which stands for (-b, b) / 2 here: its square is half as large
    ridge = _RIDGE_PER_WEIGHT / 2 if targets.n_classes == 2 else _RIDGE_PER_WEIGHT
    own = indicators(samples.codes, targets.n_classes)
    slopes, offset = fit_logistic(F.astype(np.float64), own, samples.weights, ridge, tol=_POSTERIOR_TOL)
    if targets.n_classes > 2:
        offset = offset - offset.mean()
    scores = ClassScores(U @ slopes.astype(F.dtype) / targets.scale, offset.astype(F.dtype))
    return calibrate(scores, held_out), True


def _rising_directions(held_out: Array, samples: Samples, targets: FisherTargets) -> Array:
    """Orthonormal directions ``(C - 1, r)`` in which held-out values rise with the targets; the identity if all do.

    They belong to the positive eigenvalues of the symmetric part of the covariance of the two.
    """
    mean = (samples.weights @ held_out) / np.sum(samples.weights)
    A = (samples.weights[:, None] * (held_out - mean)).T @ targets.rows(samples.codes)
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return np.eye(len(values), dtype=held_out.dtype) if np.all(values > 0) else vectors[:, values > 0]
