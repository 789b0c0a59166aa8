"""Arrays in files (``np.load(..., mmap_mode="r")``) that a check would copy into memory as a whole.

Rows of ``float64`` or ``float32`` that lie one after the other are used where they are. Others (whole numbers, columns
one after the other, other byte orders) have to be converted, and that is done block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from fewkern.arrays import partitions

__all__ = ["as_collection", "is_mapped", "mapped_blocks"]


def is_mapped(X: Any) -> bool:
    """Whether ``X`` is an array in a file that has to be converted, and has more rows than a block."""
    if not isinstance(X, np.memmap) or X.ndim != 2 or len(X) <= partitions.BLOCK_ROWS:
        return False
    return not (X.dtype in (np.float64, np.float32) and X.flags.c_contiguous)


def as_collection(X: Any) -> Any:
    """An array in a file that has to be converted as a Dask array, where Dask is installed; anything else as it is."""
    if not is_mapped(X) or find_spec("dask") is None:
        return X
    import dask
    import dask.array as da

    # da.from_array would copy it
    block = dask.delayed(np.asarray, pure=False)
    blocks = [da.from_delayed(block(part), part.shape, part.dtype) for part in mapped_blocks(X)]  # type: ignore[no-untyped-call]
    return da.concatenate(blocks)  # type: ignore[no-untyped-call]


def mapped_blocks(X: Any) -> Iterator[Any]:
    """The rows of an array in a file, block by block."""
    return (X[at : at + partitions.BLOCK_ROWS] for at in range(0, len(X), partitions.BLOCK_ROWS))
