"""What the commands add to a :class:`TableModel`: the embedded table, files of predictions, scores, pictures."""

from __future__ import annotations

import gzip
import json
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewkern.arrays.frames import FrameParts
from fewkern.arrays.progress import printable
from fewkern.base import path_of, vectors_moved
from fewkern.datasets import make_banana
from fewkern.io import load
from fewkern.io.archive import write_atomically
from fewkern.plotting import WaterfallDisplay
from fewkern.reporting import ReportSettings
from fewkern.reporting.formatting import number, percent, plural
from fewkern.reporting.judgement import wilson
from fewkern.tables.columns import Encoded
from fewkern.tables.model import TableModel
from fewkern.tables.parts import draw_rows, fetch_rows
from fewkern.tables.predicting import known_targets, note_on_gaps
from fewkern.tables.reading import cut_short, nearest
from fewkern.tables.schema import resolve_target

if TYPE_CHECKING:
    from fewkern.app._terminal import ExtraColumns

# Points that a picture of a table in parts shows.
_PICTURE_ROWS = 5_000
# How formulas begin in spreadsheet programs, and texts that begin like one but are not.
_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+][\d.,]+(e[-+]?\d+)?%?", re.IGNORECASE)


def embedded_table() -> Any:
    """The table used when none is given: 2,000 generated points in two interlocked crescents."""
    import pandas as pd

    X, y = make_banana(2000, random_state=0)
    return pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "side": np.where(y == 1, "right", "left")})


def load_table_model(path: Path) -> TableModel:
    """The model of a table in a file."""
    found = load(path)
    if not isinstance(found, TableModel):
        raise ValueError(
            f"{path.name} holds a bare {type(found).__name__}, saved from Python; load it there with fewkern.load."
        )
    return found


def rows_inside(model: TableModel) -> str:
    """A sentence about the rows of the table that a model file contains."""
    estimator = model.estimator_
    if not vectors_moved(estimator) and getattr(estimator.expansion_, "indices", None) is not None:
        # a compressed model with the vectors of the long one does not know whether they were moved
        are = "may be" if hasattr(estimator, "source_") else "are"
        return f"The vectors that are kept {are} rows of the table: treat the file as you treat the table."
    moved = "The vectors that are kept were moved, and are not rows of the table."
    if getattr(estimator, "novelty_", None) is None:
        return moved
    return f"{moved} But novelty is measured by rows, and the file contains those too: treat it as you treat the table."


def _columns(model: TableModel, encoded: Encoded, extra: ExtraColumns) -> dict[str, Any]:
    """The columns of the predictions; the first ones are those of the targets, components or log densities."""
    if model.task_ == "density":
        columns: dict[str, Any] = {"log_density": model.score_samples(encoded)}
    elif model.task_ == "reduce":
        names = model.estimator_.get_feature_names_out()
        columns = {str(name): values for name, values in zip(names, model.transform(encoded).T)}
    else:
        answers = np.asarray(model.predict(encoded))
        columns = dict(zip(model.targets, answers.reshape(-1, len(model.targets)).T))
    if extra.proba:
        probabilities = _method(model, "predict_proba", "--proba", "probabilities")(encoded)
        columns |= {f"p({label})": values for label, values in zip(model.classes_, probabilities.T)}
    if extra.interval is not None:
        ends = _method(model, "predict_interval", "--interval", "intervals")(encoded, coverage=extra.interval)
        for name, (low, high) in zip(model.targets, ends.reshape(-1, len(model.targets), 2).transpose(1, 2, 0)):
            of = f" {name}" if len(model.targets) > 1 else ""
            columns |= {f"low{of}": low, f"high{of}": high}
    if extra.sets is not None:
        members = _method(model, "predict_set", "--sets", "sets of classes")(encoded, coverage=extra.sets)
        columns["set"] = [" | ".join(str(c) for c, member in zip(model.classes_, row) if member) for row in members]
    if extra.novelty:
        columns["novelty"] = _method(model, "novelty", "--novelty", "novelty")(encoded)
        if hasattr(model.estimator_, "novelty_threshold"):
            columns["novel"] = columns["novelty"] > model.estimator_.novelty_threshold()
    return columns


def _method(model: TableModel, method: str, option: str, what: str) -> Any:
    if not hasattr(model, method):
        raise ValueError(f"{option}: this model gives no {what}.")
    return getattr(model, method)


def _joined(frame: Any, columns: dict[str, Any], extra: ExtraColumns) -> Any:
    """A data frame with the columns of the table that were asked for, and those of the predictions."""
    import pandas as pd

    beside = frame if extra.with_input else frame[[]]
    if extra.id is not None and not extra.with_input:
        if extra.id not in frame.columns:
            raise ValueError(f"--id: there is no column {extra.id!r}; {nearest(extra.id, frame.columns)}")
        beside = frame[[extra.id]]
    renamed = {f"predicted {name}" if name in beside.columns else name: values for name, values in columns.items()}
    return pd.concat([beside, pd.DataFrame(renamed, index=frame.index)], axis=1)


