"""Picture of the results on real tables: error against rows, error against vectors, time against rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.tables.data import CLASSES, NUMBERS
from benchmarks.tables.summary import Comparison, compare, is_ours, label, ordered, plain, summarise
from benchmarks.tables.text import counted
from experiments.store import Record
from fewkern.plotting.style import CLASSES as COLORS
from fewkern.plotting.style import open_frame

__all__ = ["draw"]

_NAMES = (
    "balanced", "boosting", "svm", "forest", "chimeraboost", "catboost", "xrfm", "linear", "sparse",
    "zero-one", "lightgbm", "neo-ls-svm", "fastrvm", "feature-vectors",
)  # fmt: skip
_COLORS = dict(zip(_NAMES, (*COLORS, "#9edae5", "#555555", "#8c564b", "#999999", "#c49c94", "#aec7e8")))
_MARKS = dict(zip(_NAMES, "osDdPpv^hX<>8H"))
# Protocols that differ in their training rows; vectors are drawn of the second one where it was run.
_ROWS = {"1000": "at most 1,000 training rows", "3000": "at most 3,000 training rows", "all": "all training rows"}
_WHAT = {CLASSES: "mean test error, %", NUMBERS: "mean 100 (1 - R²)"}
# A mean so many times that of boosting (the least one where boosting was not run) would squeeze the others together: it
# is written at the upper edge, and has no curve.
_CEILING = 1.5

Curve = dict[float, tuple[float, float]]


def draw(records: Iterable[Record]) -> Any:
    """A row of three panels for every task.

    Ours have full symbols, the others hollow ones. Curves are of the tables that every size has; bars are standard
    errors of the difference to boosting.
    """
    from matplotlib.figure import Figure

    records = list(records)
    of_task = {task: _comparisons(records, task) for task in (CLASSES, NUMBERS)}
    of_task = {task: found for task, found in of_task.items() if found}
    figure = Figure(figsize=(12.6, 3.7 * len(of_task) + 0.6), layout="constrained")
    axes = figure.subplots(len(of_task), 3, squeeze=False)
    handles: dict[str, Any] = {}
    for panels, (task, found) in zip(axes, of_task.items()):
        curves, count = _curves(found)
        errors = {name: {x: error for x, (error, _) in curve.items()} for name, curve in curves.items()}
        _draw_curves(panels[0], _near(errors), handles, f"{task}, {counted(count, 'table')}")
        size = "3000" if "3000" in found else next(iter(found))
        _draw_vectors(panels[1], found[size], handles, _ROWS[size])
        times = {name: {x: time for x, (_, time) in curve.items()} for name, curve in curves.items()}
        _draw_curves(panels[2], times, handles, "time")
        panels[2].set_yscale("log")
        for ax, what in zip(panels, (_WHAT[task], _WHAT[task], "processor seconds of a fit, geometric mean")):
            _plain_axis(ax.xaxis)
            if ax is not panels[1]:
                rows = sorted({round(x) for curve in curves.values() for x in curve})
                ax.set_xticks(rows, [f"{x:,}" for x in rows])
            open_frame(ax)
            ax.set_ylabel(what)
        _plain_axis(panels[2].yaxis)
        panels[0].set_xlabel("training rows, geometric mean")
        panels[1].set_xlabel("median vectors (dotted: models without)")
        panels[2].set_xlabel("training rows, geometric mean")
    order = ordered(handles)
    figure.legend(
        [handles[name] for name in order], list(map(label, order)), loc="outside lower center", ncols=6, frameon=False,
        fontsize=8,
    )  # fmt: skip
    return figure


def _comparisons(records: list[Record], task: str) -> dict[str, Comparison]:
    """The comparison of every size that has tables."""
    found = {size: compare([r for r in records if r["protocol"] == size], task) for size in _ROWS}
    return {size: comparison for size, comparison in found.items() if comparison.tables}


def _curves(comparisons: dict[str, Comparison]) -> tuple[dict[str, Curve], int]:
    """Mean error and time of every method by rows, on the tables of all sizes, and how many these are.

    A method has no point where it lacks one of them.
    """
    common = set.intersection(*(set(c.tables) for c in comparisons.values()))
    curves: dict[str, Curve] = {}
    for comparison in comparisons.values():
        here = np.array([table in common for table in comparison.tables])
        for name in comparison.methods:
            error, seconds, rows = (comparison.values[key][name][here] for key in ("error", "seconds", "rows"))
            if len(error) and np.isfinite(error).all():
                x, time = (math.exp(float(np.log(np.maximum(v, 1e-3)).mean())) for v in (rows, seconds))
                curves.setdefault(name, {})[x] = float(error.mean()), time
    return curves, len(common)


def _draw_curves(ax: Any, curves: dict[str, dict[float, float]], handles: dict[str, Any], title: str) -> None:
    for name, curve in curves.items():
        (handles[name],) = ax.plot(list(curve), list(curve.values()), lw=1.2, ms=6, **_style(name))
    ax.set_xscale("log")
    ax.set_title(title, fontsize=10)


def _near(curves: dict[str, dict[float, float]]) -> dict[str, dict[float, float]]:
    """The curves that are not far above boosting's, or the lowest one."""
    base = curves.get("boosting") or min(curves.values(), key=lambda curve: min(curve.values()))
    return {
        name: curve for name, curve in curves.items() if all(y <= _CEILING * base.get(x, y) for x, y in curve.items())
    }


def _draw_vectors(ax: Any, comparison: Comparison, handles: dict[str, Any], title: str) -> None:
    rows = [row for row in summarise(comparison) if row.tables == len(comparison.tables)]
    base = next((r.error for r in rows if r.method == comparison.versus), min(r.error for r in rows))
    inside = [row for row in rows if row.error <= _CEILING * base]
    for row in inside:
        bar = 0.0 if row.beside is None or math.isnan(row.beside.difference[1]) else row.beside.difference[1]
        style = _style(row.method)
        if math.isnan(row.vectors):
            ax.axhline(row.error, color=style["color"], lw=1, ls=":", zorder=0)
        else:
            found = ax.errorbar(row.vectors, row.error, bar or None, ls="", capsize=2, lw=1, ms=8, **style)
            handles.setdefault(row.method, found)
    above = "\n".join(f"{label(row.method)}: {row.error:.1f} ↑" for row in rows if row not in inside)
    ax.text(1, 1, above, transform=ax.transAxes, ha="right", va="top", fontsize=8, color="#555555", backgroundcolor="w")
    ax.set_xscale("log")
    ax.set_title(f"{counted(len(comparison.tables), 'table')}, {title}", fontsize=10)


def _style(name: str) -> dict[str, Any]:
    color = _COLORS.get(plain(name), "#000000")
    return {"color": color, "marker": _MARKS.get(plain(name), "."), "mfc": color if is_ours(name) else "white"}


def _plain_axis(axis: Any) -> None:
    """A logarithmic axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())
