"""Novelty beside OneClassSVM: how well odd rows are told from usual ones, and how many false alarms there are."""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from benchmarks.measure import header
from experiments.data import fetch_ida, fetch_uci
from fewkern import FeatureVectorSelector, KernelClassifier

# Six sets of different kinds.
SETS = ("waveform", "image", "german", "wdbc", "ionosphere", "digits")
# Rows to train on (at most half of a set), and to test on.
TRAIN_ROWS, TEST_ROWS = 500, 1000
FALSE_ALARMS = 0.05


def samples(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        return load_digits(return_X_y=True)
    z = fetch_uci(name) if name in ("wdbc", "ionosphere") else fetch_ida(name)
    return np.asarray(z.X, dtype=float), z.y


def odd_rows(kind: str, usual: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows that are no samples: every column shuffled by itself, or uniform between its least and largest value."""
    if kind == "shuffled":
        return np.column_stack([rng.permutation(column) for column in usual.T])
    return rng.uniform(usual.min(axis=0), usual.max(axis=0), usual.shape)


def measure(name: str, kind: str, seed: int) -> list[float]:
    """Areas under the curve of OneClassSVM, FeatureVectorSelector and KernelClassifier; false alarms of ours."""
    rng = np.random.default_rng(seed)
    X, y = samples(name)
    rows = rng.permutation(len(y))
    count = min(TRAIN_ROWS, len(y) // 2)
    train, test = rows[:count], rows[count : count + TEST_ROWS]
    scale = StandardScaler().fit(X[train])
    usual, new = scale.transform(X[train]), scale.transform(X[test])
    both = np.concatenate([new, odd_rows(kind, new, rng)])
    truth = np.repeat([0, 1], len(new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = FeatureVectorSelector().fit(usual)
        classifier = KernelClassifier().fit(usual, y[train])
    scores = [-OneClassSVM().fit(usual).score_samples(both), selector.novelty(both), classifier.novelty(both)]
    alarms = [np.mean(m.novelty(new) > m.novelty_threshold(FALSE_ALARMS)) for m in (selector, classifier)]
    return [*(roc_auc_score(truth, s) for s in scores), *alarms, classifier.n_vectors_]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks novelty", description=__doc__)
    parser.add_argument("--splits", type=int, default=5, help="random splits of every set")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        header(f"Area under the curve, and alarms among usual rows (5 % stated), mean of {options.splits} splits", 1)
        print("| set | odd rows | OneClassSVM | selector | classifier | alarms %, selector | classifier | vectors |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for name in options.sets:
            for kind in ("shuffled", "uniform"):
                found = np.mean([measure(name, kind, seed) for seed in range(options.splits)], axis=0)
                print(
                    f"| {name} | {kind} | {found[0]:.3f} | {found[1]:.3f} | {found[2]:.3f} | {100 * found[3]:.1f} "
                    f"| {100 * found[4]:.1f} | {found[5]:.0f} |",
                    flush=True,
                )
