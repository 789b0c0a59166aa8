"""Mixtures of a few isotropic normal kernels by likelihood (FCR-ML): EM with a floor on the bandwidths."""

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
from fewkern.arrays.sampling import Fold
from fewkern.core.path import Path, Stop, smallest_within
from fewkern.density.edges import exponents, folded, image_sums, most_images
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import MAX_LOG_KERNEL, AllRows, DensityProblem, RoundMixture, paired_errors, size_path

# Bandwidths at which a kernel may enter, in Parzen bandwidths.
_ENTRY_PARZEN_BANDWIDTHS = (1.0, 1.5, 2.0, 2.6, 3.6, 5.2, 7.5)
# Further ones up to this part of the spread of the samples, each twice the one before, and how many at most: where
# values repeat, Parzen's bandwidth is far below the width of any cluster.
_WIDEST_ENTRY_IN_SPREADS, _MOST_WIDER_ENTRIES = 0.5, 6
# Candidates tried as centers of one entry.
_MAX_ENTRY_CENTERS = 300
# EM after every entry: the largest number of iterations, and the least rise of the mean log density.
ENTRY_ITERATIONS, LEAST_ENTRY_RISE = 50, 1e-4
# Mixtures stop growing after this many sizes without a better BIC, or held-out likelihood.
_BIC_PATIENCE, _HELD_OUT_PATIENCE = 3, 4


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


@dataclass(frozen=True)
class Responsibilities:
    """Sums over samples of their weights times the shares that the kernels have in them; merged by ``+``."""

    mass: Array
    """Of every kernel, ``(s,)``; all masses together are the weight of the samples."""
    first: Array
    """Sums of the samples, ``(s, m)``."""
    second: Array
    """Sums of the squared distances to the centers, ``(s,)``."""
    log_density: Array
    """Sum of the log density."""

    def __add__(self, other: Responsibilities) -> Responsibilities:
        return Responsibilities(
            self.mass + other.mass,
            self.first + other.first,
            self.second + other.second,
            self.log_density + other.log_density,
        )


def _responsibilities(mixture: RoundMixture, Z: Array, w: Array) -> Responsibilities:
    """The E step, of a block of samples."""
    logs = exponents(Z, mixture.centers, mixture.bandwidths, mixture.edges)
    terms = logs + _levels(mixture)
    log_p = logsumexp(terms, axis=1)
    R = np.exp(terms - log_p[:, None]) * w[:, None]
    if mixture.edges:
        first, second = image_sums(Z, R, mixture.centers, mixture.bandwidths, mixture.edges)
    else:
        first, second = R.T @ Z, -2.0 * mixture.bandwidths**2 * np.sum(R * logs, axis=0)
    return Responsibilities(np.sum(R, axis=0), first, second, w @ log_p)


def _iterate(rows: DensityProblem | AllRows, mixture: RoundMixture, floor: float) -> tuple[RoundMixture, float]:
    """One EM iteration, and the mean log density before it."""
    m = mixture.centers.shape[1]
    sums = rows.total(partial(_responsibilities, mixture), _row_elements(mixture) + m)
    mass = sums.mass
    alive = mass > np.finfo(float).tiny  # the others keep their centers and bandwidths
    safe = np.where(alive, mass, 1.0)
    centers = np.where(alive[:, None], sums.first / safe[:, None], mixture.centers)
    moved = np.sum((centers - mixture.centers) ** 2, axis=1)
    variance = np.maximum(sums.second / safe - moved, 0.0) / m
    bandwidths = np.maximum(np.sqrt(variance), floor)
    bandwidths = np.where(alive, bandwidths, mixture.bandwidths)
    centers = folded(centers, mixture.edges)
    better = RoundMixture(centers, bandwidths, mass / np.sum(mass), edges=mixture.edges)
    return better, float(sums.log_density)


@dataclass(frozen=True)
class EMFit:
    """A mixture after EM iterations, and how they ended."""

    mixture: RoundMixture
    n_iter: int
    rise: float
    """Of the mean log density in the last iteration."""
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
    for count in range(iterations):
        better, value = iterate(mixture)
        rise = value - last
        if rise < least_rise:
            return EMFit(mixture, count, rise, Stop.CONVERGED)
        mixture, last = better, value
    return EMFit(mixture, iterations, rise, Stop.MAX_ITER)


