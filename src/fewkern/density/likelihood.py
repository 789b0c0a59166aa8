r"""Mixtures of a few isotropic normal kernels by likelihood (FCR-ML): EM with a floor on the bandwidths.

All kernels may share a shape: their covariances are :math:`\sigma_j^2 S` with :math:`|S| = 1`. Given centers and
bandwidths, the best :math:`S` is in closed form: the sum of the kernels' scatter matrices, each over its
:math:`\sigma_j^2`. Samples times :math:`S^{-1/2}` have round kernels, so the rest of a fit does not know about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import logsumexp
from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import Step
from fewkern.arrays.sampling import Fold, plain_folds
from fewkern.core.path import Path, Stop, smallest_within
from fewkern.density.edges import exponents, folded, image_sums, most_images
from fewkern.density.problem import (
    MAX_LOG_KERNEL,
    AllRows,
    ArraySums,
    DensityProblem,
    RoundMixture,
    paired_errors,
    size_path,
    squared_distances,
)

# Bandwidths at which a kernel may enter, in Parzen bandwidths.
_ENTRY_PARZEN_BANDWIDTHS = (1.0, 1.5, 2.0, 2.6, 3.6, 5.2, 7.5)
# Further ones up to this fraction of the spread of the samples, each twice the one before, and how many at most: where
# values repeat, Parzen's bandwidth is far below the width of any cluster.
_WIDEST_ENTRY_IN_SPREADS, _MOST_WIDER_ENTRIES = 0.5, 6
# Candidates tried as centers of one entry.
_MAX_ENTRY_CENTERS = 300
# EM after every entry: the largest number of iterations, and the least rise of the mean log density.
ENTRY_ITERATIONS, LEAST_ENTRY_RISE = 50, 1e-4
# Samples that the shape is learned on, and of those that are held out to compare it with none; drawn where there are
# more.
SHAPE_ROWS, _SHAPE_HELD_OUT_ROWS = 2000, 400


def log_terms(Z: Array, mixture: RoundMixture) -> Array:
    """``log(g_j K(x_i, c_j, s_j))`` for the rows of ``Z``."""
    return exponents(Z, mixture.centers, mixture.bandwidths, mixture.edges) + _levels(mixture)


def _levels(mixture: RoundMixture) -> Array:
    m, g = mixture.centers.shape[1], np.maximum(mixture.weights, np.finfo(float).smallest_normal)
    return np.log(g) - m * np.log(mixture.bandwidths) - 0.5 * m * math.log(2 * math.pi)


def log_density(Z: Array, mixture: RoundMixture) -> Array:
    """Log density at the rows of ``Z``, in row blocks."""
    blocks = row_blocks(len(Z), _row_elements(mixture))
    return np.concatenate([logsumexp(log_terms(Z[rows], mixture), axis=1) for rows in blocks])


def _row_elements(mixture: RoundMixture) -> int:
    return len(mixture.weights) * most_images(mixture.edges, mixture.bandwidths)


def _responsibilities(mixture: RoundMixture, Z: Array, w: Array) -> ArraySums:
    """The E step, of a block of samples: sums of their weights times the shares that the kernels have in them.

    Of the shares alone ``(s,)``, which together are the weight of the samples; of the samples ``(s, m)``; of their
    squared distances to the centers ``(s,)``; and the sum of the log density.
    """
    logs = exponents(Z, mixture.centers, mixture.bandwidths, mixture.edges)
    terms = logs + _levels(mixture)
    log_p = logsumexp(terms, axis=1)
    R = np.exp(terms - log_p[:, None]) * w[:, None]
    if mixture.edges:
        first, second = image_sums(Z, R, mixture.centers, mixture.bandwidths, mixture.edges)
    else:
        first, second = R.T @ Z, -2.0 * mixture.bandwidths**2 * np.sum(R * logs, axis=0)
    return ArraySums((np.sum(R, axis=0), first, second, w @ log_p))


def _iterate(rows: DensityProblem | AllRows, mixture: RoundMixture, floor: float) -> tuple[RoundMixture, float]:
    """One EM iteration, and the mean log density before it."""
    m = mixture.centers.shape[1]
    mass, first, second, log_p = rows.total(partial(_responsibilities, mixture), _row_elements(mixture) + m)
    alive = mass > np.finfo(float).tiny  # the others keep their centers and bandwidths
    safe = np.where(alive, mass, 1.0)
    centers = np.where(alive[:, None], first / safe[:, None], mixture.centers)
    moved = np.sum((centers - mixture.centers) ** 2, axis=1)
    variance = np.maximum(second / safe - moved, 0.0) / m
    bandwidths = np.maximum(np.sqrt(variance), floor)
    bandwidths = np.where(alive, bandwidths, mixture.bandwidths)
    centers = folded(centers, mixture.edges)
    return RoundMixture(centers, bandwidths, mass / np.sum(mass), edges=mixture.edges), float(log_p)


@dataclass(frozen=True)
class EMFit:
    """A mixture after EM iterations, and how they ended."""

    mixture: RoundMixture
    n_iter: int
    rise: float
    """Rise of the mean log density in the last iteration."""
    stop: Stop
    """CONVERGED or MAX_ITER."""


def expectation_maximization(
    rows: DensityProblem | AllRows, start: RoundMixture, floor: float, iterations: int, least_rise: float = 0.0
) -> EMFit:
    r"""EM iterations on weights, centers and bandwidths, every bandwidth kept at ``floor`` or above.

    The floor is what keeps the likelihood bounded; the step is still a maximization, now under
    :math:`\sigma_j \ge \sigma_{\min}`, so the likelihood never falls. They end after ``iterations``, or once the mean
    log density rises by less than ``least_rise``.

    Notes
    -----
    ``O(n s m)`` per iteration, in row blocks; one pass over the rows for each.
    """
    return iterated(lambda mixture: _iterate(rows, mixture, floor), start, iterations, least_rise)


def iterated(
    iterate: Callable[[RoundMixture], tuple[RoundMixture, float]],
    start: RoundMixture,
    iterations: int,
    least_rise: float,
) -> EMFit:
    """The loop of EM; ``iterate`` gives the next mixture, and the mean log density before it."""
    mixture, last, rise = start, -math.inf, math.inf
    for done in range(iterations):
        better, value = iterate(mixture)
        rise = value - last
        if rise < least_rise:
            return EMFit(mixture, done, rise, Stop.CONVERGED)
        mixture, last = better, value
    return EMFit(mixture, iterations, rise, Stop.MAX_ITER)


class Growth:
    """A mixture that grows by one kernel at a time, from a single normal kernel.

    A kernel may enter at a candidate of the ``problem`` (300 of them at most), and its entry is scored on the
    candidates; EM then sees all samples. The ``floor`` of the bandwidths is in units of the problem's.
    """

    def __init__(self, problem: DensityProblem, floor: float) -> None:
        self.problem, self.floor = problem, floor * problem.unit
        self._screen()
        mean, bandwidth = (problem.w @ problem.Z)[None, :], np.array([max(problem.spread, self.floor)])
        self.mixture = self._improved(RoundMixture(mean, bandwidth, np.ones(1), edges=problem.edges))

    def _screen(self) -> None:
        """The candidates, and what every kernel that may enter at them needs."""
        self.screen = self.problem.part(self.problem.candidates)
        self.centers = self.screen.Z[:: math.ceil(self.screen.n / _MAX_ENTRY_CENTERS)]
        found = [factor * self.screen.unit for factor in _ENTRY_PARZEN_BANDWIDTHS]
        wider = [2.0**k * found[-1] for k in range(1, _MOST_WIDER_ENTRIES + 1)]
        found += [bandwidth for bandwidth in wider if bandwidth <= _WIDEST_ENTRY_IN_SPREADS * self.screen.spread]
        self.D = squared_distances(self.screen.Z, self.centers)
        self.entries: dict[float, Array | None] = dict.fromkeys(sorted({max(one, self.floor) for one in found}))
        if self.problem.edges:  # sums over images are computed once
            for bandwidth in self.entries:
                same = np.full(len(self.centers), bandwidth)
                self.entries[bandwidth] = exponents(self.screen.Z, self.centers, same, self.problem.edges)

    def log_density(self, Z: Array) -> Array:
        """Log density at other samples."""
        return log_density(Z, self.mixture)

    def grow(self) -> None:
        """Let the best kernel enter, then EM on all of them."""
        self.mixture = self._improved(self.entered())

    def _improved(self, start: RoundMixture) -> RoundMixture:
        return expectation_maximization(self.problem, start, self.floor, ENTRY_ITERATIONS, LEAST_ENTRY_RISE).mixture

    def entered(self) -> RoundMixture:
        r"""The mixture with the kernel whose entry raises :math:`\sum_i w_i \log[(1-a) y(x_i) + a K]` most."""
        mixture, w = self.mixture, self.screen.w
        log_y = log_density(self.screen.Z, mixture)
        k = len(mixture.weights) + 1
        found: list[tuple[float, int, float, float]] = []
        for bandwidth, folded_logs in self.entries.items():
            logs = self.D * (-0.5 / bandwidth**2) if folded_logs is None else folded_logs
            log_k = logs - 0.5 * self.screen.dim * math.log(2 * math.pi * bandwidth**2)
            ratio = np.exp(np.minimum(log_k - log_y[:, None], MAX_LOG_KERNEL))
            for share in (1.0 / k, 0.5 / k, 0.2):
                gain = w @ np.log((1.0 - share) + share * ratio)
                j = int(np.argmax(gain))
                found.append((float(gain[j]), j, bandwidth, share))
        _, j, bandwidth, share = max(found, key=lambda entry: entry[0])
        return RoundMixture(
            np.vstack([mixture.centers, self.centers[j]]),
            np.append(mixture.bandwidths, bandwidth),
            np.append((1.0 - share) * mixture.weights, share),
            edges=mixture.edges,
        )


def grown(problem: DensityProblem, floor: float, size: int) -> RoundMixture:
    """FCR-ML of a given size: a greedy mixture of round normal kernels; no random start."""
    growth = Growth(problem, floor)
    for _ in range(min(size, problem.n) - 1):
        growth.grow()
    return growth.mixture


def first_folds(folds: list[Fold], rows: int) -> list[Fold]:
    """The first folds that together hold out at least ``rows`` samples; all folds where they hold out fewer."""
    held = np.cumsum([len(test) for _, test in folds])
    return folds[: 1 + int(np.searchsorted(held, rows))]


def held_out_log_densities(
    problem: DensityProblem, folds: list[Fold], start: Callable[[DensityProblem], Growth], limit: int
) -> Iterator[Array]:
    """Log density of the held-out samples, fold after fold, for mixtures of 1, 2, ... kernels, at most ``limit``.

    The mixtures of all folds grow together.
    """
    parts = [(start(problem.part(train)), problem.Z[list(test)]) for train, test in folds]
    for size in range(min(limit, *(growth.problem.n for growth, _ in parts))):
        if size:
            for growth, _ in parts:
                growth.grow()
        yield np.concatenate([growth.log_density(Z) for growth, Z in parts])


def _while_better(scores: Iterator[float], patience: int, step: Step) -> tuple[Array, Stop]:
    """The scores of 1, 2, ... kernels up to ``patience`` sizes after the least one, and why they ended."""
    found: list[float] = []
    for score in scores:
        found.append(score)
        step(len(found))
        if len(found) - 1 - found.index(min(found)) >= patience:
            return np.array(found), Stop.ERROR
    return np.array(found), Stop.LIMIT


def choose_size(
    problem: DensityProblem,
    folds: list[Fold],
    *,
    floor: float,
    max_vectors: int,
    tolerance: float = 0.0,
    step: Step = lambda _: None,
) -> tuple[Path, Stop]:
    """The smallest number of kernels within ``tolerance`` standard errors of the best held-out likelihood.

    The standard error is that of the difference to the best size, or the cost of the further kernels where that is
    larger: ``(m + 2) / N`` per kernel, its parameters over the samples, and at most 0.02, because a gain of 2% in
    density is worth any number of parameters. As many folds are used as hold out 4,000 samples. Without folds, the size
    is that of least BIC, which counts ``s (m + 2) - 1`` parameters.

    The mixtures grow until their held-out likelihood less that cost has not risen for four steps, or BIC not fallen for
    three. ``step`` is called with the number of kernels.

    Notes
    -----
    ``O(c)`` times 300 per entry and ``O(n s m)`` per EM iteration, in every fold.
    """
    start = partial(Growth, floor=floor)
    if not folds:
        rows, n = range(problem.n), problem.effective_size
        every = enumerate(held_out_log_densities(problem, [(rows, rows)], start, max_vectors), 1)
        parameters = problem.dim + 2
        scores = ((s * parameters - 1) * math.log(n) - 2.0 * n * float(problem.w @ log_p) for s, log_p in every)
        bic, stop = _while_better(scores, 3, step)
        return size_path(bic, int(np.argmin(bic)), "Bayesian information criterion"), stop
    folds = first_folds(folds, 4000)
    w = problem.held_out_weights(folds)
    cost = min((problem.dim + 2) / problem.effective_size, 0.02)
    terms: list[Array] = []

    def penalized() -> Iterator[float]:
        for log_p in held_out_log_densities(problem, folds, start, max_vectors):
            terms.append(-log_p)
            yield float(w @ terms[-1]) + tolerance * cost * len(terms)

    _, stop = _while_better(penalized(), 4, step)
    error, spread = paired_errors(terms, w)
    sizes = np.arange(1.0, len(error) + 1)
    further = sizes[int(np.argmin(error))] - sizes
    (chosen,) = smallest_within(error, sizes, tolerance * np.maximum(spread, cost * further))
    return size_path(error, chosen, "minus the held-out log density", spread), stop


def covariance_ridge(S: Array, size: float) -> Array:
    r"""``S`` with :math:`\max((m/n)^3, 10^{-6})` of its diagonal added, and no variance far below the largest.

    Eigenvalues from ``n`` samples have a relative error of :math:`m/n`, however small they are: many samples
    need no ridge, however close the features are to a plane. The least ridge is that of ``GaussianMixture``.
    """
    # a least variance inside the kernels: where values of a feature repeat, it would be zero
    variances = np.maximum(np.diagonal(S), 1e-4 * np.max(np.diagonal(S)))
    part = min(max((len(S) / size) ** 3, 1e-6), 1.0)
    return S + np.diag(variances * (1.0 + part) - np.diagonal(S))


def _regular_root(S: Array, size: float) -> tuple[Array, Array]:
    """Symmetric square root of ``S`` with its ridge, scaled to determinant one, and its inverse."""
    values, vectors = np.linalg.eigh(covariance_ridge(S, size))
    # rounding may make a tiny variance negative
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
        self.from_round, self.to_round = _regular_root(gap.T @ (problem.w[:, None] * gap), problem.effective_size)
        turned = replace(problem, Z=problem.Z @ self.to_round)
        # the unit follows the samples: without correlations they are as wide in all directions
        super().__init__(replace(turned, unit=problem.unit * turned.spread / problem.spread), floor)

    def log_density(self, Z: Array) -> Array:
        """Log density at samples in the coordinates of the given problem."""
        return log_density(Z @ self.to_round, self.mixture)

    def _improved(self, start: RoundMixture) -> RoundMixture:
        mixture = iterated(self._iterate, start, ENTRY_ITERATIONS, LEAST_ENTRY_RISE).mixture
        self._screen()
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
        from_round, to_round = _regular_root(self.from_round @ scatter @ self.from_round, self.given.effective_size)
        turn = self.from_round @ to_round
        self.from_round, self.to_round = from_round, to_round
        Y, centers = Y @ turn, centers @ turn
        self.problem = replace(self.problem, Z=Y)
        variance = np.sum(R * squared_distances(Y, centers), axis=0) / safe / m
        bandwidths = np.maximum(np.sqrt(variance), self.floor)
        return RoundMixture(centers, bandwidths, mass / np.sum(mass)), float(w @ log_p)


def _grown_by_silverman(kind: type[Growth], problem: DensityProblem) -> Growth:
    """A mixture of one kernel; half of Silverman's bandwidth is the floor of the bandwidths, and their unit."""
    return kind(replace(problem, unit=0.5 * problem.silverman), 1.0)


