"""The terminal and the files of a command: notes, errors in one line, tables that it reads, results that it writes."""

from __future__ import annotations

import gzip
import os
import platform
import re
import secrets
import shlex
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from fewkern import __version__
from fewkern.arrays.progress import printable

MODEL, PAGE, PICTURE = (".npz",), (".html", ".htm"), (".png", ".pdf", ".svg")
TABLE = (".csv", ".tsv", ".csv.gz", ".parquet", ".pq")
_HINTS = dict.fromkeys(
    (".onnx", ".c", ".ino", ".js", ".mjs", ".sql"), "'fewkern export' writes ONNX, C, JavaScript and SQL"
)
_HINTS |= {".xlsx": "a spreadsheet program reads .csv", ".xls": "a spreadsheet program reads .csv"}
# How formulas begin in spreadsheet programs, and texts that begin so and are none.
_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+][\d.,]+(e[-+]?\d+)?%?", re.IGNORECASE)


def say(text: str, quiet: bool = False) -> None:
    """A note on stderr."""
    if not quiet:
        sys.stderr.write(f"note: {printable(text)}\n")


def show_line(text: str) -> None:
    """A line on stdout, or several, at once."""
    sys.stdout.write(printable(text, keep="\n") + "\n")
    sys.stdout.flush()


@contextmanager
def work(*inputs: Path) -> Iterator[Outputs]:
    """The work of a command: any error is one line on stderr, with exit code 1; an interrupt has the code 130."""
    outputs = Outputs(*inputs)
    try:
        yield outputs
    except BrokenPipeError:  # the reader of a pipe has seen enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        sys.stderr.write(f"fewkern: {printable(one_line(error))}\n")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        done = f"written: {', '.join(outputs.written)}" if outputs.written else "nothing was written"
        sys.stderr.write(f"fewkern: stopped; {done}.\n")
        raise typer.Exit(130) from None


