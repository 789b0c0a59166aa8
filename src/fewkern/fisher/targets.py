r"""Fisher's discriminant as least squares: the targets.

With :math:`\pi_c = N_c / N`, the class points :math:`\theta_c` satisfy :math:`\sum_c \pi_c \theta_c = 0` and
:math:`\sum_c \pi_c \theta_c \theta_c^T = I`; a sample of class ``c`` has the target :math:`s\,\theta_c`,
:math:`s = \prod_c \pi_c^{-1/C}`. For two classes these are the :math:`+N/N_1, -N/N_2` of the KFD paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.namespace import Array

__all__ = ["FisherTargets", "fisher_targets"]


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

    def values(self, posteriors: Array) -> Array:
        r"""The discriminant ``f`` whose least-squares posteriors :math:`\pi_c (1 + \theta_c^T f / s)` are given."""
        return self.scale * (posteriors @ self.theta)


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
