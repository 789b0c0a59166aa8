"""Where the levels of a category begin: at the shrunken means of a score of their rows.

The first score of a category is the target (of several, the direction in which the means of the levels differ most). The second
one tells levels of equal means apart by what they do to the effects of other columns. The levels then move with all
else (:mod:`fewkern.learn.preparation`), and shrinkage is their prior: a level of few rows stays near the mean, where an
unknown one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.core.preparation import BEYOND, GAP, Levels, Preparation
from fewkern.core.samples import Samples
from fewkern.learn.policy import Policy
from fewkern.learn.preparation import Warp, fit_preparation

Host = np.ndarray[Any, Any]
# Digits to which levels of equal weight and mean are equal: beyond it is rounding.
_DIGITS = 9
# Number of levels of every column; None for a number.
Counts = Sequence[int | None]
# A rare flag is no further out than this many standard deviations.
_FURTHEST = 3.0
# Targets and other columns whose interaction is looked at.
_TARGETS, _OTHERS = 6, 64
import os

MODE = os.environ.get("LEVELS", "two")
KMAX = float(os.environ.get("KMAX", "30"))
UNIT_SCALE = float(os.environ.get("UNIT", "1"))
GAP_PRIOR = float(os.environ.get("GAPK", "1"))
SECOND = float(os.environ.get("SECOND", "1"))
SIMPLEX = 3
KUNIT = 30.0
KMIN = float(os.environ.get("KMIN", "1"))


@dataclass(frozen=True)
class Scores:
    """Scores of rows, for every prepared column that is a table."""

    values: Host
    """Shape ``(n, e)``."""
    places: Host
    """Place of the row's level in all tables, shape ``(n, e)``."""
    prior: Host
    """Rows that the prior counts for, shape ``(e,)``."""
    size: int
    """Length of all tables."""

    def take(self, part: Any) -> Scores:
        """The scores of some rows."""
        return replace(self, values=self.values[part], places=self.places[part])

    def positions(self, weights: Host) -> Host:
        """Shrunken means of the levels, shape ``(t,)``; levels without rows are at zero."""
        found = np.zeros(self.size)
        for values, places, prior in zip(self.values.T, self.places.T, self.prior):
            mass = np.bincount(places, weights, self.size)
            sums = np.bincount(places, weights * values, self.size)
            found += np.where(mass > 0, sums / (np.where(mass > 0, mass, 1.0) + prior), 0.0)
        return found

    def put(self, T: Host, positions: Host) -> Host:
        """Prepared rows with other positions of their levels; tables are the last columns."""
        return np.concatenate([T[:, : T.shape[1] - self.places.shape[1]], positions[self.places]], axis=1)


def first_warp(preparation: Preparation, places: Host, scores: Scores | None) -> Warp:
    """The warp of some rows before anything is learned; ``places`` are those of their levels and gaps."""
    count = preparation.knots.shape[1]
    learned = (places >= 0).any(axis=0)
    priors = np.zeros(len(preparation.free))
    if scores is not None:
        learned[count:] = scores.prior > 0
        for k, (start, length) in enumerate(zip(preparation.levels.starts, preparation.levels.counts + BEYOND)):
            priors[start : start + length] = scores.prior[k]
    units = 1.0 / np.sqrt(np.where(priors > 0, np.minimum(UNIT_SCALE * priors, KUNIT), GAP_PRIOR))
    return Warp.identity(preparation.values, preparation.free, units, learned)


def fit_columns(
    X: Host, Y: Host, weights: Host, counts: Counts | None, policy: Policy
) -> tuple[Preparation, Scores | None]:
    """The preparation of all columns; ``Y`` has mean zero and standard deviation one, and ``weights`` mean one."""
    own = [] if counts is None else [a for a, count in enumerate(counts) if count is not None]
    if not own:
        return fit_preparation(X, weights, policy), None
    numbers = np.array([a for a in range(X.shape[1]) if a not in set(own)], dtype=np.int64)
    maps = fit_preparation(X[:, numbers], weights, policy)
    T = maps(X[:, numbers])
    codes = [_codes(X[:, a], int(counts[a])) for a in own]
    found = [_scores(code, int(counts[a]) + BEYOND, Y, weights, None) for a, code in zip(own, codes)]
    if MODE != "one":
        first = [scores[:, :1] for scores, _ in found]
        for i, (a, code) in enumerate(zip(own, codes)):
            means = [_spread_out(s, c, weights)[c] for j, (s, c) in enumerate(zip(first, codes)) if j != i]
            others = np.column_stack([T, *means]) if means else T
            found[i] = _scores(code, int(counts[a]) + BEYOND, Y, weights, others)
    columns = np.repeat(own, [s.shape[1] for s, _ in found]).astype(np.int64)
    lengths = np.array([int(counts[a]) + BEYOND for a in columns])
    starts = np.cumsum(lengths) - lengths
    places = (
        np.column_stack([np.repeat(code[:, None], s.shape[1], axis=1) for code, (s, _) in zip(codes, found)]) + starts
    )
    prior = np.concatenate([np.full(s.shape[1], k) for s, k in found])
    scores = Scores(np.column_stack([s for s, _ in found]), places, prior, int(lengths.sum()))
    table = Levels(columns, lengths - BEYOND, scores.positions(weights))
    return replace(maps, columns=numbers, levels=table), scores


