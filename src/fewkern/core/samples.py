"""The samples that take part in a fit, and the sums over all rows that a fit needs, wherever these are.

A method that serves any number of rows needs a sample, on which it makes its choices, and sums over all rows, which
give it the coefficients. Samples in memory or on a GPU provide both; so do the partitions of a Dask collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

from fewkern.arrays import sampling
from fewkern.arrays.blocks import row_blocks
from fewkern.arrays.linalg import one_hot
from fewkern.arrays.namespace import (
    Array,
    asarray_like,
    device,
    float_dtype,
    is_sparse,
    namespace,
    take_rows,
    to_numpy,
)
from fewkern.arrays.sampling import (
    Fold,
    given_folds,
    grouped_folds,
    plain_folds,
    random_generator,
    row_keys,
    smallest_keys,
    stratified_folds,
)

Rows = TypeVar("Rows")
Sum = TypeVar("Sum")


class Population(Protocol):
    """All rows of a fit: :class:`Samples`, or those of a collection."""

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""

    @property
    def sample(self) -> Samples:
        """Rows to make choices on: all, or ``SAMPLE_ROWS`` of them and at least two of every class."""

    def total(self, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
        """The sum, by ``+``, of ``of(block)`` over blocks of rows; ``row_elements`` numbers are needed per row."""


@dataclass(frozen=True)
class Samples:
    """Rows of positive weight, with their weights and their classes or targets.

    A row of weight zero is absent: it is in no median, no draw, no fold and no expansion. Row numbers that an
    algorithm returns count the rows that take part; :meth:`original` and :meth:`all_rows` translate them.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    weights : array of shape (n,)
        Positive.
    rows : integer array of shape (n,)
        Row numbers in the whole table, ascending.
    n_all : int
        Number of rows of the whole table.
    codes : integer array of shape (n,) or None
        Classes as 0, 1, ..., ``n_classes - 1``.
    n_classes : int
    targets : array of shape (n, q) or None
    groups : integer array of shape (n,) or None
        Numbers 0, 1, ..., equal for samples that are held out together.
    pairwise : bool
        Whether ``X`` holds kernel values: then a row that is left out is a column that is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from fewkern.core.samples import Samples
    >>> samples = Samples.of(np.arange(6.0)[:, None], np.array([1.0, 0, 2, 1, 0, 1]))
    >>> samples.n, samples.rows
    (4, array([0, 2, 3, 5]))
    """

    X: Array
    weights: Array
    rows: Array
    n_all: int
    codes: Array | None = None
    n_classes: int = 0
    targets: Array | None = None
    groups: Array | None = None
    pairwise: bool = False

    @classmethod
    def of(cls, X: Array, weights: Array | None = None, *, pairwise: bool = False, **labels: Any) -> Samples:
        """The rows of ``X`` that take part; ``labels`` are ``codes``, ``n_classes``, ``targets``, ``groups``."""
        like = X.data if is_sparse(X) else X
        xp, n = namespace(like), int(X.shape[0])
        rows = xp.arange(n, dtype=xp.int64, device=device(like))
        one = xp.ones((n,), dtype=float_dtype(X), device=device(like))
        every = cls(X, one if weights is None else weights, rows, n, pairwise=pairwise, **labels)
        if weights is None or bool(xp.all(weights > 0)):
            return every
        return every.take(xp.nonzero(weights > 0)[0])

    @property
    def n(self) -> int:
        """Number of rows that take part."""
        return int(self.X.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of columns of the targets."""
        return 0 if self.targets is None else int(self.targets.shape[1])

    @property
    def weighted(self) -> bool:
        """Whether the weights differ, or rows were left out."""
        xp = namespace(self.weights)
        return self.n < self.n_all or bool(xp.any(self.weights != self.weights[0]))

    def on_host(self) -> Samples:
        """The same samples as NumPy arrays, for algorithms that know no other library; sparse ``X`` stays sparse."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        dense = (name for name, value in values.items() if hasattr(value, "shape") and not is_sparse(value))
        return Samples(**values | {name: to_numpy(values[name]) for name in dense})

    def take(self, part: Array) -> Samples:
        """The samples at the positions ``part``."""
        taken = self._of_rows(lambda column: take_rows(column, part))
        return replace(taken, X=namespace(taken.X).take(taken.X, part, axis=1)) if self.pairwise else taken

    def _of_rows(self, some: Callable[[Array], Array]) -> Samples:
        """The samples whose rows ``some`` takes of every array."""
        names = ("X", "weights", "rows", "codes", "targets", "groups")
        return replace(self, **{name: some(getattr(self, name)) for name in names if getattr(self, name) is not None})

    def some(self, limit: int, rng: Any) -> Samples:
        """About ``limit`` of the samples, drawn without replacement, the same share of every class; all if few."""
        if self.n <= limit:
            return self
        if self.codes is None:
            kept: list[int] = rng.choice(self.n, limit, replace=False).tolist()
        else:
            codes, kept = to_numpy(self.codes), []
            for c in range(self.n_classes):
                own = (codes == c).nonzero()[0]
                kept += rng.permutation(own)[: max(2, round(len(own) * limit / self.n))].tolist()
        return self.take(asarray_like(sorted(kept), self.rows, dtype=self.rows.dtype))

    def drawn(self, limit: int) -> Samples:
        """``limit`` of the samples, by the numbers of their rows alone, and at least two of every class; all if few.

        So a table gives the same samples wherever it is kept.
        """
        if self.n <= limit:
            return self
        labels = None if self.codes is None else to_numpy(self.codes)
        kept = smallest_keys(row_keys(to_numpy(self.rows)), labels, limit)
        return self.take(asarray_like(kept, self.rows, dtype=self.rows.dtype))

    @property
    def sample(self) -> Samples:
        """Rows to make choices on; a kernel matrix is needed whole."""
        return self if self.pairwise or self.n <= sampling.SAMPLE_ROWS else self._sample

    @cached_property
    def _sample(self) -> Samples:
        return self.drawn(sampling.SAMPLE_ROWS)

    def total(self, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
        """The sum, by ``+``, of ``of(block)`` over blocks of the samples."""
        blocks = self.blocks(row_elements)
        found = of(next(blocks))
        for block in blocks:
            found = found + of(block)  # type: ignore[operator]
        return found

    def blocks(self, row_elements: int) -> Iterator[Samples]:
        """The samples in blocks of rows, of which ``row_elements`` numbers per row are needed."""
        for rows in row_blocks(self.n, row_elements, like=self.weights):
            yield self._of_rows(partial(_between, rows))

    def folds(self, cv: Any, seed: int | None = None) -> list[Fold]:
        """Positions to train on and to hold out, for a number of folds, a splitter, or splits of the whole table.

        A number gives stratified folds where there are classes. There are at most as many folds as the smallest class
        has samples, and none if that leaves fewer than two. Groups stay together, and are at least as many as there
        are folds. With a ``seed`` the samples (or groups) with classes are shuffled first; without one the folds
        follow the order of the rows.
        """
        if isinstance(cv, int):
            codes = None if self.codes is None else to_numpy(self.codes)
            if self.groups is not None:
                return grouped_folds(to_numpy(self.groups), codes, cv, seed)
            return plain_folds(self.n, cv) if codes is None else stratified_folds(codes, cv, seed)
        return self._positions(given_folds(cv, self.n_all, self._of_all(self.codes), self._of_all(self.groups)))

    def _of_all(self, labels: Array | None) -> list[int] | None:
        """Classes or groups of all rows for a splitter; rows that are absent count as the first one."""
        if labels is None:
            return None
        every = [0] * self.n_all
        for row, label in zip(to_numpy(self.rows).tolist(), to_numpy(labels).tolist()):
            every[row] = label
        return every

    def _positions(self, splits: Iterable[Fold]) -> list[Fold]:
        place = {int(row): i for i, row in enumerate(to_numpy(self.rows))}

        def inside(rows: Sequence[int]) -> list[int]:
            return [place[int(row)] for row in rows if int(row) in place]

        return [(inside(train), inside(test)) for train, test in splits]

    def deal(self, count: int, seed: int) -> Array | None:
        """A part for every sample, ``0`` to ``count - 1``, drawn at random; groups stay together.

        None where a part would have fewer than two samples (or groups).
        """
        groups = range(self.n) if self.groups is None else to_numpy(self.groups).tolist()
        units = sorted(set(groups))
        if len(units) < 2 * count:
            return None
        turn = {units[int(u)]: k % count for k, u in enumerate(random_generator(seed).permutation(len(units)))}
        return asarray_like([turn[g] for g in groups], self.rows, dtype=self.rows.dtype)

    def all_rows(self, positions: Array) -> Array:
        """Row numbers in the whole table of samples at ``positions``."""
        return take_rows(self.rows, positions)

    def original(self, value: Rows) -> Rows:
        """An expansion or a basis with row numbers of the whole table."""
        if self.n == self.n_all:
            return value
        moved: dict[str, Array] = {}
        for prefix in ("", "center_"):
            indices = getattr(value, f"{prefix}indices", None)
            if indices is not None:
                rows = moved[f"{prefix}indices"] = self.all_rows(indices)
                if self.pairwise:
                    moved[f"{prefix}vectors"] = rows[:, None]
        return replace(value, **moved)  # type: ignore[type-var]


def _between(rows: slice, column: Array) -> Array:
    return column[rows, ...]


def class_targets(samples: Samples) -> Samples:
    """The samples with targets of FVS-LR for their classes: -1/+1 for two classes, 0/1 indicators otherwise."""
    indicators = one_hot(samples.codes, samples.n_classes, float_dtype(samples.X))
    return replace(samples, targets=indicators if samples.n_classes > 2 else 2 * indicators[:, 1:] - 1)


def with_targets(samples: Samples) -> Samples:
    """The samples with targets to regress on: their own numbers, or those of their classes."""
    return samples if samples.targets is not None else class_targets(samples)


def with_indicators(samples: Samples) -> Samples:
    """The samples with one 0/1 column per class as targets; one column of ones where there are no classes."""
    if samples.codes is None:
        return replace(samples, targets=namespace(samples.weights).ones_like(samples.weights[:, None]))
    return replace(samples, targets=one_hot(samples.codes, samples.n_classes, samples.weights.dtype))
