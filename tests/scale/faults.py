"""``python -m tests.scale.faults``: one fit on a cluster of three processes with injected faults.

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


def chunk(seed: int, rows: int, fault: str) -> np.ndarray[Any, Any]:
    """The rows of one chunk, the same at every pass."""
    if seed == 1 and fault == "slow partition":
        time.sleep(_SLOW_SECONDS)
    if seed == 1 and fault == "worker out of memory":
        hunger = [np.ones(2**17) for _ in range(_HUNGER_BYTES // 2**20) if time.sleep(0.002) is None]
        del hunger
    return np.random.default_rng(seed).standard_normal((rows, FEATURES))


def fit(rows: int, fault: str) -> FeatureVectorRegressor | str:
    """The model, or the sentence with which the fit ended; any other exception goes on."""
    make = dask.delayed(chunk, pure=False)
    sizes = [min(CHUNK_ROWS, rows - at) for at in range(0, rows, CHUNK_ROWS)]
    X = da.concatenate([da.from_delayed(make(k, n, fault), (n, FEATURES), float) for k, n in enumerate(sizes)])
    model = FeatureVectorRegressor(kernel=Gaussian(2.0), n_vectors=40, alpha=1e-3)
    try:
        return model.fit(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2])
    except PartitionError as error:
        return str(error)


def end(pid: int) -> None:
    """End a process of ours at once, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def killing(client: Any, seconds: float) -> Iterator[list[int]]:
    """Kill a worker every ``seconds`` or so; gives the list of the killed."""
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


@contextmanager
def restarting(seconds: float) -> Iterator[None]:
    """A cluster of commands, whose scheduler is killed after ``seconds`` and started again at the same address."""
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
            yield
    finally:
        timer.cancel()
        timer.join()
        for process in running:
            end(process.pid)
            process.wait()


def run(fault: str, rows: int, seconds: float) -> tuple[FeatureVectorRegressor | str, str]:
    """How one fit ended whose fault comes every ``seconds``, and what was done to it."""
    if fault == "scheduler restarted":
        with restarting(seconds):
            return fit(rows, fault), "killed once"
    limit = _MEMORY_LIMIT_BYTES if fault == "worker out of memory" else 0
    settings = {"processes": True, "dashboard_address": ":0", "memory_limit": limit, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, **settings) as made,
        distributed.Client(made) as client,
    ):
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
    new, expected, wrong = np.random.default_rng(0).standard_normal((100, FEATURES)), None, 0
    for fault in FAULTS:
        if options.only not in fault and fault != "none":
            continue
        began = time.perf_counter()
        ending, note = run(fault, options.rows, options.seconds)
        if not isinstance(ending, str):
            answers = ending.predict(new)
            expected = answers if fault == "none" else expected
            same = np.array_equal(answers, expected)
            ending, wrong = ("the same model", wrong) if same else ("ANOTHER MODEL", wrong + 1)
        taken = f"{options.rows:,} rows, {time.perf_counter() - began:5.0f} s"
        print(f"{fault:22} {taken}  {note:10} {ending}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
