"""Files that ask for more than their size can justify, and what loading them takes.

Each has a right checksum, and is loaded in a process of its own, whose memory and time are measured.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import queue
import resource
import struct
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fewkern import load
from fewkern.io import archive
from tests.fuzz.lies import closed, entries, find, in_pipelines, longer_than_declared, opened, stretched, zipped
from tests.fuzz.models import subjects

fork = multiprocessing.get_context("fork")
ZEROS = 2**27
# What ``load`` promises beside its memory: processor seconds, and for every byte of the file.
SECONDS, SECONDS_PER_BYTE = 5.0, 50e-6
# After this time a process is ended.
_PATIENCE = 120


@dataclass(frozen=True)
class Loading:
    """What loading a file came to."""

    error: str | None
    """Class and message; None if the file was loaded."""
    nbytes: int
    """Largest growth of the resident memory."""
    seconds: float
    """Of the processor."""


@functools.cache
def intact() -> dict[str, bytes]:
    """Files to change, by the names of their models."""
    return {subject.name: subject.content for subject in subjects()}


Files = dict[str, bytes]
Make = Callable[[Files], bytes]


def objects(header: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [node["state"] for node in find(header["model"], "object") if node["object"] == name]


def bomb(method: int) -> Make:
    def make(content: Files) -> bytes:
        return longer_than_declared(content["FeatureVectorDiscriminant"], "a0.npy", bytes(ZEROS), method)

    return make


def longer(content: Files) -> bytes:
    return longer_than_declared(content["FeatureVectorDiscriminant"], "a0.npy", b"more", zipfile.ZIP_STORED)


def early(content: Files) -> bytes:
    """A member that ends before its declared size."""
    raw = bytearray(content["FeatureVectorDiscriminant"])
    raw[entries(content["FeatureVectorDiscriminant"])["a0.npy"] + 24] += 1
    return bytes(raw)


def wide(columns: int) -> Make:
    def make(content: Files) -> bytes:
        header, arrays = opened(content["sparse-linear"])
        for node in find(header["model"], "shape"):
            node["shape"][1] = columns
        header["model"]["state"]["n_features_in_"] = columns
        return closed(header, arrays)

    return make


def shared_categories(count: int) -> Make:
    def make(content: Files) -> bytes:
        header, arrays = opened(content["columns"])
        arrays["shared"] = np.arange(2.0**16)
        (encoder,) = objects(header, "OrdinalEncoder")
        encoder["categories"] = {"tuple": [{"array": "shared"}] * count}
        return closed(header, arrays)

    return make


def named_again(content: Files) -> bytes:
    """One array in a list, again and again."""
    header, arrays = opened(content["FeatureVectorDiscriminant"])
    arrays["long"] = np.zeros(2**18)
    header["model"]["state"]["more_"] = {"tuple": [{"array": "long"}] * 1000}
    return closed(header, arrays)


def no_rows(content: Files) -> bytes:
    """No vectors, but of a thousand million columns."""
    header, arrays = opened(content["expansion-kernel"])
    state = header["model"]["state"]
    for name, shape in (("vectors", (0, 10**9)), ("coef", (0, 1))):
        arrays[state[name]["array"]] = np.zeros(shape)
    state["indices"] = None
    return closed(header, arrays)


def long_names(content: Files) -> bytes:
    """The name of a column of half a megabyte, in front of each of its categories."""
    header, arrays = opened(content["table"])
    (column,) = objects(header, "CategoryColumn")
    column["name"] = "x" * 500_000
    column["levels"] = {"tuple": [f"{i:x}" for i in range(60_000)]}
    return closed(header, arrays)


def overlapping(content: Files) -> bytes:
    """Every member is the whole file."""
    lying = bytearray(content["FeatureVectorDiscriminant"])
    for at in entries(content["FeatureVectorDiscriminant"]).values():
        struct.pack_into("<I", lying, at + 20, len(lying))
    return bytes(lying)


def pipelines(depth: int) -> Make:
    def make(content: Files) -> bytes:
        header, arrays = opened(content["FeatureVectorDiscriminant"])
        header["model"] = in_pipelines(header["model"], depth)
        return closed(header, arrays)

    return make


def scaler(columns: int, names: list[str] | None = None) -> dict[str, Any]:
    """The JSON of a step of these columns, whose numbers are in the array "ones"."""
    state = {"copy": True, "clip": False, "n_features_in_": columns, "n_samples_seen_": 5}
    state |= {name: {"array": "ones"} for name in ("scale_", "max_abs_")}
    return {"object": "MaxAbsScaler", "state": state | ({"feature_names_in_": {"strings": names}} if names else {})}


def named_columns(count: int) -> Make:
    names = [f"{i:x}" for i in range(count)]
    model = in_pipelines(scaler(count, names), 1)
    return lambda _: closed({"model": model}, {"ones": np.ones(count)})


def branches(depth: int, width: int) -> Make:
    """Pipelines of pipelines, ``width`` steps in each."""
    model = scaler(3)
    for _ in range(depth):
        step, model = model, in_pipelines(None, 1)
        model["state"]["steps"]["list"] = [{"tuple": [f"s{i}", step]} for i in range(width)]
    return lambda _: closed({"model": model}, {"ones": np.ones(3)})


def wide_table(count: int) -> Make:
    """An encoder of a table of categories."""

    def make(content: Files) -> bytes:
        header, arrays = opened(content["table"])
        (encoder,) = objects(header, "TableEncoder")
        names = [f"c{i}" for i in range(count)]
        levels = {"levels": {"tuple": ["a", "b"]}, "merge": False, "spellings": {"tuple": []}}
        columns = [{"object": "CategoryColumn", "state": {"name": name, **levels}} for name in names]
        encoder |= {"columns_": {"tuple": columns}, "n_features_in_": count, "feature_names_in_": {"strings": names}}
        arrays[encoder["mean_"]["array"]], arrays[encoder["scale_"]["array"]] = np.zeros(2 * count), np.ones(2 * count)
        return closed({**header, "model": {"object": "TableEncoder", "state": encoder}}, arrays)

    return make


def long_center(rows: int) -> Make:
    """Images that are centered at the mean of this many samples."""
    return lambda content: stretched(content["centered"], 7, rows // 7)


def nested_densities(content: Files) -> bytes:
    header, arrays = opened(content["FeatureVectorDiscriminant"])
    node = None
    for _ in range(100):
        node = {"object": "DensityClassifier", "state": {"estimator": node}}
    header["model"]["state"]["kernel"] = node
    return closed(header, arrays)


def npy(shape: tuple[int, ...], descr: str = "<f8", data: bytes = b"") -> bytes:
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


def of_members(compression: int = zipfile.ZIP_DEFLATED, header: Any = None, **arrays: bytes) -> Make:
    """A file of other members, without a checksum."""
    if not isinstance(header, bytes):
        text = json.dumps({"format": "fewkern model", "format_version": 1, "model": header}).encode()
        header = npy((len(text),), "|u1", text)
    parts = {f"{name}.npy": member for name, member in {"header": header, **arrays}.items()}
    return lambda _: zipped(parts, compression)


INTACT = "is not an intact fewkern model file"
ATTACKS = {
    "bzip2 that unpacks to 128 MiB": (bomb(zipfile.ZIP_BZIP2), "compressed by a method that fewkern does not use"),
    "lzma that unpacks to 128 MiB": (bomb(zipfile.ZIP_LZMA), "compressed by a method that fewkern does not use"),
    "deflate that unpacks to 128 MiB": (bomb(zipfile.ZIP_DEFLATED), "a member does not have its declared size"),
    "stored and longer than declared": (longer, "a member does not have its declared size"),
    "shorter than declared": (early, "a member does not have its declared size"),
    "members that overlap": (overlapping, "its members are larger than the file"),
    "sparse rows of 10^9 columns": (wide(10**9), "it declares 1,000,000,000 features"),
    "categories that share an array, 60": (shared_categories(60), "it asks for more memory than a file of"),
    "an array named 10^3 times": (named_again, "it asks for more memory than a file of"),
    "10^9 columns and no rows": (no_rows, "it asks for more memory than a file of"),
    "a long name of many categories": (long_names, "it asks for more memory than a file of"),
    "6 pipelines": (pipelines(6), "it nests objects deeper than 16, or pipelines deeper than 5"),
    "100 estimators": (nested_densities, "it nests objects deeper than 16, or pipelines deeper than 5"),
    "zeros": (of_members(a0=npy((2**23,), data=bytes(2**26))), INTACT),
    "an array of 10^12 numbers": (of_members(a0=npy((10**12,))), INTACT),
    "a negative shape": (of_members(a0=npy((-1, -8), data=bytes(64))), INTACT),
    "no numbers, 10^12 columns": (of_members(a0=npy((0, 10**12))), INTACT),
    "a text of 10^9 characters": (of_members(a0=npy((1,), "<U1000000000")), INTACT),
    "an object": (of_members(a0=npy((1,), "|O", b"cos\nsystem\n")), INTACT),
    "deep lists": (of_members(zipfile.ZIP_STORED, npy((400_000,), "|u1", b"[" * 400_000)), INTACT),
    "a long number": (of_members(header=npy((50_000,), "|u1", b"1" * 50_000)), INTACT),
}
# What a file may have, at the end of what it may have.
ALLOWED = {
    "sparse rows of 10^6 columns": wide(10**6),
    "categories that share an array, once": shared_categories(1),
    "5 pipelines": pipelines(5),
    "262,144 columns with names": named_columns(2**18),
    "1,024 pipelines, 5 deep": branches(5, 4),
    "a table of 5,000 columns": wide_table(5000),
    "a center of 10,000 samples": long_center(10_000),
}


def _load(path: Path, results: Any) -> None:
    """Load, and report what this took."""
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    began, error = time.process_time(), None
    try:
        load(path)
    except Exception as found:
        error = f"{type(found).__name__}: {found}"
    seconds = time.process_time() - began
    # of a process that was forked, the peak begins with what it had then
    results.put(Loading(error, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before, seconds))


def loading(path: Path) -> Loading:
    """Load a file in a process of its own."""
    results = fork.Queue()
    process = fork.Process(target=_load, args=(path, results))
    process.start()
    try:
        return results.get(timeout=_PATIENCE)
    except queue.Empty:
        return Loading(f"no end after {_PATIENCE} s, or a crash", 0, float(_PATIENCE))
    finally:
        process.kill()
        process.join()


def promised_bytes(size: int) -> int:
    """The memory that loading a file of this size may take."""
    return archive.MEMORY_BASE_BYTES + archive.MEMORY_FACTOR * size


def promised_seconds(size: int) -> float:
    """The processor time that loading a file of this size may take."""
    return SECONDS + SECONDS_PER_BYTE * size
