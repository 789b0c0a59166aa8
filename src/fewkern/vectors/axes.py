"""Linear stages on features: principal axes (FVS-PCA) and discriminant axes (FVS-LDA)."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.backend.linalg import class_sums
from fewkern.backend.namespace import Array, device, eps, namespace
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores

__all__ = ["Axes", "GaussianClasses", "column_signs", "discriminant_axes", "gaussian_classes", "principal_axes"]

# Least within-class variance, beside a total variance of one, that an inverse is built on.
_SMALLEST_SPREAD = 1e-10


@dataclass(frozen=True)
class Axes:
    """Scores ``(z - mean) W`` of every sample, by falling ``values``."""

    W: Array
    mean: Array
    values: Array
    """Eigenvalues: sums of squared scores (PCA), or between- over total scatter, the "inertia" (LDA)."""
    points: Array | None = None
    """Of discriminant axes: a point for every class, ``(n_classes, n_components)``. Ridge regression of the samples on
    the points of their classes gives the axes, so its leave-one-out values are scores of samples left out."""


def _centered_svd(Z: Array, w: Array) -> tuple[Array, Array, Array, Array]:
    """Weighted mean of the rows of ``Z``, and the SVD of what is left, at its numerical rank."""
    xp = namespace(Z)
    mean = (w @ Z) / xp.sum(w)
    U, s, Vt = xp.linalg.svd(xp.sqrt(w)[:, None] * (Z - mean), full_matrices=False)
    top = float(s[0]) if s.shape[0] else 0.0
    rank = int(xp.sum(xp.astype(s > max(Z.shape) * eps(Z) * top, xp.int64)))
    return mean, U[:, :rank], s[:rank], Vt[:rank, :].T


def column_signs(W: Array) -> Array:
    """Sign of the entry of largest size in every column: made positive, the same input gives the same axes."""
    xp = namespace(W)
    if 0 in W.shape:
        return xp.ones((W.shape[1],), dtype=W.dtype, device=device(W))
    top = xp.max(xp.where(xp.abs(W) == xp.max(xp.abs(W), axis=0)[None, :], W, xp.full_like(W, -xp.inf)), axis=0)
    return xp.where(top < 0, xp.full_like(top, -1.0), xp.ones_like(top))


def principal_axes(Z: Array, weights: Array, n_components: int | None = None) -> Axes:
    """Principal axes of the features after exact centering: kernel PCA, when all samples were chosen."""
    mean, _, s, V = _centered_svd(Z, weights)
    keep = s.shape[0] if n_components is None else min(n_components, s.shape[0])
    return Axes(V[:, :keep] * column_signs(V[:, :keep]), mean, s[:keep] ** 2)


def discriminant_axes(Z: Array, samples: Samples, ridge: float = 0.0, n_components: int | None = None) -> Axes:
    r"""Axes that maximize :math:`v^T B v / (v^T T v + \text{ridge}\,|v|^2)`, scaled to unit variance.

    ``B`` is the between-class and ``T`` the total scatter, both as sums. From the SVD ``U diag(s) V'`` of the centered
    features, with :math:`f = s / \sqrt{s^2 + \text{ridge}}`, the axes follow from an eigenproblem in the class means of
    the rows of ``U diag(f)``: neither scatter matrix is inverted. At most ``n_classes - 1`` axes exist.

    The axes are also those of a regression on "optimal scores" of the classes (T. Hastie, R. Tibshirani and A. Buja,
    "Flexible discriminant analysis by optimal scoring", JASA 89 (1994)): the left singular vectors of the same
    eigenproblem, in the right length, are the ``points``.
    """
    xp = namespace(Z)
    w, codes, n_classes = samples.weights, samples.codes, samples.n_classes
    mean, U, s, V = _centered_svd(Z, w)
    scale = xp.sqrt(s * s + ridge)
    counts = class_sums(w[:, None], codes, n_classes)[:, 0]
    # rows of U carry sqrt(w) already; a class mean needs w
    sums = class_sums(xp.sqrt(w)[:, None] * (U * (s / scale)[None, :]), codes, n_classes)
    scaled_means = sums / xp.sqrt(counts)[:, None]
    P, t, Rt = xp.linalg.svd(scaled_means, full_matrices=False)
    keep = min(n_classes - 1, t.shape[0], n_components if n_components is not None else n_classes)
    W = (V / scale[None, :]) @ Rt[:keep, :].T
    scores = (Z - mean) @ W
    deviation = xp.sqrt((w @ (scores * scores)) / xp.sum(w))
    length = column_signs(W) / xp.where(deviation > 0, deviation, xp.ones_like(deviation))
    # an axis on which the class means coincide has nothing to regress on
    told = t[:keep] > eps(Z) * max(Z.shape)
    points = P[:, :keep] / xp.sqrt(counts)[:, None] / xp.where(told, t[:keep], xp.full_like(deviation, xp.inf))
    return Axes(W * length, mean, t[:keep] ** 2, points * length)


@dataclass(frozen=True)
class GaussianClasses:
    """Gaussian classes with a common covariance."""

    priors: Array
    means: Array
    covariance: Array

    def scores(self) -> ClassScores:
        """Log joint probabilities by Bayes' rule, up to a term that all classes share."""
        xp = namespace(self.means)
        # a class that sits in one point has no spread: a ridge of the unit round-off keeps the inverse
        ridge = max(_SMALLEST_SPREAD, eps(self.means))
        identity = xp.eye(self.covariance.shape[0], dtype=self.means.dtype, device=device(self.means))
        half = self.means @ xp.linalg.inv(self.covariance + ridge * identity)
        weights, offset = half.T, xp.log(self.priors) - xp.sum(half * self.means, axis=1) / 2
        if self.priors.shape[0] == 2:
            weights, offset = weights[:, 1:] - weights[:, :1], offset[1:] - offset[:1]
        return ClassScores(weights, offset)


def gaussian_classes(T: Array, samples: Samples) -> GaussianClasses:
    """Means and common covariance of the classes on coordinates ``T``; priors are the class shares."""
    xp, w = namespace(T), samples.weights
    mass = class_sums(w[:, None], samples.codes, samples.n_classes)[:, 0]
    means = class_sums(w[:, None] * T, samples.codes, samples.n_classes) / mass[:, None]
    inside = T - xp.take(means, samples.codes, axis=0)
    covariance = (inside.T * w[None, :]) @ inside / xp.sum(w)
    return GaussianClasses(mass / xp.sum(mass), means, covariance)
