"""The kept vectors in the cells and units of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.core.gaussians import GaussianExpansion
from fewkern.density.mixture import ClassMixtures, KernelMixture
from fewkern.reporting.formatting import Table, cell, count, label, number, percent, signed, table_of
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

Columns = list[tuple[str, list[str]]]
# What a table shows at most: columns of the model, columns that name rows, vectors.
_MOST_COLUMNS, _MOST_NAMES, _MOST_VECTORS = 15, 2, 30
# Rows that are assigned to their nearest vector.
_MOST_ROWS = 5000


def row_columns(subject: Subject, positions: Sequence[int], order: tuple[str, ...]) -> Columns:
    """Names and cells of some rows: first the columns that name rows, then those of the model in the given order."""
    part = subject.rows.take(positions)
    shown = [*_naming_columns(subject), *_by_importance(subject, order)]
    return [(subject.rows.names[j], [cell(value) for value in part.values(j)]) for j in shown]


def _by_importance(subject: Subject, order: tuple[str, ...]) -> list[int]:
    """Columns that the model uses, those named in ``order`` first; no more than can be read."""
    place = {name: k for k, name in enumerate(order)}
    return sorted(subject.used, key=lambda j: place.get(subject.rows.names[j], len(place)))[:_MOST_COLUMNS]


def _naming_columns(subject: Subject) -> list[int]:
    """Columns that the model does not use and that tell rows apart: keys and names."""
    rows, others = subject.rows, set(range(len(subject.rows.names))) - set(subject.used)
    return [j for j in sorted(others) if len(set(map(str, rows.values(j)))) == len(rows)][:_MOST_NAMES]


def rows_of_vectors(subject: Subject) -> list[int | None]:
    """The row of the table that every vector is; None where it is none of them."""
    return [None] * len(subject.vectors) if subject.moved else list(subject.held_rows)


def _vector_columns(subject: Subject, places: list[int | None], order: tuple[str, ...]) -> Columns:
    """Names and cells of all vectors; ``places`` are the rows that they are."""
    found = [place for place in places if place is not None]
    if len(found) == len(places):
        return row_columns(subject, found, order)
    used = _by_importance(subject, order)
    frame = subject.model.kept() if hasattr(subject.model, "kept") else None
    if frame is not None and {subject.rows.names[j] for j in used} <= set(frame.columns) and len(frame) == len(places):
        return [(name, [cell(value) for value in frame[name]]) for name in (subject.rows.names[j] for j in used)]
    # the features that these columns become, in the units of the table
    V, labels = subject.fitted.given_units(subject.vectors), subject.fitted.labels
    return [(labels[k], [number(v, 4) for v in V[:, k]]) for j in used for k in subject.features[j]]


@dataclass(frozen=True)
class Vectors:
    """The vectors of a model."""

    table: Table
    """The vectors of the largest coefficients, in the cells and units of the table."""
    total: int
    moved: bool
    assigned: int
    """Rows that were assigned to their nearest vector."""
    is_here: bool
    """Whether they are rows of the table of the report."""
    is_linear: bool
    """Whether a linear function is added to the sum over the vectors."""


def vectors(subject: Subject, target: str, order: tuple[str, ...], seed: int) -> Vectors | None:
    """The vectors in the units of the table; columns in the given order, most important first.

    None for a linear map, which keeps no sample.
    """
    if not len(subject.vectors):
        return None
    sizes, columns = _coefficients(subject)
    places, truth = rows_of_vectors(subject), subject.truth
    moved = subject.moved or (getattr(subject.core.expansion_, "indices", None) is None and None in places)
    assigned = sample_rows(len(subject.rows), _MOST_ROWS, np.random.default_rng(seed))
    columns = [
        ("row", ["" if moved else "–" if place is None else subject.rows.label(place) for place in places]),
        (target, ["" if place is None or truth is None else cell(truth[place]) for place in places]),
        *columns,
    ]
    if not isinstance(subject.core.expansion_, KernelMixture | ClassMixtures):
        nearest = nearest_vectors(subject, subject.samples[assigned])
        near = [assigned[nearest == m] for m in range(len(sizes))]
        columns.append(("nearest rows", [count(len(rows)) for rows in near]))
        name = f"mean {target}" if subject.task == "regress" else "mostly"
        columns.append((name, [_nearby(subject, rows) for rows in near]))
    columns = [(name, texts) for name, texts in columns if any(texts)] + _vector_columns(subject, places, order)
    shown = np.argsort(-np.abs(sizes), kind="stable")[:_MOST_VECTORS]
    table = table_of([(name, [texts[m] for m in shown]) for name, texts in columns])
    is_linear = isinstance(subject.core.expansion_, GaussianExpansion) and subject.core.expansion_.slopes.any()
    return Vectors(table, len(sizes), moved, len(assigned), None not in places, bool(is_linear))


def _coefficients(subject: Subject) -> tuple[Array, Columns]:
    """The largest coefficient, or the weight, of every vector, and columns that say what it is a coefficient of."""
    expansion, scores = subject.core.expansion_, getattr(subject.core, "class_scores_", None)
    if isinstance(expansion, KernelMixture | ClassMixtures):
        mixtures = expansion.mixtures if isinstance(expansion, ClassMixtures) else (expansion,)
        parts = [to_numpy(mixture.weights).astype(float) for mixture in mixtures]
        rows = [f"the rows with {label(c)}" for c in subject.classes] if subject.task == "classify" else ["all rows"]
        meanings = [f"{percent(weight)} of {of}" for of, part in zip(rows, parts) for weight in part]
        return np.concatenate(parts), [("stands for", meanings)]
    if scores is not None and scores.weights is not None:
        expansion = expansion.then(scores.weights)
    coef = to_numpy(expansion.coef).astype(float)
    largest = np.argmax(np.abs(coef), axis=1)
    values = coef[np.arange(len(coef)), largest]
    outputs = {"reduce": [f"component {k + 1}" for k in range(coef.shape[1])], "regress": [""]}.get(subject.task)
    if outputs is None:  # the only score of two classes is that of the second
        outputs = [f"class {label(c)}" for c in subject.classes[-coef.shape[1] :]]
    return values, [("coefficient", [signed(value) for value in values]), ("of", [outputs[k] for k in largest])]


def nearest_vectors(subject: Subject, X: Array) -> Array:
    """The nearest vector of every row of ``X``, in the metric of the kernel (and of its own width)."""
    expansion = subject.core.expansion_
    if isinstance(expansion, GaussianExpansion):
        return np.argmax(to_numpy(expansion.basis.columns(expansion.basis.prepared(X))), axis=1)
    K, diag = expansion.kernel(X, subject.vectors), expansion.kernel.diag(subject.vectors)
    return np.argmax(to_numpy(K) - 0.5 * to_numpy(diag)[None, :], axis=1)


def _nearby(subject: Subject, positions: Array) -> str:
    """A summary of the targets of some rows."""
    if subject.truth is None or not len(positions):
        return ""
    targets = subject.truth[positions]
    if subject.task == "regress":
        return number(float(targets.mean()))
    names, counts = np.unique(targets, return_counts=True)
    top = int(np.argmax(counts))
    return f"{cell(names[top])} {percent(counts[top] / counts.sum(), 0)}"
