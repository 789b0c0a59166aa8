"""What the numbers of the policy are worth: each halved and doubled, on a dozen real tables.

Every number of ``fewkern.learn.policy.Policy`` and of its sections is changed alone, a tuple of numbers as a whole, and
the automatic model is fitted with that policy. Results are kept in ``benchmarks/results`` as they come, with a digest
of the default policy: when that changes, everything is measured anew.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import header
from benchmarks.tables.data import CLASSES, NUMBERS, TablesNotFoundError, names, part
from benchmarks.tables.measure import figures
from benchmarks.tables.methods import RAW_COLUMNS, Fitted, Method, fit_ours, kernel_machine
from benchmarks.tables.summary import OFFSET
from benchmarks.tables.text import counted, grid, number, pair
from benchmarks.workers import TIME_LIMIT_SECONDS, Workers, run
from experiments.store import Record, Store

__all__ = ["changed", "main", "numbers", "scaled", "variants"]

RESULTS = Path(__file__).parent / "results" / "benchmark-sensitivity.jsonl"
SETS = {
    "3000": (
        "vehicle", "vowel", "car", "credit_g", "phoneme", "electrical_grid",
        "uci_concrete", "uci_airfoil", "uci_pendulum", "insurance", "kin8nm", "sulfur",
    ),
    "all": ("bank_full", "electrical_grid", "letter", "deliveries", "house8l", "house_16h", "uci_kin40k"),
}  # fmt: skip
FACTORS = (0.5, 2.0)
# The variant that changes nothing.
DEFAULT = ("", 1.0)
FIELDS = ("policy", "prefer", "field", "factor", "protocol", "set", "split")


def default_policy() -> Any:
    from fewkern.learn.policy import Policy

    return Policy()


def digest(policy: Any) -> str:
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:12]


def scaled(value: Any, factor: float) -> Any:
    """A number, or every number of a tuple, times the factor; whole numbers stay whole and at least 1 (0 stays 0).

    None where the value is not numeric.
    """
    if isinstance(value, tuple):
        parts = tuple(scaled(part, factor) for part in value)
        return None if not parts or None in parts else parts
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return int(math.copysign(max(1, round(abs(value) * factor)), value)) if value else 0
    return value * factor


def numbers(policy: Any, before: str = "") -> tuple[dict[str, Any], list[str]]:
    """Numeric values by their names, "section.field" in a section, and the names of those that are not numeric."""
    found, others = {}, []
    for field in dataclasses.fields(policy):
        name, value = before + field.name, getattr(policy, field.name)
        if dataclasses.is_dataclass(value):
            inside, besides = numbers(value, f"{name}.")
            found |= inside
            others += besides
        elif scaled(value, 1.0) is None:
            others.append(name)
        else:
            found[name] = value
    return found, others


def changed(policy: Any, field: str, factor: float) -> Any:
    """The policy with one number, of a section it may be, scaled."""
    if not field:
        return policy
    first, _, rest = field.partition(".")
    value = getattr(policy, first)
    return dataclasses.replace(policy, **{first: changed(value, rest, factor) if rest else scaled(value, factor)})


def variants(policy: Any) -> list[tuple[str, float]]:
    """Fields and factors that change something."""
    return [(name, f) for name, value in numbers(policy)[0].items() for f in FACTORS if scaled(value, f) != value]


def measure(_policy: str, prefer: str, field: str, factor: float, *where: Any) -> Record:
    """The figures of the automatic model with a changed policy, on a split of a set of a protocol."""
    policy = changed(default_policy(), field, factor)

    def fit(here: Any) -> Fitted:
        model = kernel_machine(here.task, prefer=prefer)
        model._policy = policy
        return fit_ours(model, here, RAW_COLUMNS)

    return figures(Method("changed policy", fit, ours=True), part(*where))


@dataclasses.dataclass(frozen=True)
class Effect:
    """What a variant changes beside the default, on the units that both have."""

    units: int
    failed: int
    errors: dict[str, float]
    """Change of the mean error, per task."""
    ratio: tuple[float, float]
    """Geometric mean of (error + 0.2) over the default's, and its standard error."""
    vectors: float
    seconds: float
    """Medians of the ratios to the default."""