def without_names(samples: Samples, counts: Counts | None) -> Host:
    """The columns of some samples, with numbers in place of levels that do not depend on their names.

    The most frequent level is the first; of equally frequent ones that whose mean target is furthest from the mean.
    """
    X, weights, Y = samples.X, samples.weights, samples.targets
    if counts is None:
        return X
    out, gap = X.astype(np.float64), weights @ Y / weights.sum()
    for a, count in enumerate(counts):
        if count:
            code = _codes(X[:, a], count)
            mass = np.bincount(code, weights, count + BEYOND)
            strength = np.sum((_means(code, mass, Y, weights) - gap) ** 2, axis=1)
            unit = strength.max()
            keys = np.round(strength / (unit if unit > 0 else 1.0), _DIGITS), np.round(mass / mass.max(), _DIGITS)
            rank = np.empty(len(mass))
            rank[np.lexsort((np.arange(len(mass)), -keys[0], -keys[1]))] = np.arange(len(mass))
            out[:, a] = rank[code]
    return out


def _codes(x: Host, count: int) -> Host:
    return np.where(np.isnan(x), count + GAP, np.nan_to_num(x)).astype(np.int64)


def _spread_out(scores: Host, code: Host, weights: Host) -> Host:
    mass = np.bincount(code, weights)
    return np.bincount(code, weights * scores[:, 0]) / np.where(mass > 0, mass, 1.0)


def _scores(code: Host, size: int, Y: Host, weights: Host, others: Host | None) -> tuple[Host, float]:
    """Scores ``(n, w)`` of the rows by their levels, and the rows of the prior."""
    mass = np.bincount(code, weights, size)
    there = mass > 0
    if there.sum() < 2:
        return np.zeros((len(code), 1)), 0.0
    if there.sum() == 2:
        rare = np.flatnonzero(there)[np.argmin(mass[there])]
        flag = (code == rare).astype(float)
        p = mass[rare] / mass.sum()
        return np.clip((flag - p) / np.sqrt(p * (1 - p)), -_FURTHEST, _FURTHEST)[:, None], 0.0
    prior = _prior(code, mass, Y, weights)
    Y = Y[:, :] if Y.shape[1] <= _TARGETS else Y
    M, root = _means(code, mass, Y, weights), np.sqrt(mass)
    _, _, axes = np.linalg.svd(root[:, None] * M, full_matrices=False)
    first = Y @ axes[0]
    a = root * (M @ axes[0])
    spread = np.sqrt(a @ a / mass.sum())
    if spread == 0:
        return np.zeros((len(code), 1)), 0.0
    scores = [_oriented(first / spread, code, mass, weights)]
    if others is not None and MODE != "one":
        Z = [Y @ axes[1:].T] if len(axes) > 1 else []
        lead = Y @ axes[: min(len(axes), 2)].T
        for c in range(lead.shape[1]):
            Z.append(lead[:, c : c + 1] * others[:, :_OTHERS])
        Z = np.column_stack(Z)
        Z = Z - weights @ Z / weights.sum()
        M2 = root[:, None] * _means(code, mass, Z, weights) * (mass / (mass + prior))[:, None]
        M2 -= np.outer(a, a @ M2) / (a @ a)
        _, strengths, directions = np.linalg.svd(M2, full_matrices=False)
        wanted = int(there.sum()) - 2 if there.sum() <= SIMPLEX else 1
        for v, strength in list(zip(directions, strengths))[:wanted]:
            if not strength > 1e-9 * np.sqrt(mass.sum()):
                continue
            second = Z @ v
            b = root * _means(code, mass, second[:, None], weights)[:, 0]
            second = second - (a @ b) / (a @ a) * first
            b = b - (a @ b) / (a @ a) * a
            second = second / np.sqrt(b @ b / mass.sum())
            scores.append(SECOND * _oriented(second, code, mass, weights))
    return np.column_stack(scores), prior


def _means(code: Host, mass: Host, Z: Host, weights: Host) -> Host:
    sums = np.stack([np.bincount(code, weights * z, len(mass)) for z in Z.T], axis=1)
    return sums / np.where(mass > 0, mass, 1.0)[:, None]


def _oriented(score: Host, code: Host, mass: Host, weights: Host) -> Host:
    means = _means(code, mass, score[:, None], weights)[:, 0]
    return score if mass @ means**3 >= 0 else -score


def _prior(code: Host, mass: Host, Y: Host, weights: Host) -> float:
    """Variance within the levels over that between them, by moments."""
    total, groups = mass.sum(), int((mass > 0).sum())
    means = _means(code, mass, Y, weights)
    between = float(mass @ np.sum(means**2, axis=1))
    whole = float(weights @ np.sum(Y**2, axis=1))
    within = (whole - between) / max(total - groups, 1e-9)
    variance = (between - (groups - 1) * within) / (total - mass @ mass / total)
    if total <= groups or variance <= 0:
        return KMAX
    return float(np.clip(within / variance, KMIN, KMAX))
