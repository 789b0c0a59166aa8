"""The terminal: notes, errors in one line, and tables that commands read."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from fewkern import __version__
from fewkern.app.outputs import Outputs
from fewkern.arrays.texts import printable


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

    return _noted(files[0], open_tables(files, **marks, verbose=follows(quiet)), quiet)


def _noted(table: Path, found: Any, quiet: bool) -> Any:
    for note in found.notes:
        say(f"{table}: {note}", quiet)
    return found.frame


def follows(quiet: bool) -> bool:
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
