"""Pair loss in sorts, one soft margin direction against explicit pairs, recursive SVM through a basis."""

from __future__ import annotations

import argparse
import math
from unittest.mock import patch

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from benchmarks.measure import Peak, best_of, header, timed, verdict
from fewkern import FeatureVectorSelector, RecursiveSoftMargin, RecursiveSVM
from fewkern.kernels import Gaussian
from fewkern.margins.hinge import minimize_hinge
from fewkern.margins.ranking import ranked_sums


def five_classes(n: int, q: int = 20, seed: int = 0):
    """Overlapping Gaussian classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, n)
    return rng.normal(size=(5, q))[y] + 1.5 * rng.normal(size=(n, q)), y


def twonorm(n: int, seed: int):
    """Breiman's twonorm: Bayes error 2.3 %."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 20)) + (2 * y[:, None] - 1) * 2 / math.sqrt(20), y


def hinge(p, codes, s, m):
    """Value and gradient in ``s`` of the hinge over pairs of different classes: all pairs, less those of a class."""
    s = s - s.mean()
    value, gradient = 0.0, np.zeros_like(s)
    for sign, group in ((1.0, None), (-1.0, codes)):
        ((below, above),) = ranked_sums(s, np.stack([p, p * s], axis=1), [m], group)
        count, total = below.T
        value += sign * float(np.sum(p * ((m - s) * count + total)))
        gradient += sign * p * (above[:, 0] - count)
    return value, gradient


def pair_loss(sizes: tuple[int, ...]) -> None:
    header("Value and gradient of the hinge over all pairs of different classes, pure NumPy, in sorts of n numbers", 1)
    print("| n | pairs | sort, ms | value and gradient, ms | sorts |")
    print("|---|---|---|---|---|", flush=True)
    seconds, sorts = {}, {}
    for n in sizes:
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 5, n)
        s = np.sort(rng.normal(size=n)) + 0.1 * rng.normal(size=n)
        codes, ones = codes.astype(np.int16), np.ones(n)
        plain = rng.normal(size=n)
        sort = best_of(lambda plain=plain: np.sort(plain), 20)
        seconds[n] = best_of(lambda ones=ones, codes=codes, s=s: hinge(ones, codes, s, 0.5))
        sorts[n] = seconds[n] / sort
        print(f"| {n:,} | {0.4 * n * n:.0e} | {1e3 * sort:.2f} | {1e3 * seconds[n]:.1f} | {sorts[n]:.0f} |", flush=True)
    low, high = sizes[0], sizes[-1]
    print()
    verdict(f"value and gradient at n = {high:,}, in sorts", sorts[high], 400, True)
    growth = (high * math.log(high)) / (low * math.log(low))
    verdict(f"growth from {low:,} to {high:,} over that of n log n", seconds[high] / seconds[low] / growth, 2.0, True)


def soft_margin(small: int, large: int) -> None:
    header("One soft margin direction, q = 20, 5 classes: sorted form against explicit pairs", 1)
    print("| n | form | delta / delta_0 | concave-convex steps | s |")
    print("|---|---|---|---|---|", flush=True)
    for C in (5.0, 50.0):
        took = {}
        for n, solver in ((small, "explicit"), (small, "sorted"), (large, "sorted")):
            X, y = five_classes(n)
            model = RecursiveSoftMargin(n_components=1, C=C)
            # how many pairs are listed at most
            with patch("fewkern.margins.soft._MAX_LISTED_PAIRS", n * n if solver == "explicit" else 0):
                _, took[n, solver] = timed(lambda model=model, X=X, y=y: model.fit(X, y))
            print(f"| {n:,} | {solver} | {C:g} | {model.n_iter_} | {took[n, solver]:.2f} |", flush=True)
        explicit = took[small, "explicit"] * (large / small) ** 2
        print()
        verdict(
            f"C = {C:g}: times faster at n = {large:,} than explicit pairs extrapolated from {small}",
            explicit / took[large, "sorted"],
            50,
            False,
        )
        print()


def basis(n: int, vectors: int, components: int) -> None:
    header(f"RecursiveSVM through a basis of {vectors} vectors at n = {n:,} (twonorm, d = 20)", 1)
    X, y = twonorm(n, 0)
    T, t = twonorm(10_000, 1)
    settings = {"kernel": Gaussian(length_scale=math.sqrt(20.0)), "max_vectors": vectors}
    _, choosing = timed(lambda: FeatureVectorSelector(**settings).fit(X))
    model = RecursiveSVM(n_components=components, class_weight="balanced", C=1.0, **settings)
    with Peak() as peak:
        _, fitting = timed(lambda: model.fit(X, y))
    knn = KNeighborsClassifier(31).fit(model.transform(X[:5000]), y[:5000])
    error = float(np.mean(knn.predict(model.transform(T)) != t))
    per = (fitting - choosing) / model.n_components_
    print(
        f"- choosing the vectors {choosing:.1f} s, all {fitting:.1f} s, {per:.1f} s per component, "
        f"{model.n_iter_} interior point iterations, {model.n_components_} components (stop: {model.stop_})"
    )
    print(f"- test error of 31 neighbours on the components: {100 * error:.2f} % (Bayes 2.3 %)")
    verdict("memory, in arrays of n x m numbers", peak.bytes / (8 * n * vectors), 10, True)
    verdict("test error above Bayes, points", 100 * error - 2.28, 1.0, True)
    # libsvm on every sample would need the kernel matrix at every step
    print(f"- the kernel matrix of all samples would be {n / vectors:.0f} such arrays")


def warm_starts(n: int) -> None:
    header(f"Interior point iterations of RecursiveSVM, from the last step or afresh, n = {n}", 1)
    print("| samples | kernel | C | components | stop | hyperplanes solved | iterations warm | cold |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    total = {"warm": 0, "cold": 0}
    for name, (X, y) in {"twonorm": twonorm(n, 0), "five classes": five_classes(n)}.items():
        for kernel, C in (("linear", 1.0), ("linear", 100.0), (Gaussian(length_scale=math.sqrt(20.0)), 3.0)):
            model = RecursiveSVM(kernel=kernel, C=C, n_components=20)
            counts: dict[str, list[int]] = {"warm": [], "cold": []}
            for way, found in counts.items():

                def solve(problem, start, *settings, way=way, found=found):
                    solution = minimize_hinge(problem, start if way == "warm" else None, *settings)
                    found.append(solution.n_iter)
                    return solution

                with patch("fewkern.margins.recursion.minimize_hinge", solve):
                    model.fit(X, y)
            for way, found in counts.items():
                total[way] += sum(found)
            shown = kernel if isinstance(kernel, str) else "Gaussian"
            print(
                f"| {name} | {shown} | {C:g} | {model.n_components_} | {model.stop_} | {len(counts['warm'])} "
                f"| {sum(counts['warm'])} | {sum(counts['cold'])} |",
                flush=True,
            )
    print()
    verdict("iterations, cold over warm", total["cold"] / total["warm"], 1.0, False)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks margins", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, to see that it runs")
    quick = parser.parse_args(arguments).quick
    with threadpool_limits(1):
        pair_loss((1_000, 10_000) if quick else (1_000, 10_000, 100_000))
        soft_margin(200 if quick else 800, 2_000 if quick else 10_000)
        warm_starts(100 if quick else 400)
        basis(5_000 if quick else 50_000, 50 if quick else 200, 3)


if __name__ == "__main__":
    main()
