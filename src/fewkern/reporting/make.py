"""The report of a model: one page that can be shown, saved and sent."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from fewkern._version import __version__
from fewkern.arrays.texts import missing_package, printable
from fewkern.io.save import write_atomically
from fewkern.reporting import formatting
from fewkern.reporting.figures import Picture, draw
from fewkern.reporting.findings import Findings, find
from fewkern.reporting.formatting import Table, as_table, cell, count, number, of, percent
from fewkern.reporting.holdout import ReportSettings
from fewkern.reporting.subject import subject_of

__all__ = ["Report", "report"]

# Height of the page in a notebook, in pixels; the page scrolls inside.
_HEIGHT = 720


@dataclass(frozen=True)
class Report:
    """A page about a model.

    In a notebook it shows itself. Everything on the page is in ``findings``, as plain numbers and sentences.

    Parameters
    ----------
    html : str
        The whole document. It needs no network and no scripts.
    findings : Findings

    Examples
    --------
    >>> from fewkern import KernelClassifier, ReportSettings, report
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(150)
    >>> model = KernelClassifier(max_vectors=10).fit(X, y)
    >>> found = report(model, X, y, settings=ReportSettings(compare=False))
    >>> found.findings.quality.scores[1].name
    'always 0'
    """

    html: str = field(repr=False)
    findings: Findings = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to ``path``; an old file stays until the new one is complete."""
        write_atomically(path, lambda handle: handle.write(self.html.encode()))
        return Path(path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither its style nor the notebook's disturbs the other."""
        return (
            f'<iframe sandbox srcdoc="{escape(self.html)}" title="fewkern report" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 1px solid #8884; border-radius: 6px"></iframe>'
        )

    def __str__(self) -> str:
        return printable("\n".join(self.findings.headline), keep="\n\t")


def report(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    settings: ReportSettings | None = None,
) -> Report:
    """Evaluate a fitted model, and describe it on one HTML page.

    The page shows how good the model is beside simple baselines, what drives it, where it errs, what it keeps, how
    certain its predictions are, and how to use it. It needs no network, and can be sent to a colleague.

    Parameters
    ----------
    model : fitted estimator
        Any estimator of fewkern, a Pipeline that ends in one, or a TableModel.
    X : array or data frame of shape (n_samples, n_features)
        The rows that the model was fitted to, or new ones. Further columns of a data frame are used to name rows. For a
        TableModel, ``X`` holds the target too.
    y : array of shape (n_samples,) or None, default None
        The targets. Classifiers and regressions need them; of a reduction they color the picture.
    path : str, path or None, default None
        Where to save the page.
    title : str or None, default None
    settings : ReportSettings or None, default None

    Returns
    -------
    Report

    Notes
    -----
    If the rows are those of the fit, errors are measured with a copy of the model that is fitted to four fifths of them
    (a TableModel has its own record). Importances are computed from at most 1,000 rows, so that a report takes about as
    long as the fit.

    Examples
    --------
    >>> from fewkern import KernelRegressor, ReportSettings, report
    >>> from fewkern.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1)
    >>> model = KernelRegressor(max_vectors=10).fit(X, y)
    >>> page = report(model, X, y, settings=ReportSettings(compare=False))
    >>> "How good is it?" in page.html
    True
    """
    settings = ReportSettings() if settings is None else settings
    subject = subject_of(model, X, y)
    findings = find(subject, settings)
    made = Report(_page(findings, draw(subject, findings), title, settings), findings)
    if path is not None:
        made.save(path)
    return made


def _page(
    findings: Findings, pictures: dict[str, tuple[Picture, ...]], title: str | None, settings: ReportSettings
) -> str:
    """The whole document, by the template beside this module."""
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
    names = ("cell", "count", "label", "number", "percent", "plural", "text")
    environment.filters |= {name: getattr(formatting, name) for name in names} | {"zip": zip}
    return environment.get_template("report.html").render(
        found=findings,
        pictures=pictures,
        title=title,
        settings=settings,
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        version=__version__,
        number_columns=_number_columns,
        **_tables(findings),
    )


def _number_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns to set to the right: those whose cells are numbers, counts, shares or ranges."""
    one = r"[<>]?[-−+]?[\d,]*\.?\d+(e[-+]?\d+)?%?"
    shown = re.compile(rf"{one}( (to|of) {one})?|–|never predicted|")
    return [j for j, column in enumerate(zip(*rows)) if all(map(shown.fullmatch, column))]


def _tables(found: Findings) -> dict[str, Any]:
    """What the template shows as tables, as text."""
    wrong, lines = found.errors, found.quality.classes if found.quality else ()
    matrix = wrong.confusion if wrong else None
    # a larger confusion matrix cannot be read
    most = 0 if matrix is None or len(matrix.labels) <= 3 else 5 if len(matrix.labels) <= 30 else 15
    return {
        "baselines": _baselines(found),
        "classes": as_table(
            [
                (found.target, [cell(line.label) for line in lines]),
                ("rows", [count(line.count) for line in lines]),
                ("found", [of(line.found, line.count) if line.count else "–" for line in lines]),
                ("recall", [_share(line.recall) for line in lines]),
                (
                    "right when predicted",
                    [of(line.found, line.called) if line.called else "never predicted" for line in lines],
                ),
                ("precision", [_share(line.precision) for line in lines]),
            ]
        ),
        "components": _components(found),
        "pairs": [(cell(a), cell(b), count(n)) for a, b, n in matrix.pairs[:most]] if matrix else (),
        "thresholds": [
            (
                percent(line.label, 0),
                count(line.called),
                of(line.found, line.count),
                _share(line.recall),
                count(line.called - line.found),
                _share(line.precision),
            )
            for line in (wrong.thresholds if wrong else ())
        ],
        "set_sizes": [(count(k), count(n)) for k, n in enumerate(found.uncertainty.set_sizes) if n][:10],
        "costs": _costs(found),
    }


def _share(value: float) -> str:
    return "–" if np.isnan(value) else percent(value, 0)


def _baselines(found: Findings) -> Table:
    if found.quality is None:
        return (), ()
    scores, form = found.quality.scores, percent if found.task == "classify" else number
    columns = [
        ("", [s.name for s in scores]),
        ("wrong" if found.task == "classify" else "off on average (MAE)", [form(s.value) for s in scores]),
        ("95% CI", [f"{form(s.low)} to {form(s.high)}" for s in scores]),
    ]
    if found.task == "regress":
        columns.append(("RMSE", [number(s.rmse or 0.0) for s in scores]))
        columns.append(("R²", [f"{(s.r2 or 0.0) + 0.0:.3f}" for s in scores]))
    words = {"better": "clearly better", "worse": "clearly worse"}
    verdicts = ["", *(words.get(verdict, verdict) for verdict in found.quality.verdicts)]
    return as_table([*columns, ("this model is", verdicts)])


def _components(found: Findings) -> dict[str, Table]:
    """Correlations and weights of the columns of a reduction, by title."""
    reduced = found.reduction
    if reduced is None or not reduced.total:
        return {}
    most = np.argsort(-np.abs(reduced.correlations).max(axis=1), kind="stable")[:20]
    made = {}
    for title, values, form in (
        ("Correlation of columns and components", reduced.correlations, "+.2f"),
        ("Weights of the columns (a linear map keeps no row)", reduced.weights, "+.3g"),
    ):
        if values is not None:
            head = ("", *(f"component {c + 1}" for c in range(values.shape[1])))
            made[title] = head, [(reduced.columns[j], *(format(v, form) for v in values[j])) for j in most]
    return made


def _costs(found: Findings) -> Table:
    machines, classify = found.usage.machines, found.task == "classify"
    columns = [
        ("", [m.name for m in machines]),
        ("vectors", [count(m.vectors) for m in machines]),
        ("bytes", [count(m.nbytes) for m in machines]),
        ("µs per row", [number(m.microseconds, 2) for m in machines]),
    ]
    if machines[0].error is not None:
        form = percent if classify else number
        errors = ["–" if m.error is None else form(m.error) for m in machines]
        columns.append(("wrong" if classify else "off on average", errors))
    return as_table(columns)