class Growth:
    """A mixture that grows by one kernel at a time, from a single normal law.

    A kernel may enter at a candidate of the ``problem`` (300 of them at most), and its entry is scored on the
    candidates; EM then sees all samples. The ``floor`` of the bandwidths is in units of the problem's.
    """

    def __init__(self, problem: DensityProblem, floor: float) -> None:
        self.problem, self.floor = problem, floor * problem.unit
        self._place(problem.Z)
        mean = (problem.w @ problem.Z)[None, :]
        bandwidth = max(problem.spread, self.floor)
        self.mixture = self._improved(RoundMixture(mean, np.array([bandwidth]), np.ones(1), edges=problem.edges))

    def _place(self, Z: Array) -> None:
        """The candidates among ``Z``, and what every kernel that may enter at them needs."""
        self.screen = replace(self.problem, Z=Z).part(self.problem.candidates)
        self.centers = self.screen.Z[:: math.ceil(self.screen.n / _MAX_ENTRY_CENTERS)]
        bandwidths = sorted({max(bandwidth, self.floor) for bandwidth in _entry_bandwidths(self.screen)})
        self.D = squared_distances(self.screen.Z, self.centers)
        self.entries: dict[float, Array | None] = dict.fromkeys(bandwidths)
        if self.problem.edges:  # sums over images are computed once
            same = np.ones(len(self.centers))
            for bandwidth in bandwidths:
                logs = exponents(self.screen.Z, self.centers, bandwidth * same, self.problem.edges)
                self.entries[bandwidth] = logs

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


def _entry_bandwidths(problem: DensityProblem) -> list[float]:
    """Bandwidths at which a kernel may enter."""
    found = [factor * problem.unit for factor in _ENTRY_PARZEN_BANDWIDTHS]
    widest = _WIDEST_ENTRY_IN_SPREADS * problem.spread
    for _ in range(_MOST_WIDER_ENTRIES):
        if 2.0 * found[-1] <= widest:
            found.append(2.0 * found[-1])
    return found


def grown(problem: DensityProblem, floor: float, size: int) -> RoundMixture:
    """FCR-ML of a given size: a greedy mixture of round normal kernels; no random start."""
    growth = Growth(problem, floor)
    for _ in range(min(size, problem.n) - 1):
        growth.grow()
    return growth.mixture


def first_folds(folds: list[Fold], rows: int) -> list[Fold]:
    """The first folds that hold out as many ``rows``; all where they hold out fewer."""
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


def size_by_bic(
    problem: DensityProblem, floor: float, max_vectors: int, step: Step = lambda _: None
) -> tuple[Path, Stop]:
    """The number of kernels of least BIC, which counts ``s (m + 2) - 1`` parameters.

    The path ends after three steps without a better BIC. ``step`` is called with the number of kernels.

    Notes
    -----
    ``O(c)`` times 300 per entry and ``O(n s m)`` per EM iteration.
    """
    rows, n = range(problem.n), problem.effective_size
    bic, stop = np.zeros(0), Stop.LIMIT
    for log_p in held_out_log_densities(problem, [(rows, rows)], partial(Growth, floor=floor), max_vectors):
        parameters = (len(bic) + 1) * (problem.dim + 2) - 1
        bic = np.append(bic, parameters * math.log(n) - 2.0 * n * float(problem.w @ log_p))
        step(len(bic))
        if len(bic) - 1 - int(np.argmin(bic)) >= _BIC_PATIENCE:
            stop = Stop.ERROR
            break
    return size_path(bic, int(np.argmin(bic)), "Bayesian information criterion"), stop


def choose_size(
    problem: DensityProblem,
    folds: list[Fold],
    *,
    floor: float,
    max_vectors: int,
    tolerance: float,
    step: Step = lambda _: None,
) -> tuple[Path, Stop]:
    """The smallest number of kernels within ``tolerance`` standard errors of the best held-out likelihood.

    The standard error is that of the difference to the best size, or the cost of the further kernels where that is
    larger: ``(m + 2) / N`` per kernel, its parameters over the samples, and at most 0.02, because a gain of 2% in
    density is worth any number of parameters.

    The mixtures grow until their held-out likelihood less that cost has not risen for four steps.
    """
    w = problem.held_out_weights(folds)
    cost = min((problem.dim + 2) / problem.effective_size, 0.02)
    terms: list[Array] = []
    penalized, stop = np.zeros(0), Stop.LIMIT
    for log_p in held_out_log_densities(problem, folds, partial(Growth, floor=floor), max_vectors):
        terms.append(-log_p)
        step(len(terms))
        penalized = np.append(penalized, float(w @ terms[-1]) + tolerance * cost * len(terms))
        if len(terms) - 1 - int(np.argmin(penalized)) >= _HELD_OUT_PATIENCE:
            stop = Stop.ERROR
            break
    error, spread = paired_errors(terms, w)
    sizes = np.arange(1.0, len(error) + 1)
    further = sizes[int(np.argmin(error))] - sizes
    (chosen,) = smallest_within(error, sizes, tolerance * np.maximum(spread, cost * further))
    return size_path(error, chosen, "minus the held-out log density", spread), stop
