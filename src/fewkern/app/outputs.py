"""Files that a command writes: checked before the work, written one after the other, named when something fails."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fewkern.arrays.texts import printable

MODEL, PAGE, PICTURE = (".npz",), (".html", ".htm"), (".png", ".pdf", ".svg")
TABLE = (".csv", ".tsv", ".csv.gz", ".parquet", ".pq")
_HINTS = dict.fromkeys(
    (".onnx", ".c", ".ino", ".js", ".mjs", ".sql"), "'fewkern export' writes ONNX, C, JavaScript and SQL"
)
_HINTS |= {".xlsx": "a spreadsheet program reads .csv", ".xls": "a spreadsheet program reads .csv"}


class Outputs:
    """What a command will write, and what it has written."""

    def __init__(self, *inputs: str | Path | None) -> None:
        self.written: list[str] = []
        self._inputs: list[Path] = []
        self._claimed: list[Path] = []
        self._waiting: dict[Path, Path] | None = None
        self.reads(*(Path(path) for path in inputs if path is not None))

    def reads(self, *paths: Path) -> tuple[Path, ...]:
        """Files that the command reads, and so must not write."""
        self._inputs += [path for path in paths if str(path) != "-"]
        return paths

    def claim_folder(self, path: Path) -> Path:
        """Check a folder before the work: that it is new or empty, and can be made."""
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: the folder {path.parent} does not exist; make it first.")
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
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: the folder {path.parent} does not exist; make it first.")
        if any(_same(path, other) for other in self._inputs):
            raise ValueError(f"cannot write {path}: that is the file to read; choose another name.")
        if any(_same(path, other) for other in self._claimed):
            raise ValueError(f"cannot write {path}: two results would go to the same file; choose another name.")
        self._claimed.append(path)
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


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there yet
        return os.path.realpath(one) == os.path.realpath(other)


def show_table(text: str) -> None:
    """A part of a table on stdout: as it is for other programs, with escapes on a terminal."""
    sys.stdout.write(printable(text, keep="\r\n\t") if sys.stdout.isatty() else text)
