"""The verb of the library: find one, remove it, repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Peeled", "Stop", "peel"]

Found = TypeVar("Found")
Record = TypeVar("Record")


@dataclass(frozen=True)
class Stop:
    """What ``find`` returns instead of a find: why there is none."""

    reason: str


@dataclass(frozen=True)
class Peeled(Generic[Record]):
    """All records, one per step, and why the loop ended."""

    records: tuple[Record, ...]
    stop: str


def peel(
    find: Callable[[int], Found | Stop],
    remove: Callable[[Found], Iterable[Record]],
    limit: int,
) -> Peeled[Record]:
    """Repeat: ``find`` the next thing, ``remove`` it from what is left, keep its records.

    ``K <- K - (Ka)(Ka)' / (a'Ka)`` is pivoted Cholesky when ``a`` is a unit vector (feature vector selection),
    deflation when ``a`` holds the dual coefficients of a hyperplane (recursive SVM and soft margin) and the step of
    orthogonal least squares when ``K`` is a Gram matrix of regressors. A paper supplies only *find* and *stop*.

    Parameters
    ----------
    find : callable
        Called with the number of records so far; returns what to remove, or a :class:`Stop`.
    remove : callable
        Takes it out and returns one record per step taken: a block of pivots gives several. An early end then has
        nothing to truncate. No record at all ends the loop with the reason "exhausted".
    limit : int
        The loop ends with the reason "limit" once there are this many records.

    Examples
    --------
    >>> left = [3, 1, 2]
    >>> def find(count): return max(left) if left else Stop("empty")
    >>> def remove(value): left.remove(value); return [value]
    >>> peel(find, remove, limit=10)
    Peeled(records=(3, 2, 1), stop='empty')
    """
    records: list[Record] = []
    while len(records) < limit:
        found = find(len(records))
        if isinstance(found, Stop):
            return Peeled(tuple(records), found.reason)
        taken = list(remove(found))
        if not taken:
            return Peeled(tuple(records), "exhausted")
        records.extend(taken)
    return Peeled(tuple(records), "limit")
