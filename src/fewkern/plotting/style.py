"""Colors, axes, legends and samples: what all pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from fewkern.arrays.progress import missing_package

ACCENT = "#1f4e79"
QUIET = "#b8c4ce"
SAMPLES = "#5a6b7b"
CHOSEN = "#d95f02"
CLASSES = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d")
# More features than these are added up in one bar.
MOST_BARS = 20
# More different labels than these are taken for numbers.
_MOST_CLASSES = 32
# More vectors than these are small rings behind the samples, which large ones in front would hide.
_FEW_VECTORS = 40
# Height of the ticks and the label below the axes, in points.
_LABELS = 36.0
# Least area of a dot in a legend.
_LEGEND_DOT = 36.0


class Display:
    """A picture that draws itself on given or new axes, as scikit-learn's Display objects do.

    Subclasses say what they draw (``_draw``), and how large new axes are.
    """

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax`` (new axes by default)."""
        if ax is None:
            try:
                from matplotlib.pyplot import subplots
            except ImportError as error:
                raise missing_package("a picture", "matplotlib") from error
            ax = subplots(figsize=self._size(), layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        open_frame(ax)
        return self

    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure, in inches."""
        return 6.4, 4.2

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError  # every display draws itself


def open_frame(ax: Any) -> None:
    """No lines above and to the right of the picture."""
    ax.spines[["top", "right"]].set_visible(False)


def legend_beside(ax: Any) -> None:
    """A legend to the right of the axes, where it hides nothing; none if nothing has a label."""
    if ax.get_legend_handles_labels()[1]:
        large_dots(ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0)))


def legend_below(ax: Any) -> None:
    """A legend below the axes, for long words or where there is a color bar; none if nothing has a label."""
    if ax.get_legend_handles_labels()[1]:
        from matplotlib.transforms import ScaledTranslation

        below = ax.transAxes + ScaledTranslation(0, -_LABELS / 72, ax.figure.dpi_scale_trans)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
        large_dots(ax.legend(frameon=False, ncols=2, fontsize="small", **place))


def large_dots(legend: Any) -> None:
    """Enlarge the dots in a legend so that their color can be seen."""
    for handle in legend.legend_handles:
        if hasattr(handle, "get_sizes") and len(handle.get_sizes()):
            handle.set_sizes([min(max(float(handle.get_sizes()[0]), _LEGEND_DOT), 2 * _LEGEND_DOT)])
            handle.set_alpha(1.0)


def count_ticks(axis: Any) -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def percent_ticks(axis: Any) -> None:
    """Ticks of a share in percent, with as few digits as possible."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")


def draw_samples(ax: Any, points: np.ndarray, labels: Any, classes: Any = None) -> bool:
    """Samples in the plane: gray, in the color of their class, or along a color bar if the labels are numbers.

    Returns whether there is a color bar.
    """
    if labels is None:
        ax.scatter(*points.T, s=16, color=QUIET, lw=0)
        return False
    if classes is None:
        classes = np.unique(labels)
    if len(classes) > _MOST_CLASSES:
        drawn = ax.scatter(*points.T, s=20, c=np.asarray(labels, dtype=float), cmap="viridis", lw=0)
        ax.figure.colorbar(drawn, ax=ax, label="target")
        return True
    for c, label in enumerate(classes):
        # colors repeat; shapes do not
        marker, color = "os^D"[(c // len(CLASSES)) % 4], CLASSES[c % len(CLASSES)]
        own = points[labels == label]
        if len(own):
            ax.scatter(*own.T, s=20, color=color, marker=marker, alpha=0.65, lw=0, label=str(label))
    return False


def circle_vectors(ax: Any, points: np.ndarray, label: str) -> None:
    """Black rings around the vectors that a model keeps; many of them are small and behind the samples."""
    size, line, layer = (70, 1.4, 4) if len(points) <= _FEW_VECTORS else (34, 0.7, 0.5)
    ring = {"facecolors": "none", "edgecolors": "black", "linewidths": line}
    ax.scatter(*points.T, s=size, zorder=layer, label=label, clip_on=True, **ring)


def bars_height(count: int) -> float:
    """Height of a picture of bars, in inches: many make it taller."""
    return max(2.4, 0.3 * min(count, MOST_BARS + 1) + 1.0)


def largest(values: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, list[str], int]:
    """Values and names, the largest sizes first, and how many others the last value is the sum of."""
    order = np.argsort(-np.abs(values), kind="stable")
    shown = order[:MOST_BARS] if len(order) > MOST_BARS + 1 else order
    rest, labels = order[len(shown) :], [names[j] for j in shown]
    if not len(rest):
        return values[shown], labels, 0
    return np.append(values[shown], values[rest].sum()), [*labels, f"{len(rest)} others"], len(rest)


def draw_bars(ax: Any, values: np.ndarray, names: Sequence[str], words: str) -> None:
    """Bars of values that are not negative, the largest on top, each with its value as ``words`` writes it."""
    shown, labels, rest = largest(values, names)
    bars = ax.barh(np.arange(len(shown)), shown, height=0.7, color=[ACCENT] * (len(shown) - bool(rest)) + [QUIET])
    ax.bar_label(bars, [words.format(value) for value in shown], padding=3, fontsize=8)
    label_bars(ax, labels)
    ax.set_xlim(0, 1.12 * max(*shown, 1e-12) if len(shown) > 1 else None)


def label_bars(ax: Any, labels: Sequence[str]) -> None:
    """Names of bars, from top to bottom."""
    ax.set_yticks(np.arange(len(labels)), labels, parse_math=False)  # a name may have dollar signs
    ax.set_ylim(len(labels) - 0.4, -0.6)
