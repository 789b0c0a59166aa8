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
from fewkern import SparseKernelFisher
from fewkern.datasets import make_ringnorm, make_waveform
from fewkern.fisher.lq import LqFit, LqSettings, lq_fit
from fewkern.fisher.problem import penalized_problem
from fewkern.fisher.targets import fisher_targets
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
    A = np.column_stack([np.ones(n), K])
    G, b = A.T @ A, A.T @ y
    w = np.linalg.solve(G + rho * n * np.eye(n + 1), b)

    def objective() -> float:
        return float(0.5 * np.sum((y - A @ w) ** 2) + rho * n * np.sum(np.abs(w) ** q))

    value = objective()
    while True:
        psi = np.abs(w) ** ((2 - q) / 2)
        w = psi * np.linalg.solve(psi[:, None] * G * psi + rho * n * q * np.eye(n + 1), psi * b)
        before, value = value, objective()
        if before - value <= tol * before:
            return value


def against_plain(n: int = 1500, rho: float = 0.01) -> None:
    header(f"Plain iteration (8), stop 1e-5, against lq_fit, start best, n = {n}, penalty {rho}, penalised bias", 1)
    print("| data | q | plain, s | ours, s | ratio | J plain | J ours | retained |\n|---|---|---|---|---|---|---|---|")
    met = []
    for name, make, width in (("ringnorm", ringnorm, 5.0), ("waveform", waveform, 5.0)):
        X, codes = make(n, 0)
        K = Gaussian(width=width)(X, X)
        Y = fisher_targets(codes, 2, np.ones(n)).rows(codes)
        for q, goal in ((1.0, 100.0), (0.5, 30.0)):
            # q = .5 has many minima: the lowest of three
            def solve(K: Any = K, Y: Any = Y, q: float = q) -> LqFit:
                return lq_fit(penalized_problem(K, Y, penalize_bias=True), rho, LqSettings(q=q, start="best"))

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


def against_rvm(n: int = 4000) -> None:
    header(f"SparseKernelFisher against fastrvm.RVC, two moons with noise 0.3, n = {n}, the same width", 1)
    try:
        from fastrvm import RVC
    except ImportError:
        print("fastrvm is not installed (pip install fastrvm): left out")
        return
    X, y = make_moons(n, noise=0.3, random_state=0)
    X_test, y_test = make_moons(20_000, noise=0.3, random_state=1)
    width = 0.5
    model = SparseKernelFisher(kernel=Gaussian(width=width), max_candidates=100)
    fixed = SparseKernelFisher(kernel=Gaussian(width=width), max_candidates=100, penalty=1e-3)
    rvm = RVC(kernel="rbf", gamma=1 / (2 * width**2), fit_intercept=True, n_jobs=1)
    theirs = best_of(lambda: rvm.fit(X, y), 2)
    ours, fast = best_of(lambda: model.fit(X, y), 5), best_of(lambda: fixed.fit(X, y), 5)
    count = int(np.sum(rvm.n_relevance_))
    error = float(np.mean(rvm.predict(X_test) != y_test))
    print("| | fit, s | test error % | vectors |\n|---|---|---|---|")
    rows = (
        ("fastrvm", theirs, error, count),
        *(
            (name, seconds, 1 - m.score(X_test, y_test), m.n_vectors_)
            for name, seconds, m in (("penalty by 5 folds", ours, model), ("penalty 1e-3", fast, fixed))
        ),
    )
    for name, seconds, e, vectors in rows:
        print(f"| {name} | {seconds:.3f} | {100 * e:.2f} | {vectors} |", flush=True)
    print()
    for name, seconds, e, vectors in rows[1:]:
        verdict(f"{name}: times faster than fastrvm", theirs / seconds, 50, False)
        verdict(f"{name}: error above fastrvm's, points", 100 * (e - error), 0.5, True)
        verdict(f"{name}: vectors over fastrvm's", vectors / count, 3, True)


def large(n: int = 100_000, candidates: int = 300) -> None:
    header(f"SparseKernelFisher(max_candidates={candidates}) from 25,000 to {n} samples, waveform", 1)
    print("| n | width and penalty given, s | peak memory, n x candidates doubles | everything searched, s | peak |")
    print("|---|---|---|---|---|")
    X_test, y_test = waveform(20_000, 1)
    peaks = []
    for rows in (n // 4, n):
        X, y = waveform(rows, 0)
        cells = []
        for settings in ({"kernel": Gaussian(width=5.0), "penalty": 1e-3}, {}):
            with Peak() as peak:
                model = SparseKernelFisher(max_candidates=candidates, **settings)
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
            median = Gaussian(unit="common").resolve(A).width
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


PARTS = {"plain": against_plain, "rvm": against_rvm, "large": large}


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
