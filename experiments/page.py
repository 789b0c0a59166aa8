"""The results page: published figure, ours, difference, verdict. Generated from the results, never typed."""

from __future__ import annotations

import base64
import html
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.plan import Experiment, Row, experiments
from fewkern.io.save import write_atomically

__all__ = ["write_pages"]

DOCS = Path(__file__).parent.parent / "docs"
_SHOWN = ("error", "rate", "l1", "vectors", "retained", "kernels", "features")


@dataclass(frozen=True)
class Figure:
    """One figure of one row: mean and standard deviation over the runs, beside the published one."""

    row: Row
    name: str
    mean: float
    deviation: float
    runs: int
    published: float | None
    published_deviation: float | None

    @property
    def verdict(self) -> str:
        if self.published is None:
            return ""
        spread = max(self.deviation, self.published_deviation or 0.0)
        if abs(self.mean - self.published) <= (spread or 0.01 * abs(self.published)):
            # a single run has no spread: then one part in a hundred
            return "reproduced within " + ("one standard deviation" if spread else "one per cent")
        why = self.row.why if isinstance(self.row.why, str) else self.row.why.get(self.name, "")
        return "not reproduced" + (f": {why}" if why else "")


def figures(experiment: Experiment) -> list[Figure]:
    """All figures of a table, row by row."""
    found = []
    for row, records in experiment.results():
        names = {name: None for r in records for name, v in r["values"].items() if isinstance(v, (int, float))}
        for name in names:
            values = np.array([r["values"][name] for r in records if r["values"].get(name) is not None], dtype=float)
            # equal values have no spread, whatever rounding says
            deviation = float(values.std(ddof=1)) if np.ptp(values) > 0 else 0.0
            published = row.published.get(name)
            found.append(
                Figure(
                    row, name, float(values.mean()), deviation, len(values), published, row.published.get(name + "_sd")
                )
            )
    return found


