"""What there is to run: one TOML file per table or figure.

A file names a function and lists rows; every row is run a number of times (splits, or seeds). One row and one run make
a unit of work, whose result is one record in ``experiments/results``.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from experiments.data import data_file, fetch_set
from experiments.data.sources import content_sha256
from experiments.store import Store, stored
from experiments.systems import VERSIONS

__all__ = ["TABLES", "Experiment", "Remark", "Row", "Unit", "experiments"]

TABLES = Path(__file__).parent / "tables"

Record = dict[str, Any]


def _figures(
    function: Callable[[dict[str, Any], int], dict[str, Any]], settings: dict[str, Any], run: int
) -> dict[str, Any]:
    """The figures of one run. The papers ask for more components than some sets have: that is no news here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the others do not exist", category=UserWarning)
        return function(settings, run)


@dataclass(frozen=True)
class Row:
    """One line of a table, or one curve of a figure."""

    label: str
    """What it is; in a table of several sets ``"set: method"``."""
    protocol: str
    """"paper" (what the paper did), "honest" (settings from training data only, maybe of several splits), "strict" (all
    settings of a split from its training part alone); "both" where they are the same."""
    settings: dict[str, Any]
    published: dict[str, Any]
    """Figures of the paper, by the name under which the function returns ours; ``NAME_sd`` is a deviation."""
    why: dict[str, str]
    """Why ours differ, where they do, by the name of the figure; "" is the reason for all others."""
    runs: int | None
    needs: tuple[str, ...]
    systems: tuple[str, ...]
    """What computes it: names in :data:`experiments.systems.VERSIONS`."""

    @property
    def versions(self) -> dict[str, int]:
        """The present version of each of its systems."""
        return {name: VERSIONS[name] for name in self.systems}

    @property
    def group(self) -> str:
        """The part of the label before the colon: the set."""
        return self.label.partition(": ")[0]

    @property
    def method(self) -> str:
        """The part of the label after the colon, or the whole label."""
        return self.label.rpartition(": ")[2]


@dataclass(frozen=True)
class Remark:
    """A sentence about many cells of a table, said once."""

    kind: str
    """"not comparable" (the published figure measures something else), "why" (why ours differ, where they do), or
    "caveat" (what a reader must know about our figure)."""
    text: str
    rows: str = ""
    """A regular expression that occurs in the labels of its rows."""
    protocol: str = ""
    """A regular expression that the protocol matches."""
    quantity: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("not comparable", "why", "caveat"):
            raise ValueError(f"a remark is 'not comparable', 'why' or 'caveat', got {self.kind!r}.")

    def about(self, row: Row, quantity: str) -> bool:
        """Whether it is about this figure of this row."""
        return (
            (not self.protocol or re.fullmatch(self.protocol, row.protocol) is not None)
            and self.quantity in ("", quantity)
            and re.search(self.rows, row.label) is not None
        )


@dataclass(frozen=True)
class Unit:
    """One run of one row."""

    experiment: Experiment
    row: Row
    run: int

    @property
    def data(self) -> dict[str, str | None]:
        """Checksums of the content of its data sets."""
        return {need: data_checksum(need) for need in self.row.needs}

    @property
    def key(self) -> str:
        """Changes with the row, its settings, its data, the versions of its systems, and the results that it uses."""
        return unit_key(self, self.row.versions)


