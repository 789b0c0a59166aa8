"""Densities from a few kernels against scikit-learn's KernelDensity, SciPy's gaussian_kde and kernel thinning.

``python -m benchmarks.density [--n 100000] [--queries 2000]``: the two densities of the FCR paper, in 2 and 6
dimensions, where the truth is known. Every line is measured in the same run on the same samples and queries; model
selection sees the training samples only. Times are wall clock; only their ratios mean something.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.neighbors import KernelDensity

from fewkern import ForwardDensity, ParzenDensity
from fewkern.datasets import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)

EXAMPLES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "2 dimensions": (make_gaussian_laplacian, gaussian_laplacian_density),
    "6 dimensions": (make_three_gaussians, three_gaussians_density),
}


@dataclass(frozen=True)
class Row:
    """One method on one example."""

    name: str
    kernels: int
    fit_seconds: float
    evaluate_seconds: float
    error: float
    log_density: float


def _measure(name: str, fit: Callable[[], Any], evaluate: Callable[[Any], Any], truth: Any, kernels: Any) -> Row:
    start = time.perf_counter()
    model = fit()
    fitted = time.perf_counter()
    # the best of three for the fast ones: a single pass of a millisecond measures the machine
    seconds, log_p = np.inf, np.empty(0)
    for _ in range(3):
        begin = time.perf_counter()
        log_p = evaluate(model)
        seconds = min(seconds, time.perf_counter() - begin)
        if seconds > 1:
            break
    error = float(np.mean(np.abs(np.exp(log_p) - truth)))
    return Row(name, kernels(model), fitted - start, seconds, error, float(np.mean(log_p)))


def _peers(X: Any, T: Any, truth: Any) -> list[Row]:
    n = len(X)
    width = ParzenDensity(scale="none").fit(X).width_
    rows = []
    for rule in ("scott", width):
        label = f"KernelDensity, {rule if isinstance(rule, str) else 'our width'}"
        peer = KernelDensity(bandwidth=rule)
        rows.append(_measure(label, lambda p=peer: p.fit(X), lambda m: m.score_samples(T), truth, lambda _: n))
    rows.append(_measure("gaussian_kde", lambda: gaussian_kde(X.T), lambda m: m.logpdf(T.T), truth, lambda _: n))
    return rows


def _ours(X: Any, T: Any, truth: Any) -> list[Row]:
    models = {
        "ForwardDensity": ForwardDensity(),
        "ForwardDensity, unscaled": ForwardDensity(scale="none"),
        "ForwardDensity, no polish": ForwardDensity(polish=False),
    }
    return [
        _measure(name, lambda m=m: m.fit(X), lambda m: m.score_samples(T), truth, lambda m: m.n_vectors_)
        for name, m in models.items()
    ]


def _thinning(X: Any, T: Any, truth: Any) -> list[Row]:
    """Kernel thinning where goodpoints is installed: a coreset of about the square root of n, then Parzen on it."""
    try:
        from goodpoints import compress
    except ImportError:
        return []
    size = 4 ** int(np.log(len(X)) / np.log(4))
    some = np.ascontiguousarray(X[:size])
    width = ParzenDensity(scale="none").fit(X).width_

    def fit() -> Any:
        params = np.array([2 * width**2])
        chosen = compress.compresspp_kt(some, kernel_type=b"gaussian", k_params=params, g=4, seed=0)
        return KernelDensity(bandwidth=width).fit(some[chosen])

    return [
        _measure(f"kernel thinning of {size}", fit, lambda m: m.score_samples(T), truth, lambda m: len(m.tree_.data))
    ]


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark and print one table per example."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.density", description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="training samples")
    parser.add_argument("--queries", type=int, default=2000, help="samples at which the densities are evaluated")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    for title, (make, density) in EXAMPLES.items():
        X = make(options.n, random_state=options.seed)
        T = make(options.queries, random_state=options.seed + 1)
        truth = density(T)
        ours, peers = _ours(X, T, truth), _peers(X, T, truth) + _thinning(X, T, truth)
        full = [row for row in peers if row.kernels == options.n]
        best = min(row.error for row in full)
        slowest, fastest = max(r.evaluate_seconds for r in full), min(r.evaluate_seconds for r in full)
        print(f"\n{title}: {options.n:,} samples, {options.queries:,} queries")
        print(f"{'':28s}{'kernels':>8s}{'fit s':>9s}{'evaluate s':>12s}{'L1 error':>11s}{'log density':>13s}")
        for row in [*ours, *peers]:
            print(
                f"{row.name:28s}{row.kernels:8d}{row.fit_seconds:9.2f}{row.evaluate_seconds:12.5f}{row.error:11.3e}"
                f"{row.log_density:13.4f}"
            )
        for row in ours:
            print(
                f"{row.name}: evaluates {fastest / row.evaluate_seconds:.0f} to {slowest / row.evaluate_seconds:.0f} "
                f"times faster; L1 error {row.error / best - 1:+.1%} against the best full estimate"
            )


if __name__ == "__main__":
    main()