def effect(records: list[Record], defaults: list[Record]) -> Effect:
    """Figures of a variant beside those of the default."""
    known = {(r["set"], r["split"]): r for r in defaults if "failed" not in r}
    pairs = [(r, known[r["set"], r["split"]]) for r in records if "failed" not in r and (r["set"], r["split"]) in known]
    failed = sum("failed" in r for r in records)
    if not pairs:
        return Effect(0, failed, {}, (math.nan, math.nan), math.nan, math.nan)
    logs = np.log([(new["error"] + OFFSET) / (old["error"] + OFFSET) for new, old in pairs])
    spread = float(np.std(logs, ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    center = math.exp(float(logs.mean()))
    gains = {
        task: float(np.mean([new["error"] - old["error"] for new, old in pairs if new["task"] == task]))
        for task in (CLASSES, NUMBERS)
        if any(new["task"] == task for new, _ in pairs)
    }
    vectors, seconds = (
        float(np.median([new[key] / max(old[key], 1e-3) for new, old in pairs])) for key in ("vectors", "seconds")
    )
    return Effect(len(pairs), failed, gains, (center, center * spread), vectors, seconds)


def print_effects(records: list[Record], policy: Any, markdown: bool) -> None:
    """The default, and a row per field and direction."""
    grouped: dict[tuple[str, float], list[Record]] = {}
    for record in records:
        grouped.setdefault((record["field"], record["factor"]), []).append(record)
    defaults = grouped.get(DEFAULT, [])
    _print_default([record for record in defaults if "failed" not in record])
    rows = [["field", "default", "changed", "units", "classes", "numbers", "ratio", "vectors", "time", "failed"]]
    values = numbers(policy)[0]
    for field, factor in variants(policy):
        if (field, factor) not in grouped:
            continue
        e, value = effect(grouped[field, factor], defaults), values[field]
        gains = [f"{e.errors[task]:+.2f}" if task in e.errors else "" for task in (CLASSES, NUMBERS)]
        shown = [_text(value), _text(scaled(value, factor)), str(e.units)]
        rows.append([field, *shown, *gains, pair(e.ratio), number(e.vectors), number(e.seconds), str(e.failed or "")])
    print(grid(rows, markdown))
    print(
        "\nclasses, numbers: change of the mean error; ratio: geometric mean of (error + 0.2) over the default's, "
        "± its standard error; vectors, time: medians of the ratios to the default.",
        flush=True,
    )
    for record in records:
        if "failed" in record:
            print(f"failed: {record['field']} x {record['factor']:g}, {record['set']}: {record['failed']}", flush=True)


def _print_default(records: list[Record]) -> None:
    if not records:
        return
    by_task = {task: [r["error"] for r in records if r["task"] == task] for task in (CLASSES, NUMBERS)}
    means = ", ".join(f"{task} {np.mean(errors):.2f}" for task, errors in by_task.items() if errors)
    vectors, seconds = (np.median([r[key] for r in records]) for key in ("vectors", "seconds"))
    print(f"\nDefault: mean error {means}; median {vectors:.0f} vectors, {seconds:.2f} CPU s.\n")


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return f"{value:g}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sensitivity", description=__doc__)
    parser.add_argument("--rows", choices=list(SETS), default="3000", help="training rows; default: 3000")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="default: a dozen; with all rows seven")
    parser.add_argument("--splits", type=int, nargs="+", default=[0], metavar="K")
    parser.add_argument("--fields", nargs="+", metavar="NAME", help="default: all numeric ones")
    parser.add_argument("--prefer", choices=["balanced", "sparse"], default="balanced")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread; 0 measures in this one")
    parser.add_argument("--limit", type=float, default=TIME_LIMIT_SECONDS, metavar="SECONDS", help="of a fit")
    parser.add_argument("--fresh", action="store_true", help="measure again what was asked for")
    parser.add_argument("--show", action="store_true", help="measure nothing: print what there is")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where the results are kept")
    options = parser.parse_args(arguments)
    try:
        policy = default_policy()
        sets = options.sets or list(SETS[options.rows])
        missing = sorted(set(sets) - set(names(options.rows)))
    except (ImportError, TablesNotFoundError) as error:
        sys.exit(str(error))
    found, others = variants(policy), numbers(policy)[1]
    unknown = sorted(set(options.fields or []) - {field for field, _ in found})
    for what, wrong in (("set", missing), ("numeric field", unknown)):
        if wrong:
            sys.exit(f"no such {what}: {', '.join(wrong)}.")
    header(f"Fields of the policy, halved and doubled: {counted(len(sets), 'table')}", 1)
    if others:
        print(f"Not numeric, left out: {', '.join(others)}.")
    found = [DEFAULT] + [v for v in found if not options.fields or v[0] in options.fields]
    units = [
        (digest(policy), options.prefer, *variant, options.rows, data, split)
        for split in options.splits for data in sets for variant in found
    ]  # fmt: skip
    store = Store(options.results, FIELDS)
    if not options.show:
        if options.fresh:
            store.forget(units)
        count = run(store, measure, units, Workers(options.jobs, limit=options.limit))
        print(f"{counted(count, 'unit')} measured, {len(units) - count} known")
        if options.results == RESULTS:
            store.pack()
    wanted = set(units)
    print_effects([r for unit, r in store.by_unit().items() if unit in wanted], policy, options.markdown)


if __name__ == "__main__":
    main()