def unit_key(unit: Unit, versions: dict[str, int]) -> str:
    """Name of the result of a unit, computed by these versions of its systems."""
    experiment, row = unit.experiment, unit.row
    content = [experiment.id, experiment.function, row.label, row.protocol, row.settings, versions]
    content += [_store(source).checksum() for source in experiment.sources]
    content += [unit.data] if row.needs else []
    text = json.dumps([*content, unit.run], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _store(experiment: str) -> Store:
    paper, name = experiment.split()
    return stored(paper, name)


@cache
def data_checksum(need: str) -> str | None:
    """SHA-256 of what a data set named ``kind/name`` holds, however it is stored; None where it is not here."""
    if data_file(need) is None:
        return None
    return content_sha256(dict(fetch_set(need)))


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper."""

    paper: str
    name: str
    title: str
    function: str
    rows: tuple[Row, ...]
    kind: str = "table"
    """"table", "figure", or "reference" (figures that are not the paper's)."""
    layout: str = "list"
    """"list", or "matrix": sets down, methods across."""
    runs: int = 1
    quick: int = 1
    paper_runs: dict[str, int] = field(default_factory=dict)
    """Over how many runs the paper averages, by quantity; "" is for all others. Without it a figure is exact."""
    margins: dict[str, Any] = field(default_factory=dict)
    """Differences that do not matter, by quantity, where they are not the usual ones; or by quantity and set."""
    notes: str = ""
    remarks: tuple[Remark, ...] = ()
    quoted: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Columns that the paper quotes from others: by column, then by set."""
    axes: dict[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    """Experiments whose results this one is computed from, as ``"PAPER NAME"``."""

    @property
    def id(self) -> str:
        return f"{self.paper} {self.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Data sets, as ``kind/name``."""
        return tuple(sorted({need for row in self.rows for need in row.needs}))

    def missing(self) -> list[str]:
        """Data sets that are not on this machine."""
        return [need for need in self.needs if data_file(need) is None]

    def results(self) -> list[tuple[Row, list[Record]]]:
        """Every row with its records under the present settings, one per run."""
        settings = {(row.label, row.protocol): row.settings for row in self.rows}
        found: dict[tuple[str, str], list[Record]] = {name: [] for name in settings}
        for record in stored(self.paper, self.name).read():
            name = record["row"], record["protocol"]
            if settings.get(name) == record["settings"]:
                found[name].append(record)
        return [(row, found[row.label, row.protocol]) for row in self.rows]

    def is_old(self, row: Row, record: Record) -> bool:
        """Whether a record comes from older code, or older results, than there are now."""
        if self.sources:
            return record["key"] != Unit(self, row, record["run"]).key
        return record.get("versions", {}) != row.versions

    def load(self) -> Callable[[dict[str, Any], int], dict[str, Any]]:
        """The function: ``(settings, run) -> figures``."""
        module, _, name = self.function.rpartition(".")
        function: Callable[[dict[str, Any], int], dict[str, Any]] = getattr(importlib.import_module(module), name)
        return partial(_figures, function)

    def units(self, quick: bool) -> Iterator[Unit]:
        """All units whose data is here, run by run, so that an early end leaves something of every row."""
        return (unit for unit in self.every_unit(quick) if all(map(data_file, unit.row.needs)))

    def every_unit(self, quick: bool) -> Iterator[Unit]:
        """All units, whether their data is here or not."""
        for run in range(self.quick if quick else self.runs):
            for row in self.rows:
                if run < (row.runs if row.runs is not None else self.runs):
                    yield Unit(self, row, run)


def experiments() -> list[Experiment]:
    """All experiments, in the order of their files."""
    return [_read(path) for path in sorted(TABLES.glob("*.toml"))]


def _read(path: Path) -> Experiment:
    content = tomllib.loads(path.read_text())
    common = {name: content.pop(name, {}) for name in ("settings", "needs", "systems")}
    rows = tuple(_row(row, common) for row in content.pop("rows"))
    labels = [(row.label, row.protocol) for row in rows]
    if len(set(labels)) < len(labels):
        raise ValueError(f"{path.name}: two rows have the same label and protocol.")
    unknown = {name for row in rows for name in row.systems} - set(VERSIONS)
    if unknown:
        raise ValueError(f"{path.name}: systems {sorted(unknown)} are not in experiments.systems.VERSIONS.")
    remarks = tuple(Remark(**remark) for remark in content.pop("remarks", []))
    sources = tuple(content.pop("sources", []))
    return Experiment(rows=rows, remarks=remarks, sources=sources, **content)


def _row(row: dict[str, Any], common: dict[str, Any]) -> Row:
    settings = {**common["settings"], **row.get("settings", {})}
    why = row.get("why", {})
    return Row(
        label=row["label"],
        protocol=row.get("protocol", "both"),
        settings=settings,
        published=row.get("published", {}),
        why={"": why} if isinstance(why, str) else why,
        runs=row.get("runs"),
        needs=tuple(row.get("needs", common["needs"])),
        systems=_systems(row.get("systems", common["systems"]), settings),
    )


def _systems(given: Any, settings: dict[str, Any]) -> tuple[str, ...]:
    """A list for all rows; or by the setting "method", where "" is for all others."""
    if isinstance(given, list):
        return tuple(given)
    return tuple(given.get(settings.get("method"), given.get("", [])))
