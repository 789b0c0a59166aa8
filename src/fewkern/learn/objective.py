r"""The leave-one-out error of a ridge regression on Gaussians, its gradient in all that can move, and its minimization.

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fewkern.arrays.linalg import inverse_psd
from fewkern.arrays.optimize import minimize_smooth
from fewkern.core.gaussians import GaussianBasis, Preparation, gaussians, times_metric
from fewkern.learn.policy import Policy
from fewkern.learn.preparation import Cells, Warp

Host = np.ndarray[Any, Any]
# Largest leverage that is used: above it, a row's own value is nearly all that predicts it.
MOST_LEVERAGE = 0.98
# Least inverse width of a column, over the largest, that the unit of the vectors follows.
_LEAST_SCALE = 1e-3


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

    def basis(self, preparation: Preparation, axes: Host, indices: Host | None = None) -> GaussianBasis:
        """The vectors as a basis, with a preparation that includes the warp."""
        scales, widths = np.exp(self.log_scales), np.exp(self.log_widths)
        return GaussianBasis(preparation, self.warped_vectors, scales, self.directions, widths, axes, indices)


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
    """Positions of the rows between the knots of a warp."""
    views: tuple[Rows, ...] = ()
    """The rows as every fold sees them, where they are not the same to all."""

    def of_fold(self, k: int) -> Rows:
        """The rows as the fold ``k`` sees them."""
        return self.views[k] if self.views else self

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
    free = leverage < MOST_LEVERAGE
    left = 1.0 - np.where(free, leverage, MOST_LEVERAGE)
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
    d_vectors = times_metric(pull, scales, directions)
    d_scales = -(scales**2) * (by_row @ (T * T) - 2.0 * np.sum(NT * V, axis=0) + by_vector @ (V * V))
    d_widths = -np.einsum("ij,ij->j", N, D)
    d_directions = directions
    if directions.shape[1]:
        TU, VU = T @ directions, V @ directions
        d_directions = NT.T @ VU + V.T @ (N.T @ TU) - T.T @ (by_row[:, None] * TU) - V.T @ (by_vector[:, None] * VU)
    if warp is None:
        return value, Geometry(d_vectors, d_scales, d_widths, d_directions, d_ridge)
    pull = N @ V - by_row[:, None] * T
    d_rows = times_metric(pull, scales, directions) + DF[:, m:] @ rows.axes.T
    cells, own = rows.cells or warp.cells(rows.T), warp.cells(geometry.vectors)
    d_slopes = warp.d_log_slopes(warp.d_levels(cells, d_rows) + warp.d_levels(own, d_vectors))
    stiffness = policy.stiffness * Y.shape[1] / rows.n
    value += stiffness * float(np.sum(warp.log_slopes**2))
    d_warp = replace(warp, log_slopes=d_slopes + 2.0 * stiffness * warp.log_slopes)
    return value, Geometry(warp.pulled(own, d_vectors), d_scales, d_widths, d_directions, d_ridge, d_warp)


def move(
    rows: Rows,
    geometry: Geometry,
    steps: int,
    policy: Policy,
    tol: float = 1e-5,
    promising: Callable[[Geometry], bool] = lambda _: True,
) -> Geometry:
    """The geometry after at most ``steps`` steps of L-BFGS; one that gains less than the share ``tol`` is the last.

    This one optimizer moves all vectors, with the labels or a teacher as targets.

    Half way the search ends where the geometry is not ``promising``.

    Cost: about ``7 n (m + p)^2`` flops per step, ``p`` being the number of linear features.
    """

    units = _units(geometry)

    def at(x: Host) -> Geometry:
        return _unpacked(x * units, geometry)

    def error(x: Host) -> tuple[float, Host]:
        try:
            value, gradient = objective(rows, at(x), policy)
        except (ValueError, OverflowError):  # a line search went too far: no inverse, or an overflow
            return math.inf, x
        return value, _packed(_arrays(gradient)) * units

    def hopeless(step: int, x: Host) -> bool:
        return 2 * step == steps and not promising(at(x))

    return at(minimize_smooth(error, _packed(_arrays(geometry)) / units, max_iter=steps, tol=tol, watch=hopeless)[0])


def _units(geometry: Geometry) -> Host:
    """The unit of every number that moves: vectors are measured in the metric, and directions in its mean.

    All that changes a Gaussian then changes it about as much per step, and L-BFGS needs a third fewer steps.
    """
    scales = np.exp(geometry.log_scales)
    units = [np.ones_like(array) for array in _arrays(geometry)]
    units[0] /= np.maximum(scales, _LEAST_SCALE * scales.max())  # vectors
    units[3] *= scales.mean()  # directions
    return _packed(units)


def _arrays(geometry: Geometry) -> list[Host]:
    """Everything that moves."""
    slopes = np.zeros(0) if geometry.warp is None else geometry.warp.log_slopes
    gaussian = geometry.vectors, geometry.log_scales, geometry.log_widths, geometry.directions
    return [*gaussian, slopes, np.array([geometry.log_ridge])]


def _packed(arrays: list[Host]) -> Host:
    return np.concatenate([array.ravel() for array in arrays])


def _unpacked(x: Host, like: Geometry) -> Geometry:
    old = _arrays(like)
    parts = np.split(x, np.cumsum([array.size for array in old])[:-1])
    vectors, scales, widths, directions, slopes, ridge = (part.reshape(a.shape) for part, a in zip(parts, old))
    warp = None if like.warp is None else replace(like.warp, log_slopes=slopes)
    return Geometry(vectors, scales, widths, directions, float(ridge[0]), warp)
