"""Tables and figures of the RSM paper (Ye, Ye and Zhao): the first images of every person train, 1-NN on the rest."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np

from fewkern import GraphEmbedding, RecursiveSoftMargin, graphs
from fewkern.datasets import fetch_faces

Values = dict[str, Any]


@cache
def _faces(name: str) -> Any:
    return fetch_faces(name)


def _split(name: str, count: int) -> tuple[Any, Any, Any, Any]:
    z = _faces(name)
    place = np.array([np.sum(z.y[:i] == label) for i, label in enumerate(z.y)])
    train = place < count
    return z.X[train], z.y[train], z.X[~train], z.y[~train]


def _model(settings: Values, classes: int) -> Any:
    method = settings["method"]
    if method == "pca":
        return GraphEmbedding(graph="pca", n_components=settings["dimension"])
    if method == "fda":
        return GraphEmbedding(against="total", ridge=0.0)
    if method == "rfda":
        return GraphEmbedding(recursive=True, ridge=1e-8, n_components=settings["dimension"])
    if method == "lpp":
        return GraphEmbedding(graph=graphs.LPP(3), ridge=1e-8, scaling="unit", n_components=settings["dimension"])
    if method == "udp":
        return GraphEmbedding(graph=graphs.UDP(1), ridge=1.0, n_components=settings["dimension"])
    graph = graphs.UDP(settings.get("neighbours", 1)) if method == "rsm/udp" else graphs.Fisher()
    count = settings.get("dimension", classes - 1)
    # the weight of the hinges as the paper gives it, the same for all directions
    weight = {"C": settings["delta"], "scale_C": False}
    return RecursiveSoftMargin(graph=graph, ridge=settings["rho"], n_components=count, **weight)


def faces(settings: Values, run: int) -> Values:
    """Share of test images whose nearest training image shows the same person, in per cent."""
    if "choices" in settings:
        return chosen_on_test(settings, run)
    X, y, T, t = _split(settings["set"], settings["images"])
    model = _model(settings, len(np.unique(y))).fit(X, y)
    A, B = model.transform(X), model.transform(T)
    nearest = np.argmin((A**2).sum(axis=1)[None, :] - 2 * B @ A.T, axis=1)
    return {"rate": 100 * float(np.mean(y[nearest] == t)), "features": model.n_components_}


def _rates(settings: Values) -> Any:
    """Rate with the first 1, 2, ... directions of one model, in per cent."""
    X, y, T, t = _split(settings["set"], settings["images"])
    model = _model(settings, len(np.unique(y))).fit(X, y)
    A, B = model.transform(X), model.transform(T)
    # squared distances less the part that is the same for all training images, one direction more at a time
    distance = np.zeros((len(B), len(A)))
    rates = []
    for a, b in zip(A.T, B.T):
        distance += a[None, :] ** 2 - 2 * np.outer(b, a)
        rates.append(100 * float(np.mean(y[np.argmin(distance, axis=1)] == t)))
    return np.array(rates)


def chosen_on_test(settings: Values, run: int) -> Values:  # noqa: ARG001 - there is one split
    """The best rate over listed settings and all dimensions, read off test images as the paper does."""
    names = list(settings["choices"])
    # as many directions as there can be, not only c - 1
    every = len(_split(settings["set"], settings["images"])[0]) - 1
    best: Values = {"rate": -1.0}
    for values in itertools.product(*settings["choices"].values()):
        choice = dict(zip(names, values))
        rates = _rates({**settings, "dimension": every, **choice})
        place = int(np.argmax(rates))
        if rates[place] > best["rate"]:
            best = {"rate": float(rates[place]), "features": place + 1, **choice}
    return best


def dimensions(settings: Values, run: int) -> Values:  # noqa: ARG001 - there is one split
    """Figs 1 and 2: rate against dimension; the best rate, read off test images, and that at the printed dimension."""
    rates = _rates(settings)
    best = int(np.argmax(rates))
    return {
        "rate": float(rates[best]),
        "dimension": best + 1,
        "rate_at_printed_dimension": float(rates[settings["printed"] - 1]),
        "x": list(range(1, len(rates) + 1)),
        "y": rates.round(3).tolist(),
    }


def weights(settings: Values, run: int) -> Values:  # noqa: ARG001 - there is one split
    """Fig. 3: rate against the weight delta; its range over the paper's 1e-4 to 1e-1, and over all weights.

    Below ``delta_0`` the first direction does not depend on delta; it grows from direction to direction.
    """
    deltas = settings["deltas"]
    rates = [float(_rates({**settings, "method": "rsm/fda", "delta": delta})[-1]) for delta in deltas]
    plateau = [rate for rate, delta in zip(rates, deltas) if delta <= 0.1]
    X, y, _, _ = _split(settings["set"], settings["images"])
    first = RecursiveSoftMargin(ridge=settings["rho"], C=1.0, n_components=1).fit(X, y)
    return {
        "delta_0": float(first.steps_[0].delta),
        "rate": float(np.mean(plateau)),
        "range": max(plateau) - min(plateau),
        "range_of_all": max(rates) - min(rates),
        "x": deltas,
        "y": [round(rate, 3) for rate in rates],
    }
