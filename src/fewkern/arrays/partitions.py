"""Rows of Dask collections and of arrays in files, and methods that answer row by row.

This module and :mod:`fewkern.arrays.frames` are the only ones that know Dask. It is imported when needed.

The rows are cut anew into blocks of a fixed size, and sums over the blocks are added up in a fixed order. So a result
does not depend on how a collection was cut, nor on how many workers there are, not even in its last digit.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib.util import find_spec
from operator import add
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.namespace import Array, to_numpy
from fewkern.arrays.progress import shown

# Rows of a block: 10 MiB of float64 with 20 features, and a second of work for a core.
BLOCK_ROWS = 1 << 16
_CLUSTER = ("distributed", "concurrent", "asyncio")  # their errors are about workers and schedulers, not about rows
# What is called with the number of the first row of a block, and with the block of every column.
OfBlock = Callable[..., Any]


class PartitionError(RuntimeError):
    """A partition of a Dask collection could not be computed."""


class NeedsMemoryError(TypeError):
    """A Dask collection was passed to an estimator that needs all rows in memory."""


def is_collection(x: Any) -> bool:
    """Whether ``x`` is an array, a data frame or a series of Dask."""
    if "dask" not in sys.modules:
        return False
    import dask

    return bool(dask.is_dask_collection(x)) and hasattr(x, "ndim")


@dataclass(frozen=True)
class Partitions:
    """Samples and what goes with them (labels, weights), row by row, in blocks."""

    X: Any
    """A Dask array of shape (n, d) with blocks of ``BLOCK_ROWS`` rows."""
    columns: tuple[Any, ...]
    """Dask arrays of n rows, in the same blocks."""
    names: tuple[str, ...] | None
    """Names of the features, where the samples came as a data frame."""
    given: tuple[Any, ...]
    """The collections as they came, to name a partition that fails."""
    checksums: dict[int, int] = field(default_factory=dict)
    """Checksum of every block, by the number of its first row, once a pass has been made over them."""

    @classmethod
    def of(cls, name: str, X: Any, *columns: Any) -> Partitions:
        """The rows of ``X`` with ``columns``: collections, or arrays in memory; ``name`` begins messages."""
        import dask.array as da

        names = tuple(str(c) for c in X.columns) if hasattr(X, "columns") else None
        given = tuple(c for c in (X, *columns) if is_collection(c))
        samples = _sized(name, X, given)
        if samples.ndim != 2:
            raise ValueError(f"{name}: expected a 2-D collection of samples, got {samples.ndim} dimension(s).")
        if np.isnan(samples.shape[1]):
            raise ValueError(f"{name}: the number of features of the Dask array is unknown; use a known chunk size.")
        if samples.dtype.kind not in "fiub":
            raise ValueError(
                f"{name}: the samples must be numbers, got a Dask collection of type {samples.dtype}; encode "
                "categories first, for example X.map_partitions(encoder.transform) with an encoder fitted to X.head()."
            )
        beside = []
        for column in columns:
            if is_collection(column):
                column = _sized(name, column, given)
            else:
                column = da.from_array(np.asarray(column), chunks=BLOCK_ROWS)  # type: ignore[no-untyped-call]
            if column.shape[0] != samples.shape[0]:
                raise ValueError(
                    f"{name}: X has {samples.shape[0]} samples but y or sample_weight has {column.shape[0]}: found "
                    "input variables with inconsistent numbers of samples."
                )
            beside.append(column.rechunk({0: BLOCK_ROWS, **({1: -1} if column.ndim > 1 else {})}))
        return cls(samples.rechunk({0: BLOCK_ROWS, 1: -1}), tuple(beside), names, given)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of the samples."""
        return int(self.X.shape[1])

    def total(self, of: OfBlock, label: str = "", verbose: bool = False) -> Any:
        """The sum, by ``+``, of ``of(first row, X block, column blocks...)`` over all blocks.

        Raises a ValueError if the rows are not those of the pass before.
        """
        import dask

        blocks = [self.X.to_delayed()[:, 0], *(c.to_delayed().reshape(c.numblocks[0]) for c in self.columns)]
        first = np.cumsum([0, *self.X.chunks[0]])
        work = dask.delayed(_limited, pure=False)
        parts = [work(of, int(first[i]), int(first[i + 1]), *block) for i, block in enumerate(zip(*blocks))]
        with counted(label, "_limited", len(parts), verbose), naming("Dask collection", lambda: _numbered(self.given)):
            found = added_up(parts).compute()
        changed = [
            at for at, checksum in found.checksums.items() if self.checksums.setdefault(at, checksum) != checksum
        ]
        if changed:
            raise ValueError(
                f"{len(changed)} of {len(parts)} blocks of the Dask collection hold other rows than in the pass before "
                f"(the first one from row {min(changed):,}): it is random without a seed, or its source has changed; "
                "call persist() on X, y and the weights together, or write them to files first."
            )
        return found.value


