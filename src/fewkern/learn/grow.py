"""Larger geometries from smaller ones: new vectors where the error is, and directions in which the function changes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fewkern.learn.objective import Geometry, Rows, coefficients, values
from fewkern.learn.policy import Policy

__all__ = ["grow", "leading_axes", "with_directions"]

Host = np.ndarray[Any, Any]
# Rows looked at per new vector, and at least.
_ROWS_PER_VECTOR, _LEAST_ROWS = 10, 200
# Share of the mean squared residual that every row has in addition when rows are drawn.
_FLOOR = 0.1
# Rows and outputs over which gradients are averaged.
_GRADIENT_ROWS, _GRADIENT_OUTPUTS = 800, 6
# Length of the leading direction at first, in units of the mean inverse width.
_LENGTH = 0.3


def grow(rows: Rows, geometry: Geometry, size: int, policy: Policy, rng: np.random.Generator) -> Geometry:
    """The geometry with new vectors, up to ``size``: rows of large residual, spread out in the present metric."""
    gap = rows.Y - values(rows, geometry, *coefficients(rows, geometry, policy))
    residual = np.einsum("ij,ij->i", gap, gap) * rows.weights
    chance = residual + _FLOOR * residual.mean() + 1e-300
    count = size - geometry.size
    some = rng.choice(rows.n, min(max(_ROWS_PER_VECTOR * count, _LEAST_ROWS), rows.n), False, chance / chance.sum())
    part = rows.take(some)
    T = part.warped(geometry.warp)
    K = replace(geometry, vectors=part.T, log_widths=np.zeros(len(some))).columns(T)
    left = 1.0 - np.clip(geometry.columns(T).max(axis=1) ** 2, 0.0, 0.99)
    factor, chosen = np.zeros((len(some), count)), []
    for j in range(min(count, len(some))):
        k = int(np.argmax(left * residual[some]))
        chosen.append(k)
        column = K[:, k] - factor[:, :j] @ factor[k, :j]
        factor[:, j] = column / math.sqrt(max(float(1.0 - factor[k, :j] @ factor[k, :j]), 1e-6))
        left = np.minimum(left, 1.0 - np.einsum("ij,ij->i", factor[:, : j + 1], factor[:, : j + 1]))
        left[chosen] = -1.0
    widths = np.concatenate([geometry.log_widths, np.full(len(chosen), np.median(geometry.log_widths))])
    return replace(geometry, vectors=np.concatenate([geometry.vectors, part.T[chosen]]), log_widths=widths)


def with_directions(rows: Rows, geometry: Geometry, policy: Policy, rng: np.random.Generator) -> Geometry:
    """The geometry with the leading eigenvectors of the mean outer product of the function's gradients."""
    W, _ = coefficients(rows, geometry, policy)
    part = rows.take(np.sort(rng.choice(rows.n, min(rows.n, _GRADIENT_ROWS), replace=False)))
    T, V = part.warped(geometry.warp), geometry.warped_vectors
    K = geometry.columns(T) * np.exp(2.0 * geometry.log_widths)
    squares = np.exp(2.0 * geometry.log_scales)
    slopes = []
    for output in range(min(W.shape[1], _GRADIENT_OUTPUTS)):
        A = K * W[: geometry.size, output]
        slopes.append((A @ V - A.sum(axis=1)[:, None] * T) * squares)
    strengths, axes = leading_axes(np.concatenate(slopes), policy.directions)
    if not len(strengths) or not strengths[-1] > 0:
        return geometry
    unit = _LENGTH * float(np.mean(np.exp(geometry.log_scales)))
    return replace(geometry, directions=axes * (unit * np.sqrt(strengths / strengths[-1])))


def leading_axes(A: Host, count: int) -> tuple[Host, Host]:
    """The ``count`` largest eigenvalues of ``A'A``, ascending, and their eigenvectors, from the smaller Gram matrix."""
    rows, columns = A.shape
    count = min(count, rows, columns)
    if columns <= rows:
        squares, axes = np.linalg.eigh(A.T @ A)
        return np.maximum(squares[columns - count :], 0.0), axes[:, columns - count :]
    squares, left = np.linalg.eigh(A @ A.T)
    squares = np.maximum(squares[rows - count :], 0.0)
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
    return squares, (A.T @ left[:, rows - count :]) / lengths
