"""Pictures of the findings, as SVG for the page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fewkern.density.mixture import KernelMixture
from fewkern.plotting import ComponentsDisplay, ImportancesDisplay, PathDisplay, VectorsDisplay
from fewkern.plotting.style import ACCENT, CHOSEN, CLASSES, QUIET
from fewkern.reporting.drivers import Drivers, Effect
from fewkern.reporting.findings import Findings
from fewkern.reporting.mistakes import Calibration, Curves, Residuals
from fewkern.reporting.shapes import DensityShape
from fewkern.reporting.svg import LINE, drawing, figure, inline_svg
from fewkern.reporting.trust import Intervals
from fewkern.reporting.words import text

__all__ = ["Picture", "draw"]

# Dots in a scatter: each costs 150 bytes of the page, and more hide each other.
_MOST_DOTS = 500
_MOST_BARS = 12
_MOST_MARGINALS, _MOST_PAIRED, _MOST_BELLS = 6, 3, 60
_LONGEST_NAME = 20
_GRID_1D, _GRID_2D = 300, 80


@dataclass(frozen=True)
class Picture:
    """An ``<svg>`` element and what is written below it."""

    svg: str
    width: int
    """In pixels, where there is room for it."""
    caption: str


def draw(findings: Findings) -> dict[str, tuple[Picture, ...]]:
    """All pictures of a report by the part of the page that they belong to."""
    with drawing():
        made: dict[str, list[tuple[Any, str]]] = {
            "drivers": _drivers(findings),
            "mistakes": _mistakes(findings),
            "kept": _kept(findings),
            "trust": [_intervals(findings.trust.intervals, findings.target)] if findings.trust.intervals else [],
            "shape": _shape(findings),
        }
        return {
            part: tuple(
                Picture(*inline_svg(ax.figure, f"{part}{k}", caption), caption) for k, (ax, caption) in enumerate(drawn)
            )
            for part, drawn in made.items()
        }


def _short(name: Any) -> str:
    """A name that leaves room for the picture."""
    return text(name, _LONGEST_NAME)


def _drivers(findings: Findings) -> list[tuple[Any, str]]:
    found = findings.drivers
    if found is None:
        return []
    drawn = [_importances(found, findings)] if any(driver.rise for driver in found.importances) else []
    if all(driver.share is not None for driver in found.importances) and len(found.importances) > 1:
        height = 0.9 + 0.27 * min(len(found.importances), 22)
        ax = figure(4.6, max(height, 2.0))
        shares = np.array([driver.share for driver in found.importances], dtype=float)
        ImportancesDisplay(shares, [_short(driver.column) for driver in found.importances]).plot(ax)
        caption = "What the model itself uses: share of each column in the variation of the fitted function."
        if found.several:
            caption += " Categories may look too important: a slope along one level is a change that no row can make."
        drawn.append((ax, caption))
    drawn += [(_effect(effect, findings), _effect_caption(effect, findings)) for effect in found.effects]
    return drawn


def _importances(found: Drivers, findings: Findings) -> tuple[Any, str]:
    shown = found.importances[:_MOST_BARS]
    classify = findings.task == "classify"
    scale = 100.0 if classify else 1.0
    ax = figure(4.6, max(0.9 + 0.27 * len(shown), 2.0))
    places = np.arange(len(shown))
    ax.barh(
        places,
        [scale * driver.rise for driver in shown],
        xerr=[scale * driver.spread for driver in shown],
        height=0.7,
        color=ACCENT,
        error_kw={"ecolor": QUIET, "lw": 2},
    )
    ax.axvline(0, color=LINE, lw=1)
    ax.set_yticks(places, [_short(driver.column) for driver in shown])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    _few_ticks(ax.xaxis)
    ax.set_xlabel("more wrong answers in 100" if classify else f"more error in {_short(findings.target)}")
    caption = (
        f"How much worse the model is when the cells of one column are shuffled ({found.rows:,} rows"
        + (f"; the first {_MOST_BARS} columns" if len(found.importances) > _MOST_BARS else "")
        + "). It says what this model uses, not what causes the target."
    )
    return ax, caption


def _effect(effect: Effect, findings: Findings) -> Any:
    ax = figure(3.4, 2.6)
    for k, (name, means) in enumerate(effect.curves):
        color = ACCENT if len(effect.curves) == 1 else CLASSES[k % len(CLASSES)]
        if effect.is_number:
            ax.plot(effect.values, means, "o-", color=color, lw=2, ms=3, label=_short(name))
        else:
            places = np.arange(len(means)) + 0.12 * (k - (len(effect.curves) - 1) / 2)
            ax.plot(means, places, "o", color=color, ms=7, label=_short(name))
    label = _answer(effect, findings)
    if effect.is_number:
        _few_ticks(ax.xaxis, ax.yaxis)
    else:
        _few_ticks(ax.xaxis)
    if findings.task == "classify":
        _in_percent(ax.yaxis if effect.is_number else ax.xaxis)
    if effect.is_number:
        ax.set_xlabel(_short(effect.column))
        ax.set_ylabel(label)
    else:
        ax.set_yticks(
            np.arange(len(effect.values)), [_short(v if isinstance(v, str) else f"{v:g}") for v in effect.values]
        )
        ax.set_ylim(len(effect.values) - 0.4, -0.6)
        ax.grid(axis="y", color=LINE, lw=0.6)
        ax.set_xlabel(label)
        ax.set_ylabel(_short(effect.column))
    if len(effect.curves) > 1:
        ax.legend(title=_short(findings.target), loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _answer(effect: Effect, findings: Findings) -> str:
    if findings.task == "regress":
        return f"mean predicted {_short(findings.target)}"
    return f"probability of {_short(effect.curves[0][0])}" if len(effect.curves) == 1 else "probability"


def _effect_caption(effect: Effect, findings: Findings) -> str:
    answer = _answer(effect, findings)
    return f"{answer[0].upper()}{answer[1:]}, if all rows had the same {effect.column} and kept their other cells."


def _mistakes(findings: Findings) -> list[tuple[Any, str]]:
    found, drawn = findings.mistakes, []
    if found.residuals is not None:
        drawn += [_against_truth(found.residuals, findings.target), _residuals(found.residuals, findings.target)]
    if found.calibration is not None:
        drawn.append(_calibration(found.calibration))
    if found.curves is not None:
        drawn += _curves(found.curves)
    return drawn


def _some(n: int) -> Any:
    return np.arange(n) if n <= _MOST_DOTS else np.sort(np.random.default_rng(0).choice(n, _MOST_DOTS, replace=False))


def _against_truth(found: Residuals, target: str) -> tuple[Any, str]:
    ax = figure(4.4, 4.4)
    some = _some(len(found.truth))
    both = np.concatenate([found.truth, found.predicted])
    low, high = float(both.min()), float(both.max())
    ax.plot([low, high], [low, high], color=CHOSEN, lw=1.2)
    ax.plot(found.truth[some], found.predicted[some], "o", color=ACCENT, ms=3.5, alpha=0.55, mew=0)
    margin = 0.04 * (high - low or 1.0)
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(low - margin, high + margin)
    ax.set_aspect("equal")
    _few_ticks(ax.xaxis, ax.yaxis)
    ax.set_xlabel(f"true {_short(target)}")
    ax.set_ylabel(f"predicted {_short(target)}")
    return ax, "Predicted against true values. On the line the prediction is right."


def _residuals(found: Residuals, target: str) -> tuple[Any, str]:
    ax = figure(4.4, 4.4)
    some = _some(len(found.truth))
    ax.axhline(0, color=CHOSEN, lw=1.2)
    ax.plot(found.predicted[some], (found.predicted - found.truth)[some], "o", color=ACCENT, ms=3.5, alpha=0.55, mew=0)
    _few_ticks(ax.xaxis, ax.yaxis)
    ax.set_xlabel(f"predicted {_short(target)}")
    ax.set_ylabel("predicted − true")
    return ax, "Differences. Above the line the prediction is too high; a pattern would mean that something is missed."


def _calibration(found: Calibration) -> tuple[Any, str]:
    ax = figure(3.4, 3.4)
    ax.plot([0, 1], [0, 1], color=CHOSEN, lw=1.2)
    ax.plot(found.stated, found.true, "o-", color=ACCENT, lw=1.5, ms=5)
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_aspect("equal")
    ax.set_xlabel(f"stated probability of {_short(found.of)}")
    ax.set_ylabel("how often it was so")
    _in_percent(ax.xaxis)
    _in_percent(ax.yaxis)
    return ax, "Are stated probabilities true? On the line they are; each dot is a group of rows."


def _curves(found: Curves) -> list[tuple[Any, str]]:
    roc = figure(3.4, 3.4)
    roc.plot([0, 1], [0, 1], color=QUIET, lw=1.2)
    roc.plot(found.false_alarms, found.hits, color=ACCENT, lw=2)
    roc.set_xlabel(f"others called {_short(found.of)}")
    roc.set_ylabel(f"{_short(found.of)} that are found")
    pr = figure(3.4, 3.4)
    pr.axhline(found.share, color=QUIET, lw=1.2)
    pr.plot(found.recall, found.precision, color=ACCENT, lw=2)
    pr.set_xlabel(f"{_short(found.of)} that are found")
    pr.set_ylabel(f"right, of those called {_short(found.of)}")
    for ax in (roc, pr):
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.set_aspect("equal")
        _in_percent(ax.xaxis)
        _in_percent(ax.yaxis)
    return [
        (roc, "Finding more costs false alarms (ROC curve); the gray line is guessing."),
        (pr, "Finding more makes each call less certain (precision and recall); the gray line is guessing."),
    ]


def _kept(findings: Findings) -> list[tuple[Any, str]]:
    drawn = []
    if findings.plane is not None:
        shown = findings.plane
        ax = figure(5.6, 4.2)
        VectorsDisplay(shown.samples, shown.labels, shown.vectors, shown.boundary).plot(ax)
        ax.set_xlabel(_short(shown.columns[0]))
        ax.set_ylabel(_short(shown.columns[1]))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        drawn.append((ax, "Rows, the vectors that are kept (circles), and where the answer changes."))
    if findings.path is not None:
        ax = figure(4.8, 3.4)
        PathDisplay.from_estimator(findings.path, ax=ax)
        drawn.append(
            (ax, "Why so many vectors: the error of the models that were compared, by their number of vectors.")
        )
    return drawn


def _intervals(found: Intervals, target: str) -> tuple[Any, str]:
    ax = figure(5.6, 3.2)
    some = np.sort(np.random.default_rng(0).permutation(len(found.truth))[:60])
    some = some[np.argsort(found.predicted[some], kind="stable")]
    places = np.arange(len(some))
    inside = (found.low[some] <= found.truth[some]) & (found.truth[some] <= found.high[some])
    ax.vlines(places, found.low[some], found.high[some], color=QUIET, lw=3)
    ax.plot(places, found.predicted[some], "_", color=ACCENT, ms=6, label="predicted")
    ax.plot(places[inside], found.truth[some][inside], "o", color=ACCENT, ms=3, label="true, inside")
    ax.plot(places[~inside], found.truth[some][~inside], "o", color=CHOSEN, ms=4, label="true, outside")
    ax.set_xticks([])
    ax.set_xlabel(f"{len(some)} rows, by prediction")
    ax.set_ylabel(_short(target))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax, f"Intervals that should hold the true value in {found.coverage:.0%} of all cases."


def _shape(findings: Findings) -> list[tuple[Any, str]]:
    if findings.density is not None:
        return _density(findings.density)
    found = findings.reduction
    if found is None or not found.total:
        return []
    T = found.components[:, :2]
    names = ["component 1", "component 2"]
    if T.shape[1] == 1:
        T, names = np.column_stack([T[:, 0], np.arange(len(T))]), ["component 1", "row"]
    some = np.sort(np.random.default_rng(0).permutation(len(T))[: 3 * _MOST_DOTS])
    labels = None if findings.labels is None else np.asarray(findings.labels)[some]
    ax = figure(6.2, 4.4)
    ComponentsDisplay(T[some], labels, None, names).plot(ax)
    return [(ax, "The rows on the first two components." if found.total > 1 else "The rows on the component.")]


def _density(found: DensityShape) -> list[tuple[Any, str]]:
    """Every column alone, and the first columns in pairs."""
    d, drawn = len(found.columns), []
    for j in range(min(d, _MOST_MARGINALS)):
        drawn.append(
            (_curve(found, j), found.columns[j] + (" alone, whatever the other columns are." if d > 1 else "."))
        )
    for i, j in combinations(range(min(d, _MOST_PAIRED)), 2):
        part = found.mixture.marginal((i, j))
        xx, yy = np.meshgrid(*(np.linspace(*_span(found.samples[:, k]), _GRID_2D) for k in (i, j)))
        values = part(np.column_stack([xx.ravel(), yy.ravel()]))[:, 0].reshape(xx.shape)
        ax = _contours(xx, yy, values)
        some = _some(len(found.samples))
        ax.plot(*found.samples[some][:, [i, j]].T, "o", color=ACCENT, ms=1.8, alpha=0.6, mew=0, label="rows")
        ax.plot(*part.vectors.T, "+", color=CHOSEN, ms=7, mew=1.5, label="centers of the bell curves")
        _few_ticks(ax.xaxis, ax.yaxis)
        _name_axes(ax, found.columns[i], found.columns[j])
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        drawn.append((ax, f"{found.columns[i]} and {found.columns[j]}: the stronger the color, the more common."))
    return drawn


def _curve(found: DensityShape, j: int) -> Any:
    """The density of one column, its bell curves, and a histogram of the rows."""
    part = found.mixture.marginal((j,))
    x = found.samples[:, j]
    axis = np.linspace(*_span(x), _GRID_1D)
    ax = figure(3.4, 2.8)
    ax.hist(x, bins="auto", density=True, range=_span(x), color=QUIET, alpha=0.5, lw=0, label="rows")
    for k in range(part.n_vectors if part.n_vectors <= _MOST_BELLS else 0):
        bell = KernelMixture(part.vectors[k : k + 1], part.weights[k : k + 1], part.widths[k : k + 1], part.transform)
        label = "bell curves" if k == 0 else None
        ax.plot(axis, bell(axis[:, None])[:, 0], color=CHOSEN, lw=0.9, alpha=0.8, label=label)
    ax.plot(axis, part(axis[:, None])[:, 0], color=ACCENT, lw=2, label="density")
    ax.set_ylim(bottom=0)
    _few_ticks(ax.xaxis, ax.yaxis)
    _name_axes(ax, found.columns[j], "density")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, columnspacing=1.0, handlelength=1.2)
    return ax


def _contours(xx: Any, yy: Any, values: Any) -> Any:
    """Regions of growing density, in steps of equal factors, each a layer of the same color."""
    ax = figure(3.4, 3.5)
    top = float(values.max())
    for level in top * np.geomspace(3e-3, 0.9, 8):
        ax.contourf(xx, yy, values, levels=[level, 1.01 * top], colors=[ACCENT], alpha=0.11)
    ax.set_xlim(xx.min(), xx.max())
    ax.set_ylim(yy.min(), yy.max())
    return ax


def _span(x: Any) -> tuple[float, float]:
    low, high = (float(v) for v in np.quantile(x, [0.002, 0.998]))
    margin = 0.12 * max(high - low, 1e-12)
    return low - margin, high + margin


def _few_ticks(*axes: Any) -> None:
    """Few numbers on an axis, with separators: long ones would run into each other."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _in_percent(axis: Any) -> None:
    axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")


def _name_axes(ax: Any, x: str, y: str) -> None:
    ax.set_xlabel(_short(x))
    ax.set_ylabel(_short(y))
