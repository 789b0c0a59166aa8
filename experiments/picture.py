"""Pictures of the papers' figures, drawn from the stored results."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np

from experiments.plan import Experiment, Row

__all__ = ["picture"]

_COLUMNS = 3
_PANEL = (4.4, 3.5)  # inches


def picture(experiment: Experiment) -> str | None:
    """A PNG in base64, or None where there is nothing to draw; one panel per value of the setting "panel"."""
    rows = [(row, [r["values"] for r in records]) for row, records in experiment.results() if records]
    if experiment.kind != "figure" or not rows:
        return None
    from matplotlib.figure import Figure as Canvas

    panels = list(dict.fromkeys(_panel(row) for row, _ in rows))
    across = min(len(panels), _COLUMNS)
    down = math.ceil(len(panels) / across)
    space = any("space" in values[0] for _, values in rows)
    canvas = Canvas(figsize=(_PANEL[0] * across, _PANEL[1] * down), layout="constrained")
    # panels run down first where there are several rows of them: a curve of errors above its fitness
    grid = canvas.subplots(down, across, squeeze=False, subplot_kw={"projection": "3d"} if space else {})
    axes = grid.T.ravel() if down > 1 else grid.ravel()
    for row, values in rows:
        ax = axes[panels.index(_panel(row))]
        _draw(ax, row.settings.get("line", row.label), values)
    for ax, panel in zip(axes, panels):
        _finish(ax, panel, experiment.axes)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=110)
    return base64.b64encode(buffer.getvalue()).decode()


def _panel(row: Row) -> str:
    return str(row.settings.get("panel", ""))


def _finish(ax: Any, panel: str, labels: dict[str, Any]) -> None:
    ax.set_title(panel, fontsize=10)
    ax.set_xlabel(labels.get("x", ""))
    ax.set_ylabel(labels.get(f"y {panel}", labels.get("y", "")))
    ax.set_xscale(labels.get("xscale", "linear"))
    mark = labels.get("marks", {}).get(panel)
    if mark is not None:
        ax.axvline(mark, color="0.6", lw=1, ls=":", label=f"printed: {mark}")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, framealpha=0.7, edgecolor="none")


def _draw(ax: Any, label: str, values: list[dict[str, Any]]) -> None:
    """Points, marks and lines of the first run; curves (``x``, ``y``) averaged over all runs."""
    first = values[0]
    for key in ("points", "space"):
        if key in first:
            points, labels = np.array(first[key]), np.array(first["labels"])
            for name in np.unique(labels):
                ax.plot(*points[labels == name].T, ".", ms=4, label=f"{label} {name}".strip())
    if "marks" in first:
        x, y = np.array(first["marks"]).T
        ax.plot(x, y, "o-", ms=4, lw=0.8, label=label)
    if "axis" in first:
        ax.plot(*np.array(first["axis"]).T, "k-", label="discriminant axis")
    if "circles" in first:
        ax.plot(*np.array(first["circles"]).T, "ok", mfc="none", ms=8, label="vectors")
    if "boundary" in first:
        alone = "points" not in first
        ax.plot(*np.array(first["boundary"]).T, "k--" if alone else "k-", lw=1, label=label if alone else "boundary")
        ax.set_aspect("equal")
    if "x" in first:
        length = min(len(v["y"]) for v in values)
        ax.plot(first["x"][:length], np.mean([v["y"][:length] for v in values], axis=0), label=label)
