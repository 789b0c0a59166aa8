"""Tables of the RSM paper (Ye, Ye and Zhao): the first images of every person train, 1-NN on the rest."""

from __future__ import annotations

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
        return GraphEmbedding(against="total", rho=0.0)
    if method == "rfda":
        return GraphEmbedding(recursive=True, rho=1e-8, n_components=settings["dimension"])
    if method == "lpp":
        return GraphEmbedding(graph=graphs.lpp(3), rho=1e-8, scaling="unit", n_components=settings["dimension"])
    if method == "udp":
        return GraphEmbedding(graph=graphs.udp(1), rho=1.0, n_components=settings["dimension"])
    graph = graphs.udp(1) if method == "rsm/udp" else graphs.fisher()
    count = settings.get("dimension", classes - 1)
    return RecursiveSoftMargin(graph=graph, rho=settings["rho"], delta=settings["delta"], n_components=count)


def faces(settings: Values, run: int) -> Values:  # noqa: ARG001 - there is one split
    """Share of test images whose nearest training image shows the same person, in per cent."""
    X, y, T, t = _split(settings["set"], settings["images"])
    model = _model(settings, len(np.unique(y))).fit(X, y)
    A, B = model.transform(X), model.transform(T)
    nearest = np.argmin((A**2).sum(axis=1)[None, :] - 2 * B @ A.T, axis=1)
    return {"rate": 100 * float(np.mean(y[nearest] == t)), "features": model.n_components_}
