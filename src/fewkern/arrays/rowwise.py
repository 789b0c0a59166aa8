"""Methods that answer row by row: for samples in memory, in files and in Dask collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays import partitions
from fewkern.arrays.namespace import Array, to_numpy
from fewkern.arrays.partitions import is_collection, map_rows

__all__ = ["as_collection", "is_mapped", "mapped_blocks", "rowwise"]


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


def rowwise(method: Callable[..., Array], columns: Sequence[str] | None = None) -> Callable[..., Any]:
    """A method that answers for every sample: for a Dask collection it does so when that is computed.

    An array gives an array, a data frame a series or a data frame, whose columns are named ``columns``, or after the
    classes or components. Arguments after the samples are handed on.
    """

    @wraps(method)
    def of_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        def answers(block: Any) -> Array:
            return method(self, block, *args, **kwargs)

        if is_mapped(X):
            return np.concatenate([answers(np.asarray(block)) for block in mapped_blocks(X)])
        if not is_collection(X):
            return answers(X)
        check_is_fitted(self)
        named = partial(_output_names, self) if columns is None else lambda _: list(columns)
        return map_rows(answers, X, self.n_features_in_, named)

    return of_any


def _output_names(estimator: Any, count: int) -> list[Any]:
    """Names of the columns that a method returns: those of the classes, or of the components."""
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) == count:
        return list(to_numpy(classes))
    names = estimator.get_feature_names_out() if hasattr(estimator, "get_feature_names_out") else ()
    return list(names) if len(names) == count else list(range(count))
