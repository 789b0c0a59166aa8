r"""The leave-one-out error of a ridge regression on Gaussians, and its gradient in everything that can move.

With :math:`F` the centred features of the rows (Gaussians and linear ones), each row times the root of its weight,

.. math:: G = F^T F + \lambda I, \quad W = G^{-1} F^T Y, \quad R = Y - F W, \quad
          h_i = f_i^T G^{-1} f_i + w_i / w, \quad J = \frac1w \sum_i \frac{\|r_i\|^2}{(1 - h_i)^2}

the gradient with respect to :math:`F` is, with :math:`E_i = r_i / (1 - h_i)`, :math:`U_i = \tfrac2w E_i / (1 - h_i)`,
:math:`g_i = \tfrac2w \|E_i\|^2 / (1 - h_i)`, :math:`Q = G^{-1} F^T U`, :math:`T = F G^{-1}` and
:math:`M = T^T \operatorname{diag}(g)\, T`,

.. math:: \frac{\partial J}{\partial F} = F (Q W^T - 2 M) - U W^T - R Q^T + 2 \operatorname{diag}(g)\, T ,
          \qquad \frac{\partial J}{\partial \lambda} = \operatorname{tr}(Q^T W) - \operatorname{tr} M .
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fewkern.backend.linalg import inverse_psd
from fewkern.backend.namespace import Array, asarray_like, device, namespace, take_rows
from fewkern.core.gaussians import gaussians
from fewkern.vectors.leave_group_out import GroupBlocks

__all__ = ["Geometry", "Rows", "coefficients", "objective", "ridge_errors"]

# Leverage above which a row is taken to have this one: its own value is nearly all that predicts it.
_MOST_LEVERAGE = 0.98


@dataclass(frozen=True)
class Geometry:
    """All that moves: vectors, the metric, the vectors' own widths and the ridge."""

    vectors: Array
    """Shape ``(m, d)``, in prepared columns."""
    log_scales: Array
    """Logarithms of the inverse widths of the columns, shape ``(d,)``."""
    log_widths: Array
    """Logarithms of the vectors' own inverse widths, shape ``(m,)``."""
    directions: Array
    """Shape ``(d, r)``."""
    log_ridge: float
    """Logarithm of the ridge per unit of weight."""

    @property
    def size(self) -> int:
        """Number of vectors."""
        return int(self.vectors.shape[0])

    @cached_property
    def metric(self) -> Array:
        """``[D, U]``."""
        xp = namespace(self.vectors)
        identity = xp.eye(int(self.log_scales.shape[0]), dtype=self.vectors.dtype, device=device(self.vectors))
        return xp.concat([xp.exp(self.log_scales)[:, None] * identity, self.directions], axis=1)

    def columns(self, T: Array) -> Array:
        """Gaussians of prepared rows around the vectors."""
        return gaussians(T, self.vectors, self.metric, namespace(T).exp(self.log_widths))


@dataclass(frozen=True)
class Rows:
    """Prepared rows with targets, positive weights and linear features; groups where rows belong together."""

    T: Array
    Y: Array
    weights: Array
    linear: Array
    """Linear features, shape ``(n, p)``."""
    groups: Array | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.T.shape[0])

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(namespace(self.T).sum(self.weights))

    @cached_property
    def root(self) -> Array:
        """Roots of the weights, shape ``(n, 1)``."""
        return namespace(self.T).sqrt(self.weights)[:, None]

    def mean(self, A: Array) -> Array:
        """Weighted mean of the rows of ``A``."""
        return self.weights @ A / self.total

    @cached_property
    def weighted_linear(self) -> Array:
        """Centred linear features times the roots of the weights."""
        return self.root * (self.linear - self.mean(self.linear))

    @cached_property
    def weighted_targets(self) -> Array:
        """Centred targets times the roots of the weights."""
        return self.root * (self.Y - self.mean(self.Y))

    def take(self, part: Any) -> Rows:
        """The rows at the positions ``part``."""
        part = asarray_like(part, self.T, dtype=namespace(self.T).int64)
        T, Y, weights, linear = (take_rows(one, part) for one in (self.T, self.Y, self.weights, self.linear))
        return Rows(T, Y, weights, linear, None if self.groups is None else take_rows(self.groups, part))

    def with_targets(self, Y: Array) -> Rows:
        """The same rows with other targets."""
        return replace(self, Y=Y)

    def features(self, K: Array) -> Array:
        """Centred features times the roots of the weights, from Gaussians ``K``."""
        return namespace(K).concat([self.root * (K - self.mean(K)), self.weighted_linear], axis=1)


def _ridge(geometry: Geometry, rows: Rows, least: float) -> float:
    """The ridge of a sum over all rows; it stays above ``least`` per unit of weight, smoothly."""
    return (least + math.exp(geometry.log_ridge)) * rows.total


def _shifted(gram: Array, shift: float) -> Array:
    xp = namespace(gram)
    return gram + shift * xp.eye(int(gram.shape[0]), dtype=gram.dtype, device=device(gram))


def coefficients(rows: Rows, geometry: Geometry, least: float) -> tuple[Array, Array]:
    """Coefficients ``(m + p, q)`` of Gaussians and linear features, and the constants ``(q,)``."""
    K, xp = geometry.columns(rows.T), namespace(rows.T)
    F = rows.features(K)
    W = inverse_psd(_shifted(F.T @ F, _ridge(geometry, rows, least))) @ (F.T @ rows.weighted_targets)
    means = xp.concat([rows.mean(K), rows.mean(rows.linear)])
    return W, rows.mean(rows.Y) - means @ W


