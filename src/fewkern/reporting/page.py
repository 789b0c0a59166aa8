"""The page: findings and figures as one self-contained HTML document, by the templates beside this module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewkern.arrays.texts import missing_package, printable
from fewkern.reporting import formatting
from fewkern.reporting.evaluation import ClassQuality, RegressionQuality
from fewkern.reporting.figures import Picture
from fewkern.reporting.findings import Findings
from fewkern.reporting.formatting import cell, count, number, of, percent, plural, signed

__all__ = ["page"]

# A table: its head, and rows of text.
Table = tuple[Sequence[str], Sequence[Sequence[str]]]
_NOTHING: Table = ((), ())
# Pairs of classes and columns that a table shows; a larger confusion matrix cannot be read.
_MOST_CLASSES, _MOST_PAIRS, _MOST_COLUMNS, _MOST_SIZES = 30, 15, 20, 10
_TITLES = {
    "good": "How good is it?",
    "importances": "What drives it?",
    "errors": "Where does it err?",
    "vectors": "What does it keep?",
    "uncertainty": "How certain is it?",
    "usage": "How do I use it?",
    "remarks": "Remarks",
}
_OTHER_TITLES = {
    "density": {"importances": "What does it look like?", "errors": "Which rows are unusual?"},
    "reduce": {"importances": "What are the components?", "errors": "Which rows does it lose?"},
}


def page(findings: Findings, pictures: dict[str, tuple[Picture, ...]], title: str, about: Any) -> str:
    """The whole document; ``about`` are names and values of the footer."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise missing_package("report: the page", "jinja2") from error
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        # what is not a piece of the page itself
        finalize=lambda value: printable(value, keep="\n\t") if type(value) is str else value,
    )
    environment.filters |= {name: getattr(formatting, name) for name in ("cell", "count", "percent", "plural", "text")}
    environment.filters["zip"] = zip
    return environment.get_template("report.html").render(
        found=findings,
        pictures=pictures,
        title=title,
        subtitle=_subtitle(findings),
        about=about,
        titles=_TITLES | _OTHER_TITLES.get(findings.task, {}),
        number_columns=_number_columns,
        **_tables(findings),
    )


