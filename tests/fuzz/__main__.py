"""``python -m tests.fuzz --loads 100000``: load damaged model files and count what happens.

Exit code 1 if one load ended otherwise than with a model that predicts or with a ModelFileError. Each such load is
printed with its number; ``--first NUMBER --loads 1`` repeats it. Several processes with ranges of their own share a
large number of loads.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.models import subjects
from tests.fuzz.mutate import MUTATIONS
from tests.fuzz.run import many


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--loads", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first load")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        counts, wrong = many(range(options.first, options.first + options.loads), options.seed, Path(folder))
    for outcome in wrong:
        print(f"{outcome.number}: {outcome.model}, {outcome.mutation}: {outcome.detail}")
    results = ("refused", "predicted", "wrong")
    print(f"{'':15} " + " ".join(f"{result:>10}" for result in results))
    for name in MUTATIONS:
        print(f"{name:15} " + " ".join(f"{counts[name, result]:10,}" for result in results))
    print(f"{'all':15} " + " ".join(f"{sum(counts[name, r] for name in MUTATIONS):10,}" for r in results))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(subjects())} models, at most {memory:.0f} MiB, {time.perf_counter() - began:.0f} s")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