@dataclass(frozen=True)
class Tally:
    """Errors of the predictions for some rows; tallies of the parts of a table are merged by ``+``."""

    count: int = 0
    loss: float = 0.0
    """Number of wrong predictions, or the sum of the squared errors of numbers."""
    mean: float = 0.0
    spread: float = 0.0
    """Sum of the squared distances of numbers from their mean."""

    @classmethod
    def of(cls, model: TableModel, frame: Any, columns: dict[str, Any]) -> Tally:
        """The tally of a table that has the target, and of the columns of its predictions."""
        # one figure for several targets would add up different units
        if model.task_ not in ("classify", "regress") or len(model.targets) > 1 or model.target_ not in frame.columns:
            return cls()
        truth, predicted = known_targets(model.truth(frame), columns[model.targets[0]])
        if model.task_ == "classify" or not len(truth):
            return cls(len(truth), float(np.sum(truth != predicted)))
        mean = float(np.mean(truth))
        return cls(len(truth), float(np.sum((truth - predicted) ** 2)), mean, float(np.sum((truth - mean) ** 2)))

    def __add__(self, other: Tally) -> Tally:
        count = self.count + other.count
        share, apart = other.count / max(count, 1), other.mean - self.mean
        spread = self.spread + other.spread + apart**2 * self.count * share
        return Tally(count, self.loss + other.loss, self.mean + share * apart, spread)


def score_line(model: TableModel, tally: Tally) -> list[str]:
    """The error rate or RMSE and R², where the table has the target."""
    if not tally.count:
        return []
    if model.task_ == "classify":
        wrong = int(tally.loss)
        low, high = wilson(wrong, tally.count)
        share = f"{percent(wrong / tally.count)}; 95% CI {percent(low).removesuffix('%')}–{percent(high)}"
        score = f"{wrong:,} of {tally.count:,} rows are wrong ({share})"
    else:
        r2 = f", R² {1 - tally.loss / tally.spread:.3f}" if tally.spread else ""
        score = f"RMSE {number((tally.loss / tally.count) ** 0.5, 4)}{r2} on {tally.count:,} rows"
    return [f"the table has the target {model.target_!r}: {score}"]


def _predict_part(model: TableModel, extra: ExtraColumns, _: int, part: Any) -> tuple[Any, Tally, tuple[str, ...]]:
    """Predictions for a part of a table, their tally, and remarks on its cells."""
    encoded = model.encoder_.encode(part)
    remarks = encoded.remarks + (note_on_gaps(encoded) if model.task_ == "density" else ())
    columns = _columns(model, encoded, extra)
    return _joined(part, columns, extra), Tally.of(model, part, columns), remarks


