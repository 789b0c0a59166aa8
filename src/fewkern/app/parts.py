"""Tables that come in parts: predictions, written part by part (all of them, or nothing), and rows to show."""

from __future__ import annotations

import gzip
import re
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fewkern.app.jobs import Asked, Tally, predictions, tally_of
from fewkern.app.outputs import show_table
from fewkern.arrays.frames import FrameParts
from fewkern.io.save import write_atomically
from fewkern.reporting.formatting import plural
from fewkern.tables.frames import cut_short, draw_rows, fetch_rows
from fewkern.tables.model import TableModel
from fewkern.tables.predicting import note_on_gaps

# Points that a picture of a table in parts shows.
_PICTURE_ROWS = 5_000
# How formulas begin in spreadsheet programs, and texts that begin so and are none.
_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+][\d.,]+(e[-+]?\d+)?%?", re.IGNORECASE)


def _answer(model: TableModel, asked: Asked, _: int, part: Any) -> tuple[Any, Tally, tuple[str, ...]]:
    """Predictions for a part of a table, how right they are, and remarks on its cells."""
    encoded = model.encoder_.encode(part)
    remarks = encoded.remarks + (note_on_gaps(encoded) if model.task_ == "density" else ())
    return predictions(model, part, asked, encoded), tally_of(model, part, encoded), remarks


@dataclass
class Answers:
    """Predictions for a table, part after part, and what is told of them once all have come."""

    model: TableModel
    table: Any
    """A data frame, or parts."""
    asked: Asked
    verbose: bool = False
    tally: Tally = field(default_factory=Tally)
    _remarks: dict[str, str] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Any]:
        answer = partial(_answer, self.model, self.asked)
        if isinstance(self.table, FrameParts):
            names, found = self.table.names, self.table.each(answer, "predicting", self.verbose)
        else:
            names, found = ("",), iter([answer(0, self.table)])
        for name, (frame, tally, remarks) in zip(names, found):
            self.tally = self.tally + tally
            for remark in remarks:
                # the same remark on other parts has other numbers and examples; names of columns are in quotes
                alike = re.sub(r"('[^']*')|\d[\d,.]*|\(.*\)|\bhas\b|\bhave\b", r"\1", remark)
                self._remarks.setdefault(alike, f"{name}: {remark}" if name else remark)
                self._times[alike] += 1
            yield frame

    @property
    def notes(self) -> tuple[str, ...]:
        """What is unusual about the cells, for every kind of remark the first part that it is about."""
        told = []
        for alike, remark in self._remarks.items():
            others = self._times[alike] - 1
            told.append(remark + (f" (also in {plural(others, 'other part')})" if others else ""))
        return cut_short(told, "remarks on the columns")


def no_formulas(frames: Iterable[Any]) -> Iterator[Any]:
    """The frames with an apostrophe before every name and text that a spreadsheet program would take for a formula."""
    for frame in frames:
        words = frame.select_dtypes(["object", "string", "category"])
        yield frame.assign(**words.astype(object).map(_harmless)).rename(columns=_harmless)


def _harmless(cell: Any) -> Any:
    return (
        f"'{cell}" if isinstance(cell, str) and cell.startswith(_BEGINNINGS) and not _NUMBER.fullmatch(cell) else cell
    )


def write_frames(frames: Iterable[Any], path: Path | None) -> None:
    """Write the parts of a table to a file, to a folder of Parquet files, or as CSV to standard output."""
    if path is None:
        for k, frame in enumerate(frames):
            show_table(frame.to_csv(index=False, header=k == 0))
        sys.stdout.flush()
    elif not path.suffix:
        _write_folder(frames, path)
    elif path.suffix.lower() in (".parquet", ".pq"):
        write_atomically(path, lambda handle: _write_parquet(frames, handle))
    else:
        write_atomically(path, lambda handle: _write_text(frames, handle, path.name.lower()))


def _write_text(frames: Iterable[Any], handle: Any, name: str) -> None:
    packed = gzip.GzipFile(fileobj=handle, mode="wb", filename="", mtime=0) if name.endswith(".gz") else None
    for k, frame in enumerate(frames):
        frame.to_csv(packed or handle, index=False, sep="\t" if name.endswith(".tsv") else ",", header=k == 0)
    if packed is not None:
        packed.close()


def _write_parquet(frames: Iterable[Any], handle: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for frame in frames:
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


def _write_folder(frames: Iterable[Any], path: Path) -> None:
    """A Parquet file for every part; the folder has its name once all are there."""
    part = path.with_name(f".fewkern-{secrets.token_hex(8)}.part")
    part.mkdir()
    try:
        for k, frame in enumerate(frames):
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