def added_up(parts: Sequence[Any]) -> Any:
    """The sum, by ``+``, of Dask's delayed values, two by two: always in the same order."""
    import dask

    merge = dask.delayed(add, pure=False)
    parts = list(parts)
    while len(parts) > 1:
        odd = parts[len(parts) - len(parts) % 2 :]
        parts = [merge(a, b) for a, b in zip(parts[::2], parts[1::2])] + odd
    return parts[0]


@dataclass(frozen=True)
class _Checked:
    """A sum over some blocks, and their checksums by the number of the first row."""

    value: Any
    checksums: dict[int, int]

    def __add__(self, other: _Checked) -> _Checked:
        return _Checked(self.value + other.value, self.checksums | other.checksums)


def _limited(of: OfBlock, first: int, last: int, *blocks: Any) -> _Checked:
    """The value of a block, with one BLAS thread because there are as many tasks as cores, and its checksum."""
    columns, checksum = [np.asarray(block) for block in blocks], 0
    for column in columns:
        if len(column) != last - first:
            raise ValueError(
                f"rows {first:,} to {last - 1:,} of the Dask collection are only {len(column):,} rows: a chunk has "
                "not as many as it declares; call compute_chunk_sizes() on X and y."
            )
        # of objects, their addresses would differ
        content = repr(column.tolist()).encode() if column.dtype == object else column.tobytes()
        checksum = zlib.crc32(content, checksum)
    with one_thread():
        return _Checked(of(first, *columns), {first: checksum})


@contextmanager
def naming(whole: str, parts: Callable[[], Iterable[tuple[str, Any]]]) -> Iterator[None]:
    """An error while the ``whole`` is computed says which of its delayed ``parts`` it is about, by their names."""
    try:
        yield
    except (ValueError, PartitionError):  # ours: they say what is wrong with which rows
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] in _CLUSTER:  # a part that ends its workers would do so again
            raise PartitionError(
                f"the cluster could not compute the {whole} ({error!r}): a part may have ended every worker that tried "
                "it, as one does that needs more memory than they have. Give workers more memory, or use smaller "
                "chunks, and fit again."
            ) from error
        for name, part in parts():
            try:
                part.compute()
            except Exception:
                raise PartitionError(f"{name} of the {whole} cannot be computed: {error!r}") from error
        raise


