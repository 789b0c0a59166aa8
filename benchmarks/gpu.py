"""torch tensors on a CUDA device: the same results as NumPy, and how much faster."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measure import header, timed
from fewkern import (
    FeatureVectorClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorPCA,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    ForwardDensity,
    RecursiveSVM,
    SparseKernelFisher,
)
from fewkern.backend.namespace import to_numpy
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian


def same_results(device: str) -> None:
    """Largest difference between the outputs on the device and those of NumPy, for every system."""
    import torch

    X, y = make_banana(400, random_state=0)
    three = (y + (X[:, 0] > 1)).astype(int)
    Xd = torch.asarray(X, device=device)
    cases = [
        (FeatureVectorSelector(max_vectors=30), None, "transform"),
        (FeatureVectorRegressor(refine=False), np.sin(X[:, 0]), "predict"),
        (FeatureVectorClassifier(refine=False), three, "predict_proba"),
        (FeatureVectorDiscriminant(), three, "transform"),
        (FeatureVectorPCA(n_components=5), None, "transform"),
        (SparseKernelFisher(kernel=Gaussian(1.0), penalty=0.01), y, "predict_proba"),
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


def speed(device: str, n: int, d: int, m: int) -> None:
    """Seconds to choose ``m`` of ``n`` samples, NumPy on all cores against the device."""
    import torch

    header(f"FeatureVectorSelector, n = {n:,}, d = {d}, {m} vectors, float64", torch.get_num_threads())
    X = np.random.default_rng(0).standard_normal((n, d))
    kernel = Gaussian(unit="common").resolve(X)
    model = FeatureVectorSelector(kernel=kernel, max_vectors=m)
    _, host = timed(lambda: model.fit(X))
    on_host = float(model.fitness_[-1])
    Xd = torch.asarray(X, device=device)

    def work() -> None:
        model.fit(Xd)
        torch.cuda.synchronize()

    timed(work)
    _, there = timed(work)
    print(f"NumPy {host:.2f} s, {device} {there:.2f} s: {host / there:.1f} times faster")
    print(f"fitness {on_host:.6f} and {float(model.fitness_[-1]):.6f}", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu", description=__doc__)
    parser.add_argument("--n", type=int, default=500_000)
    parser.add_argument("--vectors", type=int, default=1000)
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
    speed("cuda", options.n, 20, options.vectors)
