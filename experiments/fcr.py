"""Tables I and II of the FCR paper (Hong, Chen and Harris 2008), and the improved variants beside the latter.

Table I, the cost, is counted on samples of example 1, with arrays that keep a tally. For Table II, samples and 10,000
test points are drawn anew in every run; the error is the L1 error (24). Nothing is chosen on test points, save the
constants that the rows of protocol "paper" were given by trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.counting import CountingArray, counting
from experiments.fcr_integrated import choose_floor, choose_step, forward_integrated
from experiments.fcr_refit import forward_refitted
from experiments.fcr_updates import mnqp, reduced_set_by_updates
from fewkern import (
    ForwardConstrainedDensity,
    ForwardDensity,
    KernelMixture,
    OrthogonalForwardDensity,
    ParzenDensity,
    ReducedSetDensity,
)
from fewkern.core.path import TOLERANCE
from fewkern.core.samples import Samples
from fewkern.datasets import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)
from fewkern.density.bandwidth import parzen_bandwidth
from fewkern.density.constrained import ConstrainedRules, forward_constrained
from fewkern.density.likelihood import expectation_maximization
from fewkern.density.orthogonal import distribution_target, sparse_density_construction, sparse_kernel_density
from fewkern.density.problem import AllRows, DensityProblem, RoundMixture, squared_distances

Values = dict[str, Any]

# generator, density, number of samples, unit of the error
EXAMPLES: dict[int, tuple[Callable[..., Any], Callable[..., Any], int, float]] = {
    1: (make_gaussian_laplacian, gaussian_laplacian_density, 500, 1e-3),
    2: (make_three_gaussians, three_gaussians_density, 600, 1e-5),
}
MODELS: dict[str, Callable[..., Any]] = {
    "parzen": ParzenDensity,
    "forward": ForwardDensity,
    "constrained": ForwardConstrainedDensity,
    "reduced": ReducedSetDensity,
    "orthogonal": OrthogonalForwardDensity,
}
# The rows of the tables say which system they are in the words of the papers.
_PREFER = {"loo": "accurate", "loo-1se": "sparse"}
# EM iterations at the end of FCR-ISE.
_POLISH_ITERATIONS = 50
_NAMES = {"width": "bandwidth", "kernel_width": "kernel_bandwidth", "width_mode": "bandwidth_rule"}


def _mixture(settings: Values, X: Any) -> KernelMixture:
    """The density of a row of Table II."""
    model = settings["model"]
    other = ("example", "model", "variant", "size", "solver")
    options = {_NAMES.get(k, k): v for k, v in settings.items() if k not in other}
    if settings.get("solver") == "mnqp":
        return _by_updates(settings, X)
    variant = settings.get("variant", "ise")
    if variant == "refit":
        problem = DensityProblem.of(X, np.ones(len(X)), settings["width"])
        return _unscaled(forward_refitted(problem, settings["gamma"]), X)
    if variant == "paper":
        return ForwardConstrainedDensity(**options).fit(X).expansion_
    if model == "forward" and variant != "ml":
        return _integrated(settings, X)
    if model == "forward":
        options.update(prefer=_PREFER[settings.get("size", "loo")], cv=None)  # None: BIC
    return MODELS[model](**options).fit(X).expansion_


def _unscaled(found: RoundMixture, X: Any) -> KernelMixture:
    return KernelMixture(found.centers, found.weights, found.bandwidths, np.ones(X.shape[1]), found.rows)


def _by_updates(settings: Values, X: Any) -> KernelMixture:
    """RSDE and SKD by the multiplicative updates of the literature."""
    problem = DensityProblem.of(X, np.ones(len(X)), settings["width"])
    if settings["model"] == "reduced":
        return _unscaled(reduced_set_by_updates(problem, settings["width"]), X)
    found, _ = sparse_kernel_density(problem, problem.parzen(X), settings["kernel_width"], solve=mnqp)
    return _unscaled(found, X)


def _integrated(settings: Values, X: Any) -> KernelMixture:
    """FCR-ISE; with EM at its end, save for ``polish = false``."""
    samples = Samples.of(X)
    scaling = AllRows.of(samples, settings["scale"]).scaling
    problem = scaling.problem(samples)
    path, _, _ = parzen_bandwidth(problem, "lscv")
    problem = replace(problem, unit=path.setting["bandwidth"])
    floor, size = problem.least_bandwidth, settings.get("size", "loo")
    if settings.get("variant") == "cv":
        setting = choose_floor(problem, samples.folds(5), max_vectors=20, tolerance=TOLERANCE["sparse"]).setting
        floor, limit = setting["floor"], int(setting["n_vectors"])
    else:
        limit = settings.get("max_vectors", 20)
    whole = settings.get("variant") == "cv" or size == "max"
    steps, _ = forward_integrated(problem, floor=floor, max_vectors=limit, patience=None if whole else 5)
    chosen = steps[-1] if whole else choose_step(steps, problem.w, TOLERANCE[_PREFER[size]])[0]
    mixture = chosen.mixture
    if settings.get("polish", True):
        mixture = expectation_maximization(problem, mixture, floor * problem.unit, _POLISH_ITERATIONS).mixture
    return scaling.mixture(mixture, samples)


def density(settings: Values, run: int) -> Values:
    """L1 error (24), number of kernels and mean log density of the test points."""
    make, truth, n, unit = EXAMPLES[settings["example"]]
    X, T = make(n, random_state=2 * run), make(10_000, random_state=2 * run + 1)
    mixture = _mixture(settings, X)
    log_p = mixture.log_density(T)
    error = float(np.mean(np.abs(np.exp(log_p) - truth(T)))) / unit
    return {"l1": error, "kernels": mixture.n_vectors, "log_density": float(np.mean(log_p))}


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


def _part_of_the_full_cost(problem: DensityProblem, target: Any, gamma: float, steps: Any) -> float:
    """Mean n_p over its maximum: a candidate costs 8 N + 5 where 0 <= lambda^LS <= 1 (18), and 2 N + 1 elsewhere."""
    n = problem.n
    D = squared_distances(problem.Z, problem.Z)
    Psi = problem.kernel(D, gamma * problem.unit)
    y = np.zeros(n)
    free = np.ones(n, dtype=bool)
    costs = []
    for k, step in enumerate(steps):
        if k:
            U, T = (y[:, None] - Psi)[:, free], (target[:, None] - Psi)[:, free]
            least_squares = (U * T).sum(axis=0) / (U * U).sum(axis=0)
            inside = (least_squares >= 0) & (least_squares <= 1)
            costs += np.where(inside, 8 * n + 5, 2 * n + 1).tolist()
        y = step.mixing * y + (1 - step.mixing) * problem.kernel(D[:, step.index], step.bandwidth)
        free[step.index] = False
    return float(np.mean(costs)) / (8 * n + 5)


def _density(settings: Values, problem: DensityProblem, target: Any) -> tuple[Any, Any]:
    """The mixture of a method of Table I, and the whole result of FCR."""
    method, s = settings["method"], settings["kernels"]
    if method == "reduced":
        return reduced_set_by_updates(problem, settings["kernel_width"], settings["iterations"]), None
    if method == "forward":
        rules = ConstrainedRules(settings["gamma"], s, "abs", to_the_limit=True, prune=settings["prune"])
        found = forward_constrained(problem, target, rules)
        return found.mixture, found
    width = settings["kernel_width"]
    if method == "kernel":
        return sparse_kernel_density(problem, target, width, limit=s, solve=mnqp)[0], None
    return sparse_density_construction(problem, target, width, limit=s)[0], None


def cost(settings: Values, run: int) -> Values:
    """Table I: the printed formula at the printed sizes, and the multiplications and divisions counted; in millions.

    The preparation (target, kernel matrices and their derivatives) is not counted, as in the paper. Processor seconds
    are those of a second run, in which nothing is counted.
    """
    method, n, s = settings["method"], settings["n"], settings["kernels"]
    X = make_gaussian_laplacian(n, random_state=run)
    problem = DensityProblem.of(X, np.ones(n), settings["width"])
    target = distribution_target(X, problem) if method == "distribution" else problem.parzen(X)
    counted = DensityProblem(X.view(CountingArray), problem.w.view(CountingArray), problem.candidates, problem.unit)
    with counting() as tally:
        mixture, found = _density(settings, counted, target.view(CountingArray))
    start = time.process_time()
    _density(settings, problem, target)
    seconds = time.process_time() - start
    # mean n_p over its maximum
    np_part = 0.7
    values: Values = {"formula": _formula(settings, s, settings["inner"], np_part) / 1e6}
    if method == "forward" and not settings["prune"]:
        np_part = _part_of_the_full_cost(problem, np.asarray(target), settings["gamma"], found.steps)
        values["mean_np"] = 100 * np_part
        values["formula_at_that_np"] = _formula(settings, len(found.steps), 0, np_part) / 1e6
    return {
        **values,
        "counted": tally.multiplications / 1e6,
        "kernels": len(mixture.weights),
        "seconds": round(seconds, 3),
    }
