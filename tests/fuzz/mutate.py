"""Ways to damage a model file, each from a seeded generator: bytes, zip members, JSON, arrays, lies.

The last ones put a right checksum on what they made: the checks behind it must hold alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.lies import closed, lie, members, opened, zipped

Generator = np.random.Generator
NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 7, 2**31, -(2**31), 2**63, 10**30, 10**400, 0.0, -0.0, 0.5, 1e-320, 1e-300, 1e300, -1e308,
    float("nan"), float("inf"), -float("inf"), True, False,
]  # fmt: skip
TEXTS = ["", "x", "gaussian", "median", "__class__", "predict", "nested", "raw", "a0", "a1", "\0", "é" * 50, "0"]


def flip_bytes(content: bytes, rng: Generator) -> bytes:
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 9))):
        damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
    return bytes(damaged)


def cut_bytes(content: bytes, rng: Generator) -> bytes:
    a, b = sorted(int(i) for i in rng.integers(0, len(content) + 1, 2))
    return (content[:a], content[b:], content[:a] + content[b:], content[:b] + content[a:])[int(rng.integers(4))]


def change_members(content: bytes, rng: Generator) -> bytes:
    parts = list(members(content).items())
    i, j = (int(k) for k in rng.integers(0, len(parts), 2))
    kind = int(rng.integers(5))
    if kind == 0:
        del parts[i]
    elif kind == 1:
        parts[i] = ("../" + parts[i][0], parts[i][1])
    elif kind == 2:
        parts[i], parts[j] = (parts[i][0], parts[j][1]), (parts[j][0], parts[i][1])
    elif kind == 3:
        parts[i] = (parts[i][0], flip_bytes(parts[i][1], rng))
    else:  # a bomb: a few bytes that unpack to 16 MiB
        parts[i] = (parts[i][0], parts[i][1] + bytes(2**24))
    return zipped(dict(parts))


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON tree."""
    found: list[tuple[Any, Any]] = []
    left = [node]
    while left:
        node = left.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
        found += [(node, key) for key in keys]
        left += [node[key] for key in keys]
    return found


def change_json(content: bytes, rng: Generator) -> bytes:
    """One to three changes of the JSON header, format and version included, with a right checksum."""
    header, arrays = opened(content)
    for _ in range(int(rng.integers(1, 4))):
        places = _places(header)
        node, key = places[int(rng.integers(len(places)))]
        kind = int(rng.integers(8))
        if kind == 0:
            node.pop(key)
        elif kind == 1:
            other, name = places[int(rng.integers(len(places)))]
            node[key] = copy.deepcopy(other[name]) if _has(other, name) else None
        elif kind == 2 and isinstance(node, dict):
            node[str(rng.choice(TEXTS))] = node.pop(key)
        elif kind == 3:
            node[key] = str(rng.choice(TEXTS))
        elif kind == 4:
            node[key] = [None, [], {}, {"list": []}, {"tuple": [1, 2]}, {"dict": []}][int(rng.integers(6))]
        elif kind == 5:
            for _ in range(int(rng.integers(1, 60))):
                node[key] = {"list": [node[key]]}
        else:
            node[key] = NUMBERS[int(rng.integers(len(NUMBERS)))]
    header["fewkern"] = "0"
    return closed(header, arrays)


def _has(node: Any, key: Any) -> bool:
    return key in node if isinstance(node, dict) else key < len(node)


def change_array(content: bytes, rng: Generator) -> bytes:
    """Other numbers, another shape or another type in one array, with a right checksum."""
    header, arrays = opened(content)
    if not arrays:
        return flip_bytes(content, rng)
    name = list(arrays)[int(rng.integers(len(arrays)))]
    array = arrays[name].copy()
    kind = int(rng.integers(7))
    if kind == 0:
        array = array[: int(rng.integers(0, len(array) + 1))] if array.ndim else array
    elif kind == 1:
        array = np.concatenate([array, array]) if array.ndim else array
    elif kind == 2:
        array = array.T if array.ndim > 1 else array[:, None] if array.ndim else array
    elif kind == 3 and array.dtype.kind != "U":
        types = ["float32", "float16", "int64", "int8", "uint64", "bool", ">f8"]
        with np.errstate(all="ignore"):
            array = array.astype(str(rng.choice(types)))
    elif kind == 4:
        array = np.array(["a", "b"]) if rng.integers(2) else np.zeros(())
    elif array.size and array.dtype.kind in "fiu":
        values = [0, -1, 1, 2**31 - 1, 2**62, -(2**62)] if array.dtype.kind in "iu" else [
            0.0, -1.0, np.nan, np.inf, 1e-320, 1e300, -1e308, 1e18]  # fmt: skip
        with np.errstate(all="ignore"):
            value = np.array(values[int(rng.integers(len(values)))]).astype(array.dtype)
        array.reshape(-1)[int(rng.integers(array.size))] = value
        if kind == 6:
            array[...] = value
    arrays[name] = array
    return closed(header, arrays)


MUTATIONS: dict[str, Callable[[bytes, Generator], bytes]] = {
    "flip bytes": flip_bytes,
    "cut bytes": cut_bytes,
    "members": change_members,
    "JSON": change_json,
    "arrays": change_array,
    "lies": lie,
}
# Bytes are mostly noticed by the zip itself; the deeper changes are worth more of the loads.
SHARES = np.array([2, 1, 3, 7, 7, 5]) / 25
