"""The command ``python -m benchmarks tables``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import tables
from benchmarks.measure import header
from benchmarks.tables.data import CLASSES, NUMBERS, PROTOCOLS, TablesNotFoundError, names, peers, splits
from benchmarks.tables.measure import measure
from benchmarks.tables.methods import BASELINE, METHODS
from benchmarks.tables.published import records_before, stored_records
from benchmarks.tables.summary import Comparison, compare, label
from benchmarks.tables.text import counted, print_failures, print_legend, print_standings, print_task, print_uci
from benchmarks.workers import TIME_LIMIT_SECONDS, Workers, run
from experiments.store import Record, Store

__all__ = ["FIELDS", "chosen_methods", "main"]

RESULTS = Path(__file__).parents[1] / "results" / "benchmark-tables.jsonl"
PICTURES = Path(__file__).parents[2] / "docs"
FIELDS = ("protocol", "set", "split", "method", "threads")
ROWS = ("1000", "3000", "all")


def asked_methods(asked: list[str]) -> list[str]:
    """Methods by name or by group; all of them where nothing is asked for."""
    return [n for n, m in METHODS.items() if not asked or n in asked or ("ours" if m.ours else "peers") in asked]


def chosen_methods(asked: list[str]) -> list[str]:
    """The methods that were asked for and can run; the others are named in the output."""
    wanted = asked_methods(asked)
    for name in wanted:
        if METHODS[name].missing:
            print(f"{name}: {METHODS[name].missing}: left out")
    return [name for name in wanted if not METHODS[name].missing]


def report(records: list[Record], options: argparse.Namespace) -> list[Comparison]:
    """Print what there is; returns the comparisons that have tables."""
    found = []
    if options.protocol == "uci":
        print_uci(records, options.markdown)
    else:
        found = [c for c in (compare(records, task, options.beside) for task in (CLASSES, NUMBERS)) if c.tables]
    for comparison in found:
        print_task(comparison, options.markdown, options.each)
        if options.protocol == "talent":
            print_standings(comparison, options.markdown)
    if found:
        print_legend(label(options.beside))
    print_failures(records)
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks tables", description=tables.__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rows", choices=ROWS, dest="protocol", default="3000", help="training rows; default: 3000")
    for name, text in (("ida", "the 13 IDA sets"), ("uci", "UCI sets, published splits"), ("talent", "whole tables")):
        which.add_argument(f"--{name}", action="store_const", dest="protocol", const=name, help=text)
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="default: all of the protocol")
    parser.add_argument("--categories", action="store_true", help="of these sets those that have categories")
    parser.add_argument("--splits", type=int, nargs="+", metavar="K", help="default: those of the protocol")
    parser.add_argument("--methods", nargs="+", choices=["ours", "peers", *METHODS], default=[], help="default: all")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 measures in this one, without a limit")
    parser.add_argument("--threads", type=int, default=1, help="threads of a process; default: 1")
    parser.add_argument(
        "--limit",
        type=float,
        default=TIME_LIMIT_SECONDS,
        metavar="SECONDS",
        help="what takes longer is stopped and named; default: %(default)g",
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what was asked for")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    parser.add_argument("--show", action="store_true", help="measure nothing: figures and picture of what there is")
    parser.add_argument("--beside", default=BASELINE, metavar="METHOD", help="what ratios are to; default: %(default)s")
    parser.add_argument(
        "--add", type=Path, nargs="+", default=[], metavar="FILE", help="keep results of other runs, too"
    )
    parser.add_argument("--before", type=Path, metavar="FILE", help="results of another tree, whose ours are added")
    parser.add_argument("--stored-peers", action="store_true", help="add stored figures of peers that were not run")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--each", action="store_true", help="print a row per table, too")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where the results are kept")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw what there is of all sizes")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    protocol = options.protocol
    try:
        sets = options.sets or names(protocol, options.categories)
        stored = peers() if options.stored_peers and protocol == "3000" else []
        of_set = {name: options.splits or list(splits(protocol, name)) for name in sets}
    except TablesNotFoundError as error:
        sys.exit(str(error))
    header(f"{PROTOCOLS[protocol].title}: {counted(len(sets), 'set')}", options.threads)
    methods = chosen_methods(options.methods)
    every = sorted({split for found in of_set.values() for split in found})
    units = [
        (protocol, data, k, name, options.threads)
        for k in every for data in sets if k in of_set[data] for name in methods
    ]  # fmt: skip
    store = Store(options.results, FIELDS)
    for path in options.add:
        store.append(Store(path, FIELDS).read())
    if not options.show:
        if options.fresh:
            store.forget(units)
        elif options.retry:
            store.forget(unit for unit, record in store.by_unit().items() if "failed" in record and unit in units)
        count = run(store, measure, units, Workers(options.jobs, options.threads, options.limit))
        print(f"{counted(count, 'unit')} measured, {len(units) - count} known")
    if options.results == RESULTS:
        store.pack()

    def wanted(record: Record) -> bool:
        place = record["protocol"] == protocol and record["split"] in of_set.get(record["set"], [])
        return place and record["method"] in asked_methods(options.methods) and record["threads"] == options.threads

    records = [record for record in store.read() if wanted(record)]
    if options.before:
        records += records_before(record for record in Store(options.before, FIELDS).read() if wanted(record))
    if stored:
        ran = {record["method"] for record in records}
        records += [r for r in stored_records(stored, without=ran) if r["set"] in sets]
        print("Stored peers are of split 0 and of another machine: their seconds compare only with each other.")
    report(records, options)
    if options.picture:
        from benchmarks.tables.picture import draw

        draw([r for r in store.read() if r["threads"] == options.threads]).savefig(options.picture, dpi=110)
        print(f"\nwrote {options.picture.name}", flush=True)
