"""``python -m tests.fuzz --loads 100000``: load damaged model files and count what happens.

Exit code 1 if one load ended otherwise than with a model that predicts or with a ModelFileError. Each such load is
printed with its number; ``--first NUMBER --loads 1`` repeats it. With ``--folder`` every thousand loads leave their
counts in a file, so that a large number can be interrupted and resumed.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.models import subjects
from tests.fuzz.mutate import MUTATIONS
from tests.fuzz.run import many

_PART_LOADS = 1000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--loads", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first load")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where counts are kept; parts that are there are not done again")
    options = parser.parse_args(arguments)
    began, counts, wrong = time.perf_counter(), Counter[str](), []
    last = options.first + options.loads
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for first in range(options.first, last, _PART_LOADS):
            part = folder / f"{options.seed}-{first}.json"
            if not part.exists():
                found = many(range(first, min(first + _PART_LOADS, last)), options.seed, Path(temporary))
                part.write_text(json.dumps(found), encoding="utf-8")
        for part in folder.glob("*.json"):
            found = json.loads(part.read_text(encoding="utf-8"))
            counts.update(found[0])
            wrong += found[1]
    print("\n".join(wrong))
    for name in MUTATIONS:
        own = (f"{result} {counts[f'{name}: {result}']:,}" for result in ("refused", "predicted", "wrong"))
        print(f"{name}: {', '.join(own)}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(subjects())} models, at most {memory:.0f} MiB, {time.perf_counter() - began:.0f} s")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
