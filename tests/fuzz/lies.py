"""Files whose parts are in order one by one, and which lie as a whole: about sizes, methods, references, depth.

Every one has a right checksum. What a member unpacks to, how long a row is, how often an array is named and how
deeply objects are nested is what a file declares. A reader that believes it can be made to take any memory or any time.
"""

from __future__ import annotations

import copy
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fewkern.io import archive

Generator = np.random.Generator
# What is done to the header and the arrays of a file.
Change = Callable[[dict[str, Any], dict[str, Any]], object]


def opened(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of an intact file, to be changed."""
    return archive.unpack(io.BytesIO(content), archive.Budget(len(content)))


def closed(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """A file of them, compressed, with a right checksum; no bytes if there are none."""
    try:
        return archive.pack(header, arrays)
    except (RecursionError, ValueError):  # too deep, or a number too long, to be written by this program
        return b""


def zipped(parts: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these members; the header is not compressed, as ``save`` does it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as out:
        for name, content in parts.items():
            out.writestr(name, content, zipfile.ZIP_STORED if name == "header.npy" else compression)
    return buffer.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    """The members of an intact file."""
    with zipfile.ZipFile(io.BytesIO(content)) as opened_zip:
        return {name: opened_zip.read(name) for name in opened_zip.namelist()}


def entries(content: bytes) -> dict[str, int]:
    """Where the directory of a zip has the entry of every member; 20 bytes on are its sizes, packed and unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as opened_zip:
        names, at = opened_zip.namelist(), opened_zip.start_dir
    found = {}
    for name in names:
        found[name] = at
        at += 46 + sum(struct.unpack_from("<3H", content, at + 28))
    return found


def longer_than_declared(content: bytes, name: str, more: bytes, method: int) -> bytes:
    """The same file with ``more`` behind a member, in the same stream; directory and checksum know nothing of it."""
    parts = members(content)
    lying = bytearray(zipped({**parts, name: parts[name] + more}, method))
    size, sum_of_bytes = len(parts[name]), zlib.crc32(parts[name])
    with zipfile.ZipFile(io.BytesIO(lying)) as opened_zip:
        local = opened_zip.getinfo(name).header_offset
    for place in (local + 14, entries(lying)[name] + 16):
        packed = struct.unpack_from("<I", lying, place + 4)[0]
        struct.pack_into("<3I", lying, place, sum_of_bytes, packed, size)
    return bytes(lying)


def find(node: Any, key: str) -> list[dict[str, Any]]:
    """Every piece of JSON with this key: "array" names an array, "shape" is of a sparse matrix, "object" an object."""
    if isinstance(node, list):
        return [found for item in node for found in find(item, key)]
    if not isinstance(node, dict):
        return []
    return [node] * (key in node) + [found for item in node.values() for found in find(item, key)]


GONE = object()


def put(place: str, value: Any) -> Change:
    """Another value at a place: "expansion_.coef", or "OneHotEncoder:settings" in the first step of that class.

    A function changes an array, and ``GONE`` removes what is there.
    """

    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        owner, _, path = place.rpartition(":")
        nodes = [node for node in find(header["model"], "object") if not owner or node["object"] == owner]
        *before, last = path.split(".")
        state = nodes[0]["state"]
        for name in before:
            state = state[name]["state"]
        if value is GONE:
            del state[last]
        elif callable(value):
            node = state[last]
            node = node["tuple"][0] if "tuple" in node else node
            name = node.get("array", "changed")
            arrays[name] = value(arrays.get(name))
            node.clear()
            node["array"] = name
        else:
            state[last] = value

    return change


def tamper(path: Path, *changes: Change) -> None:
    """Change a file; its checksum is right."""
    header, arrays = opened(path.read_bytes())
    for change in changes:
        change(header, arrays)
    path.write_bytes(closed(header, arrays))


def stretched(content: bytes, side: int, factor: int) -> bytes:
    """The same model with ``factor`` times as many of what there are ``side`` of: vectors, columns or classes."""
    header, arrays = opened(content)
    for name, array in arrays.items():
        for axis, length in enumerate(np.shape(array)):
            if length == side:
                arrays[name] = np.repeat(arrays[name], factor, axis=axis)
    left = [header["model"]]
    while left:
        node = left.pop()
        for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
            if key == "strings" and len(value) == side:
                node[key] = [f"{text}{i}" for text in value for i in range(factor)]
            elif isinstance(value, dict | list):
                left.append(value)
            elif type(value) is int and value == side:
                node[key] = side * factor
    return closed(header, arrays)


def in_pipelines(model: Any, depth: int) -> Any:
    """The JSON of a model at the end of nested pipelines."""
    for _ in range(depth):
        step = {"tuple": ["step", model]}
        settings = {"memory": None, "verbose": False, "transform_input": None}
        model = {"object": "Pipeline", "state": {"steps": {"list": [step]}, **settings}}
    return model


def lie(content: bytes, rng: Generator) -> bytes:
    """One of these lies, at random."""
    kind = int(rng.integers(1, 7))
    header, arrays = opened(content)
    found = find(header["model"], "array")
    if kind <= 2:
        header["model"] = in_pipelines(header["model"], int(rng.integers(1, 40)))
    elif kind == 3 and found:
        # one array in the place of another one, once or very often
        node = found[int(rng.integers(len(found)))]
        chosen = copy.deepcopy(found[int(rng.integers(len(found)))])
        node.clear()
        node.update(chosen if rng.integers(2) else {"tuple": [chosen] * int(10 ** rng.uniform(0, 5))})
    elif kind == 4 and find(header["model"], "shape"):
        for node in find(header["model"], "shape"):
            node["shape"][int(rng.integers(2))] = int(10 ** rng.uniform(0, 12))
    elif kind == 5 and arrays:
        # larger as a whole, up to ten million numbers in an array
        shapes = [np.shape(array) for array in arrays.values()]
        side, factor = int(rng.choice([side for shape in shapes for side in shape] or [1])), 10**6
        while any(np.prod(shape) * float(factor) ** shape.count(side) > 1e7 for shape in shapes):
            factor //= 10
        return stretched(content, side, int(factor ** rng.uniform(0.3, 1)))
    elif arrays:
        # no entries, and a long side
        name = list(arrays)[int(rng.integers(len(arrays)))]
        shape = [max(side, 1) for side in np.shape(arrays[name])] or [1]
        shape[int(rng.integers(len(shape)))] = int(10 ** rng.uniform(0, 12))
        shape[int(rng.integers(len(shape)))] = 0
        arrays[name] = np.empty(shape, dtype=arrays[name].dtype)
    return closed(header, arrays)
