"""Cost of a row: nanoseconds of one thread for every pass over a large table, and the formula that they follow.

The figures of the cost model on the page about scaling. Least processor time of three passes, 20 features.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import scale_methods
from benchmarks.measure import header
from fewkern import FeatureVectorRegressor
from fewkern.arrays.partitions import Partitions
from fewkern.core.samples import Samples
from fewkern.core.statistics import feature_statistics
from fewkern.density.likelihood import expectation_maximization
from fewkern.density.problem import AllRows, RoundMixture
from fewkern.kernels import Gaussian
from fewkern.populations import Layout, Streamed
from fewkern.select.selection import SelectionRule, choose_basis

FEATURES = 20
# Vectors, and rows that make such a pass take a tenth of a second or more.
SIZES = {10: 400_000, 30: 400_000, 100: 200_000, 300: 60_000, 1000: 20_000}
KERNELS = (2, 5, 10, 20)
ROWS = 400_000
FILE_ROWS = (1_000_000, 3_000_000)


def nanoseconds(rows: int, work: Callable[..., Any], *arguments: Any) -> float:
    """Least processor time of three calls, per row."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work(*arguments)
        found.append(time.process_time() - start)
    return 1e9 * min(found) / rows


def curve(points: dict[int, float], degree: int) -> list[float]:
    """Coefficients, not negative, of a polynomial through the points, of least relative error."""
    from scipy.optimize import nnls

    x, y = np.array(list(points), dtype=float), np.array(list(points.values()))
    return list(nnls(np.stack([x**k for k in range(degree + 1)], axis=1) / y[:, None], np.ones(len(y)))[0])


def samples(rows: int) -> Samples:
    rng = np.random.default_rng(0)
    return Samples.of(rng.standard_normal((rows, FEATURES)), targets=rng.standard_normal((rows, 1)))


def vector_passes() -> None:
    """Sums of the features of L vectors, and predictions from them."""
    sums, answers = {}, {}
    for vectors, rows in SIZES.items():
        some = samples(rows)
        basis = choose_basis(some.take(np.arange(5000)), Gaussian(4.0), SelectionRule(), vectors).basis()
        function = basis.expand(np.ones((vectors, 1)), np.zeros(1))
        sums[vectors] = nanoseconds(rows, feature_statistics, some, basis)
        answers[vectors] = nanoseconds(rows, function, some.X)
    print("| vectors | sums, ns per row | prediction, ns per row |\n|---|---|---|")
    for vectors in SIZES:
        print(f"| {vectors:,} | {sums[vectors]:,.0f} | {answers[vectors]:,.0f} |")
    a, b, c = curve(sums, 2)
    print(f"\nsums: {a:.0f} + {b:.1f} L + {c:.3f} L^2 ns per row")
    a, b = curve(answers, 1)
    print(f"prediction: {a:.0f} + {b:.1f} L ns per row\n", flush=True)


def density_passes() -> None:
    """Moments, and one EM iteration with s kernels."""
    some, found = samples(ROWS), {}
    rows = AllRows.of(some, "std")
    print(f"moments: {nanoseconds(ROWS, AllRows.of, some, 'std'):.0f} ns per row")
    for kernels in KERNELS:
        start = RoundMixture(some.X[:kernels], np.full(kernels, 0.8), np.full(kernels, 1 / kernels))
        found[kernels] = nanoseconds(ROWS, expectation_maximization, rows, start, 0.1, 1)
    a, b = curve(found, 1)
    print(f"EM iteration, s kernels: {a:.0f} + {b:.1f} s ns per row\n", flush=True)


def survey_pass() -> None:
    """Check all rows of a collection and draw a sample, without the time to read them."""
    some = samples(ROWS)
    lazy, labels = da.from_array(some.X, chunks=(1 << 16, FEATURES)), da.from_array(some.X[:, 0] > 0, chunks=1 << 16)
    with dask.config.set(scheduler="synchronous"):
        for name, columns, kind in (("bare", (), None), ("with labels", (labels,), "labels")):
            layout = Layout("benchmark", kind, False, ROWS)  # type: ignore[arg-type]
            cost = nanoseconds(ROWS, Streamed.of, Partitions.of("benchmark", lazy, *columns), layout, False)
            print(f"survey, {name}: {cost:.0f} ns per row", flush=True)


def in_files(folder: Path) -> None:
    """What one more row costs a whole fit of 40 vectors through Dask, read from files."""
    model = FeatureVectorRegressor(n_vectors=40, kernel=Gaussian(4.0), alpha=1e-2)
    seconds: dict[str, list[float]] = {"fit": [], "predict": []}
    with dask.config.set(scheduler="synchronous"):
        for rows in FILE_ROWS:
            table = scale_methods.in_files(rows, folder)
            seconds["fit"].append(1e-9 * nanoseconds(1, model.fit, table.X, table.height))
            seconds["predict"].append(1e-9 * nanoseconds(1, lambda X: model.predict(X).sum().compute(), table.X))
    for what, (few, many) in seconds.items():
        cost = 1e9 * (many - few) / (FILE_ROWS[1] - FILE_ROWS[0])
        print(f"{what}, 40 vectors, from files through Dask: {cost:,.0f} ns for one more row", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks costs", description=__doc__)
    parser.add_argument("--files", type=Path, help="folder for three million rows in files, 0.5 GB")
    options = parser.parse_args(arguments)
    header(f"Cost of a row, {FEATURES} features", 1)
    with threadpool_limits(1):
        vector_passes()
        density_passes()
        survey_pass()
        if options.files:
            in_files(options.files)


if __name__ == "__main__":
    main()
