"""Picture of the results on real tables: error against vectors and against time, for classes and for numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from benchmarks.tables_methods import METHODS
from benchmarks.tables_summary import STORED, Comparison, Row, counted, is_ours, label, summarise
from fewkern.plotting.style import CLASSES, open_frame

__all__ = ["draw"]

_COLORS = dict(zip(METHODS, (*CLASSES, "#555555", "#999999", "#8c564b", "#17becf")))
_MARKS = dict(zip(METHODS, "osDdPpv^*hX<"))
_WHAT = {"classification": "mean test error, %", "regression": "mean 100 (1 - R²)"}
# A mean so many times that of boosting (the least one where boosting was not run) is written at the upper edge: it
# would squeeze the others together.
_CEILING = 1.5


def draw(comparisons: Iterable[Comparison]) -> Any:
    """A row of two panels for every task.

    Ours have full symbols, the others hollow ones, and models without vectors are a line. Bars are standard errors of
    the difference to boosting.
    """
    from matplotlib.figure import Figure

    comparisons = [c for c in comparisons if c.tables]
    figure = Figure(figsize=(9.6, 3.7 * len(comparisons) + 0.5), layout="constrained")
    axes = figure.subplots(len(comparisons), 2, squeeze=False, sharey="row")
    handles: dict[str, Any] = {}
    for (left, right), comparison in zip(axes, comparisons):
        rows = summarise(comparison)
        base = next((r.error for r in rows if r.method == comparison.baseline), min(r.error for r in rows))
        inside = [row for row in rows if row.error <= _CEILING * base]
        for row in inside:
            if math.isnan(row.vectors):
                handles[label(row.method)] = left.axhline(row.error, color=_color(row), lw=1, ls=":", zorder=0)
            else:
                handles[label(row.method)] = _draw(left, row, row.vectors)
            if not row.method.endswith(STORED):  # their seconds are those of another machine
                handles[label(row.method)] = _draw(right, row, max(row.seconds, 1e-3))
        low, high = min(row.error - _bar(row) for row in inside), max(row.error + _bar(row) for row in inside)
        room = 0.05 * (high - low) + 0.02 * high
        left.set_ylim(max(0, low - room), high + 2 * room)
        above = "\n".join(f"{label(row.method)}: {row.error:.1f} ↑" for row in rows if row not in inside)
        right.text(0.99, 0.98, above, transform=right.transAxes, ha="right", va="top", fontsize=8, color="#555555")
        for ax in (left, right):
            _log_axis(ax)
            open_frame(ax)
        left.set(xlabel="median vectors (dotted: models without)", ylabel=_WHAT[comparison.task])
        right.set(xlabel="median processor seconds of a fit")
        left.set_title(f"{comparison.task}, {counted(len(comparison.tables), 'table')}", fontsize=10)
    order = sorted(handles, key=[label(name) for name in (*METHODS, *(m + STORED for m in METHODS))].index)
    figure.legend(
        [handles[name] for name in order], order, loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    return figure


def _color(row: Row) -> str:
    return _COLORS[row.method.removesuffix(STORED)]


def _bar(row: Row) -> float:
    """Standard error of the difference to boosting; 0 where there is none."""
    return 0.0 if math.isnan(row.difference[1]) else row.difference[1]


def _draw(ax: Any, row: Row, x: float) -> Any:
    """A symbol with its bar."""
    bar = _bar(row) or None
    fill = _color(row) if is_ours(row.method) else "white"
    mark = _MARKS[row.method.removesuffix(STORED)]
    return ax.errorbar(x, row.error, bar, ls="", capsize=2, lw=1, ms=8, marker=mark, color=_color(row), mfc=fill)


def _log_axis(ax: Any) -> None:
    """A logarithmic axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
