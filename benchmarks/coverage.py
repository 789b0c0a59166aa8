"""Intervals and sets of classes on rows that were not trained on: is the coverage what was asked for?"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from benchmarks.measure import header, verdict
from experiments.data import fetch_ida, fetch_large, fetch_uci
from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    ForwardKernelFisher,
    KernelClassifier,
    KernelRegressor,
    SparseKernelFisher,
)

# The coverage may differ from what was asked by so much.
GOAL = 0.015
# At most so many rows judge a model.
TEST_ROWS = 3000


@dataclass(frozen=True)
class Problem:
    """Samples and targets or labels, and how many of them a model is fitted to."""

    X: np.ndarray
    y: np.ndarray
    rows: int


def growing_noise() -> Problem:
    """The noise grows along a feature that the mean does not depend on."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (5000, 2))
    return Problem(X, np.sin(X[:, 0]) + (0.05 + 0.3 * np.abs(X[:, 1])) * rng.standard_normal(5000), 400)


def column(table: np.ndarray, number: int, rows: int) -> Problem:
    """One column of a table, from the others."""
    table = np.asarray(table, dtype=float)[:6000]
    return Problem(np.delete(table, number, axis=1), table[:, number], rows)


def friedman(rows: int) -> Problem:
    return Problem(*make_friedman1(5000, noise=1.0, random_state=0), rows)


REGRESSION: dict[str, Callable[[], Problem]] = {
    "diabetes": lambda: Problem(*load_diabetes(return_X_y=True), 300),
    "friedman1": lambda: friedman(200),
    "friedman1, 500": lambda: friedman(500),
    "growing noise": growing_noise,
    "wdbc, radius": lambda: column(fetch_uci("wdbc").X, 0, 300),
    "liver, drinks": lambda: column(fetch_uci("liver_bupa").X, 5, 200),
    "german, column 5": lambda: column(fetch_ida("german").X, 4, 500),
    "waveform, column 8": lambda: column(fetch_ida("waveform").X, 7, 500),
    "image, column 11": lambda: column(fetch_ida("image").X, 10, 500),
    "diabetis, column 3": lambda: column(fetch_ida("diabetis").X, 2, 400),
}


def ida(name: str, rows: int) -> Problem:
    z = fetch_ida(name)
    return Problem(z.X, z.y, rows)


CLASSES: dict[str, tuple[Callable[[], Problem], float]] = {
    "banana": (lambda: ida("banana", 400), 0.95),
    "german": (lambda: ida("german", 500), 0.9),
    "diabetis": (lambda: ida("diabetis", 400), 0.9),
    "waveform": (lambda: ida("waveform", 400), 0.95),
    "heart": (lambda: ida("heart", 150), 0.9),
    "flare-solar": (lambda: ida("flare-solar", 500), 0.9),
    "breast-cancer": (lambda: ida("breast-cancer", 170), 0.9),
    "image": (lambda: ida("image", 500), 0.98),
    "digits": (lambda: Problem(*load_digits(return_X_y=True), 600), 0.98),
    "letter": (lambda: _letter(), 0.95),
}


def _letter() -> Problem:
    z = fetch_large("letter")
    return Problem(np.asarray(z.X, dtype=float), np.asarray(z.y), 1500)


class CrossConformal:
    """CV+ of MAPIE, which needs ``pip install mapie``: five fits of a model, for one coverage each."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def fit(self, X: np.ndarray, y: np.ndarray) -> CrossConformal:
        from mapie.regression import CrossConformalRegressor

        levels = [0.8, 0.9, 0.95]
        model = CrossConformalRegressor(self.make(), confidence_level=levels, method="plus", cv=5)
        self.levels, self.model = levels, model.fit_conformalize(X, y)
        return self

    def predict_interval(self, X: np.ndarray, coverage: float) -> np.ndarray:
        return self.model.predict_interval(X)[1][:, :, self.levels.index(coverage)]


REGRESSORS: dict[str, Callable[[], Any]] = {
    "KernelRegressor": KernelRegressor,
    "FeatureVectorRegressor": FeatureVectorRegressor,
}
RIVALS: dict[str, Callable[[], Any]] = {
    "MAPIE CV+ of KernelRegressor": lambda: CrossConformal(KernelRegressor),
    "MAPIE CV+ of boosting": lambda: CrossConformal(HistGradientBoostingRegressor),
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "KernelClassifier": KernelClassifier,
    "FeatureVectorDiscriminant": FeatureVectorDiscriminant,
    "SparseKernelFisher": SparseKernelFisher,
    "ForwardKernelFisher": ForwardKernelFisher,
    "DensityClassifier": DensityClassifier,
}


def split(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows to train on, and to test on."""
    rows = np.random.default_rng(seed).permutation(len(problem.y))
    return rows[: problem.rows], rows[problem.rows : problem.rows + TEST_ROWS]


