"""Where a search begins: metric, width and ridge of least leave-one-out error on vectors that are samples (FVS)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from fewkern.arrays.sampling import column_order
from fewkern.learn.geometry import Geometry, Rows, features
from fewkern.learn.moves import Search, move
from fewkern.learn.policy import POLICY, Policy, StartPolicy
from fewkern.learn.preparation import Warp
from fewkern.select.leave_one_out import GroupBlocks, group_residuals

Host = np.ndarray[Any, Any]
# What is less than this share of the whole may be rounding: it chooses nothing, whatever the processor.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Start:
    """A metric and a ridge, and vectors for any number of them."""

    log_scales: Host
    ridge: float
    seed: int
    warp: Warp | None = None
    """The initial warp of vectors that move by the labels; None if there is none."""
    policy: StartPolicy = POLICY.start

    def geometry(self, rows: Rows, size: int) -> tuple[Geometry, Host]:
        """A geometry whose vectors are samples, spread out in the metric, and the positions of these samples."""
        place = pivots(rows.T, size, np.exp(self.log_scales), self.seed, self.policy)
        return self.at(rows.T[place]), place

    def on_all_rows(self, geometry: Geometry) -> Geometry:
        """A geometry that some of the rows have found, with levels that begin where all rows have them."""
        if geometry.warp is None or self.warp is None:
            return geometry
        return replace(geometry, warp=geometry.warp.based(self.warp))

    def at(self, vectors: Host) -> Geometry:
        """The geometry with these vectors."""
        none = np.zeros((vectors.shape[1], 0))
        return Geometry(vectors, self.log_scales, np.zeros(len(vectors)), none, math.log(self.ridge))


def choose_start(rows: Rows, policy: Policy, seed: int) -> Start:
    """The start of least leave-one-out error among two metrics, some widths and some ridges."""
    rng = np.random.default_rng(seed)
    if rows.n > policy.start.rows:
        rows = rows.take(np.sort(rng.choice(rows.n, policy.start.rows, replace=False)))
    d = rows.T.shape[1]
    size = max(2, min(policy.start.vectors, rows.n // policy.start.rows_per_vector))
    metrics = [np.full(d, -0.5 * math.log(d))]
    if d > 1:
        metrics.append(_tree_metric(rows, policy.start, seed))
    found: list[tuple[float, Start]] = []
    middle = policy.start.scales[len(policy.start.scales) // 2]
    for metric in metrics:  # which samples are far from each other hardly depends on the width: one choice for all
        vectors = rows.T[pivots(rows.T, size, middle * np.exp(metric), seed, policy.start)]
        for scale in policy.start.scales:
            candidate = Start(metric + math.log(scale), policy.start.ridges[0], seed, policy=policy.start)
            error, ridge = choose_ridge(rows, candidate.at(vectors), policy)
            found.append((error, replace(candidate, ridge=ridge)))
    best = min(found, key=lambda pair: pair[0])[1]
    geometry, _ = best.geometry(rows, min(policy.start.metric_vectors, rows.n // 2))
    moved = move(rows, geometry, Search(policy.start.metric_steps, still=True), policy)
    most = best.log_scales + math.log(policy.start.most_narrowed)
    moved = replace(moved, log_scales=np.minimum(moved.log_scales, most))
    before, after = (choose_ridge(rows, one, policy)[0] for one in (geometry, moved))
    return replace(best, log_scales=moved.log_scales) if after < (1.0 - policy.start.metric_gain) * before else best


def _tree_metric(rows: Rows, policy: StartPolicy, seed: int) -> Host:
    """Logarithms of inverse widths: roots of the importances of the columns to extremely randomized trees."""
    # in single precision, so that two splits which are equally good are not told apart by the rounding of a processor
    T, Y = rows.T[: policy.tree_rows].astype(np.float32), rows.Y[: policy.tree_rows].astype(np.float32)
    order = column_order(T)
    model = ExtraTreesRegressor(policy.trees, min_samples_leaf=policy.leaf_rows, random_state=seed)
    model.fit(T[:, order], Y if Y.shape[1] > 1 else Y[:, 0], rows.weights[: policy.tree_rows])
    importance = np.empty(len(order))
    importance[order] = model.feature_importances_
    top = importance.max()
    importance = np.maximum(importance / top, policy.least_importance) if top > 0 else np.ones_like(importance)
    return np.asarray(0.5 * np.log(importance / importance.mean()) - 0.5 * math.log(len(importance)))


def pivots(T: Host, size: int, scales: Host, seed: int, policy: StartPolicy = POLICY.start) -> Host:
    """Positions of rows that are far from each other in feature space, by a pivoted Cholesky factorization.

    Candidates come in blocks, so that the factor is read once per block. One that the others of its block explain waits
    for the next.
    """
    rng = np.random.default_rng(seed)
    some = rng.choice(len(T), min(max(policy.rows_per_pivot * size, policy.least_pivot_rows), len(T)), replace=False)
    X = T[some] * scales
    squares = np.einsum("ij,ij->i", X, X)
    size = min(size, len(some))
    left, factor = np.ones(len(some)), np.zeros((size, len(some)))
    chosen: list[int] = []
    while len(chosen) < size:
        chances = np.maximum(left, ROUNDING) * rng.random(len(left)) ** policy.pivot_chance
        chances[chosen] = -1.0
        block = np.argsort(-chances, kind="stable")[: min(policy.pivots_per_block, len(some) - len(chosen))]
        before, known = left[block], factor[: len(chosen)]
        columns = np.exp(-0.5 * np.maximum(squares + squares[block, None] - 2.0 * X[block] @ X.T, 0.0))
        columns -= known[:, block].T @ known
        for i, k in enumerate(block):
            if len(chosen) == size or (i and left[k] < policy.unexplained * before[i]):
                continue
            column = columns[i] / math.sqrt(max(left[k], ROUNDING))
            columns[i + 1 :] -= np.outer(column[block[i + 1 :]], column)
            left = np.clip(left - column**2, 0.0, None)
            factor[len(chosen)] = column
            chosen.append(int(k))
    return np.asarray(some[chosen])


def choose_ridge(rows: Rows, geometry: Geometry, policy: Policy) -> tuple[float, float]:
    """The least leave-one-out error, and the ridge that has it."""
    errors = ridge_errors(rows, geometry, policy)
    best = errors.index(min(errors))
    return errors[best], policy.start.ridges[best]


def ridge_errors(rows: Rows, geometry: Geometry, policy: Policy) -> list[float]:
    """The leave-one-out error of every ridge (per unit of weight), from one decomposition; whole groups are left out.

    Rows of one group are predicted without any of them: :math:`e_g = (I - H_{gg})^{-1} r_g`.
    """
    blocks = None if rows.groups is None else GroupBlocks.of(rows.groups)
    errors = []
    for R, left in _ridge_residuals(rows, geometry, policy):
        if blocks is None:
            total = float(np.sum(np.einsum("ij,ij->i", R, R) / (left * left)))
        else:
            total = _without_groups(left, R, blocks, policy.model.most_leverage)
        errors.append(total / rows.total)
    return errors


def left_out_residuals(rows: Rows, geometry: Geometry, policy: Policy) -> tuple[float, Host]:
    """The ridge of least leave-one-out error, and the residual of every row by the model without it, or its group."""
    blocks = None if rows.groups is None else GroupBlocks.of(rows.groups)
    residuals = [
        # rows.Y has mean zero, so that the constant leaves it as it is
        R / left[:, None] if blocks is None else group_residuals(left, rows.weighted_targets, blocks)
        for R, left in _ridge_residuals(rows, geometry, policy)
    ]
    best = int(np.argmin([float(np.einsum("ij,ij->", E, E)) for E in residuals]))
    return policy.start.ridges[best], residuals[best] / rows.root


def _ridge_residuals(rows: Rows, geometry: Geometry, policy: Policy) -> Iterator[tuple[Host, Host]]:
    """For every ridge the weighted residuals, and one minus the leverage of every row.

    With groups the second is ``Q`` instead, with the smoother ``Q Q'``.
    """
    F, Y = rows.centred(features(rows, geometry)), rows.weighted_targets
    strengths, axes = np.linalg.eigh(F.T @ F)
    A = F @ axes
    cross, squared = A.T @ Y, A * A
    for ridge in policy.start.ridges:
        shrink = 1.0 / (np.maximum(strengths, 0.0) + ridge * rows.total)
        R = Y - A @ (shrink[:, None] * cross)
        if rows.groups is None:
            leverage = squared @ shrink + rows.weights / rows.total
            yield R, 1.0 - np.minimum(leverage, policy.model.most_leverage)
        else:
            yield R, np.concatenate([A * np.sqrt(shrink), rows.root / math.sqrt(rows.total)], axis=1)


def _without_groups(Q: Host, R: Host, groups: GroupBlocks, most_leverage: float) -> float:
    """Sum of squared residuals of every row by the model without its group; the smoother is ``Q Q'``.

    The leverage of a group in any direction counts as ``most_leverage`` at most, like that of a row.
    """
    total = 0.0
    for block in groups.blocks:
        residuals = block.take(R)
        U, sizes, _ = np.linalg.svd(block.take(Q), full_matrices=False)
        inside = np.matmul(np.swapaxes(U, -1, -2), residuals)
        left = 1.0 - np.minimum(sizes * sizes, most_leverage)[:, :, None]
        total += float(np.sum(residuals * residuals) + np.sum((inside / left) ** 2 - inside * inside))
    return total
