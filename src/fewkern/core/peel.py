"""Find one, remove it, repeat: the loop of every method that takes something out of what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fewkern.core.path import Stop

__all__ = ["Peelable", "Peeled", "peel"]

Found = TypeVar("Found")
Record = TypeVar("Record")
Recorded = TypeVar("Recorded", covariant=True)


class Peelable(Protocol[Found, Recorded]):
    """What is left: it knows how to find the next thing to take out, and how to take it out."""

    def find(self) -> Found | Stop:
        """What to take out next, or why there is nothing."""

    def remove(self, found: Found, /) -> Iterable[Recorded]:
        """Take it out; one record per step (a block of pivots gives several)."""


@dataclass(frozen=True)
class Peeled(Generic[Record]):
    """All records, one per step, and why the loop ended."""

    records: tuple[Record, ...]
    stop: Stop


def peel(state: Peelable[Found, Record], limit: int, step: Callable[[int], None] = lambda _: None) -> Peeled[Record]:
    """Repeat ``state.remove(state.find())`` until ``find`` returns a :class:`Stop` or there are ``limit`` records.

    Pivots of a kernel matrix (feature vector selection), hyperplanes (recursive SVM), directions (graph embedding) and
    regressors (forward selection) are taken out by this loop: in all of them, what was taken changes what is left.
    ``step`` is called with the number of records.

    Examples
    --------
    >>> from fewkern.core.peel import peel
    >>> from fewkern.core.path import Stop
    >>> class Numbers:
    ...     def __init__(self, values): self.left = list(values)
    ...     def find(self): return max(self.left) if self.left else Stop.RANK
    ...     def remove(self, value): self.left.remove(value); return [value]
    ...
    >>> peel(Numbers([3, 1, 2]), limit=2).records
    (3, 2)
    """
    records: list[Record] = []
    while len(records) < limit:
        found = state.find()
        if isinstance(found, Stop):
            return Peeled(tuple(records), found)
        records.extend(state.remove(found))
        step(len(records))
    return Peeled(tuple(records), Stop.LIMIT)
