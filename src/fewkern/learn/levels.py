"""Where the levels of a category begin: at the shrunken means of a score of their rows.

The first score of a category is the target (of several, the direction in which the means of the levels differ most).
The second one tells levels of equal means apart, by what they do to the effects of other columns; three levels are a
triangle. The levels then move with all else (:mod:`fewkern.learn.preparation`), from positions that shrinkage keeps
near the mean where rows are few, and where an unknown level is.
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
# Number of levels of every column; None for a number.
Counts = Sequence[int | None]
# Digits to which weights and means of levels are compared; the rest is rounding.
_DIGITS = 9
# Digits of a position; the rest depends on the order in which rows are added up.
_POSITION_DIGITS = 12
# Mean square of the means of a score below which levels do not differ in it.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Scores:
    """Scores of rows, for every prepared column that is a table."""

    values: Host
    """Shape ``(n, e)``."""
    places: Host
    """Place of the row's level in all tables, shape ``(n, e)``."""
    prior: Host
    """Rows that the prior counts for, shape ``(e,)``; none where there is nothing to learn."""
    size: int
    """Length of all tables."""
    furthest: float
    """Largest distance of a position from the mean."""

    def take(self, part: Any) -> Scores:
        """The scores of some rows."""
        return replace(self, values=self.values[part], places=self.places[part])

    def positions(self, weights: Host) -> Host:
        """Shrunken means of the levels, shape ``(t,)``; levels without rows are at zero."""
        found = np.zeros(self.size)
        for values, places, prior in zip(self.values.T, self.places.T, self.prior):
            mass, sums = (np.bincount(places, each, self.size) for each in (weights, weights * values))
            found += np.where(mass > 0, sums / np.where(mass > 0, mass + prior, 1.0), 0.0)
        return np.round(np.clip(found, -self.furthest, self.furthest), _POSITION_DIGITS)

    def put(self, T: Host, positions: Host) -> Host:
        """Prepared rows with other positions of their levels; tables are the last columns."""
        return np.concatenate([T[:, : T.shape[1] - self.places.shape[1]], positions[self.places]], axis=1)


def fit_columns(
    X: Host, Y: Host, weights: Host, counts: Counts | None, policy: Policy
) -> tuple[Preparation, Scores | None]:
    """The preparation of all columns; ``Y`` has mean zero and standard deviation one, and ``weights`` mean one."""
    own = [(a, count) for a, count in enumerate(counts or ()) if count is not None]
    if not own:
        return fit_preparation(X, weights, policy), None
    categories = [_Category.of(X[:, a], count, Y, weights, policy) for a, count in own]
    numbers = np.array([a for a in range(X.shape[1]) if counts[a] is None], dtype=np.int64)  # type: ignore[index]
    maps = fit_preparation(X[:, numbers], weights, policy)
    if policy.columns.coordinates > 1:
        T = maps(X[:, numbers])
        means = [category.means(category.scores[:, :1])[category.code] for category in categories]
        categories = [
            category.told_apart(np.column_stack([T, *means[:i], *means[i + 1 :]]), Y, policy)
            for i, category in enumerate(categories)
        ]
    widths = [category.scores.shape[1] for category in categories]
    lengths = np.repeat([count + BEYOND for _, count in own], widths)
    starts = np.cumsum(lengths) - lengths
    places = np.repeat(np.column_stack([category.code for category in categories]), widths, axis=1) + starts
    prior = np.repeat([category.prior for category in categories], widths)
    scores = Scores(
        np.concatenate([one.scores for one in categories], axis=1),
        places,
        prior,
        int(lengths.sum()),
        policy.columns.furthest,
    )
    columns = np.repeat([a for a, _ in own], widths).astype(np.int64)
    table = Levels(columns, lengths - BEYOND, scores.positions(weights))
    gaps = np.zeros(len(numbers)) if maps.gaps is None else maps.gaps
    return replace(maps, gaps=gaps, columns=numbers, levels=table), scores


def first_warp(preparation: Preparation, places: Host, scores: Scores | None, policy: Policy) -> Warp:
    """The warp of some rows before anything is learned; ``places`` are those of their levels and gaps."""
    learned = np.asarray((places >= 0).any(axis=0))
    priors = np.full(len(preparation.free), policy.model.gap_prior)
    if scores is not None and preparation.levels is not None:
        learned[preparation.knots.shape[1] :] = scores.prior > 0
        priors[: scores.size] = np.repeat(
            np.clip(scores.prior, 1.0, policy.model.firmness), preparation.levels.counts + BEYOND
        )
    return Warp.identity(preparation.values, preparation.free, 1.0 / np.sqrt(priors), learned)


def without_names(samples: Samples, counts: Counts | None) -> Host:
    """The columns of some samples, with levels numbered in a way that does not depend on their names.

    The most frequent level is the first; of equally frequent ones that whose mean target is furthest from the mean.
    """
    X, weights, Y = samples.X, samples.weights, samples.targets
    if counts is None:
        return X
    assert Y is not None
    out, mean = X.astype(np.float64), weights @ Y / weights.sum()
    for a, count in enumerate(counts):
        if count:
            code = _codes(X[:, a], count)
            mass = np.bincount(code, weights, count + BEYOND)
            keys = mass, np.sum((_level_means(code, mass, weights[:, None] * Y) - mean) ** 2, axis=1)
            keys = tuple(np.round(-key / max(key.max(), np.finfo(float).tiny), _DIGITS) for key in keys)
            rank = np.empty(len(mass))
            rank[np.lexsort((np.arange(len(mass)), keys[1], keys[0]))] = np.arange(len(mass))
            out[:, a] = rank[code]
    return out


