"""Rows that a short function is taught on and judged by: samples, and crossings of neighbouring samples.

A teacher is a fitted function, which has a value anywhere. At the samples that it was fitted to it may have memorised
noise, so these do not represent new samples. Crossings are new to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array, asarray_like, namespace, take_rows, to_numpy
from fewkern.core.scores import class_values

__all__ = ["LEAST_CLASS_ROWS", "Lesson", "border_weights", "crossings", "held_out"]

Host = np.ndarray[Any, Any]
# Samples drawn, of which the nearest is crossed with another one. Crossings to learn from may lie between the samples;
# those to be judged by must be like samples. Of image's decisions 98% agree on test samples; on crossings with 4 drawn
# 91%, with 256 drawn 98%.
DRAWN_TO_TEACH, DRAWN_TO_JUDGE = 4, 256
# Weight of a crossing, in samples.
CROSSING_WEIGHT = 0.3
# Margin, over the median margin, at which a row has half its weight. Plain least squares spends its vectors on large
# values, which decide nothing: with 5 vectors the mean error on three splits of image falls by 2.5 points.
HALF_WEIGHT_MARGIN = 0.5
# One sample in HELD_OUT is held out. With one in five, 98.2% of german's decisions agree on test samples, with one in
# ten 98.5%, as with none. Of every class LEAST_CLASS_ROWS samples are held out, or a third of them: the agreement of a
# class that has one sample held out is a matter of luck.
HELD_OUT, LEAST_CLASS_ROWS = 10, 10


@dataclass(frozen=True)
class Lesson:
    """Rows with the values of a teacher, and how much each counts, on the host."""

    X: Host
    """Samples first, then crossings."""
    values: Host
    weights: Host
    n_samples: int

    @classmethod
    def of(cls, teacher: Any, X: Array, total: int, rng: np.random.Generator) -> Lesson:
        """``total`` rows, at most two thirds of them samples, the others crossings; rows near a border count most."""
        xp = namespace(X)
        n = min(int(X.shape[0]), 2 * total // 3)
        samples = X[:n, :]
        codes = teacher.decisions(samples, teacher.values(samples))
        rows = xp.concat([samples, crossings(samples, samples, codes, total - n, DRAWN_TO_TEACH, rng)], axis=0)
        values = to_numpy(teacher.values(rows)).astype(np.float64)
        weights = np.array([1.0] * n + [CROSSING_WEIGHT] * (total - n))
        if teacher.scores is not None:
            weights = weights * border_weights(class_values(teacher.scores.scores(values)))
        return cls(to_numpy(rows), values, weights * (total / weights.sum()), n)


def border_weights(scores: Host) -> Host:
    """Weights of rows whose classes have these scores ``(n, C)``: those near a border of classes count most."""
    ordered = np.sort(scores, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    unit = HALF_WEIGHT_MARGIN * np.sort(margin)[len(margin) // 2]
    return 1.0 / (1.0 + (margin / unit) ** 2) if unit > 0 else np.ones_like(margin)


def held_out(codes: Array | None, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Positions of the samples to teach, and of those held out: one in ``HELD_OUT``, and enough of every class."""
    order = rng.permutation(n)
    if n < 2 * HELD_OUT:
        return order, order
    held = np.arange(n) % HELD_OUT == HELD_OUT - 1
    if codes is not None:
        order = order[np.argsort(to_numpy(codes)[order], kind="stable")]
        classes = to_numpy(codes)[order]
        for own in (np.flatnonzero(classes == c) for c in np.unique(classes)):
            if held[own].sum() < LEAST_CLASS_ROWS:
                held[own[: min(LEAST_CLASS_ROWS, len(own) // 3)]] = True
    return rng.permutation(order[~held]), order[held]


def crossings(X: Array, others: Array, codes: Array | None, count: int, drawn: int, rng: np.random.Generator) -> Array:
    """``count`` rows that take every feature from a row of ``X`` or from one of the ``others`` near it.

    So they have values that occur. The rows of ``X`` are drawn from all classes ``codes`` alike: rare ones count.
    """
    xp, (n, d) = namespace(X), X.shape
    chance = None
    if codes is not None:
        _, place, counts = np.unique(to_numpy(codes), return_inverse=True, return_counts=True)
        chance = 1.0 / (len(counts) * counts[place.reshape(-1)])
    first = take_rows(X, asarray_like(rng.choice(n, count, p=chance), X, dtype=xp.int64))
    spread = xp.std(others, axis=0)
    unit = xp.where(spread > 0, spread, xp.ones_like(spread))
    nearest, least = first, xp.full_like(first[:, 0], xp.inf)
    for _ in range(drawn):
        other = take_rows(others, asarray_like(rng.integers(int(others.shape[0]), size=count), X, dtype=xp.int64))
        distance = xp.sum(((first - other) / unit) ** 2, axis=1)
        nearer = (distance > 0) & (distance < least)
        nearest, least = xp.where(nearer[:, None], other, nearest), xp.where(nearer, distance, least)
    return xp.where(asarray_like(rng.random((count, d)) < 0.5, X, dtype=xp.bool), first, nearest)
