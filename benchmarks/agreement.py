"""What ``compress`` states and what new rows say: kernel machines, forests and boosting on five tables each."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR, OneClassSVM
from threadpoolctl import threadpool_limits

from benchmarks.measure import header
from benchmarks.tables.data import Part, part
from fewkern import compress

CLASSES = ("phoneme", "satimage", "vehicle", "wall_robot", "pendigits")
NUMBERS = ("kin8nm", "uci_concrete", "uci_airfoil", "puma8nh", "sulfur")
# Rows that a model is fitted to and compressed with.
ROWS = 500


def tuned(model: Any, data: Part, **grid: Any) -> Any:
    """By three folds, with the width of the Gaussians, too."""
    gammas = [factor / data.X.shape[1] for factor in (0.1, 0.3, 1.0, 3.0)]
    return GridSearchCV(model, {"gamma": gammas, **grid}, cv=3).fit(data.X, data.y).best_estimator_


def process(model: type, data: Part, noise: float) -> Any:
    """A Gaussian process whose kernel is fitted; of classes the first against the others, on 250 rows."""
    kernel = ConstantKernel(1.0) * RBF(np.sqrt(data.X.shape[1]))
    if noise:
        return model(kernel + WhiteKernel(noise), normalize_y=True).fit(data.X, data.y)
    return model(kernel).fit(data.X[:250], data.y[:250] == data.y[0])


TEACHERS: dict[str, tuple[tuple[str, ...], Callable[[Part], Any]]] = {
    "SVC": (CLASSES, lambda d: tuned(SVC(), d, C=[1, 10, 100])),
    "SVR": (NUMBERS, lambda d: tuned(SVR(), d, C=[1, 10])),
    "KernelRidge": (NUMBERS, lambda d: tuned(KernelRidge(kernel="rbf"), d, alpha=[0.01, 0.1, 1])),
    "GaussianProcessRegressor": (NUMBERS, lambda d: process(GaussianProcessRegressor, d, 0.1)),
    "GaussianProcessClassifier": (CLASSES, lambda d: process(GaussianProcessClassifier, d, 0.0)),
    "OneClassSVM": (NUMBERS, lambda d: OneClassSVM(nu=0.1, gamma=1 / d.X.shape[1]).fit(d.X)),
    "KernelPCA": (NUMBERS, lambda d: KernelPCA(3, kernel="rbf", gamma=1 / d.X.shape[1]).fit(d.X)),
    "RandomForestClassifier": (CLASSES, lambda d: RandomForestClassifier(random_state=0).fit(d.X, d.y)),
    "RandomForestRegressor": (NUMBERS, lambda d: RandomForestRegressor(random_state=0).fit(d.X, d.y)),
    "HistGradientBoostingClassifier": (CLASSES, lambda d: HistGradientBoostingClassifier().fit(d.X, d.y)),
    "HistGradientBoostingRegressor": (NUMBERS, lambda d: HistGradientBoostingRegressor().fit(d.X, d.y)),
}


def cut(data: Part) -> Part:
    """The first rows, with numbers to be predicted in standard deviations."""
    y, y_test = data.y[:ROWS], data.y_test
    if y.dtype.kind == "f":
        y, y_test = (y - y.mean()) / y.std(), (y_test - y.mean()) / y.std()
    return Part(data.task, data.X[:ROWS], y, data.X_test, y_test, data.raw, data.raw_test, data.categories)


def measure(teacher: str, name: str, split: int) -> tuple[int | None, int, bool, list[float], list[float]]:
    """Vectors of both, whether it warned, and what is stated and fresh: error, or shares of equal decisions in %."""
    data = cut(part("3000", name, split))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        long = TEACHERS[teacher][1](data)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        short = compress(long, data.X)
    warned = any("do not agree" in str(one.message) for one in raised)
    kept = next((getattr(long, key) for key in ("support_", "X_fit_", "X_train_") if hasattr(long, key)), None)
    vectors, agreed = None if kept is None else len(kept), short.agreement_
    if is_classifier(long) or is_outlier_detector(long):
        truth, found = long.predict(data.X_test), short.predict(data.X_test)
        least = min(np.mean(found[truth == c] == c) for c in np.unique(truth))
        fresh = [100 * float(np.mean(found == truth)), 100 * float(least)]
        return vectors, short.n_vectors_, warned, [100 * agreed.decisions, 100 * agreed.least], fresh
    method = "transform" if hasattr(long, "transform") else "predict"
    truth, found = getattr(long, method)(data.X_test), getattr(short, method)(data.X_test)
    error = np.sqrt(np.mean((found - truth) ** 2) / np.mean((truth - truth.mean(axis=0)) ** 2))
    return vectors, short.n_vectors_, warned, [agreed.error], [float(error)]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks agreement", description=__doc__)
    parser.add_argument("--teachers", nargs="+", choices=list(TEACHERS), default=list(TEACHERS))
    parser.add_argument("--splits", type=int, nargs="+", default=[10], help="numbers of the splits")
    options = parser.parse_args(arguments)
    header(f"Stated and fresh agreement, {ROWS} rows", 1)
    print("| model | set | vectors | stated | fresh |\n|---|---|---|---|---|", flush=True)
    with threadpool_limits(1):
        for teacher in options.teachers:
            for name in TEACHERS[teacher][0]:
                for split in options.splits:
                    long, m, warned, stated, fresh = measure(teacher, name, split)
                    form = "{:.3f}" if len(stated) == 1 else "{:.1f}, least {:.1f}"
                    print(
                        f"| {teacher} | {name} | {long or '-'} to {m}{' (warned)' if warned else ''} "
                        f"| {form.format(*stated)} | {form.format(*fresh)} |",
                        flush=True,
                    )