@contextmanager
def warnings_as_notes(quiet: bool = False) -> Iterator[None]:
    """Show warnings as notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say(text, quiet)


def read_one(table: Path, marks: Mapping[str, Any], quiet: bool) -> Any:
    """One table in memory; ``marks`` are separator, decimal mark and lines to skip."""
    from fewkern.tables.reading import read_table

    return _noted(table, read_table(table, **marks), quiet)


def open_files(files: tuple[Path, ...], marks: Mapping[str, Any], quiet: bool) -> Any:
    """One table from files, in memory or in parts."""
    from fewkern.tables.files import open_tables

    return _noted(files[0], open_tables(files, **marks, verbose=shows_progress(quiet)), quiet)


def _noted(table: Path, found: Any, quiet: bool) -> Any:
    for note in found.notes:
        say(f"{table}: {note}", quiet)
    return found.frame


def shows_progress(quiet: bool) -> bool:
    """Whether progress is shown: stderr is a terminal, and not quiet."""
    return sys.stderr.isatty() and not quiet


def one_line(error: BaseException) -> str:
    """The message of an error that was foreseen; of any other, its name and the file with its traceback."""
    text = " ".join(str(error).split())
    if _foreseen(error):
        return text
    if isinstance(error, MemoryError):
        what = "there is not enough memory; use fewer rows or columns (--drop), or give the table as several files"
    else:
        shown = text if len(text) <= 200 else f"{text[:200]} ..."
        what = f"unexpected error: {type(error).__name__}: {shown}".rstrip(": ")
    try:
        return f"{what}. The details are in {_log(error)}; please report them, or leave out unusual columns (--drop)."
    except OSError:
        return f"{what}. The details could not be written to {tempfile.gettempdir()}."


def _foreseen(error: BaseException) -> bool:
    """Whether the message was written for the user: by us or by scikit-learn."""
    if isinstance(error, OSError | ImportError) or type(error).__name__ == "PartitionError":
        return True
    if not isinstance(error, ValueError | TypeError) or error.__traceback__ is None:
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    # a line without "raise" called something that is not written in Python, as most of NumPy is
    said = not last.line or last.line.startswith("raise")
    return said and not {"fewkern", "sklearn"}.isdisjoint(last.filename.split(os.sep))


def _log(error: BaseException) -> str:
    """Write the traceback to a new file; returns its name."""
    handle, path = tempfile.mkstemp(prefix="fewkern-", suffix=".log")
    with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"fewkern {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        file.write(shlex.join(["fewkern", *sys.argv[1:]]) + "\n\n")
        file.writelines(traceback.format_exception(error))
    return path


class Outputs:
    """What a command will write, and what it has written."""

    def __init__(self, *inputs: Path) -> None:
        self.written: list[str] = []
        self._taken: list[tuple[Path, str]] = []  # files that must not be written, and why
        self._waiting: dict[Path, Path] | None = None
        self.reads(*inputs)

    def reads(self, *paths: Path) -> tuple[Path, ...]:
        """Files that the command reads, and so must not write."""
        self._taken += [(path, "that is the file to read") for path in paths if str(path) != "-"]
        return paths

    def claim_folder(self, path: Path) -> Path:
        """Check a folder before the work: that it is new or empty, and can be made."""
        _check_parent(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(f"cannot write {path}: it exists, and is not an empty folder; choose another name.")
        return path

    def claim(self, path: Path, suffixes: tuple[str, ...]) -> Path:
        """Check a path before the work: its suffix, its folder, and that it is no input and no other output."""
        if not path.suffix and suffixes is MODEL:
            path = path.with_suffix(MODEL[0])
        if not path.name.lower().endswith(suffixes):
            hint = _HINTS.get(path.suffix.lower())
            raise ValueError(
                f"cannot write {path}: expected a file that ends in {', '.join(suffixes)}"
                + (f" ({hint})." if hint else ".")
            )
        if path.is_dir():
            raise ValueError(f"cannot write {path}: it is a folder; give the name of a file.")
        _check_parent(path)
        for other, why in self._taken:
            if _same(path, other):
                raise ValueError(f"cannot write {path}: {why}; choose another name.")
        self._taken.append((path, "two results would go to the same file"))
        return path

    def write(self, path: Path, make: Callable[[Path], Any]) -> None:
        """Call ``make(path)``, and keep in mind that the file is there."""
        before, to = path.exists(), path
        real = Path(os.path.realpath(path))  # the target of a link is replaced, a device is written to
        if self._waiting is not None and (real.is_file() or not before):
            to = self._waiting[real] = real.with_name(f".fewkern-{secrets.token_hex(8)}.part{path.suffix}")
        try:
            make(to)
        except OSError as error:
            reason = error.strerror or str(error).removeprefix(f"cannot write {to.name}: ").rstrip(".")
            done = f"; written before: {', '.join(self.written)}" if self.written else "; nothing was written"
            raise OSError(f"cannot write {path}: {reason}{done}.") from error
        self.written.append(f"{path} (replaced)" if before else str(path))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Files that are written inside take their names at the end, one right after the other.

        So a kill leaves those of one run: all the old ones, or all the new ones. After an error, those that are
        complete take their names.
        """
        self._waiting = {}
        try:
            yield
        finally:
            for path, part in self._waiting.items():
                if part.exists():
                    if path.exists():
                        shutil.copymode(path, part)
                    os.replace(part, path)
            self._waiting = None


def _check_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: the folder {path.parent} does not exist; make it first.")


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there yet
        return os.path.realpath(one) == os.path.realpath(other)


def write_frames(frames: Iterable[Any], path: Path | None, no_formulas: bool = False) -> None:
    """Write the parts of a table to a file, to a folder of Parquet files, or as CSV to standard output.

    ``no_formulas``: texts that a spreadsheet program would take for formulas get an apostrophe.
    """
    from fewkern.io.archive import write_atomically

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
