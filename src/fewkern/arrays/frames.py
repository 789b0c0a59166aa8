"""Tables in parts that come one after the other: the partitions of a Dask data frame, or pieces of files.

A part is a pandas data frame that is made when it is needed, on whatever worker the scheduler of Dask chooses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import Any

import numpy as np

from fewkern.arrays.blocks import one_thread
from fewkern.arrays.columns import all_levels, coded_table, given_columns, levels_in
from fewkern.arrays.partitions import PartitionError, added_up, counted, map_parts, naming
from fewkern.arrays.progress import missing_package, shown

# What is called with the number of the first row of a part, and with the part.
OfPart = Callable[[int, Any], Any]


def require_dask(what: str) -> Any:
    """The package Dask, or an error that says what it is needed for."""
    try:
        import dask
    except ImportError as error:
        raise missing_package(f"{what} through Dask, which", "dask[array,dataframe]", "distributed") from error
    return dask


@dataclass(frozen=True)
class FrameParts:
    """The parts of a table, in their order; those without rows are left out."""

    parts: tuple[Any, ...]
    """Delayed data frames of Dask."""
    lengths: tuple[int, ...]
    names: tuple[str, ...]
    """What messages call the parts."""
    empty: Any
    """A data frame with the columns of the table, and no rows."""

    @classmethod
    def of_collection(cls, frame: Any, verbose: bool = False) -> FrameParts:
        """The partitions of a Dask data frame; one pass counts their rows."""
        import dask

        # partitions of files may be joined when a plan is optimized: first that, then count their rows
        parts = frame.optimize().to_delayed()
        names = [f"partition {k}" for k in range(len(parts))]
        count = dask.delayed(_named, pure=False)
        counts = [count(name, _count, 0, part) for name, part in zip(names, parts)]
        return cls._of(parts, names, counts, frame._meta, verbose)

    @classmethod
    def of_pieces(cls, pieces: Sequence[Any], empty: Any, verbose: bool = False) -> FrameParts:
        """Parts that are read when they are needed; ``empty`` has their columns and no rows.

        A piece has a ``name`` for messages; called, it reads its rows as a pandas data frame, and ``count()`` is
        their number.
        """
        import dask

        parts = [dask.delayed(_read, pure=False)(piece) for piece in pieces]
        counts = [dask.delayed(_named_count, pure=False)(piece) for piece in pieces]
        return cls._of(parts, [piece.name for piece in pieces], counts, empty, verbose)

    @classmethod
    def _of(cls, parts: Any, names: Any, counts: Any, empty: Any, verbose: bool) -> FrameParts:
        with counted("counting rows", "_named", len(counts), verbose):
            lengths = _computed(counts, parts, names)
        kept = [k for k, length in enumerate(lengths) if length]
        return cls(
            tuple(parts[k] for k in kept), tuple(int(lengths[k]) for k in kept), tuple(names[k] for k in kept), empty
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(self.lengths)

    @property
    def first(self) -> list[int]:
        """The number of the first row of every part."""
        return [0, *accumulate(self.lengths)][:-1]

    def _work(self, of: OfPart) -> list[Any]:
        import dask

        work = dask.delayed(_named, pure=False)
        return [work(*given) for given in zip(self.names, repeat(of), self.first, self.parts, self.lengths)]

    def total(self, of: OfPart, label: str = "", verbose: bool = False) -> Any:
        """The sum, by ``+``, of ``of(number of the first row, part)`` over all parts."""
        work = self._work(of)
        with counted(label, "_named", len(work), verbose):
            return _computed([added_up(work)], self.parts, self.names)[0]

    def each(self, of: OfPart, label: str = "", verbose: bool = False) -> Iterator[Any]:
        """``of(number of the first row, part)``, part after part; as many at once as there are cores."""
        work, width = self._work(of), os.cpu_count() or 1
        with shown(label, len(work), lines=False, bar=verbose) as step:
            for at in range(0, len(work), width):
                some = slice(at, at + width)
                yield from _computed(work[some], self.parts[some], self.names[some])
                step(min(at + width, len(work)))

    def arrays(self, of: OfPart, like: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
        """Dask arrays of what ``of(number of the first row, part)`` returns: arrays with a row for every row.

        ``like`` are arrays of the same types and columns. Compute them within :func:`read_once`.
        """
        import dask.array as da

        work, found = self._work(of), []
        for k, one in enumerate(like):
            blocks = [
                da.from_delayed(part[k], (length, *one.shape[1:]), one.dtype, meta=one[:0])  # type: ignore[no-untyped-call]
                for part, length in zip(work, self.lengths)
            ]
            found.append(da.concatenate(blocks))  # type: ignore[no-untyped-call]
        return found


@contextmanager
def read_once() -> Iterator[None]:
    """Let arrays that come from the same parts share the work: fused tasks would read a part once for each array."""
    import dask

    with dask.config.set({"optimization.fuse.active": False}):
        yield


def with_codes(estimator: Any, X: Any, verbose: bool = False) -> Any:
    """A Dask collection as numbers, with codes in place of levels, lazily; sets ``categories_``.

    A pass over the collection finds the levels, where there are categories.
    """
    import dask

    framed, name = hasattr(X, "columns"), type(estimator).__name__
    own, estimator.categories_ = given_columns(estimator, X._meta if framed else X), None
    if not own and (not framed or all(isinstance(kind, np.dtype) and kind.kind in "fiub" for kind in X.dtypes)):
        return X
    categories: list[Any] = [None] * (len(X.columns) if framed else X.shape[1])
    if own:
        parts = X.to_delayed() if framed else X.rechunk({1: -1}).to_delayed()[:, 0]
        names = [f"partition {k}" for k in range(len(parts))]
        work = dask.delayed(levels_in, pure=False)
        with counted("looking for levels", "levels_in", len(parts), verbose):
            categories = all_levels(name, _computed([work(name, part, own) for part in parts], parts, names))
        estimator.categories_ = categories
    if framed:
        meta = X._meta.astype(float) if not len(X.columns) else X._meta.iloc[:, :0].reindex(columns=X.columns)
        return X.map_partitions(_as_numbers, name, categories, meta=meta.astype(np.float64))
    return X.rechunk({1: -1}).map_blocks(_block_as_numbers, name, categories, dtype=np.float64)


def _as_numbers(part: Any, name: str, categories: list[Any]) -> Any:
    import pandas as pd

    values = coded_table(name, part, categories) if len(part) else np.zeros((0, len(categories)))
    return pd.DataFrame(values, columns=part.columns, index=part.index)


def _block_as_numbers(block: Any, name: str, categories: list[Any]) -> Any:
    return coded_table(name, block, categories) if len(block) else np.zeros((0, len(categories)))


def map_frame(method: Callable[[Any], Any], frame: Any, names: Callable[[int], Sequence[Any]]) -> Any:
    """Apply ``method`` to every partition of a Dask data frame, lazily.

    ``method`` returns an array with one value or one row of values for every row, also for a table without rows;
    ``names`` returns the names of that number of columns. Returns a Dask series or data frame.
    """
    return map_parts(method, frame, np.asarray(method(frame._meta)), names)


def _computed(work: Sequence[Any], parts: Sequence[Any], names: Sequence[str]) -> Any:
    """The values of delayed work on parts; an error says which part could not be made."""
    import dask

    with naming("table", lambda: zip(names, parts)):
        return dask.compute(*work)  # type: ignore[no-untyped-call]


def _read(piece: Any) -> Any:
    return piece()


def _named_count(piece: Any) -> int:
    return piece.count()


def _count(first: int, part: Any) -> int:  # noqa: ARG001 - called like all others
    return len(part)


def _named(name: str, of: OfPart, first: int, part: Any, length: int | None = None) -> Any:
    """A part with one BLAS thread: there are as many tasks as cores. An error says which part it is about."""
    try:
        if length is not None and len(part) != length:
            raise ValueError(
                f"it had {length:,} rows when they were counted, and has {len(part):,} now: it is random without a "
                "seed, or its source has changed; call persist() on the table, or write it to files first."
            )
        with one_thread():
            return of(first, part)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    except Exception as error:
        raise PartitionError(f"{name}: {error!r}") from error
