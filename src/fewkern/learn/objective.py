r"""The leave-one-out error of a ridge regression on Gaussians, and its gradient in everything that can move.

With :math:`F` the centred features of the rows (Gaussians and linear ones), each row times the root of its weight,

.. math:: G = F^T F + \lambda I, \quad W = G^{-1} F^T Y, \quad R = Y - F W, \quad
          h_i = f_i^T G^{-1} f_i + w_i / w, \quad J = \frac1w \sum_i \frac{\|r_i\|^2}{(1 - h_i)^2}

the gradient with respect to :math:`F` is, with :math:`E_i = r_i / (1 - h_i)`, :math:`U_i = \tfrac2w E_i / (1 - h_i)`,
:math:`g_i = \tfrac2w \|E_i\|^2 / (1 - h_i)`, :math:`Q = G^{-1} F^T U`, :math:`T = F G^{-1}` and
:math:`M = T^T \operatorname{diag}(g)\, T`,

.. math:: \frac{\partial J}{\partial F} = F (Q W^T - 2 M) - U W^T - R Q^T + 2 \operatorname{diag}(g)\, T ,
          \qquad \frac{\partial J}{\partial \lambda} = \operatorname{tr}(Q^T W) - \operatorname{tr} M .

The slopes :math:`\sigma` of a warp have a normal prior: :math:`J` has the term
:math:`\tfrac{\tau q}{n} \sum (\log \sigma)^2` in addition, ``q`` being the number of targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fewkern.arrays.linalg import inverse_psd
from fewkern.core.gaussians import gaussians
from fewkern.learn.policy import Policy
from fewkern.learn.warp import Cells, Warp
from fewkern.select.leave_one_out import GroupBlocks, group_residuals

Host = np.ndarray[Any, Any]
# Leverage above which a row is taken to have this one: its own value is nearly all that predicts it.
_MOST_LEVERAGE = 0.98


@dataclass(frozen=True)
class Geometry:
    """The parameters of a search: vectors, metric, widths of the vectors, ridge, and the warp of the columns."""

    vectors: Host
    """Shape ``(m, d)``, in prepared columns, before the warp."""
    log_scales: Host
    """Logarithms of the inverse widths of the columns, shape ``(d,)``."""
    log_widths: Host
    """Logarithms of the vectors' own inverse widths, shape ``(m,)``."""
    directions: Host
    """Shape ``(d, r)``."""
    log_ridge: float
    """Logarithm of the ridge per unit of weight."""
    warp: Warp | None = None

    @property
    def size(self) -> int:
        """Number of vectors."""
        return len(self.vectors)

    @cached_property
    def warped_vectors(self) -> Host:
        """The vectors as the Gaussians see them."""
        return self.vectors if self.warp is None else self.warp(self.vectors)

    def columns(self, T: Host) -> Host:
        """Gaussians of prepared and warped rows around the vectors."""
        return np.asarray(
            gaussians(T, self.warped_vectors, np.exp(self.log_scales), self.directions, np.exp(self.log_widths))
        )


class Workspace:
    """Memory for matrices of ``n`` rows, by name: half of a gradient's time would go into fresh pages of memory."""

    def __init__(self, n: int) -> None:
        self._n, self._held = n, dict[str, Host]()

    def __call__(self, name: str, columns: int) -> Host:
        """A matrix of this name; its entries are arbitrary."""
        size = self._n * columns
        held = self._held.get(name)
        if held is None or len(held) < size:
            held = self._held[name] = np.empty(size)
        return held[:size].reshape(self._n, columns)


