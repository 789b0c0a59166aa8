"""Get a set from its public source: download, parse, check, keep.

Sets are kept as ``kind/name.npz`` in the user's cache folder, in the layout of the folder that FEWKERN_DATA names. The
source's own files are not kept.
"""

from __future__ import annotations

import logging
import tempfile
import textwrap
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from experiments.data.formats import Arrays
from experiments.data.sets import CONTENT, SOURCES
from experiments.data.sources import File, Source, content_sha256
from fewkern.io.archive import write_atomically

__all__ = ["DownloadError", "cache_folder", "cached_file", "download_set"]


class DownloadError(Exception):
    """A set cannot be downloaded; the message says why, and what to do, as part of a sentence."""


@cache
def cache_folder() -> Path | None:
    """Where downloaded sets are kept; None without pooch, which knows the place of every system."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("fewkern"))


def cached_file(need: str) -> Path | None:
    """The file of a set named ``kind/name`` that was downloaded before, or None."""
    folder = cache_folder()
    path = None if folder is None else folder / f"{need}.npz"
    return path if path is not None and path.is_file() else None


def download_set(need: str) -> Arrays:
    """The arrays of a set named ``kind/name``, from the first mirror that has it; kept for the next time."""
    folder = cache_folder()
    if folder is None:
        raise DownloadError("to download it, install pooch (pip install 'fewkern[experiments]')")
    reasons = []
    for mirror in SOURCES[need].mirrors:
        try:
            sets = _from_mirror(SOURCES[need], mirror)
        except DownloadError as error:
            reasons.append(str(error))
            continue
        _keep(folder, sets)
        return sets[need]
    raise DownloadError("; ".join([*reasons, "try again later or with another network connection"]))


def _from_mirror(source: Source, mirror: tuple[File, ...]) -> dict[str, Arrays]:
    """All sets of a source, parsed and checked."""
    contents = [content for file in mirror for content in _contents(file)]
    where = " and ".join(file.url for file in mirror)
    sets = {}
    for need, parse in source.parsers.items():
        try:
            arrays = parse(*contents)
        except Exception as error:  # every reader has its own exceptions for another format
            raise DownloadError(f"{where} is not the file it was ({_brief(error)})") from error
        expected, got = CONTENT.get(need), content_sha256(arrays)
        if expected is not None and got != expected:
            raise DownloadError(
                f"{where} holds other data than it did (expected content of SHA-256 {expected}, got {got})"
            )
        sets[need] = arrays
    return sets


def _contents(file: File) -> list[bytes]:
    """The bytes of a file, or of its members."""
    import pooch

    known = None if file.sha256 is None else f"sha256:{file.sha256}"
    # pooch trusts a file of unknown checksum that is there already, so every download gets its own folder
    with tempfile.TemporaryDirectory() as folder, _quiet(pooch.get_logger()):
        try:
            path = pooch.retrieve(file.url, known_hash=known, fname=PurePosixPath(file.url).name, path=folder)
        except OSError as error:
            raise DownloadError(f"{file.url} cannot be downloaded ({_brief(error)})") from error
        except ValueError as error:  # pooch's way to say that the checksum differs
            # the first sentence has both checksums; the rest is advice for developers
            raise DownloadError(f"{file.url} is not the file it was ({str(error).partition('. ')[0]})") from error
        if not file.members:
            return [Path(path).read_bytes()]
        try:
            with zipfile.ZipFile(path) as archive:
                return [archive.read(member) for member in file.members]
        except Exception as error:  # zip and zlib have their own exceptions for damaged bytes
            raise DownloadError(f"{file.url} is not the archive it was ({_brief(error)})") from error


def _keep(folder: Path, sets: dict[str, Arrays]) -> None:
    for need, arrays in sets.items():
        path = folder / f"{need}.npz"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, lambda handle, arrays=arrays: np.savez_compressed(handle, **arrays))
        except OSError as error:
            warnings.warn(
                f"{need} was downloaded but cannot be kept in {folder} ({_brief(error)}); it will be downloaded again "
                "next time.",
                stacklevel=2,
            )
            return


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch's advice on checksums: users cannot act on it."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _brief(error: Any) -> str:
    """An exception in one short line."""
    return f"{type(error).__name__}: {textwrap.shorten(str(error), 160, placeholder=' ...')}"
