"""The learner: prepare the columns, start, climb on folds, choose, and finish on all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewkern.arrays.namespace import asarray_like, namespace
from fewkern.arrays.sampling import grouped_folds, row_order
from fewkern.core.gaussians import GaussianBasis, Preparation
from fewkern.core.path import LENIENCY
from fewkern.core.samples import Samples
from fewkern.learn.compare import (
    Candidate,
    Comparison,
    Key,
    Kind,
    Sizes,
    compare,
    distilled,
    leading_axes,
    still,
    taught_rows,
    teacher_of,
)
from fewkern.learn.components import Components
from fewkern.learn.copies import copies
from fewkern.learn.geometry import Geometry, Rows, coefficients, values
from fewkern.learn.levels import Counts, first_warp, fit_columns, without_names
from fewkern.learn.moves import Search, move
from fewkern.learn.policy import POLICY, Policy
from fewkern.learn.preparation import Warp, cut
from fewkern.learn.start import Start, choose_start, left_out_residuals

Host = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Settings:
    """The settings of a user."""

    n_vectors: int | None = None
    max_vectors: int | None = None
    prefer: str = "balanced"
    seed: int = 0
    policy: Policy = POLICY
    levels: Counts | None = None
    """Number of levels of every column, None for a number; None where all columns are numbers."""

    @property
    def leniency(self) -> float:
        """How much more than by default a smaller model may lose."""
        return LENIENCY[self.prefer]


@dataclass(frozen=True)
class Learned:
    """What the learner has found on some samples."""

    basis: GaussianBasis
    ridge: float
    """Ridge per unit of weight."""
    key: Key
    """Kind and number of vectors of the candidate that was chosen."""
    comparison: Comparison | None
    """None where there were too few samples for folds."""
    samples: Samples
    """The samples in the order of the learner."""
    rows: Rows
    """The samples, prepared, with targets of unit variance."""
    held_out: tuple[Host, Host] | None = None
    """Positions among the samples of the rows that were held out, and values for them by candidates that others chose,
    in units of the targets."""


def learn(
    samples: Samples,
    settings: Settings,
    step: Callable[[int], None] = lambda _: None,
    components: Components | None = None,
    beyond: Samples | None = None,
) -> Learned:
    """Vectors, metric and ridge for the targets of the samples, which are NumPy arrays.

    ``components`` are what the samples hold, if not columns. Samples ``beyond``, on a device, move vectors, too, and
    all moves are made there.
    """
    policy = settings.policy
    assert samples.targets is not None
    samples = samples.take(row_order(without_names(samples, settings.levels), samples.targets))
    rows, units, preparation, warp = _rows(samples, settings.levels, policy, components)
    if beyond is not None:
        rows = replace(rows, beyond=_rows_beyond(beyond, rows, units, preparation))
    start = replace(choose_start(rows, policy, settings.seed), warp=warp)
    asked = settings.max_vectors, settings.n_vectors
    most, fixed = (None if count is None else min(count, rows.n) for count in asked)
    sizes = Sizes.of(rows.every.n, rows.Y.shape[1], policy, fixed, most)
    folds = _folds(samples, policy)
    if not folds:
        largest = max(size for size in sizes.still if sizes.asked(Kind.STILL, size))
        candidate = still(rows, start, largest, policy)[1]
        return _learned(samples, preparation, rows, candidate, policy)
    if components is not None and len(folds) > 1:  # with so many rows that one is enough, none of them matters
        seen = (_aligned(components.without(samples.rows[held]), samples).X for _, held in folds)
        rows = replace(rows, views=tuple(replace(rows, T=preparation(X).astype(np.float64)) for X in seen))
    comparison = compare(rows, folds, start, sizes, policy, step)
    key = comparison.choose(settings.leniency)
    found = _learned(samples, preparation, rows, _finish(rows, comparison, key, start, sizes, policy), policy)
    held, scaled = comparison.held_out(settings.leniency)
    return replace(found, key=key, comparison=comparison, held_out=(held, scaled * units[1] + units[0]))


def learn_from_samples(samples: Samples, policy: Policy) -> tuple[Learned, Host]:
    """Vectors that are samples, and predictions for every sample by the model without it.

    There are as many vectors as ``still`` ends with, and no folds: length scale, metric and ridge are those of least
    leave-one-out error. Of samples with groups the whole group is left out.
    """
    assert samples.targets is not None
    order = row_order(samples.X, samples.targets)
    samples = samples.take(order)
    rows, (mean, spread), preparation, _ = _rows(samples, None, policy)
    geometry, place = choose_start(rows, policy, 0).geometry(
        rows, max(1, min(policy.candidates.still[-1], int(policy.candidates.share * rows.n)))
    )
    ridge, residuals = left_out_residuals(rows, geometry, policy)
    candidate = Candidate(Kind.STILL, geometry.size, replace(geometry, log_ridge=math.log(ridge)), place)
    left_out = np.empty_like(rows.Y)
    left_out[order] = (rows.Y - residuals) * spread + mean
    return _learned(samples, preparation, rows, candidate, policy), left_out


def _aligned(samples: Samples, like: Samples) -> Samples:
    """The samples that ``like`` has, in its order."""
    return samples.take(np.searchsorted(samples.rows, like.rows))


def preparation_of(samples: Samples, settings: Settings) -> Preparation:
    """The preparation of the columns of some samples before anything is learned."""
    weights, Y, _ = _standardized(samples, settings.policy)
    return fit_columns(samples.X, Y, weights, settings.levels, settings.policy)[0]


def _standardized(samples: Samples, policy: Policy) -> tuple[Host, Host, tuple[Host, Host]]:
    """Weights of mean one, targets of mean zero and standard deviation one, and the mean and standard deviation."""
    Y, weights = np.asarray(samples.targets, dtype=np.float64), samples.weights.astype(np.float64)
    weights = weights * (samples.n / weights.sum())
    mean = weights @ Y / samples.n
    spread = np.sqrt(weights @ (Y - mean) ** 2 / samples.n)
    if samples.codes is not None and Y.shape[1] > 1:  # a class of two rows must not rule all others
        rare = policy.judge.rare_share / Y.shape[1]
        spread = np.maximum(spread, math.sqrt(rare * (1.0 - rare)))
    spread = np.where(spread > 0, spread, 1.0)
    return weights, (Y - mean) / spread, (mean, spread)


def _rows(
    samples: Samples, levels: Counts | None, policy: Policy, components: Components | None = None
) -> tuple[Rows, tuple[Host, Host], Preparation, Warp]:
    """Prepared rows with targets of mean zero and standard deviation one, and the mean and standard deviation.

    Then the preparation, and its warp before anything is learned.
    """
    weights, Y, units = _standardized(samples, policy)
    preparation, scores = fit_columns(samples.X, Y, weights, levels, policy)
    if components is not None:
        preparation = components.straight(preparation, samples.X, weights)
    T, places = preparation(samples.X).astype(np.float64), preparation.places(samples.X)
    warp = first_warp(preparation, places, scores, policy)
    rows = Rows(T, Y, weights, linear_axes(T, policy), samples.groups, places if (places >= 0).any() else None, scores)
    return rows, units, preparation, warp


def _rows_beyond(samples: Samples, rows: Rows, units: tuple[Host, Host], preparation: Preparation) -> Rows:
    """Further samples as rows like those of the search, where they are."""
    xp = namespace(samples.X)
    X, Y, weights = (xp.astype(one, xp.float64) for one in (samples.X, samples.targets, samples.weights))
    mean, spread = (asarray_like(unit, X) for unit in units)
    if samples.n:
        weights = weights * (samples.n / float(xp.sum(weights)))
    places = None if rows.places is None else preparation.like(X).places(X)
    return Rows(preparation(X), (Y - mean) / spread, weights, rows.axes, places=places)


def linear_axes(T: Host, policy: Policy) -> Host:
    """Linear features as combinations of the columns: the columns themselves, or their principal components."""
    d = T.shape[1]
    if d <= policy.model.linear_columns:
        return policy.model.linear_scale * np.eye(d)
    axes = leading_axes(T, policy.model.linear_columns)[1][:, ::-1]
    signs = np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(policy.model.linear_scale * axes * signs)


def _folds(samples: Samples, policy: Policy) -> list[tuple[Host, Host]]:
    """Folds of rows in the learner's order, which looks random; as many as ``policy.judge.rows`` asks for."""
    n = samples.n
    wanted = policy.judge.rows / n
    if samples.codes is not None:
        counts = np.bincount(samples.codes, minlength=1)
        rarest = int(counts[counts >= min(policy.judge.folds, counts.max())].min())  # fewer rows are not in every fold
        wanted = max(wanted, policy.judge.of_rarest * policy.judge.rows / max(rarest, 1))
    count = min(policy.judge.folds, max(1, math.ceil(policy.judge.folds * wanted)))
    if samples.groups is not None:
        folds = grouped_folds(samples.groups, samples.codes, policy.judge.folds)
        return [(np.asarray(fitted), np.asarray(held)) for fitted, held in folds][:count]
    if n < 2 * policy.judge.folds:
        return []
    place = np.arange(n) % policy.judge.folds
    if samples.codes is not None:  # every class is dealt out in turn, and goes on where the one before ended
        _, first, codes = np.unique(samples.codes, return_index=True, return_inverse=True)
        order = np.argsort(first[codes], kind="stable")  # in the order of their first rows: names must not matter
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n) % policy.judge.folds
    # rows that are equal in all columns are held out together
    place = place[copies(samples.X.astype(np.float64), policy=policy.copies)]
    return [(np.flatnonzero(place != k), np.flatnonzero(place == k)) for k in range(count)]


