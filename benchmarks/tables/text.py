"""Tables of figures, in plain text or Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

import numpy as np

from benchmarks.tables.data import CLASSES, NUMBERS, published
from benchmarks.tables.published import UCI_PUBLISHED, standings
from benchmarks.tables.summary import FAR, LARGEST, OFFSET, Comparison, Row, behind, is_ours, label, ordered, summarise
from experiments.store import Record

__all__ = ["counted", "grid", "number", "pair", "print_failures", "print_task", "print_uci"]

UNITS = {CLASSES: "% wrong", NUMBERS: "100 (1 - R²)"}


def counted(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def number(value: float, digits: int = 2) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def pair(values: tuple[float, float], sign: str = "", digits: int = 2) -> str:
    """A value and its standard error."""
    value, spread = values
    if math.isnan(value):
        return ""
    return f"{value:{sign}.{digits}f}" + ("" if math.isnan(spread) else f" ± {spread:.{digits}f}")


def grid(rows: list[list[str]], markdown: bool) -> str:
    """Rows of cells, the first one the head: aligned columns, or a table of Markdown."""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths))).rstrip()
        for row in rows
    )


def print_task(comparison: Comparison, markdown: bool, each: bool) -> None:
    """Errors over the tables of a task and what they hang on, sizes and times, and what falls behind."""
    rows, versus = summarise(comparison), label(comparison.versus or "")
    count = len(comparison.tables)
    print(f"\n{comparison.task.capitalize()}, {counted(count, 'table')}, error in {UNITS[comparison.task]}:\n")
    print(grid([_error_head(versus), *(_error_cells(row, count, versus) for row in rows)], markdown))
    sizes = [_size_head(versus), *(_size_cells(row, versus) for row in rows)]
    if comparison.task == NUMBERS:
        sizes = [[row[0], *row[2:]] for row in sizes]  # without log loss
    print(f"\nSizes and times:\n\n{grid(sizes, markdown)}")
    if comparison.versus:
        _print_largest(rows, versus)
    for name in filter(is_ours, comparison.methods):
        found = [f"{table} {own:.2f} ({label(peer)} {best:.2f})" for table, own, peer, best in behind(comparison, name)]
        if found:
            print(f"\n{label(name)} is over {FAR} times the best peer on: {', '.join(found)}.")
    if comparison.left_out:
        lacks = [f"{table} ({', '.join(map(label, lacking))})" for table, lacking in comparison.left_out.items()]
        print(f"\nNot compared, since a method has no result there: {', '.join(lacks)}.", flush=True)
    if each:
        _print_tables(comparison, markdown)


def _error_head(versus: str) -> list[str]:
    beside = [f"less {versus}'s", f"without {LARGEST}", "median ratio", "ratio", "lower-higher", "p"] if versus else []
    return ["method", "mean error", *beside, "far behind"]


def _error_cells(row: Row, tables: int, versus: str) -> list[str]:
    """The mean, with the number of tables where it is not all of them, and what the row says beside another method."""
    mean = number(row.error) + (f" ({row.tables})" if row.tables < tables else "")
    cells = [""] * 6 if versus else []
    if row.beside is not None:
        b = row.beside
        without = "" if math.isnan(b.without[0]) else f"{b.without[0]:.2f} : {b.without[1]:.2f}"
        signs = [f"{b.lower}-{b.higher}", number(b.p, 3)]
        cells = [pair(b.difference, "+"), without, number(b.median), pair(b.ratio), *signs]
    return [label(row.method), mean, *cells, str(row.behind)]


def _size_head(versus: str) -> list[str]:
    return ["method", "log loss", "vectors", "CPU s", *([f"over {versus}'s"] if versus else []), "wall s", "stated"]


def _size_cells(row: Row, versus: str) -> list[str]:
    times = [""] if versus else []
    if row.beside is not None and not math.isnan(row.beside.time[0]):
        times = ["{:.1f} ({:.1f})".format(*row.beside.time)]
    cells = [number(row.log_loss, 3), number(row.vectors, 0), number(row.seconds), *times, number(row.wall)]
    return [label(row.method), *cells, pair(row.stated, "+")]


def _print_largest(rows: list[Row], versus: str) -> None:
    """What the difference of means hangs on, for ours and those that they are compared with."""
    print(f"\nThe {LARGEST} tables that contribute most to the difference of means:")
    for row in rows:
        if row.beside is not None:
            parts = [f"{table} {own:.2f} : {other:.2f}" for table, own, other in row.beside.largest]
            print(f"- {label(row.method)} : {versus}: {', '.join(parts)}")


def _print_tables(comparison: Comparison, markdown: bool) -> None:
    """A row per table: error / vectors of every method."""
    rows = [["table", *map(label, comparison.methods)]]
    for k, table in enumerate(comparison.tables):
        cells = []
        for name in comparison.methods:
            error, vectors = (float(comparison.values[figure][name][k]) for figure in ("error", "vectors"))
            cells.append(number(error) + ("" if math.isnan(vectors) else f" / {vectors:.0f}"))
        rows.append([table, *cells])
    print("\n" + grid(rows, markdown), flush=True)


def print_legend(versus: str) -> None:
    words = (
        f"without {LARGEST}: both means without the {LARGEST} tables that contribute most to their difference. ratio: "
        f"geometric mean of (error + {OFFSET}) over that of {versus}; median ratio: of the same ratios. p: two-sided "
        "sign test of lower-higher. CPU s, wall s, vectors: medians over the tables; over: median (geometric mean) of "
        "the ratios. stated: the error that the model states, less its test error. ±: standard error over the tables. "
        "(n) behind a mean: on n of the tables; all that stands beside it is on these."
    )
    print("\n" + textwrap.fill(words, 120, break_on_hyphens=False), flush=True)


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


def print_uci(records: list[Record], markdown: bool) -> None:
    """Root mean squared error over the splits of every set, beside published figures; below, sizes and times."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if "failed" not in record:
            cells.setdefault((record["set"], record["method"]), []).append(record)
    sets, methods = sorted({data for data, _ in cells}), ordered({name for _, name in cells})
    print("\nRoot mean squared error ± standard error (splits):\n")
    rows = [["set", *map(label, methods), *(f"{name} (published)" for name in UCI_PUBLISHED)]]
    for data in sets:
        measured = [_over_splits(cells.get((data, name), [])) for name in methods]
        rows.append([data, *measured, *(f"{v[data]:g}" if data in v else "" for v in UCI_PUBLISHED.values())])
    print(grid(rows, markdown))
    print("\nVectors / CPU s, means over the splits:\n")
    sizes = [[data, *(_size(cells.get((data, name), [])) for name in methods)] for data in sets]
    print(grid([rows[0][: len(methods) + 1], *sizes], markdown), flush=True)


def _over_splits(records: list[Record]) -> str:
    if not records:
        return ""
    found = np.array([record["rmse"] for record in records])
    spread = float(found.std(ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return f"{pair((float(found.mean()), spread), digits=3)} ({len(found)})"


def _size(records: list[Record]) -> str:
    if not records:
        return ""
    vectors = [r["vectors"] for r in records]
    size = "-" if None in vectors else f"{np.mean(vectors):.0f}"
    return f"{size} / {np.mean([r['seconds'] for r in records]):.2f}"


def print_failures(records: Iterable[Record]) -> None:
    """The units that failed or were stopped."""
    failures = [record for record in records if "failed" in record]
    if failures:
        print(f"\n{counted(len(failures), 'unit')} failed:")
    for record in failures:
        print(f"  {record['set']}, split {record['split']}: {record['method']}: {record['failed']}", flush=True)
