"""FCR-ISE with its smoothing parameter and its size chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.density.integrated import IntegratedStep, forward_integrated, one_standard_error
from fewkern.density.mixture import normal_kernel, squared_distances

__all__ = ["GAMMAS", "CrossValidation", "cross_validate", "held_out_terms"]

GAMMAS = (1.25, 1.5, 1.75, 2.0, 2.25)


def held_out_terms(X: Array, step: IntegratedStep, centres: Array, unit: float) -> Array:
    r"""Terms :math:`g'Bg - 2\hat p(x_i)` of the integrated squared error at samples that had no part in the fit."""
    m = int(X.shape[1])
    widths = asarray_like(step.widths, X, dtype=X.dtype)
    g = asarray_like(step.weights, X, dtype=X.dtype)
    spread = (widths[:, None] ** 2 + widths[None, :] ** 2) ** 0.5
    B = normal_kernel(squared_distances(centres, centres), spread, m, unit)
    return g @ (B @ g) - 2.0 * (normal_kernel(squared_distances(X, centres), widths, m, unit) @ g)


@dataclass(frozen=True)
class CrossValidation:
    """Which smoothing parameter and how many steps cross-validation takes, and the mean score of every pair."""

    gamma: float
    steps: int
    scores: dict[float, list[float]]


def cross_validate(
    X: Array,
    w: Array,
    unit: float,
    candidates: Array,
    folds: Array,
    *,
    gammas: tuple[float, ...] = GAMMAS,
    max_vectors: int = 20,
    patience: int = 5,
) -> CrossValidation:
    """FCR-ISE-CV: ``gamma`` and the number of steps together, the whole path rebuilt in every fold.

    ``folds`` gives the fold of every row. Among the steps of the best ``gamma`` the first within one
    standard error wins.
    """
    xp = namespace(X)
    n = int(X.shape[0])
    count = int(xp.max(folds)) + 1
    everyone = xp.arange(n, device=device(X))
    # terms[gamma][k]: held-out terms after k + 1 steps, in row order fold by fold
    terms: dict[float, list[list[Array]]] = {gamma: [] for gamma in gammas}
    order, weights = [], []
    for fold in range(count):
        inside, outside = everyone[folds != fold], everyone[folds == fold]
        order.append(outside)
        weights.append(take_rows(w, outside))
        X_in, w_in = take_rows(X, inside), take_rows(w, inside)
        w_in = w_in / xp.sum(w_in)
        # candidates by their place among the rows of the fold
        kept = candidates[take_rows(folds, candidates) != fold]
        places = xp.searchsorted(inside, kept)
        for gamma in gammas:
            fit = forward_integrated(
                X_in, w_in, unit, places, gamma=gamma, max_vectors=max_vectors, patience=patience, size="loo"
            )
            X_out = take_rows(X, outside)
            rows = [asarray_like(step.indices, inside, dtype=inside.dtype) for step in fit.trace]
            terms[gamma].append(
                [held_out_terms(X_out, step, take_rows(X_in, S), unit) for step, S in zip(fit.trace, rows)]
            )
    held_w = xp.concat(weights)
    held_w = held_w / xp.sum(held_w)
    joined: dict[float, list[Array]] = {}
    for gamma in gammas:
        longest = max(len(path) for path in terms[gamma])
        # a path that ended early stays what it was
        joined[gamma] = [xp.concat([path[min(k, len(path) - 1)] for path in terms[gamma]]) for k in range(longest)]
    scores = {gamma: [float(held_w @ t) for t in joined[gamma]] for gamma in gammas}
    best = min(gammas, key=lambda gamma: min(scores[gamma]))
    return CrossValidation(best, one_standard_error(joined[best], held_w) + 1, scores)
