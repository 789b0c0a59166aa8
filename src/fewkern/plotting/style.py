"""Colours and axes that all pictures share."""

from __future__ import annotations

from typing import Any

__all__ = ["ACCENT", "CHOSEN", "CLASSES", "QUIET", "axes_for"]

ACCENT = "#1f4e79"
QUIET = "#b8c4ce"
CHOSEN = "#d95f02"
CLASSES = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d")


def axes_for(ax: Any) -> Any:
    """``ax``, or new axes; a clear message where matplotlib is not installed."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure  # noqa: F401
        from matplotlib.pyplot import subplots
    except ImportError as error:
        raise ImportError("fewkern's pictures need matplotlib: pip install matplotlib.") from error
    return subplots(figsize=(6.4, 4.2), layout="constrained")[1]
