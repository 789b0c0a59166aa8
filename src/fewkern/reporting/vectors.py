"""The vectors that a model keeps, as rows of the table, and the predictions that they explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gaussians import GaussianExpansion
from fewkern.density.classes import ClassMixtures
from fewkern.density.mixture import KernelMixture
from fewkern.reporting.formatting import cell, count, label, number, percent, plural
from fewkern.reporting.holdout import Predictions
from fewkern.reporting.listing import list_vectors, rows_of_vectors
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject

__all__ = [
    "Example",
    "KeptVector",
    "SimilarRow",
    "Vectors",
    "coefficients",
    "examples",
    "nearest_vectors",
    "similarity",
    "vectors",
]

Vector = np.ndarray[Any, Any]
_MOST_VECTORS = 30
# Rows that are assigned to their nearest vector, and rows over which contributions of vectors are compared.
_MOST_ROWS, _MOST_COMPARED = 5000, 600
_MOST_CLASSES, _MOST_SIMILAR = 3, 3
# Contributions of single vectors that vary this many times as much as their sum cancel each other.
_CANCELS = 5.0
_MOVED = (
    "They were moved during the fit to where they serve best: they are not rows of the table, and their cells need not "
    "be possible ones."
)
_PERSONAL = (
    "The rows below are part of the model: they are in its file, in exported code, and on this page. If they "
    "are personal data, so are all of these."
)


@dataclass(frozen=True)
class KeptVector:
    """One vector of the model."""

    name: str
    """The row that it is, or that it started from."""
    cells: tuple[str, ...]
    target: str
    """The target of that row; empty for a vector that is no row."""
    coefficient: float
    """The coefficient of the largest size; of a density the weight."""
    meaning: str
    """Direction of the effect; empty where coefficients cancel."""
    nearest: int
    """Rows that are nearer to this vector than to any other."""
    nearby: str
    """The targets of these rows in a few words."""


@dataclass(frozen=True)
class Vectors:
    """The vectors of a model, those of the largest coefficients first."""

    columns: tuple[str, ...]
    vectors: tuple[KeptVector, ...]
    total: int
    moved: bool
    assigned: int
    """Rows that were assigned to their nearest vector."""
    sentences: tuple[str, ...]


def vectors(subject: Subject, order: tuple[str, ...], seed: int) -> Vectors | None:
    """The vectors in the units of the table; columns in the given order, most important first.

    None for a linear map, which keeps no sample.
    """
    V = subject.vectors
    if not len(V):
        return None
    coef, meanings = coefficients(subject)
    places = rows_of_vectors(subject)
    moved = subject.moved or (getattr(subject.core.expansion_, "indices", None) is None and None in places)
    assigned = sample_rows(len(subject.rows), _MOST_ROWS, np.random.default_rng(seed))
    nearest = nearest_vectors(subject, subject.samples[assigned])
    table = list_vectors(subject, places, order)
    shown = np.argsort(-np.abs(coef), kind="stable")[:_MOST_VECTORS]
    listed = tuple(
        KeptVector(
            _name(subject, places[m], moved),
            table.cells[m],
            _target_of(subject, places[m]),
            float(coef[m]),
            meanings[m],
            int((nearest == m).sum()),
            _nearby(subject, assigned[nearest == m]),
        )
        for m in shown
    )
    return Vectors(table.columns, listed, len(V), moved, len(assigned), _sentences(subject, places, moved))


def coefficients(subject: Subject) -> tuple[Vector, list[str]]:
    """One number per vector, and what it means: the coefficient of the largest size, or the weight."""
    expansion = subject.core.expansion_
    if isinstance(expansion, KernelMixture):
        weights = to_numpy(expansion.weights).astype(float)
        return weights, [f"{percent(w)} of all rows" for w in weights]
    if isinstance(expansion, ClassMixtures):
        parts = [to_numpy(m.weights).astype(float) for m in expansion.mixtures]
        names = [label(c) for c, part in zip(subject.classes, parts) for _ in part]
        weights = np.concatenate(parts)
        return weights, [f"{percent(w)} of the rows with {name}" for w, name in zip(weights, names)]
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


def nearest_vectors(subject: Subject, X: Vector) -> Vector:
    """For every row of ``X`` the vector that is nearest, in the metric of the kernel (and of its own width)."""
    expansion, V = subject.core.expansion_, subject.vectors
    mixtures = expansion.mixtures if isinstance(expansion, ClassMixtures) else (expansion,)
    if isinstance(mixtures[0], KernelMixture):
        shares = []
        for mixture in mixtures:
            A = to_numpy(mixture.transform)
            Z, C = (X * A, to_numpy(mixture.vectors) * A) if A.ndim == 1 else (X @ A.T, to_numpy(mixture.vectors) @ A.T)
            D = ((Z[:, None, :] - C[None, :, :]) ** 2).sum(axis=2) if X.size * len(C) < 5e7 else _distances(Z, C)
            widths = to_numpy(mixture.bandwidths)
            shares.append(-0.5 * D / widths**2 - X.shape[1] * np.log(widths))
        return np.argmax(np.concatenate(shares, axis=1), axis=1)
    if isinstance(expansion, GaussianExpansion):
        basis = expansion.basis
        metric, own = to_numpy(basis.metric), to_numpy(basis.inverse_widths)
        T = to_numpy(basis.prepared(X))
        return np.argmin(_distances(T @ metric, to_numpy(basis.vectors) @ metric) * own**2, axis=1)
    K = to_numpy(expansion.kernel(X, V))
    return np.argmax(K - 0.5 * to_numpy(expansion.kernel.diag(V))[None, :], axis=1)


def _distances(Z: Vector, C: Vector) -> Vector:
    return np.maximum((Z**2).sum(1)[:, None] + (C**2).sum(1)[None, :] - 2 * Z @ C.T, 0.0)


def _name(subject: Subject, place: int | None, moved: bool) -> str:
    return "moved" if moved else "–" if place is None else subject.rows.label(place)


def _target_of(subject: Subject, place: int | None) -> str:
    return "" if place is None or subject.truth is None else cell(subject.truth[place])


def _nearby(subject: Subject, positions: Vector) -> str:
    """The targets of some rows in a few words."""
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
    sentences = [f"The model keeps {keeps}, and {what} from its similarity {by}.", _MOVED if moved else _PERSONAL]
    cancels = cancellation(subject)
    if cancels >= _CANCELS:
        sentences.append(
            f"Their coefficients cancel: the contribution of a single vector varies up to {number(cancels, 2)} times "
            "as much as the prediction. Vectors act only together, so the table states no effect of single ones."
        )
    return tuple(sentences)


@dataclass(frozen=True)
class SimilarRow:
    """A kept row that is similar to another row."""

    name: str
    meaning: str
    """Direction of its effect; empty where coefficients cancel."""
    similarity: float
    """The kernel as a cosine: 1 for the same row, 0 for rows that have nothing in common."""


@dataclass(frozen=True)
class Example:
    """One prediction, and the kept rows that are most similar to the row."""

    name: str
    truth: str
    predicted: str
    sure: str
    """The predicted probability, where there is one."""
    similar: tuple[SimilarRow, ...]


def examples(subject: Subject, found: Predictions) -> tuple[Example, ...]:
    """A few predictions: the most certain of some classes and the least certain, or a low, a middle and a high number.

    Empty where the vectors are not rows of the table.
    """
    places = [place for place in rows_of_vectors(subject) if place is not None]
    sums = isinstance(subject.core.expansion_, (KernelExpansion, GaussianExpansion))
    if not 0 < len(places) == len(subject.vectors) or not sums:
        return ()
    meanings = coefficients(subject)[1]
    made = []
    for i in _shown(subject, found):
        position = int(found.positions[i])
        near = similarity(subject, subject.samples[position])
        order = [int(m) for m in np.argsort(-near, kind="stable") if places[m] != position][:_MOST_SIMILAR]
        similar = tuple(SimilarRow(subject.rows.label(places[m]), meanings[m], float(near[m])) for m in order)
        P = found.probabilities
        sure = "" if P is None else percent(float(P[i].max()), 0)
        name = subject.rows.label(position)
        predicted = found.predicted[i]
        said = cell(predicted if subject.task == "classify" else float(f"{predicted:.4g}"))
        made.append(Example(name, cell(found.truth[i]), said, sure, similar))
    return tuple(made)


def similarity(subject: Subject, x: Vector) -> Vector:
    """Similarity of a row to the vectors: the cosine of the angle in feature space."""
    expansion, row = subject.core.expansion_, x[None, :]
    values = _kernel(expansion, row)[0]
    if isinstance(expansion, GaussianExpansion):
        return values
    norms = np.sqrt(to_numpy(expansion.kernel.diag(row))[0] * to_numpy(expansion.kernel.diag(subject.vectors)))
    return np.asarray(values / np.where(norms > 0, norms, 1.0))


def _kernel(expansion: KernelExpansion | GaussianExpansion, X: Vector) -> Vector:
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
