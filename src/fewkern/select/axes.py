"""Linear stages on features: principal axes (FVS-PCA) and discriminant axes (FVS-LDA)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fewkern.arrays.linalg import class_sums
from fewkern.arrays.namespace import Array, device, eps, namespace
from fewkern.core.expansion import KernelBasis
from fewkern.core.samples import Population, Samples, with_indicators
from fewkern.core.scores import ClassScores
from fewkern.core.statistics import Statistics, feature_statistics

# Least within-class variance, beside a total variance of one, that an inverse is built on.
_LEAST_RELATIVE_VARIANCE = 1e-10


@dataclass(frozen=True)
class Axes:
    """Scores ``(z - mean) W`` of every sample, by falling ``values``."""

    W: Array
    mean: Array
    values: Array
    """Eigenvalues: sums of squared scores (PCA), or between- over total scatter, the "inertia" (LDA)."""
    points: Array | None = None
    """A point for every class, ``(n_classes, n_components)``, for discriminant axes. Ridge regression of the samples on
    the points of their classes gives the axes, so its leave-one-out values are scores of samples left out."""


@dataclass(frozen=True)
class Spread:
    """Features about their mean: their principal directions, and their sums over every class."""

    mean: Array
    s: Array
    """Singular values of the centered features, at their numerical rank: the roots of the sums of squares."""
    V: Array
    """Right singular vectors, one per column."""
    weight: Array
    """Sum of the weights."""
    masses: Array
    """Sum of the weights of every class."""
    class_sums: Array
    """Weighted sums of the centered features over every class, ``(n_classes, L)``."""

    @classmethod
    def of(cls, Z: Array, samples: Samples) -> Spread:
        """From features in memory; their products are never formed, which would square the rounding."""
        xp, w = namespace(Z), samples.weights
        mean = (w @ Z) / xp.sum(w)
        centered = Z - mean
        _, s, Vt = xp.linalg.svd(xp.sqrt(w)[:, None] * centered, full_matrices=False)
        rank = int(xp.sum(xp.astype(s > max(Z.shape) * eps(Z) * s[0], xp.int64)))
        codes = xp.zeros_like(samples.rows) if samples.codes is None else samples.codes
        n_classes = max(1, samples.n_classes)
        masses = class_sums(w[:, None], codes, n_classes)[:, 0]
        sums = class_sums(w[:, None] * centered, codes, n_classes)
        return cls(mean, s[:rank], Vt[:rank, :].T, xp.sum(w), masses, sums)

    @classmethod
    def of_sums(cls, found: Statistics) -> Spread:
        """From sums over rows whose targets were indicators of the classes."""
        xp = namespace(found.gram)
        values, vectors = xp.linalg.eigh(found.scatter)
        # in descending order; eigenvalues below the rounding of the sums are dropped
        values, vectors = xp.flip(values), xp.flip(vectors, axis=1)
        rank = int(xp.sum(xp.astype(values > found.gram.shape[0] * eps(values) * values[0], xp.int64)))
        return cls(
            found.mean,
            xp.sqrt(values[:rank]),
            vectors[:, :rank],
            found.weight,
            found.cross[0, :],
            found.centered_cross.T,
        )


def spread_of(population: Population, basis: KernelBasis, Z: Array) -> Spread:
    """Features of all rows about their mean; ``Z`` are those of the sample, which may be all."""
    if population.n == population.sample.n:
        return Spread.of(Z, population.sample)
    spread = Spread.of_sums(feature_statistics(population, basis, with_indicators))
    # sums are in double precision, models in that of the samples
    xp = namespace(Z)
    return Spread(*(xp.astype(getattr(spread, field.name), Z.dtype, copy=False) for field in fields(spread)))


def column_signs(W: Array) -> Array:
    """Sign of the entry of largest size in every column: made positive, the same input gives the same axes."""
    xp = namespace(W)
    if 0 in W.shape:
        return xp.ones((W.shape[1],), dtype=W.dtype, device=device(W))
    top = xp.max(xp.where(xp.abs(W) == xp.max(xp.abs(W), axis=0)[None, :], W, xp.full_like(W, -xp.inf)), axis=0)
    return xp.where(top < 0, xp.full_like(top, -1.0), xp.ones_like(top))


def principal_axes(spread: Spread, n_components: int | None = None) -> Axes:
    """Principal axes of the features after exact centering: kernel PCA, when all samples were chosen."""
    s, V = spread.s, spread.V
    keep = s.shape[0] if n_components is None else min(n_components, s.shape[0])
    return Axes(V[:, :keep] * column_signs(V[:, :keep]), spread.mean, s[:keep] ** 2)


def discriminant_axes(spread: Spread, ridge: float = 0.0, n_components: int | None = None) -> Axes:
    r"""Axes that maximize :math:`v^T B v / (v^T T v + \text{ridge}\,|v|^2)`, scaled to unit variance.

    ``B`` is the between-class and ``T = V diag(s^2) V'`` the total scatter, both as sums. The axes follow from an
    eigenproblem in the class means of the coordinates on ``V``, divided by :math:`\sqrt{s^2 + \text{ridge}}`: neither
    scatter matrix is inverted. At most ``n_classes - 1`` axes exist.

    The axes are also those of a regression on "optimal scores" of the classes (T. Hastie, R. Tibshirani and A. Buja,
    "Flexible discriminant analysis by optimal scoring", JASA 89 (1994)): the left singular vectors of the same
    eigenproblem, in the right length, are the ``points``.
    """
    xp, s, V, counts = namespace(spread.V), spread.s, spread.V, spread.masses
    n_classes = int(counts.shape[0])
    scale = xp.sqrt(s * s + ridge)
    scaled_means = (spread.class_sums @ (V / scale[None, :])) / xp.sqrt(counts)[:, None]
    P, t, Rt = xp.linalg.svd(scaled_means, full_matrices=False)
    keep = min(n_classes - 1, t.shape[0], n_components if n_components is not None else n_classes)
    W = (V / scale[None, :]) @ Rt[:keep, :].T
    on_axes = s[:, None] * (V.T @ W)
    deviation = xp.sqrt(xp.sum(on_axes * on_axes, axis=0) / spread.weight)
    length = column_signs(W) / xp.where(deviation > 0, deviation, xp.ones_like(deviation))
    # no regression target on an axis on which the class means coincide
    separated = t[:keep] > eps(V) * max(V.shape)
    points = P[:, :keep] / xp.sqrt(counts)[:, None] / xp.where(separated, t[:keep], xp.full_like(deviation, xp.inf))
    return Axes(W * length, spread.mean, t[:keep] ** 2, points * length)


def gaussian_classes(spread: Spread, axes: Axes) -> tuple[Array, Array, Array]:
    """Shares, means on the axes, and common covariance of Gaussian classes."""
    means = spread.class_sums @ axes.W / spread.masses[:, None]
    on_axes = spread.s[:, None] * (spread.V.T @ axes.W)
    between = means.T @ (spread.masses[:, None] * means)
    covariance = (on_axes.T @ on_axes - between) / spread.weight
    return spread.masses / namespace(means).sum(spread.masses), means, covariance


def gaussian_scores(priors: Array, means: Array, covariance: Array) -> ClassScores:
    """Log joint probabilities of Gaussian classes by Bayes' rule, up to a term that all classes share."""
    xp = namespace(means)
    # a class that sits in one point has no spread: a ridge of the unit round-off keeps the inverse
    ridge = max(_LEAST_RELATIVE_VARIANCE, eps(means))
    identity = xp.eye(covariance.shape[0], dtype=means.dtype, device=device(means))
    half = means @ xp.linalg.inv(covariance + ridge * identity)
    weights, offset = half.T, xp.log(priors) - xp.sum(half * means, axis=1) / 2
    if priors.shape[0] == 2:
        weights, offset = weights[:, 1:] - weights[:, :1], offset[1:] - offset[:1]
    return ClassScores(weights, offset)
