"""Mixtures of a few round normal kernels by likelihood: EM with a floor on the widths, and FCR-ML."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fewkern.backend.blocks import row_blocks
from fewkern.backend.linalg import logsumexp
from fewkern.backend.namespace import Array, asarray_like, device, namespace
from fewkern.core.trace import Stop, Trace
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["LikelihoodFit", "best_entry", "expectation_maximization", "forward_likelihood", "log_likelihood"]

# Widths at which a kernel may enter, in units of the reference width.
_WIDTHS = (1.5, 2.0, 2.6, 3.6, 5.2, 7.5)
# exp(300) is beyond what a log-likelihood can tell from infinity, and it does not overflow.
_LARGEST_RATIO = 300.0
# A kernel with less than this part of the samples stays where it is.
_NO_MASS = 1e-300


def _log_terms(X: Array, mixture: RoundMixture) -> Array:
    """``log(g_j K(x_i, c_j, s_j))``."""
    xp = namespace(X)
    m = int(X.shape[1])
    least = xp.full_like(mixture.weights, float(xp.finfo(X.dtype).smallest_normal))
    level = xp.log(xp.maximum(mixture.weights, least)) - m * xp.log(mixture.widths) - 0.5 * m * math.log(2 * math.pi)
    return squared_distances(X, mixture.centers) * (-0.5 / mixture.widths**2) + level


def log_likelihood(problem: DensityProblem, mixture: RoundMixture) -> float:
    """Weighted mean of the log density at the samples, in row blocks."""
    total = 0.0
    for rows in row_blocks(problem.n, int(mixture.weights.shape[0])):
        total += float(problem.w[rows] @ logsumexp(_log_terms(problem.Z[rows, :], mixture), axis=1))
    return total


def _iterate(problem: DensityProblem, mixture: RoundMixture, floor: float) -> RoundMixture:
    """One EM iteration, in row blocks."""
    Z, w, m = problem.Z, problem.w, problem.dim
    xp, s = namespace(Z), int(mixture.weights.shape[0])
    mass = xp.zeros((s,), dtype=Z.dtype, device=device(Z))
    first = xp.zeros((s, m), dtype=Z.dtype, device=device(Z))
    second = xp.zeros((s,), dtype=Z.dtype, device=device(Z))
    for rows in row_blocks(problem.n, s + m):
        terms = _log_terms(Z[rows, :], mixture)
        R = xp.exp(terms - logsumexp(terms, axis=1)[:, None]) * w[rows][:, None]
        mass = mass + xp.sum(R, axis=0)
        first = first + R.T @ Z[rows, :]
        second = second + xp.sum(R * squared_distances(Z[rows, :], mixture.centers), axis=0)
    alive = mass > _NO_MASS
    safe = xp.where(alive, mass, xp.ones_like(mass))
    centers = xp.where(alive[:, None], first / safe[:, None], mixture.centers)
    moved = xp.sum((centers - mixture.centers) ** 2, axis=1)
    variance = xp.maximum(second / safe - moved, xp.zeros_like(mass)) / m
    widths = xp.maximum(xp.sqrt(variance), xp.full_like(variance, floor))
    return RoundMixture(centers, xp.where(alive, widths, mixture.widths), mass / xp.sum(mass))


def expectation_maximization(
    problem: DensityProblem, start: RoundMixture, floor: float, iterations: int
) -> RoundMixture:
    r"""EM iterations on weights, centers and widths, every width kept at ``floor`` or above.

    The floor is what keeps the likelihood bounded; the step is still a maximization, now under
    :math:`\sigma_j \ge \sigma_{\min}`, so the likelihood never falls.

    Notes
    -----
    ``O(n s m)`` per iteration, in row blocks.
    """
    mixture = start
    for _ in range(iterations):
        mixture = _iterate(problem, mixture, floor)
    return mixture


def best_entry(problem: DensityProblem, mixture: RoundMixture, shares: list[float]) -> tuple[int, float, float]:
    r"""Row, width and share of the kernel whose entry raises :math:`\sum_i w_i \log[(1-a) y(x_i) + a K]` most."""
    Z, m = problem.Z, problem.dim
    xp = namespace(Z)
    log_y = logsumexp(_log_terms(Z, mixture), axis=1)
    best: tuple[float, int, float, float] = (-math.inf, 0, problem.unit, shares[0])
    for block in row_blocks(problem.n, problem.n):
        D = squared_distances(Z, Z[block, :])
        for factor in _WIDTHS:
            width = factor * problem.unit
            log_k = D * (-0.5 / width**2) - 0.5 * m * math.log(2 * math.pi * width**2)
            ratio = xp.exp(xp.clip(log_k - log_y[:, None], None, _LARGEST_RATIO))
            for share in shares:
                gain = problem.w @ xp.log((1.0 - share) + share * ratio)
                j = int(xp.argmax(gain))
                found = (float(gain[j]), block.start + j, width, share)
                if found[0] > best[0]:
                    best = found
    return best[1], best[2], best[3]


@dataclass(frozen=True)
class LikelihoodFit:
    """The model of least BIC among ``models``, one per number of kernels."""

    models: tuple[RoundMixture, ...]
    bic: tuple[float, ...]
    stop: Stop

    @property
    def selected(self) -> int:
        """Position of the model that is taken."""
        return min(range(len(self.bic)), key=self.bic.__getitem__)

    @property
    def mixture(self) -> RoundMixture:
        """The model that is taken."""
        return self.models[self.selected]

    @property
    def trace(self) -> Trace:
        """BIC of every number of kernels."""
        like = self.mixture.weights
        error = asarray_like(list(self.bic), like, dtype=like.dtype)
        sizes = tuple(float(k + 1) for k in range(len(self.bic)))
        spread = namespace(error).zeros_like(error)
        return Trace({"n_vectors": sizes}, error, spread, (self.selected,), measure="Bayesian information criterion")


class _Growth:
    """A mixture that grows by one kernel at a time."""

    def __init__(self, problem: DensityProblem, floor: float, iterations: int) -> None:
        self.problem, self.floor, self.iterations = problem, floor, iterations
        self.screen = problem.part(problem.candidates)
        self.size = problem.effective_size
        one = problem.numbers([1.0])
        mean = (problem.w @ problem.Z)[None, :]
        self.models: list[RoundMixture] = []
        self.bic: list[float] = []
        self._keep(RoundMixture(mean, one * max(problem.spread, floor), one))

    @property
    def since(self) -> int:
        """Number of steps since the least BIC."""
        return len(self.bic) - 1 - min(range(len(self.bic)), key=self.bic.__getitem__)

    def grow(self) -> None:
        """Let the best kernel enter, then EM on all of them."""
        mixture, k = self.models[-1], len(self.models) + 1
        row, width, share = best_entry(self.screen, mixture, [1.0 / k, 0.5 / k, 0.2])
        xp, number = namespace(mixture.weights), self.problem.numbers
        self._keep(
            RoundMixture(
                xp.concat([mixture.centers, self.screen.Z[row : row + 1, :]], axis=0),
                xp.concat([mixture.widths, number([max(width, self.floor)])]),
                xp.concat([(1.0 - share) * mixture.weights, number([share])]),
            )
        )

    def _keep(self, start: RoundMixture) -> None:
        mixture = expectation_maximization(self.problem, start, self.floor, self.iterations)
        parameters = int(mixture.weights.shape[0]) * (self.problem.dim + 2) - 1
        fit = log_likelihood(self.problem, mixture)
        self.models.append(mixture)
        self.bic.append(-2.0 * self.size * fit + parameters * math.log(self.size))


def forward_likelihood(
    problem: DensityProblem,
    *,
    floor: float = 1.5,
    max_vectors: int = 20,
    patience: int = 3,
    iterations: int = 200,
    step: Callable[[int], None] = lambda _: None,
) -> LikelihoodFit:
    """FCR-ML: a greedy mixture of round normal kernels, the number of kernels by BIC; no random start.

    Parameters
    ----------
    problem : DensityProblem
        A kernel may enter at a candidate, and its entry is scored on the candidates. EM then sees all samples.
    floor : float
        Least width, in units of the problem's.
    max_vectors : int
    patience : int
        The path ends after this many steps without a better BIC.
    iterations : int
        EM iterations after every entry.
    step : function
        Called with the number of kernels.

    Notes
    -----
    ``O(c^2)`` per entry and ``O(n s m)`` per EM iteration. BIC counts ``s (m + 2) - 1`` parameters.
    """
    growth = _Growth(problem, floor * problem.unit, iterations)
    stop = Stop.LIMIT
    while len(growth.models) < min(max_vectors, problem.n):
        step(len(growth.models))
        if growth.since >= patience:
            stop = Stop.ERROR
            break
        growth.grow()
    return LikelihoodFit(tuple(growth.models), tuple(growth.bic), stop)