def fitted(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def fifths(inside: np.ndarray, widths: np.ndarray) -> tuple[float, float]:
    """Least and largest coverage over fifths of the rows, from narrow intervals to wide ones."""
    parts = [inside[part].mean() for part in np.array_split(np.argsort(widths, kind="stable"), 5)]
    return min(parts), max(parts)


def judge_intervals(make: Callable[[], Any], problem: Problem, splits: int) -> tuple[np.ndarray, np.ndarray]:
    """Per split: coverage at 80, 90 and 95 %, mean width at 90 % in units of the spread of y, worst fifths, scale."""
    found = []
    for seed in range(splits):
        train, test = split(problem, seed)
        model = fitted(make(), problem.X[train], problem.y[train])
        truth, row = problem.y[test], []
        for coverage in (0.8, 0.9, 0.95):
            lower, upper = model.predict_interval(problem.X[test], coverage).T
            row.append(((lower <= truth) & (truth <= upper)).mean())
        lower, upper = model.predict_interval(problem.X[test], 0.9).T
        ends = fifths((lower <= truth) & (truth <= upper), upper - lower)
        scaled = hasattr(model, "intervals_") and model.intervals_.scale is not None
        found.append([*row, (upper - lower).mean() / problem.y.std(), *ends, float(scaled)])
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(splits)


def judge_sets(
    make: Callable[[], Any], problem: Problem, coverage: float, splits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Per split: accuracy, coverage reached, mean number of classes in a set, least coverage of a class."""
    found = []
    for seed in range(splits):
        train, test = split(problem, seed)
        model = fitted(make(), problem.X[train], problem.y[train])
        codes = np.searchsorted(model.classes_, problem.y[test])
        sets = model.predict_set(problem.X[test], coverage)
        inside = sets[np.arange(len(test)), codes]
        accuracy = (model.predict(problem.X[test]) == problem.y[test]).mean()
        least = min(inside[codes == c].mean() for c in np.unique(codes))
        found.append([accuracy, inside.mean(), sets.sum(axis=1).mean(), least])
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(splits)


def regression(options: argparse.Namespace) -> None:
    for label, make in {**REGRESSORS, **RIVALS}.items():
        if label not in options.models:
            continue
        header(f"Intervals of {label}, {options.splits} splits: asked 80, 90 and 95 %", 1)
        print("| set | rows | test rows | 80 % | 90 % | 95 % | error of the 90 % | width | error | fifths | scaled |")
        print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
        worst = []
        for name in options.sets or REGRESSION:
            if name not in REGRESSION:
                continue
            problem = REGRESSION[name]()
            mean, error = judge_intervals(make, problem, options.splits)
            worst += list(np.abs(mean[:3] - [0.8, 0.9, 0.95]))
            print(
                f"| {name} | {problem.rows} | {len(split(problem, 0)[1])} | {100 * mean[0]:.1f} | {100 * mean[1]:.1f} "
                f"| {100 * mean[2]:.1f} | {100 * error[1]:.1f} | {mean[3]:.2f} | {error[3]:.2f} "
                f"| {100 * mean[4]:.0f} to {100 * mean[5]:.0f} | {100 * mean[6]:.0f} % |",
                flush=True,
            )
        print()
        verdict("largest distance from what was asked", max(worst), GOAL, at_most=True)


def classes(options: argparse.Namespace) -> None:
    for label in CLASSIFIERS:
        if label not in options.models:
            continue
        header(f"Sets of classes of {label}, {options.splits} splits", 1)
        print("| set | rows | test rows | accuracy | asked | reached | error | classes in a set | least of a class |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        worst = []
        for name in options.sets or CLASSES:
            if name not in CLASSES:
                continue
            make, coverage = CLASSES[name]
            problem = make()
            mean, error = judge_sets(CLASSIFIERS[label], problem, coverage, options.splits)
            worst.append(abs(mean[1] - max(coverage, mean[0])))
            print(
                f"| {name} | {problem.rows} | {len(split(problem, 0)[1])} | {100 * mean[0]:.1f} | {100 * coverage:.0f} "
                f"| {100 * mean[1]:.1f} | {100 * error[1]:.1f} | {mean[2]:.2f} | {100 * mean[3]:.0f} |",
                flush=True,
            )
        print()
        verdict(
            "largest distance from what was asked (or from the accuracy, if larger)", max(worst), GOAL, at_most=True
        )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    parser.add_argument("--splits", type=int, default=20, help="random splits of every set")
    parser.add_argument("--sets", nargs="+", help="names of sets (all by default)")
    every = [*REGRESSORS, *CLASSIFIERS, *RIVALS]
    parser.add_argument("--models", nargs="+", choices=every, default=every[:4], help="which models")
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        regression(options)
        classes(options)