@dataclass(frozen=True)
class _Category:
    """The levels of some rows, and what tells them apart."""

    code: Host
    """Level of every row; a gap is one more."""
    mass: Host
    """Weight of every level."""
    weights: Host
    scores: Host
    """Shape ``(n, w)``."""
    prior: float
    axes: Host
    """Directions of the targets, shape ``(q, q)``, in the order of how much the means differ along them."""

    @classmethod
    def of(cls, x: Host, count: int, Y: Host, weights: Host, policy: Policy) -> _Category:
        """A category with its first score; two levels are a flag, like a column of zeros and ones."""
        code = _codes(x, count)
        mass = np.bincount(code, weights, count + BEYOND)
        there = np.flatnonzero(mass)
        none = cls(code, mass, weights, np.zeros((len(code), 1)), 0.0, np.eye(Y.shape[1]))
        if len(there) < 2:
            return none
        if len(there) == 2:
            rare = there[np.argmin(mass[there])]
            share = mass[rare] / mass.sum()
            most = policy.columns.furthest_flag
            flag = ((code == rare) - share) / np.sqrt(share * (1.0 - share))
            return replace(none, scores=np.clip(flag, -most, most)[:, None])
        M = np.sqrt(mass)[:, None] * none.means(Y)
        axes = np.linalg.eigh(M.T @ M)[1][:, ::-1]
        first = replace(none, prior=_prior(mass, M, Y, weights, policy), axes=axes)
        score = first.in_units(Y @ axes[:, 0])
        return none if score is None else replace(first, scores=score[:, None])

    def means(self, Z: Host) -> Host:
        """Means of the columns of ``Z`` over the rows of every level."""
        return _level_means(self.code, self.mass, self.weights[:, None] * Z)

    def in_units(self, score: Host) -> Host | None:
        """The score with means of the levels of standard deviation one, oriented by their third moment.

        None where the levels do not differ in it.
        """
        means = self.means(score[:, None])[:, 0]
        square = self.mass @ means**2 / self.mass.sum()
        if not square > _NOTHING:
            return None
        return score / (np.sqrt(square) if self.mass @ means**3 >= 0 else -np.sqrt(square))

    def told_apart(self, others: Host, Y: Host, policy: Policy) -> _Category:
        """The category with a second score, where three levels or more are there.

        It is orthogonal to the first one, and of other directions of the targets, and products of the leading two with
        ``others``, the combination in which the levels differ most.
        """
        if not self.prior:
            return self
        if others.shape[1] > policy.columns.level_columns:
            strength = np.sum((others.T @ (self.weights[:, None] * Y)) ** 2, axis=1)
            others = others[
                :,
                np.argsort(-np.round(strength / strength.max(), _DIGITS), kind="stable")[
                    : policy.columns.level_columns
                ],
            ]
        turned = Y @ self.axes
        Z = np.concatenate([turned[:, 1:], *(turned[:, c : c + 1] * others for c in range(min(2, Y.shape[1])))], axis=1)
        Z = Z - self.weights @ Z / self.weights.sum()
        means, first = self.means(Z), self.means(self.scores)[:, 0]
        along = (self.mass * first) @ means / (self.mass @ first**2)
        rest = np.sqrt(self.mass)[:, None] * (means - np.outer(first, along))
        rest *= (self.mass / (self.mass + self.prior))[:, None]
        if not rest.size:
            return self
        axis = np.linalg.eigh(rest.T @ rest)[1][:, -1]
        second = self.in_units(Z @ axis - (along @ axis) * self.scores[:, 0])
        return self if second is None else replace(self, scores=np.column_stack([self.scores, second]))


def _codes(x: Host, count: int) -> Host:
    return np.where(np.isnan(x), count + GAP, np.nan_to_num(x)).astype(np.int64)


def _level_means(code: Host, mass: Host, weighted: Host) -> Host:
    """Means over the rows of every level of columns that were multiplied by the weights."""
    sums = [np.bincount(code, column, len(mass)) for column in weighted.T]
    return np.stack([*sums, mass], axis=1)[:, :-1] / np.where(mass > 0, mass, 1.0)[:, None]


def _prior(mass: Host, M: Host, Y: Host, weights: Host, policy: Policy) -> float:
    """Variance within the levels over that between them, by moments; ``M`` are means times the roots of ``mass``."""
    total, groups = mass.sum(), np.count_nonzero(mass)
    least, most = policy.columns.level_prior
    between, whole = float(np.sum(M**2)), float(weights @ np.sum(Y**2, axis=1))
    if total <= groups:
        return most
    within = (whole - between) / (total - groups)
    variance = (between - (groups - 1) * within) / (total - mass @ mass / total)
    return float(np.clip(within / variance, least, most)) if variance > 0 else most
