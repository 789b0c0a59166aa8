"""``python -m tests.scale.soak``: fit, save, load and predict a thousand times in one process, and see what grows.

Exit code 1 if, after the first tenth, the resident memory has grown by more than 5 MiB, or there are more descriptors,
threads or files than before.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import psutil

import fewkern
from fewkern import load, save
from fewkern.datasets import make_banana

MODELS = (
    fewkern.KernelClassifier(n_vectors=3),
    fewkern.FeatureVectorDiscriminant(max_vectors=5),
    fewkern.RecursiveSVM(n_components=1, max_vectors=5),
    fewkern.SparseKernelFisher(max_vectors=5),
    fewkern.ReducedSetDensity(),
    fewkern.TableModel(max_vectors=3, holdout=0),
)
_GROWTH_BYTES = 5 * 2**20


def state(folders: list[Path]) -> dict[str, int]:
    """What must not grow."""
    process = psutil.Process()
    files = sum(len(list(folder.iterdir())) for folder in folders)
    return {
        "memory": process.memory_info().rss,
        "descriptors": process.num_fds(),
        "threads": process.num_threads(),
        "files": files,
    }


def once(number: int, folder: Path) -> None:
    """A fit to rows of its own, a file, and the same answers from it."""
    X, y = make_banana(40, random_state=number)
    model = MODELS[number % len(MODELS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        path = save(model, folder / "model")
        method = next(name for name in ("predict", "transform", "score_samples") if hasattr(model, name))
        np.testing.assert_array_equal(getattr(load(path), method)(X), getattr(model, method)(X))
    path.unlink()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scale.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as inner:
        os.environ["TMPDIR"] = tempfile.tempdir = inner  # nobody else's files are counted
        folder = Path(inner) / "models"
        folder.mkdir()
        for number in range(options.rounds):
            once(number, folder)
            if number + 1 == max(options.rounds // 10, len(MODELS)):
                before = state([folder, Path(inner)])
        after = state([folder, Path(inner)])
    for name, value in after.items():
        print(f"{name:12} {before[name]:12,} -> {value:12,}")
    print(f"{options.rounds:,} rounds, {time.perf_counter() - began:.0f} s")
    memory = after.pop("memory") - before.pop("memory")
    return int(memory > _GROWTH_BYTES or any(value > before[name] for name, value in after.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
