"""What a picture says, for tests."""

from __future__ import annotations

from typing import Any


def legend(display: Any) -> list[str]:
    """The words of the legend."""
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def labels(display: Any) -> tuple[str, str]:
    """The words at the axes."""
    return display.ax_.get_xlabel(), display.ax_.get_ylabel()


def legend_is_outside(display: Any) -> bool:
    """Whether the legend lies beside or below the axes, and hides no sample."""
    display.figure_.canvas.draw()
    frame, box = display.ax_.get_window_extent(), display.ax_.get_legend().get_window_extent()
    return bool(box.x0 >= frame.x1 or box.y1 <= frame.y0)


def bar_names(display: Any) -> list[str]:
    """The names of bars, from top to bottom."""
    return [label.get_text() for label in display.ax_.get_yticklabels()]
