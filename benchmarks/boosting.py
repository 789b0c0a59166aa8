"""Our default classifier beside gradient boosting, on sets that suit either of them."""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from benchmarks.measure import header, timed
from benchmarks.splits import split
from fewkern import KernelClassifier

SETS = ("splice", "image", "chess", "german", "banana", "waveform", "twonorm")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks boosting", description=__doc__)
    parser.add_argument("--splits", type=int, default=2, help="splits of every set")
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args(arguments)
    models = {
        "`KernelClassifier()`": KernelClassifier(),
        "`HistGradientBoostingClassifier()`": HistGradientBoostingClassifier(random_state=0),
    }
    with threadpool_limits(1):
        header(f"Test error %, mean of {options.splits} splits, and seconds of a fit", 1)
        print("| set | " + " | ".join(f"{label} | s" for label in models) + " |")
        print("|---|" + 2 * len(models) * "---|", flush=True)
        for name in options.sets:
            cells = []
            for model in models.values():
                found = []
                for number in range(options.splits):
                    data = split(name, number)
                    fitted, seconds = timed(lambda model=model, data=data: model.fit(data.X, data.y))
                    found.append((100 * np.mean(fitted.predict(data.X_test) != data.y_test), seconds))
                error, seconds = np.mean(found, axis=0)
                cells.append(f"{error:.1f} | {seconds:.1f}")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
