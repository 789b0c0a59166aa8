"""Processor time of a dozen and more fits and predictions, of this tree and of another commit in turn, as ratios.

Each side is a process of one thread of its own. They take turns, so that other work on the machine counts for both; a
ratio is of two calls, one right after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.tables.text import grid
from benchmarks.times_cases import CASES
from benchmarks.workers import thread_variables

__all__ = ["Side", "Times", "compare", "main", "other_tree"]

HERE = Path(__file__).parents[1]
SCRIPT = Path(__file__).with_name("times_cases.py")
# Rounds of a case: at least and at most so many, and no more than fit into so many seconds.
LEAST_ROUNDS, MOST_ROUNDS, CASE_SECONDS = 4, 12, 8.0
# A case is named as slower or faster where every round says so, by this share at the median.
NOTICED = 0.1


class Side:
    """The cases in a process that imports the fewkern of a tree."""

    def __init__(self, tree: Path) -> None:
        environment = {**os.environ, **thread_variables(1), "PYTHONPATH": str(tree / "src")}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT)], env=environment, cwd=tree, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            found = self._read()
        except RuntimeError:
            self.end()
            raise
        if not Path(found).is_relative_to(tree):
            self.end()
            raise RuntimeError(f"times: expected the fewkern of {tree}, but Python imports {found}.")

    def _read(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"times: the process of a side ended with {self._process.wait()}; its words are above.")
        return json.loads(line)

    def run(self, case: str) -> dict[str, Any]:
        self._process.stdin.write(case + "\n")
        self._process.stdin.flush()
        return self._read()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@dataclass
class Times:
    """What the rounds of a case said."""

    rounds: list[tuple[float, float]] = field(default_factory=list)
    """Seconds of this tree, and of the other."""
    vectors: tuple[int | None, int | None] = (None, None)
    failed: str = ""

    @property
    def ratios(self) -> list[float]:
        return [here / max(there, 1e-9) for here, there in self.rounds]

    @property
    def verdict(self) -> str:
        if self.rounds and min(self.ratios) > 1 and median(self.ratios) > 1 + NOTICED:
            return "slower"
        return "faster" if self.rounds and max(self.ratios) < 1 and median(self.ratios) < 1 - NOTICED else ""


def compare(case: str, here: Side, there: Side, seconds: float) -> Times:
    """Rounds of a case, in which the sides take turns at being first."""
    times = Times()
    while len(times.rounds) < LEAST_ROUNDS or (len(times.rounds) < MOST_ROUNDS and spent(times) < seconds):
        first_here = len(times.rounds) % 2 == 0
        found = [side.run(case) for side in ((here, there) if first_here else (there, here))]
        mine, other = found if first_here else reversed(found)
        reasons = [f"{tree}: {said['failed']}" for tree, said in (("here", mine), ("there", other)) if "failed" in said]
        if reasons:
            return Times(failed="; ".join(reasons))
        times.rounds.append((mine["seconds"], other["seconds"]))
        times.vectors = mine["vectors"], other["vectors"]
    return times


def spent(times: Times) -> float:
    return sum(map(sum, times.rounds))


@contextmanager
def other_tree(revision: str, root: Path) -> Iterator[Path]:
    """The tree of a commit in a folder of its own, which is removed at the end."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"times: git {words[0]}: {done.stderr.strip()}")
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        git("worktree", "add", "--detach", str(tree), revision)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def row(case: str, times: Times) -> list[str]:
    if times.failed:
        return [case, "", "", "", "", "", "failed"]
    here, there = (median(column) for column in zip(*times.rounds))
    ratios = times.ratios
    vectors = "" if times.vectors == (None, None) else "{} / {}".format(*times.vectors)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return [case, f"{here:.3g}", f"{there:.3g}", f"{median(ratios):.2f}", spread, vectors, times.verdict]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks times", description=__doc__)
    parser.add_argument("--against", default="HEAD", metavar="REV", help="the other commit; default: the last one here")
    parser.add_argument("--cases", nargs="+", metavar="WORD", help="cases whose names have one of these words")
    parser.add_argument("--seconds", type=float, default=CASE_SECONDS, help="of a case; default: %(default)g")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if not options.cases or any(word in case for word in options.cases)]
    if not cases:
        sys.exit(f"times: no case has one of these words: {', '.join(options.cases)}. Cases: {'; '.join(CASES)}.")
    found: dict[str, Times] = {}
    with other_tree(options.against, HERE) as tree, Side(HERE) as here, Side(tree) as there:
        for case in cases:
            found[case] = compare(case, here, there, options.seconds)
            print(f"  {case}: {found[case].failed or f'{median(found[case].ratios):.2f}'}", flush=True)
    print(
        f"\nProcessor seconds of one thread, this tree and {options.against}; ratio: median of the rounds, and range:\n"
    )
    head = ["case", "here", options.against, "ratio", "range", "vectors", ""]
    print(grid([head, *(row(case, times) for case, times in found.items())], options.markdown), flush=True)
    for case, times in found.items():
        if times.failed:
            print(f"\n{case}: {times.failed}", flush=True)


if __name__ == "__main__":
    main()
