"""What every command does with the terminal and with the files it reads."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from fewkern.app._errors import one_line
from fewkern.app.outputs import Outputs
from fewkern.arrays.texts import printable

__all__ = [
    "find_tables",
    "follows",
    "in_parts",
    "open_table",
    "problems",
    "read_one",
    "say",
    "show_line",
    "warnings_as_notes",
]


def say(text: str, quiet: bool = False) -> None:
    """A note on stderr."""
    if not quiet:
        sys.stderr.write(f"note: {printable(text)}\n")


def show_line(text: str) -> None:
    """A line on stdout, or several, at once."""
    sys.stdout.write(printable(text, keep="\n") + "\n")
    sys.stdout.flush()


@contextmanager
def problems(outputs: Outputs | None = None) -> Iterator[None]:
    """Report any error in one line on stderr, with exit code 1; an interrupt has the code 130."""
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe has seen enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        sys.stderr.write(f"fewkern: {printable(one_line(error))}\n")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        written = outputs.written if outputs is not None else []
        sys.stderr.write(
            f"fewkern: stopped; {'written: ' + ', '.join(written) if written else 'nothing was written'}.\n"
        )
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

    return _told(table, read_table(str(table), **marks), quiet)


def open_table(files: tuple[Path, ...], marks: Mapping[str, Any], quiet: bool) -> Any:
    """One table from files, in memory or in parts."""
    from fewkern.tables.files import open_tables

    found = open_tables(files, **marks, verbose=follows(quiet))
    return _told(files[0], found, quiet)


def _told(table: Path, found: Any, quiet: bool) -> Any:
    for note in found.notes:
        say(f"{table}: {note}", quiet)
    return found.frame


def find_tables(tables: list[str] | None) -> tuple[Path, ...]:
    """The files that names, patterns and folders stand for."""
    from fewkern.tables.files import find_files

    return find_files(tables or ())


def in_parts(frame: Any) -> bool:
    """Whether a table is not in memory."""
    from fewkern.arrays.frames import FrameParts

    return isinstance(frame, FrameParts)


def follows(quiet: bool) -> bool:
    """Whether somebody watches the terminal."""
    return sys.stderr.isatty() and not quiet
