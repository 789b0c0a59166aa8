"""Mixtures of a few round normal kernels by likelihood (FCR-ML): EM with a floor on the bandwidths, and their size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.folds import Fold
from fewkern.arrays.linalg import logsumexp
from fewkern.arrays.namespace import Array, asarray_like, namespace
from fewkern.core.path import Path, Stop, smallest_within
from fewkern.density.choice import paired_errors
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture, ScaledRows

__all__ = [
    "EMFit",
    "Entries",
    "LikelihoodPath",
    "Responsibilities",
    "SizeChoice",
    "choose_size",
    "expectation_maximization",
    "forward_likelihood",
    "log_likelihood",
]

# Bandwidths at which a kernel may enter, in units of the reference bandwidth.
_WIDTHS = (1.0, 1.5, 2.0, 2.6, 3.6, 5.2, 7.5)
# Number of candidates that are tried as centers in one entry.
_CENTERS = 300
# EM after every entry: iterations at most, and the rise of the mean log density below which they end.
_ITERATIONS, _LEAST_RISE = 50, 1e-4
# Growth ends after this many steps without a better held-out likelihood.
_PATIENCE = 4
# A kernel that raises the mean log density by this much, two per cent of the density, is worth its parameters.
_LARGEST_COST = 0.02
# exp(300) is beyond what a log-likelihood can tell from infinity, and it does not overflow.
_LARGEST_RATIO = 300.0
# A kernel with less than this part of the samples stays where it is.
_NO_MASS = 1e-300


def _log_terms(X: Array, mixture: RoundMixture) -> Array:
    """``log(g_j K(x_i, c_j, s_j))``."""
    return squared_distances(X, mixture.centers) * (-0.5 / mixture.widths**2) + _levels(mixture, int(X.shape[1]))


def _levels(mixture: RoundMixture, m: int) -> Array:
    """Logarithm of every kernel times its weight at its center."""
    xp, g = namespace(mixture.weights), mixture.weights
    g = xp.maximum(g, xp.full_like(g, float(xp.finfo(g.dtype).smallest_normal)))
    return xp.log(g) - m * xp.log(mixture.widths) - 0.5 * m * math.log(2 * math.pi)


def _log_density(Z: Array, mixture: RoundMixture) -> Array:
    """Log density at the rows of ``Z``, in row blocks."""
    xp = namespace(Z)
    blocks = row_blocks(int(Z.shape[0]), int(mixture.weights.shape[0]), like=Z)
    return xp.concat([logsumexp(_log_terms(Z[rows, :], mixture), axis=1) for rows in blocks])


def log_likelihood(problem: DensityProblem, mixture: RoundMixture) -> float:
    """Weighted mean of the log density at the samples."""
    return float(problem.w @ _log_density(problem.Z, mixture))


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
        xp, mixture = namespace(Z), self.mixture
        D = squared_distances(Z, mixture.centers)
        terms = D * (-0.5 / mixture.widths**2) + _levels(mixture, int(Z.shape[1]))
        log_p = logsumexp(terms, axis=1)
        R = xp.exp(terms - log_p[:, None]) * w[:, None]
        return Responsibilities(xp.sum(R, axis=0), R.T @ Z, xp.sum(R * D, axis=0), w @ log_p)


def _iterate(rows: ScaledRows, mixture: RoundMixture, floor: float) -> tuple[RoundMixture, float]:
    """One EM iteration, and the mean log density before it."""
    s, m = mixture.centers.shape
    sums = rows.total(_Expectation(mixture), s + m)
    xp, mass = namespace(sums.mass), sums.mass
    alive = mass > _NO_MASS
    safe = xp.where(alive, mass, xp.ones_like(mass))
    centers = xp.where(alive[:, None], sums.first / safe[:, None], mixture.centers)
    moved = xp.sum((centers - mixture.centers) ** 2, axis=1)
    variance = xp.maximum(sums.second / safe - moved, xp.zeros_like(mass)) / m
    widths = xp.maximum(xp.sqrt(variance), xp.full_like(variance, floor))
    better = RoundMixture(centers, xp.where(alive, widths, mixture.widths), mass / xp.sum(mass))
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
        self.centers = self.screen.Z[:: math.ceil(self.screen.n / _CENTERS), :]
        self.D = squared_distances(self.screen.Z, self.centers)

    def best(self, mixture: RoundMixture, floor: float) -> RoundMixture:
        r"""The mixture with the kernel whose entry raises :math:`\sum_i w_i \log[(1-a) y(x_i) + a K]` most."""
        xp, m, w = namespace(self.D), self.screen.dim, self.screen.w
        log_y = _log_density(self.screen.Z, mixture)
        k = int(mixture.weights.shape[0]) + 1
        found: list[tuple[float, int, float, float]] = []
        for width in sorted({max(factor * self.screen.unit, floor) for factor in _WIDTHS}):
            log_k = self.D * (-0.5 / width**2) - 0.5 * m * math.log(2 * math.pi * width**2)
            ratio = xp.exp(xp.clip(log_k - log_y[:, None], None, _LARGEST_RATIO))
            for share in (1.0 / k, 0.5 / k, 0.2):
                gain = w @ xp.log((1.0 - share) + share * ratio)
                j = int(xp.argmax(gain))
                found.append((float(gain[j]), j, width, share))
        _, j, width, share = max(found, key=lambda entry: entry[0])
        number = self.screen.numbers
        return RoundMixture(
            xp.concat([mixture.centers, self.centers[j : j + 1, :]], axis=0),
            xp.concat([mixture.widths, number([width])]),
            xp.concat([(1.0 - share) * mixture.weights, number([share])]),
        )


class _Growth:
    """A mixture that grows by one kernel at a time, from a single normal law."""

    def __init__(self, problem: DensityProblem, floor: float) -> None:
        self.problem, self.floor = problem, floor * problem.unit
        self.entries = Entries(problem)
        one = problem.numbers([1.0])
        mean = (problem.w @ problem.Z)[None, :]
        self.mixture = self._improved(RoundMixture(mean, one * max(problem.spread, self.floor), one))

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
    def trace(self) -> Path:
        """BIC of every number of kernels."""
        like = self.models[0].weights
        error = asarray_like(list(self.bic), like, dtype=like.dtype)
        sizes = tuple(float(k + 1) for k in range(len(self.bic)))
        spread = namespace(error).zeros_like(error)
        return Path({"n_vectors": sizes}, error, spread, (self.selected,), measure="Bayesian information criterion")


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
    growth, size = _Growth(problem, floor), problem.effective_size
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


@dataclass(frozen=True)
class SizeChoice:
    """A number of kernels by held-out likelihood."""

    trace: Path
    stop: Stop

    @property
    def size(self) -> int:
        """The number that was taken."""
        return int(self.trace.setting["n_vectors"])


def choose_size(
    problem: DensityProblem,
    folds: list[Fold],
    *,
    floor: float = 1.5,
    max_vectors: int = 20,
    tolerance: float = 0.5,
    step: Callable[[int], None] = lambda _: None,
) -> SizeChoice:
    """The smallest number of kernels within ``tolerance`` standard errors of the best held-out likelihood.

    The standard error is that of the difference to the best size. Where it is less than what the further kernels cost,
    their cost takes its place: ``(m + 2) / N`` for a kernel, the number of its parameters over that of the samples, and
    0.02 at most.
    A mixture grows in every fold, all of them by one kernel at a time, until the held-out likelihood of all folds
    together, less that cost, has not risen for a few steps.
    """
    xp = namespace(problem.w)
    parts = [(_Growth(problem.part(train), floor), problem.part(test)) for train, test in folds]
    w = xp.concat([problem.share(test) * part.w for (_, part), (_, test) in zip(parts, folds)])
    w = w / xp.sum(w)
    limit = min(max_vectors, *(growth.problem.n for growth, _ in parts))
    terms: list[Array] = []
    stop = Stop.LIMIT
    cost = min((problem.dim + 2) / problem.effective_size, _LARGEST_COST)
    best, since = math.inf, 0
    while True:
        terms.append(xp.concat([-_log_density(part.Z, growth.mixture) for growth, part in parts]))
        step(len(terms))
        value = float(w @ terms[-1]) + tolerance * cost * len(terms)
        best, since = (value, 0) if value < best else (best, since + 1)
        if len(terms) >= limit:
            break
        if since >= _PATIENCE:
            stop = Stop.ERROR
            break
        for growth, _ in parts:
            growth.grow()
    error, spread = paired_errors(terms, w)
    sizes = [float(k + 1) for k in range(len(terms))]
    further = int(xp.argmin(error)) + 1.0 - problem.numbers(sizes)
    chosen = smallest_within(error, problem.numbers(sizes), tolerance * xp.maximum(spread, cost * further))
    trace = Path({"n_vectors": tuple(sizes)}, error, spread, chosen, measure="minus the held-out log density")
    return SizeChoice(trace, stop)
