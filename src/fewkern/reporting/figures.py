"""Figures of a report: drawn by matplotlib, where possible by displays of ``plotting``, as SVG in the page's colors."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from fewkern.arrays.progress import missing_package, printable
from fewkern.base import path_of
from fewkern.core.explanation import explainable
from fewkern.plotting import (
    ComponentsDisplay,
    DensityDisplay,
    ImportancesDisplay,
    PathDisplay,
    VectorsDisplay,
    WaterfallDisplay,
    style,
)
from fewkern.reporting.evaluation import Predictions
from fewkern.reporting.findings import Findings
from fewkern.reporting.formatting import cell, label, text
from fewkern.reporting.importances import Importances, PartialDependence
from fewkern.reporting.quality import Calibration, worst_rows
from fewkern.reporting.rows import sample_rows
from fewkern.reporting.subject import Subject
from fewkern.reporting.unsupervised import DensityShape

# Colors of text and of thin lines in the figure, and the variables of the page that replace all colors.
INK, LINE = "#101418", "#c9d1d8"
_VARIABLES = {
    INK: "--ink",
    "#000000": "--ink",
    LINE: "--line",
    style.ACCENT: "--accent",
    style.QUIET: "--quiet",
    style.SAMPLES: "--soft",
    **{color: f"--class-{k}" for k, color in enumerate(style.CLASSES)},
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # texts stay texts: small, sharp, and found by a search
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a name may have dollar signs
    "date.converter": "concise",
}


# Dots in a scatter: each costs 150 bytes of the page, and more hide each other.
_MOST_DOTS = 500
# Columns of a density that are drawn alone and in pairs: 15 small plots still fit the page.
_MOST_MARGINAL_COLUMNS = 5
_LONGEST_NAME, _LONGEST_LABEL = 20, 30

# Pictures and their captions, drawn one after the other.
Drawn = Iterator[tuple[Any, str]]


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of all pictures, without warnings: the page has letters of its own, and remarks on the cells."""
    try:
        import matplotlib
    except ImportError as error:
        raise missing_package("report: every figure", "matplotlib") from error
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def new_axes(width: float = 4.6, height: float = 3.2) -> Any:
    """New axes in a figure that no window shows; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def inline_svg(drawn: Any, name: str, alt: str) -> tuple[str, int]:
    """A figure as an ``<svg>`` element, and its width in pixels.

    ``name`` begins all its identifiers, ``alt`` says what it shows.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = printable(buffer.getvalue(), keep="\n\t")
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\sid="|url\(#|xlink:href="#)', rf"\g<1>{name}-", text).replace("xlink:href", "href")
    # no "<" inside: a text of the picture that looks like a style does not end one
    text = re.sub(r'style="[^"<]*"', _in_page_colors, text)
    width, height = (float(re.search(rf'{side}="([\d.]+)pt"', text)[1]) for side in ("width", "height"))  # type: ignore[index]
    said = html.escape(printable(alt, keep="\n\t"))
    head = f'<svg role="img" aria-label="{said}" viewBox="0 0 {width:g} {height:g}" stroke-linejoin="round"'
    return head + ">" + text[text.index(">") + 1 :], round(width * 4 / 3)


def _in_page_colors(attribute: re.Match[str]) -> str:
    """One attribute ``style`` of a figure with the font and the colors of the page."""
    text = re.sub(r"font-family:[^;\"]*", "font-family: inherit", attribute[0])
    for color, variable in _VARIABLES.items():
        text = text.replace(color, f"var({variable}, {color})")
    return text


def draw(subject: Subject, findings: Findings) -> dict[str, list[tuple[str, int, str]]]:
    """All pictures of a report by the part of the page that they belong to: ``<svg>``, width in pixels, caption."""
    parts: dict[str, tuple[Drawn, ...]] = {
        "importances": (_importances(findings), _reduction(subject, findings), _density(findings.density)),
        "errors": (_errors(findings), _explained(subject, findings.predictions)),
        "vectors": (_vectors(subject),),
        "uncertainty": (_intervals(findings),),
    }
    with drawing():
        return {
            part: [(*inline_svg(ax.figure, f"{part}{k}", said), said) for k, (ax, said) in enumerate(chain(*drawn))]
            for part, drawn in parts.items()
        }


def _short(name: Any) -> str:
    """A name that leaves room for the picture."""
    return text(name, _LONGEST_NAME)


