"""Results of experiments and benchmarks: one record per unit of work, in a journal, which may be packed at the end.

A run appends every record to its journal, such as ``results/PAPER-NAME.jsonl``, as it comes, so that an interrupted run
loses nothing; git ignores it. Packed, it is ``results/PAPER-NAME.jsonl.xz``, which git keeps: sorted, one record per
unit, replaced atomically, the same bytes for the same records. A crash while packing leaves both files, and reading
them gives the same records.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fewkern.io.archive import write_atomically

try:
    import fcntl
except ImportError:  # Windows: two runs of one experiment at a time are the user's care
    fcntl = None  # type: ignore[assignment]

__all__ = ["RESULTS", "BusyError", "Record", "Store", "stored"]

RESULTS = Path(__file__).parent / "results"

Record = dict[str, Any]
Unit = tuple[Any, ...]


class BusyError(Exception):
    """Another process runs the same experiment."""


class Store:
    """Records in a file, each of which belongs to the unit that its ``fields`` name; of a unit the last one counts."""

    def __init__(self, journal: Path, fields: tuple[str, ...] = ("row", "protocol", "run")) -> None:
        self.journal, self.packed, self.fields = journal, journal.with_name(f"{journal.name}.xz"), fields

    def read(self) -> list[Record]:
        """All records, sorted by their units."""
        found = self.by_unit()
        return [found[unit] for unit in sorted(found)]

    def by_unit(self) -> dict[Unit, Record]:
        """The record of every unit: those packed, then those of the journal."""
        lines = []
        if self.packed.is_file():
            lines += lzma.decompress(self.packed.read_bytes()).decode().splitlines()
        if self.journal.is_file():
            lines += self.journal.read_text().splitlines()
        found: dict[Unit, Record] = {}
        for line in lines:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:  # cut short by a crash
                continue
            found[tuple(record[field] for field in self.fields)] = record
        return found

    def forget(self, units: Iterable[Unit]) -> None:
        """Remove the records of these units."""
        gone = set(units)
        left = [json.dumps(record) + "\n" for unit, record in self.by_unit().items() if unit not in gone]
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.journal, lambda handle: handle.write("".join(left).encode()))
        self.packed.unlink(missing_ok=True)

    def checksum(self) -> str:
        """Changes with the results."""
        content = [(record["key"], record["values"]) for record in self.read()]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def append(self, records: Iterable[Record]) -> None:
        """Write each record to the journal as it comes, and see it on the disk before the next."""
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            self._end_last_line(file)
            for record in records:
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def pack(self) -> None:
        """Move the journal into the packed file."""
        if not self.journal.is_file():
            return
        with self._locked():
            text = "".join(json.dumps(record, sort_keys=True) + "\n" for record in self.read())
            content = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
            write_atomically(self.packed, lambda handle: handle.write(content))
            self.journal.unlink()

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """The journal, open to append, for this process alone."""
        with self.journal.open("ab+") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise BusyError(
                        f"another process writes to {self.journal.name}; wait for it, or stop it, and run again."
                    ) from None
            yield file

    @staticmethod
    def _end_last_line(file: IO[bytes]) -> None:
        """End a line that a crash has cut short, so that the next record starts a new one."""
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                file.write(b"\n")


def stored(paper: str, name: str) -> Store:
    """The results of an experiment."""
    return Store(RESULTS / f"{paper}-{name}.jsonl")
