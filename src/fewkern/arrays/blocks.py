"""Work in blocks of rows that fit into the cache, and the threads of BLAS that it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

from fewkern.arrays.namespace import Array, device, namespace, on_host

# 4 MiB of float64: small enough for the last-level cache, large enough for BLAS-3.
BLOCK_ELEMENTS = 1 << 19
# 1 GiB of float64 on an accelerator, where every block costs the start of a dozen kernels, and nothing is cached.
_ACCELERATOR_ELEMENTS = 1 << 27


def row_blocks(n: int, row_elements: int, budget: int | None = None, like: Array | None = None) -> Iterator[slice]:
    """Slices of ``range(n)``, each holding at most about ``budget`` elements of ``row_elements`` per row.

    Without a budget it is that of the device of ``like`` (None: the host). Zero rows give one slice, too.
    """
    if budget is None:
        budget = BLOCK_ELEMENTS if like is None or on_host(like) else _ACCELERATOR_ELEMENTS
    size = max(1, budget // max(1, row_elements))
    for start in range(0, max(n, 1), size):
        yield slice(start, min(start + size, n))


def in_blocks(of: Callable[[Array], Array], X: Array, row_elements: int) -> Array:
    """What ``of`` returns for blocks of rows of ``X``, one below the other; ``row_elements`` numbers per row."""
    n, out = int(X.shape[0]), None
    for rows in row_blocks(n, row_elements, like=X):
        if rows == slice(0, n):
            return of(X)
        block = of(X[rows, :])
        if out is None:
            out = namespace(block).empty((n, *block.shape[1:]), dtype=block.dtype, device=device(block))
        out[rows, ...] = block
    return out


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
