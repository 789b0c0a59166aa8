"""Results of long stages on the disk, so that several processes, and a run that goes on later, share them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import joblib

import fewkern

__all__ = ["on_disk"]

_memory = joblib.Memory(Path(__file__).parent / ".cache", verbose=0)


@cache
def _code() -> str:
    """Changes with any line of fewkern: nothing that another version has computed is used."""
    digest = hashlib.sha256()
    for path in sorted(Path(fewkern.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def on_disk(function: Callable[..., Any]) -> Callable[..., Any]:
    """Remember the results of ``function`` for its arguments and this very version of fewkern."""
    kept = _memory.cache(_call, ignore=["function"])

    @wraps(function)
    def remembered(*arguments: Any) -> Any:
        return kept(function, f"{function.__module__}.{function.__qualname__}", _code(), arguments)

    return remembered


def _call(function: Callable[..., Any], name: str, code: str, arguments: tuple[Any, ...]) -> Any:
    del name, code  # part of the key
    return function(*arguments)
