"""Mixtures of a few isotropic normal kernels by likelihood (FCR-ML): EM with a floor on the bandwidths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import logsumexp
from fewkern.arrays.namespace import Array
from fewkern.core.path import Path, Stop
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import MAX_LOG_KERNEL, DensityProblem, RoundMixture, ScaledRows

__all__ = [
    "EMFit",
    "Entries",
    "Growth",
    "LikelihoodPath",
    "Responsibilities",
    "expectation_maximization",
    "forward_likelihood",
    "log_density",
    "log_likelihood",
]

# Bandwidths at which a kernel may enter, in Parzen bandwidths.
_ENTRY_PARZEN_BANDWIDTHS = (1.0, 1.5, 2.0, 2.6, 3.6, 5.2, 7.5)
# Weights at which the k-th kernel may enter: two multiples of 1 / k, and one that does not depend on k.
_ENTRY_EQUAL_SHARES, _ENTRY_SHARE = (1.0, 0.5), 0.2
# Candidates tried as centers of one entry.
_MAX_ENTRY_CENTERS = 300
# EM after every entry: the largest number of iterations, and the least rise of the mean log density.
_ITERATIONS, _LEAST_RISE = 50, 1e-4


def _log_terms(D: Array, mixture: RoundMixture, m: int) -> Array:
    """``log(g_j K(x_i, c_j, s_j))`` from the squared distances of samples and centers."""
    g = np.maximum(mixture.weights, np.finfo(float).smallest_normal)
    levels = np.log(g) - m * np.log(mixture.widths) - 0.5 * m * math.log(2 * math.pi)
    return D * (-0.5 / mixture.widths**2) + levels


def log_density(Z: Array, mixture: RoundMixture) -> Array:
    """Log density at the rows of ``Z``, in row blocks."""
    blocks = row_blocks(len(Z), len(mixture.weights))
    return np.concatenate(
        [
            logsumexp(_log_terms(squared_distances(Z[rows], mixture.centers), mixture, Z.shape[1]), axis=1)
            for rows in blocks
        ]
    )


def log_likelihood(problem: DensityProblem, mixture: RoundMixture) -> float:
    """Weighted mean of the log density at the samples."""
    return float(problem.w @ log_density(problem.Z, mixture))


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


@dataclass(frozen=True)
class _Expectation:
    """The E step, of a block of samples."""

    mixture: RoundMixture

    def __call__(self, Z: Array, w: Array) -> Responsibilities:
        D = squared_distances(Z, self.mixture.centers)
        terms = _log_terms(D, self.mixture, Z.shape[1])
        log_p = logsumexp(terms, axis=1)
        R = np.exp(terms - log_p[:, None]) * w[:, None]
        return Responsibilities(np.sum(R, axis=0), R.T @ Z, np.sum(R * D, axis=0), w @ log_p)


def _iterate(rows: ScaledRows, mixture: RoundMixture, floor: float) -> tuple[RoundMixture, float]:
    """One EM iteration, and the mean log density before it."""
    s, m = mixture.centers.shape
    sums = rows.total(_Expectation(mixture), s + m)
    mass = sums.mass
    alive = mass > np.finfo(float).tiny  # the others keep their centers and bandwidths
    safe = np.where(alive, mass, 1.0)
    centers = np.where(alive[:, None], sums.first / safe[:, None], mixture.centers)
    moved = np.sum((centers - mixture.centers) ** 2, axis=1)
    variance = np.maximum(sums.second / safe - moved, 0.0) / m
    widths = np.maximum(np.sqrt(variance), floor)
    better = RoundMixture(centers, np.where(alive, widths, mixture.widths), mass / np.sum(mass))
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
    rows: ScaledRows, start: RoundMixture, floor: float, iterations: int, least_rise: float = 0.0
) -> EMFit:
    r"""EM iterations on weights, centers and bandwidths, every bandwidth kept at ``floor`` or above.

    The floor is what keeps the likelihood bounded; the step is still a maximization, now under
    :math:`\sigma_j \ge \sigma_{\min}`, so the likelihood never falls. They end after ``iterations``, or once the mean
    log density rises by less than ``least_rise``.

    Notes
    -----
    ``O(n s m)`` per iteration, in row blocks; one pass over the rows for each.
    """
    mixture, last, rise = start, -math.inf, math.inf
    for count in range(iterations):
        better, value = _iterate(rows, mixture, floor)
        rise = value - last
        if rise < least_rise:
            return EMFit(mixture, count, rise, Stop.CONVERGED)
        mixture, last = better, value
    return EMFit(mixture, iterations, rise, Stop.MAX_ITER)


class Entries:
    """Where a kernel may enter: distances from candidates (rows) to those of them that may become centers (columns)."""

    def __init__(self, problem: DensityProblem) -> None:
        self.screen = problem.part(problem.candidates)
        self.centers = self.screen.Z[:: math.ceil(self.screen.n / _MAX_ENTRY_CENTERS)]
        self.D = squared_distances(self.screen.Z, self.centers)

    def best(self, mixture: RoundMixture, floor: float) -> RoundMixture:
        r"""The mixture with the kernel whose entry raises :math:`\sum_i w_i \log[(1-a) y(x_i) + a K]` most."""
        m, w = self.screen.dim, self.screen.w
        log_y = log_density(self.screen.Z, mixture)
        k = len(mixture.weights) + 1
        shares = (*(multiple / k for multiple in _ENTRY_EQUAL_SHARES), _ENTRY_SHARE)
        found: list[tuple[float, int, float, float]] = []
        for width in sorted({max(factor * self.screen.unit, floor) for factor in _ENTRY_PARZEN_BANDWIDTHS}):
            log_k = self.D * (-0.5 / width**2) - 0.5 * m * math.log(2 * math.pi * width**2)
            ratio = np.exp(np.minimum(log_k - log_y[:, None], MAX_LOG_KERNEL))
            for share in shares:
                gain = w @ np.log((1.0 - share) + share * ratio)
                j = int(np.argmax(gain))
                found.append((float(gain[j]), j, width, share))
        _, j, width, share = max(found, key=lambda entry: entry[0])
        return RoundMixture(
            np.vstack([mixture.centers, self.centers[j]]),
            np.append(mixture.widths, width),
            np.append((1.0 - share) * mixture.weights, share),
        )


class Growth:
    """A mixture that grows by one kernel at a time, from a single normal law."""

    def __init__(self, problem: DensityProblem, floor: float) -> None:
        self.problem, self.floor = problem, floor * problem.unit
        self.entries = Entries(problem)
        mean = (problem.w @ problem.Z)[None, :]
        width = max(problem.spread, self.floor)
        self.mixture = self._improved(RoundMixture(mean, np.array([width]), np.ones(1)))

    def grow(self) -> RoundMixture:
        """Let the best kernel enter, then EM on all of them."""
        self.mixture = self._improved(self.entries.best(self.mixture, self.floor))
        return self.mixture

    def _improved(self, start: RoundMixture) -> RoundMixture:
        return expectation_maximization(self.problem, start, self.floor, _ITERATIONS, _LEAST_RISE).mixture


@dataclass(frozen=True)
class LikelihoodPath:
    """One model per number of kernels, and its BIC."""

    models: tuple[RoundMixture, ...]
    bic: tuple[float, ...]
    stop: Stop

    @property
    def selected(self) -> int:
        """Position of the model of least BIC."""
        return min(range(len(self.bic)), key=self.bic.__getitem__)

    @property
    def path(self) -> Path:
        """BIC of every number of kernels."""
        error, sizes = np.array(self.bic), tuple(float(k + 1) for k in range(len(self.bic)))
        measure = "Bayesian information criterion"
        return Path({"n_vectors": sizes}, error, np.zeros_like(error), (self.selected,), measure=measure)


def forward_likelihood(
    problem: DensityProblem,
    *,
    floor: float = 1.5,
    max_vectors: int = 20,
    patience: int | None = 3,
    step: Callable[[int], None] = lambda _: None,
) -> LikelihoodPath:
    """FCR-ML: a greedy mixture of round normal kernels; no random start.

    Parameters
    ----------
    problem : DensityProblem
        A kernel may enter at a candidate (300 of them at most), and its entry is scored on the candidates. EM then
        sees all samples.
    floor : float
        Least bandwidth, in units of the problem's.
    max_vectors : int
    patience : int or None
        The path ends after this many steps without a better BIC; None never ends it for that.
    step : function
        Called with the number of kernels.

    Notes
    -----
    ``O(c)`` times 300 per entry and ``O(n s m)`` per EM iteration. BIC counts ``s (m + 2) - 1`` parameters.
    """
    growth, size = Growth(problem, floor), problem.effective_size
    models: list[RoundMixture] = [growth.mixture]
    bic: list[float] = []
    while True:
        parameters = len(models) * (problem.dim + 2) - 1
        bic.append(-2.0 * size * log_likelihood(problem, models[-1]) + parameters * math.log(size))
        path = LikelihoodPath(tuple(models), tuple(bic), Stop.LIMIT)
        if len(models) >= min(max_vectors, problem.n):
            return path
        if patience is not None and len(bic) - 1 - path.selected >= patience:
            return replace(path, stop=Stop.ERROR)
        step(len(models))
        models.append(growth.grow())
