"""Published figures beside ours: the difference, its standard error, and a verdict.

A figure is reproduced if it differs by no more than two standard errors of the difference, or by no more than a
practical margin: an image, a tenth of a point, a per cent. Otherwise ours is better or worse. Where two standard errors
exceed a quarter of the figure, agreement says little, and we cannot tell. A figure that measures something else is not
comparable; the table says why.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from experiments.plan import Experiment, Row

__all__ = ["Entry", "Quantity", "Verdict", "count", "entries", "quantity"]

# Differences of up to two standard errors are put down to chance.
_STANDARD_ERRORS = 2.0
# If they are more than this fraction of the published figure, too many figures would agree with it.
_MAX_ERROR_SHARE = 0.25


class Verdict(StrEnum):
    """What became of a published figure."""

    REPRODUCED = "reproduced"
    BETTER = "ours better"
    WORSE = "ours worse"
    UNCERTAIN = "cannot tell"
    INCOMPARABLE = "not comparable"


@dataclass(frozen=True)
class Quantity:
    """What is compared, in which direction it improves, and a difference that does not matter."""

    title: str
    lower_is_better: bool
    margin: float
    relative: bool = False

    def allowed(self, published: float) -> float:
        """The margin, in units of the figure."""
        return self.margin * abs(published) if self.relative else self.margin

    def describe(self) -> str:
        amount = f"{self.margin:.0%}" if self.relative else f"{self.margin:g}"
        return f"{self.title}: {amount}"


_ERROR = Quantity("error, points", True, 0.1)
_RATE = Quantity("rate, points", False, 0.1)
_SIZE = Quantity("vectors, kernels or features", True, 0.5)
_OPERATIONS = Quantity("operations", True, 0.01, relative=True)
_QUANTITIES = {
    "error": _ERROR,
    "rate": _RATE,
    "rate_at_printed_dimension": _RATE,
    "l1": Quantity("L1 error", True, 0.01, relative=True),
    "vectors": _SIZE,
    "kernels": _SIZE,
    "features": _SIZE,
    "fewest": _SIZE,
    "most": _SIZE,
    "retained": Quantity("samples kept, points", True, 0.5),
    "formula": _OPERATIONS,
    "counted": _OPERATIONS,
    "mean_np": _OPERATIONS,
    "inertia": Quantity("inertia", False, 0.01),
}


def quantity(name: str) -> Quantity:
    """By the name of a figure; ``rate_5`` is a rate."""
    head, _, tail = name.rpartition("_")
    found = _QUANTITIES.get(head if tail.isdigit() else name)
    if found is None:
        raise ValueError(f"expected a figure of {sorted(_QUANTITIES)} beside a published one, got {name!r}.")
    return found


@dataclass(frozen=True)
class Entry:
    """One figure of one row: mean and standard deviation over the runs, beside the published one."""

    row: Row
    name: str
    mean: float
    deviation: float
    runs: int
    published: float | None
    published_deviation: float | None
    error: float
    """Standard error of the difference to the published figure; of the mean where there is none."""
    margin: float
    verdict: Verdict | None
    remarks: tuple[str, ...]
    """Why it is not comparable, or why it differs."""
    caveats: tuple[str, ...]
    old: bool
    """Whether some of its runs come from older code."""

    @property
    def difference(self) -> float | None:
        return None if self.published is None else self.mean - self.published


def entries(experiment: Experiment) -> list[Entry]:
    """All figures of a table, row by row."""
    found = []
    for row, records in experiment.results():
        names = {name: None for r in records for name, v in r["values"].items() if isinstance(v, (int, float))}
        # published ones first, in the order of the paper
        ordered = [name for name in row.published if name in names]
        ordered += [name for name in names if name not in ordered]
        old = any(experiment.is_old(row, record) for record in records)
        for name in ordered:
            values = [r["values"][name] for r in records if r["values"].get(name) is not None]
            found.append(_entry(experiment, row, name, np.array(values, dtype=float), old))
    return found


def _entry(experiment: Experiment, row: Row, name: str, values: Any, old: bool) -> Entry:
    # equal values have no spread, whatever rounding says
    deviation = float(values.std(ddof=1)) if np.ptp(values) > 0 else 0.0
    mean, published, spread = float(values.mean()), row.published.get(name), row.published.get(name + "_sd")
    variance = deviation**2 / len(values)
    paper_runs = experiment.paper_runs.get(name, experiment.paper_runs.get(""))
    if published is not None and paper_runs is not None:
        # where the paper gives no deviation its runs are taken to vary as ours do
        variance += (deviation if spread is None else spread) ** 2 / paper_runs
    error = math.sqrt(variance)
    margin, verdict = 0.0, None
    if published is not None:
        margin = _margin(experiment, row, name, published)
        chance = _STANDARD_ERRORS * error
        verdict = _decide(mean - published, max(margin, chance), quantity(name).lower_is_better)
        if verdict is Verdict.REPRODUCED and chance > _MAX_ERROR_SHARE * abs(published):
            verdict = Verdict.UNCERTAIN
        if _texts(experiment, row, name, "not comparable"):
            verdict = Verdict.INCOMPARABLE
    remarks = _texts(experiment, row, name, "not comparable" if verdict is Verdict.INCOMPARABLE else "why")
    if verdict in (None, Verdict.REPRODUCED, Verdict.UNCERTAIN):
        remarks = ()
    elif verdict is not Verdict.INCOMPARABLE and (own := row.why.get(name, row.why.get(""))):
        remarks = (own, *remarks)
    return Entry(
        row, name, mean, deviation, len(values), published, spread, error, margin, verdict, remarks,
        _texts(experiment, row, name, "caveat"), old,
    )  # fmt: skip


def _margin(experiment: Experiment, row: Row, name: str, published: float) -> float:
    given = experiment.margins.get(name)
    if given is None:
        return quantity(name).allowed(published)
    return float(given[row.group] if isinstance(given, dict) else given)


def _texts(experiment: Experiment, row: Row, name: str, kind: str) -> tuple[str, ...]:
    return tuple(r.text for r in experiment.remarks if r.kind == kind and r.about(row, name))


def _decide(difference: float, allowed: float, lower_is_better: bool) -> Verdict:
    # a figure that is exactly one margin off is not refused by rounding
    if abs(difference) <= allowed * (1 + 1e-9):
        return Verdict.REPRODUCED
    return Verdict.BETTER if (difference < 0) == lower_is_better else Verdict.WORSE


def count(found: list[Entry]) -> Counter[tuple[str, str, Verdict]]:
    """How many figures there are of each protocol, quantity and verdict."""
    return Counter((e.row.protocol, quantity(e.name).title, e.verdict) for e in found if e.verdict is not None)
