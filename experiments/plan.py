"""What there is to run: one TOML file per table or figure.

A file names a function and lists rows; every row is run a number of times (splits, or seeds). One row and one run make
a unit of work, whose result is one line in ``experiments/results``.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from experiments.data import data_file, fetch_set
from experiments.data.sources import content_sha256
from experiments.store import Store

__all__ = ["TABLES", "Experiment", "Row", "Unit", "experiments"]

TABLES = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class Row:
    """One line of a table, or one curve of a figure."""

    label: str
    protocol: str
    """"paper" (what the paper did) or "honest" (parameters from training data only); "both" where they are the same."""
    settings: dict[str, Any]
    published: dict[str, Any]
    """Figures of the paper, by the name under which the function returns ours."""
    why: str | dict[str, str]
    """Why ours differ, where they do; by the name of the figure where the reasons are not the same."""
    runs: int | None
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Unit:
    """One run of one row."""

    experiment: Experiment
    row: Row
    run: int

    @property
    def data(self) -> dict[str, str | None]:
        """Checksums of what its data sets hold."""
        return {need: data_checksum(need) for need in self.row.needs}

    @property
    def key(self) -> str:
        """Changes with the row, its settings, its data and the results that it is computed from; not with the code."""
        content = [self.experiment.id, self.experiment.function, self.row.label, self.row.protocol, self.row.settings]
        content += [_store(source).checksum() for source in self.experiment.sources]
        content += [self.data] if self.row.needs else []
        text = json.dumps([*content, self.run], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _store(experiment: str) -> Store:
    paper, name = experiment.split()
    return Store(paper, name)


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
    kind: str
    function: str
    runs: int
    quick: int
    rows: tuple[Row, ...]
    notes: str = ""
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

    def results(self) -> list[tuple[Row, list[dict[str, Any]]]]:
        """Every row with its records under the present settings; of one run the last record counts."""
        settings = {(row.label, row.protocol): row.settings for row in self.rows}
        runs: dict[tuple[str, str], dict[int, dict[str, Any]]] = {name: {} for name in settings}
        for record in Store(self.paper, self.name).read():
            name = record["row"], record["protocol"]
            if settings.get(name) == record["settings"]:
                runs[name][record["run"]] = record
        return [(row, list(runs[row.label, row.protocol].values())) for row in self.rows]

    def load(self) -> Callable[[dict[str, Any], int], dict[str, Any]]:
        """The function: ``(settings, run) -> figures``."""
        module, _, name = self.function.rpartition(".")
        function: Callable[[dict[str, Any], int], dict[str, Any]] = getattr(importlib.import_module(module), name)
        return function

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
    common = content.get("settings", {})
    rows = tuple(
        Row(
            label=row["label"],
            protocol=row.get("protocol", "both"),
            settings={**common, **row.get("settings", {})},
            published=row.get("published", {}),
            why=row.get("why", ""),
            runs=row.get("runs"),
            needs=tuple(row.get("needs", content.get("needs", []))),
        )
        for row in content["rows"]
    )
    labels = [(row.label, row.protocol) for row in rows]
    if len(set(labels)) < len(labels):
        raise ValueError(f"{path.name}: two rows have the same label and protocol.")
    return Experiment(
        content["paper"],
        content["name"],
        content["title"],
        content.get("kind", "table"),
        content["function"],
        content.get("runs", 1),
        content.get("quick", 1),
        rows,
        content.get("notes", ""),
        content.get("axes", {}),
        tuple(content.get("sources", [])),
    )
