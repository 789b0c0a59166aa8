"""What a model keeps: its vectors as rows of the table, and what each of them stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import to_numpy
from fewkern.core.gaussians import GaussianExpansion
from fewkern.density.mixture import ClassMixtures, KernelMixture
from fewkern.reporting.listing import Listing, in_importance, listing
from fewkern.reporting.subject import Subject
from fewkern.reporting.words import cell, count, label, number, percent, plural

__all__ = ["Kept", "KeptVector", "affine_units", "coefficients", "kept", "nearest_vectors", "rows_of_vectors"]

Vector = np.ndarray[Any, Any]
_MOST_VECTORS = 30
# Rows that are asked for their nearest vector.
_MOST_ROWS = 5000
_MOVED = (
    "They were moved while it was fitted, to where they serve best: they are not rows of the table, and their cells "
    "need not be possible ones."
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
    """The target of that row; nothing for a vector that is no row."""
    coefficient: float
    """The coefficient of the largest size; of a density the weight."""
    meaning: str
    """What the coefficient says."""
    nearest: int
    """Rows that are nearer to this vector than to any other."""
    nearby: str
    """What these rows have for a target."""


@dataclass(frozen=True)
class Kept:
    """The vectors of a model, those of the largest coefficients first."""

    columns: tuple[str, ...]
    vectors: tuple[KeptVector, ...]
    total: int
    moved: bool
    asked: int
    """Rows that were asked for their nearest vector."""
    sentences: tuple[str, ...]


def kept(subject: Subject, order: tuple[str, ...], seed: int) -> Kept | None:
    """The vectors in the units of the table; columns in the given order, most important first.

    None for a linear map, which keeps no sample.
    """
    V = subject.vectors
    if not len(V):
        return None
    coef, meanings = coefficients(subject)
    places = rows_of_vectors(subject)
    moved = subject.moved or (getattr(subject.core.expansion_, "indices", None) is None and None in places)
    rng = np.random.default_rng(seed)
    n = len(subject.rows)
    asked = np.arange(n) if n <= _MOST_ROWS else np.sort(rng.choice(n, _MOST_ROWS, replace=False))
    nearest = nearest_vectors(subject, subject.samples[asked])
    table = _cells(subject, places, order)
    shown = np.argsort(-np.abs(coef), kind="stable")[:_MOST_VECTORS]
    vectors = tuple(
        KeptVector(
            _name(subject, places[m], moved),
            table.cells[m],
            _target_of(subject, places[m]),
            float(coef[m]),
            meanings[m],
            int((nearest == m).sum()),
            _nearby(subject, asked[nearest == m]),
        )
        for m in shown
    )
    return Kept(table.columns, vectors, len(V), moved, len(asked), _sentences(subject, places, moved))


def rows_of_vectors(subject: Subject) -> list[int | None]:
    """The row of the table that every vector is; None where it is none of them."""
    if subject.moved:
        return [None] * len(subject.vectors)
    vectors, samples = subject.held_samples
    known: dict[bytes, int] = {}
    for place, row in enumerate(samples + 0.0):
        known.setdefault(row.tobytes(), place)
    indices = getattr(subject.core.expansion_, "indices", None)
    stated: list[int | None] = [None] * len(vectors) if indices is None else [int(i) for i in to_numpy(indices)]
    places: list[int | None] = []
    for row, position in zip(vectors + 0.0, stated):
        # of equal rows the one that the model names
        if position is not None and position < len(samples) and (samples[position] == row).all():
            places.append(position)
        else:
            places.append(known.get(row.tobytes()))
    return places


def coefficients(subject: Subject) -> tuple[Vector, list[str]]:
    """One number per vector, and what it says: the coefficient of the largest size, or the weight."""
    expansion = subject.core.expansion_
    if isinstance(expansion, KernelMixture):
        weights = to_numpy(expansion.weights).astype(float)
        return weights, [f"{percent(w)} of all rows" for w in weights]
    if isinstance(expansion, ClassMixtures):
        parts = [to_numpy(m.weights).astype(float) for m in expansion.mixtures]
        names = [label(c) for c, part in zip(subject.classes, parts) for _ in part]
        weights = np.concatenate(parts)
        return weights, [f"{percent(w)} of the rows with {name}" for w, name in zip(weights, names)]
    scores = getattr(subject.core, "class_scores_", None)
    if scores is not None and scores.weights is not None:
        expansion = expansion.then(scores.weights)
    coef = to_numpy(expansion.coef).astype(float)
    largest = np.argmax(np.abs(coef), axis=1)
    values = coef[np.arange(len(coef)), largest]
    return values, [_meaning(subject, coef.shape[1], int(k), float(v)) for k, v in zip(largest, values)]


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
            widths = to_numpy(mixture.widths)
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


def affine_units(subject: Subject) -> tuple[Vector, Vector] | None:
    """Shift and factor with which every column of the table becomes a feature, ``u = (x - shift) factor``.

    None where the features are not the columns in other units.
    """
    if subject.samples.shape[1] != len(subject.inputs) or len(subject.used) != len(subject.inputs):
        return None
    found = [affine_column(subject, j) for j in subject.inputs if len(subject.features[j]) == 1]
    if len(found) < len(subject.inputs) or None in found:
        return None
    shift, factor = np.array(found, dtype=float).T
    return shift, factor


def affine_column(subject: Subject, j: int) -> tuple[float, float] | None:
    """Shift and factor with which column ``j`` becomes its one feature; None if it is not a matter of units."""
    x, u = subject.rows.numbers(j), subject.samples[:, subject.features[j][0]]
    known = np.zeros(0, dtype=bool) if x is None else np.isfinite(x)
    if x is None or not known.any():
        return None
    x, u = x[known], u[known]
    low, high = int(np.argmin(x)), int(np.argmax(x))
    factor = float((u[high] - u[low]) / (x[high] - x[low])) if x[high] > x[low] else 1.0
    if factor == 0 or not np.isfinite(factor):
        return None
    shift = float(x[low] - u[low] / factor)
    if np.abs((x - shift) * factor - u).max() > 1e-6 * max(float(np.abs(u).max()), 1e-300):
        return None
    return shift, factor


def _cells(subject: Subject, places: list[int | None], order: tuple[str, ...]) -> Listing:
    """Columns to show, and the cells of every vector in them."""
    found = [place for place in places if place is not None]
    if len(found) == len(places):
        return listing(subject, found, order)
    used = in_importance(subject, order)
    names = tuple(subject.rows.names[j] for j in used)
    frame = subject.model.kept() if hasattr(subject.model, "kept") else None
    if frame is not None and set(names) <= set(map(str, frame.columns)) and len(frame) == len(places):
        columns = [frame[name].tolist() for name in names]
        return Listing(names, tuple(tuple(cell(column[m]) for column in columns) for m in range(len(places))))
    columns = [_back(subject, j) for j in used]
    return Listing(names, tuple(tuple(column[m] for column in columns) for m in range(len(places))))


def _back(subject: Subject, j: int) -> list[str]:
    """What the vectors have in column ``j``: a number in the units of the table, or the level that they are nearest to.

    Where the features of a column are neither the column in other units nor its levels, their numbers.
    """
    features, V = subject.features[j], subject.vectors
    units = affine_column(subject, j) if len(features) == 1 else None
    if units is not None:
        return [number(v, 4) for v in V[:, features[0]] / units[1] + units[0]]
    levels = _levels(subject, j)
    if levels is None:
        return [", ".join(number(v, 3) for v in row) for row in V[:, features]]
    U = subject.samples[:, features]
    low, high = U.min(axis=0), U.max(axis=0)
    shares = (V[:, features] - low) / (high - low)
    top = shares.argmax(axis=1)
    return [f"{levels[k]} ({shares[m, k]:.2f})" for m, k in enumerate(top)]


def _levels(subject: Subject, j: int) -> list[str] | None:
    """The category that every feature of column ``j`` stands for, if each is an indicator of one."""
    values = [cell(v) for v in subject.rows.values(j)]
    names = []
    for k in subject.features[j]:
        u = subject.samples[:, k]
        found = {values[i] for i in np.flatnonzero(u == u.max())}
        if len(np.unique(u)) != 2 or len(found) != 1:
            return None
        names.append(found.pop())
    return names


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
    how = "says how common a new row is" if subject.task == "density" else "judges a new row"
    expansion = subject.core.expansion_
    straight = isinstance(expansion, GaussianExpansion) and to_numpy(expansion.slopes).any()
    by = "to them and by a linear function of its columns" if straight else "to them alone"
    first = f"The model keeps {keeps}, and {how} by its likeness {by}."
    if moved:
        return first, _MOVED
    return first, _PERSONAL
