"""Predictions explained by the kept rows that they are most like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.reporting.judging import Judged
from fewkern.reporting.kept import coefficients, rows_of_vectors
from fewkern.reporting.subject import Subject
from fewkern.reporting.words import cell, percent

__all__ = ["Example", "Like", "examples", "likeness"]

Vector = np.ndarray[Any, Any]
_MOST_CLASSES, _MOST_LIKE = 3, 3


@dataclass(frozen=True)
class Like:
    """A kept row that another row is like."""

    name: str
    meaning: str
    """What the row speaks for: the sign of its coefficient in words."""
    likeness: float
    """The kernel as a cosine: 1 for the same row, 0 for rows that have nothing in common."""


@dataclass(frozen=True)
class Example:
    """One prediction, and the kept rows that are most like the row."""

    name: str
    truth: str
    predicted: str
    sure: str
    """The stated probability, where there is one."""
    like: tuple[Like, ...]


def examples(subject: Subject, judged: Judged) -> tuple[Example, ...]:
    """A few predictions: the surest of some classes and the least sure, or a low, a middle and a high number.

    Empty where the vectors are not rows of the table.
    """
    places = [place for place in rows_of_vectors(subject) if place is not None]
    sums = isinstance(subject.core.expansion_, (KernelExpansion, GaussianExpansion))
    if not 0 < len(places) == len(subject.vectors) or not sums:
        return ()
    _, meanings = coefficients(subject)
    found = []
    for i in _shown(subject, judged):
        position = int(judged.positions[i])
        near = likeness(subject, subject.samples[position])
        order = [int(m) for m in np.argsort(-near, kind="stable") if places[m] != position][:_MOST_LIKE]
        like = tuple(Like(subject.rows.label(places[m]), meanings[m], float(near[m])) for m in order)
        P = judged.probabilities
        sure = "" if P is None else percent(float(P[i].max()), 0)
        name = subject.rows.label(position)
        predicted = judged.predicted[i]
        said = cell(predicted if subject.task == "classify" else float(f"{predicted:.4g}"))
        found.append(Example(name, cell(judged.truth[i]), said, sure, like))
    return tuple(found)


def likeness(subject: Subject, x: Vector) -> Vector:
    """How like the vectors a row is: the cosine of the angle in feature space."""
    expansion, row = subject.core.expansion_, x[None, :]
    if isinstance(expansion, GaussianExpansion):
        return np.asarray(to_numpy(expansion.basis.columns(expansion.basis.prepared(row)))[0])
    kernel = expansion.kernel
    norms = np.sqrt(to_numpy(kernel.diag(row))[0] * to_numpy(kernel.diag(subject.vectors)))
    return np.asarray(to_numpy(kernel(row, subject.vectors))[0] / np.where(norms > 0, norms, 1.0))


def _shown(subject: Subject, judged: Judged) -> list[int]:
    """Rows of ``judged`` that are worth showing."""
    n = len(judged.truth)
    if subject.task == "regress":
        order = np.argsort(judged.predicted, kind="stable")
        chosen = [int(order[round(q * (n - 1))]) for q in (0.1, 0.5, 0.9)]
    elif judged.probabilities is None:
        chosen = list(range(min(n, 4)))
    else:
        sure = judged.probabilities.max(axis=1)
        said = [c for c in subject.classes if (judged.predicted == c).any()][:_MOST_CLASSES]
        chosen = [int(np.argmax(np.where(judged.predicted == c, sure, -1.0))) for c in said]
        chosen.append(int(np.argmin(sure)))
    return list(dict.fromkeys(chosen))
