"""The size of a mixture, and its least bandwidth, by the error on samples left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.sampling import Fold
from fewkern.core.path import Path, Stop, smallest_within
from fewkern.density.integrated import IntegratedPath, forward_integrated
from fewkern.density.likelihood import Growth, log_density
from fewkern.density.mixture import squared_distances
from fewkern.density.problem import DensityProblem, RoundMixture

__all__ = ["FLOORS_IN_PARZEN_BANDWIDTHS", "SizeChoice", "choose_floor", "choose_size", "choose_step", "paired_errors"]

# Floors that cross-validation compares.
FLOORS_IN_PARZEN_BANDWIDTHS = (1.25, 1.5, 1.75, 2.0, 2.25)
# Mixtures stop growing after this many sizes without a better held-out likelihood.
_PATIENCE_STEPS = 4
# Largest price of a kernel in mean log density: a gain of 2% in density is worth any number of parameters.
_MAX_COST_IN_LOG_DENSITY = 0.02


def paired_errors(terms: Sequence[Array], w: Array) -> tuple[Array, Array]:
    """Weighted means of several rows of ``terms``, and the standard errors of their differences to the least."""
    means = np.array([w @ t for t in terms])
    best = terms[int(np.argmin(means))]
    share = float(np.sum(w * w))  # 1 / N_eff
    spread = []
    for t in terms:
        gap = t - best
        gap = gap - float(w @ gap)
        spread.append(math.sqrt(float(w @ (gap * gap)) * share))
    return means, np.array(spread)


def _sizes(count: int) -> tuple[float, ...]:
    return tuple(float(k + 1) for k in range(count))


@dataclass(frozen=True)
class SizeChoice:
    """A number of kernels by held-out likelihood."""

    path: Path
    stop: Stop

    @property
    def size(self) -> int:
        """The number chosen."""
        return int(self.path.setting["n_vectors"])


def choose_size(
    problem: DensityProblem,
    folds: list[Fold],
    *,
    floor: float,
    max_vectors: int,
    tolerance: float,
    step: Callable[[int], None] = lambda _: None,
) -> SizeChoice:
    """The smallest number of kernels within ``tolerance`` standard errors of the best held-out likelihood.

    The standard error is that of the difference to the best size, or the cost of the further kernels where that is
    larger: ``(m + 2) / N`` per kernel, its parameters over the samples, and at most 0.02.

    The mixtures of all folds grow together, by one kernel at a time, until their held-out likelihood less that cost has
    not risen for a few steps.
    """
    parts = [(Growth(problem.part(train), floor), problem.part(test)) for train, test in folds]
    w = _held_out_weights(problem, folds)
    limit = min(max_vectors, *(growth.problem.n for growth, _ in parts))
    cost = min((problem.dim + 2) / problem.effective_size, _MAX_COST_IN_LOG_DENSITY)
    terms: list[Array] = []
    best, since, stop = math.inf, 0, Stop.LIMIT
    while True:
        terms.append(np.concatenate([-log_density(part.Z, growth.mixture) for growth, part in parts]))
        step(len(terms))
        value = float(w @ terms[-1]) + tolerance * cost * len(terms)
        best, since = (value, 0) if value < best else (best, since + 1)
        if len(terms) >= limit:
            break
        if since >= _PATIENCE_STEPS:
            stop = Stop.ERROR
            break
        for growth, _ in parts:
            growth.grow()
    error, spread = paired_errors(terms, w)
    sizes = np.array(_sizes(len(terms)))
    further = sizes[int(np.argmin(error))] - sizes
    chosen = smallest_within(error, sizes, tolerance * np.maximum(spread, cost * further))
    path = Path({"n_vectors": _sizes(len(terms))}, error, spread, chosen, measure="minus the held-out log density")
    return SizeChoice(path, stop)


def choose_step(path: IntegratedPath, tolerance: float) -> tuple[int, Path]:
    """The step of the smallest model within ``tolerance`` standard errors of the least leave-one-out score.

    Kernels may leave again, so several models can have the same size: the best of them stands for it.
    """
    w = path.problem.w
    loo = [float(w @ step.terms) for step in path.steps]
    by_size: dict[int, int] = {}
    for k in sorted(range(len(loo)), key=loo.__getitem__, reverse=True):
        by_size[len(path.steps[k].rows)] = k
    sizes = sorted(by_size)
    error, spread = paired_errors([path.steps[by_size[size]].terms for size in sizes], w)
    chosen = smallest_within(error, np.array(sizes, dtype=float), tolerance * spread)
    axes = {"n_vectors": tuple(float(size) for size in sizes)}
    objectives = tuple(step.objective for step in path.steps)
    measure = "leave-one-out integrated squared error"
    return by_size[sizes[chosen[0]]], Path(axes, error, spread, chosen, measure=measure, objectives=objectives)


def choose_floor(
    problem: DensityProblem,
    folds: list[Fold],
    *,
    floors: Sequence[float] = FLOORS_IN_PARZEN_BANDWIDTHS,
    max_vectors: int,
    tolerance: float,
    step: Callable[[int], None] = lambda _: None,
) -> Path:
    """FCR-ISE-CV: the floor and the number of kernels together; the path is rebuilt in every fold.

    The floor of least held-out error is chosen, and for it the smallest size within ``tolerance`` standard errors.
    """
    w = _held_out_weights(problem, folds)
    parts = [(problem.part(train), problem.part(test).Z) for train, test in folds]
    errors, spreads = [], []
    for done, floor in enumerate(floors):
        terms: list[list[Array]] = [[] for _ in range(max_vectors)]
        for count, (inside, outside) in enumerate(parts):
            path = forward_integrated(inside, floor=floor, max_vectors=max_vectors)
            for size in range(max_vectors):
                terms[size].append(_held_out_terms(path.mixture(path.reaching(size + 1)), outside, problem))
            step(done * len(parts) + count + 1)
        error, spread = paired_errors([np.concatenate(held) for held in terms], w)
        errors.append(error)
        spreads.append(spread)
    error, spread = np.stack(errors), np.stack(spreads)
    at, sizes = int(np.argmin(np.min(error, axis=1))), _sizes(max_vectors)
    chosen = (at, *smallest_within(error[at], np.array(sizes), tolerance * spread[at]))
    axes = {"floor": tuple(floors), "n_vectors": sizes}
    return Path(axes, error, spread, chosen, measure="cross-validated integrated squared error")


def _held_out_weights(problem: DensityProblem, folds: list[Fold]) -> Array:
    """Weights of the held-out samples, fold after fold, normalized."""
    w = np.concatenate([problem.w[list(test)] for _, test in folds])
    return w / np.sum(w)


def _held_out_terms(mixture: RoundMixture, Z: Array, problem: DensityProblem) -> Array:
    r"""Terms :math:`g'Bg - 2\hat p(x_i)` of the integrated squared error at samples left out of the fit."""
    g, widths = mixture.weights, mixture.widths
    spread = np.sqrt(widths[:, None] ** 2 + widths[None, :] ** 2)
    B = problem.kernel(squared_distances(mixture.centers, mixture.centers), spread)
    return g @ (B @ g) - 2.0 * (problem.kernel(squared_distances(Z, mixture.centers), widths) @ g)
