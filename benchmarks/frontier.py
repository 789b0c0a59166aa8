"""Error against number of vectors: ours, SVC, fastrvm, xRFM and Nystroem on 14 sets; a table and two pictures.

Results are kept in ``benchmarks/results`` as they come: a run that was stopped goes on where it was. ``--only ours
--again`` measures our methods anew and keeps the others; ``--show`` measures nothing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.frontier_picture import draw_average, draw_sets
from benchmarks.measure import header, timed
from benchmarks.methods import METHODS, Method, Values
from benchmarks.splits import SETS, split
from experiments.data import DataNotFoundError
from experiments.store import Record, Store

__all__ = ["Frontier", "Mean", "main"]

FOLDER = Path(__file__).parent / "results"
PICTURES = Path(__file__).parents[1] / "docs"


@dataclass(frozen=True)
class Mean:
    """A point of a method on one set, or on average: means over the splits, and the standard error of the error."""

    size: int | None
    vectors: float
    error: float
    spread: float
    seconds: float


class Frontier:
    """What was measured."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.values: dict[tuple[str, str, int], Values] = {}
        for record in store.read():
            method = METHODS.get(record["row"])
            if method is not None and record["key"] == method.version:
                self.values[record["row"], record["protocol"], record["run"]] = record["values"]

    def forget(self, names: Iterable[str], sets: Iterable[str], splits: int) -> None:
        """Remove results, which are then measured again."""
        gone = {(name, data, k) for name in names for data in sets for k in range(splits)}
        self.store.forget(gone)
        self.values = {unit: values for unit, values in self.values.items() if unit not in gone}

    def measure(self, names: list[str], sets: Iterable[str], splits: int) -> None:
        """Measure what is missing, and keep every result as it comes."""
        for k in range(splits):
            for data in sets:
                self.store.append(self._missing(names, data, k))

    def _missing(self, names: list[str], data: str, k: int) -> Iterator[Record]:
        missing = [name for name in names if (name, data, k) not in self.values]
        part = split(data, k) if missing else None
        for name in missing:
            found = {other: values for (other, *where), values in self.values.items() if where == [data, k]}
            values, seconds = timed(lambda name=name, found=found: attempt(METHODS[name], part, found))
            self.values[name, data, k] = values
            print(f"  {data}, split {k}: {name}, {seconds:.1f} s {values.get('failed', '')}", flush=True)
            yield {"row": name, "protocol": data, "run": k, "key": METHODS[name].version, "values": values}

    def points(self, name: str, data: str) -> list[Mean]:
        """The points of a method on a set, the one that it chose itself first."""
        runs = [v["points"] for (n, d, _), v in sorted(self.values.items()) if (n, d) == (name, data) and "points" in v]
        return [_mean(list(points)) for points in zip(*runs)]

    def average(self, name: str, sets: list[str]) -> list[Mean]:
        """Means over the sets; none where one is missing."""
        columns = [self.points(name, data) for data in sets]
        return [_average(list(points)) for points in zip(*columns)] if all(columns) else []


def attempt(method: Method, part: Any, found: dict[str, Values]) -> Values:
    """What a method finds on a split; where another package fails, the reason."""
    if method.ours:
        return method.run(part, found)
    try:
        return method.run(part, found)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _mean(points: list[Values]) -> Mean:
    """Mean over splits."""
    errors = [p["error"] for p in points]
    spread = float(np.std(errors, ddof=1)) / math.sqrt(len(errors)) if len(errors) > 1 else math.nan
    vectors, seconds = (float(np.mean([p[key] for p in points])) for key in ("vectors", "seconds"))
    return Mean(points[0]["size"], vectors, float(np.mean(errors)), spread, seconds)


def _average(points: list[Mean]) -> Mean:
    """Mean over sets, whose errors are independent."""
    spread = math.sqrt(sum(p.spread**2 for p in points)) / len(points)
    vectors, error, seconds = (
        float(np.mean([getattr(p, key) for p in points])) for key in ("vectors", "error", "seconds")
    )
    return Mean(points[0].size, vectors, error, spread, seconds)


