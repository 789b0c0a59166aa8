"""``python -m tests.mutate --seed 1``: change the source a little and see whether a test fails.

A random sample of all mutants of ``core`` and of the algorithms, each against the tests that reach its function.
Survivors are printed. Those that nobody could tell from the original are listed in ``equivalent.toml`` with their
reasons, and not counted. The first run measures which tests reach what, which takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.mutate.mutants import Mutant, mutants_of
from tests.mutate.reach import ROOT, OneTest, Reach, Recorder, changed_files, keep
from tests.mutate.run import Items, in_child, passes, source_of, try_mutant, with_tests
from tests.mutate.subjects import algorithm_modules, equivalent

_ALIVE = ("survived", "not reached")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300, help="size of the sample")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests per mutant")
    parser.add_argument("--only", default="", help="only modules whose name contains this")
    parser.add_argument("--keep", type=Path, help="file of results: mutants that it has are not tried again")
    parser.add_argument("--again", action="store_true", help="try the survivors in that file again")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    modules = [name for name in algorithm_modules() if options.only in name]
    mutants = [m for name in modules for m in mutants_of(name, source_of(name).read_text(encoding="utf-8"))]
    sample = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))
    results = Results(options.keep)
    began, counts = time.perf_counter(), Counter[str]()

    changed = changed_files()
    if changed:
        with_tests(list(changed), _measure)
    reach = Reach.read()
    chosen = {mutant: reach.of(mutant.module, mutant.function, options.budget) for mutant in sample}

    def work(items: Items) -> None:
        for mutant, tests in chosen.items():
            outcome = results.of(mutant)
            if outcome is None or (options.again and outcome in _ALIVE):
                outcome = _outcome(mutant, tests, items)
                results.add(mutant, outcome)
            counts[outcome] += 1
            if outcome in _ALIVE:
                print(f"{outcome}: {mutant}", flush=True)

    files = {test.name.split("::")[0] for tests in chosen.values() for test in tests}
    if files:
        with_tests(sorted(files), work)
    counted = counts.total() - counts["equivalent"]
    killed = counts["killed"] + counts["timeout"]
    print(f"seed {options.seed}, {len(sample)} of {len(mutants):,} mutants in {len(modules)} modules:")
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    print(f"{killed} of {counted} killed ({killed / max(counted, 1):.1%}) in {time.perf_counter() - began:.0f} s")
    return 0


def _measure(items: Items) -> None:
    """Measure the test files that are new or changed."""
    for file, digest in changed_files().items():
        print(f"which functions do the tests of {file} reach?", file=sys.stderr, flush=True)
        own = [item for name, item in items.items() if name.startswith(f"{file}::")]

        def work(file: str = file, digest: str = digest, own: list[pytest.Item] = own) -> int:
            keep(file, digest, Recorder(passes).measure(own))
            return 0

        if in_child(work):
            raise RuntimeError(f"the tests of {file} could not be measured")


class Results:
    """What became of mutants, one line each in a file, so that a run can be continued."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.exists() else []
        self.outcomes: dict[str, str] = dict(json.loads(line) for line in lines)

    def of(self, mutant: Mutant) -> str | None:
        """The outcome of an earlier run, if there is one."""
        return self.outcomes.get(str(mutant))

    def add(self, mutant: Mutant, outcome: str) -> None:
        """Note an outcome."""
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps([str(mutant), outcome]) + "\n")


def _outcome(mutant: Mutant, tests: list[OneTest], items: Items) -> str:
    if mutant in equivalent():
        return "equivalent"
    return try_mutant(mutant, tests, items) if tests else "not reached"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
