"""More rows than memory: a table in Parquet files is fitted and predicted through Dask, with the peak of memory.

The files are made once, in a folder of your choice. Memory is the largest resident set of this process, as the system
counts it, sampled ten times a second. With ``--command-line`` the files have a column of text too, and the commands
``fewkern fit`` and ``fewkern predict`` are run on them, each in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil

from fewkern import KernelClassifier

FEATURES, PART_ROWS = 20, 500_000


def make_part(part: int, rows: int) -> pd.DataFrame:
    """Two classes that a curved surface of six of the features divides, with one label in twenty turned."""
    rng = np.random.default_rng([7, part])
    X = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    side = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5 + 0.3 * X[:, 4] + 0.2 * X[:, 5]
    y = (side > 0) ^ (rng.random(rows) < 0.05)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(FEATURES)])
    return frame.assign(y=y.astype(np.int8))


def make_part_with_text(part: int, rows: int) -> pd.DataFrame:
    """The same, with a column of text that turns the label of one of its values."""
    frame, rng = make_part(part, rows), np.random.default_rng([8, part])
    towns = np.array(["north", "south", "east", "west"])[rng.integers(0, 4, rows)]
    return frame.assign(town=towns, y=np.where((frame["y"] == 1) ^ (towns == "west"), "yes", "no"))


def make_table(folder: Path, rows: int, make: Callable[[int, int], pd.DataFrame] = make_part) -> None:
    """The table in files of half a million rows; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(-(-rows // PART_ROWS)):
        path = folder / f"part-{part:04d}.parquet"
        if not path.exists():
            temporary = path.with_suffix(".tmp")
            make(part, min(PART_ROWS, rows - part * PART_ROWS)).to_parquet(temporary, index=False)
            temporary.rename(path)


@dataclass
class Memory:
    """The largest resident set while the block runs, in MiB."""

    peak: float = 0.0
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Memory:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._done.wait(0.1):
            self.peak = max(self.peak, process.memory_info().rss / 2**20)

    def __exit__(self, *_: Any) -> None:
        self._done.set()
        self._thread.join()


def run_command(*arguments: Any) -> tuple[float, float]:
    """Run ``fewkern`` with arguments; seconds of the processor, and the largest resident set in MiB."""
    command = [sys.executable, "-c", "from fewkern.app import main; main()", *map(str, arguments)]
    _, status, usage = os.wait4(subprocess.Popen(command).pid, 0)
    if status:
        raise SystemExit(f"fewkern {arguments[0]} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def command_line(folder: Path, rows: int) -> None:
    """Fit and predict files from the command line."""
    make_table(folder, rows, make_part_with_text)
    model, files = folder / "model.npz", folder / "part-*.parquet"
    fit = run_command("fit", files, "--target", "y", "--out", model)
    predict = run_command("predict", model, files, "--proba", "--out", folder / "predictions.csv")
    print("| rows | fit: seconds of the processor | peak memory, MiB | predict: seconds | peak memory, MiB |")
    print("| --- | --- | --- | --- | --- |")
    print(f"| {rows:,} | {fit[0]:.0f} | {fit[1]:.0f} | {predict[0]:.0f} | {predict[1]:.0f} |")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks outofcore", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--command-line", action="store_true")
    options = parser.parse_args(arguments)
    if options.command_line:
        command_line(options.folder, options.rows)
        return
    make_table(options.folder, options.rows)
    test = make_part(10_000_019, 20_000)
    names = [f"x{j}" for j in range(FEATURES)]
    with Memory() as memory, dask.config.set(scheduler="threads", num_workers=options.workers):
        table = dd.read_parquet(options.folder / "part-*.parquet")
        start = time.perf_counter()
        model = KernelClassifier().fit(table[names], table["y"])
        fitted = time.perf_counter()
        wrong = (model.predict(table[names]) != table["y"]).mean().compute()
        predicted = time.perf_counter()
    part = make_part(0, 20_000)
    small = KernelClassifier().fit(part[names], part["y"])
    print(
        "| rows | vectors | error on 20,000 new rows | of a model of 20,000 rows | peak memory, MiB | predict / fit |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    print(
        f"| {options.rows:,} | {model.n_vectors_} | {1 - model.score(test[names], test['y']):.2%} | "
        f"{1 - small.score(test[names], test['y']):.2%} | {memory.peak:.0f} | "
        f"{(predicted - fitted) / (fitted - start):.2f} |"
    )
    print(f"\nerror on all rows, which were fitted: {wrong:.2%}")


if __name__ == "__main__":
    main()
