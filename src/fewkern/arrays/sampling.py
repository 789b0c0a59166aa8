"""Random generators, samples and orders of rows that depend on these alone, and folds by scikit-learn's splitters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv

# Choices (length scale, vectors, ridge, how many) are made on at most this number of rows; coefficients come from all.
SAMPLE_ROWS = 20_000
# Numbers whose ranks are held at a time.
_BLOCK_NUMBERS = 2**20
# Distances of targets, in standard deviations, that agree to as many digits are equal.
_TIE_DIGITS = 9
# Rows to train on, and rows held out.
Fold = tuple[Sequence[int], Sequence[int]]


def random_generator(random_state: Any) -> np.random.Generator:
    """A generator from scikit-learn's ``random_state``: an int, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        # drawn from, not advanced in place by several fits of a clone
        return np.random.default_rng(random_state.integers(2**63 - 1))
    return np.random.default_rng(random_state)


def seed_from(random_state: Any) -> int:
    """One number from ``random_state``: every part of a fit that draws starts from it."""
    return int(random_generator(random_state).integers(2**31))


def row_keys(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A number in [0, 1) for every row number. It looks random: the mixing function is splitmix64.

    The rows of the smallest keys are a sample without replacement, the same one however the rows are cut into parts.
    """
    return np.asarray((_mixed(np.asarray(rows).astype(np.uint64)) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _mixed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def some_rows(n: int, limit: int) -> np.ndarray[Any, Any]:
    """Ascending positions of ``limit`` of ``n`` rows, the same in every table; of all rows if they are no more."""
    place = np.arange(n)
    return place if n <= limit else smallest_keys(row_keys(place), None, limit)


def smallest_keys(keys: np.ndarray[Any, Any], labels: np.ndarray[Any, Any] | None, limit: int) -> np.ndarray[Any, Any]:
    """Positions, ascending, of the ``limit`` smallest keys, and of the two smallest of every class."""
    order = np.argsort(keys, kind="stable")
    kept = order[:limit]
    if labels is not None and len(keys) > limit:
        rare = [order[labels[order] == c][:2] for c in np.unique(labels)]
        kept = np.unique(np.concatenate([kept, *rare]))
    return np.sort(kept)


def row_order(X: np.ndarray[Any, Any], Y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Positions of the rows in an order that looks random, and that depends only on their values.

    So permuting a table changes neither folds nor draws nor trees, and a sorted table is nothing special. The order
    looks at ranks only: it does not change with the units of a column either.

    Targets matter only among rows that are equal in ``X``: the one nearest to the mean target of these comes first,
    then the one nearest to the mean of all (of classes: the most frequent one). So the order does not change with the
    sign of the targets or the names of classes, unless two unequal targets of equal rows are equally far from both.
    """
    keys, place, counts = np.unique(value_keys(X), return_inverse=True, return_counts=True)
    if len(keys) == len(X):
        return np.argsort(place)
    spread = np.std(Y, axis=0)
    Z = (Y - Y.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    sums = np.zeros((len(keys), Y.shape[1]))
    np.add.at(sums, place, Z)
    distances = (np.einsum("ij,ij->i", A, A) for A in (Z, Z - (sums / counts[:, None])[place]))
    return np.lexsort((*Z.T[::-1], *(np.round(distance, _TIE_DIGITS) for distance in distances), place))


def value_keys(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A whole number for every row that looks random: equal rows have the same one, and only these.

    It depends on the ranks of the values in their columns; NaN is one value, above all others. The order of the columns
    does not matter: a column is known by its values and by the rows in which they are.
    """
    whole: np.ndarray[Any, Any] = sum((ranks.sum(axis=0) for ranks in _mixed_ranks(X)), np.zeros(len(X), np.uint64))
    whole, keys = _mixed(whole), np.zeros_like(whole)
    for ranks in _mixed_ranks(X):
        column = _mixed(ranks + whole).sum(axis=1)
        keys += _mixed(ranks + column[:, None]).sum(axis=0)
    return keys


def column_keys(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A whole number for every value that looks random, shape ``(n, d)``: its column and its rank there."""
    ranks = np.concatenate(list(_mixed_ranks(X)))
    return np.asarray(_mixed(ranks + _mixed(np.arange(len(ranks), dtype=np.uint64))[:, None]).T)


def column_order(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An order of the columns of rows that are in their order, which depends only on their values."""
    place = _mixed(np.arange(len(X), dtype=np.uint64))
    keys = [_mixed(ranks + place).sum(axis=1) for ranks in _mixed_ranks(X)]
    return np.argsort(np.concatenate(keys), kind="stable")


def _mixed_ranks(X: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """A number for the rank of every value in its column, shape ``(d, n)``, in blocks of columns.

    Sums of these numbers are exact, in whatever order: they are remainders.
    """
    numbers = _mixed(np.arange(len(X) + 1, dtype=np.uint64))
    for part in np.array_split(X, max(1, min(X.shape[1], X.size // _BLOCK_NUMBERS)), axis=1):
        columns = np.ascontiguousarray(part.T)
        order = np.argsort(columns, axis=1)
        ordered = np.take_along_axis(columns, order, axis=1)
        rises = (ordered[:, 1:] != ordered[:, :-1]) & ~(np.isnan(ordered[:, 1:]) & np.isnan(ordered[:, :-1]))
        ranks = np.zeros(columns.shape, dtype=np.int64)
        np.cumsum(rises, axis=1, out=ranks[:, 1:])
        found = np.empty(columns.shape, dtype=np.uint64)
        np.put_along_axis(found, order, numbers[ranks], axis=1)
        yield found


def stratified_folds(codes: np.ndarray[Any, Any], count: int, seed: int | None = None) -> list[Fold]:
    """At most ``count`` folds with the same share of every class; none where a class has fewer than two samples.

    With a ``seed`` the samples of every class are shuffled first, so that the order of the rows does not matter.
    """
    classes, first, sizes = np.unique(codes, return_index=True, return_counts=True)
    count = min(count, int(sizes.min()))
    if count < 2:
        return []
    # The folds of scikit-learn's StratifiedKFold, whose checks would be a fiftieth of a small fit: samples, class after
    # class, are dealt out in turn, which says how many of a class a fold gets; the first fold gets the first ones.
    order = np.argsort(first)
    dealt = np.repeat(order, sizes[order])
    shares = [np.bincount(dealt[k::count], minlength=len(classes)) for k in range(count)]
    fold = np.empty(len(codes), dtype=np.int64)
    rng = None if seed is None else np.random.default_rng(seed)
    for c, own in enumerate(np.transpose(shares)):
        parts = np.repeat(np.arange(count), own)
        fold[codes == classes[c]] = parts if rng is None else rng.permutation(parts)
    return [(np.flatnonzero(fold != k).tolist(), np.flatnonzero(fold == k).tolist()) for k in range(count)]


def plain_folds(n: int, count: int) -> list[Fold]:
    """At most ``count`` folds of ``n`` samples, in turn: row ``i`` is held out in fold ``i mod count``."""
    count = min(count, n // 2)
    if count < 2:
        return []
    turn = np.arange(n) % count
    return [(np.flatnonzero(turn != k).tolist(), np.flatnonzero(turn == k).tolist()) for k in range(count)]


def grouped_folds(
    groups: np.ndarray[Any, Any], codes: np.ndarray[Any, Any] | None, count: int, seed: int | None = None
) -> list[Fold]:
    """At most ``count`` folds, each of whole groups, with about the same share of every class; none of one group.

    With a ``seed`` groups with classes are shuffled first.
    """
    count = min(count, len(np.unique(groups)))
    if count < 2:
        return []
    if codes is None or np.bincount(codes).max() < count:  # no class is in every fold
        splits = GroupKFold(count).split(groups, groups=groups)
    else:
        with warnings.catch_warnings():
            # a class that lies in few groups cannot be in every fold, whatever the folds
            warnings.simplefilter("ignore", UserWarning)
            folds = StratifiedGroupKFold(count, shuffle=seed is not None, random_state=seed)
            splits = list(folds.split(groups, codes, groups))
    return [(train.tolist(), test.tolist()) for train, test in splits if len(train) and len(test)]


def given_folds(cv: Any, n: int, codes: Sequence[int] | None, groups: Sequence[int] | None = None) -> list[Fold]:
    """Folds of ``n`` rows by a splitter or an iterable of splits."""
    labels = None if codes is None else np.asarray(codes)
    splitter = check_cv(cv, labels, classifier=labels is not None)
    rows = np.zeros(n)
    folds = [tuple(np.asarray(part).tolist() for part in split) for split in splitter.split(rows, labels, groups)]
    for row in (row for fold in folds for part in fold for row in part):
        if not 0 <= row < n:
            raise ValueError(f"cv: a split names row {row}, but the rows are 0 to {n - 1}; give splits of these rows.")
    return [(train, test) for train, test in folds]
