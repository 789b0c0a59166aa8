"""Predictions for a table that comes in parts, written part by part: all of them, or nothing."""

from __future__ import annotations

import gzip
import re
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewkern.app.jobs import Asked, Tally, predictions, tally_of
from fewkern.app.outputs import show_table
from fewkern.arrays.frames import FrameParts
from fewkern.io.save import write_atomically
from fewkern.tables.model import TableModel
from fewkern.tables.streams import draw_rows, fetch_rows

__all__ = ["Answers", "picture_rows", "report_rows", "write_answers"]

# Points that a picture of a table in parts shows.
_PICTURE_ROWS = 5_000
# Remarks on the columns that are told.
_TOLD = 8


@dataclass(frozen=True)
class _Answer:
    """What a model says of one part."""

    frame: Any
    tally: Tally
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Asking:
    """What is done with every part."""

    model: TableModel
    asked: Asked

    def __call__(self, first: int, part: Any) -> _Answer:  # noqa: ARG002 - called like all others
        encoded = self.model.encoder_.encode(part)
        found = predictions(self.model, part, self.asked, encoded)
        return _Answer(found, tally_of(self.model, part, encoded), encoded.remarks)


@dataclass
class Answers:
    """Predictions, part after part, and what is told of them once all have come."""

    model: TableModel
    parts: FrameParts
    asked: Asked
    verbose: bool = False
    tally: Tally = field(default_factory=Tally)
    _remarks: dict[str, str] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Any]:
        found = self.parts.each(_Asking(self.model, self.asked), "predicting", self.verbose)
        for name, answer in zip(self.parts.names, found):
            self.tally = self.tally + answer.tally
            for remark in answer.remarks:
                # the same remark on other parts has other numbers
                alike = re.sub(r"\d[\d,.]*|\(.*\)|\bhas\b|\bhave\b", "", remark)
                self._remarks.setdefault(alike, f"{name}: {remark}")
                self._times[alike] += 1
            yield answer.frame

    @property
    def notes(self) -> list[str]:
        """What is unusual about the cells, for every kind of remark the first part that it is about."""
        told = []
        for alike, remark in list(self._remarks.items())[:_TOLD]:
            others = self._times[alike] - 1
            told.append(remark + (f" (and so in {others:,} other part{'s' if others > 1 else ''})" if others else ""))
        if len(self._remarks) > _TOLD:
            told.append(f"and {len(self._remarks) - _TOLD:,} more remarks on the columns")
        return told


def write_answers(answers: Answers, path: Path | None) -> None:
    """Write all predictions to a file, to a folder of Parquet files, or as CSV to standard output."""
    if path is None:
        for k, frame in enumerate(answers):
            show_table(frame.to_csv(index=False, header=k == 0))
        sys.stdout.flush()
    elif not path.suffix:
        _write_folder(answers, path)
    elif path.suffix.lower() in (".parquet", ".pq"):
        write_atomically(path, lambda handle: _write_parquet(answers, handle))
    else:
        write_atomically(path, lambda handle: _write_lines(answers, handle, path.name.lower()))


def _write_text(answers: Answers, out: Any, sep: str) -> None:
    for k, frame in enumerate(answers):
        frame.to_csv(out, index=False, sep=sep, header=k == 0)
    out.flush()


def _write_lines(answers: Answers, handle: Any, name: str) -> None:
    packed = gzip.GzipFile(fileobj=handle, mode="wb", filename="", mtime=0) if name.endswith(".gz") else None
    _write_text(answers, packed or handle, "\t" if name.endswith(".tsv") else ",")
    if packed is not None:
        packed.close()


def _write_parquet(answers: Answers, handle: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for frame in answers:
            schema = None if writer is None else writer.schema
            try:
                table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise ValueError(
                    f"the columns of the parts do not go into one Parquet file ({error}); write .csv, or a folder."
                ) from error
            writer = writer or pq.ParquetWriter(handle, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _write_folder(answers: Answers, path: Path) -> None:
    """A Parquet file for every part; the folder has its name once all are there."""
    part = path.with_name(f".fewkern-{secrets.token_hex(8)}.part")
    part.mkdir()
    try:
        for k, frame in enumerate(answers):
            frame.to_parquet(part / f"part-{k:05d}.parquet", index=False)
        if path.exists():
            path.rmdir()  # it was empty when the work began
        part.rename(path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def picture_rows(model: TableModel, table: Any) -> Any:
    """Rows for a picture that shows rows: all that are in memory, some of a table that comes in parts."""
    if not isinstance(table, FrameParts):
        return table
    return draw_rows(table, _PICTURE_ROWS).frame if model.task_ in ("reduce", "density") else None


def report_rows(model: TableModel, table: Any) -> tuple[Any, str]:
    """Rows for a report, and what they are to the model: of a table in parts those that were held out, if any were."""
    if not isinstance(table, FrameParts):
        return table, "fitted"
    if model.held_out_ is not None:
        return fetch_rows(table, model.held_out_.rows), "new"
    return draw_rows(table, _PICTURE_ROWS, model.targets).frame, "auto"
