"""FeatureVectorDiscriminant against a grid search of SVC, and FeatureVectorSelector at 100,000 samples."""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import Peak, best_of, header, timed, verdict
from experiments.data import DataNotFoundError, fetch_ida, fetch_large
from fewkern import FeatureVectorDiscriminant, FeatureVectorSelector
from fewkern.kernels import Gaussian

IDA = ("banana", "waveform", "german", "image")


def tuned_svc(X, y, size: int, folds: int):
    """SVC over a square grid: 8 x 8 with 5 folds is thorough, 5 x 5 with 3 folds is what the hurried take."""
    median = Gaussian(unit="common").resolve(X).length_scale
    widths = median * np.geomspace(0.14, 6.0, size)
    grid = {"C": np.logspace(-1, 4, size), "gamma": 1 / (2 * widths**2)}
    return GridSearchCV(SVC(cache_size=500), grid, cv=folds).fit(X, y)


def compare(X, y, X_test, y_test):
    """Errors, vectors, seconds to a tuned model and seconds to predict, for both sides; the small grid last."""
    ours, fit = timed(lambda: FeatureVectorDiscriminant().fit(X, y))
    svc, grid = timed(lambda: tuned_svc(X, y, 8, 5))
    small, small_grid = timed(lambda: tuned_svc(X, y, 5, 3))
    ours_test = best_of(lambda: ours.predict(X_test))
    svc_test = best_of(lambda: svc.predict(X_test))
    return {
        "error": [np.mean(model.predict(X_test) != y_test) for model in (ours, svc, small)],
        "vectors": (ours.n_vectors_, len(svc.best_estimator_.support_)),
        "fit": (fit, grid, small_grid),
        "predict": (ours_test, svc_test),
    }


def adult(rows: int, seed: int):
    """``rows`` random rows of adult, one-hot and standardised on themselves, and 5,000 of its test part."""
    z = fetch_large("adult")
    categorical = z.is_categorical.astype(bool)
    parts = []
    for j in range(z.X.shape[1]):
        column = z.X[:, j]
        parts.append(
            (column[:, None] == np.unique(column)[None, :]).astype(float) if categorical[j] else column[:, None]
        )
    X = np.concatenate(parts, axis=1).astype(float)
    n_train = int(z.n_train)
    rng = np.random.default_rng(seed)
    train = rng.choice(n_train, rows, replace=False)
    test = n_train + rng.choice(len(X) - n_train, 5000, replace=False)
    scale = StandardScaler().fit(X[train])
    return scale.transform(X[train]), z.y[train], scale.transform(X[test]), z.y[test]


def classification(splits: int, with_adult: bool) -> None:
    header("FeatureVectorDiscriminant() against GridSearchCV(SVC): 8 x 8 grid, 5 folds; 5 x 5 grid, 3 folds", 1)
    print(
        "| set | error % | SVC 8x8x5 | SVC 5x5x3 | vectors | SVC | ratio | tuned in, s | SVC 8x8x5 | ratio | "
        "SVC 5x5x3 | ratio | predict, ms | SVC | ratio |"
    )
    print("|" + 15 * "---|", flush=True)
    totals = []
    for name in IDA:
        z = fetch_ida(name)
        runs = [compare(z.X[a], z.y[a], z.X[b], z.y[b]) for a, b in list(zip(z.train_idx, z.test_idx))[:splits]]
        totals.append(report_row(name, runs))
    mean = {key: np.mean([t[key] for t in totals], axis=0) for key in totals[0]}
    rows = None
    if with_adult:
        rows = report_row("adult, 5,000 rows", [compare(*adult(5000, 0))])
    print()
    verdict("mean test error above SVC's, points", 100 * (mean["error"][0] - mean["error"][1]), 1.0, True)
    for t, name in zip(totals, IDA):
        verdict(f"{name}: times faster than 8 x 8 x 5 to a tuned model", t["fit"][1] / t["fit"][0], 5, False)
        verdict(f"{name}: times faster than 5 x 5 x 3 to a tuned model", t["fit"][2] / t["fit"][0], 1, False)
    for t, name in zip(totals, IDA):
        verdict(f"{name}: times fewer vectors", t["vectors"][1] / t["vectors"][0], 3, False)
        verdict(f"{name}: times faster to predict", t["predict"][1] / t["predict"][0], 3, False)
    if rows:
        verdict("adult: times faster to a tuned model", rows["fit"][1] / rows["fit"][0], 20, False)
        verdict("adult: test error above SVC's, points", 100 * (rows["error"][0] - rows["error"][1]), 1.0, True)
        verdict("adult: times fewer vectors", rows["vectors"][1] / rows["vectors"][0], 3, False)
        verdict("adult: times faster to predict", rows["predict"][1] / rows["predict"][0], 3, False)


