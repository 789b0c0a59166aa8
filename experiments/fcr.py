"""Tables I and II of the FCR paper (Hong, Chen and Harris 2008), and the improved variants beside the latter.

Table I, the cost, is counted on samples of example 1, with arrays that keep a tally. For Table II, samples and 10,000
test points are drawn anew in every run; the error is the L1 error (24). Nothing is chosen on test points, save the
constants that the rows of protocol "paper" were given by trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments import systems
from experiments.counting import CountingArray, counting
from fewkern.datasets import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)
from fewkern.density.constrained import forward_constrained, parzen_target
from fewkern.density.mixture import normal_kernel, squared_distances
from fewkern.density.reduction import reduced_set
from fewkern.density.regression import (
    distribution_target,
    sparse_density_construction,
    sparse_kernel_density,
)

Values = dict[str, Any]

# generator, density, number of samples, unit of the error
EXAMPLES: dict[int, tuple[Callable[..., Any], Callable[..., Any], int, float]] = {
    1: (make_gaussian_laplacian, gaussian_laplacian_density, 500, 1e-3),
    2: (make_three_gaussians, three_gaussians_density, 600, 1e-5),
}


def density(settings: Values, run: int) -> Values:
    """L1 error (24), number of kernels and mean log density of the test points."""
    make, truth, n, unit = EXAMPLES[settings["example"]]
    model = systems.density(settings["model"], {k: v for k, v in settings.items() if k not in ("example", "model")})
    X, T = make(n, random_state=2 * run), make(10_000, random_state=2 * run + 1)
    log_p = model.fit(X).score_samples(T)
    error = float(np.mean(np.abs(np.exp(log_p) - truth(T)))) / unit
    return {"l1": error, "kernels": model.n_vectors_, "log_density": float(np.mean(log_p))}


def _formula(settings: Values, s: int, inner: int, np_part: float) -> float:
    """The total of Table I as printed: Cost_A Cost_B + Cost_C."""
    method, n, steps, rho = settings["method"], settings["n"], settings["width_steps"], settings["iterations"]
    if method == "reduced":
        return rho * (n**2 + 5 * n + 2)
    if method == "forward":
        later = np_part * (8 * n + 5) * (s - 1) * (n - (s - 1) / 2)
        return 3 * n**2 + later + s * steps * (2 * n + 3)
    total = s * (17 * n + 2) * (n - s / 2) + 10 * inner * (17 * s + 2) * (s - inner / 2)
    return total + (rho * (inner**2 + 5 * inner + 2) if method == "kernel" else 0)


def _part_of_the_full_cost(X: Any, target: Any, width: float, gamma: float, fit: Any) -> float:
    """Mean n_p over its maximum: a candidate costs 8 N + 5 where 0 <= lambda^LS <= 1 (18), and 2 N + 1 elsewhere."""
    n, m = X.shape
    D = squared_distances(X, X)
    Psi = normal_kernel(D, gamma * width, m, width)
    y = np.zeros(n)
    free = np.ones(n, dtype=bool)
    costs = []
    for k, step in enumerate(fit.trace):
        if k:
            U, T = (y[:, None] - Psi)[:, free], (target[:, None] - Psi)[:, free]
            least_squares = (U * T).sum(axis=0) / (U * U).sum(axis=0)
            inside = (least_squares >= 0) & (least_squares <= 1)
            costs += np.where(inside, 8 * n + 5, 2 * n + 1).tolist()
        y = step.mixing * y + (1 - step.mixing) * normal_kernel(D[:, step.index], step.width, m, width)
        free[step.index] = False
    return float(np.mean(costs)) / (8 * n + 5)


def cost(settings: Values, run: int) -> Values:
    """Table I: the printed formula at the printed sizes, and the multiplications and divisions counted; in millions.

    The preparation (target, kernel matrices and their derivatives) is not counted, as in the paper.
    """
    method, n, s = settings["method"], settings["n"], settings["kernels"]
    width, gamma = settings["width"], settings["gamma"]
    X = make_gaussian_laplacian(n, random_state=run)
    w, rows = np.full(n, 1 / n), np.arange(n)
    target = parzen_target(X, X, w, width)
    counted, weights = X.view(CountingArray), w.view(CountingArray)
    # mean n_p over its maximum
    np_part = 0.7
    start = time.perf_counter()
    with counting() as tally:
        if method == "reduced":
            found: Any = reduced_set(
                counted, weights, settings["kernel_width"], rows, exact=False, iterations=settings["iterations"]
            )
        elif method == "forward":
            found = forward_constrained(
                counted, weights, target.view(CountingArray), width, rows, gamma=gamma, stop="size", max_vectors=s,
                width_steps=settings["width_steps"], width_mode="abs", prune=settings["prune"],
            )  # fmt: skip
        elif method == "kernel":
            found = sparse_kernel_density(
                counted,
                weights,
                target.view(CountingArray),
                width,
                rows,
                settings["kernel_width"],
                limit=s,
                exact=False,
            )
        else:
            distribution = distribution_target(X, X, w).view(CountingArray)
            found = sparse_density_construction(counted, weights, distribution, rows, settings["kernel_width"], limit=s)
    seconds = time.perf_counter() - start
    values: Values = {"formula": _formula(settings, s, settings["inner"], np_part) / 1e6}
    if method == "forward" and not settings["prune"]:
        np_part = _part_of_the_full_cost(X, np.asarray(target), width, gamma, found)
        values["mean_np"] = 100 * np_part
        values["formula_at_that_np"] = _formula(settings, len(found.indices), 0, np_part) / 1e6
    return {
        **values,
        "counted": tally.multiplications / 1e6,
        "kernels": len(found.indices),
        "seconds": round(seconds, 3),
    }
