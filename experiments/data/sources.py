"""What is known of the source of a benchmark set: its files, their mirrors, and the checksum of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.data.formats import Arrays

__all__ = ["File", "Mirrors", "Source", "cai", "content_sha256", "uci"]


@dataclass(frozen=True)
class File:
    """One file to download."""

    url: str
    sha256: str | None = None
    """Where it is known."""
    members: tuple[str, ...] = ()
    """What to take out of it, if it is a zip archive."""


Mirrors = tuple[tuple[File, ...], ...]


@dataclass(frozen=True)
class Source:
    """One or more sets that come together."""

    mirrors: Mirrors
    """Mirrors, in order of preference."""
    parsers: dict[str, Callable[..., Arrays]]
    """From the contents of the files, in their order, to the arrays of each set, by ``kind/name``."""


def content_sha256(arrays: Arrays) -> str:
    """SHA-256 of the content of a set; how it is stored does not matter.

    For every array, in the order of their names: a line ``name type shape`` in ASCII, then the values: numbers in C
    order and little-endian, strings in UTF-8 with a line feed between them. The type is NumPy's short name, as
    ``<f8``, or ``text``; the shape is a Python tuple.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.kind == "U":
            kind, values = "text", "\n".join(array.ravel().tolist()).encode()
        else:
            little = array.dtype.newbyteorder("<")
            kind, values = little.str, array.astype(little).tobytes()
        digest.update(f"{name} {kind} {array.shape}\n".encode())
        digest.update(values)
    return digest.hexdigest()


def uci(folder: str, number: int, archive: str, files: dict[str, str | None]) -> Mirrors:
    """The two places where the UCI Machine Learning Repository keeps the files of a set: plain, and in one archive."""
    host = "https://archive.ics.uci.edu"
    plain = tuple(File(f"{host}/ml/machine-learning-databases/{folder}/{name}", sha) for name, sha in files.items())
    zipped = File(f"{host}/static/public/{number}/{archive}.zip", members=tuple(files))
    return plain, (zipped,)


def cai(path: str) -> Mirrors:
    """The page of Deng Cai."""
    return ((File(f"http://www.cad.zju.edu.cn/home/dengcai/Data/{path}"),),)
