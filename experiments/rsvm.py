"""Tables and figures of the RSVM paper (Tao, Chu and Wang 2008): recursive SVM features with nearest neighbours.

The kernel of the benchmark is exp(-|x - y|^2 / sigma): sigma is twice the square of our width.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from experiments.data import fetch_ida
from experiments.systems import recursive_svm
from fewkern.kernels import Gaussian

Values = dict[str, Any]
# What cross-validation chooses from; the paper looked at 1 to 5 neighbours only.
COMPONENTS = range(1, 15)
NEIGHBOURS = (1, 3, 5, 11, 21, 31, 51, 61)
# Strict: factors of the median distance, and C.
WIDTHS = (0.35, 0.55, 0.85, 1.3, 2.0, 3.5)
MARGINS = (0.1, 1.0, 10.0, 100.0, 1000.0)
# More directions than there are in any set here.
_MANY = 60


@cache
def _ida(name: str) -> Any:
    return fetch_ida(name)


def _votes(A: Any, labels: Any, B: Any, k: int) -> Any:
    """Majority of the ``k`` nearest; a tie goes to the class of the nearest one."""
    square = (A**2).sum(axis=1)[None, :] - 2 * B @ A.T
    nearest = np.argsort(square, axis=1, kind="stable")[:, :k]
    total = labels[nearest].sum(axis=1)
    return np.where(total == 0, labels[nearest[:, 0]], np.sign(total))


def _errors(settings: Values, X: Any, y: Any, T: Any, t: Any, components: Any, neighbours: Any) -> tuple[Any, int]:
    """Errors at every pair of numbers (more components than exist: all of them), and how many exist."""
    model = recursive_svm(settings["C"], max(components), settings["sigma"]).fit(X, y)
    A, B = model.transform(X), model.transform(T)
    table = [[100 * float(np.mean(_votes(A[:, :m], y, B[:, :m], k) != t)) for k in neighbours] for m in components]
    return np.array(table), model.n_components_


def _folds(run: int) -> StratifiedKFold:
    return StratifiedKFold(5, shuffle=True, random_state=run)


def _tuned(X: Any, y: Any, run: int) -> Values:
    """Width and C by cross-validation of the SVM on these samples: the benchmark's were found for the SVM too."""
    median = float(Gaussian(unit="common").resolve(X).length_scale)
    sigmas = [2 * (factor * median) ** 2 for factor in WIDTHS]
    search = GridSearchCV(SVC(), {"C": MARGINS, "gamma": [1 / sigma for sigma in sigmas]}, cv=_folds(run)).fit(X, y)
    return {"C": search.best_params_["C"], "sigma": 1 / search.best_params_["gamma"]}


def benchmark(settings: Values, run: int) -> Values:
    """Tables I and II: test error in per cent, and features used.

    Settings without a width and C are strict: these too come from the training part of the split.
    """
    z = _ida(settings["set"])
    train, test = z.train_idx[run], z.test_idx[run]
    X, y, T, t = z.X[train], z.y[train].astype(int), z.X[test], z.y[test].astype(int)
    if "C" not in settings:
        settings = {**settings, **_tuned(X, y, run)}
    if settings["method"] == "svm":
        model = SVC(C=settings["C"], gamma=1 / settings["sigma"]).fit(X, y)
        return {"error": 100 * float(np.mean(model.predict(T) != t))}
    if settings["method"] == "count":
        return {"features": recursive_svm(settings["C"], _MANY, settings["sigma"]).fit(X, y).n_components_}
    if settings["method"] == "fixed":
        table, count = _errors(settings, X, y, T, t, [settings["components"]], [settings["neighbours"]])
        return {"error": float(table[0, 0]), "features": min(count, settings["components"])}
    folds = [_errors(settings, X[a], y[a], X[b], y[b], COMPONENTS, NEIGHBOURS)[0] for a, b in _folds(run).split(X, y)]
    i, j = np.unravel_index(np.argmin(np.mean(folds, axis=0)), folds[0].shape)
    table, count = _errors(settings, X, y, T, t, [COMPONENTS[i]], [NEIGHBOURS[j]])
    return {"error": float(table[0, 0]), "features": min(count, COMPONENTS[i])}


def error_curve(settings: Values, run: int) -> Values:
    """Figs 3 to 5: test error against the number of features, and its value at the number in Table I."""
    z = _ida(settings["set"])
    train, test = z.train_idx[run], z.test_idx[run]
    table, count = _errors(
        settings,
        z.X[train],
        z.y[train].astype(int),
        z.X[test],
        z.y[test].astype(int),
        COMPONENTS,
        [settings["neighbours"]],
    )
    at = settings["components"]
    return {"error": float(table[at - 1, 0]), "features": count, "x": list(COMPONENTS), "y": table[:, 0].tolist()}


def _toy(n: int, seed: int) -> tuple[Any, Any]:
    """Example 1: four Gaussians of unit covariance, ``n`` samples each; two belong to either class."""
    rng = np.random.default_rng(seed)
    means = np.array([[0, 0, 0], [3, 3, 3], [3, 0, 3], [3, 3, 0]])
    return np.repeat(means, n, axis=0) + rng.normal(size=(4 * n, 3)), np.repeat([1, 1, -1, -1], n)


def toy(settings: Values, run: int) -> Values:
    """Figs 1 and 2: the toy on two coordinates, or on two components with the error of k-NN by one and by both."""
    X, y = _toy(100, 2 * run)
    labels = y.tolist()
    if settings["show"] == "data":
        return {"points": X[:, [1, 2]].round(4).tolist(), "labels": labels}
    T, t = _toy(2500, 2 * run + 1)
    model = recursive_svm(settings["C"], 3).fit(X, y)
    A, B = model.transform(X), model.transform(T)
    errors = {
        f"error_{m}_features": 100 * float(np.mean(_votes(A[:, :m], y, B[:, :m], settings["neighbours"]) != t))
        for m in (1, 2)
    }
    return {**errors, "features": model.n_components_, "points": A[:, :2].round(4).tolist(), "labels": labels}
