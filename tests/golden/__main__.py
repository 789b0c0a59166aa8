"""``python -m tests.golden`` compares this tree with the record; ``--write`` makes the record anew.

Run it before and after a change that is meant to change nothing. A result that changes on purpose is written in a
commit of its own, with its reason in CHANGELOG.md.

``python -m tests.golden decisions`` does the same with the record of decisions (``decisions.py``): it prints one line
for every case that decides otherwise, the largest difference first. ``--write`` makes the record anew, and words choose
the cases whose names contain one of them.
"""

from __future__ import annotations

import sys

import numpy as np

from tests.golden import decisions
from tests.golden.cases import cases, run
from tests.golden.record import differences, read, write


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["decisions"]:
        return decisions.main(arguments[1:])
    every = {case.name: case for case in cases()}
    found = {name: result for name, case in every.items() if (result := run(case)) is not None}
    if "--write" in arguments:
        kept = {name: old for name, old in read().items() if name.endswith("/torch") and name not in found}
        write({**kept, **found})
        print(f"{len(found)} cases written")
        return 0
    record, worst, bad = read(), 0.0, 0
    for name, result in found.items():
        problems, size = differences(result, record.get(name), every[name].tolerance)
        worst = max(worst, size)
        bad += bool(problems)
        for problem in problems:
            print(f"{name}: {problem}")
    gone = sorted(name for name in record if name not in found and not name.endswith("/torch"))
    if gone:
        print("in the record, but not here:", *gone)
    print(
        f"{len(found)} cases, {bad} differ, largest difference among the others {np.format_float_scientific(worst, 1)}"
    )
    return int(bool(bad or gone))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