def _importances(findings: Findings) -> Drawn:
    found = findings.importances
    if found is None:
        return
    if any(column.increase for column in found.columns):
        yield _shuffling(found, findings)
    if all(column.share is not None for column in found.columns) and len(found.columns) > 1:
        ax = new_axes(4.6, 0.9 * style.bars_height(len(found.columns)))
        shares = np.array([column.share for column in found.columns], dtype=float)
        ImportancesDisplay(shares, [_short(column.column) for column in found.columns]).plot(ax)
        caption = "Feature importances: each column's share of the variation of the fitted function."
        if found.several:
            caption += " Categories may be overstated, because a row cannot move a little towards another category."
        yield ax, caption
    for one in found.dependence:
        yield _dependence(one, findings)


def _explained(subject: Subject, found: Predictions | None) -> Drawn:
    """Two predictions, column by column: the one that is furthest off, and a typical one."""
    core = subject.core
    if found is None or len(subject.used) < 2 or not (hasattr(core, "explain") and explainable(core.expansion_)):
        return
    extreme = "the most confident wrong prediction" if subject.task == "classify" else "the largest difference"
    chosen = {row: extreme for row, _ in worst_rows(found)[:1]}
    middle = np.argsort(found.losses, kind="stable")[len(found.losses) // 2]
    chosen.setdefault(int(found.positions[middle]), "a typical one")
    for row, which in chosen.items():
        steps = WaterfallDisplay.of_row(subject.model, subject.given(subject.rows), row=row)
        steps.labels = [text(words, _LONGEST_LABEL) for words in steps.labels]
        caption = (
            f"What each column contributes to the prediction of this model for row {subject.rows.label(row)}, {which}: "
            f"from {steps.baseline:.4g}, the mean over the background, to {steps.value:.4g}."
        )
        yield steps.plot(new_axes(4.6, 0.9 * style.bars_height(len(steps.labels)))).ax_, caption


def _shuffling(found: Importances, findings: Findings) -> tuple[Any, str]:
    shown = found.columns[: style.MOST_BARS]
    classify = findings.task == "classify"
    ax = new_axes(4.6, 0.9 * style.bars_height(len(shown)))
    sizes, spread = [column.increase for column in shown], [column.std for column in shown]
    ends = {"ecolor": style.QUIET, "lw": 2}
    ax.barh(np.arange(len(shown)), sizes, xerr=spread, height=0.7, color=style.ACCENT, error_kw=ends)
    ax.axvline(0, color=LINE, lw=1)
    style.label_bars(ax, [_short(column.column) for column in shown])
    _few_ticks(ax.xaxis)
    if classify:
        style.percent_ticks(ax.xaxis)
    ax.set_xlabel("increase in error rate" if classify else "increase in mean absolute error")
    first = f"; the first {style.MOST_BARS} columns" if len(found.columns) > style.MOST_BARS else ""
    return ax, (
        f"Permutation importances: how much the error grows when the values of one column are shuffled "
        f"({found.rows:,} rows{first}). They show what this model relies on, not what causes the target."
    )


def _dependence(found: PartialDependence, findings: Findings) -> tuple[Any, str]:
    ax, several = new_axes(3.4, 2.6), len(found.curves) > 1
    is_category = found.kind == "category"
    places = [_short(cell(value)) for value in found.values] if is_category else found.values
    if found.kind == "number":
        _few_ticks(ax.xaxis)
    else:
        ax.tick_params(axis="x", rotation=45)
    for k, (name, means) in enumerate(found.curves):
        color = style.CLASSES[k % len(style.CLASSES)] if several else style.ACCENT
        line = {"ls": "none", "ms": 7} if is_category else {"lw": 2, "ms": 3}
        ax.plot(places, means, marker="o", color=color, label=_short(name), **line)
    _few_ticks(ax.yaxis)
    if findings.task == "classify":
        style.percent_ticks(ax.yaxis)
        answer = "probability" if several else f"probability of {_short(found.curves[0][0])}"
    else:
        answer = f"mean predicted {_short(findings.target)}"
    ax.set(xlabel=_short(found.column), ylabel=answer)
    if several:
        ax.legend(title=_short(findings.target), loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax, f"Partial dependence: {answer} if every row had the same {found.column}."


def _errors(findings: Findings) -> Drawn:
    found, wrong = findings.predictions, findings.errors
    if found is None or wrong is None:
        return
    if findings.task == "regress":
        yield _residuals(found, _short(findings.target))
    if wrong.calibration is not None:
        yield _calibration(wrong.calibration)
    if wrong.thresholds:
        yield _roc(found)


def _some(n: int, limit: int = _MOST_DOTS) -> Any:
    return sample_rows(n, limit, np.random.default_rng(0))


def _residuals(found: Predictions, target: str) -> tuple[Any, str]:
    ax, some = new_axes(4.4, 4.4), _some(len(found.truth))
    gap = np.asarray(found.predicted - found.truth, dtype=float)
    ax.axhline(0, color=style.CHOSEN, lw=1.2)
    ax.plot(found.predicted[some], gap[some], "o", color=style.ACCENT, ms=3.5, alpha=0.55, mew=0)
    ax.set(xlabel=f"predicted {target}", ylabel="predicted − true")
    _few_ticks(ax.xaxis, ax.yaxis)
    return ax, (
        "Residuals. Above the line, the prediction is too high; a pattern means that the model misses something."
    )


def _square(xlabel: str, ylabel: str, margin: float) -> Any:
    """Axes of two shares."""
    ax = new_axes(3.4, 3.4)
    ends = (-margin, 1 + margin)
    ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel=xlabel, ylabel=ylabel)
    style.percent_ticks(ax.xaxis)
    style.percent_ticks(ax.yaxis)
    return ax


def _calibration(found: Calibration) -> tuple[Any, str]:
    ax = _square(f"predicted probability of {_short(found.of)}", "observed frequency", 0.03)
    ax.plot([0, 1], [0, 1], color=style.CHOSEN, lw=1.2)
    ax.plot(found.stated, found.true, "o-", color=style.ACCENT, lw=1.5, ms=5)
    equal = "on the line, predicted probabilities match observed frequencies"
    return ax, f"Calibration. Each dot is a group of rows; {equal}."


def _roc(found: Predictions) -> tuple[Any, str]:
    """The ROC curve of the rarer of two classes."""
    assert found.rare is not None
    name, positive, stated = found.rare
    false_alarms, hits, _ = roc_curve(positive, stated)
    ax = _square("false-positive rate", f"recall of {_short(label(name))}", 0.02)
    ax.plot([0, 1], [0, 1], color=style.QUIET, lw=1.2)
    ax.plot(false_alarms, hits, color=style.ACCENT, lw=2)
    return ax, "ROC curve. The gray line is random guessing."


def _vectors(subject: Subject) -> Drawn:
    if subject.task == "classify" and subject.samples.shape[1] == 2:
        ax, some = new_axes(5.6, 4.2), _some(len(subject.rows))
        VectorsDisplay.from_estimator(subject.model, subject.given(subject.rows.take(some)), subject.truth[some], ax=ax)
        yield ax, "Rows, the vectors kept (circles), and the decision boundary."
    path = path_of(subject.core)
    if subject.task != "density" and path is not None and path.error.ndim and max(path.error.shape) > 1:
        ax = new_axes(6.0, 3.6)
        PathDisplay.from_estimator(subject.core, ax=ax)
        yield ax, "How the number of vectors was chosen: the errors of the models compared."


def _intervals(findings: Findings) -> Drawn:
    found = findings.uncertainty.intervals
    if found is None:
        return
    ax, some, target = new_axes(4.8, 4.2), _some(len(found.truth)), _short(findings.target)
    replace(found, predicted=found.predicted[some], truth=found.truth[some], intervals=found.intervals[some]).plot(ax)
    _few_ticks(ax.xaxis, ax.yaxis)
    ax.set(xlabel=f"true {target}", ylabel=f"predicted {target}")
    yield ax, f"Prediction intervals with {found.coverage:.0%} coverage, for {len(some)} of these rows."


def _reduction(subject: Subject, findings: Findings) -> Drawn:
    if findings.reduction is None:
        return
    ax, some = new_axes(6.2, 4.4), _some(len(subject.rows), 3 * _MOST_DOTS)
    labels = None if subject.truth is None else subject.truth[some]
    ComponentsDisplay.from_estimator(subject.model, subject.given(subject.rows.take(some)), labels, ax=ax)
    yield ax, "The rows on the first two components." if findings.reduction.total > 1 else "The rows on the component."


def _density(found: DensityShape | None) -> Drawn:
    if found is None:
        return
    shown = range(min(len(found.columns), _MOST_MARGINAL_COLUMNS))
    d, names = len(shown), [_short(name) for name in found.columns[: len(shown)]]
    samples = found.samples[:, shown] if d == 1 else found.samples[_some(len(found.samples))][:, shown]
    ax = new_axes(2.1 * d + 1, 2.1 * d + 1)
    DensityDisplay(found.mixture.marginal(shown), samples, names).plot(ax)
    yield ax, "The density, each column alone and in pairs." if d > 1 else "The density."


def _few_ticks(*axes: Any) -> None:
    """Few numbers on an axis, with separators: long ones would run into each other."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
