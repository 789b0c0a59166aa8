"""Pictures of the benchmarks, drawn from the tables of the page itself, so that the two cannot disagree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from fewkern.plotting.style import ACCENT, CHOSEN, CLASSES, QUIET
from pictures.canvas import picture

PAGE = Path(__file__).parents[1] / "benchmarks.md"


def table(section: str, number: int = 0) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table of a section, whose heading starts with ``section``; the row of means is left out."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in blocks[number].splitlines()]
    return rows[0], [row for row in rows[2:] if not row[0].startswith("**") and row[0] != "seconds"]


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
def benchmark_refined() -> Any:
    """Error and vectors of samples as vectors, and of moved vectors, per set: both tables of six splits."""
    fig, axes = plt.subplots(1, 2, figsize=(9.4, 4.2), layout="constrained", sharey=True)
    tables = [table("Refined vectors", k)[1] for k in (0, 1)]
    names = [row[0] for row in tables[0]]
    for column, color, label in ((1, QUIET, "samples as vectors"), (2, CHOSEN, "moved vectors (default)")):
        values = np.mean([[pair(row[column]) for row in rows] for rows in tables], axis=0)
        for ax, k in zip(axes, (0, 1)):
            ax.plot(values[:, k], np.arange(len(names)), "o", color=color, ms=7, label=label)
    axes[0].set(yticks=range(len(names)), yticklabels=names, xlabel="test error, %")
    axes[1].set(xlabel="vectors kept", xscale="log")
    axes[0].invert_yaxis()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#0001")
    _beside(axes[0], fig)
    return fig


@picture
def benchmark_times() -> Any:
    """Seconds to a tuned model, per set."""
    _, rows = table("Time to a tuned model")
    fig, ax = _axes(height=3.8)
    at = np.arange(len(rows))
    series = ((1, QUIET, "refine=False"), (2, CHOSEN, "default"), (4, ACCENT, "grid search of an SVC"))
    for shift, (column, color, label) in zip((-0.27, 0, 0.27), series):
        ax.bar(at + shift, [float(row[column]) for row in rows], width=0.25, color=color, label=label)
    ax.set_xticks(at, [row[0] for row in rows], rotation=40, ha="right")
    ax.set(ylabel="processor seconds", yscale="log")
    _beside(ax, fig)
    return fig


@picture
def benchmark_compress() -> Any:
    """Error of an SVC and of its short versions, per set, over six splits."""
    tables = [table("Compression", k)[1] for k in (0, 1)]
    names = [row[0] for row in tables[0]]
    svc = np.mean([[pair(row[1]) for row in rows] for rows in tables], axis=0)
    short = np.mean([[[float(e) for e in row[2].split("/")] for row in rows] for rows in tables], axis=0)
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
    for ax, number, title in zip(axes, (0, 1), ("two dimensions", "six dimensions")):
        ax.spines[["top", "right"]].set_visible(False)
        for name, kernels, _, _, seconds, error, _ in table("density", number)[1]:
            ours = name.startswith("ForwardDensity")
            ax.loglog(float(seconds), float(error), "o", ms=8, color=CHOSEN if ours else ACCENT)
            if name in ("ForwardDensity", "KernelDensity, scott", "kernel thinning of 65536"):
                label = f"{name.split(',')[0].split(' of')[0]}\n{int(kernels):,} kernels"
                side = {"ha": "right", "xytext": (-9, 0)} if float(seconds) > 1 else {"ha": "left", "xytext": (9, 0)}
                place = float(seconds), float(error)
                ax.annotate(label, place, textcoords="offset points", va="center", fontsize=9, **side)
        ax.set(title=title, xlabel="seconds for 2,000 answers", ylabel="L1 error", xlim=(2e-4, 1e3))
    return fig


@picture
def benchmark_calibration() -> Any:
    """Calibration error of the default classifier, logistic regression and gradient boosting."""
    _, rows = table("calibration")
    systems = {"FeatureVectorClassifier": CHOSEN, "logistic regression": QUIET, "gradient boosting": CLASSES[2]}
    names = [s for s in dict.fromkeys(row[0] for row in rows) if s != "mnist"]
    fig, ax = _axes()
    for shift, (system, color) in zip((-0.27, 0, 0.27), systems.items()):
        found = {row[0]: float(row[6]) for row in rows if row[1] == system}
        at = [i for i, name in enumerate(names) if name in found]
        ax.bar(np.array(at) + shift, [found[names[i]] for i in at], width=0.25, color=color, label=system)
    perfect = {row[0]: float(row[7]) for row in rows if row[1] == "FeatureVectorClassifier"}
    ax.plot(range(len(names)), [perfect.get(n, np.nan) for n in names], "k_", ms=22, label="if perfect")
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel("expected calibration error")
    _beside(ax, fig)
    return fig
