"""The container of a model file: a zip of ``.npy`` members, one of them a JSON header with a checksum of all.

Any NumPy can open it with ``np.load``. Reading trusts nothing: sizes are compared with the size of the file before
anything is unpacked, array headers with the bytes that follow them, and the content with the checksum.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from typing import Any, TypeAlias

import numpy as np

__all__ = ["FORMAT_VERSION", "MEMORY_BASE", "MEMORY_FACTOR", "ModelFileError", "pack", "unpack"]

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

FORMAT = "fewkern model"
FORMAT_VERSION = 3
_HEADER, _SUFFIX = "header", ".npy"
# Reading a file allocates at most MEMORY_BASE bytes plus MEMORY_FACTOR times the size of the file. Members that unpack
# to more are refused, and pack does not compress a model that is compressible beyond that.
MEMORY_FACTOR = 100
MEMORY_BASE = 64 * 2**20
_FREE_BYTES = 8 * 2**20
# A character of JSON becomes up to 30 bytes of Python objects, so the header has a limit of its own.
_FREE_HEADER = 2**20
# booleans, whole numbers, floating-point numbers, text
_KINDS = "biufU"
_LAST_CODE_POINT = 0x10FFFF


class ModelFileError(ValueError):
    """The file is not an intact fewkern model file.

    Examples
    --------
    >>> import os, tempfile
    >>> from fewkern import load
    >>> from fewkern.io import ModelFileError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     with open(path, "w") as file:
    ...         _ = file.write("not a model")
    ...     try:
    ...         load(path)
    ...     except ModelFileError as error:
    ...         print(str(error)[:52])
    load: model.npz is not an intact fewkern model file:
    """


def pack(header: dict[str, Any], arrays: Arrays) -> bytes:
    """The bytes of a file with this header (``format`` and checksum are added) and these arrays."""
    members = {name: _to_npy(array) for name, array in arrays.items()}
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, **header}
    content["sha256"] = _digest(content, members)
    text = np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)
    members = {_HEADER: _to_npy(text), **members}
    packed = _zip(members, zipfile.ZIP_DEFLATED)
    if sum(map(len, members.values())) > _limit(len(packed)):
        packed = _zip(members, zipfile.ZIP_STORED)
    return packed


def unpack(handle: Any, size: int) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of an open file of ``size`` bytes; raises ModelFileError, or what zip, NumPy and JSON raise."""
    with zipfile.ZipFile(handle) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if len(set(names)) < len(names) or not all(name.endswith(_SUFFIX) for name in names):
            raise ModelFileError("its members are not arrays")
        if sum(info.file_size for info in infos) > _limit(size):
            raise ModelFileError(f"it would unpack to more than {MEMORY_FACTOR} times its size")
        if archive.getinfo(_HEADER + _SUFFIX).file_size > max(size, _FREE_HEADER):
            raise ModelFileError("its header would unpack to more than its size")
        members = {info.filename.removesuffix(_SUFFIX): archive.read(info) for info in infos}
    header = json.loads(_from_npy(members.pop(_HEADER)).tobytes().decode())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("another program wrote it")
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"its format version is {version!r}")
    if version > FORMAT_VERSION:
        raise ModelFileError(f"fewkern {header.get('fewkern')} wrote it in a newer file format; update fewkern")
    # format 1 had no checksum
    if version > 1 and header.pop("sha256", None) != _digest(header, members):
        raise ModelFileError("its content does not match its checksum")
    return header, {name: _from_npy(content) for name, content in members.items()}


def _limit(size: int) -> int:
    return _FREE_BYTES + MEMORY_FACTOR * size


def _zip(members: dict[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            # a ZipInfo without a date: the same model gives the same bytes
            info = zipfile.ZipInfo(name + _SUFFIX)
            info.compress_type = zipfile.ZIP_STORED if name == _HEADER else compression
            archive.writestr(info, content)
    return buffer.getvalue()


def _digest(header: dict[str, Any], members: dict[str, bytes]) -> str:
    """SHA-256 of the header (without its checksum) and of every member with its name."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(members):
        digest.update(f"\0{name}\0{len(members[name])}\0".encode())
        digest.update(members[name])
    return digest.hexdigest()


def _to_npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _from_npy(content: bytes) -> np.ndarray[Any, Any]:
    """The array in a ``.npy`` member, after its header was compared with the number of bytes that follow."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ModelFileError("an array has an unknown format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ModelFileError(f"an array has the type {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ModelFileError(f"an array of shape {shape} does not have that many numbers")
    view: np.ndarray[Any, Any] = np.ndarray(
        shape, dtype, buffer=content, offset=stream.tell(), order="F" if fortran else "C"
    )
    array = view.astype(dtype.newbyteorder("="), order="K")
    if dtype.kind == "U" and array.size and array.reshape(-1).view(np.uint32).max() > _LAST_CODE_POINT:
        raise ModelFileError("a text holds characters that do not exist")
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ModelFileError("a truth value is neither true nor false")
    return array
