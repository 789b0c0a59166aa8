"""Arrays that count the operations done with them: NumPy does the work, the tally says how much it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

__all__ = ["CountingArray", "Tally", "counting"]

_COUNTED = {"multiply", "divide", "square", "power"}


@dataclass
class Tally:
    """What has been counted so far."""

    multiplications: int = 0


_tallies: list[Tally] = []


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, CountingArray) else value


class CountingArray(np.ndarray):
    """An array whose multiplications, divisions, powers and matrix products are counted as multiplications.

    A matrix product of shapes ``(m, k)`` and ``(k, n)`` counts ``m k n`` multiplications. Whatever LAPACK does is not
    seen.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        plain = [_plain(value) for value in inputs]
        if out is not None:
            options["out"] = tuple(_plain(value) for value in out)
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc is np.matmul:
            amount = prod(np.shape(result)) * np.shape(plain[0])[-1]
        else:
            amount = int(np.size(result)) if ufunc.__name__ in _COUNTED else 0
        for tally in _tallies:
            tally.multiplications += amount
        return result.view(CountingArray) if isinstance(result, np.ndarray) else result


@contextmanager
def counting() -> Iterator[Tally]:
    """Count what is done with counting arrays in the block."""
    tally = Tally()
    _tallies.append(tally)
    try:
        yield tally
    finally:
        _tallies.pop()
