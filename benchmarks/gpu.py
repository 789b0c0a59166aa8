"""torch tensors on a CUDA device: the same results as NumPy, how much faster, and how near to the device's limits."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import header, timed
from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    ForwardDensity,
    KernelClassifier,
    RecursiveSVM,
    SparseKernelFisher,
)
from fewkern.arrays.namespace import to_numpy
from fewkern.core.expansion import KernelExpansion
from fewkern.core.kernel import Gram
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from fewkern.select.leave_one_out import loo_paths
from fewkern.select.selection import SelectionRule, select_vectors


def same_results(device: str) -> None:
    """Largest difference between the outputs on the device and those of NumPy, for every system."""
    import torch

    X, y = make_banana(400, random_state=0)
    three = (y + (X[:, 0] > 1)).astype(int)
    Xd = torch.asarray(X, device=device)
    cases = [
        (FeatureVectorSelector(max_vectors=30), None, "transform"),
        (FeatureVectorRegressor(), np.sin(X[:, 0]), "predict"),
        (KernelClassifier(), three, "predict_proba"),
        (FeatureVectorDiscriminant(), three, "transform"),
        (FeatureVectorPCA(n_components=5), None, "transform"),
        (SparseKernelFisher(kernel=Gaussian(1.0), alpha=0.01), y, "predict_proba"),
        (RecursiveSVM(kernel=Gaussian(1.0), max_vectors=40), y, "transform"),
        (ForwardDensity(), None, "score_samples"),
    ]
    print("| model | method | largest difference from NumPy | result on |")
    print("|---|---|---|---|")
    for model, target, method in cases:
        here = getattr(model.fit(X) if target is None else model.fit(X, target), method)(X)
        labels = None if target is None else torch.asarray(target, device=device)
        there = getattr(model.fit(Xd) if target is None else model.fit(Xd, labels), method)(Xd)
        gap = float(np.max(np.abs(to_numpy(there) - here)))
        print(f"| {type(model).__name__} | {method} | {gap:.2e} | {there.device} |", flush=True)


def _seconds(work: Callable[..., Any], *arguments: Any) -> list[float]:
    """Seconds of four runs, the first one cold; the device has finished when the clock stops."""
    import torch

    def finished() -> None:
        work(*arguments)
        torch.cuda.synchronize()

    return [timed(finished)[1] for _ in range(4)]


def selection(device: str, n: int, d: int, m: int) -> None:
    """Every rule of selection beside two matrix products, ``X V'`` and ``K C``, which any selection needs."""
    import torch

    print(f"\n## Choosing {m:,} of {n:,} x {d} samples\n")
    print("| numbers | rule | first run, s | best of three more, s | two products, s | ratio |")
    print("|---|---|---|---|---|---|")
    for dtype in (torch.float64, torch.float32):
        X = torch.randn(n, d, dtype=dtype, device=device)
        K, C, V = torch.randn(n, m, dtype=dtype, device=device), torch.randn(m, m, dtype=dtype, device=device), X[:m]
        floor = min(_seconds(torch.matmul, X, V.T)) + min(_seconds(torch.matmul, K, C))
        del K, C
        for rule in ("gain", "random", "uniform", "greedy"):
            gram, how = Gram(Gaussian(length_scale=5.0), X), SelectionRule(rule=rule)
            cold, *warm = _seconds(select_vectors, gram, how, m)
            name = str(dtype).removeprefix("torch.")
            print(
                f"| {name} | {rule} | {cold:.3f} | {min(warm):.3f} | {floor:.3f} | {min(warm) / floor:.1f} |",
                flush=True,
            )


def floors(device: str, n: int, d: int, m: int) -> None:
    """What else a model does with many rows, beside the least time that its products or its bytes take."""
    import torch

    X = torch.randn(10 * n, d, dtype=torch.float64, device=device)
    G = torch.randn(n, m, dtype=torch.float64, device=device) / m**0.5
    C = torch.randn(m, m, dtype=torch.float64, device=device)
    copied = torch.empty_like(G)
    per_byte = min(_seconds(copied.copy_, G)) / (2 * 8 * G.numel())
    del copied
    products = min(_seconds(torch.matmul, G.T, G)) + min(_seconds(torch.matmul, G, C))

    def function(vectors: int) -> KernelExpansion:
        coef = torch.randn(vectors, 1, dtype=torch.float64, device=device)
        return KernelExpansion(
            Gaussian(length_scale=5.0), X[:vectors, :], coef, torch.zeros(1, dtype=coef.dtype, device=device)
        )

    def read(columns: int, extra: int = 1) -> float:
        return per_byte * 8 * X.shape[0] * (columns + extra)

    few, many, density = function(16), function(128), ForwardDensity(random_state=0).fit(to_numpy(X[:2000, :6]))
    Z = X[:, :6].contiguous()
    targets = {q: torch.randn(n, q, dtype=torch.float64, device=device) for q in (1, 10)}
    cases = [
        (
            f"leave-one-out path, {m:,} vectors, 1 output",
            loo_paths,
            (G, targets[1], (1e-2,)),
            products,
            "G'G, G C",
        ),
        (
            f"leave-one-out path, {m:,} vectors, 10 outputs",
            loo_paths,
            (G, targets[10], (1e-2,)),
            products,
            "G'G, G C",
        ),
        (f"prediction of {10 * n:,} rows, 16 vectors", few, (X,), read(d), "bytes"),
        (f"prediction of {10 * n:,} rows, 128 vectors", many, (X,), read(d), "bytes"),
        (f"density of {10 * n:,} x 6 rows", density.score_samples, (Z,), read(6), "bytes"),
    ]
    print("\n## Everything else, float64\n")
    print("| work | first run, s | best of three more, s | floor, s | of what | fraction reached |")
    print("|---|---|---|---|---|---|")
    for name, work, arguments, floor, of in cases:
        cold, *warm = _seconds(work, *arguments)
        print(f"| {name} | {cold:.3f} | {min(warm):.4f} | {floor:.4f} | {of} | {floor / min(warm):.2f} |", flush=True)


def speed(device: str, n: int, d: int, m: int) -> None:
    """Seconds to choose ``m`` of ``n`` samples, NumPy on all cores against the device."""
    import torch

    header(f"FeatureVectorSelector, n = {n:,}, d = {d}, {m} vectors, float64", torch.get_num_threads())
    X = np.random.default_rng(0).standard_normal((n, d))
    model = FeatureVectorSelector(kernel=Gaussian("median", unit="common").resolve(X), max_vectors=m)
    _, host = timed(lambda: model.fit(X))
    on_host = float(model.fitness_[-1])
    Xd = torch.asarray(X, device=device)
    cold, *warm = _seconds(model.fit, Xd)
    there = min(warm)
    print(f"NumPy {host:.2f} s; {device} {cold:.2f} s at first, then {there:.2f} s: {host / there:.1f} times faster")
    print(f"fitness {on_host:.6f} and {float(model.fitness_[-1]):.6f}", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu", description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--vectors", type=int, default=1024)
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("left out: torch is not installed (pip install 'fewkern[gpu]')")
        return
    if not torch.cuda.is_available():
        print("left out: no CUDA device on this machine")
        return
    print(f"device: {torch.cuda.get_device_name()}\n")
    same_results("cuda")
    selection("cuda", options.n, 20, options.vectors)
    floors("cuda", options.n, 20, options.vectors)
    speed("cuda", options.n // 2, 20, 1000)
