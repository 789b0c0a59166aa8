"""Time to a tuned model: FeatureVectorDiscriminant, KernelClassifier, and a grid search of SVC, on 14 sets.

Processor time of one thread, so that other work on the machine counts less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import header, verdict
from benchmarks.methods import COSTS, FOLDS, WIDTHS, gammas
from benchmarks.splits import SETS, Split, split
from experiments.data import DataNotFoundError
from fewkern import FeatureVectorDiscriminant, KernelClassifier

# What a fit may take in all, in seconds, to be timed twice: the first of a kind is often slower.
QUICK = 1.0


def processor_seconds(work: Callable[[], Any]) -> float:
    """Least processor time of two calls, or that of one that is not quick."""
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        if best > QUICK:
            break
    return best


def measure(data: Split) -> tuple[float, float, float]:
    """Seconds with samples as vectors, with moved ones, and of the grid search."""
    grid = {"C": COSTS, "gamma": gammas(data.X, WIDTHS)}
    return (
        processor_seconds(lambda: FeatureVectorDiscriminant().fit(data.X, data.y)),
        processor_seconds(lambda: KernelClassifier().fit(data.X, data.y)),
        processor_seconds(lambda: GridSearchCV(SVC(cache_size=500), grid, cv=FOLDS).fit(data.X, data.y)),
    )


def row(name: str, samples: float, moved: float, svc: float) -> None:
    ratios = f"{moved / samples:.1f} | {svc:.1f} | {svc / moved:.1f}"
    print(f"| {name} | {samples:.2f} | {moved:.2f} | {ratios} |", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks times", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--split", type=int, default=0)
    options = parser.parse_args(arguments)
    header("Processor seconds to a tuned model", 1)
    print("| set | samples as vectors | KernelClassifier | ratio | GridSearchCV(SVC) 8 x 8 x 5 | over ours |")
    print("|---|---|---|---|---|---|", flush=True)
    found = []
    try:
        with threadpool_limits(1):
            for name in options.sets:
                found.append(measure(split(name, options.split)))
                row(name, *found[-1])
    except DataNotFoundError as error:
        print(f"left out: {error}")
        return
    samples, moved, svc = (sum(column) for column in zip(*found))
    row("**sum**", samples, moved, svc)
    print()
    verdict("least time of the grid search over KernelClassifier", min(c / b for _, b, c in found), 5, False)
    verdict("the same, all sets together", svc / moved, 5, False)


if __name__ == "__main__":
    main()
