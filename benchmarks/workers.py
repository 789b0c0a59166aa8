"""Units of work in processes of their own: side by side, with one number of threads, ended where they take too long."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from threadpoolctl import threadpool_limits

from experiments.store import Record, Store, Unit

__all__ = ["TIME_LIMIT_SECONDS", "Workers", "run", "thread_variables", "threads"]

# A unit that takes longer is ended, and named in the output.
TIME_LIMIT_SECONDS = 300.0
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")
# A new process for each: forked ones would share the state of libraries that have threads.
_CONTEXT = multiprocessing.get_context("spawn")

Work = Callable[..., Record]


@dataclass(frozen=True)
class Workers:
    """How units are done."""

    processes: int = 1
    """0 does them in this process, without a limit: for tests and debuggers."""
    threads: int = 1
    """Of each process."""
    limit: float = TIME_LIMIT_SECONDS
    """Seconds of wall time that a unit may take."""


def thread_variables(count: int) -> dict[str, str]:
    """The environment in which libraries begin with so many threads."""
    return {f"{name}_NUM_THREADS": str(count) for name in _LIBRARIES}


def threads() -> int:
    """Threads of this process, for packages that want to be told."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def run(store: Store, work: Work, units: Iterable[Unit], how: Workers) -> int:
    """Do the units that the store does not have, and keep each as it comes; returns how many were done.

    ``work(*unit)`` returns the figures of a unit. Where it raises, or takes too long, the store keeps the reason as
    ``failed``.
    """
    known = store.by_unit()
    missing = [unit for unit in units if unit not in known]
    if missing:
        store.append(_reported(store.fields, missing, _done(work, missing, how)))
    return len(missing)


def _reported(fields: tuple[str, ...], units: list[Unit], done: Iterable[tuple[Unit, Record]]) -> Iterator[Record]:
    for count, (unit, figures) in enumerate(done, start=1):
        print(f"  {count}/{len(units)}: {', '.join(map(str, unit))}: {_short(figures)}", flush=True)
        yield {**dict(zip(fields, unit)), **figures}


def _short(figures: Record) -> str:
    if "failed" in figures:
        return f"failed, {figures['failed']}"
    vectors = "" if figures["vectors"] is None else f", {figures['vectors']} vectors"
    return f"{figures['error']:.2f}{vectors}, {figures['seconds']:.1f} s"


def _done(work: Work, units: list[Unit], how: Workers) -> Iterator[tuple[Unit, Record]]:
    if how.processes == 0:
        yield from ((unit, _attempt(work, unit, how.threads)) for unit in units)
        return
    waiting = deque(units)
    with _environment(thread_variables(how.threads)):
        workers = [_Worker(work, how) for _ in range(min(how.processes, len(units)))]
        try:
            for worker in workers:
                worker.begin(waiting.popleft())
            while busy := [worker for worker in workers if worker.unit is not None]:
                found = []
                rest = min(worker.until for worker in busy) - time.monotonic()
                ready = wait([worker.pipe for worker in busy], timeout=max(rest, 0.0))
                for worker in busy:
                    if worker.pipe in ready or worker.until <= time.monotonic():
                        found.append((worker.unit, worker.figures()))
                        worker.begin(waiting.popleft() if waiting else None)
                yield from found
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """A process that does one unit after the other; a new one takes its place where it had to be ended."""

    def __init__(self, work: Work, how: Workers) -> None:
        self.work, self.how = work, how
        self.unit: Unit | None = None
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(theirs, self.work, self.how.threads), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, unit: Unit | None) -> None:
        self.unit, self.until = unit, time.monotonic() + self.how.limit
        if unit is not None:
            self.pipe.send(unit)

    def figures(self) -> Record:
        """What the process says of its unit, or why it says nothing."""
        if self.pipe.poll():
            try:
                figures: Record = self.pipe.recv()
                return figures
            except EOFError:  # out of memory, mostly
                self.process.join()
                reason = f"the process ended with {self.process.exitcode}"
        else:
            reason = f"stopped after {self.how.limit:g} s"
        self.end()
        self._start()
        return {"failed": reason}

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, work: Work, threads: int) -> None:
    """Answer units until the other end is closed."""
    while True:
        try:
            unit = pipe.recv()
        except EOFError:
            return
        pipe.send(_attempt(work, unit, threads))


def _attempt(work: Work, unit: Unit, threads: int) -> Record:
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")
        try:
            return work(*unit)
        except Exception as error:
            lines = f"{type(error).__name__}: {error}".splitlines()
            return {"failed": lines[0][:300]}


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """New processes inherit these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
