"""All rows of a fit, wherever they are: in memory, on a GPU, or in the partitions of a Dask collection.

A method that serves any number of rows asks two things of them: a sample, on which it makes its choices, and sums over
all rows, which give it the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

from fewkern.arrays.partitions import Partitions
from fewkern.arrays.survey import Layout, Rows, Survey, class_codes, survey
from fewkern.core.samples import Samples

__all__ = ["SAMPLE_ROWS", "InMemory", "Population", "Reading", "Streamed"]

# Choices (length scale, vectors, ridge, how many) are made on at most this number of rows; coefficients
# come from all of them.
SAMPLE_ROWS = 20_000

Sum = TypeVar("Sum")


class Population(Protocol):
    """All rows of a fit."""

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""

    @property
    def sample(self) -> Samples:
        """Rows to make choices on: all, or ``SAMPLE_ROWS`` of them and at least two of every class."""

    def total(self, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
        """The sum, by ``+``, of ``of(block)`` over blocks of rows; ``row_elements`` numbers are needed per row."""


@dataclass(frozen=True)
class InMemory:
    """Rows that are in the memory of the processor or of an accelerator."""

    samples: Samples

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.samples.n

    @cached_property
    def sample(self) -> Samples:
        """Rows to make choices on; a kernel matrix is needed whole."""
        return self.samples if self.samples.pairwise else self.samples.drawn(SAMPLE_ROWS)

    def total(self, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
        """The sum over blocks of rows."""
        return _total(self.samples, of, row_elements)


@dataclass(frozen=True)
class Reading:
    """How the blocks of a collection become samples."""

    layout: Layout
    n_all: int
    labels: Any = None
    """The classes, sorted."""
    factors: Any = None
    """What the weights of every class are multiplied by."""

    def samples(self, rows: Rows) -> Samples:
        """Checked rows as samples."""
        samples = Samples(rows.X, rows.weights, rows.numbers, self.n_all)
        if self.labels is None:
            return replace(samples, targets=None if rows.targets is None else rows.targets.astype(rows.X.dtype))
        codes = class_codes(self.labels, rows.targets)
        weights = rows.weights if self.factors is None else rows.weights * self.factors[codes]
        return replace(samples, weights=weights, codes=codes, n_classes=len(self.labels))


@dataclass(frozen=True)
class Streamed:
    """The rows of a Dask collection, after one pass over them."""

    partitions: Partitions
    reading: Reading
    survey: Survey
    verbose: bool = False

    @classmethod
    def of(cls, partitions: Partitions, layout: Layout, verbose: bool) -> Streamed:
        """Look at all rows once."""
        found = survey(partitions, layout, SAMPLE_ROWS, verbose)
        return cls(partitions, Reading(layout, partitions.n), found, verbose)

    def with_classes(self, labels: Any, factors: Any = None) -> Streamed:
        """With targets that are labels; the weights of every class are multiplied by its factor."""
        return replace(self, reading=replace(self.reading, labels=labels, factors=factors))

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.survey.count

    @cached_property
    def sample(self) -> Samples:
        """Rows to make choices on."""
        return self.reading.samples(self.survey.rows)

    def total(self, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
        """The sum over blocks of rows: one pass over the collection."""
        found: Sum = self.partitions.total(_OfBlock(self.reading, of, row_elements), "sums over rows", self.verbose)
        return found


@dataclass(frozen=True)
class _OfBlock:
    """A sum over the rows of one block, on whatever worker has it."""

    reading: Reading
    of: Callable[[Samples], Any]
    row_elements: int

    def __call__(self, first: int, *columns: Any) -> Any:
        samples = self.reading.samples(self.reading.layout.read(first, *columns))
        return _total(samples, self.of, self.row_elements)


def _total(samples: Samples, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
    blocks = samples.blocks(row_elements)
    found = of(next(blocks))
    for block in blocks:
        found = found + of(block)  # type: ignore[operator]
    return found
