"""Time and memory of a fit against the number of rows, ours beside boosting, Nystroem + SGD and xRFM; a picture.

Processor seconds of one thread; every fit in a process of its own. Results are kept in ``benchmarks/results`` as they
come: a run that was stopped goes on where it was. ``--files FOLDER`` adds ten million rows, in files through Dask.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import header
from benchmarks.scale_methods import METHODS, Values
from experiments.store import Record, Store
from fewkern.plotting.style import CLASSES

__all__ = ["Growth", "exponent", "main"]

FOLDER = Path(__file__).parent / "results"
PICTURE = Path(__file__).parents[1] / "docs" / "scale.png"
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
FILE_ROWS = 10_000_000
# One core for both sides, whatever library a method is made of.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")}
# What a fit does at least, however few the rows are: the growth is looked at above so many rows.
GROWTH_FROM = 30_000


class Growth:
    """What was measured: ``values[name, place][rows]``; the place is "memory" or "files"."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.values: dict[tuple[str, str], dict[int, Values]] = {}
        for record in store.read():
            method = METHODS.get(record["row"])
            if method is not None and record["key"] == method.version:
                self._keep(record["row"], record["protocol"], record["run"], record["values"])

    def _keep(self, name: str, place: str, rows: int, values: Values) -> None:
        self.values.setdefault((name, place), {})[rows] = values

    def forget(self, names: Iterable[str]) -> None:
        """Remove results, which are then measured again."""
        self.store.forget(unit for unit in self.store.by_unit() if unit[0] in set(names))
        self.values = {key: found for key, found in self.values.items() if key[0] not in set(names)}

    def measure(self, names: Iterable[str], sizes: Iterable[int], limit: int, folder: Path | None = None) -> None:
        """Measure what is missing, and keep every result as it comes; what took too long is not tried with more."""
        for name in names:
            self.store.append(self._missing(name, sizes, limit, folder))

    def _missing(self, name: str, sizes: Iterable[int], limit: int, folder: Path | None) -> Iterator[Record]:
        place = "memory" if folder is None else "files"
        for rows in sorted(sizes):
            found = self.values.get((name, place), {})
            if any("failed" in values for size, values in found.items() if size < rows):
                return
            if rows not in found:
                values = in_own_process(name, rows, limit, folder)
                self._keep(name, place, rows, values)
                print(f"  {name}, {rows:,} rows: {values}", flush=True)
                yield {"row": name, "protocol": place, "run": rows, "key": METHODS[name].version, "values": values}

    def finished(self, name: str, place: str = "memory") -> dict[int, Values]:
        """The fits that came to their end."""
        return {r: v for r, v in sorted(self.values.get((name, place), {}).items()) if "failed" not in v}


def in_own_process(name: str, rows: int, limit: int, folder: Path | None) -> Values:
    """One fit; the reason where it fails or takes longer than ``limit`` seconds."""
    command = [sys.executable, "-m", "benchmarks.scale_methods", name, str(rows), *([str(folder)] if folder else [])]
    environment = {**os.environ, **ONE_THREAD}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"failed": lines[-1] if lines else f"the process ended with {done.returncode}"}
    found: Values = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(points: dict[int, float], least: int = GROWTH_FROM) -> float:
    """Slope of the logarithm against that of the number of rows, by least squares; NaN with fewer than two points."""
    kept = [(rows, value) for rows, value in points.items() if rows >= least and value > 0]
    if len(kept) < 2:
        return float("nan")
    x, y = np.log(np.array(kept, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def print_table(growth: Growth, names: list[str]) -> None:
    """A row per method: seconds / MiB for every size, and the exponents."""
    sizes = sorted({rows for name in names for rows in growth.finished(name)})
    print(f"\nProcessor seconds / MiB beside the table; exponents from {GROWTH_FROM:,} rows on:\n")
    print(f"| fit | {' | '.join(f'{rows:,}' for rows in sizes)} | time grows like n^ | memory like n^ | on new rows |")
    print("|---" * (len(sizes) + 4) + "|")
    for name in names:
        found = growth.finished(name)
        cells = [_cell(found.get(rows)) for rows in sizes]
        slopes = [exponent({rows: v[key] for rows, v in found.items()}) for key in ("seconds", "memory")]
        grown = " | ".join("" if np.isnan(slope) else f"{slope:.2f}" for slope in slopes)
        last = f"{found[max(found)]['quality']:.2f}" if found else ""
        print(f"| {METHODS[name].label} | {' | '.join(cells)} | {grown} | {last} |", flush=True)
    print("\nOn new rows: error in %, squared error over the variance in %, minus the mean log density.")
    for name in names:
        for rows, values in growth.finished(name, "files").items():
            print(
                f"\n{METHODS[name].label}, {rows:,} rows in files: {_cell(values)}, {values['quality']:.2f} on new rows"
            )


def _cell(values: Values | None) -> str:
    return "" if values is None else f"{values['seconds']:.1f} / {values['memory']:.0f}"


def draw(growth: Growth, names: list[str]) -> Any:
    """Time and memory against the number of rows; ours have full symbols, the others hollow ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    axes = figure.subplots(1, 2)
    colors = dict(zip(METHODS, (*CLASSES, "#555555", "#999999")))
    for ax, key, title in zip(axes, ("seconds", "memory"), ("processor seconds of a fit", "MiB beside the table")):
        for name, mark in zip(names, "osDdPpv^*h"):
            points = {rows: values[key] for rows, values in growth.finished(name).items() if values[key] > 0}
            fill = colors[name] if METHODS[name].ours else "white"
            ax.loglog(
                list(points), list(points.values()), marker=mark, ms=5, lw=1.2,
                color=colors[name], mfc=fill, label=METHODS[name].label,
            )  # fmt: skip
        ax.set(xlabel="rows", title=title)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def chosen(only: list[str]) -> list[str]:
    """Names of the methods that were asked for and are installed; the others are named in the output."""
    wanted = [n for n, m in METHODS.items() if not only or n in only or ("ours" if m.ours else "peers") in only]
    for name in wanted:
        if not METHODS[name].installed:
            print(f"{name} is not installed: left out")
    return [name for name in wanted if METHODS[name].installed]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--only", nargs="+", choices=["ours", "peers", *METHODS], default=[], help="default: all")
    parser.add_argument("--limit", type=int, default=1800, help="seconds that one fit may take")
    parser.add_argument("--files", type=Path, help=f"folder for {FILE_ROWS:,} rows in files, 1.8 GB")
    parser.add_argument("--file-rows", type=int, default=FILE_ROWS)
    parser.add_argument("--again", action="store_true", help="measure again what was measured")
    parser.add_argument("--show", action="store_true", help="measure nothing: table and picture of what there is")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args(arguments)
    growth = Growth(Store(options.results / "benchmark-scale.jsonl"))
    header("Time and memory against the number of rows, 20 features", 1)
    if not options.show:
        names = chosen(options.only)
        if options.again:
            growth.forget(names)
        growth.measure(names, options.rows, options.limit)
        if options.files:
            streaming = [name for name in names if METHODS[name].streams]
            growth.measure(streaming, [options.file_rows], options.limit, options.files)
        growth.store.pack()
    names = [name for name in METHODS if growth.finished(name) or growth.finished(name, "files")]
    print_table(growth, names)
    draw(growth, names).savefig(options.picture, dpi=110)
    print(f"\nwrote {options.picture.name}", flush=True)


if __name__ == "__main__":
    main()
