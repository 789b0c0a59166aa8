"""What the pictures of the site share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from fewkern.plotting.style import CLASSES

__all__ = ["PICTURES", "panels", "picture", "scatter", "square"]

PICTURES: dict[str, Callable[[], Any]] = {}


def picture(draw: Callable[[], Any]) -> Callable[[], Any]:
    """Add a function to the pictures, under its own name."""
    PICTURES[draw.__name__] = draw
    return draw


def panels(count: int, height: float = 3.1) -> tuple[Any, Any]:
    """A figure with ``count`` axes side by side, without the frames that would distract."""
    fig, axes = plt.subplots(1, count, figsize=(3.4 * count, height), layout="constrained")
    fig.get_layout_engine().set(w_pad=0.1)
    for ax in np.atleast_1d(axes):
        ax.spines[["top", "right"]].set_visible(False)
    return fig, axes


def scatter(ax: Any, X: Any, y: Any) -> None:
    """Samples, one color per class."""
    for c in np.unique(y):
        ax.scatter(*X[y == c].T, s=8, color=CLASSES[c], alpha=0.6, lw=0)


def square(X: Any, points: int = 120) -> tuple[Any, Any, Any]:
    """A grid over the samples: its two coordinates, and its points as rows."""
    low, high = X.min(axis=0) - 0.2, X.max(axis=0) + 0.2
    xx, yy = np.meshgrid(*(np.linspace(a, b, points) for a, b in zip(low, high)))
    return xx, yy, np.column_stack([xx.ravel(), yy.ravel()])
