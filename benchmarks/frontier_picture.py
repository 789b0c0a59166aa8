"""Pictures of the frontier: error against number of vectors, on average and per set."""

from __future__ import annotations

import math
from typing import Any, Protocol

from benchmarks.methods import METHODS
from fewkern.plotting.style import CLASSES

__all__ = ["draw_average", "draw_sets"]

_COLUMNS = 4
# Ours have full symbols, the others hollow ones.
_COLORS = dict(zip(METHODS, (*CLASSES, "#555555")))
_MARKS = dict(zip(METHODS, "osDdPpv^*"))


class Points(Protocol):
    """What the pictures ask of the results."""

    def points(self, name: str, data: str) -> list[Any]: ...

    def average(self, name: str, sets: list[str]) -> list[Any]: ...


def draw_average(frontier: Points, names: list[str], sets: list[str]) -> Any:
    """One panel with the means over the sets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    ax = figure.subplots()
    for name in names:
        _draw(ax, name, frontier.average(name, sets))
    _finish(ax, f"mean of {len(sets)} sets")
    ax.set_ylim(top=min(ax.get_ylim()[1], _ceiling([frontier.average(name, sets) for name in names])))
    ax.legend(fontsize=8, frameon=False)
    return figure


def draw_sets(frontier: Points, names: list[str], sets: list[str]) -> Any:
    """One panel per set."""
    from matplotlib.figure import Figure

    down = math.ceil((len(sets) + 1) / _COLUMNS)
    figure = Figure(figsize=(3.2 * _COLUMNS, 2.6 * down), layout="constrained")
    axes = figure.subplots(down, _COLUMNS, squeeze=False).ravel()
    for ax, data in zip(axes, sets):
        curves = [frontier.points(name, data) for name in names]
        for name, points in zip(names, curves):
            _draw(ax, name, points)
        _finish(ax, data)
        ax.set_ylim(top=min(ax.get_ylim()[1], _ceiling(curves)))
    for ax in axes[len(sets) :]:
        ax.axis("off")
    if sets:
        axes[len(sets)].legend(*axes[0].get_legend_handles_labels(), fontsize=8, frameon=False, loc="upper left")
    return figure


def _draw(ax: Any, name: str, points: list[Any]) -> None:
    """A line through the points at given sizes; a large symbol with its standard error at the method's own choice."""
    color, full = _COLORS[name], METHODS[name].ours
    curve = [p for p in points if p.size is not None]
    own = [p for p in points if p.size is None]
    style = {"color": color, "mfc": color if full else "white", "marker": _MARKS[name]}
    if curve:
        curve = sorted({p.vectors: p for p in curve}.values(), key=lambda p: p.vectors)
        label = None if own else METHODS[name].label
        ax.plot([p.vectors for p in curve], [p.error for p in curve], lw=1.2, ms=3, label=label, **style)
    for p in own:
        spread = None if math.isnan(p.spread) else p.spread
        ax.errorbar(p.vectors, p.error, spread, ms=8, ls="", capsize=2, lw=1, label=METHODS[name].label, **style)


def _ceiling(curves: list[list[Any]]) -> float:
    """Where to cut an axis: a method with far too few vectors says nothing about the others."""
    own = [p.error for points in curves for p in points if p.size is None]
    return 1.35 * max(own) + 1 if own else math.inf


def _finish(ax: Any, title: str) -> None:
    ax.set_xscale("log")
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("vectors")
    ax.set_ylabel("test error, %")
    ax.spines[["top", "right"]].set_visible(False)
