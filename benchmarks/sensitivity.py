"""What the fields of the policy are worth: each halved and doubled, on a dozen real tables.

Every numeric field of ``fewkern.learn.policy.Policy`` (a tuple of numbers as a whole) is changed alone, and the
automatic model is fitted with that policy: as its parameter ``policy`` where it has one, else as the private attribute
``_policy``, set before the fit. Results are kept in ``benchmarks/results/sensitivity.jsonl`` as they come, with a
digest of the default policy: when that changes, everything is measured anew.
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

from benchmarks.measure import header, run
from benchmarks.tables import grid, number, pair
from benchmarks.tables_data import CLASSES, NUMBERS, TablesNotFoundError, names, part
from benchmarks.tables_measure import figures
from benchmarks.tables_methods import Fitted, Method, kernel_machine
from benchmarks.tables_summary import OFFSET, counted
from experiments.store import Record, Store

__all__ = ["changed", "main", "scaled", "variants"]

RESULTS = Path(__file__).parent / "results" / "sensitivity.jsonl"
SETS = (
    "vehicle", "vowel", "car", "credit_g", "phoneme", "electrical_grid",
    "uci_concrete", "uci_airfoil", "uci_pendulum", "insurance", "kin8nm", "sulfur",
)  # fmt: skip
FACTORS = (0.5, 2.0)
# The variant that changes nothing.
DEFAULT = ("", 1.0)
FIELDS = ("policy", "prefer", "field", "factor", "set", "split")


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


def changed(policy: Any, field: str, factor: float) -> Any:
    """The policy with one field scaled."""
    return dataclasses.replace(policy, **{field: scaled(getattr(policy, field), factor)}) if field else policy


def variants(policy: Any) -> tuple[list[tuple[str, float]], list[str]]:
    """Fields and factors that change something, and the fields that are not numeric."""
    found, others = [], []
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if scaled(value, 1.0) is None:
            others.append(field.name)
        found += [(field.name, f) for f in FACTORS if scaled(value, f) not in (None, value)]
    return found, others


def measure(_policy: str, prefer: str, field: str, factor: float, data: str, split: int) -> Record:
    """The figures of the automatic model with a changed policy."""
    policy = changed(default_policy(), field, factor)

    def fit(here: Any) -> Fitted:
        model = kernel_machine(here.task, prefer=prefer)
        if "policy" in model.get_params():
            model.set_params(policy=policy)
        else:
            model._policy = policy
        model.fit(here.X, here.y)
        return Fitted(model, int(model.n_vectors_))

    return figures(Method("changed policy", fit, ours=True), part("tables", data, split))


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
    for field, factor in variants(policy)[0]:
        if (field, factor) not in grouped:
            continue
        e, value = effect(grouped[field, factor], defaults), getattr(policy, field)
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
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="NAME")
    parser.add_argument("--splits", type=int, nargs="+", default=[0], metavar="K")
    parser.add_argument("--fields", nargs="+", metavar="NAME", help="default: all numeric ones")
    parser.add_argument("--prefer", choices=["balanced", "accurate", "sparse"], default="balanced")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--fresh", action="store_true", help="measure again what was asked for")
    parser.add_argument("--show", action="store_true", help="measure nothing: print what there is")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="the file of results")
    options = parser.parse_args(arguments)
    try:
        policy = default_policy()
        missing = sorted(set(options.sets) - set(names("tables")))
    except (ImportError, TablesNotFoundError) as error:
        sys.exit(str(error))
    found, others = variants(policy)
    unknown = sorted(set(options.fields or []) - {field for field, _ in found})
    for what, wrong in (("set", missing), ("numeric field", unknown)):
        if wrong:
            sys.exit(f"no such {what}: {', '.join(wrong)}.")
    header(f"Fields of the policy, halved and doubled: {counted(len(options.sets), 'table')}", 1)
    if others:
        print(f"Not numeric, left out: {', '.join(others)}.")
    found = [DEFAULT] + [v for v in found if not options.fields or v[0] in options.fields]
    units = [
        (digest(policy), options.prefer, *variant, data, split)
        for split in options.splits for data in options.sets for variant in found
    ]  # fmt: skip
    store = Store(options.out, FIELDS)
    if not options.show:
        if options.fresh:
            store.forget(units)
        count = run(store, measure, units, options.jobs)
        print(f"{counted(count, 'unit')} measured, {len(units) - count} known")
    wanted = set(units)
    print_effects([r for unit, r in store.by_unit().items() if unit in wanted], policy, options.markdown)


if __name__ == "__main__":
    main()
