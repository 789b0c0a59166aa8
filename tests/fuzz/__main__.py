"""``python -m tests.fuzz --loads 1000000``: load damaged model files and count what happens.

Exit code 1 if one load ended otherwise than with a model that predicts or with a ModelFileError. Each such load is
printed with its number; ``--first NUMBER --loads 1`` repeats it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tests.fuzz.models import subjects
from tests.fuzz.mutate import MUTATIONS
from tests.fuzz.run import Outcome, many

CHUNK = 500


def chunk(first: int, last: int, seed: int) -> tuple[Counter[tuple[str, str]], list[Outcome], int]:
    """One part of the work, in a process of its own; also the most memory that the process had, in KiB."""
    with tempfile.TemporaryDirectory() as folder:
        counts, wrong = many(range(first, last), seed, Path(folder))
    return counts, wrong, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--loads", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first load")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    subjects()  # fitted once, before the processes part
    began, counts, wrong, most = time.perf_counter(), Counter[tuple[str, str]](), [], 0
    last = options.first + options.loads
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as pool:
        starts = range(options.first, last, CHUNK)
        parts = [(start, pool.submit(chunk, start, min(start + CHUNK, last), options.seed)) for start in starts]
        for start, part in parts:
            try:
                counted, failed, memory = part.result()
            except BrokenProcessPool:
                print(f"the process died at one of the loads from {start} on")
                return 1
            counts += counted
            most = max(most, memory)
            for outcome in failed:
                print(f"{outcome.number}: {outcome.model}, {outcome.mutation}: {outcome.detail}")
            wrong += failed
    print(f"{'':15} {'refused':>10} {'predicted':>10} {'wrong':>10}")
    for name in [*MUTATIONS, "all"]:
        row = [
            sum(n for (mutation, found), n in counts.items() if found == result and name in (mutation, "all"))
            for result in ("refused", "predicted", "wrong")
        ]
        print(f"{name:15} " + " ".join(f"{n:10,}" for n in row))
    print(f"{len(subjects())} models, at most {most / 1024:.0f} MiB, {time.perf_counter() - began:.0f} s")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