def cell(point: Mean | None) -> str:
    if point is None:
        return ""
    spread = "" if math.isnan(point.spread) else f" ± {point.spread:.2f}"
    return f"{point.error:.2f}{spread} / {point.vectors:.0f}"


def own_choice(points: list[Mean]) -> Mean | None:
    """The point whose number of vectors the method chose itself."""
    return points[0] if points and points[0].size is None else None


def print_choices(frontier: Frontier, names: list[str], sets: list[str]) -> None:
    """A row per set, with the points that the methods chose themselves."""
    print("\nTest error % ± standard error / vectors, as every method chooses on the training part:\n")
    choosing = [name for name in names if any(own_choice(frontier.points(name, data)) for data in sets)]
    print(f"| set | {' | '.join(METHODS[name].label for name in choosing)} |")
    print("|---" * (len(choosing) + 1) + "|")
    for data in sets:
        print(f"| {data} | {' | '.join(cell(own_choice(frontier.points(name, data))) for name in choosing)} |")
    averages = [own_choice(frontier.average(name, sets)) for name in choosing]
    print(f"| **mean** | {' | '.join(map(cell, averages))} |")
    print(f"| CPU seconds | {' | '.join('' if p is None else f'{p.seconds:.1f}' for p in averages)} |", flush=True)


def print_sizes(frontier: Frontier, names: list[str], sets: list[str]) -> None:
    """A row per number of vectors: the means over the sets."""
    curves = {name: {p.size: p for p in frontier.average(name, sets) if p.size} for name in names}
    curves = {name: points for name, points in curves.items() if points}
    sizes = sorted({size for points in curves.values() for size in points})
    print("\nMeans over the sets at given numbers of vectors (fewer where a set has fewer distinct samples):\n")
    print(f"| vectors | {' | '.join(METHODS[name].label for name in curves)} |")
    print("|---" * (len(curves) + 1) + "|")
    for size in sizes:
        print(f"| {size} | {' | '.join(cell(points.get(size)) for points in curves.values())} |", flush=True)


def chosen_methods(only: list[str]) -> list[str]:
    """Names of the methods that were asked for and are installed; the others are named in the output."""
    wanted = [
        name for name, m in METHODS.items() if not only or name in only or ("ours" if m.ours else "peers") in only
    ]
    for name in wanted:
        if not METHODS[name].installed:
            print(f"{name} is not installed (pip install 'fewkern[benchmarks]'): left out")
    return [name for name in wanted if METHODS[name].installed]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks frontier", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=["ours", "peers", *METHODS], default=[], help="default: all")
    parser.add_argument("--again", action="store_true", help="measure again what was measured")
    parser.add_argument("--show", action="store_true", help="measure nothing: tables and pictures of what there is")
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder for the pictures")
    options = parser.parse_args(arguments)
    frontier = Frontier(Store(FOLDER / "benchmark-frontier.jsonl"))
    header("Error against number of vectors" + ("" if options.show else f", {options.splits} split(s)"), 1)
    if not options.show:
        names = chosen_methods(options.only)
        if options.again:
            frontier.forget(names, options.sets, options.splits)
        try:
            with threadpool_limits(1):
                frontier.measure(names, options.sets, options.splits)
        except DataNotFoundError as error:
            print(f"left out: {error}")
        frontier.store.pack()
    names = [name for name in METHODS if any(frontier.points(name, data) for data in options.sets)]
    print_choices(frontier, names, options.sets)
    print_sizes(frontier, names, options.sets)
    for draw, path in ((draw_average, "frontier.png"), (draw_sets, "frontier-sets.png")):
        draw(frontier, names, options.sets).savefig(options.pictures / path, dpi=110)
        print(f"\nwrote {path}", flush=True)


if __name__ == "__main__":
    main()
