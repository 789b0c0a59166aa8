"""Tables and figures of the RSVM paper (Tao, Chu and Wang 2008): recursive SVM features with nearest neighbours.

The kernel of the benchmark is exp(-|x - y|^2 / sigma): sigma is twice the square of our width.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from fewkern import RecursiveSVM
from fewkern.datasets import fetch_ida
from fewkern.kernels import Gaussian

Values = dict[str, Any]
# What cross-validation chooses from; the paper looked at 1 to 5 neighbours only.
COMPONENTS = range(1, 15)
NEIGHBOURS = (1, 3, 5, 11, 21, 31, 51, 61)


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
    kernel = Gaussian(width=float(np.sqrt(settings["sigma"] / 2)))
    # all samples in the basis, as in the paper, not 500 of them
    model = RecursiveSVM(kernel=kernel, C=settings["C"], n_components=max(components), max_vectors=None).fit(X, y)
    A, B = model.transform(X), model.transform(T)
    table = [[100 * float(np.mean(_votes(A[:, :m], y, B[:, :m], k) != t)) for k in neighbours] for m in components]
    return np.array(table), model.n_components_


def benchmark(settings: Values, run: int) -> Values:
    """Tables I and II: test error in per cent, and features used."""
    z = _ida(settings["set"])
    train, test = z.train_idx[run], z.test_idx[run]
    X, y, T, t = z.X[train], z.y[train].astype(int), z.X[test], z.y[test].astype(int)
    if settings["method"] == "svm":
        model = SVC(C=settings["C"], gamma=1 / settings["sigma"]).fit(X, y)
        return {"error": 100 * float(np.mean(model.predict(T) != t))}
    if settings["method"] == "fixed":
        table, count = _errors(settings, X, y, T, t, [settings["components"]], [settings["neighbours"]])
        return {"error": float(table[0, 0]), "features": min(count, settings["components"])}
    folds = [
        _errors(settings, X[a], y[a], X[b], y[b], COMPONENTS, NEIGHBOURS)[0]
        for a, b in StratifiedKFold(5, shuffle=True, random_state=run).split(X, y)
    ]
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
    model = RecursiveSVM(C=settings["C"], n_components=3).fit(X, y)
    A, B = model.transform(X), model.transform(T)
    errors = {
        f"error_{m}_features": 100 * float(np.mean(_votes(A[:, :m], y, B[:, :m], settings["neighbours"]) != t))
        for m in (1, 2)
    }
    return {**errors, "features": model.n_components_, "points": A[:, :2].round(4).tolist(), "labels": labels}
