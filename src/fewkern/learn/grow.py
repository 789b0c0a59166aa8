"""Larger geometries from smaller ones: new vectors where the error is, and directions in which the function changes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fewkern.backend.namespace import Array, asarray_like, namespace, to_numpy
from fewkern.learn.objective import Geometry, Rows, coefficients

__all__ = ["grow", "values", "with_directions"]

# Rows looked at per new vector, and at least.
_ROWS_PER_VECTOR, _LEAST_ROWS = 10, 200
# Share of the mean squared residual that every row has in addition when rows are drawn.
_FLOOR = 0.1
# Rows and outputs over which gradients are averaged.
_GRADIENT_ROWS, _GRADIENT_OUTPUTS = 800, 6
# Length of the leading direction at first, in units of the mean inverse width.
_LENGTH = 0.3


def grow(rows: Rows, geometry: Geometry, size: int, least_ridge: float, rng: np.random.Generator) -> Geometry:
    """The geometry with new vectors, up to ``size``: rows of large residual, spread out in the present metric."""
    W, b = coefficients(rows, geometry, least_ridge)
    residual = to_numpy(_squared(rows.Y - values(rows, geometry, W, b)) * rows.weights)
    chance = residual + _FLOOR * residual.mean() + 1e-300
    count = size - geometry.size
    some = rng.choice(rows.n, min(max(_ROWS_PER_VECTOR * count, _LEAST_ROWS), rows.n), False, chance / chance.sum())
    T = rows.take(some).T
    xp = namespace(T)
    plain = replace(geometry, vectors=T, log_widths=xp.zeros_like(T[:, 0]))
    K = to_numpy(plain.columns(T))
    left = 1.0 - np.clip(to_numpy(xp.max(geometry.columns(T), axis=1)) ** 2, 0.0, 0.99)
    factor, chosen = np.zeros((len(some), count)), []
    for j in range(min(count, len(some))):
        k = int(np.argmax(left * residual[some]))
        chosen.append(k)
        column = K[:, k] - factor[:, :j] @ factor[k, :j]
        factor[:, j] = column / math.sqrt(max(float(1.0 - factor[k, :j] @ factor[k, :j]), 1e-6))
        left = np.minimum(left, 1.0 - np.einsum("ij,ij->i", factor[:, : j + 1], factor[:, : j + 1]))
        left[chosen] = -1.0
    new = rows.take(some[chosen]).T
    middle = float(np.median(to_numpy(geometry.log_widths)))
    widths = xp.concat([geometry.log_widths, xp.full_like(new[:, 0], middle)])
    return replace(geometry, vectors=xp.concat([geometry.vectors, new], axis=0), log_widths=widths)


def with_directions(
    rows: Rows, geometry: Geometry, rank: int, least_ridge: float, rng: np.random.Generator
) -> Geometry:
    """The geometry with the leading eigenvectors of the mean outer product of the function's gradients."""
    W, _ = coefficients(rows, geometry, least_ridge)
    T = rows.take(np.sort(rng.choice(rows.n, min(rows.n, _GRADIENT_ROWS), replace=False))).T
    xp = namespace(T)
    K = geometry.columns(T) * xp.exp(2.0 * geometry.log_widths)[None, :]
    squares = xp.exp(2.0 * geometry.log_scales)
    outer: Any = 0.0
    for output in range(min(int(W.shape[1]), _GRADIENT_OUTPUTS)):
        A = K * W[: geometry.size, output][None, :]
        slopes = (A @ geometry.vectors - xp.sum(A, axis=1)[:, None] * T) * squares
        outer = outer + slopes.T @ slopes
    strengths, axes = np.linalg.eigh(to_numpy(outer))
    rank = min(rank, int(T.shape[1]))
    if not strengths[-1] > 0:
        return geometry
    lengths = np.sqrt(np.maximum(strengths[-rank:], 0.0) / strengths[-1])
    unit = _LENGTH * float(xp.mean(xp.exp(geometry.log_scales)))
    return replace(geometry, directions=asarray_like(axes[:, -rank:] * (unit * lengths), T, dtype=xp.float64))


def values(rows: Rows, geometry: Geometry, W: Array, b: Array) -> Array:
    """Values of a function with given coefficients at some rows."""
    m = geometry.size
    return geometry.columns(rows.T) @ W[:m, :] + rows.linear @ W[m:, :] + b


def _squared(A: Array) -> Array:
    return namespace(A).sum(A * A, axis=1)
