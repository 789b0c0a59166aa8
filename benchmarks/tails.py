"""The share of new rows below and above the intervals, and how much both vary from one training set to the next."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from threadpoolctl import threadpool_limits

from benchmarks.coverage import GOAL, REGRESSORS, fitted
from benchmarks.measure import header, verdict

# New rows that judge a model.
TEST_ROWS = 4000
Rows = tuple[np.ndarray, np.ndarray]


def _features(n: int, rng: np.random.Generator) -> Rows:
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0])


def normal(n: int, rng: np.random.Generator) -> Rows:
    """Noise of the same size everywhere."""
    X, mean = _features(n, rng)
    return X, mean + 0.3 * rng.standard_normal(n)


def log_normal(n: int, rng: np.random.Generator) -> Rows:
    """Noise with a long tail above, and mean zero."""
    X, mean = _features(n, rng)
    return X, mean + 0.3 * (np.exp(rng.standard_normal(n)) - np.exp(0.5))


def growing(n: int, rng: np.random.Generator) -> Rows:
    """Noise that grows along a feature that the mean does not depend on."""
    X, mean = _features(n, rng)
    return X, mean + (0.05 + 0.3 * np.abs(X[:, 1])) * rng.standard_normal(n)


def growing_log_normal(n: int, rng: np.random.Generator) -> Rows:
    """Both."""
    X, mean = _features(n, rng)
    return X, mean + (0.05 + 0.2 * np.abs(X[:, 1])) * (np.exp(0.7 * rng.standard_normal(n)) - np.exp(0.245))


def ten_columns(n: int, rng: np.random.Generator) -> Rows:
    """Normal noise around Friedman's first function, of ten columns: the model itself is uncertain, too."""
    X, y = make_friedman1(n, noise=1.0, random_state=int(rng.integers(2**31)))
    return X, y


NOISES: dict[str, Callable[[int, np.random.Generator], Rows]] = {
    "normal": normal,
    "log-normal": log_normal,
    "growing": growing,
    "growing, log-normal": growing_log_normal,
    "normal, ten columns": ten_columns,
}


def judge(make: Callable[[], Any], noise: Callable[[int, np.random.Generator], Rows], rows: int, sets: int) -> Any:
    """Per training set: share of new rows below and above an interval of 90 %, and its mean width."""
    found = []
    for seed in range(sets):
        rng = np.random.default_rng([seed, rows])
        model = fitted(make(), *noise(rows, rng))
        X, y = noise(TEST_ROWS, rng)
        lower, upper = model.predict_interval(X, 0.9).T
        found.append([(y < lower).mean(), (y > upper).mean(), (upper - lower).mean()])
    return np.array(found)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks tails", description=__doc__)
    parser.add_argument("--sets", type=int, default=40, help="training sets of every kind and size")
    parser.add_argument("--rows", type=int, nargs="+", default=[60, 120, 200, 400, 1000], help="rows of a training set")
    parser.add_argument("--noises", nargs="+", choices=list(NOISES), default=list(NOISES), help="which noises")
    parser.add_argument("--models", nargs="+", choices=list(REGRESSORS), default=list(REGRESSORS), help="which models")
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        for label in options.models:
            header(f"Tails of the 90 % intervals of {label}, {options.sets} training sets", 1)
            print("| noise | rows | below | above | inside | varies by | from | to | width |")
            print("|---|---|---|---|---|---|---|---|---|", flush=True)
            worst = 0.0
            for name in options.noises:
                for rows in options.rows:
                    found = 100 * judge(REGRESSORS[label], NOISES[name], rows, options.sets)
                    below, above, width = found.mean(axis=0)
                    inside = 100 - found[:, :2].sum(axis=1)
                    if rows >= 200:
                        worst = max(worst, abs(below - 5), abs(above - 5))
                    print(
                        f"| {name} | {rows} | {below:.1f} | {above:.1f} | {inside.mean():.1f} "
                        f"| {inside.std(ddof=1):.1f} | {inside.min():.0f} | {inside.max():.0f} | {width / 100:.2f} |",
                        flush=True,
                    )
            print()
            verdict("largest distance of a tail from 5 %, from 200 rows on", worst / 100, GOAL, at_most=True)
