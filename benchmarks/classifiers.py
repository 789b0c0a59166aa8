"""Our classifiers beside each other: what ``prefer`` does, and where DensityClassifier stands."""

from __future__ import annotations

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import header
from experiments.data import fetch_ida
from fewkern import DensityClassifier, ForwardKernelFisher, KernelClassifier

SETS = ("banana", "heart", "waveform", "german", "diabetis", "image")
MODELS = {
    'KernelClassifier(prefer="sparse")': KernelClassifier(prefer="sparse"),
    "KernelClassifier()": KernelClassifier(),
    "ForwardKernelFisher()": ForwardKernelFisher(),
    "DensityClassifier()": DensityClassifier(),
}


def judge(model, name: str, splits: int) -> tuple[float, float]:
    """Mean test error in per cent, and mean number of vectors."""
    z = fetch_ida(name)
    found = []
    for train, test in list(zip(z.train_idx, z.test_idx))[:splits]:
        model.fit(z.X[train], z.y[train])
        found.append((100 * np.mean(model.predict(z.X[test]) != z.y[test]), model.n_vectors_))
    error, vectors = np.mean(found, axis=0)
    return float(error), float(vectors)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks classifiers", description=__doc__)
    parser.add_argument("--splits", type=int, default=2, help="splits of every set")
    parser.add_argument("--sets", nargs="+", default=SETS, help="names of IDA sets")
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        header(f"Test error % / vectors, mean of {options.splits} splits", 1)
        print("| set | " + " | ".join(f"`{label}`" for label in MODELS) + " |")
        print("|---|" + len(MODELS) * "---|", flush=True)
        for name in options.sets:
            cells = [judge(model, name, options.splits) for model in MODELS.values()]
            print(f"| {name} | " + " | ".join(f"{e:.1f} / {v:.0f}" for e, v in cells) + " |", flush=True)
