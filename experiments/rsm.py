"""Tables and figures of the RSM paper (Ye, Ye and Zhao): the first images of every person train, 1-NN on the rest."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np

from experiments.data import fetch_faces
from experiments.systems import embedding, soft_margin

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
    if not method.startswith("rsm/"):
        return embedding(method, settings.get("dimension"), settings.get("neighbours"), settings.get("rho"))
    neighbours = settings.get("neighbours", 1) if method == "rsm/udp" else None
    dimension = settings.get("dimension", classes - 1)
    return soft_margin(dimension, neighbours=neighbours, rho=settings["rho"], delta=settings["delta"])


def faces(settings: Values, run: int) -> Values:
    """Share of test images whose nearest training image shows the same person, in per cent."""
    if "choices" in settings:
        return chosen_on_test(settings, run)
    if "grid" in settings:
        return chosen_on_training(settings)
    X, y, T, t = _split(settings["set"], settings["images"])
    model = _model(settings, len(np.unique(y))).fit(X, y)
    nearest = np.argmin(_distances(model.transform(T), model.transform(X)), axis=1)
    return {"rate": 100 * float(np.mean(y[nearest] == t)), "features": model.n_components_}


def _distances(B: Any, A: Any) -> Any:
    """Squared distances, less the part that is the same for all of ``A``."""
    return (A**2).sum(axis=1)[None, :] - 2 * B @ A.T


def _combinations(choices: dict[str, list[Any]]) -> list[Values]:
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


def chosen_on_training(settings: Values) -> Values:
    """The settings of a grid with which most training images have one of the same person nearest to them.

    The directions come from all training images: they are found without labels. The first of equals is taken.
    """
    X, y, _, _ = _split(settings["set"], settings["images"])
    rates = []
    for choice in _combinations(settings["grid"]):
        A = _model({**settings, **choice}, len(np.unique(y))).fit_transform(X)
        distance = _distances(A, A)
        np.fill_diagonal(distance, np.inf)
        rates.append(float(np.mean(y[np.argmin(distance, axis=1)] == y)))
    best = _combinations(settings["grid"])[int(np.argmax(rates))]
    chosen = {name: value for name, value in settings.items() if name != "grid"}
    return {**faces({**chosen, **best}, 0), **best, "rate_on_training_images": 100 * max(rates)}


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
    # as many directions as there can be, not only c - 1
    every = len(_split(settings["set"], settings["images"])[0]) - 1
    best: Values = {"rate": -1.0}
    for choice in _combinations(settings["choices"]):
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
    first = soft_margin(1, rho=settings["rho"], delta_rel=1.0).fit(X, y)
    return {
        "delta_0": float(first.steps_[0].delta),
        "rate": float(np.mean(plateau)),
        "range": max(plateau) - min(plateau),
        "range_of_all": max(rates) - min(rates),
        "x": deltas,
        "y": [round(rate, 3) for rate in rates],
    }