@dataclass
class Predictions:
    """Predictions for a table, part by part; their tally and notes are known after the last part."""

    model: TableModel
    table: Any
    """A data frame, or parts."""
    extra: ExtraColumns
    verbose: bool = False
    tally: Tally = field(default_factory=Tally)
    _remarks: dict[str, list[str]] = field(default_factory=dict)
    """Remarks of one kind, one for each part that it is about."""

    def __iter__(self) -> Iterator[Any]:
        predict = partial(_predict_part, self.model, self.extra)
        if isinstance(self.table, FrameParts):
            names, found = self.table.names, self.table.each(predict, "predicting", self.verbose)
        else:
            names, found = ("",), iter([predict(0, self.table)])
        for name, (frame, tally, remarks) in zip(names, found):
            self.tally = self.tally + tally
            for remark in remarks:
                # the same remark on other parts has other numbers and examples; names of columns are in quotes
                alike = re.sub(r"('[^']*')|\d[\d,.]*|\(.*\)|\bhas\b|\bhave\b", r"\1", remark)
                self._remarks.setdefault(alike, []).append(f"{name}: {remark}" if name else remark)
            yield frame

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the cells, each kind once, with the first part that it is about."""
        notes = [
            first + (f" (also in {plural(len(others), 'other part')})" if others else "")
            for first, *others in self._remarks.values()
        ]
        return cut_short(notes, "remarks on the columns")


def write_frames(frames: Iterable[Any], path: Path | None, no_formulas: bool = False) -> None:
    """Write the parts of a table to a file, to a folder of Parquet files, or as CSV to standard output.

    ``no_formulas``: texts that a spreadsheet program would take for formulas get an apostrophe.
    """
    frames = _without_formulas(frames) if no_formulas else frames
    if path is None:
        for k, frame in enumerate(frames):
            text = frame.to_csv(index=False, header=k == 0)  # as it is for other programs, escaped on a terminal
            sys.stdout.write(printable(text, keep="\r\n\t") if sys.stdout.isatty() else text)
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


def _without_formulas(frames: Iterable[Any]) -> Iterator[Any]:
    """The frames with an apostrophe before every name and text that a spreadsheet program would take for a formula."""
    for frame in frames:
        words = frame.select_dtypes(["object", "string", "category"])
        yield frame.assign(**words.astype(object).map(_as_text)).rename(columns=_as_text)


def _as_text(cell: Any) -> Any:
    formula = isinstance(cell, str) and cell.startswith(_BEGINNINGS) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell


def picture_rows(model: TableModel, table: Any) -> Any:
    """Rows for a picture that shows rows: all that are in memory, some of a table that comes in parts."""
    if not isinstance(table, FrameParts):
        return table
    return draw_rows(table, _PICTURE_ROWS).frame if model.task_ in ("reduce", "density") else None


def report_rows(model: TableModel, table: Any) -> tuple[Any, str]:
    """Rows for a report, and how they relate to the fit: of a table in parts the held-out ones, if there are any."""
    if not isinstance(table, FrameParts):
        return table, "fitted"
    if model.held_out_ is not None:
        return fetch_rows(table, model.held_out_.rows), "new"
    return draw_rows(table, _PICTURE_ROWS, model.targets).frame, "auto"


def report_settings(files: Sequence[Path], seed: int = 0, rows: str = "auto") -> ReportSettings:
    """The footer of a report: the files, and the command that was typed."""
    command = " ".join(map(shlex.quote, ["fewkern", *sys.argv[1:]]))
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    source = files[0].name + more if files else None
    return ReportSettings(rows=rows, random_state=seed, source=source, command=command)


def as_json(model: TableModel, **more: Any) -> str:
    """The summary of a model as JSON."""
    facts = {key: value for key, value in asdict(model.facts_).items() if not key.startswith("kept_")}
    judged = None if model.judgement_ is None else asdict(model.judgement_)
    found = {
        "task": model.task_, "model": model.model_, "target": model.target_, "features": model.encoder_.names,
        "facts": facts, "held_out": judged, "notes": model.notes_,
    }  # fmt: skip
    return json.dumps(found | more, indent=2, ensure_ascii=False, default=str)


def picture_of(model: TableModel, frame: Any = None) -> Any:
    """The picture of a model: path, density, or samples on components; None where there is nothing to draw."""
    import matplotlib

    matplotlib.use("Agg")
    from fewkern.plotting import ComponentsDisplay, DensityDisplay, PathDisplay

    estimator = model.estimator_
    if model.task_ == "reduce":
        if frame is None or not estimator.n_components_:  # the samples are not in the file
            return None
        X, colours = model.encoder_.encode(frame).values, None
        for name in set(model.targets) & set(frame.columns):
            target = resolve_target(name, frame[name], "auto")
            X, colours = X[target.rows], target.values
        return ComponentsDisplay.from_estimator(estimator, X, colours).figure_
    if model.task_ == "density":
        if frame is not None:
            encoded = model.encoder_.encode(frame)
            # complete rows, their cells as numbers, in the columns of the fitted table
            frame = model.encoder_.cells(encoded.values[~encoded.gaps]).reindex(columns=model.feature_names_in_)
        return DensityDisplay.from_estimator(model, frame).figure_
    return PathDisplay.from_estimator(estimator).figure_ if path_of(estimator) else None


def counted(frame: Any) -> Any:
    """A table of files for a report: rows are counted from 1, as everywhere in the command line."""
    return frame.set_axis(frame.index + 1)


def waterfall_of(model: TableModel, frame: Any, row: int) -> WaterfallDisplay:
    """What every column contributes to the prediction for one row, counted from 1."""
    if row > len(frame):
        raise ValueError(f"explain: there is no row {row}; the table has {len(frame)} rows.")
    if not hasattr(model, "explain"):
        raise ValueError(f"explain: a model of the task {model.task_!r} predicts nothing that columns could explain.")
    return WaterfallDisplay.of_row(model, frame, row=row - 1)


def step_lines(steps: WaterfallDisplay) -> list[str]:
    """The waterfall as lines of text, the largest share first."""
    rows = [("baseline", f"{steps.baseline:.4g}")]
    rows += [(steps.labels[j], f"{steps.shares[j]:+.4g}") for j in steps.order]
    rows.append((steps.quantity, f"{steps.value:.4g}"))
    width, digits = (max(len(row[k]) for row in rows) for k in (0, 1))
    return [f"{name:{width}}  {number:>{digits}}" for name, number in rows]


def step_figure(steps: WaterfallDisplay) -> Any:
    """The waterfall as a figure."""
    import matplotlib

    matplotlib.use("Agg")
    return steps.plot().figure_


def save_figure(drawn: Any, path: Path) -> None:
    """Write a figure in the format that the suffix names."""
    from matplotlib.pyplot import close

    kind = path.suffix.lstrip(".").lower() or "png"
    try:
        write_atomically(path, lambda handle: drawn.savefig(handle, format=kind, dpi=150))
    finally:
        close(drawn)
