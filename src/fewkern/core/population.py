"""All rows of a fit, wherever they are: in memory, on a GPU, or in the partitions of a Dask collection.

A method that serves any number of rows needs a sample, on which it makes its choices, and sums over all rows, which
give it the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from fewkern.core.samples import Samples

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
        return total_of_blocks(self.samples, of, row_elements)


def total_of_blocks(samples: Samples, of: Callable[[Samples], Sum], row_elements: int) -> Sum:
    """The sum, by ``+``, of ``of(block)`` over blocks of the samples."""
    blocks = samples.blocks(row_elements)
    found = of(next(blocks))
    for block in blocks:
        found = found + of(block)  # type: ignore[operator]
    return found
