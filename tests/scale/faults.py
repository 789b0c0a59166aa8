"""``python -m tests.scale.faults``: one fit on a cluster of three processes to which bad things happen.

Workers are killed again and again, the scheduler is killed and comes back, a partition is slow, a worker reaches its
limit of memory. Every fit must end with the model of the undisturbed one, or with one sentence that says what happened.
The rows are made by the workers, so that 5 million need no room. Exit code 1 if a fit ended otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np

from fewkern import FeatureVectorRegressor
from fewkern.arrays.partitions import PartitionError
from fewkern.kernels import Gaussian

WORKERS, FEATURES, CHUNK_ROWS = 3, 8, 50_000
FAULTS = ("none", "slow partition", "workers killed", "worker out of memory", "scheduler restarted")
_SLOW_SECONDS = 20
# A chunk that needs this much more than its rows is beyond the limit of a worker.
_MEMORY_LIMIT_BYTES, _HUNGER_BYTES = 600 * 2**20, 2**30


@dataclass(frozen=True)
class Ending:
    """How a fit ended."""

    model: FeatureVectorRegressor | None
    sentence: str
    seconds: float


def chunk(seed: int, rows: int, fault: str) -> np.ndarray[Any, Any]:
    """The rows of one chunk, the same at every pass."""
    if seed == 1 and fault == "slow partition":
        time.sleep(_SLOW_SECONDS)
    if seed == 1 and fault == "worker out of memory":
        hunger = [np.ones(2**17) for _ in range(_HUNGER_BYTES // 2**20) if time.sleep(0.002) is None]
        del hunger
    return np.random.default_rng(seed).standard_normal((rows, FEATURES))


def samples(rows: int, fault: str) -> tuple[Any, Any]:
    """Samples and targets, as Dask arrays."""
    make = dask.delayed(chunk, pure=False)
    sizes = [min(CHUNK_ROWS, rows - at) for at in range(0, rows, CHUNK_ROWS)]
    X = da.concatenate([da.from_delayed(make(k, n, fault), (n, FEATURES), float) for k, n in enumerate(sizes)])
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def fit(rows: int, fault: str) -> Ending:
    """Fit, and say how it ended; any other exception than one of a sentence goes on."""
    model = FeatureVectorRegressor(kernel=Gaussian(2.0), n_vectors=40, alpha=1e-3)
    began = time.perf_counter()
    try:
        model.fit(*samples(rows, fault))
    except PartitionError as error:
        return Ending(None, str(error), time.perf_counter() - began)
    return Ending(model, "", time.perf_counter() - began)


@contextmanager
def cluster(memory_limit: Any = 0) -> Iterator[Any]:
    """Three processes of one thread each, and a client."""
    settings = {"processes": True, "dashboard_address": ":0", "memory_limit": memory_limit, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, **settings) as made,
        distributed.Client(made) as client,
    ):
        yield client


@contextmanager
def killing(client: Any, seconds: float) -> Iterator[list[int]]:
    """Kill a worker every so many seconds; gives the list of the killed."""
    rng, over, killed = random.Random(0), threading.Event(), list[int]()

    def work() -> None:
        while not over.wait(rng.uniform(0.5, 1.5) * seconds):
            pids = sorted(client.run(os.getpid, on_error="ignore").values())
            if len(pids) == WORKERS:  # one that is killed while it starts is not started again
                killed.append(rng.choice(pids))
                end(killed[-1])

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def end(pid: int) -> None:
    """End a process of ours at once, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def restarting(seconds: float) -> Iterator[Any]:
    """A cluster of commands, whose scheduler is killed after so many seconds and started again at the same address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, quiet = f"tcp://127.0.0.1:{port}", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]], **quiet)

    schedule = ("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    running = [start(*schedule)]
    running += [start("worker", address, "--nthreads", "1", "--no-dashboard") for _ in range(WORKERS)]

    def again() -> None:
        end(running[0].pid)
        running[0].wait()
        time.sleep(1)
        running.append(start(*schedule))

    timer = threading.Timer(seconds, again)
    try:
        with distributed.Client(address, timeout=60) as client:
            client.wait_for_workers(WORKERS, timeout=120)
            timer.start()
            yield client
    finally:
        timer.cancel()
        timer.join()
        for process in running:
            end(process.pid)
            process.wait()


def run(fault: str, rows: int, seconds: float) -> tuple[Ending, str]:
    """One fit with a fault that comes every so many seconds, and what was done to it."""
    if fault == "scheduler restarted":
        with restarting(seconds):
            return fit(rows, fault), "killed once"
    with cluster(_MEMORY_LIMIT_BYTES if fault == "worker out of memory" else 0) as client:
        if fault != "workers killed":
            return fit(rows, fault), ""
        with killing(client, seconds) as killed:
            return fit(rows, fault), f"{len(killed)} killed"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scale.faults", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="time between kills")
    parser.add_argument("--only", default="", help="part of the name of a fault")
    options = parser.parse_args(arguments)
    wanted = [fault for fault in FAULTS if options.only in fault or fault == "none"]
    new, expected, wrong = np.random.default_rng(0).standard_normal((100, FEATURES)), None, 0
    for fault in wanted:
        ending, note = run(fault, options.rows, options.seconds)
        answers = None if ending.model is None else ending.model.predict(new)
        expected = answers if fault == "none" else expected
        same = answers is not None and np.array_equal(answers, expected)
        wrong += not (same or ending.sentence)
        what = "the same model" if same else ending.sentence or "ANOTHER MODEL"
        print(f"{fault:22} {options.rows:,} rows, {ending.seconds:5.0f} s  {note:10} {what}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
