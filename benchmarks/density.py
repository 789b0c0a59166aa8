"""Densities from a few kernels against scikit-learn's KernelDensity, SciPy's gaussian_kde and kernel thinning.

``python -m benchmarks.density [--n 100000] [--queries 2000]``: the two densities of the FCR paper, in 2 and 6
dimensions, where the truth is known. Every line is measured in the same run on the same samples and queries; model
selection sees the training samples only. Times are processor seconds of one thread; only their ratios mean something.
``--only ours`` leaves the others out, which take many minutes to evaluate.
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
from threadpoolctl import threadpool_limits

from benchmarks.measure import Peak, best_of, header, timed, verdict
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
    megabytes: float
    """Growth of the process while fitting."""


def _measure(name: str, fit: Callable[[], Any], evaluate: Callable[[Any], Any], truth: Any, kernels: Any) -> Row:
    with Peak() as peak:
        model, fit_seconds = timed(fit, time.process_time)
    log_p, seconds = timed(lambda: evaluate(model), time.process_time)
    if seconds < 1:
        # a single pass of a millisecond measures the machine
        seconds = min(seconds, best_of(lambda: evaluate(model), 5))
    error = float(np.mean(np.abs(np.exp(log_p) - truth)))
    return Row(name, kernels(model), fit_seconds, seconds, error, float(np.mean(log_p)), peak.bytes / 2**20)


def _peers(X: Any, T: Any, truth: Any) -> list[Row]:
    n = len(X)
    width = ParzenDensity(scale="none").fit(X).bandwidth_
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
    width = ParzenDensity(scale="none").fit(X).bandwidth_

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
    parser.add_argument("--only", choices=["ours"], help="default: all")
    options = parser.parse_args(argv)
    with threadpool_limits(1):
        for title, (make, density) in EXAMPLES.items():
            header(f"{title}: {options.n:,} samples, {options.queries:,} queries", threads=1)
            X = make(options.n, random_state=options.seed)
            T = make(options.queries, random_state=options.seed + 1)
            truth = density(T)
            ours = _ours(X, T, truth)
            peers = [] if options.only else [*_peers(X, T, truth), *_thinning(X, T, truth)]
            _print(ours, peers)
            if not peers:
                continue
            full = [row for row in peers if row.kernels == options.n]
            speed = min(row.evaluate_seconds for row in full) / ours[0].evaluate_seconds
            error = ours[0].error / min(row.error for row in full)
            verdict("times faster to evaluate than the fastest full estimate", speed, 50, at_most=False)
            verdict("L1 error over that of the best full estimate", error, 1.05, at_most=True)


def _print(ours: list[Row], peers: list[Row]) -> None:
    print("| method | kernels | fit s | fit MiB | evaluate s | L1 error | mean log density |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in [*ours, *peers]:
        print(
            f"| {row.name} | {row.kernels} | {row.fit_seconds:.2f} | {row.megabytes:.0f} "
            f"| {row.evaluate_seconds:.5f} | {row.error:.3e} | {row.log_density:.4f} |"
        )
    print()


if __name__ == "__main__":
    main()