@dataclass(frozen=True)
class Rows:
    """Prepared rows with targets and positive weights; groups where rows belong together."""

    T: Host
    Y: Host
    weights: Host
    axes: Host
    """The linear features are ``T @ axes``, shape ``(d, p)``."""
    groups: Host | None = None
    cells: Cells | None = None
    """Where the rows lie between the knots of a warp."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.T)

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def root(self) -> Host:
        """Roots of the weights, shape ``(n, 1)``."""
        return np.sqrt(self.weights)[:, None]

    def mean(self, A: Host) -> Host:
        """Weighted mean of the rows of ``A``."""
        return np.asarray(self.weights @ A / self.total)

    def centred(self, A: Host) -> Host:
        """``A`` less its mean, times the roots of the weights."""
        A = A - self.mean(A)
        A *= self.root
        return A

    @cached_property
    def weighted_targets(self) -> Host:
        """Centred targets times the roots of the weights."""
        return self.centred(self.Y)

    @cached_property
    def workspace(self) -> Workspace:
        """Memory for matrices with these rows."""
        return Workspace(self.n)

    def take(self, part: Any) -> Rows:
        """The rows at the positions ``part``."""
        cells, groups = self.cells, self.groups
        return Rows(
            self.T[part],
            self.Y[part],
            self.weights[part],
            self.axes,
            None if groups is None else groups[part],
            None if cells is None else Cells(cells.place[part], cells.along[part]),
        )

    def with_targets(self, Y: Host) -> Rows:
        """The same rows with other targets."""
        return replace(self, Y=Y)

    def warped(self, warp: Warp | None) -> Host:
        """The prepared rows as the Gaussians see them."""
        if warp is None:
            return self.T
        return warp.at(self.T, self.cells or warp.cells(self.T))


def features(rows: Rows, geometry: Geometry) -> Host:
    """Gaussians and linear features ``(n, m + p)``."""
    T = rows.warped(geometry.warp)
    return np.concatenate([geometry.columns(T), T @ rows.axes], axis=1)


def values(rows: Rows, geometry: Geometry, W: Host, offset: Host) -> Host:
    """Values of a function with given coefficients at some rows."""
    return np.asarray(features(rows, geometry) @ W + offset)


def coefficients(rows: Rows, geometry: Geometry, policy: Policy) -> tuple[Host, Host]:
    """Coefficients ``(m + p, q)`` of Gaussians and linear features, and the constants ``(q,)``."""
    Z = features(rows, geometry)
    F = rows.centred(Z)
    W = inverse_psd(_shifted(F.T @ F, _ridge(geometry, rows, policy))) @ (F.T @ rows.weighted_targets)
    return W, rows.mean(rows.Y) - rows.mean(Z) @ W


def _ridge(geometry: Geometry, rows: Rows, policy: Policy) -> float:
    """The ridge of a sum over all rows; it stays above the least one per unit of weight, smoothly."""
    return (policy.least_ridge + math.exp(geometry.log_ridge)) * rows.total


def _shifted(gram: Host, shift: float) -> Host:
    gram[np.diag_indices_from(gram)] += shift
    return gram


def objective(rows: Rows, geometry: Geometry, policy: Policy) -> tuple[float, Geometry]:
    """The mean squared leave-one-out error ``J`` summed over the targets, and its gradient."""
    warp, directions, m = geometry.warp, geometry.directions, geometry.size
    squares, scales = np.exp(2.0 * geometry.log_widths), np.exp(geometry.log_scales)
    T, V, room = rows.warped(warp), geometry.warped_vectors, rows.workspace
    A, B = (np.concatenate([X * scales, X @ directions], axis=1) for X in (T, V))
    D = np.matmul(A, -2.0 * B.T, out=room("distances", m))
    D += np.einsum("ij,ij->i", A, A)[:, None]
    D += np.einsum("ij,ij->i", B, B)
    K = np.multiply(D, -0.5 * squares, out=room("kernel", m))
    np.exp(K, out=K)
    F = room("features", m + rows.axes.shape[1])
    F[:, :m], F[:, m:] = K, T @ rows.axes
    F -= rows.mean(F)
    F *= rows.root
    Y, total, w = rows.weighted_targets, rows.total, rows.weights
    inverse = inverse_psd(_shifted(F.T @ F, _ridge(geometry, rows, policy)))
    W = inverse @ (F.T @ Y)
    R = Y - F @ W
    smooth = np.matmul(F, inverse, out=room("smooth", F.shape[1]))
    leverage = np.einsum("ij,ij->i", smooth, F) + w / total
    free = leverage < _MOST_LEVERAGE
    left = 1.0 - np.where(free, leverage, _MOST_LEVERAGE)
    E = R / left[:, None]
    squared = np.einsum("ij,ij->i", E, E)
    value = float(squared.sum()) / total

    U = (2.0 / total) * E / left[:, None]
    g = np.where(free, (2.0 / total) * squared / left, 0.0)
    Q = inverse @ (F.T @ U)
    half = np.multiply(smooth, np.sqrt(g)[:, None], out=room("half", F.shape[1]))
    curved = half.T @ half  # a product with its own transpose costs half
    trace = float(np.trace(curved))
    end = m if warp is None else F.shape[1]  # without a warp nothing changes the linear features
    DF = np.matmul(F, Q @ W[:end].T - 2.0 * curved[:, :end], out=room("gradient", end))
    DF += np.multiply(smooth[:, :end], 2.0 * g[:, None], out=room("half", end))
    by_targets = np.concatenate([U, R], axis=1), np.concatenate([W[:end], Q[:end]], axis=1).T
    DF -= np.matmul(*by_targets, out=room("half", end))
    DF *= rows.root
    DF -= np.multiply(w[:, None], DF.sum(axis=0) / total, out=room("half", end))
    d_ridge = math.exp(geometry.log_ridge) * total * (float(np.sum(Q * W)) - trace)

    # through K = exp(-s^2 |A'(t - v)|^2 / 2)
    N = np.multiply(DF[:, :m], K, out=K)
    N *= squares
    by_row, by_vector, NT = N.sum(axis=1), N.sum(axis=0), N.T @ T
    pull = NT - by_vector[:, None] * V
    d_vectors = pull * scales**2 + (pull @ directions) @ directions.T
    d_scales = -(scales**2) * (by_row @ (T * T) - 2.0 * np.sum(NT * V, axis=0) + by_vector @ (V * V))
    d_widths = -np.einsum("ij,ij->j", N, D)
    d_directions = directions
    if directions.shape[1]:
        TU, VU = T @ directions, V @ directions
        d_directions = NT.T @ VU + V.T @ (N.T @ TU) - T.T @ (by_row[:, None] * TU) - V.T @ (by_vector[:, None] * VU)
    if warp is None:
        return value, Geometry(d_vectors, d_scales, d_widths, d_directions, d_ridge)
    pull = N @ V - by_row[:, None] * T
    d_rows = pull * scales**2 + (pull @ directions) @ directions.T + DF[:, m:] @ rows.axes.T
    cells, own = rows.cells or warp.cells(rows.T), warp.cells(geometry.vectors)
    d_slopes = warp.d_log_slopes(warp.d_levels(cells, d_rows) + warp.d_levels(own, d_vectors))
    stiffness = policy.stiffness * Y.shape[1] / rows.n
    value += stiffness * float(np.sum(warp.log_slopes**2))
    d_warp = replace(warp, log_slopes=d_slopes + 2.0 * stiffness * warp.log_slopes)
    return value, Geometry(warp.pulled(own, d_vectors), d_scales, d_widths, d_directions, d_ridge, d_warp)


def ridge_errors(rows: Rows, geometry: Geometry, ridges: tuple[float, ...]) -> list[float]:
    """The leave-one-out error of every ridge (per unit of weight), from one decomposition; whole groups are left out.

    Rows of one group are predicted without any of them: :math:`e_g = (I - H_{gg})^{-1} r_g`.
    """
    blocks = None if rows.groups is None else GroupBlocks.of(rows.groups)
    errors = []
    for R, left in _ridge_residuals(rows, geometry, ridges):
        if blocks is None:
            total = float(np.sum(np.einsum("ij,ij->i", R, R) / (left * left)))
        else:
            total = _without_groups(left, R, blocks)
        errors.append(total / rows.total)
    return errors


def left_out_residuals(rows: Rows, geometry: Geometry, ridges: tuple[float, ...]) -> tuple[float, Host]:
    """The ridge of least leave-one-out error, and the residual of every row by the model without it, or its group."""
    blocks = None if rows.groups is None else GroupBlocks.of(rows.groups)
    residuals = [
        # rows.Y has mean zero, so that the constant leaves it as it is
        R / left[:, None] if blocks is None else group_residuals(left, rows.weighted_targets, blocks)
        for R, left in _ridge_residuals(rows, geometry, ridges)
    ]
    best = int(np.argmin([float(np.einsum("ij,ij->", E, E)) for E in residuals]))
    return ridges[best], residuals[best] / rows.root


def _ridge_residuals(rows: Rows, geometry: Geometry, ridges: tuple[float, ...]) -> Iterator[tuple[Host, Host]]:
    """For every ridge the weighted residuals, and one minus the leverage of every row.

    With groups the second is ``Q`` instead, with the smoother ``Q Q'``.
    """
    F, Y = rows.centred(features(rows, geometry)), rows.weighted_targets
    strengths, axes = np.linalg.eigh(F.T @ F)
    A = F @ axes
    cross, squared = A.T @ Y, A * A
    for ridge in ridges:
        shrink = 1.0 / (np.maximum(strengths, 0.0) + ridge * rows.total)
        R = Y - A @ (shrink[:, None] * cross)
        if rows.groups is None:
            leverage = squared @ shrink + rows.weights / rows.total
            yield R, 1.0 - np.minimum(leverage, _MOST_LEVERAGE)
        else:
            yield R, np.concatenate([A * np.sqrt(shrink), rows.root / math.sqrt(rows.total)], axis=1)


def _without_groups(Q: Host, R: Host, groups: GroupBlocks) -> float:
    """Sum of squared residuals of every row by the model without its group; the smoother is ``Q Q'``.

    The leverage of a group in any direction counts as ``_MOST_LEVERAGE`` at most, like that of a row.
    """
    total = 0.0
    for block in groups.blocks:
        residuals = block.take(R)
        U, sizes, _ = np.linalg.svd(block.take(Q), full_matrices=False)
        inside = np.matmul(np.swapaxes(U, -1, -2), residuals)
        left = 1.0 - np.minimum(sizes * sizes, _MOST_LEVERAGE)[:, :, None]
        total += float(np.sum(residuals * residuals) + np.sum((inside / left) ** 2 - inside * inside))
    return total
