"""Several files, and large ones, as one table that comes in parts."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewkern.arrays.frames import FrameParts, Piece, require_dask
from fewkern.tables.pieces import STREAM_BYTES, Opened, is_large, open_file
from fewkern.tables.reading import SUFFIXES, Marks, ReadTable, check_marks, kind_of, read_table

__all__ = ["find_files", "open_tables"]


def find_files(names: Sequence[str]) -> tuple[Path, ...]:
    """The files that names, patterns such as ``part-*.parquet`` and folders stand for, each once.

    Those of a pattern or a folder are in the order of their names. Of a folder, files are left out that are no tables,
    or whose name begins with a dot or an underscore.
    """
    found: dict[Path, None] = {}
    for name in names:
        found |= dict.fromkeys(_matches(name))
    if len(found) > 1 and Path("-") in found:
        raise ValueError("standard input (-) cannot be read together with files.")
    return tuple(found)


def _matches(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        return _inside(path)
    if path.exists() or not glob.has_magic(name):
        return [path]
    found = sorted(Path(match) for match in glob.glob(name, recursive=True))
    found = [path for path in found if path.is_file()]
    if not found:
        raise ValueError(f"no file matches the pattern {name!r}.")
    return found


def _inside(folder: Path) -> list[Path]:
    """The tables in a folder, which must be of one kind."""
    found = [p for p in sorted(folder.iterdir()) if p.is_file() and p.name[0] not in "._"]
    found = [path for path in found if kind_of(path)[0] in SUFFIXES]
    if not found:
        raise ValueError(f"the folder {folder} has no tables: no file in it ends in {', '.join(SUFFIXES)}.")
    kinds = sorted({kind_of(path)[0] for path in found})
    if len(kinds) > 1:
        raise ValueError(
            f"the folder {folder} has files of several kinds ({', '.join(kinds)}); name those that are meant, for "
            f"example '{folder / ('*' + kinds[0])}'."
        )
    return found


def open_tables(
    files: Sequence[Path],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    skip: int | None = None,
    verbose: bool = False,
) -> ReadTable:
    """One table from files: in memory if it is a single one that is not large, otherwise in parts.

    Raises a ValueError, with the names of the file and of the column, if a file has other columns than the first, or
    columns of another type.

    Returns
    -------
    ReadTable
        ``frame`` is a data frame of pandas, or :class:`~fewkern.arrays.frames.FrameParts`, which
        :meth:`TableModel.fit` takes.
    """
    if len(files) == 1 and not is_large(files[0]):
        return read_table(files[0], sep=sep, decimal=decimal, skip=skip)
    require_dask(f"several files, and files of more than {STREAM_BYTES >> 20} MiB, are read")
    marks = Marks(check_marks(sep, decimal), decimal, skip)
    opened = [open_file(files[0], marks)]
    for path in files[1:]:
        opened.append(open_file(path, marks, opened[0].style))
        _check_alike(opened[0], opened[-1])
    columns = tuple(map(str, opened[0].empty.columns))
    pieces = [_Aligned(piece, columns) for file in opened for piece in file.pieces]
    parts = FrameParts.of_pieces(pieces, opened[0].empty, verbose)
    if not parts.parts:
        raise ValueError(f"{files[0].name}{' and the other files' if len(files) > 1 else ''}: there are no rows.")
    return ReadTable(parts, opened[0].notes)


def _check_alike(first: Opened, other: Opened) -> None:
    """Raise a ValueError if two files do not belong to one table."""
    ours, theirs = list(map(str, first.empty.columns)), list(map(str, other.empty.columns))
    for name in ours:
        if name not in theirs:
            raise ValueError(f"{other.path.name} lacks the column {name!r}, which {first.path.name} has.")
    for name in theirs:
        if name not in ours:
            raise ValueError(f"{other.path.name} has a column {name!r}, which {first.path.name} lacks.")
    for name in ours:
        kinds = {first.types.get(name, "nothing"), other.types.get(name, "nothing")} - {"nothing"}
        if len(kinds) > 1:
            raise ValueError(
                f"column {name!r} holds {other.types[name]} in {other.path.name}, but {first.types[name]} in "
                f"{first.path.name}; write them with one type."
            )


@dataclass(frozen=True)
class _Aligned:
    """A piece with the columns of the table in their order."""

    piece: Piece
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the piece."""
        return self.piece.name

    def __call__(self) -> Any:
        return self._named(self.piece)[list(self.columns)]

    def count(self) -> int:
        """Number of rows."""
        return int(self._named(self.piece.count))

    def _named(self, read: Callable[[], Any]) -> Any:
        """What ``read`` returns; an error says what was read."""
        try:
            return read()
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error
