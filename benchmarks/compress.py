"""A tuned SVC compressed to a few vectors: test error of both on 7 sets."""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import cpu_timed, header, verdict
from benchmarks.splits import Split, split
from experiments.data import DataNotFoundError
from fewkern import compress

SIZES = (10, 20, 40)
# Test error in % and support vectors of the SVC of an independent prototype, and the error with 10, 20 and 40 vectors.
PROTOTYPE = {
    "banana": (11.85, 106, (12.19, 11.90, 11.89)),
    "german": (21.56, 405, (22.11, 21.56, 21.56)),
    "image": (2.84, 234, (3.93, 3.00, 3.00)),
    "waveform": (11.40, 146, (11.33, 11.34, 11.43)),
    "twonorm": (2.44, 215, (2.52, 2.59, 2.52)),
    "diabetis": (21.00, 277, (20.56, 20.78, 20.78)),
    "heart": (19.00, 89, (19.67, 19.00, 19.00)),
}
# The grid of the SVC; gamma is over the number of features, which are standardised.
COSTS, GAMMAS = (0.1, 1.0, 10.0, 100.0), (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Run:
    """Errors in %, of the SVC and of every size, shares of equal decisions on the test part, and processor seconds."""

    error: float
    vectors: int
    errors: tuple[float, ...]
    same: tuple[float, ...]
    held_out: tuple[float, ...]
    """Share of equal decisions as the compressed models report it."""
    seconds: float


def tuned(data: Split) -> SVC:
    """An SVC chosen by five folds of the training part."""
    gammas = [gamma / data.X.shape[1] for gamma in GAMMAS]
    search = GridSearchCV(SVC(), {"C": COSTS, "gamma": gammas}, cv=5)
    return search.fit(data.X, data.y).best_estimator_


def measure(data: Split) -> Run:
    """Tune and compress on one split."""
    svc = tuned(data)
    decided = svc.predict(data.X_test)
    errors, same, held_out, seconds = [], [], [], 0.0
    for m in SIZES:
        short, took = cpu_timed(lambda m=m: compress(svc, data.X, n_vectors=m))
        predicted = short.predict(data.X_test)
        errors.append(100 * float(np.mean(predicted != data.y_test)))
        same.append(100 * float(np.mean(predicted == decided)))
        held_out.append(100 * short.agreement_.decisions)
        seconds += took
    error = 100 * float(np.mean(decided != data.y_test))
    return Run(error, len(svc.support_), tuple(errors), tuple(same), tuple(held_out), seconds)


def mean(runs: list[Run]) -> Run:
    """Mean of every figure."""
    return Run(**{key: np.mean([getattr(run, key) for run in runs], axis=0) for key in vars(runs[0])})


def several(values: tuple[float, ...], digits: int = 2) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in values)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks compress", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(PROTOTYPE), default=list(PROTOTYPE))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    options = parser.parse_args(arguments)
    header(f"A tuned SVC, compressed to {several(SIZES, 0)} vectors; means of {options.splits} split(s)", 1)
    print(
        "| set | SVC, % / vectors | compressed | prototype's SVC | prototype | equal decisions, test | held out | s |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    found = {}
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a size may miss the tolerance: that is what is measured
            for name in options.sets:
                splits = range(options.first, options.first + options.splits)
                r = found[name] = mean([measure(split(name, k)) for k in splits])
                error, vectors, errors = PROTOTYPE[name]
                print(
                    f"| {name} | {r.error:.2f} / {r.vectors:.0f} | {several(r.errors)} | {error:.2f} / {vectors} | "
                    f"{several(errors)} | {several(r.same, 1)} | {several(r.held_out, 1)} | {r.seconds:.1f} |",
                    flush=True,
                )
    except DataNotFoundError as error:
        print(f"left out: {error}")
        return
    print()
    for name, r in found.items():
        verdict(f"{name}: error with 20 vectors above the SVC's, points", r.errors[1] - r.error, 0.3, True)


if __name__ == "__main__":
    main([])
