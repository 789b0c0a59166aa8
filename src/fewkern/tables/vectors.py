"""The vectors that a model of a table keeps, as rows of the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewkern.base import vectors_moved
from fewkern.tables.frames import pandas

__all__ = ["vectors_frame"]


def vectors_frame(model: Any) -> Any:
    """A data frame with a row per vector: where it comes from, its cells, what it stands for."""
    estimator, facts = model.estimator_, model.facts_
    vectors = np.asarray(getattr(estimator, "vectors_", np.zeros((0, 0))))
    if not estimator.n_vectors_ or vectors.ndim != 2:
        return pandas().DataFrame()
    cells = model.encoder_.cells(vectors)
    missing = facts.kept_missing
    if missing is not None and not vectors_moved(estimator) and missing.shape == cells.shape:
        cells = cells.astype(object).mask(missing, None)
    front: dict[str, Any] = {}
    if facts.kept_rows is not None and len(facts.kept_rows) == len(vectors):
        front["row"] = facts.kept_rows
    back: dict[str, Any] = {}
    if facts.kept_target is not None and len(facts.kept_target) == len(vectors):
        back |= dict(zip(model.targets, np.reshape(facts.kept_target, (len(vectors), -1)).T))
    if model.task_ == "density":
        back |= {"weight": np.asarray(estimator.weights_), "bandwidth": np.asarray(estimator.bandwidths_)}
    else:
        back |= _coefficients(model, np.asarray(estimator.expansion_.coef))
    frame = pandas().DataFrame({name: cells[name].to_numpy() for name in cells})
    for name, values in front.items():
        frame.insert(0, _free(name, frame), values)
    for name, values in back.items():
        frame[_free(name, frame)] = values
    return frame


def _coefficients(model: Any, coef: np.ndarray[Any, Any]) -> dict[str, Any]:
    """One column per output of the expansion."""
    if coef.shape[1] == 1:
        return {"coefficient": coef[:, 0]}
    labels = list(map(str, getattr(model.estimator_, "classes_", model.targets)))
    if len(labels) != coef.shape[1]:
        labels = [str(k) for k in range(coef.shape[1])]
    return {f"coefficient of {label}": coef[:, k] for k, label in enumerate(labels)}


def _free(name: str, frame: Any) -> str:
    """A name that no column has yet."""
    while name in frame.columns:
        name += "_"
    return name
