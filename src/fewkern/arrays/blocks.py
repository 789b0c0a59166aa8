"""Work in blocks of rows, so that a temporary never outgrows the cache by much."""

from __future__ import annotations

from collections.abc import Iterator

from fewkern.arrays.namespace import Array, on_host

__all__ = ["BLOCK_ELEMENTS", "row_blocks"]

# 4 MiB of float64: small enough for the last-level cache, large enough for BLAS-3.
BLOCK_ELEMENTS = 1 << 19
# 1 GiB of float64 on an accelerator, where every block costs the start of a dozen kernels, and nothing is cached.
_ACCELERATOR_ELEMENTS = 1 << 27


def row_blocks(n: int, row_elements: int, budget: int | None = None, like: Array | None = None) -> Iterator[slice]:
    """Slices of ``range(n)``, each holding at most about ``budget`` elements of ``row_elements`` per row.

    Without a budget it is that of the device of ``like`` (None: the host). There is always one slice, also of no rows.
    """
    if budget is None:
        budget = BLOCK_ELEMENTS if like is None or on_host(like) else _ACCELERATOR_ELEMENTS
    size = max(1, budget // max(1, row_elements))
    for start in range(0, max(n, 1), size):
        yield slice(start, min(start + size, n))
