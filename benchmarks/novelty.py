"""Novelty beside LocalOutlierFactor, IsolationForest, OneClassSVM and ECOD on sets with odd samples; false alarms."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from benchmarks.measure import header
from fewkern import FeatureVectorSelector, KernelClassifier

SETS = (
    "annthyroid", "cardio", "cardiotocography", "fault", "landsat", "mammography",
    "pageblocks", "thyroid", "vowels", "waveform", "wilt", "yeast",
)  # fmt: skip
# Training rows at most, of the usual half, and usual rows to be judged at most.
TRAIN_ROWS, TEST_ROWS = 1000, 2000
RATES = (0.05, 0.01)
# Sizes of the training sets of "--alarms".
ROWS = (60, 120, 250, 400, 1000)


def ecod() -> Any:
    from pyod.models.ecod import ECOD

    return ECOD()


PEERS: dict[str, Callable[[], Any]] = {
    "OneClassSVM": OneClassSVM,
    "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True),
    "IsolationForest": lambda: IsolationForest(random_state=0),
    "ECOD": ecod,
}


def oddness(peer: str, usual: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Greater for odd rows."""
    model = PEERS[peer]().fit(usual)
    return -model.score_samples(new) if hasattr(model, "score_samples") else model.decision_function(new)


def odd_set(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Usual rows to train on, other usual rows, and odd ones; standardised on the first."""
    with np.load(Path(os.environ["FEWKERN_DATA"]) / "odd" / f"{name}.npz") as file:
        X, odd = file["X"].astype(float), file["y"] == 1
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(~odd))
    half = len(rows) // 2
    scale = StandardScaler().fit(X[rows[:half][:TRAIN_ROWS]])
    return tuple(scale.transform(X[part]) for part in (rows[:half][:TRAIN_ROWS], rows[half:][:TEST_ROWS], odd))


def detect(name: str, splits: int, peers: list[str]) -> np.ndarray:
    """Per split: areas under the curve of the selector and of the peers, then the selector's false alarms."""
    found = []
    for seed in range(splits):
        usual, new, odd = odd_set(name, seed)
        truth, both = np.repeat([0, 1], [len(new), len(odd)]), np.concatenate([new, odd])
        ours = FeatureVectorSelector().fit(usual)
        scores = [ours.novelty(both), *(oddness(peer, usual, both) for peer in peers)]
        alarms = [100 * np.mean(ours.novelty(new) > ours.novelty_threshold(rate)) for rate in RATES]
        found.append([*(roc_auc_score(truth, score) for score in scores), *alarms])
    return np.array(found)


def counts(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of fifty counts that are mostly zero, which one hidden number makes more or less likely, and two classes."""
    share = np.exp(np.linspace(np.log(0.005), np.log(0.5), 50))
    slopes, rng = np.random.default_rng(5).normal(size=50), np.random.default_rng([seed, rows])
    hidden = rng.normal(size=rows)
    chance = 1 / (1 + np.exp(-(np.log(share / (1 - share)) + slopes * hidden[:, None])))
    X = (rng.random((rows, 50)) < chance) * np.exp(rng.normal(size=(rows, 50)))
    return X, hidden + 0.5 * rng.normal(size=rows) > 0


def alarms(rows: int, splits: int, make: Callable[[], Any]) -> np.ndarray:
    """Per draw: false alarms in % among new rows of counts, at each rate that so many rows can vouch for."""
    found = []
    for seed in range(splits):
        X, y = counts(rows + 2000, seed)
        model = make().fit(X[:rows], y[:rows])
        novelty = model.novelty(X[rows:])
        found.append([100 * np.mean(novelty > model.novelty_threshold(rate)) for rate in RATES if rate * rows >= 1])
    return np.array(found)


def cells(found: np.ndarray, form: str) -> str:
    """Means and standard errors."""
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.full(found.shape[1], np.nan)
    return " | ".join(f"{form.format(mean)} ± {form.format(e)}" for mean, e in zip(found.mean(axis=0), error))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks novelty", description=__doc__)
    parser.add_argument("--splits", type=int, default=5, help="random splits of every set")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS), help="ECOD needs pyod")
    parser.add_argument("--alarms", nargs="*", type=int, default=ROWS, help="rows of counts that are mostly zero")
    options = parser.parse_args(arguments)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        header(f"Area under the curve, and the selector's false alarms in %, {options.splits} splits", 1)
        print(f"| set | selector | {' | '.join(options.peers)} | 5% asked | 1% asked |")
        print("|---" * (len(options.peers) + 4) + "|", flush=True)
        for name in options.sets:
            found, k = detect(name, options.splits, options.peers), len(options.peers) + 1
            print(f"| {name} | {cells(found[:, :k], '{:.3f}')} | {cells(found[:, k:], '{:.1f}')} |", flush=True)
        print("\n| rows of counts | model | 5% asked | 1% asked |\n|---|---|---|---|", flush=True)
        for rows in options.alarms:
            for make in (FeatureVectorSelector, KernelClassifier):
                print(
                    f"| {rows} | {make.__name__} | {cells(alarms(rows, options.splits, make), '{:.1f}')} |", flush=True
                )


if __name__ == "__main__":
    main([])
