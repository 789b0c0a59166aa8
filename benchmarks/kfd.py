"""kFDA_q against the plain iteration (8), against fastrvm and a tuned SVC, and at 100,000 samples."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import Peak, best_of, header, timed, verdict
from fewkern import ForwardKernelFisher, SparseKernelFisher
from fewkern.datasets import make_ringnorm, make_waveform
from fewkern.fisher.lq import lq_fit
from fewkern.fisher.problem import Discriminant, fisher_targets, penalized_problem, ridge_rows
from fewkern.kernels import Gaussian


def ringnorm(n: int, seed: int) -> tuple[Any, Any]:
    """Breiman's ringnorm as it is."""
    X, y = make_ringnorm(n, random_state=seed)
    return X, (y > 0).astype(np.int64)


def waveform(n: int, seed: int) -> tuple[Any, Any]:
    """Breiman's waveform, columns standardised."""
    X, y = make_waveform(n, random_state=seed)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y > 0).astype(np.int64)


def plain_iteration(K: Any, y: Any, rho: float, q: float, tol: float = 1e-5) -> float:
    """The paper's (8) on all components from the ridge start to its own stop; returns the objective reached."""
    n = len(K)
    A, y = K - K.mean(axis=0), y - y.mean()
    G, b = A.T @ A, A.T @ y
    w = np.linalg.solve(G + rho * n * np.eye(n), b)

    def objective() -> float:
        return float(0.5 * np.sum((y - A @ w) ** 2) + rho * n * np.sum(np.abs(w) ** q))

    value = objective()
    while True:
        psi = np.abs(w) ** ((2 - q) / 2)
        w = psi * np.linalg.solve(psi[:, None] * G * psi + rho * n * q * np.eye(n), psi * b)
        before, value = value, objective()
        if before - value <= tol * before:
            return value


def ridge(K: Any, Y: Any, rho: float) -> Any:
    """The start of (8)."""
    problem = penalized_problem(K, Y)
    return ridge_rows(problem, rho * problem.n)


def against_plain(n: int = 1500, rho: float = 0.01) -> None:
    header(f"Plain iteration (8), stop 1e-5, against lq_fit from the same start, n = {n}, penalty {rho}", 1)
    print("| data | q | plain, s | ours, s | ratio | J plain | J ours | retained |\n|---|---|---|---|---|---|---|---|")
    met = []
    for name, make, width in (("ringnorm", ringnorm, 5.0), ("waveform", waveform, 5.0)):
        X, codes = make(n, 0)
        K = Gaussian(length_scale=width)(X, X)
        Y = fisher_targets(codes, 2, np.ones(n)).rows(codes)
        for q, goal in ((1.0, 100.0), (0.5, 30.0)):
            # q = .5 has many minima: from the start of (8)
            def solve(K: Any = K, Y: Any = Y, q: float = q) -> Discriminant:
                return lq_fit(penalized_problem(K, Y), rho, q, start=None if q == 1 else ridge(K, Y, rho))

            fit, ours = solve(), best_of(solve, 5)
            value, plain = timed(lambda K=K, Y=Y, q=q: plain_iteration(K, Y[:, 0], rho, q))
            print(
                f"| {name} | {q} | {plain:.2f} | {ours:.4f} | {plain / ours:.0f} | {value:.4f} | {fit.objective:.4f} | "
                f"{len(fit.support)} |",
                flush=True,
            )
            met.append((f"{name}, q = {q}: times faster", plain / ours, goal, False))
            met.append((f"{name}, q = {q}: objective over that of (8)", fit.objective / value, 1 + 1e-9, True))
    print()
    for line in met:
        verdict(*line)


