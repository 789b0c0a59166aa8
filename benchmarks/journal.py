"""Results of many units of work in one file, a line each: a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

__all__ = ["Journal", "Record", "run"]

Record = dict[str, Any]
Unit = tuple[Any, ...]


class Journal:
    """A file of records, each of which belongs to the unit that its ``fields`` name; of a unit the last one counts."""

    def __init__(self, path: Path, fields: tuple[str, ...]) -> None:
        self.path, self.fields = path, fields
        self.records = {self._unit(record): record for record in self._read()}

    def _unit(self, record: Record) -> Unit:
        return tuple(record[field] for field in self.fields)

    def _read(self) -> Iterator[Record]:
        if not self.path.is_file():
            return
        for line in self.path.read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue

    def forget(self, units: Iterable[Unit]) -> None:
        """Remove the records of these units from the file."""
        gone = set(units) & set(self.records)
        if not gone:
            return
        self.records = {unit: record for unit, record in self.records.items() if unit not in gone}
        new = self.path.with_suffix(".new")
        new.write_text("".join(json.dumps(record) + "\n" for record in self.records.values()))
        os.replace(new, self.path)

    def append(self, record: Record) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # cut short by a crash
                    file.write(b"\n")
            file.write(json.dumps(record).encode() + b"\n")
        self.records[self._unit(record)] = record


def run(journal: Journal, work: Callable[..., Record], units: Iterable[Unit], jobs: int) -> int:
    """Do the units that the journal does not have, in ``jobs`` processes of one thread; returns how many were done.

    ``work(*unit)`` returns the figures of a unit. Where it raises, the message is what the journal keeps.
    """
    missing = [unit for unit in units if unit not in journal.records]
    done = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(
        delayed(_attempt)(work, unit) for unit in missing
    )
    for count, (unit, figures) in enumerate(done, start=1):
        journal.append({**dict(zip(journal.fields, unit)), **figures})
        print(f"  {count}/{len(missing)}: {', '.join(map(str, unit))}: {_short(figures)}", flush=True)
    return len(missing)


def _attempt(work: Callable[..., Record], unit: Unit) -> tuple[Unit, Record]:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            return unit, work(*unit)
        except Exception as error:
            return unit, {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}


def _short(figures: Record) -> str:
    if "failed" in figures:
        return f"failed, {figures['failed']}"
    vectors = "" if figures["vectors"] is None else f", {figures['vectors']} vectors"
    return f"{figures['error']:.2f}{vectors}, {figures['seconds']:.1f} s"
