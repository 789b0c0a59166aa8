"""One line for every error: what is wrong and what to do, or where the details of an unforeseen one were written."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import traceback

from fewkern import __version__

__all__ = ["one_line"]

# Characters of a message of somebody else that are shown.
_SHOWN_CHARACTERS = 200
# Packages whose ValueError and TypeError tell a user what to do.
_OURS = ("fewkern", "sklearn")


def one_line(error: BaseException) -> str:
    """The message of an error that was foreseen; of any other, its name and the file with its traceback."""
    text = " ".join(str(error).split())
    if _foreseen(error):
        return text
    if isinstance(error, MemoryError):
        what = "there is not enough memory; use fewer rows or columns (--drop), or give the table as several files"
    else:
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]} ..."
        what = f"this was not foreseen: {type(error).__name__}: {shown}".rstrip(": ")
    try:
        return f"{what}. The details are in {_log(error)}; please report them, or leave out unusual columns (--drop)."
    except OSError:
        return f"{what}. The details could not be written to {tempfile.gettempdir()}."


def _foreseen(error: BaseException) -> bool:
    """Whether the message was written for the one who reads it."""
    if isinstance(error, OSError | ImportError) or type(error).__name__ == "PartitionError":
        return True
    if not isinstance(error, ValueError | TypeError) or error.__traceback__ is None:
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    # a line without "raise" called something that is not written in Python, as most of NumPy is
    said = not last.line or last.line.startswith("raise")
    return said and any(name in last.filename.split(os.sep) for name in _OURS)


def _log(error: BaseException) -> str:
    """Write the traceback to a new file; returns its name."""
    handle, path = tempfile.mkstemp(prefix="fewkern-", suffix=".log")
    with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"fewkern {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        file.write(shlex.join(["fewkern", *sys.argv[1:]]) + "\n\n")
        file.writelines(traceback.format_exception(error))
    return path
