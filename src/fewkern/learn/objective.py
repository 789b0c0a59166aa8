r"""The error of a ridge regression on Gaussians at rows that it has not seen, and its gradient in all that can move.

With :math:`F` the centred features of the rows (Gaussians and linear ones), each row times the root of its weight,

.. math:: G = F^T F + \lambda I, \quad W = G^{-1} F^T Y, \quad R = Y - F W, \quad
          h_i = f_i^T G^{-1} f_i + w_i / w, \quad J = \frac1w \sum_i \frac{\|r_i\|^2}{(1 - h_i)^2}

is the error of leaving out every row in turn. Its gradient with respect to :math:`F` is, with
:math:`E_i = r_i / (1 - h_i)`, :math:`U_i = \tfrac2w E_i / (1 - h_i)`,
:math:`g_i = \tfrac2w \|E_i\|^2 / (1 - h_i)`, :math:`Q = G^{-1} F^T U`, :math:`T = F G^{-1}` and
:math:`M = T^T \operatorname{diag}(g)\, T`,

.. math:: \frac{\partial J}{\partial F} = F (Q W^T - 2 M) - U W^T - R Q^T + 2 \operatorname{diag}(g)\, T ,
          \qquad \frac{\partial J}{\partial \lambda} = \operatorname{tr}(Q^T W) - \operatorname{tr} M .

Where rows are many times the features, all :math:`h_i` are small, and their mean
:math:`h = \tfrac1n (1 + \sum_k \tfrac{e_k}{e_k + \lambda})` may stand for them (generalized cross-validation). The
eigenvalues :math:`e_k` of :math:`F^T F` are those where a search begins. Then

.. math:: J = \frac{\|R\|^2}{w (1 - h)^2}, \qquad
          \frac{\partial J}{\partial F} = -\frac{2}{w (1 - h)^2} \bigl((R - F Q) W^T + R Q^T\bigr) , \quad
          Q = G^{-1} F^T R = \lambda G^{-1} W ,

which takes one product of :math:`n m^2` flops, the Gram matrix, where the former takes six; and rows come in blocks.

The parameters :math:`\theta` of a warp have a normal prior: :math:`J` has the term
:math:`\tfrac{\tau q}{n} \sum \theta^2` in addition, ``q`` being the number of targets.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fewkern.arrays.linalg import inverse_psd
from fewkern.arrays.namespace import Array, asarray_like, device, namespace, to_numpy
from fewkern.core.gaussians import times_metric
from fewkern.learn.geometry import Gaussians, Geometry, Host, Rows, Sums, ridge_of
from fewkern.learn.policy import Policy


def spectrum_of(rows: Rows, geometry: Geometry, policy: Policy) -> Host | None:
    """Eigenvalues for generalized cross-validation; None where rows are too few for it, and each is left out."""
    if rows.n < policy.model.rows_per_feature * (geometry.size + rows.axes.shape[1]):
        return None
    return np.maximum(np.linalg.eigvalsh(Sums.of(rows, geometry).gram), 0.0)


def objective(rows: Rows, geometry: Geometry, policy: Policy, spectrum: Host | None = None) -> tuple[float, Geometry]:
    """The mean squared error ``J`` summed over the targets, and its gradient.

    Every row is left out in turn, or, with the ``spectrum`` of a geometry, the error is that of generalized
    cross-validation.
    """
    chain = _Chain(rows, geometry)
    if spectrum is None:
        value, d_ridge = _leave_one_out(rows, geometry, policy, chain)
    else:
        value, d_ridge = _generalized(rows, geometry, policy, chain, spectrum)
    gradient = chain.gradient(math.exp(geometry.log_ridge) * rows.total * d_ridge)
    if geometry.warp is not None and gradient.warp is not None:
        learned, stiffness = geometry.warp.parameters, policy.model.stiffness * rows.Y.shape[1] / rows.n
        value += stiffness * float(np.sum(learned**2))
        gradient = replace(gradient, warp=geometry.warp.moved(gradient.warp.parameters + 2.0 * stiffness * learned))
    return value, gradient


def _leave_one_out(rows: Rows, geometry: Geometry, policy: Policy, chain: _Chain) -> tuple[float, float]:
    """The leave-one-out error, and its derivative in the ridge."""
    xp, width = namespace(rows.T), geometry.size + rows.axes.shape[1]

    def room(name: str) -> Any:
        return rows.workspace(name, width, rows.T)

    A = chain.units.in_metric(chain.T)
    K = chain.units.at(A)
    F = xp.concat([K, chain.T @ rows.linear], axis=1)
    F -= rows.mean(F)
    F *= rows.root
    Y, total, w = rows.weighted_targets, rows.total, rows.weights
    gram = F.T @ F
    gram += ridge_of(geometry, rows, policy) * xp.eye(width, dtype=F.dtype, device=device(F))
    inverse = inverse_psd(gram)
    W = inverse @ (F.T @ Y)
    R = Y - F @ W
    smooth = xp.matmul(F, inverse, out=room("smooth"))
    leverage = xp.sum(smooth * F, axis=1) + w / total
    most = policy.model.most_leverage
    free = leverage < most
    left = 1.0 - xp.where(free, leverage, xp.full_like(leverage, most))
    E = R / left[:, None]
    squared = xp.sum(E * E, axis=1)
    U = (2.0 / total) * E / left[:, None]
    g = xp.where(free, (2.0 / total) * squared / left, xp.zeros_like(left))
    Q = inverse @ (F.T @ U)
    half = xp.multiply(smooth, xp.sqrt(g)[:, None], out=room("half"))
    curved = half.T @ half  # a product with its own transpose costs half
    DF = xp.matmul(F, Q @ W.T - 2.0 * curved, out=room("gradient"))
    DF += xp.multiply(smooth, 2.0 * g[:, None], out=room("half"))
    DF -= xp.matmul(xp.concat([U, R], axis=1), xp.concat([W, Q], axis=1).T, out=room("half"))
    DF *= rows.root
    DF -= xp.multiply(w[:, None], xp.sum(DF, axis=0) / total, out=room("half"))
    chain.pull(slice(None), K, A, DF)
    return float(xp.sum(squared)) / total, float(xp.sum(Q * W)) - float(xp.sum(xp.linalg.diagonal(curved)))


def _generalized(rows: Rows, geometry: Geometry, policy: Policy, chain: _Chain, spectrum: Host) -> tuple[float, float]:
    """The error of generalized cross-validation, and its derivative in the ridge."""
    xp, sums, ridge = namespace(rows.T), Sums.of(rows, geometry), ridge_of(geometry, rows, policy)
    W, inverse = sums.solve(ridge)
    Q = ridge * (inverse @ W)
    share = spectrum / (spectrum + ridge)
    left = 1.0 - min((1.0 + float(share.sum())) / rows.n, policy.model.most_leverage)
    both = np.concatenate([W, Q], axis=1)
    q, factor = W.shape[1], 1.0 / (rows.total * left * left)
    offset = np.concatenate([to_numpy(rows.mean(rows.Y)), np.zeros(q)]) - sums.mean @ both
    W, Q, both, offset = (asarray_like(one, rows.T, dtype=rows.T.dtype) for one in (W, Q, both, offset))
    squares = 0.0
    for part in rows.blocks(both.shape[0]):
        T = chain.T[part, :]
        A = chain.units.in_metric(T)
        K = chain.units.at(A)
        found = xp.concat([K, T @ rows.linear], axis=1) @ both + offset
        R = rows.Y[part, :] - found[:, :q]
        weighted = rows.weights[part][:, None] * R
        squares += float(xp.sum(weighted * R))
        P = weighted - rows.weights[part][:, None] * found[:, q:]
        by_target = xp.concat([P, weighted], axis=1) * (-2.0 * factor)
        chain.pull(part, K, A, by_target @ xp.concat([W, Q], axis=1).T)
    d_share = -float(np.sum(share / (spectrum + ridge))) / rows.n
    value = squares * factor
    return value, 2.0 * factor * float(xp.sum(Q * W)) + 2.0 * value / left * d_share


class _Chain:
    """The chain rule: from the gradient with respect to features, block after block, to that of the geometry."""

    def __init__(self, rows: Rows, geometry: Geometry) -> None:
        self.rows, self.geometry, self.warp = rows, geometry, geometry.warp
        self.T, self.units = rows.warped(geometry.warp), Gaussians.of(geometry, rows.T)
        xp = namespace(rows.T)
        # in one product, pulls and sums
        self._vectors = xp.concat([self.units.vectors, xp.ones_like(self.units.vectors[:, :1])], axis=1)
        self._d_rows = None if self.warp is None else xp.empty_like(rows.T)
        self._sums: list[Any] = [0.0, 0.0, 0.0]

    def pull(self, part: slice, K: Array, A: Array, DF: Array) -> None:
        """Take in a block: the values ``K`` of the Gaussians, the rows ``A`` in the metric, the gradient ``DF``.

        With ``N`` the gradient in the exponents, over ``s^2``; ``K`` is overwritten.
        """
        m, T, units = self.geometry.size, self.T[part, :], self.units
        d, r = T.shape[1], units.directions.shape[1]
        K *= DF[:, :m]
        K *= units.squares
        pulled = K @ self._vectors
        by_row = pulled[:, d:]
        found = K.T @ A, namespace(T).sum(by_row * T * T, axis=0), T.T @ (by_row * A[:, d : d + r])
        self._sums = [before + now for before, now in zip(self._sums, found)]
        if self._d_rows is not None:
            pull = pulled[:, :d] - by_row * T
            d_rows = times_metric(pull, units.scales, units.directions) + DF[:, m:] @ self.rows.linear.T
            self._d_rows[part, :] = d_rows

    def gradient(self, d_log_ridge: float) -> Geometry:
        """The gradient of all blocks."""
        units, geometry, warp = self.units, self.geometry, self.warp
        NA, by_row_squares, crossed = (to_numpy(one) for one in self._sums)
        B = to_numpy(units.in_metric(units.vectors))
        V, scales, U = (to_numpy(one) for one in (units.vectors, units.scales, units.directions))
        d, r = U.shape
        norms, by_vector = NA[:, -2], NA[:, -1]  # sums over rows of N |A't|^2 and N
        NT, NU, VU = NA[:, :d] / scales, NA[:, d : d + r], B[:, d : d + r]
        distances = norms - 2.0 * np.sum(NA[:, :-2] * B[:, :-2], axis=1) + by_vector * B[:, -2]
        d_vectors = times_metric(NT - by_vector[:, None] * V, scales, U)
        d_scales = -(scales**2) * (by_row_squares - 2.0 * np.sum(NT * V, axis=0) + by_vector @ (V * V))
        d_directions = NT.T @ VU + V.T @ NU - crossed - V.T @ (by_vector[:, None] * VU)
        if warp is None:
            return Geometry(d_vectors, d_scales, -distances, d_directions, d_log_ridge)
        cells = geometry.cells
        d_parameters = warp.like(self.T).gradient(self.rows.cells(warp), self._d_rows)
        d_warp = warp.moved(to_numpy(d_parameters) + warp.gradient(cells, d_vectors))
        return Geometry(warp.pulled(cells, d_vectors), d_scales, -distances, d_directions, d_log_ridge, d_warp)