def choose_shape(problem: DensityProblem, max_vectors: int) -> Array | None:
    r"""The map :math:`S^{-1/2}`, symmetric and of determinant one; None where held-out samples are as well without it.

    Mixtures with and without a shape are grown on the same folds; the shape must be better by a standard error of the
    difference. It is then learned on all samples, by a mixture of the best number of kernels. No mixture has more than
    twelve: they find the shape that twenty find.

    Notes
    -----
    ``O(n m (s + m))`` per EM iteration.
    """
    folds = first_folds(plain_folds(problem.n, 5), _SHAPE_HELD_OUT_ROWS)
    w = problem.held_out_weights(folds)
    limit = min(max_vectors, 12)
    plain, shaped = (
        np.stack(list(held_out_log_densities(problem, folds, partial(_grown_by_silverman, kind), limit)))
        for kind in (Growth, ShapedGrowth)
    )
    # one held-out sample counts for a factor of exp(10) at most: an outlier must not decide
    gaps = np.clip(shaped - plain[int(np.argmax(plain @ w))], -10.0, 10.0)
    best = int(np.argmax(gaps @ w))
    error = float(np.max(paired_errors([gaps[best], np.zeros_like(w)], w)[1]))
    if not float(gaps[best] @ w) > error:
        return None
    growth = _grown_by_silverman(ShapedGrowth, problem)
    for _ in range(best):
        growth.grow()
    return growth.to_round  # type: ignore[attr-defined]
