"""Splits of the 14 sets of two classes that several benchmarks share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

from experiments.data import fetch_ida, fetch_uci

__all__ = ["SETS", "Split", "split"]

SETS = (
    "banana", "german", "image", "splice", "waveform", "heart", "twonorm", "ringnorm", "thyroid", "diabetis",
    "breast-cancer", "flare-solar", "titanic", "chess",
)  # fmt: skip
# Training rows of a set that has no splits of its own.
TRAIN_ROWS = 2000


@dataclass(frozen=True)
class Split:
    """Standardised training and test part."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def split(name: str, number: int) -> Split:
    """A split of a set: its own, or random rows; standardised on the training part."""
    if name == "chess":
        z = fetch_uci("chess_krvskp")
        rows = np.random.default_rng(number).permutation(len(z.y))
        train, test = rows[:TRAIN_ROWS], rows[TRAIN_ROWS:]
    else:
        z = fetch_ida(name)
        train, test = z.train_idx[number], z.test_idx[number]
    scale = StandardScaler().fit(z.X[train])
    return Split(scale.transform(z.X[train]), z.y[train], scale.transform(z.X[test]), z.y[test])