def _finish(rows: Rows, comparison: Comparison, key: Key, start: Start, sizes: Sizes, policy: Policy) -> Candidate:
    """The chosen candidate on all rows; vectors that were moved start from where they ended in a fold."""
    kind, size = key
    if kind is Kind.STILL:
        return still(rows, start, size, policy)[1]
    found = [start.on_all_rows(candidate.geometry) for candidate in comparison.candidates[key]]
    best = min(found, key=lambda geometry: _own_error(rows, geometry, policy))
    if kind is Kind.DISTILLED:
        teacher, _ = teacher_of(rows, start, sizes, policy)
        return distilled(rows, taught_rows(rows, teacher, policy), best, policy.moves.steps // 2, policy)
    return Candidate(kind, size, move(rows.every, best, Search(policy.moves.steps // 2), policy))


def _own_error(rows: Rows, geometry: Geometry, policy: Policy) -> float:
    residual = values(rows, geometry, *coefficients(rows, geometry, policy)) - rows.Y
    return float(np.sum(rows.mean(residual * residual)))


def _learned(samples: Samples, preparation: Preparation, rows: Rows, candidate: Candidate, policy: Policy) -> Learned:
    geometry, warp = candidate.geometry, candidate.geometry.warp
    if warp is not None:
        parts = (len(warp.knots) - 1) // max(len(preparation.knots) - 1, 1)
        knots, values = (cut(one, max(parts, 1)) for one in (preparation.knots, preparation.values))
        preparation, count = replace(preparation, knots=knots), warp.knots.shape[1]
        values[:, warp.columns[:count]] = warp.levels
        preparation = preparation.with_positions(values, warp.free)
    indices = None if candidate.samples is None else samples.all_rows(candidate.samples)
    basis = geometry.basis(preparation, rows.axes, indices)
    ridge = policy.model.least_ridge + math.exp(geometry.log_ridge)
    return Learned(basis, ridge, candidate.key, None, samples, rows)
