"""Planted errors found by suspects(X, y), beside out-of-fold predictions of HistGradientBoosting."""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from benchmarks.measure import cpu_timed, header
from benchmarks.tables.data import CLASSES, Part, part
from benchmarks.tables.methods import declared_categories
from fewkern import KernelClassifier, KernelRegressor, suspects

# Ten tables with classes and five with numbers, of different kinds.
LABELS = ("phoneme", "satimage", "vehicle", "wall_robot", "credit_g", "telco_churn", "electrical_grid", "car")
LABELS += ("pendigits", "bank_full")
# Ten more, on which nothing was tried before the method was settled.
FRESH = ("balance_scale", "cmc", "default_credit_cat", "eye_movements_cat", "hypothyroid", "mushroom", "ozone")
FRESH += ("semeion", "vowel", "wilt")
NUMBERS = ("uci_concrete", "kin8nm", "wine_quality", "miami_housing", "uci_airfoil")
WRONG, FOLDS = 0.1, 5


def planted(given: Part, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Targets of which a tenth are wrong, and which: another class at random, or the number of another wrong row."""
    y, wrong = given.y.copy(), np.zeros(len(given.y), dtype=bool)
    rows = rng.choice(len(y), round(WRONG * len(y)), replace=False)
    wrong[rows] = True
    if given.task == CLASSES:
        classes, codes = np.unique(y, return_inverse=True)
        y[rows] = classes[(codes[rows] + rng.integers(1, len(classes), len(rows))) % len(classes)]
    else:
        y[rows] = y[np.roll(rows, 1)]
    return y, wrong


def boosted(given: Part, y: np.ndarray) -> np.ndarray:
    """One minus the out-of-fold probability of the label, or the distance from the out-of-fold prediction."""
    options = {"categorical_features": declared_categories(given), "random_state": 0}
    if given.task != CLASSES:
        folds = KFold(FOLDS, shuffle=True, random_state=0)
        return np.abs(cross_val_predict(HistGradientBoostingRegressor(**options), given.raw, y, cv=folds) - y)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    model = HistGradientBoostingClassifier(**options)
    p = cross_val_predict(model, given.raw, y, cv=folds, method="predict_proba")
    return 1 - p[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]


def out_of_fold(given: Part, y: np.ndarray) -> np.ndarray:
    """The same by our learner, which moves vectors and chooses their number: one fit per fold."""
    if given.task != CLASSES:
        folds = KFold(FOLDS, shuffle=True, random_state=0)
        return np.abs(cross_val_predict(KernelRegressor(), given.X, y, cv=folds) - y)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    p = cross_val_predict(KernelClassifier(), given.X, y, cv=folds, method="predict_proba")
    return 1 - p[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]


def measure(name: str, seed: int, learner: bool) -> list[tuple[float, float]]:
    """Area under the curve and processor seconds of every method."""
    given = part("3000", name, 0)
    y, wrong = planted(given, np.random.default_rng(seed))
    task = "classify" if given.task == CLASSES else "regress"
    works = [lambda: boosted(given, y), lambda: suspects(given.X, y, task=task).scores]
    works += [lambda: out_of_fold(given, y)] if learner else []
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for work in works:
            scores, seconds = cpu_timed(work)
            found.append((float(roc_auc_score(wrong, scores)), seconds))
    return found


def show(title: str, tables: tuple[str, ...], seeds: int, learner: bool) -> None:
    """One table of results."""
    header(f"{title}: area under the curve and processor seconds, mean of {seeds} draws", 1)
    more = " learner, 5 folds | s |" if learner else ""
    print(f"| table | HistGradientBoosting, 5 folds | s | suspects | s | times as fast |{more}")
    print("|---" * (8 if learner else 6) + "|", flush=True)
    every = []
    for name in tables:
        found = np.mean([measure(name, seed, learner) for seed in range(seeds)], axis=0)
        every.append(found)
        _print(name, found)
    _print("mean", np.mean(every, axis=0))
    ratios = [found[0, 1] / found[1, 1] for found in every]
    better = sum(found[1, 0] >= found[0, 0] for found in every)
    rate = math.exp(float(np.mean(np.log(ratios))))
    print(f"\nAt least the area on {better} of {len(every)} tables; times as fast: geometric mean {rate:.0f}, ", end="")
    print(f"least {min(ratios):.0f}, most {max(ratios):.0f}", flush=True)


def _print(name: str, found: np.ndarray) -> None:
    theirs, ours, *more = found
    rest = "".join(f" {area:.3f} | {seconds:.1f} |" for area, seconds in more)
    line = f"| {name} | {theirs[0]:.3f} | {theirs[1]:.2f} | {ours[0]:.3f} | {ours[1]:.3f} | {theirs[1] / ours[1]:.0f} |"
    print(line + rest, flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks suspects", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="draws of wrong targets")
    parser.add_argument("--tables", nargs="+", default=(), help="only these tables")
    parser.add_argument("--learner", action="store_true", help="also out-of-fold predictions of our learner, slow")
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        suspects(np.random.default_rng(0).normal(size=(300, 3)), np.arange(300) % 2)  # imports
        titles = {
            "A tenth of the labels is wrong": LABELS,
            "Tables on which nothing was tried": FRESH,
            "A tenth of the numbers is another row's": NUMBERS,
        }
        for title, tables in titles.items():
            chosen = tuple(name for name in tables if not options.tables or name in options.tables)
            if chosen:
                show(title, chosen, options.seeds, options.learner)