def _number_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns to set to the right: those whose cells are numbers, counts, shares or ranges."""

    def is_number(value: str) -> bool:
        for part in value.replace(" of ", " to ").split(" to "):
            try:
                float(part.lstrip("<>").replace(",", "").replace("−", "-").rstrip("%"))
            except ValueError:
                return value in ("", "–", "never predicted")
        return True

    return [j for j in range(len(rows[0])) if all(is_number(str(row[j])) for row in rows)]


def _subtitle(found: Findings) -> str:
    what = {
        "classify": f"predicts {found.target}, one of {plural(len(found.classes), 'class', 'classes')},",
        "regress": f"predicts {found.target}, a number,",
        "reduce": "describes rows by a few components,",
        "density": "scores how common a row is,",
    }[found.task]
    return (
        f"A {found.model} that {what} from {plural(found.columns, 'column')}, evaluated on {plural(found.rows, 'row')}."
    )


def _tables(found: Findings) -> dict[str, Any]:
    """What the template shows as tables and tiles, as text."""
    confusion, sets = found.errors.confusion, found.uncertainty.sets
    many = confusion is not None and len(confusion.labels) > _MOST_CLASSES
    pairs = confusion.pairs if confusion is not None and len(confusion.labels) > 3 else []
    return {
        "tiles": _tiles(found),
        "baselines": _baselines(found.quality),
        "classes": _classes(found),
        "correlations": _components(found, weights=False),
        "weights": _components(found, weights=True),
        "pairs": [(cell(a), cell(b), count(n)) for a, b, n in pairs[: _MOST_PAIRS if many else 5]],
        "thresholds": _thresholds(found),
        "worst": _worst(found),
        "kept_table": _kept(found),
        "examples": _examples(found),
        "set_sizes": [(count(k), count(n)) for k, n in enumerate(sets.sizes if sets else ()) if n][:_MOST_SIZES],
        "costs": _costs(found),
    }


def _tiles(found: Findings) -> list[tuple[str, str]]:
    """The numbers that a reader takes away."""
    shown: list[tuple[str, str]] = []
    quality = found.quality
    if isinstance(quality, ClassQuality):
        shown += [(percent(1 - score.value), score.name) for score in quality.scores]
        shown[0] = (shown[0][0], "right")
    elif isinstance(quality, RegressionQuality):
        shown += [(number(score.value), score.name) for score in quality.scores]
        shown[0] = (shown[0][0], "off on average")
    elif found.reduction is not None:
        shown += [(percent(max(share, 0.0), 0), f"recovered, {name}") for name, share in found.reduction.carried]
    elif found.density is not None:
        times = float(np.exp(min(found.density.gain[0], 500.0)))
        shown.append((number(times), "times as probable as under one bell curve"))
    if found.vectors is not None:
        shown.append((count(found.vectors.total), "vectors kept" if found.vectors.moved else "rows kept"))
    own = found.usage.machines[0]
    return [*shown, (f"{own.nbytes:,} B", "the model"), (f"{number(own.microseconds, 2)} µs", "per row")]


def _baselines(quality: ClassQuality | RegressionQuality | None) -> Table:
    if quality is None:
        return _NOTHING
    verdicts = ["", *({"better": "clearly better", "worse": "clearly worse"}.get(v, v) for v in quality.verdicts)]
    if isinstance(quality, ClassQuality):
        return ("", "wrong", "95% CI", "this model is"), [
            (s.name, percent(s.value), f"{percent(s.low)} to {percent(s.high)}", verdict)
            for s, verdict in zip(quality.scores, verdicts)
        ]
    lines = zip(quality.scores, quality.rmse, quality.r2, verdicts)
    return ("", "off on average (MAE)", "95% CI", "RMSE", "R²", "this model is"), [
        (s.name, number(s.value), f"{number(s.low)} to {number(s.high)}", number(rmse), f"{r2 + 0.0:.3f}", verdict)
        for s, rmse, r2, verdict in lines
    ]


def _classes(found: Findings) -> Table:
    if not isinstance(found.quality, ClassQuality):
        return _NOTHING
    return (found.target, "rows", "found", "recall", "right when predicted", "precision"), [
        (
            cell(line.label),
            count(line.count),
            of(line.found, line.count) if line.count else "–",
            percent(line.recall, 0) if line.count else "–",
            of(line.found, line.called) if line.called else "never predicted",
            percent(line.precision, 0) if line.called else "–",
        )
        for line in found.quality.classes
    ]


def _components(found: Findings, weights: bool) -> Table:
    reduced = found.reduction
    values = None if reduced is None else reduced.weights if weights else reduced.correlations
    if reduced is None or values is None or not reduced.total:
        return _NOTHING
    order = np.argsort(-np.abs(reduced.correlations).max(axis=1), kind="stable")[:_MOST_COLUMNS]
    form = "+.3g" if weights else "+.2f"
    return ("", *(f"component {c + 1}" for c in range(values.shape[1]))), [
        (reduced.columns[j], *(format(v, form) for v in values[j])) for j in order
    ]


def _thresholds(found: Findings) -> Table:
    return ("from probability", "predicted", "found", "recall", "false alarms", "precision"), [
        (
            percent(line.at, 0),
            count(line.called),
            of(line.found, line.count),
            percent(line.found / line.count, 0) if line.count else "–",
            count(line.false_alarms),
            percent(line.found / line.called, 0) if line.called else "–",
        )
        for line in found.errors.thresholds
    ]


def _worst(found: Findings) -> tuple[str, Sequence[str], Sequence[Sequence[str]]]:
    """Title, head and rows of the table of rows that the model handles worst."""
    cells = found.errors.worst_cells
    lead: list[tuple[str, ...]]
    if found.density is not None:
        title, head = "The most unusual rows", ["log density"]
        lead = [(f"{value:.4g}",) for _, value in found.density.lowest]
    elif found.reduction is not None:
        title, head = "The rows that are recovered worst", ["distance"]
        lead = [(f"{value:.3g}",) for _, value in found.reduction.worst]
    else:
        classify = found.task == "classify"
        title = "The most confident wrong predictions" if classify else "The largest differences"
        head = [f"true {found.target}", "predicted", "probability" if classify else "off by"]
        lead = [(row.truth, row.predicted, row.how) for row in found.errors.worst]
    assert cells is not None
    rows = [(name, *start, *line) for name, start, line in zip(cells.names, lead, cells.cells)]
    return title, ("row", *head, *cells.columns), rows


def _kept(found: Findings) -> Table:
    kept = found.vectors
    if kept is None:
        return _NOTHING
    density, regress = found.task == "density", found.task == "regress"
    effect = {"reduce": "of", "regress": "effect"}.get(found.task, "votes")
    columns = [
        ("row", lambda v: "" if kept.moved else v.name),
        (found.target, lambda v: v.target),
        ("stands for", lambda v: v.meaning) if density else ("coefficient", lambda v: signed(v.coefficient)),
        (effect, lambda v: "" if density else v.meaning),
        ("nearest rows", lambda v: count(v.nearest)),
        (f"mean {found.target}" if regress else "mostly", lambda v: v.nearby),
    ]
    shown = [(name, [get(v) for v in kept.vectors]) for name, get in columns]
    shown = [(name, values) for name, values in shown if any(values)]
    rows = [(*(values[m] for _, values in shown), *v.cells) for m, v in enumerate(kept.vectors)]
    return (*(name for name, _ in shown), *kept.columns), rows


def _examples(found: Findings) -> Table:
    if not found.examples:
        return _NOTHING
    sure = any(example.sure for example in found.examples)
    most = max(len(example.similar) for example in found.examples)
    head = ("row", f"true {found.target}", "predicted", *["probability"] * sure, *["most similar"] * most)
    return head, [
        (
            example.name,
            example.truth,
            example.predicted,
            *[example.sure] * sure,
            *(
                f"row {like.name} ({percent(like.similarity, 0)})" + (f": {like.meaning}" if like.meaning else "")
                for like in example.similar
            ),
        )
        for example in found.examples
    ]


def _costs(found: Findings) -> Table:
    machines, classify = found.usage.machines, found.task == "classify"
    judged = any(m.error is not None for m in machines)
    head = ("", "vectors", "bytes", "µs per row", *["wrong" if classify else "off on average"] * judged)
    rows = []
    for m in machines:
        error = "–" if m.error is None else percent(m.error) if classify else number(m.error)
        rows.append((m.name, count(m.vectors), count(m.nbytes), number(m.microseconds, 2), *[error] * judged))
    return head, rows
