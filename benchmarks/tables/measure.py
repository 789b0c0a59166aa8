"""One unit: a method on a split of a table."""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.measure import timed_twice
from benchmarks.tables.data import CLASSES, Part, part
from benchmarks.tables.methods import METHODS, Fitted, Method
from experiments.store import Record

__all__ = ["figures", "measure"]

# Texts in a record are cut to so many characters.
_TEXT = 160
_WARM_ROWS = 60


def measure(protocol: str, data: str, split: int, name: str, _threads: int) -> Record:
    """The figures of a method on a split, in a process that has so many threads."""
    here = part(protocol, data, split)
    warm_up(name, here.task)
    return figures(METHODS[name], here)


def figures(method: Method, here: Part) -> Record:
    """Error (% wrong, or 100 (1 - R2)), log loss, vectors, seconds of the fit, and what the model says.

    ``seconds`` are those of the processor, on all threads together; ``wall`` those of the clock.
    """
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        fitted, seconds, wall = timed_twice(lambda: method.fit(here))
    said = [str(w.message) for w in warned if issubclass(w.category, UserWarning)]
    return {
        "task": here.task,
        "rows": len(here.y),
        "columns": here.X.shape[1],
        **_errors(here, fitted.predict(here)),
        "log_loss": _log_loss(here, fitted),
        "vectors": fitted.vectors,
        "seconds": round(seconds, 3),
        "wall": round(wall, 3),
        "stated": _stated(here, fitted.model),
        "chosen": _chosen(fitted.model),
        "warned": _cut(said[0]) if said else "",
    }


def _errors(here: Part, predicted: np.ndarray) -> Record:
    """The error, and that of numbers in their own unit, too."""
    if here.task == CLASSES:
        return {"error": 100 * float(np.mean(predicted != here.y_test))}
    square = float(np.mean((predicted - here.y_test) ** 2))
    if not math.isfinite(square):
        raise ValueError("a prediction is not a number")
    return {"error": 100 * square / float(here.y_test.var()), "rmse": math.sqrt(square)}


def _log_loss(here: Part, fitted: Fitted) -> float | None:
    p = fitted.probabilities(here)
    return None if p is None else float(log_loss(here.y_test, p, labels=np.unique(here.y)))


def _stated(here: Part, model: Any) -> float | None:
    """The error that the model itself expects, in the unit of ours."""
    error = getattr(model, "held_out_error_", None)
    if error is None:
        return None
    return 100 * float(error) / (1 if here.task == CLASSES else float(here.y.var()))


def _chosen(model: Any) -> str:
    """What the model says of its settings, where it says it in short."""
    for name in ("chosen_", "path_", "best_params_"):
        found = getattr(model, name, None)
        found = getattr(found, "chosen", found if name in ("chosen_", "best_params_") else None)
        if found is not None:
            return _cut(str(found))
    return ""


def _cut(text: str) -> str:
    return " ".join(text.split())[:_TEXT]


@cache
def warm_up(name: str, task: str) -> None:
    """Fit a few rows, once in a process, so that imports and compilation do not count as time of the first table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_WARM_ROWS, 3))
    y = (X[:, 0] > 0).astype(int) if task == CLASSES else X[:, 0] + 0.1 * rng.normal(size=_WARM_ROWS)
    METHODS[name].fit(Part(task, X, y, X, y, X, X, np.zeros(3, dtype=bool)))
