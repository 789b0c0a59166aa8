"""Work in blocks of rows, so that a temporary never outgrows the cache by much."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fewkern.backend.namespace import Array, device, namespace

__all__ = ["BLOCK_ELEMENTS", "map_rows", "row_blocks"]

# 4 MiB of float64: small enough for the last-level cache, large enough for BLAS-3.
BLOCK_ELEMENTS = 1 << 19


def row_blocks(n: int, row_elements: int, budget: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Slices of ``range(n)``, each holding at most about ``budget`` elements of ``row_elements`` per row."""
    size = max(1, budget // max(1, row_elements))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def map_rows(function: Callable[[Array], Array], X: Array, columns: int) -> Array:
    """Stack ``function(block)`` (``columns`` wide) over the row blocks of ``X``."""
    n = X.shape[0]
    if n * columns <= BLOCK_ELEMENTS:
        return function(X)
    out = None
    for rows in row_blocks(n, columns):
        block = function(X[rows, :])
        if out is None:
            out = namespace(block).empty((n, columns), dtype=block.dtype, device=device(block))
        out[rows, :] = block
    return out
