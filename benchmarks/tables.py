"""Our automatic models beside boosting, SVM, forest and others on 57 real tables; tables of figures and a picture.

The folder that ``FEWKERN_DATA`` names has the tables. Results are kept in ``benchmarks/results/tables.jsonl`` as they
come: a run that was stopped goes on where it was. ``--ida`` runs the 13 IDA sets instead, ``--talent`` whole tables,
beside published results of tuned methods.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.measure import header, run
from benchmarks.tables_data import CLASSES, NUMBERS, PROTOCOLS, TablesNotFoundError, names, peers, published
from benchmarks.tables_measure import measure
from benchmarks.tables_methods import METHODS
from benchmarks.tables_picture import draw
from benchmarks.tables_summary import (
    FAR,
    OFFSET,
    Comparison,
    Row,
    behind,
    compare,
    counted,
    is_ours,
    label,
    standings,
    stored_records,
    summarise,
)
from experiments.store import Record, Store

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results" / "tables.jsonl"
PICTURES = Path(__file__).parents[1] / "docs"
FIELDS = ("protocol", "set", "split", "method")
UNITS = {CLASSES: "% wrong", NUMBERS: "100 (1 - R²)"}


def chosen_methods(asked: list[str]) -> list[str]:
    """The methods that were asked for and can run; the others are named in the output."""
    wanted = [name for name, m in METHODS.items() if not asked or name in asked or _group(m.ours) in asked]
    for name in wanted:
        if METHODS[name].missing:
            print(f"{name}: {METHODS[name].missing}: left out")
    return [name for name in wanted if not METHODS[name].missing]


def _group(ours: bool) -> str:
    return "ours" if ours else "peers"


def number(value: float, digits: int = 2) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def pair(values: tuple[float, float], sign: str = "") -> str:
    """A value and its standard error."""
    value, spread = values
    if math.isnan(value):
        return ""
    return f"{value:{sign}.2f}" + ("" if math.isnan(spread) else f" ± {spread:.2f}")


def grid(rows: list[list[str]], markdown: bool) -> str:
    """Rows of cells, the first one the head: aligned columns, or a table of Markdown."""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths)))
        for row in rows
    )


def print_task(comparison: Comparison, markdown: bool) -> None:
    """Means over the tables of a task, and what falls behind."""
    count = counted(len(comparison.tables), "table")
    print(f"\n{comparison.task.capitalize()}, {count}, error in {UNITS[comparison.task]}:\n")
    head = ["method", "mean error", "less boosting's", "ratio", "far behind"]
    head += ["log loss"] * (comparison.task == CLASSES) + ["vectors", "CPU s", "stated less test error"]
    rows = [
        [label(r.method), number(r.error), *_beside(r, comparison), str(r.behind)]
        + [number(r.log_loss, 3)] * (comparison.task == CLASSES)
        + [number(r.vectors, 0), number(r.seconds), pair(r.stated, "+")]
        for r in summarise(comparison)
    ]
    print(grid([head, *rows], markdown))
    for name in filter(is_ours, comparison.methods):
        found = [f"{table} {own:.2f} ({label(peer)} {best:.2f})" for table, own, peer, best in behind(comparison, name)]
        if found:
            print(f"\n{label(name)} is over {FAR} times the best peer on: {', '.join(found)}.")
    if comparison.left_out:
        lacks = [f"{table} ({', '.join(map(label, lacking))})" for table, lacking in comparison.left_out.items()]
        print(f"\nNot compared, since a method has no result there: {', '.join(lacks)}.", flush=True)


def _beside(row: Row, comparison: Comparison) -> list[str]:
    """Difference and ratio to boosting, which has none to itself."""
    return ["", "1"] if row.method == comparison.baseline else [pair(row.difference, "+"), pair(row.ratio)]


def print_tables(comparison: Comparison, markdown: bool) -> None:
    """A row per table: error / vectors of every method."""
    rows = [["table", *map(label, comparison.methods)]]
    for k, table in enumerate(comparison.tables):
        cells = []
        for name in comparison.methods:
            error, vectors = (float(comparison.values[figure][name][k]) for figure in ("error", "vectors"))
            cells.append(number(error) + ("" if math.isnan(vectors) else f" / {vectors:.0f}"))
        rows.append([table, *cells])
    print("\n" + grid(rows, markdown), flush=True)


def print_standings(comparison: Comparison, markdown: bool) -> None:
    """Ours beside published methods."""
    found, lacking = standings(comparison, published())
    rows = [
        [f"{s.method} (published)" if s.published else label(s.method), number(s.error), number(s.rank, 1)]
        for s in found
    ]
    first = label(comparison.methods[0])
    print(f"\nBeside published, tuned methods ({counted(len(comparison.tables), 'table')}; their splits are others):\n")
    print(grid([["method", "mean error", "mean rank"], *rows], markdown))
    print(f"\nRanks are those among the published methods; theirs are beside {first}.", end="")
    print(f" Without a result on some table: {', '.join(lacking)}." if lacking else "", flush=True)


def report(records: Iterable[Record], protocol: str, markdown: bool, each: bool) -> list[Comparison]:
    """Print what there is; returns the comparisons that have tables."""
    records = list(records)
    found = [c for c in (compare(records, task) for task in (CLASSES, NUMBERS)) if c.methods]
    for comparison in found:
        print_task(comparison, markdown)
        if protocol == "talent" and comparison.tables:
            print_standings(comparison, markdown)
        if each:
            print_tables(comparison, markdown)
    print(f"\nRatio: geometric mean of (error + {OFFSET}) over that of boosting. ±: standard error over the tables.")
    failures = [record for record in records if "failed" in record]
    if failures:
        print(f"\n{counted(len(failures), 'unit')} failed:")
        for record in failures:
            print(f"  {record['set']}, split {record['split']}: {record['method']}: {record['failed']}", flush=True)
    return [c for c in found if c.tables]


def measured(store: Store, protocol: str, keep: Callable[[Record], bool]) -> list[Record]:
    return [record for record in store.read() if record["protocol"] == protocol and keep(record)]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks tables", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--ida", action="store_const", dest="protocol", const="ida", help="the 13 IDA sets")
    which.add_argument("--talent", action="store_const", dest="protocol", const="talent", help="whole tables")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="default: all of the folder")
    parser.add_argument("--splits", type=int, nargs="+", metavar="K", help="default: 0 1; --ida 3 4 5; --talent 0 1 2")
    parser.add_argument("--methods", nargs="+", choices=["ours", "peers", *METHODS], default=[], help="default: all")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--fresh", action="store_true", help="measure again what was asked for")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    parser.add_argument("--show", action="store_true", help="measure nothing: figures and picture of what there is")
    parser.add_argument("--stored-peers", action="store_true", help="add stored figures of peers that were not run")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--each", action="store_true", help="print a row per table, too")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="the file of results")
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help="default: docs/tables.png, where all tables and methods were asked for",
    )
    options = parser.parse_args(arguments)
    options.protocol = options.protocol or "tables"
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    protocol = PROTOCOLS[options.protocol]
    try:
        here = names(options.protocol)
        stored = peers() if options.stored_peers and options.protocol == "tables" else []
    except TablesNotFoundError as error:
        sys.exit(str(error))
    unknown = sorted(set(options.sets or []) - set(here))
    if unknown:
        sys.exit(f"no such set: {', '.join(unknown)}.")
    sets, splits = options.sets or here, options.splits or list(protocol.splits)
    header(f"{protocol.title}: {counted(len(sets), 'set')}, splits {' '.join(map(str, splits))}", 1)
    methods = chosen_methods(options.methods)
    units = [(options.protocol, data, k, name) for k in splits for data in sets for name in methods]
    store = Store(options.out, FIELDS)
    if not options.show:
        if options.fresh:
            store.forget(units)
        elif options.retry:
            store.forget(unit for unit, record in store.by_unit().items() if "failed" in record and unit in units)
        count = run(store, measure, units, options.jobs)
        print(f"{counted(count, 'unit')} measured, {len(units) - count} known")
    wanted = set(METHODS) if not options.methods else {n for n, m in METHODS.items() if _asked(n, m.ours, options)}
    records = measured(
        store,
        options.protocol,
        lambda r: r["set"] in sets and r["split"] in splits and r["method"] in wanted,
    )
    if stored:
        ran = {record["method"] for record in records}
        records += [r for r in stored_records(stored, without=ran) if r["set"] in sets]
        print("Stored peers are of split 0 and of another machine: their seconds compare only with each other.")
    comparisons = report(records, options.protocol, options.markdown, options.each)
    path = options.picture
    if path is None and options.protocol == "tables" and sets == here and not options.methods:
        path = PICTURES / "tables.png"
    if path is not None and comparisons:
        draw(comparisons).savefig(path, dpi=110)
        print(f"\nwrote {path.name}", flush=True)


def _asked(name: str, ours: bool, options: argparse.Namespace) -> bool:
    return name in options.methods or _group(ours) in options.methods


if __name__ == "__main__":
    main()
