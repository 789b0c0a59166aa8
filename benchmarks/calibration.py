"""Probabilities beside logistic regression, boosting and a calibrated SVC: log loss and calibration on nine sets."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import header, verdict
from benchmarks.splits import Split
from benchmarks.splits import split as ida_split
from experiments.data import DataNotFoundError, fetch_large
from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    ForwardKernelFisher,
    KernelClassifier,
    SparseKernelFisher,
)

# Rows to train on and to test on, of sets without splits of their own.
ROWS = {"digits": (1000, 797), "mnist": (1000, 3000), "letter": (2000, 4000)}
SETS = (*ROWS, "waveform", "german", "diabetis", "heart", "banana", "image")
OURS: dict[str, Callable[[], Any]] = {
    "KernelClassifier": KernelClassifier,
    "FeatureVectorDiscriminant": FeatureVectorDiscriminant,
    "SparseKernelFisher": SparseKernelFisher,
    "KernelFisher (q=2)": lambda: SparseKernelFisher(q=2),
    "ForwardKernelFisher": ForwardKernelFisher,
    "DensityClassifier": DensityClassifier,
}
PEERS: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "gradient boosting": HistGradientBoostingClassifier,
    "SVC, CalibratedClassifierCV": lambda: make_pipeline(
        StandardScaler(),
        CalibratedClassifierCV(GridSearchCV(SVC(), {"C": (1, 10, 100), "gamma": ("scale", 0.01, 0.1)}, cv=3), cv=5),
    ),
}
ON_KERNELS = "logistic regression on the kernel features"
BINS = 15
# Goals: expected calibration error, where the test part is so large that perfect probabilities have less than half.
ECE = 0.03
# Draws that tell the calibration error of perfect probabilities on as many samples.
DRAWS = 200


@dataclass(frozen=True)
class Figures:
    """What probabilities are worth on a test part."""

    error: float
    """In %."""
    log_loss: float
    stated: float
    """Mean of the largest probability."""
    right: float
    """Share of the samples for which it is right."""
    ece: float
    """Expected calibration error: equal-width bins of the largest probability."""
    least: float
    """The same, if every sample were right with the probability stated: what chance alone makes of it."""


def calibration_error(top: np.ndarray, right: np.ndarray) -> float:
    """Mean distance of stated and true confidence, over bins of the stated one."""
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, top - right, minlength=BINS)).sum() / len(top))


def figures(P: np.ndarray, codes: np.ndarray) -> Figures:
    """Figures of probabilities ``P`` for samples of classes ``codes``."""
    top, right = P.max(axis=1), P.argmax(axis=1) == codes
    rng = np.random.default_rng(0)
    chance = [calibration_error(top, rng.random(len(top)) < top) for _ in range(DRAWS)]
    own = np.clip(P[np.arange(len(codes)), codes], 1e-15, 1.0)
    loss = float(-np.log(own).mean())
    return Figures(
        100 * float(1 - right.mean()),
        loss,
        float(top.mean()),
        float(right.mean()),
        calibration_error(top, right),
        float(np.mean(chance)),
    )


def split(name: str, number: int) -> Split:
    """A split of a set: its own, or random rows. Pixels are divided by their range, other columns standardised."""
    if name not in ROWS:
        return ida_split(name, number)
    data = load_digits() if name == "digits" else fetch_large(name)
    n, m = ROWS[name]
    rows = np.random.default_rng(number).permutation(len(data.target if name == "digits" else data.y))[: n + m]
    X = np.asarray(data.data if name == "digits" else data.X)[rows].astype(float)
    y = np.asarray(data.target if name == "digits" else data.y)[rows]
    X = StandardScaler().fit(X[:n]).transform(X) if name == "letter" else X / X.max()
    return Split(X[:n], y[:n], X[n:], y[n:])


def measure(data: Split, names: list[str]) -> dict[str, Figures]:
    """Figures of every model on one split."""
    classes, codes = np.unique(data.y_test, return_inverse=True)
    found = {}
    for name in names:
        model = {**OURS, **PEERS}[name]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X, data.y)
        if not np.array_equal(model.classes_, classes):
            raise RuntimeError(f"calibration: the test part has the classes {classes}, {name} {model.classes_}.")
        found[name] = figures(model.predict_proba(data.X_test), codes)
        if name == "KernelClassifier":
            basis, peer = model.basis_, PEERS["logistic regression"]()
            peer.fit(basis.features(data.X), data.y)
            found[ON_KERNELS] = figures(peer.predict_proba(basis.features(data.X_test)), codes)
    return found


def mean(runs: list[Figures]) -> Figures:
    """Mean of every figure."""
    return Figures(*(float(np.mean([getattr(r, f.name) for r in runs])) for f in fields(Figures)))


def table(sets: list[str], names: list[str], splits: int) -> dict[tuple[str, str], list[Figures]]:
    """Print a row per set and model: the means over the splits. Returns the figures of every split."""
    header("Probabilities", 1)
    print("| set | model | error % | log loss | stated | right | ECE | ECE if perfect |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    found = {}
    for name in sets:
        runs = [measure(split(name, k), names) for k in range(splits)]
        for model in runs[0]:
            found[name, model] = [run[model] for run in runs]
            r = mean(found[name, model])
            print(
                f"| {name} | {model} | {r.error:.2f} | {r.log_loss:.3f} | {r.stated:.3f} | {r.right:.3f} | "
                f"{r.ece:.3f} | {r.least:.3f} |",
                flush=True,
            )
    return found


def against(found: dict[tuple[str, str], list[Figures]], options: argparse.Namespace) -> None:
    """Print how far KernelClassifier is from every peer, with standard errors."""
    peers = [name for name in options.models if name in PEERS and "KernelClassifier" in options.models]
    if peers:
        print("\n| set | KernelClassifier minus | log loss | ECE |\n|---|---|---|---|")
    for name in options.sets:
        for peer in peers:
            pair = found[name, "KernelClassifier"], found[name, peer]
            gaps = [behind(*pair, figure) for figure in ("log_loss", "ece")]
            print(f"| {name} | {peer} | " + " | ".join(f"{gap:+.3f} ± {error:.3f}" for gap, error in gaps) + " |")


def behind(ours: list[Figures], peer: list[Figures], figure: str = "log_loss") -> tuple[float, float]:
    """How much greater a figure of ours is than that of a peer on the same splits, and the standard error."""
    gaps = np.array([getattr(one, figure) - getattr(other, figure) for one, other in zip(ours, peer)])
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else float("nan")


def main(arguments: list[str]) -> None:
    every = [*OURS, *PEERS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks calibration", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--models", nargs="+", choices=every, default=every)
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        with threadpool_limits(1):
            found = table(options.sets, options.models, options.splits)
    except DataNotFoundError as error:
        print(f"left out: {error}")
        return
    print()
    for (name, model), runs in found.items():
        r = mean(runs)
        if model in OURS and r.least < ECE / 2:
            verdict(f"{name}, {model}: expected calibration error", r.ece, ECE, True)
    against(found, options)
    pairs = [(found[name, "KernelClassifier"], found[name, model]) for name, model in found if model == ON_KERNELS]
    if not pairs:
        return
    print()
    print("| set | log loss of KernelClassifier minus that on its kernel features | standard error |")
    print("|---|---|---|")
    for name, pair in zip(options.sets, pairs):
        gap, error = behind(*pair)
        print(f"| {name} | {gap:+.4f} | {error:.4f} |")
    print()
    ours, peer = (np.mean([mean(pair[side]).log_loss for pair in pairs]) for side in range(2))
    verdict("KernelClassifier, mean log loss over that on its kernel features", ours / peer, 1.0, True)