def against_rvm(sizes: tuple[int, ...] = (300, 500, 1000, 2000, 4000, 8000), first: int = 0) -> None:
    header("ForwardKernelFisher and SparseKernelFisher against fastrvm.RVC, two moons with noise 0.3", 1)
    print("All defaults, but for one unit for both features, which are lengths in a plane: fastrvm has no other.\n")
    try:
        from fastrvm import RVC
    except ImportError:
        print("fastrvm is not installed (pip install fastrvm): left out")
        return
    X_test, y_test = make_moons(20_000, noise=0.3, random_state=1000)
    kernel = Gaussian(unit="common")
    makers: dict[str, Any] = {
        "fastrvm": lambda: RVC(n_jobs=1),
        "forward": lambda: ForwardKernelFisher(kernel=kernel),
        "sparse": lambda: SparseKernelFisher(kernel=kernel),
    }
    print(
        "| n | splits |"
        + "".join(f" {name}: s | vectors | error % |" for name in makers)
        + " time ratio, forward | sparse | error above, forward | sparse |"
    )
    print("|---" * 15 + "|")
    met = []
    for n in sizes:
        splits = max(1, min(60, 18_000 // n))
        runs: dict[str, list[tuple[float, int, float]]] = {name: [] for name in makers}
        for seed in range(first, first + splits):
            X, y = make_moons(n, noise=0.3, random_state=seed)
            for name, make in makers.items():
                model = make()
                seconds = best_of(lambda model=model, X=X, y=y: model.fit(X, y), 3 if n <= 1000 else 1)
                vectors = int(np.sum(model.n_relevance_)) if name == "fastrvm" else model.n_vectors_
                runs[name].append((seconds, vectors, 100 * float(np.mean(model.predict(X_test) != y_test))))
        mean = {name: np.mean(found, axis=0) for name, found in runs.items()}
        spread = {name: np.std(found, axis=0) / max(splits - 1, 1) ** 0.5 for name, found in runs.items()}
        ratio = {name: mean[name][0] / mean["fastrvm"][0] for name in ("forward", "sparse")}
        # split by split: the splits differ by more than the models do
        above = {name: np.subtract(runs[name], runs["fastrvm"])[:, 2] for name in ratio}
        doubt = {name: np.std(above[name]) / max(splits - 1, 1) ** 0.5 for name in ratio}
        excess = "".join(f" {np.mean(above[name]):.2f} ± {doubt[name]:.2f} |" for name in ratio)
        cells = [
            f" {mean[name][0]:.3f} | {mean[name][1]:.1f} | {mean[name][2]:.2f} ± {spread[name][2]:.2f} |"
            for name in makers
        ]
        print(
            f"| {n} | {splits} |{''.join(cells)} {ratio['forward']:.2f} | {ratio['sparse']:.2f} |{excess}", flush=True
        )
        for name in ratio:
            met.append((f"n = {n}, {name}: time over fastrvm's", ratio[name], 1.0, True))
            met.append((f"n = {n}, {name}: vectors over fastrvm's", mean[name][1] / mean["fastrvm"][1], 1.0, True))
            met.append(
                (f"n = {n}, {name}: error above fastrvm's, points", mean[name][2] - mean["fastrvm"][2], 0.2, True)
            )
    print()
    for line in met:
        verdict(*line)


def few(splits: int = 4) -> None:
    header("Vectors and test error of the defaults: waveform (400 samples) and digits (1,000)", 1)
    print("| set | model | error % | vectors | fit, s |\n|---|---|---|---|---|")
    for name, load, train in (("waveform", lambda k: waveform(20_400, k), 400), ("digits", shuffled_digits, 1000)):
        for model in (SparseKernelFisher(), ForwardKernelFisher()):
            rows = []
            for k in range(splits):
                X, y = load(k)
                _, seconds = timed(lambda model=model, X=X[:train], y=y[:train]: model.fit(X, y))
                rows.append((100 * (1 - model.score(X[train:], y[train:])), model.n_vectors_, seconds))
            error, vectors, seconds = np.mean(rows, axis=0)
            spread = np.std(rows, axis=0, ddof=1)[0] / splits**0.5
            print(f"| {name} | {model!r} | {error:.2f} ± {spread:.2f} | {vectors:.1f} | {seconds:.2f} |", flush=True)


def shuffled_digits(seed: int) -> tuple[Any, Any]:
    """Digits in a random order, in units of their pixels."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def large(n: int = 100_000, candidates: int = 1000) -> None:
    header(f"SparseKernelFisher with {candidates} candidates from 25,000 to {n} samples, waveform", 1)
    print("| n | width and penalty given, s | peak memory, n x candidates doubles | everything searched, s | peak |")
    print("|---|---|---|---|---|")
    X_test, y_test = waveform(20_000, 1)
    peaks = []
    for rows in (n // 4, n):
        X, y = waveform(rows, 0)
        cells = []
        for settings in ({"kernel": Gaussian(length_scale=5.0), "alpha": 1e-3}, {}):
            with Peak() as peak:
                model = SparseKernelFisher(**settings)
                _, seconds = timed(lambda model=model, X=X, y=y: model.fit(X, y))
            multiple = peak.bytes / (8 * rows * candidates)
            peaks.append(multiple)
            cells += [f"{seconds:.1f}", f"{multiple:.1f}"]
        print(f"| {rows} | {' | '.join(cells)} |", flush=True)
    print(f"\nn = {n}: test error {100 * (1 - model.score(X_test, y_test)):.2f} %, {model.n_vectors_} vectors")
    verdict("peak memory over n x candidates doubles", max(peaks), 6, True)


def multiclass(splits: int) -> None:
    header("Several classes: SparseKernelFisher against GridSearchCV(SVC), 8 x 8 grid, 5 folds", 1)
    print("| set (n) | error % | sparser | SVC | vectors | sparser | SVC | tuned in, s | SVC |\n" + "|---" * 9 + "|")
    met = []
    for name, load, n, scaled in (
        ("iris", load_iris, 100, True),
        ("wine", load_wine, 118, True),
        ("digits", load_digits, 1000, False),
    ):
        X, y = load(return_X_y=True)
        rows = []
        for seed in range(splits if name != "digits" else min(splits, 3)):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[:n], order[n:]
            scale = StandardScaler(with_std=scaled).fit(X[train])
            A, B = scale.transform(X[train]), scale.transform(X[test])
            ours, seconds = timed(lambda A=A, t=y[train]: SparseKernelFisher().fit(A, t))
            sparse = SparseKernelFisher(kernel=ours.kernel_, prefer="sparse").fit(A, y[train])
            median = Gaussian(unit="common").resolve(A).length_scale
            grid = {"C": np.logspace(-1, 4, 8), "gamma": 1 / (2 * (median * np.geomspace(0.14, 6.0, 8)) ** 2)}
            svc, tuned = timed(lambda A=A, t=y[train], g=grid: GridSearchCV(SVC(), g, cv=5).fit(A, t))
            errors = [100 * (1 - m.score(B, y[test])) for m in (ours, sparse, svc)]
            rows.append(
                [*errors, ours.n_vectors_, sparse.n_vectors_, len(svc.best_estimator_.support_), seconds, tuned]
            )
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) if len(rows) > 1 else np.zeros(8)
        cells = [f"{mean[j]:.1f} ± {spread[j]:.1f}" for j in range(3)] + [f"{v:.1f}" for v in mean[3:]]
        print(f"| {name} ({n}) | {' | '.join(cells)} |", flush=True)
        met.append((f"{name}: error above SVC's, points", mean[0] - mean[2], 1.0, True))
        met.append((f"{name}, sparser: error above SVC's, points", mean[1] - mean[2], 1.0, True))
        met.append((f"{name}, sparser: vectors over SVC's", mean[4] / mean[5], 0.6, True))
    print()
    for line in met:
        verdict(*line)


PARTS = {"plain": against_plain, "rvm": against_rvm, "few": few, "large": large}


def main(arguments: list[str] | None = None) -> None:
    """Run all parts, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "multiclass", []], help="default: all")
    parser.add_argument("--splits", type=int, default=10)
    chosen = parser.parse_args(arguments)
    parts = chosen.parts or [*PARTS, "multiclass"]
    with threadpool_limits(1):
        for name in parts:
            if name == "multiclass":
                multiclass(chosen.splits)
            else:
                PARTS[name]()


if __name__ == "__main__":
    main()
