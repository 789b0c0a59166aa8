"""Threads of the linear algebra libraries."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["threads_for"]

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