def _numbered(collections: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The partitions of Dask collections."""
    for collection in collections:
        for position, part in enumerate(np.ravel(np.asarray(collection.to_delayed(), dtype=object))):
            yield f"partition {position}", part


@contextmanager
def counted(label: str, task: str, count: int, verbose: bool) -> Iterator[None]:
    """Show how many tasks of a name are done, with the schedulers of one machine; a cluster has its own dashboard."""
    from dask.callbacks import Callback

    if not verbose:
        yield
        return
    done: list[Any] = []
    with shown(label, count) as step:

        def after(key: Any, *_: Any) -> None:
            if str(key).startswith(task):
                done.append(key)
                step(len(done))

        with Callback(posttask=after):  # type: ignore[no-untyped-call]
            yield


def _sized(name: str, collection: Any, given: Sequence[Any]) -> Any:
    """A Dask array whose blocks have known lengths; finding them may take a pass over the collection."""
    import dask.array as da

    with naming("Dask collection", lambda: _numbered(given)):
        if hasattr(collection, "to_dask_array"):
            if hasattr(collection, "dtypes") and collection.ndim == 2:
                _check_types(name, collection)
            elif not isinstance(collection.dtype, np.dtype):  # texts and other types of pandas
                collection = collection.astype(object)
            # a plan that is optimized may join partitions of files, so the rows are counted in the array
            return collection.to_dask_array().compute_chunk_sizes()
        if any(np.isnan(size) for size in collection.chunks[0]):
            # a copy, because the collection of the user must not change
            collection = da.Array(  # type: ignore[no-untyped-call]
                collection.dask, collection.name, collection.chunks, meta=collection._meta
            )
            return collection.compute_chunk_sizes()
    return collection


def _check_types(name: str, frame: Any) -> None:
    other = [str(c) for c, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]
    if other:
        raise ValueError(
            f"{name}: the columns {', '.join(other[:5])} of the Dask data frame hold no numbers; encode them first, "
            "for example with make_pipeline(TableEncoder(), ...), or fit a TableModel."
        )


def map_rows(method: Callable[[Any], Any], X: Any, n_features: int, names: Callable[[int], Sequence[Any]]) -> Any:
    """Apply ``method`` to every part of the collection ``X``, lazily.

    Parameters
    ----------
    method : callable
        From samples to one value, or one row of values, for each.
    X : Dask array or data frame
    n_features : int
        That ``method`` expects.
    names : callable
        From the number of columns of the result to their names, where it is a data frame.

    Returns
    -------
    A Dask array for an array, a series or a data frame for a data frame.
    """
    framed = hasattr(X, "columns")
    d = len(X.columns) if framed else X.shape[1]
    if d != n_features:
        count = "an unknown number of" if np.isnan(d) else d
        raise ValueError(f"X has {count} features, but the model was fitted with {n_features}.")
    values = np.asarray(method(_one_row(X)))[:0]
    if not framed:
        X = X.rechunk({1: -1})
        shape: dict[str, Any] = {"drop_axis": 1}
        if values.ndim > 1:
            shape = {"chunks": (X.chunks[0], *((length,) for length in values.shape[1:]))}
            shape |= {"new_axis": list(range(2, values.ndim))} if values.ndim > 2 else {}
        return X.map_blocks(_array_answers, method, values, dtype=values.dtype, meta=values, **shape)
    if values.ndim > 2:
        raise ValueError(
            f"every row has an answer of shape {values.shape[1:]}, which has no place in a data frame; pass "
            "X.to_dask_array(lengths=True)."
        )
    return map_parts(method, X, values, names)


def map_parts(method: Callable[[Any], Any], frame: Any, values: Any, names: Callable[[int], Sequence[Any]]) -> Any:
    """Apply ``method`` to every partition of a Dask data frame; ``values`` are its result for a table without rows."""
    import pandas as pd

    meta = pd.Series(values) if values.ndim == 1 else pd.DataFrame(values, columns=list(names(values.shape[1])))
    return frame.map_partitions(_frame_answers, method, meta, meta=meta)


def _one_row(X: Any) -> Any:
    """A sample of zeros of the same kind as those of a collection: the result of a method for it shows the type."""
    if hasattr(X, "columns"):
        import pandas as pd

        zeros = pd.DataFrame(np.zeros((1, len(X.columns))), columns=list(X.columns))
        kinds = X._meta.dtypes.to_dict()
        texts = [c for c, kind in kinds.items() if getattr(kind, "kind", "O") not in "fiub"]  # of these, gaps
        return zeros.assign(**dict.fromkeys(texts)).astype(kinds)
    return np.zeros((1, X.shape[1]), X.dtype)


def _array_answers(block: Any, method: Callable[[Any], Any], empty: Any) -> Any:
    """The results of a method for a block; a block may have no rows, which no estimator accepts."""
    if not len(block):
        return empty
    with one_thread():
        return np.asarray(method(block))


def _frame_answers(part: Any, method: Callable[[Any], Any], meta: Any) -> Any:
    import pandas as pd

    if not len(part):
        return meta
    with one_thread():
        values = np.asarray(method(part))
    if values.ndim == 1:
        return pd.Series(values, index=part.index, dtype=meta.dtype)
    return pd.DataFrame(values, index=part.index, columns=meta.columns)


def is_mapped(X: Any) -> bool:
    """Whether ``X`` is an array in a file that has to be converted, and has more rows than a block."""
    if not isinstance(X, np.memmap) or X.ndim != 2 or len(X) <= BLOCK_ROWS:
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
    return (X[at : at + BLOCK_ROWS] for at in range(0, len(X), BLOCK_ROWS))


def rowwise(method: Callable[..., Array], columns: Sequence[str] | None = None) -> Callable[..., Any]:
    """A method with one result per sample; for a Dask collection the results are lazy.

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
