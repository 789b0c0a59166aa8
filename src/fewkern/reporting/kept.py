"""The kept vectors in the cells and units of the table, and predictions with the most similar kept rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from fewkern.arrays.namespace import Array, to_numpy
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.density.mixture import ClassMixtures, KernelMixture
from fewkern.plotting.fitted import FittedModel, change_of_unit
from fewkern.reporting.evaluation import Predictions
from fewkern.reporting.formatting import (
    Table,
    cell,
    count,
    is_missing,
    label,
    number,
    percent,
    plural,
    signed,
    table_of,
)
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

Columns = list[tuple[str, list[str]]]
# What a table shows at most: columns of the model, columns that name rows, vectors.
_MOST_COLUMNS, _MOST_NAMES, _MOST_VECTORS = 15, 2, 30
# Rows that are assigned to their nearest vector, and rows over which contributions of vectors are compared.
_MOST_ROWS, _MOST_COMPARED = 5000, 600
# Examples of predictions: of this many classes, each with this many similar rows.
_MOST_CLASSES, _MOST_SIMILAR = 3, 3
# Contributions of single vectors that vary this many times as much as their sum cancel each other.
_CANCELS = 5.0


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
    found = []
    for j in set(range(len(subject.rows.names))) - set(subject.used):
        values = {str(v) for v in subject.rows.values(j) if not is_missing(v)}
        if len(values) == len(subject.rows):
            found.append(j)
    return sorted(found)[:_MOST_NAMES]


def rows_of_vectors(subject: Subject) -> list[int | None]:
    """The row of the table that every vector is; None where it is none of them."""
    if subject.moved:
        return [None] * len(subject.vectors)
    places, (vectors, samples) = list(subject.held_rows), subject.held_samples
    indices = getattr(subject.core.expansion_, "indices", None)
    for m, position in enumerate([] if indices is None else to_numpy(indices).tolist()):
        # of equal rows the one that the model names
        if position < len(samples) and (samples[position] == vectors[m]).all():
            places[m] = position
    return places


def _vector_columns(subject: Subject, places: list[int | None], order: tuple[str, ...]) -> Columns:
    """Names and cells of all vectors; ``places`` are the rows that they are."""
    found = [place for place in places if place is not None]
    if len(found) == len(places):
        return row_columns(subject, found, order)
    used = _by_importance(subject, order)
    names = [subject.rows.names[j] for j in used]
    frame = subject.model.kept() if hasattr(subject.model, "kept") else None
    if frame is not None and set(names) <= set(map(str, frame.columns)) and len(frame) == len(places):
        return [(name, [cell(value) for value in frame[name].tolist()]) for name in names]
    return [(name, _back(subject, j)) for name, j in zip(names, used)]


def _back(subject: Subject, j: int) -> list[str]:
    """Column ``j`` of the vectors: numbers in the units of the table, or the nearest levels.

    Where the features of a column are neither the column in other units nor its levels, their numbers.
    """
    features, V = subject.features[j], subject.vectors
    unit = _unit(subject, j) if len(features) == 1 else None
    if unit is not None:
        return [number(v, 4) for v in (V[:, features[0]] - unit[0]) / unit[1]]
    levels = _levels(subject, j)
    if levels is None:
        return [", ".join(number(v, 3) for v in row) for row in V[:, features]]
    U = subject.samples[:, features]
    low, high = U.min(axis=0), U.max(axis=0)
    shares = (V[:, features] - low) / (high - low)
    top = shares.argmax(axis=1)
    return [f"{levels[k]} ({shares[m, k]:.2f})" for m, k in enumerate(top)]


def _levels(subject: Subject, j: int) -> list[str] | None:
    """The category of every feature of column ``j``, if each is an indicator of one."""
    values = [cell(v) for v in subject.rows.values(j)]
    names = []
    for k in subject.features[j]:
        u = subject.samples[:, k]
        found = {values[i] for i in np.flatnonzero(u == u.max())}
        if len(np.unique(u)) != 2 or len(found) != 1:
            return None
        names.append(found.pop())
    return names


def in_units(subject: Subject) -> FittedModel | None:
    """The model and its samples with the units of the table; None where features are not columns in other units."""
    if subject.samples.shape[1] != len(subject.inputs) or len(subject.used) != len(subject.inputs):
        return None
    found = [_unit(subject, j) for j in subject.inputs if len(subject.features[j]) == 1]
    if len(found) < len(subject.inputs) or None in found:
        return None
    names = [subject.rows.names[j] for j in subject.inputs]
    shift, factor = np.array(found, dtype=float).T
    return FittedModel(subject.core, subject.samples, names, names, shift, factor)


def _unit(subject: Subject, j: int) -> tuple[float, float] | None:
    """Shift and factor with which column ``j`` becomes its one feature; None if it is no change of unit."""
    values = subject.numbers(j)
    return None if values is None else change_of_unit(values, subject.samples[:, subject.features[j][0]])


@dataclass(frozen=True)
class Vectors:
    """The vectors of a model."""

    table: Table
    """The vectors of the largest coefficients, in the cells and units of the table."""
    total: int
    moved: bool
    assigned: int
    """Rows that were assigned to their nearest vector."""
    sentences: tuple[str, ...]


def vectors(subject: Subject, target: str, order: tuple[str, ...], seed: int) -> Vectors | None:
    """The vectors in the units of the table; columns in the given order, most important first.

    None for a linear map, which keeps no sample.
    """
    if not len(subject.vectors):
        return None
    coef, meanings = coefficients(subject)
    places = rows_of_vectors(subject)
    moved = subject.moved or (getattr(subject.core.expansion_, "indices", None) is None and None in places)
    assigned = sample_rows(len(subject.rows), _MOST_ROWS, np.random.default_rng(seed))
    nearest = nearest_vectors(subject, subject.samples[assigned])
    near = [assigned[nearest == m] for m in range(len(coef))]
    is_density = subject.task == "density"
    truth = subject.truth
    columns = [
        ("row", ["" if moved else "–" if place is None else subject.rows.label(place) for place in places]),
        (target, ["" if place is None or truth is None else cell(truth[place]) for place in places]),
        ("stands for", meanings) if is_density else ("coefficient", [signed(value) for value in coef]),
        ({"reduce": "of", "regress": "effect"}.get(subject.task, "votes"), [""] if is_density else meanings),
        ("nearest rows", [count(len(rows)) for rows in near]),
        (f"mean {target}" if subject.task == "regress" else "mostly", [_nearby(subject, rows) for rows in near]),
    ]
    columns = [(name, texts) for name, texts in columns if any(texts)] + _vector_columns(subject, places, order)
    shown = np.argsort(-np.abs(coef), kind="stable")[:_MOST_VECTORS]
    table = table_of([(name, [texts[m] for m in shown]) for name, texts in columns])
    return Vectors(table, len(coef), moved, len(assigned), _sentences(subject, places, moved))


def coefficients(subject: Subject) -> tuple[Array, list[str]]:
    """The coefficient of the largest size, or the weight, of every vector, and its meaning in words."""
    expansion = subject.core.expansion_
    if isinstance(expansion, KernelMixture | ClassMixtures):
        mixtures = expansion.mixtures if isinstance(expansion, ClassMixtures) else (expansion,)
        parts = [to_numpy(mixture.weights).astype(float) for mixture in mixtures]
        rows = [f"the rows with {label(c)}" for c in subject.classes] if subject.task == "classify" else ["all rows"]
        meanings = [f"{percent(weight)} of {of}" for of, part in zip(rows, parts) for weight in part]
        return np.concatenate(parts), meanings
    coef = to_numpy(_sum(subject).coef).astype(float)
    largest = np.argmax(np.abs(coef), axis=1)
    values = coef[np.arange(len(coef)), largest]
    if subject.task != "reduce" and cancellation(subject) >= _CANCELS:
        return values, [""] * len(values)
    return values, [_meaning(subject, coef.shape[1], int(k), float(v)) for k, v in zip(largest, values)]


def _sum(subject: Subject) -> Any:
    """The sum over vectors that gives the prediction, or the scores of the classes."""
    scores, expansion = getattr(subject.core, "class_scores_", None), subject.core.expansion_
    return expansion if scores is None or scores.weights is None else expansion.then(scores.weights)


def cancellation(subject: Subject) -> float:
    """How many times as much the contribution of a single vector varies over rows as the whole prediction.

    Where it is large, vectors act only together: the sign of one coefficient means nothing.
    """
    expansion, X = _sum(subject), subject.samples[:_MOST_COMPARED]
    if not isinstance(expansion, (KernelExpansion, GaussianExpansion)):
        return 0.0
    single = _kernel(expansion, X).std(axis=0)[:, None] * np.abs(to_numpy(expansion.coef))
    total = to_numpy(expansion(X)).std(axis=0)
    return float(np.max(single / np.where(total > 0, total, np.inf), initial=0.0))


def _meaning(subject: Subject, outputs: int, k: int, value: float) -> str:
    if subject.task == "regress":
        return "raises it" if value > 0 else "lowers it"
    if subject.task == "reduce":
        return f"component {k + 1}"
    if outputs == 1:
        return f"for {label(subject.classes[int(value > 0)])}"
    return f"{'for' if value > 0 else 'against'} {label(subject.classes[k])}"


def nearest_vectors(subject: Subject, X: Array) -> Array:
    """The nearest vector of every row of ``X``, in the metric of the kernel (and of its own width)."""
    expansion, V = subject.core.expansion_, subject.vectors
    mixtures = expansion.mixtures if isinstance(expansion, ClassMixtures) else (expansion,)
    if isinstance(mixtures[0], KernelMixture):
        shares = []
        for mixture in mixtures:
            A, widths = to_numpy(mixture.transform), to_numpy(mixture.bandwidths)
            A = np.diag(A) if A.ndim == 1 else A
            squares = cdist(X @ A.T, to_numpy(mixture.vectors) @ A.T, "sqeuclidean")
            shares.append(-0.5 * squares / widths**2 - X.shape[1] * np.log(widths))
        return np.argmax(np.concatenate(shares, axis=1), axis=1)
    if isinstance(expansion, GaussianExpansion):
        basis = expansion.basis
        metric, own = to_numpy(basis.metric), to_numpy(basis.inverse_widths)
        squares = cdist(to_numpy(basis.prepared(X)) @ metric, to_numpy(basis.vectors) @ metric, "sqeuclidean")
        return np.argmin(squares * own**2, axis=1)
    K = to_numpy(expansion.kernel(X, V))
    return np.argmax(K - 0.5 * to_numpy(expansion.kernel.diag(V))[None, :], axis=1)


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


def _sentences(subject: Subject, places: list[int | None], moved: bool) -> tuple[str, ...]:
    m, n = len(subject.vectors), len(subject.rows)
    keeps = plural(m, "vector")
    if not moved:
        keeps = f"{count(m)} of {plural(n, 'row')} ({percent(m / n)})"
        if None in places:
            keeps = f"{plural(m, 'row')} of the table that it was fitted to"
    what = "scores how common a new row is" if subject.task == "density" else "predicts a new row"
    expansion = subject.core.expansion_
    straight = isinstance(expansion, GaussianExpansion) and to_numpy(expansion.slopes).any()
    by = "to them and from a linear function of its columns" if straight else "to them alone"
    sentences = [f"The model keeps {keeps}, and {what} from its similarity {by}."]
    if moved:
        sentences.append(
            "The fit moved them: they are not rows of the table, and some of their values may be impossible for a row."
        )
    else:
        sentences.append(
            "The rows below are part of the model: they are in its file, in exported code, and on this page. If they "
            "are personal data, so are these."
        )
    cancels = cancellation(subject)
    if cancels >= _CANCELS:
        sentences.append(
            f"Their coefficients cancel: the contribution of a single vector varies up to {number(cancels, 2)} times "
            "as much as the prediction. Vectors act only together, so the table states no effect of single ones."
        )
    return tuple(sentences)


def examples(subject: Subject, found: Predictions, target: str) -> Table:
    """A few predictions, and the kept rows that are most similar to the row, with similarity and effect.

    The most certain prediction of some classes and the least certain one, or a low, a middle and a high number. Empty
    where the vectors are not rows of the table.
    """
    places = [place for place in rows_of_vectors(subject) if place is not None]
    sums = isinstance(subject.core.expansion_, (KernelExpansion, GaussianExpansion))
    if not 0 < len(places) == len(subject.vectors) or not sums:
        return (), ()
    meanings, P = coefficients(subject)[1], found.probabilities
    rows = []
    for i in _shown(subject, found):
        position = int(found.positions[i])
        near = similarity(subject, subject.samples[position])
        order = [int(m) for m in np.argsort(-near, kind="stable") if places[m] != position][:_MOST_SIMILAR]
        sure = [] if P is None else [percent(float(P[i].max()), 0)]
        similar = [f"row {subject.rows.label(places[m])} ({percent(near[m], 0)})" for m in order]
        similar = [f"{row}: {meanings[m]}" if meanings[m] else row for row, m in zip(similar, order)]
        similar += [""] * (min(_MOST_SIMILAR, len(places)) - len(similar))
        rows.append((subject.rows.label(position), cell(found.truth[i]), found.cell(i), *sure, *similar))
    head = ["row", f"true {target}", "predicted", *["probability"] * (P is not None)]
    return (*head, *["most similar"] * (len(rows[0]) - len(head))), rows


def similarity(subject: Subject, x: Array) -> Array:
    """Similarity of a row to the vectors: the cosine of the angle in feature space."""
    expansion, row = subject.core.expansion_, x[None, :]
    values = _kernel(expansion, row)[0]
    if isinstance(expansion, GaussianExpansion):
        return values
    norms = np.sqrt(to_numpy(expansion.kernel.diag(row))[0] * to_numpy(expansion.kernel.diag(subject.vectors)))
    return np.asarray(values / np.where(norms > 0, norms, 1.0))


def _kernel(expansion: KernelExpansion | GaussianExpansion, X: Array) -> Array:
    """Kernel values of rows and vectors, ``(n, m)``."""
    if isinstance(expansion, GaussianExpansion):
        return np.asarray(to_numpy(expansion.basis.columns(expansion.basis.prepared(X))))
    return np.asarray(to_numpy(expansion.kernel(X, expansion.vectors)))


def _shown(subject: Subject, found: Predictions) -> list[int]:
    """Rows of ``found`` that are worth showing."""
    n = len(found.truth)
    if subject.task == "regress":
        order = np.argsort(found.predicted, kind="stable")
        chosen = [int(order[round(q * (n - 1))]) for q in (0.1, 0.5, 0.9)]
    elif found.probabilities is None:
        chosen = list(range(min(n, 4)))
    else:
        sure = found.probabilities.max(axis=1)
        said = [c for c in subject.classes if (found.predicted == c).any()][:_MOST_CLASSES]
        chosen = [int(np.argmax(np.where(found.predicted == c, sure, -1.0))) for c in said]
        chosen.append(int(np.argmin(sure)))
    return list(dict.fromkeys(chosen))
