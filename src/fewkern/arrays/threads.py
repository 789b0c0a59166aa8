"""Threads of the linear algebra libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread", "threads_for"]

# Below this many multiplications in one step, threads of BLAS cost more than they save.
_WORTH_THREADS = 50_000_000
# Held by the task that has set the limit.
_turn = Lock()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def threads_for(multiplications: int) -> AbstractContextManager[Any]:
    """One BLAS thread inside, if a step of the loop is as small as that; otherwise nothing changes."""
    return nullcontext() if multiplications >= _WORTH_THREADS else one_thread()


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread inside, for tasks that run side by side in threads of this process.

    The limit is that of the process. The first task sets it and takes it back; those that come while it is set leave it
    alone, and if they stay longer they have as many threads as before. If each task set it and took it back, the one
    that ends last would put back the limit of another one.
    """
    if not _turn.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _turn.release()
