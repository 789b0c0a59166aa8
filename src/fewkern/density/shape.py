r"""One shape for all kernels: a linear map, learned by EM, after which the kernels are round.

All kernels of a mixture share the covariance :math:`S` up to their bandwidths, :math:`\sigma_j^2 S` with
:math:`|S| = 1`. Given centers and bandwidths, the best :math:`S` is in closed form: the sum of the kernels'
scatter matrices, each over its :math:`\sigma_j^2`. Samples times :math:`S^{-1/2}` have round kernels, so the rest of a
fit does not know about it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from fewkern.arrays.linalg import logsumexp
from fewkern.arrays.namespace import Array
from fewkern.arrays.sampling import Fold
from fewkern.density.likelihood import (
    ENTRY_ITERATIONS,
    LEAST_ENTRY_RISE,
    Growth,
    first_folds,
    held_out_log_densities,
    iterated,
    log_density,
    log_terms,
)
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture, paired_errors

Kind = TypeVar("Kind", bound=Growth)

# Samples that the shape is learned on, and of those that are held out to compare it with none; drawn where there are
# more.
SHAPE_ROWS, _HELD_OUT_ROWS = 2000, 400
# Kernels of the mixtures that are compared: a dozen find the shape that twenty find.
_MOST_KERNELS = 12
# One held-out sample counts for at most this difference of log densities: an outlier must not decide.
_MAX_LOG_DENSITY_GAP = 10.0
# Floor of the bandwidths, in Silverman bandwidths: the shape needs no other choice of a bandwidth.
_FLOOR_IN_SILVERMANS = 0.5
# The least variance of a feature inside the kernels, over the largest: where values repeat, it would be zero.
_LEAST_RELATIVE_VARIANCE = 1e-4


def covariance_ridge(S: Array, size: float) -> Array:
    r"""``S`` with :math:`\max((m/n)^3, 10^{-6})` of its diagonal added, and no variance far below the largest.

    Eigenvalues from ``n`` samples are wrong by a part :math:`m/n` of themselves, however small they are: many samples
    need no ridge, however close the features are to a plane. The least ridge is that of ``GaussianMixture``.
    """
    m = len(S)
    variances = np.maximum(np.diagonal(S), _LEAST_RELATIVE_VARIANCE * np.max(np.diagonal(S)))
    part = min(max((m / size) ** 3, 1e-6), 1.0)
    return S + np.diag(variances * (1.0 + part) - np.diagonal(S))


def _root(S: Array) -> tuple[Array, Array]:
    """Symmetric square root of ``S``, scaled to determinant one, and its inverse."""
    values, vectors = np.linalg.eigh(S)
    # rounding may leave a variance of next to none below zero
    roots = np.sqrt(np.maximum(values, max(np.finfo(float).eps * values[-1], np.finfo(float).tiny)))
    roots = roots / math.exp(float(np.mean(np.log(roots))))
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T


class ShapedGrowth(Growth):
    """A mixture that grows by one kernel at a time, with one shape for all of them; the first is that of the samples.

    ``Z`` of its problem, and its mixture, are in coordinates in which the kernels are round: those of the given problem
    times ``to_round``, which changes with every step and has determinant one.
    """

    def __init__(self, problem: DensityProblem, floor: float) -> None:
        self.given = problem
        gap = problem.Z - problem.w @ problem.Z
        self.from_round, self.to_round = self._regular(gap.T @ (problem.w[:, None] * gap))
        turned = replace(problem, Z=problem.Z @ self.to_round)
        # the unit follows the samples: without correlations they are as wide in all directions
        super().__init__(replace(turned, unit=problem.unit * turned.spread / problem.spread), floor)

    def _regular(self, S: Array) -> tuple[Array, Array]:
        return _root(covariance_ridge(S, self.given.effective_size))

    def log_density(self, Z: Array) -> Array:
        """Log density at samples in the coordinates of the given problem."""
        return log_density(Z @ self.to_round, self.mixture)

    def _improved(self, start: RoundMixture) -> RoundMixture:
        mixture = iterated(self._iterate, start, ENTRY_ITERATIONS, LEAST_ENTRY_RISE).mixture
        self._place(self.problem.Z)
        return mixture

    def _iterate(self, mixture: RoundMixture) -> tuple[RoundMixture, float]:
        """One EM iteration: the shape given the bandwidths, then the bandwidths given the shape."""
        Y, w, m = self.problem.Z, self.problem.w, self.problem.dim
        terms = log_terms(Y, mixture)
        log_p = logsumexp(terms, axis=1)
        R = np.exp(terms - log_p[:, None]) * w[:, None]
        mass = np.sum(R, axis=0)
        safe = np.where(mass > np.finfo(float).tiny, mass, 1.0)
        centers = np.where(mass[:, None] > np.finfo(float).tiny, (R.T @ Y) / safe[:, None], mixture.centers)
        narrow = 1.0 / mixture.bandwidths**2
        scatter = Y.T @ ((R @ narrow)[:, None] * Y) - centers.T @ ((mass * narrow)[:, None] * centers)
        # in the coordinates of the given problem, whose axes the ridge is tied to
        from_round, to_round = self._regular(self.from_round @ scatter @ self.from_round)
        turn = self.from_round @ to_round
        self.from_round, self.to_round = from_round, to_round
        Y, centers = Y @ turn, centers @ turn
        self.problem = replace(self.problem, Z=Y)
        variance = np.sum(R * squared_distances(Y, centers), axis=0) / safe / m
        bandwidths = np.maximum(np.sqrt(variance), self.floor)
        return RoundMixture(centers, bandwidths, mass / np.sum(mass)), float(w @ log_p)


def _start(problem: DensityProblem, kind: type[Kind]) -> Kind:
    """A mixture of one kernel; the floor of the bandwidths is their unit."""
    return kind(replace(problem, unit=_FLOOR_IN_SILVERMANS * problem.silverman), 1.0)


def choose_shape(problem: DensityProblem, folds: list[Fold], max_vectors: int) -> Array | None:
    r"""The map :math:`S^{-1/2}`, symmetric and of determinant one; None where held-out samples are as well without it.

    Mixtures with and without a shape are grown on the same folds; the shape must be better by a standard error of the
    difference. It is then learned on all samples, by a mixture of the best number of kernels.

    Notes
    -----
    ``O(n m (s + m))`` per EM iteration, for mixtures of 1 to 12 kernels.
    """
    folds = first_folds(folds, _HELD_OUT_ROWS)
    w = problem.held_out_weights(folds)
    limit = min(max_vectors, _MOST_KERNELS)
    plain, shaped = (
        np.stack(list(held_out_log_densities(problem, folds, partial(_start, kind=kind), limit)))
        for kind in (Growth, ShapedGrowth)
    )
    gaps = np.clip(shaped - plain[int(np.argmax(plain @ w))], -_MAX_LOG_DENSITY_GAP, _MAX_LOG_DENSITY_GAP)
    best = int(np.argmax(gaps @ w))
    error = float(np.max(paired_errors([gaps[best], np.zeros_like(w)], w)[1]))
    if not float(gaps[best] @ w) > error:
        return None
    growth = _start(problem, ShapedGrowth)
    for _ in range(best):
        growth.grow()
    return growth.to_round
