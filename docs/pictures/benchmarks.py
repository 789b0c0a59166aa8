"""Pictures of the benchmarks, drawn from the tables of their pages, so that the two cannot disagree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from fewkern.plotting.style import ACCENT, CHOSEN
from pictures.canvas import picture

PAGES = Path(__file__).parents[1] / "benchmarks"


def tables(page: str, *columns: str) -> list[list[list[str]]]:
    """Rows of the tables of a page that have these columns, in order; rows of means are left out."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines()]
        if set(columns) <= set(head):
            found.append([row for row in rows if not row[0].startswith("**") and row[0] != "seconds"])
    return found


def pair(cell: str) -> tuple[float, float]:
    """Error and number of vectors from a cell "11.2 / 20"."""
    first, second = re.findall(r"[\d.]+", cell.split("±")[0] + "/" + cell.rsplit("/", 1)[1])[:2]
    return float(first), float(second)


def _axes(width: float = 7.2, height: float = 3.6) -> tuple[Any, Any]:
    fig, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return fig, ax


def _beside(ax: Any, fig: Any) -> None:
    """A legend beside the axes, where it hides nothing."""
    fig.legend(*ax.get_legend_handles_labels(), frameon=False, loc="outside upper center", ncols=4)


@picture
def benchmark_compress() -> Any:
    """Error of an SVC and of its short versions, per set, over six splits."""
    both = tables("compression", "compressed to 10 / 20 / 40")
    names = [row[0] for row in both[0]]
    svc = np.mean([[pair(row[1]) for row in rows] for rows in both], axis=0)
    short = np.mean([[[float(e) for e in row[2].split("/")] for row in rows] for rows in both], axis=0)
    fig, ax = _axes()
    at = np.arange(len(names))
    ax.bar(at - 0.3, svc[:, 0], width=0.18, color=ACCENT, label="SVC")
    for k, (size, color) in enumerate(zip((10, 20, 40), ("#f3b07a", CHOSEN, "#9c4400"))):
        ax.bar(at - 0.1 + 0.2 * k, short[:, k], width=0.18, color=color, label=f"{size} vectors")
    ax.set_xticks(at, [f"{name}\n{vectors:.0f} support\nvectors" for name, (_, vectors) in zip(names, svc)], fontsize=9)
    ax.set_ylabel("test error, %")
    _beside(ax, fig)
    return fig


@picture
def benchmark_density() -> Any:
    """Time of an answer against the error of the density, for both dimensions."""
    fig, axes = plt.subplots(1, 2, figsize=(9.4, 3.8), layout="constrained", sharex=True)
    for ax, rows, title in zip(
        axes, tables("densities", "L1 error"), ("two dimensions", "six dimensions"), strict=True
    ):
        ax.spines[["top", "right"]].set_visible(False)
        for name, kernels, _, _, seconds, error, _ in rows:
            ours = name.startswith("ForwardDensity")
            ax.loglog(float(seconds), float(error), "o", ms=8, color=CHOSEN if ours else ACCENT)
            if name in ("ForwardDensity", "KernelDensity, scott", "kernel thinning of 65536"):
                label = f"{name.split(',')[0].split(' of')[0]}\n{int(kernels):,} kernels"
                side = {"ha": "right", "xytext": (-9, 0)} if float(seconds) > 1 else {"ha": "left", "xytext": (9, 0)}
                place = float(seconds), float(error)
                ax.annotate(label, place, textcoords="offset points", va="center", fontsize=9, **side)
        ax.set(title=title, xlabel="seconds for 2,000 answers", ylabel="L1 error", xlim=(2e-4, 1e3))
    return fig
