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

from fewkern._version import __version__
from fewkern.arrays.progress import missing_package, printable
from fewkern.io.archive import write_atomically
from fewkern.reporting import formatting
from fewkern.reporting.evaluation import ReportSettings
from fewkern.reporting.figures import draw
from fewkern.reporting.findings import Findings, find
from fewkern.reporting.subject import subject_of

# Height of the page in a notebook, in pixels; the page scrolls inside.
_HEIGHT = 720


@dataclass(frozen=True)
class Report:
    """A page about a model.

    In a notebook it shows itself. Everything on the page is in ``findings``, as numbers, sentences and tables of text.

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
    >>> found.findings.quality.judgement.baseline_name
    'always answering 0'
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
        advice = (self.findings.quality.recommendation,) if self.findings.quality else ()
        return printable("\n".join((*self.findings.headline, *advice)), keep="\n\t")


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

    The page compares the model with simple baselines, and shows what drives it, where it errs, what it keeps, how
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


def _page(findings: Findings, pictures: dict[str, Any], title: str | None, settings: ReportSettings) -> str:
    """The whole document, from the template."""
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
    names = ("cell", "count", "label", "number", "of", "percent", "plural", "text")
    environment.filters |= {name: getattr(formatting, name) for name in names} | {"zip": zip}
    return environment.get_template("report.html").render(
        found=findings, pictures=pictures, title=title, settings=settings,
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"), version=__version__,
        number_columns=_number_columns, percent=formatting.percent, number=formatting.number,
    )  # fmt: skip


def _number_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Columns to set to the right: those whose cells are numbers, counts, shares or ranges."""
    one = r"[<>]?[-−+]?[\d,]*\.?\d+(e[-+]?\d+)?%?"
    shown = re.compile(rf"{one}( (to|of) {one})?|–|never predicted|")
    return [j for j, column in enumerate(zip(*rows)) if all(map(shown.fullmatch, column))]
