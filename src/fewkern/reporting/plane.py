"""The plane of a classifier of two columns: samples, vectors, and the regions of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.reporting.kept import affine_units
from fewkern.reporting.subject import Subject

__all__ = ["Plane", "plane"]

Vector = np.ndarray[Any, Any]
_POINTS, _MOST_ROWS = 120, 600


@dataclass(frozen=True)
class Plane:
    """Everything in the units of the table."""

    columns: tuple[str, str]
    samples: Vector
    labels: Vector
    vectors: Vector
    boundary: tuple[Vector, Vector, Vector]
    """A grid, and the value of every class on it."""


def plane(subject: Subject, seed: int) -> Plane | None:
    """The picture of a classifier of two columns of numbers; None for other models."""
    if subject.task != "classify" or len(subject.inputs) != 2 or subject.truth is None:
        return None
    units = affine_units(subject)
    if units is None:
        return None
    shift, factor = units
    rng = np.random.default_rng(seed)
    n = len(subject.rows)
    some = np.arange(n) if n <= _MOST_ROWS else np.sort(rng.choice(n, _MOST_ROWS, replace=False))
    U = subject.samples
    # a vector that was moved may lie beyond the rows
    both = np.concatenate([U, subject.vectors])
    low, high = both.min(axis=0), both.max(axis=0)
    margin = 0.06 * (high - low)
    xx, yy = np.meshgrid(*(np.linspace(a - m, b + m, _POINTS) for a, b, m in zip(low, high, margin)))
    scores = subject.core.class_scores_
    values = to_numpy(scores.scores(subject.core.expansion_(np.column_stack([xx.ravel(), yy.ravel()]))))
    if values.shape[1] == 1:
        values = np.column_stack([-values, values])
    return Plane(
        (subject.rows.names[subject.inputs[0]], subject.rows.names[subject.inputs[1]]),
        U[some] / factor + shift,
        subject.truth[some],
        subject.vectors / factor + shift,
        (xx / factor[0] + shift[0], yy / factor[1] + shift[1], values.reshape(*xx.shape, -1)),
    )
