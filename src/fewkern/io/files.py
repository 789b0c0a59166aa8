"""Write a file so that a crash leaves either the old one or the new one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], write: Callable[..., object]) -> None:
    """Call ``write(handle)`` on a temporary file beside ``path``, then put it in place of ``path``.

    The content is on the disk before it takes the place of the old file. If anything fails, the old file stays as it
    was, and the temporary one is removed (after a kill it stays behind, named ``.fewkern-*.part``). Several writers do
    not disturb each other; the last one to finish wins. A link stays a link, and its target is replaced; a
    device or a pipe is written to directly. An existing file keeps its permissions.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            write(file)
        return
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path.name}: the folder {path.parent} does not exist; make it first.")
    part = path.with_name(f".fewkern-{secrets.token_hex(8)}.part")
    try:
        # 0o666 less the umask: the permissions of any new file
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except PermissionError as error:
        raise PermissionError(
            f"cannot write {path.name}: you may not make files in the folder {path.parent}; choose another one."
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            if path.exists() and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, where the system can open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:
        pass  # some network file systems cannot; the file itself is safe
    finally:
        os.close(handle)