def objective(rows: Rows, geometry: Geometry, least: float) -> tuple[float, Geometry]:
    """The mean squared leave-one-out error ``J`` summed over the targets, and its gradient."""
    xp, T, V, m = namespace(rows.T), rows.T, geometry.vectors, geometry.size
    squares = xp.exp(2.0 * geometry.log_widths)
    A, B = T @ geometry.metric, V @ geometry.metric
    D = A @ B.T
    D *= -2.0
    D += xp.sum(A * A, axis=1)[:, None]
    D += xp.sum(B * B, axis=1)[None, :]
    K = xp.exp(D * (-0.5 * squares)[None, :])
    F = rows.features(K)
    Y, total, w = rows.weighted_targets, rows.total, rows.weights
    inverse = inverse_psd(_shifted(F.T @ F, _ridge(geometry, rows, least)))
    W = inverse @ (F.T @ Y)
    R = Y - F @ W
    smooth = F @ inverse
    leverage = xp.sum(smooth * F, axis=1) + w / total
    free = leverage < _MOST_LEVERAGE
    left = 1.0 - xp.where(free, leverage, xp.full_like(leverage, _MOST_LEVERAGE))
    E = R / left[:, None]
    squared = xp.sum(E * E, axis=1)
    value = float(xp.sum(squared)) / total

    U = (2.0 / total) * E / left[:, None]
    g = xp.where(free, (2.0 / total) * squared / left, xp.zeros_like(left))
    Q = inverse @ (F.T @ U)
    scaled = g[:, None] * smooth[:, :m]
    DK = F @ (Q @ W[:m, :].T - 2.0 * (smooth.T @ scaled))
    DK -= U @ W[:m, :].T
    DK -= R @ Q[:m, :].T
    DK += 2.0 * scaled
    DK *= rows.root
    DK -= w[:, None] * (xp.sum(DK, axis=0) / total)[None, :]
    trace = float(g @ xp.sum(smooth * smooth, axis=1))
    d_ridge = math.exp(geometry.log_ridge) * total * (float(xp.sum(Q * W)) - trace)

    # through K = exp(-s^2 |A'(t - v)|^2 / 2)
    N = DK * K
    N *= squares[None, :]
    by_row, by_vector, NT = xp.sum(N, axis=1), xp.sum(N, axis=0), N.T @ T
    pull = NT - by_vector[:, None] * V
    d_vectors = (pull @ geometry.metric) @ geometry.metric.T
    d_scales = -xp.exp(2.0 * geometry.log_scales) * (
        by_row @ (T * T) - 2.0 * xp.sum(NT * V, axis=0) + by_vector @ (V * V)
    )
    d_widths = -xp.sum(N * D, axis=0)
    d_directions = geometry.directions
    if int(geometry.directions.shape[1]):
        TU, VU = T @ geometry.directions, V @ geometry.directions
        d_directions = NT.T @ VU + V.T @ (N.T @ TU) - T.T @ (by_row[:, None] * TU) - V.T @ (by_vector[:, None] * VU)
    return value, Geometry(d_vectors, d_scales, d_widths, d_directions, d_ridge)


def ridge_errors(rows: Rows, geometry: Geometry, ridges: tuple[float, ...]) -> list[float]:
    """The leave-one-out error of every ridge (per unit of weight), from one decomposition; whole groups are left out.

    Rows of one group are predicted without any of them: :math:`e_g = (I - H_{gg})^{-1} r_g`.
    """
    xp = namespace(rows.T)
    F = rows.features(geometry.columns(rows.T))
    values, vectors = xp.linalg.eigh(F.T @ F)
    A = F @ vectors
    cross, squared = A.T @ rows.weighted_targets, A * A
    zero, blocks = xp.zeros_like(values), None if rows.groups is None else GroupBlocks.of(rows.groups)
    errors = []
    for ridge in ridges:
        shrink = 1.0 / (xp.maximum(values, zero) + ridge * rows.total)
        R = rows.weighted_targets - A @ (shrink[:, None] * cross)
        if blocks is not None:
            Q = xp.concat([A * xp.sqrt(shrink), rows.root / math.sqrt(rows.total)], axis=1)
            errors.append(_without_groups(Q, R, blocks) / rows.total)
            continue
        leverage = squared @ shrink + rows.weights / rows.total
        left = 1.0 - xp.minimum(leverage, xp.full_like(leverage, _MOST_LEVERAGE))
        errors.append(float(xp.sum(xp.sum(R * R, axis=1) / (left * left))) / rows.total)
    return errors


def _without_groups(Q: Array, R: Array, groups: GroupBlocks) -> float:
    """Sum of squared residuals of every row by the model without its group; the smoother is ``Q Q'``.

    The leverage of a group in any direction counts as ``_MOST_LEVERAGE`` at most, like that of a row.
    """
    xp, total = namespace(Q), 0.0
    for block in groups.blocks:
        residuals = block.take(R)
        U, sizes, _ = xp.linalg.svd(block.take(Q), full_matrices=False)
        inside = xp.matmul(xp.matrix_transpose(U), residuals)
        left = 1.0 - xp.minimum(sizes * sizes, xp.full_like(sizes, _MOST_LEVERAGE))[:, :, None]
        total += float(xp.sum(residuals * residuals) + xp.sum((inside / left) ** 2 - inside * inside))
    return total
