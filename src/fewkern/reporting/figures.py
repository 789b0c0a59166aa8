"""Figures of the findings, drawn by matplotlib, as SVG in the colors of the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from fewkern.plotting import ComponentsDisplay, DensityDisplay, ImportancesDisplay, PathDisplay, VectorsDisplay
from fewkern.plotting.style import ACCENT, CHOSEN, CLASSES, QUIET
from fewkern.reporting.errors import Calibration, Curves, Residuals
from fewkern.reporting.findings import Findings
from fewkern.reporting.formatting import text
from fewkern.reporting.importances import Importances, PartialDependence
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.svg import LINE, drawing, figure, inline_svg
from fewkern.reporting.uncertainty import Intervals
from fewkern.reporting.unsupervised import DensityShape

__all__ = ["Picture", "draw"]

# Dots in a scatter: each costs 150 bytes of the page, and more hide each other.
_MOST_DOTS = 500
_MOST_BARS, _MOST_INTERVALS = 20, 60
_MOST_MARGINALS, _MOST_PAIRED = 6, 3
_LONGEST_NAME = 20


@dataclass(frozen=True)
class Picture:
    """An ``<svg>`` element and what is written below it."""

    svg: str
    width: int
    """In pixels, where there is room for it."""
    caption: str


def draw(findings: Findings) -> dict[str, tuple[Picture, ...]]:
    """All pictures of a report by the part of the page that they belong to."""
    intervals = findings.uncertainty.intervals
    with drawing():
        made: dict[str, list[tuple[Any, str]]] = {
            "importances": _importances(findings),
            "errors": _errors(findings),
            "vectors": _vectors(findings),
            "uncertainty": [_intervals(intervals, findings.target)] if intervals else [],
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


def _importances(findings: Findings) -> list[tuple[Any, str]]:
    found = findings.importances
    if found is None:
        return []
    drawn = [_shuffling(found, findings)] if any(column.increase for column in found.columns) else []
    if all(column.share is not None for column in found.columns) and len(found.columns) > 1:
        ax = figure(4.6, max(0.9 + 0.27 * min(len(found.columns), 22), 2.0))
        shares = np.array([column.share for column in found.columns], dtype=float)
        ImportancesDisplay(shares, [_short(column.column) for column in found.columns]).plot(ax)
        caption = "What the model itself uses: share of each column in the variation of the fitted function."
        if found.several:
            caption += " Categories may be overstated: a row cannot move a little towards another category."
        drawn.append((ax, caption))
    return drawn + [(_dependence(one, findings), _dependence_caption(one, findings)) for one in found.dependence]


def _shuffling(found: Importances, findings: Findings) -> tuple[Any, str]:
    shown = found.columns[:_MOST_BARS]
    classify = findings.task == "classify"
    scale = 100.0 if classify else 1.0
    ax = figure(4.6, max(0.9 + 0.27 * len(shown), 2.0))
    places = np.arange(len(shown))
    ax.barh(
        places,
        [scale * column.increase for column in shown],
        xerr=[scale * column.std for column in shown],
        height=0.7,
        color=ACCENT,
        error_kw={"ecolor": QUIET, "lw": 2},
    )
    ax.axvline(0, color=LINE, lw=1)
    ax.set_yticks(places, [_short(column.column) for column in shown])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    _few_ticks(ax.xaxis)
    ax.set_xlabel("more wrong predictions in 100" if classify else f"more error in {_short(findings.target)}")
    caption = (
        f"How much worse the model is when the cells of one column are shuffled ({found.rows:,} rows"
        + (f"; the first {_MOST_BARS} columns" if len(found.columns) > _MOST_BARS else "")
        + "). It shows what this model uses, not what causes the target."
    )
    return ax, caption


def _dependence(found: PartialDependence, findings: Findings) -> Any:
    ax = figure(3.4, 2.6)
    is_line, several = found.kind != "category", len(found.curves) > 1
    for k, (name, means) in enumerate(found.curves):
        color = CLASSES[k % len(CLASSES)] if several else ACCENT
        if is_line:
            ax.plot(found.values, means, "o-", color=color, lw=2, ms=3, label=_short(name))
        else:
            places = np.arange(len(means)) + 0.12 * (k - (len(found.curves) - 1) / 2)
            ax.plot(means, places, "o", color=color, ms=7, label=_short(name))
    value_axis, answer_axis = (ax.xaxis, ax.yaxis) if is_line else (ax.yaxis, ax.xaxis)
    _few_ticks(answer_axis)
    if findings.task == "classify":
        _in_percent(answer_axis)
    if found.kind == "number":
        _few_ticks(ax.xaxis)
    elif found.kind == "date":
        _date_ticks(ax.xaxis)
    else:
        names = [_short(v if isinstance(v, str) else f"{v:g}") for v in found.values]
        ax.set_yticks(np.arange(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.grid(axis="y", color=LINE, lw=0.6)
    value_axis.set_label_text(_short(found.column))
    answer_axis.set_label_text(_answer(found, findings))
    if several:
        ax.legend(title=_short(findings.target), loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _answer(found: PartialDependence, findings: Findings) -> str:
    if findings.task == "regress":
        return f"mean predicted {_short(findings.target)}"
    return f"probability of {_short(found.curves[0][0])}" if len(found.curves) == 1 else "probability"


def _dependence_caption(found: PartialDependence, findings: Findings) -> str:
    answer = _answer(found, findings)
    return f"{answer[0].upper()}{answer[1:]}, if all rows had the same {found.column} and kept their other cells."


def _errors(findings: Findings) -> list[tuple[Any, str]]:
    found, drawn = findings.errors, []
    if found.residuals is not None:
        drawn += [_against_truth(found.residuals, findings.target), _residuals(found.residuals, findings.target)]
    if found.calibration is not None:
        drawn.append(_calibration(found.calibration))
    if found.curves is not None:
        drawn += _curves(found.curves)
    return drawn


def _some(n: int, limit: int = _MOST_DOTS) -> Any:
    return sample_rows(n, limit, np.random.default_rng(0))


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
    return (
        ax,
        "Residuals. Above the line the prediction is too high; a pattern would mean that the model misses something.",
    )


def _calibration(found: Calibration) -> tuple[Any, str]:
    ax = figure(3.4, 3.4)
    ax.plot([0, 1], [0, 1], color=CHOSEN, lw=1.2)
    ax.plot(found.stated, found.true, "o-", color=ACCENT, lw=1.5, ms=5)
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_aspect("equal")
    ax.set_xlabel(f"predicted probability of {_short(found.of)}")
    ax.set_ylabel("observed frequency")
    _in_percent(ax.xaxis)
    _in_percent(ax.yaxis)
    return (
        ax,
        "Calibration: on the line, predicted probabilities equal observed frequencies. Each dot is a group of rows.",
    )


def _curves(found: Curves) -> list[tuple[Any, str]]:
    roc = figure(3.4, 3.4)
    roc.plot([0, 1], [0, 1], color=QUIET, lw=1.2)
    roc.plot(found.false_alarms, found.hits, color=ACCENT, lw=2)
    roc.set_xlabel("false-positive rate")
    roc.set_ylabel(f"share of {_short(found.of)} found (recall)")
    pr = figure(3.4, 3.4)
    pr.axhline(found.share, color=QUIET, lw=1.2)
    pr.plot(found.recall, found.precision, color=ACCENT, lw=2)
    pr.set_xlabel(f"share of {_short(found.of)} found (recall)")
    pr.set_ylabel("share right (precision)")
    for ax in (roc, pr):
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.set_aspect("equal")
        _in_percent(ax.xaxis)
        _in_percent(ax.yaxis)
    return [
        (roc, "ROC curve: finding more costs false alarms. The gray line is guessing."),
        (pr, "Precision and recall: finding more makes each one less certain. The gray line is guessing."),
    ]


def _vectors(findings: Findings) -> list[tuple[Any, str]]:
    drawn = []
    if findings.plane is not None:
        ax = figure(5.6, 4.2)
        some = _some(len(findings.plane.X))
        VectorsDisplay.from_model(replace(findings.plane, X=findings.plane.X[some]), findings.labels[some], ax=ax)
        drawn.append((ax, "Rows, the vectors that are kept (circles), and where the prediction changes."))
    if findings.path is not None:
        ax = figure(4.8, 3.4)
        PathDisplay.from_estimator(findings.path, ax=ax)
        drawn.append((ax, "How the number of vectors was chosen: the error of the models that were compared."))
    return drawn


def _intervals(found: Intervals, target: str) -> tuple[Any, str]:
    ax = figure(5.6, 3.2)
    some = _some(len(found.truth), _MOST_INTERVALS)
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
    return ax, f"Prediction intervals with {found.coverage:.0%} coverage."


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
    some = _some(len(T), 3 * _MOST_DOTS)
    labels = None if findings.labels is None else np.asarray(findings.labels)[some]
    ax = figure(6.2, 4.4)
    ComponentsDisplay(T[some], labels, None, names).plot(ax)
    return [(ax, "The rows on the first two components." if found.total > 1 else "The rows on the component.")]


def _density(found: DensityShape) -> list[tuple[Any, str]]:
    """Every column alone, and the first columns in pairs."""
    d, names = len(found.columns), [_short(name) for name in found.columns]
    shown: list[tuple[int, ...]] = [(j,) for j in range(min(d, _MOST_MARGINALS))]
    shown += combinations(range(min(d, _MOST_PAIRED)), 2)
    some, drawn = _some(len(found.samples)), []
    for columns in shown:
        alone = len(columns) == 1
        ax = figure(3.4, 2.8 if alone else 3.5)
        samples = found.samples if alone else found.samples[some]
        DensityDisplay(found.mixture.marginal(columns), samples[:, columns], [names[j] for j in columns]).plot(ax)
        _few_ticks(ax.xaxis, ax.yaxis)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3, columnspacing=1.0, handlelength=1.2)
        what = " and ".join(found.columns[j] for j in columns)
        drawn.append((ax, what + (" alone, whatever the other columns are." if alone and d > 1 else ".")))
    return drawn


def _few_ticks(*axes: Any) -> None:
    """Few numbers on an axis, with separators: long ones would run into each other."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _date_ticks(axis: Any) -> None:
    """Days since 1970-01-01 as dates."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=2, maxticks=5)
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))


def _in_percent(axis: Any) -> None:
    axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
