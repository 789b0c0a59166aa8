"""Work in blocks of rows, so that a temporary never outgrows the cache by much."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BLOCK_ELEMENTS", "row_blocks"]

# 4 MiB of float64: small enough for the last-level cache, large enough for BLAS-3.
BLOCK_ELEMENTS = 1 << 19


def row_blocks(n: int, row_elements: int, budget: int | None = None) -> Iterator[slice]:
    """Slices of ``range(n)``, each holding at most about ``budget`` elements of ``row_elements`` per row.

    There is always one slice, also of no rows.
    """
    size = max(1, (BLOCK_ELEMENTS if budget is None else budget) // max(1, row_elements))
    for start in range(0, max(n, 1), size):
        yield slice(start, min(start + size, n))
