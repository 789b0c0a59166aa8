"""Timing and printing, shared by the benchmarks.

A bare time says little on a shared machine, so every figure is a ratio of two things measured in the same run with
the same number of threads; both are printed beside it.
"""

from __future__ import annotations

import platform
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Peak", "best_of", "header", "cpu_timed", "timed", "timed_twice", "verdict"]


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    """Result and seconds of one call."""
    start = clock()
    result = work()
    return result, clock() - start


def cpu_timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Result and processor seconds of one call: others on the machine do not count."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def timed_twice(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, processor seconds (of all threads) and seconds of one call."""
    start, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.process_time() - processor, time.perf_counter() - start


def best_of(work: Callable[[], Any], repeats: int = 3) -> float:
    """Least seconds of several calls."""
    return min(timed(work)[1] for _ in range(repeats))


class Peak:
    """Largest growth of the process's memory inside the ``with`` block, in bytes, sampled every two milliseconds."""

    def __enter__(self) -> Peak:
        import psutil

        self._process = psutil.Process()
        self.start = self.top = self._process.memory_info().rss
        self._running = True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while self._running:
            self.top = max(self.top, self._process.memory_info().rss)
            time.sleep(0.002)

    def __exit__(self, *_: object) -> None:
        self._running = False
        self._thread.join()
        self.top = max(self.top, self._process.memory_info().rss)

    @property
    def bytes(self) -> int:
        return self.top - self.start


def header(title: str, threads: int) -> None:
    """Title and what the run was made with."""
    import sklearn

    import fewkern

    print(f"\n## {title}\n")
    print(
        f"fewkern {fewkern.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {threads} thread(s) on both sides\n",
        flush=True,
    )


def verdict(what: str, value: float, limit: float, at_most: bool) -> bool:
    """Print whether a figure meets its goal."""
    met = value <= limit if at_most else value >= limit
    relation = "at most" if at_most else "at least"
    print(f"- {what}: {value:.3g} (goal: {relation} {limit:g}): {'met' if met else 'NOT met'}", flush=True)
    sys.stdout.flush()
    return met