def report_row(name: str, runs: list[dict]) -> dict:
    mean = {key: np.mean([run[key] for run in runs], axis=0) for key in runs[0]}
    e, v, f, p = (mean[k] for k in ("error", "vectors", "fit", "predict"))
    print(
        f"| {name} | {100 * e[0]:.2f} | {100 * e[1]:.2f} | {100 * e[2]:.2f} | {v[0]:.0f} | {v[1]:.0f} | "
        f"{v[1] / v[0]:.1f} | {f[0]:.2f} | {f[1]:.1f} | {f[1] / f[0]:.1f} | {f[2]:.2f} | {f[2] / f[0]:.1f} | "
        f"{1e3 * p[0]:.1f} | {1e3 * p[1]:.1f} | {p[1] / p[0]:.1f} |",
        flush=True,
    )
    return mean


def selection(threads: int, n: int = 100_000, d: int = 20, m: int = 500) -> None:
    header(f"FeatureVectorSelector at n = {n:,}, d = {d}, {m} vectors", threads)
    rng = np.random.default_rng(0)
    # clusters of several sizes and spreads: something to choose between
    centres = 3 * rng.standard_normal((40, d))
    spread = rng.uniform(0.3, 1.5, 40)
    which = rng.choice(40, n, p=rng.dirichlet(np.full(40, 0.5)))
    X = centres[which] + spread[which][:, None] * rng.standard_normal((n, d))
    kernel = Gaussian(unit="common").resolve(X)
    Z, M = rng.standard_normal((n, m)), rng.standard_normal((m, m))
    products = best_of(lambda: X @ X[:m].T, 4) + best_of(lambda: Z @ M, 4)
    print(f"matrix products that cannot be avoided (n m d and n m^2): {products:.2f} s\n")
    print("| rule | s | ratio to the products | peak memory / (n m 8 bytes) | unexplained fraction |")
    print("|---|---|---|---|---|", flush=True)
    figures = {}
    for rule in ("gain", "greedy", "random", "uniform"):
        model = FeatureVectorSelector(kernel=kernel, max_vectors=m, rule=rule, center=False)
        seconds = best_of(lambda model=model: model.fit(X), 4)
        with Peak() as peak:
            model.fit(X)
        left = 1 - float(model.fitness_[-1])
        figures[rule] = seconds / products, peak.bytes / (n * m * 8), left
        print(
            f"| {rule} | {seconds:.2f} | {seconds / products:.2f} | {figures[rule][1]:.2f} | {left:.4f} |", flush=True
        )
    nystroem = Nystroem(gamma=1 / (2 * kernel.length_scale**2), n_components=m, random_state=0)
    seconds = best_of(lambda: nystroem.fit_transform(X), 2)
    features = nystroem.transform(X)
    left = 1 - float(np.mean(np.einsum("ij,ij->i", features, features)))
    print(f"| scikit-learn's Nystroem | {seconds:.2f} | {seconds / products:.2f} | | {left:.4f} |\n", flush=True)
    ratio, memory, left = figures["gain"]
    verdict("time over the products, rule gain", ratio, 2.5, True)
    verdict("peak memory over n m 8 bytes, rule gain", memory, 2.5, True)
    verdict("unexplained fraction over that of uniform landmarks, rule gain", left / figures["uniform"][2], 1.0, True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fvs", description=__doc__)
    parser.add_argument("--splits", type=int, default=3, help="splits of every IDA set")
    parser.add_argument("--no-adult", action="store_true", help="leave out the long grid search on adult")
    parser.add_argument("--only", choices=["classification", "selection"])
    parser.add_argument("--threads", type=int, default=2, help="threads of the selection benchmark")
    options = parser.parse_args(arguments)
    if options.only != "classification":
        with threadpool_limits(options.threads):
            selection(options.threads)
    if options.only != "selection":
        try:
            with threadpool_limits(1):
                classification(options.splits, not options.no_adult)
        except DataNotFoundError as error:
            print(f"left out: {error}")
