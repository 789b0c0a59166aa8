"""Rows that occur more than once, by mistake or by oversampling: they become one row with the sum of their weights.

Copies that lie in a fit and in the rows held out make a model look better than it is, and the choice between models
worse. But rows may also be equal by nature, where columns have few values; there every one of them is a row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fewkern.arrays.namespace import is_sparse
from fewkern.arrays.neighbors import distinct_rows
from fewkern.arrays.sampling import column_keys
from fewkern.core.samples import Samples
from fewkern.learn.policy import POLICY, CopyPolicy

Host = np.ndarray[Any, Any]


def without_copies(samples: Samples, policy: CopyPolicy = POLICY.copies) -> Samples:
    """The samples (NumPy arrays) without copies: one row stands for all of them, with the sum of their weights.

    Copies agree in all columns, targets and groups, up to a hundred thousandth of the spread. Sparse rows stay.
    """
    if samples.n < 2 or samples.pairwise or is_sparse(samples.X):
        return samples
    columns: list[Any] = [samples.X] if samples.codes is not None else [samples.X, samples.targets]
    numbers = np.concatenate(columns, axis=1)
    labels: list[Host] = [label for label in (samples.codes, samples.groups) if label is not None]
    place = copies(numbers.astype(np.float64), np.array(labels, dtype=np.int64).reshape(-1, samples.n).T, policy)
    first = np.unique(place)
    if len(first) == samples.n:
        return samples
    weights = np.bincount(place, samples.weights, samples.n)[first].astype(samples.weights.dtype)
    return replace(samples.take(first), weights=weights)


def copies(A: Host, labels: Host | None = None, policy: CopyPolicy = POLICY.copies) -> Host:
    """For every row, the position of the first row that it is a copy of, or its own.

    Parameters
    ----------
    A : array of shape (n, d)
        Numbers, compared up to a tolerance; NaN is equal to NaN.
    labels : array of shape (n, l) or None
        Whole numbers.
    policy : CopyPolicy
    """
    labels = np.zeros((len(A), 0)) if labels is None else labels
    Z, alone = _scaled(A, labels), np.arange(len(A))
    if not _pairs(Z, policy.near, 2)[0].size:
        return alone
    first, place = distinct_rows(Z)
    i, j = _pairs(Z[first], policy.near, policy.most_lags)
    graph = sp.coo_array((np.ones(len(i)), (i, j)), (len(first), len(first)))
    place = connected_components(graph, directed=False)[1][place]
    first = np.unique(place, return_index=True)[1]
    sizes = np.bincount(place)
    several = np.sort(sizes[sizes > 1])
    if not len(several) or _equal_by_chance(np.concatenate([A, labels], axis=1)[first[place]], first, policy.by_chance):
        return alone
    most = min(policy.common_in_medians * several[(len(several) - 1) // 2], max(2.0, policy.common_share * len(A)))
    return np.where(sizes[place] <= most, first[place], alone)


def _scaled(A: Host, labels: Host) -> Host:
    """Columns in units of their interquartile ranges (where that is zero, of their ranges), with a value for NaN."""
    ordered, known = np.sort(A, axis=0), np.maximum((~np.isnan(A)).sum(axis=0), 1)
    low, first, middle, third, high = (
        np.take_along_axis(ordered, np.minimum((known * part) // 4, known - 1)[None], axis=0)[0] for part in range(5)
    )
    unit = np.where(third > first, third - first, high - low)
    Z = (A - middle) / np.where(unit > 0, unit, 1.0)
    return np.concatenate([np.where(np.isnan(Z), 1.0 / 3.0, Z), labels], axis=1)


def _pairs(Z: Host, near: float, most: int) -> tuple[Host, Host]:
    """Pairs of rows that are near each other: they are neighbours on a line on which all rows are projected."""
    line, reach = np.random.default_rng(0).standard_normal(Z.shape[1]), near * np.sqrt(Z.shape[1])
    values = Z @ line
    order = np.argsort(values)
    values, found = values[order], []
    for lag in range(1, min(most, len(Z))):
        close = np.flatnonzero(values[lag:] - values[:-lag] <= reach * np.linalg.norm(line))
        if not len(close):
            break
        i, j = order[close], order[close + lag]
        same = ((Z[i] - Z[j]) ** 2).sum(axis=1) <= reach**2
        found.append(np.stack([i[same], j[same]]))
    i, j = np.concatenate(found, axis=1) if found else np.zeros((2, 0), dtype=np.int64)
    return i, j


def _equal_by_chance(A: Host, first: Host, by_chance: float) -> bool:
    """Whether chance explains the equal rows, since columns have few values; ``first`` are the distinct rows.

    By chance, rows that agree in all columns but one agree in that one as often as distinct rows do.
    """
    keys = column_keys(A)
    whole, count = keys.sum(axis=1), len(first)
    equal = _equal_pairs(whole)
    for column in keys.T:
        agree = min(_equal_pairs(column[first]) / max(0.5 * count * (count - 1), 1.0), 1.0 - 1e-9)
        if by_chance * (_equal_pairs(whole - column) - equal) * agree / (1.0 - agree) >= equal:
            return True
    return False


def _equal_pairs(keys: Host) -> float:
    counts = np.unique(keys, return_counts=True)[1].astype(np.float64)
    return float(np.sum(counts * (counts - 1.0))) / 2.0
