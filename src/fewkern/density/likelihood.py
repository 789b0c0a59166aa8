"""Mixtures of a few round normal kernels by likelihood: EM with a floor on the widths, and FCR-ML."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewkern.backend.blocks import row_blocks
from fewkern.backend.linalg import logsumexp
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.backend.storable import floats, storable
from fewkern.core.peel_callbacks import Stop, peel
from fewkern.density.bandwidth import effective_size
from fewkern.density.mixture import squared_distances

__all__ = ["LikelihoodStep", "RoundMixture", "expectation_maximization", "forward_likelihood"]

_WIDTHS = (1.5, 2.0, 2.6, 3.6, 5.2, 7.5)


@storable(centres=floats("s", "m"), widths=floats("s", above=0.0), weights=floats("s", least=0.0))
@dataclass(frozen=True)
class RoundMixture:
    """Centres, widths and weights of a mixture of round normal kernels, and its mean log-likelihood."""

    centres: Array
    widths: Array
    weights: Array
    log_likelihood: float


@storable
@dataclass(frozen=True)
class LikelihoodStep:
    """The model after one step of FCR-ML."""

    mixture: RoundMixture
    bic: float


def _log_terms(X: Array, mixture: RoundMixture) -> Array:
    """``log(g_j K(x_i, c_j, s_j))``."""
    xp = namespace(X)
    m = int(X.shape[1])
    least = xp.full_like(mixture.weights, float(xp.finfo(X.dtype).smallest_normal))
    level = xp.log(xp.maximum(mixture.weights, least)) - m * xp.log(mixture.widths) - 0.5 * m * math.log(2 * math.pi)
    return squared_distances(X, mixture.centres) * (-0.5 / mixture.widths**2) + level


def expectation_maximization(X: Array, w: Array, start: RoundMixture, floor: float, iterations: int) -> RoundMixture:
    r"""EM iterations on weights, centres and widths, every width kept at ``floor`` or above.

    The floor is what keeps the likelihood bounded; the step is still a maximisation, now under
    :math:`\sigma_j \ge \sigma_{\min}`, so the likelihood never falls.

    Notes
    -----
    ``O(n s m)`` per iteration, in row blocks.
    """
    xp = namespace(X)
    m = int(X.shape[1])
    s = int(start.weights.shape[0])
    mixture = start
    for _ in range(iterations):
        mass = xp.zeros((s,), dtype=X.dtype, device=device(X))
        first = xp.zeros((s, m), dtype=X.dtype, device=device(X))
        second = xp.zeros((s,), dtype=X.dtype, device=device(X))
        log_likelihood = 0.0
        for rows in row_blocks(int(X.shape[0]), s + m):
            terms = _log_terms(X[rows, :], mixture)
            log_p = logsumexp(terms, axis=1)
            R = xp.exp(terms - log_p[:, None]) * w[rows][:, None]
            log_likelihood += float(w[rows] @ log_p)
            mass = mass + xp.sum(R, axis=0)
            first = first + R.T @ X[rows, :]
            second = second + xp.sum(R * squared_distances(X[rows, :], mixture.centres), axis=0)
        # a kernel that no sample answers for stays where it is
        alive = mass > 1e-300
        safe = xp.where(alive, mass, xp.ones_like(mass))
        centres = xp.where(alive[:, None], first / safe[:, None], mixture.centres)
        moved = xp.sum((centres - mixture.centres) ** 2, axis=1)
        variance = xp.maximum(second / safe - moved, xp.zeros_like(mass)) / m
        widths = xp.maximum(xp.sqrt(variance), xp.full_like(variance, floor))
        widths = xp.where(alive, widths, mixture.widths)
        mixture = RoundMixture(centres, widths, mass / xp.sum(mass), log_likelihood)
    total = 0.0
    for rows in row_blocks(int(X.shape[0]), s):
        total += float(w[rows] @ logsumexp(_log_terms(X[rows, :], mixture), axis=1))
    return RoundMixture(mixture.centres, mixture.widths, mixture.weights, total)


def _best_entry(
    X: Array, w: Array, mixture: RoundMixture, unit: float, shares: list[float]
) -> tuple[int, float, float]:
    r"""Row, width and share of the kernel whose entry raises :math:`\sum_i w_i \log[(1-a) y(x_i) + a K]` most."""
    xp = namespace(X)
    n, m = int(X.shape[0]), int(X.shape[1])
    log_y = logsumexp(_log_terms(X, mixture), axis=1)
    best: tuple[float, int, float, float] = (-math.inf, 0, unit, shares[0])
    for block in row_blocks(n, n):
        D = squared_distances(X, X[block, :])
        for factor in _WIDTHS:
            width = factor * unit
            log_k = D * (-0.5 / width**2) - 0.5 * m * math.log(2 * math.pi * width**2)
            # exp(300) is beyond what a log-likelihood can tell from infinity, and it does not overflow
            ratio = xp.exp(xp.clip(log_k - log_y[:, None], None, 300.0))
            for share in shares:
                gain = w @ xp.log((1.0 - share) + share * ratio)
                j = int(xp.argmax(gain))
                found = (float(gain[j]), block.start + j, width, share)
                if found[0] > best[0]:
                    best = found
    return best[1], best[2], best[3]


@dataclass(frozen=True)
class LikelihoodFit:
    """The model of least BIC; ``trace`` holds every step."""

    mixture: RoundMixture
    trace: tuple[LikelihoodStep, ...]
    selected: int
    stop: str


def forward_likelihood(
    X: Array,
    w: Array,
    unit: float,
    candidates: Array,
    *,
    gamma: float = 1.5,
    max_vectors: int = 20,
    patience: int = 3,
    iterations: int = 200,
) -> LikelihoodFit:
    """FCR-ML: a greedy mixture of round normal kernels, the number of kernels by BIC; no random start.

    Parameters
    ----------
    X : array of shape (n, m)
    w : array of shape (n,)
        Positive, sum one.
    unit : float
        Reference width.
    candidates : integer array
        Rows where a kernel may enter; the entry is also scored on these rows only. EM then sees all rows.
    gamma : float
        Least width in units of ``unit``.

    Notes
    -----
    ``O(c^2)`` per entry and ``O(n s m)`` per EM iteration. BIC counts ``s (m + 2) - 1`` parameters.
    """
    xp = namespace(X)
    n, m = int(X.shape[0]), int(X.shape[1])
    floor = gamma * unit
    size = effective_size(w)
    mean = w @ X
    spread = math.sqrt(float(xp.sum(w @ ((X - mean) ** 2))) / m)
    one = xp.ones((1,), dtype=X.dtype, device=device(X))
    mixture = RoundMixture(mean[None, :], one * max(spread, floor), one, 0.0)
    screen_X, screen_w = take_rows(X, candidates), take_rows(w, candidates)
    screen_w = screen_w / xp.sum(screen_w)
    best, since = math.inf, 0

    def find(count: int) -> RoundMixture | Stop:
        if count == 0:
            return mixture
        if since >= patience:
            return Stop("BIC no longer falls")
        k = count + 1
        if k > n:
            return Stop("as many kernels as samples")
        row, width, share = _best_entry(screen_X, screen_w, mixture, unit, [1.0 / k, 0.5 / k, 0.2])
        return RoundMixture(
            xp.concat([mixture.centres, screen_X[row : row + 1, :]], axis=0),
            xp.concat([mixture.widths, asarray_like([max(width, floor)], X, dtype=X.dtype)]),
            xp.concat([(1.0 - share) * mixture.weights, asarray_like([share], X, dtype=X.dtype)]),
            0.0,
        )

    def remove(found: RoundMixture) -> list[LikelihoodStep]:
        nonlocal mixture, best, since
        mixture = expectation_maximization(X, w, found, floor, iterations)
        parameters = int(mixture.weights.shape[0]) * (m + 2) - 1
        bic = -2.0 * size * mixture.log_likelihood + parameters * math.log(size)
        best, since = (bic, 0) if bic < best else (best, since + 1)
        return [LikelihoodStep(mixture, bic)]

    peeled = peel(find, remove, max_vectors)
    selected = min(range(len(peeled.records)), key=lambda k: peeled.records[k].bic)
    return LikelihoodFit(peeled.records[selected].mixture, peeled.records, selected, peeled.stop)