def _number(value: float | None, deviation: float | None = None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    text = f"{value:.4g}"
    return text + (f" ± {deviation:.2g}" if deviation else "")


def _lines(experiment: Experiment) -> list[list[str]]:
    lines = []
    for f in figures(experiment):
        difference = "" if f.published is None else f"{f.mean - f.published:+.3g}"
        lines.append(
            [
                f.row.label,
                f.row.protocol,
                f.name,
                _number(f.published, f.published_deviation),
                _number(f.mean, f.deviation),
                str(f.runs),
                difference,
                f.verdict,
            ]
        )
    return lines


_HEAD = ["row", "protocol", "figure", "published", "ours", "runs", "difference", "verdict"]
_INTRODUCTION = (
    "Every table and figure of the five papers beside ours. *Protocol* says how the parameters were found: `paper` as "
    "the paper did it, which may look at test data; `honest` from training data only; `both` where there is no "
    "difference. This page is made by `python -m experiments page` from the lines in `experiments/results`; nothing on "
    "it is typed."
)


def write_pages() -> list[Path]:
    """Write ``docs/results/index.md`` and ``docs/results/index.html``."""
    every = [(experiment, _lines(experiment)) for experiment in experiments()]
    markdown = ["# The papers' tables and figures", "", _INTRODUCTION, "", *_summary_markdown(every), ""]
    body = [f"<h1>The papers' tables and figures</h1><p>{_plain(_INTRODUCTION)}</p>", _summary(every)]
    for experiment, lines in every:
        markdown += [f"## {experiment.title}", ""]
        body.append(f'<h2 id="{_anchor(experiment)}">{html.escape(experiment.title)}</h2>')
        if experiment.notes:
            markdown += [experiment.notes, ""]
            body.append(f"<p>{_plain(experiment.notes)}</p>")
        if lines:
            markdown += [_markdown_row(_HEAD), "|" + "---|" * len(_HEAD)]
            markdown += [_markdown_row(line) for line in lines] + [""]
            body.append(_table(lines))
        image = _picture(experiment)
        if image:
            markdown += ["The picture is in `index.html`.", ""]
            body.append(f'<img alt="{html.escape(experiment.title)}" src="data:image/png;base64,{image}">')
        if not lines and not image:
            markdown += ["Not run yet.", ""]
            body.append("<p>Not run yet.</p>")
    pages = {
        DOCS / "results" / "index.md": "\n".join(markdown),
        DOCS
        / "results"
        / "index.html": f"<!doctype html><html lang=en><meta charset=utf-8><title>fewkern results</title>"
        f"<style>{_STYLE}</style><body>{''.join(body)}</body></html>",
    }
    for path, text in pages.items():
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, lambda handle, text=text: handle.write(text.encode()))
    return list(pages)


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; }
table { border-collapse: collapse; font-size: .92em; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
td:nth-child(n+4):nth-child(-n+5), td:nth-child(7) { white-space: nowrap; }
tbody tr.first td { border-top: 1px solid #dde4ea; }
h2 { margin-top: 2.5rem; }
tr.no td:last-child { color: #a33; } tr.yes td:last-child { color: #276b3a; }
img { max-width: 100%; }
"""


def _anchor(experiment: Experiment) -> str:
    return f"{experiment.paper}-{experiment.name}"


def _counts(lines: list[list[str]]) -> list[str]:
    """How many figures stand beside a published one, how many of them agree with it, and how many do not."""
    verdicts = [line[-1] for line in lines if line[-1]]
    if not verdicts:
        return ["a picture", "", ""]
    reproduced = sum(verdict.startswith("reproduced") for verdict in verdicts)
    return [str(len(verdicts)), str(reproduced), str(len(verdicts) - reproduced)]


_SUMMARY_HEAD = ["table or figure", "comparisons", "reproduced", "not"]


def _summary_markdown(every: list[tuple[Experiment, list[list[str]]]]) -> list[str]:
    rows = [_markdown_row([e.title, *_counts(lines)]) for e, lines in every]
    return [_markdown_row(_SUMMARY_HEAD), "|" + "---|" * len(_SUMMARY_HEAD), *rows]


def _summary(every: list[tuple[Experiment, list[list[str]]]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in _SUMMARY_HEAD)
    rows = [
        f'<tr><td><a href="#{_anchor(e)}">{html.escape(e.title)}</a></td>'
        + "".join(f"<td>{count}</td>" for count in _counts(lines))
        + "</tr>"
        for e, lines in every
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _plain(text: str) -> str:
    return html.escape(text).replace("`", "").replace("*", "")


def _table(lines: list[list[str]]) -> str:
    def row(cells: list[str], before: list[str]) -> str:
        kind = "yes" if cells[-1].startswith("reproduced") else "no" if cells[-1] else ""
        # label and protocol only where they change
        shown = ["", "", *cells[2:]] if cells[:2] == before[:2] else cells
        first = "" if shown is not cells else " first"
        return f'<tr class="{kind}{first}">' + "".join(f"<td>{html.escape(c)}</td>" for c in shown) + "</tr>"

    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    rows = [row(cells, before) for before, cells in zip([[], *lines], lines)]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _picture(experiment: Experiment) -> str | None:
    """Curves (``x``, ``y``) averaged over runs, or points and marks of the first run; one panel per setting "panel"."""
    if experiment.kind != "figure":
        return None
    rows = [(row, [r["values"] for r in records]) for row, records in experiment.results() if records]
    if not rows:
        return None
    from matplotlib.figure import Figure as Canvas

    panels = list(dict.fromkeys(str(row.settings.get("panel", "")) for row, _ in rows))
    canvas = Canvas(figsize=(4.6 * len(panels), 3.8), layout="constrained")
    axes = canvas.subplots(1, len(panels), squeeze=False)[0]
    for row, values in rows:
        ax = axes[panels.index(str(row.settings.get("panel", "")))]
        ax.set_title(str(row.settings.get("panel", "")))
        ax.set_xlabel(experiment.axes.get("x", ""))
        ax.set_ylabel(experiment.axes.get("y", ""))
        ax.set_xscale(experiment.axes.get("xscale", "linear"))
        _draw(ax, row.settings.get("line", row.label), values)
    for ax in axes:
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize=8)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=110)
    return base64.b64encode(buffer.getvalue()).decode()


def _draw(ax: Any, label: str, values: list[dict[str, Any]]) -> None:
    first = values[0]
    if "points" in first:
        points, labels = np.array(first["points"]), np.array(first["labels"])
        for name in np.unique(labels):
            ax.plot(*points[labels == name].T, ".", ms=4, label=f"{label} {name}")
    if "marks" in first:
        x, y = np.array(first["marks"]).T
        ax.plot(x, y, "o-", ms=4, lw=0.8, label=label)
    for key, style in (("circles", "ok"), ("boundary", "k-")):
        if key in first:
            x, y = np.array(first[key]).T
            ax.plot(x, y, style, mfc="none", ms=8 if key == "circles" else None)
    if "x" in first:
        length = min(len(v["y"]) for v in values)
        ax.plot(first["x"][:length], np.mean([v["y"][:length] for v in values], axis=0), label=label)
