"""Threads of the linear algebra libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread", "threads_for"]

# Below this many multiplications in one step, threads of BLAS cost more than they save.
_WORTH_THREADS = 50_000_000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def threads_for(multiplications: int) -> AbstractContextManager[Any]:
    """One BLAS thread inside, if a step of the loop is as small as that; otherwise nothing changes."""
    if multiplications >= _WORTH_THREADS:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


@dataclass
class _Inside:
    """How many tasks of this process want one BLAS thread; the first sets the limit, and the last takes it back."""

    lock: Any = field(default_factory=Lock)
    count: int = 0
    limit: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.count == 0:
                self.limit = _controller().limit(limits=1, user_api="blas")
            self.count += 1

    def leave(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0:
                self.limit.restore_original_limits()


_inside = _Inside()


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread inside, for tasks that run side by side in threads of this process."""
    _inside.enter()
    try:
        yield
    finally:
        _inside.leave()
