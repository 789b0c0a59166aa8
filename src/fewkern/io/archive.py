"""The container of a model file: a zip of ``.npy`` members, one of them a JSON header with a checksum of all.

Any NumPy can open it with ``np.load``. Reading trusts nothing that the file declares. Sizes are compared with the size
of the file before anything is unpacked, every member is unpacked to its declared size and not further, array headers
are compared with the bytes that follow them, and the content with the checksum.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import secrets
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

FORMAT = "fewkern model"
FORMAT_VERSION = 1
_HEADER, _SUFFIX = "header", ".npy"
# Loading a file allocates at most MEMORY_BASE_BYTES plus MEMORY_FACTOR times the size of the file.
MEMORY_BASE_BYTES = 64 * 2**20
MEMORY_FACTOR = 100
# Of these, what a Budget hands out. The rest is for the JSON header, whose characters become up to 40 bytes of Python
# objects each, and for sparse matrices of many columns.
_BUDGET_BASE_BYTES = 48 * 2**20
_BUDGET_FACTOR = 50
# Bytes per byte of an array: the array itself, its member of the zip, and temporary arrays of the trial predictions.
_BYTES_PER_ARRAY_BYTE = 12
# Bytes per text of an array: NumPy creates an object for every text that is read.
_BYTES_PER_TEXT = 160
# Copies of feature names that scikit-learn makes: the name for a category consists of its column and the category.
_NAME_COPIES = 3
# Features that a model may declare beyond those that its file has room for: of dense rows, and of sparse ones.
_FREE_COLUMNS, _FREE_SPARSE_COLUMNS = 2**18, 2**20
# The header before every member of a zip: signature, 22 bytes that the directory repeats, lengths of name and extras.
_LOCAL_HEADER = struct.Struct("<4s22x2H")


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


class FileLimitError(ModelFileError):
    """The file asks for more memory than a file of its size may."""


class Budget:
    """The memory that a file of ``file_bytes`` may ask for, charged before it is allocated.

    Examples
    --------
    >>> from fewkern.io.archive import Budget
    >>> budget = Budget(1000)
    >>> budget.charge(10**6)
    >>> budget.charge(10**9)
    Traceback (most recent call last):
        ...
    fewkern.io.archive.FileLimitError: it asks for more memory than a file of 1,000 bytes may
    """

    def __init__(self, file_bytes: int) -> None:
        self.file_bytes = file_bytes
        self._left = _BUDGET_BASE_BYTES + _BUDGET_FACTOR * file_bytes
        self._texts, self._longest, self._names = 0, 0, 0

    def charge(self, nbytes: int) -> None:
        """Spend ``nbytes``; raises a FileLimitError when the budget is exceeded."""
        self._left -= nbytes
        if self._left < 0:
            raise FileLimitError(f"it asks for more memory than a file of {self.file_bytes:,} bytes may")

    def charge_array(self, array: np.ndarray[Any, Any]) -> None:
        """Spend the memory of one use of an array."""
        # an array without entries may still declare a long side, and a product with it is as long
        self.charge(array.nbytes if array.size else array.itemsize * max(array.shape))
        if array.dtype.kind == "U":
            self.charge(_BYTES_PER_TEXT * array.size)
            self._charge_names(array.size, array.itemsize)

    def charge_text(self, text: str) -> None:
        """Spend the memory of a text; any two may be joined, as the name of a column and its categories are."""
        self._charge_names(1, len(text) if text.isascii() else 4 * len(text))

    def _charge_names(self, count: int, nbytes: int) -> None:
        self._texts, self._longest = self._texts + count, max(self._longest, nbytes)
        names = _NAME_COPIES * self._texts * self._longest
        self.charge(names - self._names)
        self._names = names

    def check_columns(self, count: int, *, sparse: bool = False) -> None:
        """Raise a FileLimitError if a sample of ``count`` features is more than the file may ask for."""
        limit = _FREE_SPARSE_COLUMNS + self.file_bytes if sparse else _FREE_COLUMNS + self.file_bytes // 8
        if count > limit:
            raise FileLimitError(f"it declares {count:,} features, and a file of its size may have {limit:,}")


def pack(header: dict[str, Any], arrays: Arrays, *, compressed: bool = True) -> bytes:
    """The bytes of a file with this header (``format`` and checksum are added) and these arrays."""
    members = {name: _to_npy(array) for name, array in arrays.items()}
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, **header}
    content["sha256"] = _digest(content, members)
    text = np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, member in {_HEADER: _to_npy(text), **members}.items():
            # a ZipInfo without a date: the same model gives the same bytes
            info = zipfile.ZipInfo(name + _SUFFIX)
            deflated = compressed and name != _HEADER
            info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
            archive.writestr(info, member)
    return buffer.getvalue()


def unpack(handle: IO[bytes], budget: Budget) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of an open file; raises ModelFileError, or what zip, NumPy and JSON raise."""
    members = _members(handle, budget)
    header = json.loads(_from_npy(members.pop(_HEADER)).tobytes().decode("ascii"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("another program wrote it")
    version = header.get("format_version")
    if version != FORMAT_VERSION or type(version) is not int:
        raise ModelFileError(
            f"fewkern {header.get('fewkern')} wrote it in format {version!r}, and this fewkern reads format "
            f"{FORMAT_VERSION}; install that version"
        )
    if header.pop("sha256", None) != _digest(header, members):
        raise ModelFileError("its content does not match its checksum")
    return header, {name: _from_npy(members.pop(name)) for name in list(members)}


def _members(handle: IO[bytes], budget: Budget) -> dict[str, bytes]:
    """The unpacked members by name, after their declared sizes were compared with the size of the file."""
    with zipfile.ZipFile(handle) as archive:
        infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(set(names)) < len(names) or not all(name.endswith(_SUFFIX) for name in names):
        raise ModelFileError("its members are not arrays")
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos):
        raise ModelFileError("a member is compressed by a method that fewkern does not use")
    # Python's zipfile would also read members that overlap
    if sum(info.compress_size for info in infos) > budget.file_bytes:
        raise ModelFileError("its members are larger than the file")
    budget.charge(_BYTES_PER_ARRAY_BYTE * sum(info.file_size for info in infos))
    found = {info.filename.removesuffix(_SUFFIX): info for info in infos}
    if _HEADER not in found or found[_HEADER].compress_type != zipfile.ZIP_STORED:
        raise ModelFileError("it has no header")
    return {name: _member(handle, info) for name, info in found.items()}


def _member(handle: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    """The content of a member, which must have its declared size.

    ``ZipFile.read`` would unpack all that follows, whatever was declared, and cut it afterwards.
    """
    handle.seek(info.header_offset)
    signature, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(handle.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise ModelFileError("a member is not where the directory says")
    handle.seek(name_bytes + extra_bytes, io.SEEK_CUR)
    content, whole = handle.read(info.compress_size), True
    if info.compress_type == zipfile.ZIP_DEFLATED:
        inflating = zlib.decompressobj(-zlib.MAX_WBITS)
        content = inflating.decompress(content, info.file_size + 1)
        whole = inflating.eof and not inflating.unused_data
    if len(content) != info.file_size or not whole:
        raise ModelFileError("a member does not have its declared size")
    return content


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
    if dtype.kind not in "biufU" or dtype.itemsize == 0:  # booleans, integers, floating-point numbers, text
        raise ModelFileError(f"an array has the type {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ModelFileError(f"an array of shape {shape} does not have that many numbers")
    order: Any = "F" if fortran else "C"
    view: Any = np.ndarray(shape, dtype, buffer=content, offset=stream.tell(), order=order)
    array: np.ndarray[Any, Any] = view.astype(dtype.newbyteorder("="), order="K")
    if dtype.kind == "U" and array.size and array.reshape(-1).view(np.uint32).max() > sys.maxunicode:
        raise ModelFileError("a text holds characters that do not exist")
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ModelFileError("a truth value is neither true nor false")
    return array


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
        opened = part.open("xb")
    except PermissionError as error:
        raise PermissionError(
            f"cannot write {path.name}: you may not create files in the folder {path.parent}; choose another one."
        ) from error
    try:
        with opened as file:
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
