"""``python -m tests.hostile``: fit every estimator on every hostile input and count what happens.

Exit code 1 if one trial ended otherwise than with a finite answer, a warning or a clear ValueError or TypeError.
``--only TEXT`` runs the trials whose name contains the text, ``--show refused`` prints what they say.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.hostile.run import RESULTS, run, trials


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--only", default="", help="part of the name of a trial")
    parser.add_argument("--show", default="wrong", choices=RESULTS, help="trials that are printed")
    options = parser.parse_args(arguments)
    began, counts, total = time.perf_counter(), Counter[tuple[str, str]](), Counter[str]()
    for trial in trials():
        if options.only not in trial.name:
            continue
        outcome = run(trial)
        counts[type(trial.model).__name__, outcome.result] += 1
        total[outcome.result] += 1
        if outcome.result == options.show:
            print(f"{trial.name}: {outcome.detail}", flush=True)
    print(f"{'':26} " + " ".join(f"{result:>9}" for result in RESULTS))
    for name in sorted({name for name, _ in counts}):
        print(f"{name:26} " + " ".join(f"{counts[name, result]:9,}" for result in RESULTS))
    print(f"{'all':26} " + " ".join(f"{total[result]:9,}" for result in RESULTS))
    print(f"{total.total():,} fits, {time.perf_counter() - began:.0f} s")
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
