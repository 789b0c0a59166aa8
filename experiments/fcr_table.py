"""Table II of the FCR paper, and the improved variants beside it.

``python -m experiments.fcr_table [--runs 100]``: for either example, samples and 10,000 test points are drawn anew in
every run; the L1 error is that of (24). Rows marked B use one Parzen width for all runs (0.42 and 0.66), which is what
the published figures point to; all others find their width by cross-validation in every run. Nothing is chosen on test
points.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern import ForwardDensity, OrthogonalForwardDensity, ParzenDensity, ReducedSetDensity
from fewkern.datasets import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)

__all__ = ["EXAMPLES", "Example", "models", "run", "summary"]


@dataclass(frozen=True)
class Example:
    """One of the paper's two examples, with the constants that its rows are reproduced with."""

    make: Callable[..., Any]
    density: Callable[..., Any]
    n: int
    unit: float
    width: float
    gamma: float
    skd: float
    sdc: float
    rsde: float
    paper: dict[str, tuple[float, float]]
    """Published error and number of kernels."""


EXAMPLES = (
    Example(
        make_gaussian_laplacian, gaussian_laplacian_density, 500, 1e-3, 0.42, 2.7, 1.1, 1.15, 0.65,
        {"PW": (4.18, 500), "SDC": (3.83, 11.9), "SKD": (3.84, 15.3), "RSDE": (4.24, 129.4), "FCR": (4.21, 36.2)},
    ),
    Example(
        make_three_gaussians, three_gaussians_density, 600, 1e-5, 0.66, 2.1, 1.25, 1.1, 1.15,
        {"PW": (3.18, 600), "SDC": (4.48, 14.9), "SKD": (3.11, 9.4), "RSDE": (3.67, 29.4), "FCR": (3.03, 5.6)},
    ),
)  # fmt: skip


def models(example: Example, X: Any) -> Iterator[tuple[str, Any]]:
    """Every row of the table, unfitted; ``X`` only gives the cross-validated Parzen width, once."""
    B: dict[str, Any] = {"scale": "none", "width": example.width}
    lscv = ParzenDensity(scale="none").fit(X).width_
    A: dict[str, Any] = {"scale": "none", "width": lscv}
    yield "PW, B", ParzenDensity(**B)
    yield "PW", ParzenDensity(**A)
    yield "SDC", OrthogonalForwardDensity(target="distribution", kernel_width=example.sdc, **B)
    yield "SKD, B", OrthogonalForwardDensity(kernel_width=example.skd, **B)
    rsde: dict[str, Any] = {"scale": "none", "width": example.rsde}
    yield "RSDE, MNQP", ReducedSetDensity(solver="mnqp", **rsde)
    yield "RSDE, exact", ReducedSetDensity(**rsde)
    literal: dict[str, Any] = {"variant": "paper", "gamma": example.gamma, **B}
    yield "FCR, literal widths, B", ForwardDensity(width_mode="abs", **literal)
    yield "FCR, B", ForwardDensity(**literal)
    yield "FCR, refitted, B", ForwardDensity(**{**literal, "variant": "refit"})
    yield "RSDE, own width", ReducedSetDensity(scale="none")
    yield "FCR-ISE, one s.e.", ForwardDensity(size="loo-1se", polish=False, **A)
    yield "FCR-ISE", ForwardDensity(polish=False, **A)
    yield "FCR-ISE, 5 kernels", ForwardDensity(size="max", max_vectors=5, polish=False, **A)
    yield "FCR-ISE, EM", ForwardDensity(**A)
    yield "FCR-ISE, EM, scaled", ForwardDensity()
    yield "FCR-ML", ForwardDensity(variant="ml", **A)


def run(example: Example, seed: int, only: set[str] | None = None) -> dict[str, tuple[float, int, float]]:
    """Error, number of kernels and mean test log density of every row (or those of ``only``) in one run."""
    X = example.make(example.n, random_state=2 * seed)
    T = example.make(10_000, random_state=2 * seed + 1)
    truth = example.density(T)
    found = {}
    for name, model in models(example, X):
        if only is not None and name not in only:
            continue
        log_p = model.fit(X).score_samples(T)
        error = float(np.mean(np.abs(np.exp(log_p) - truth))) / example.unit
        found[name] = (error, model.n_vectors_, float(np.mean(log_p)))
    return found


def summary(example: Example, results: list[dict[str, tuple[float, int, float]]]) -> str:
    """The table as text."""
    lines = [f"{'method':26s}{'L1 / ' + format(example.unit, 'g'):>16s}{'kernels':>18s}{'log density':>13s}   paper"]
    for name in results[0]:
        values = np.array([result[name] for result in results])
        mean, spread = values.mean(axis=0), values.std(axis=0)
        paper = example.paper.get(name.split(",")[0]) if not name.endswith("own width") else None
        published = f"   {paper[0]:.2f} / {paper[1]:g}" if paper else ""
        lines.append(
            f"{name:26s}{mean[0]:9.2f} ± {spread[0]:.2f}{mean[1]:11.1f} ± {spread[1]:4.1f}{mean[2]:13.3f}{published}"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    """Run both examples and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.fcr_table", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--examples", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args(argv)
    for number in options.examples:
        example = EXAMPLES[number - 1]
        results = [run(example, seed) for seed in range(options.runs)]
        print(f"Example {number}, {example.n} samples, {options.runs} runs\n{summary(example, results)}\n", flush=True)


if __name__ == "__main__":
    main()
