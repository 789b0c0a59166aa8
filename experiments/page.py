"""The results pages: published figure, ours, difference, verdict. Generated from the results, never typed.

One page per paper and a summary, each as HTML that stands alone and as the Markdown that the documentation includes.
"""

from __future__ import annotations

import html
import math
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.claims import CLAIMS, Claim, Evidence, Results
from experiments.picture import picture
from experiments.plan import Experiment, experiments
from experiments.verdict import Entry, Verdict, count, entries, quantity
from fewkern.io.archive import write_atomically

__all__ = ["write_pages"]

DOCS = Path(__file__).parent.parent / "docs"
PAPERS = Path(__file__).parent / "papers.toml"

_MARKS = {
    Verdict.REPRODUCED: "=",
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.UNCERTAIN: "?",
    Verdict.INCOMPARABLE: "·",
}
_CLASSES = {
    Verdict.REPRODUCED: "same",
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.UNCERTAIN: "unsure",
    Verdict.INCOMPARABLE: "other",
}
_STYLE = """
.results table { border-collapse: collapse; font-size: .9em; margin: .8rem 0; display: table; }
.results th, .results td { text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: top; border: 0; }
.results th { font-weight: 600; border-bottom: 1px solid #8886; vertical-align: bottom; }
.results td.n, .results th.n { text-align: right; font-variant-numeric: tabular-nums; }
.results td.n, .results td:first-child { white-space: nowrap; } .results th.n { max-width: 9rem; }
.results tr.first td { border-top: 1px solid #8883; }
.results .scroll { overflow-x: auto; }
.results .same { color: #2b8a4b; } .results .better { color: #2f6fd0; } .results .worse { color: #c2452d; }
.results .unsure { color: #b3862b; } .results .other { color: #888; } .results small, .results .muted { color: #888; }
.results img { max-width: 100%; background: white; margin: .5rem 0; }
.results ol.remarks { list-style: lower-alpha; font-size: .9em; max-width: 60rem; }
.results .bars { display: grid; grid-template-columns: max-content 1fr; gap: .3rem .8rem; max-width: 44rem; }
.results .bars > div { display: flex; } .results .bars i { height: 1.1rem; background: currentColor; }
.results p { max-width: 60rem; } .results summary { cursor: pointer; }
"""
_PAGE_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1.2rem; color: #1c2733;
  background: white; }
h2 { margin-top: 2.6rem; } a { color: #2f6fd0; }
"""
_COLUMNS = (
    "The first five columns count figures of the tables (better and worse are ours), the next three count claims; "
    "<b>old</b> counts results that are older than the code."
)
_RULE = (
    "A figure is <b>reproduced</b> if it differs from the published one by no more than two standard errors of the "
    "difference (of the means over the runs; the paper's from its printed deviation) or by no more than a practical "
    "margin. Otherwise ours is <b>better</b> or <b>worse</b>. We <b>cannot tell</b> where two standard errors exceed a "
    "quarter of the figure, for then agreement says little. It is <b>not comparable</b> where the published figure "
    "measures something else; the table says what. Splits of one set overlap, so that its standard errors are too "
    "small rather than too large."
)
_PROTOCOLS = (
    "<b>paper</b>: settings found as in the paper, which may look at test data. <b>honest</b>: settings from training "
    "data only, but for what a remark says; they may be shared by all splits, whose training and test parts overlap. "
    "<b>strict</b>: all settings of a split come from its training part alone; only the grids were settled before. "
    "<b>both</b>: there is no difference."
)


@dataclass(frozen=True)
class _Table:
    """An experiment with its figures."""

    experiment: Experiment
    entries: list[Entry]

    @property
    def anchor(self) -> str:
        return f"{self.experiment.paper}-{self.experiment.name}"


@dataclass(frozen=True)
class _Paper:
    """A paper with its tables, and what became of its claims."""

    name: str
    title: str
    short: str
    reference: str
    summary: str
    """In plain words: which claims hold, which do not, and why."""
    tables: list[_Table]
    claims: list[tuple[Claim, Evidence | None]]


def write_pages() -> list[Path]:
    """Write the summary and a page per paper into ``docs/results``; returns the paths of the HTML pages."""
    papers = _papers()
    folder = DOCS / "results"
    folder.mkdir(exist_ok=True)
    names = [paper.name for paper in papers]
    pages = [("index", "The papers' tables and figures", _summary(papers), names)]
    pages += [(paper.name, paper.title, _paper(paper), []) for paper in papers]
    for name, title, body, below in pages:
        _write(folder / f"{name}.html", _standalone(title, body))
        _write(folder / f"{name}.md", _for_sphinx(title, body, below))
    return [folder / f"{name}.html" for name, *_ in pages]


def _papers() -> list[_Paper]:
    known = tomllib.loads(PAPERS.read_text())
    found: dict[str, list[_Table]] = {}
    for experiment in experiments():
        found.setdefault(experiment.paper, []).append(_Table(experiment, entries(experiment)))
    order = sorted(found, key=lambda name: list(known).index(name) if name in known else len(known))
    papers = []
    for name in order:
        words = {"title": name, "short": name, "reference": "", "summary": "", **known.get(name, {})}
        results = Results(name)
        claims = [(claim, claim.evidence(results)) for claim in CLAIMS if claim.paper == name]
        papers.append(_Paper(name=name, tables=found[name], claims=claims, **words))
    return papers


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda handle: handle.write(text.encode()))


def _standalone(title: str, body: str) -> str:
    home = '<p><a href="index.html">All papers</a></p>'
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(title)}</title><style>{_PAGE_STYLE}{_STYLE}</style>"
        f'<h1>{html.escape(title)}</h1><div class="results">{body}{home}</div></html>'
    )


def _for_sphinx(title: str, body: str, below: list[str]) -> str:
    """The same as Markdown: a title, the page as it is, and the pages below it."""
    # a line of backquotes longer than any in the text ends the block
    text = f'# {title}\n\n`````{{raw}} html\n<style>{_STYLE}</style><div class="results">{body}</div>\n`````\n'
    if below:
        text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(below) + "\n```\n"
    return text


# ------------------------------------------------------------------------------------------------------------ summary


def _summary(papers: list[_Paper]) -> str:
    rows = []
    for paper in papers:
        totals = _totals(t for t in paper.tables if t.experiment.kind == "table")
        claims = Counter(evidence.kind for _, evidence in paper.claims if evidence is not None)
        old = sum(e.old for t in paper.tables for e in t.entries)
        rows.append(
            [
                f'<a href="{paper.name}.html">{html.escape(paper.short)}</a>',
                *[str(totals[verdict]) for verdict in Verdict],
                *[str(claims[verdict]) for verdict in _CLAIM_VERDICTS],
                str(old),
            ]
        )
    head = ["paper", *[v.removeprefix("ours ") for v in Verdict], *_CLAIM_VERDICTS, "old"]
    parts = [
        (
            "<p>Every table and figure of the five papers beside ours, one page per paper, made by "
            "<code>python -m experiments page</code> from <code>experiments/results</code>.</p>"
        ),
        "<h2>In short</h2>",
        _bars(papers),
        _html_table(head, rows, numbers=range(1, len(head))),
        f"<p>{_COLUMNS}</p><p>{_RULE}</p><p>{_PROTOCOLS}</p><h2>The papers</h2>",
    ]
    for paper in papers:
        parts.append(f'<h3><a href="{paper.name}.html">{html.escape(paper.title)}</a></h3>')
        parts.append(f"<p>{_prose(paper.summary)}</p>")
    parts += ["<h2>By protocol and quantity</h2>", _counts(papers)]
    return "".join(parts)


def _bars(papers: list[_Paper]) -> str:
    """A bar per paper: the shares of the verdicts on the figures of its tables."""
    parts = []
    for paper in papers:
        totals = _totals(t for t in paper.tables if t.experiment.kind == "table")
        shares = [
            f'<i class="{_CLASSES[v]}" style="flex:{totals[v]}" title="{totals[v]} {v}"></i>'
            for v in Verdict
            if totals[v]
        ]
        parts.append(f"<span>{html.escape(paper.short)}</span><div>{''.join(shares)}</div>")
    legend = ", ".join(f'<span class="{_CLASSES[v]}">■</span> {v}' for v in Verdict)
    return f'<div class="bars">{"".join(parts)}</div><p>{legend}</p>'


_CLAIM_VERDICTS = {"holds": "same", "in part": "better", "does not hold": "worse"}


def _totals(tables: Iterable[_Table]) -> Counter[Verdict]:
    return Counter(e.verdict for t in tables for e in t.entries if e.verdict is not None)


def _counts(papers: list[_Paper]) -> str:
    """Comparisons of the tables (figures repeat them) by paper, protocol and quantity."""
    rows = []
    for paper in papers:
        for kind, suffix in (("table", ""), ("reference", ", beyond the paper")):
            found = count([e for t in paper.tables if t.experiment.kind == kind for e in t.entries])
            for i, (protocol, title) in enumerate(dict.fromkeys((p, q) for p, q, _ in found)):
                numbers = [found[protocol, title, verdict] for verdict in Verdict]
                name = html.escape(paper.short) + suffix if i == 0 else ""
                rows.append([name, protocol, title, str(sum(numbers)), *map(str, numbers)])
    head = ["paper", "protocol", "quantity", "figures", *Verdict]
    return _html_table(head, rows, numbers=range(3, len(head)), ruled=True)


# ---------------------------------------------------------------------------------------------------------- one paper


def _paper(paper: _Paper) -> str:
    parts = [f"<p class=muted>{html.escape(paper.reference)}</p><p>{_prose(paper.summary)}</p>"]
    parts += ["<h2>What the paper claims</h2>", _claims(paper)]
    parts += ["<h2>Figures beside the published ones</h2>", _counts([paper])]
    margins = sorted({quantity(e.name).describe() for t in paper.tables for e in t.entries if e.verdict is not None})
    if margins:
        parts.append(
            f"<p>{_RULE} Margins, where the table does not say otherwise: {html.escape('; '.join(margins))}.</p>"
            f"<p>{_PROTOCOLS}</p>"
        )
    links = [f'<li><a href="#{t.anchor}">{html.escape(t.experiment.title)}</a></li>' for t in paper.tables]
    parts.append(f"<ul>{''.join(links)}</ul>")
    parts += [_experiment(table, paper) for table in paper.tables]
    return "".join(parts)


def _claims(paper: _Paper) -> str:
    rows = []
    for claim, evidence in paper.claims:
        verdict, style = (
            ("not run yet", "other") if evidence is None else (evidence.verdict, _CLAIM_VERDICTS[evidence.kind])
        )
        rows.append(
            [
                html.escape(claim.where),
                html.escape(claim.text),
                f'<span class="{style}">{verdict}</span>',
                "" if evidence is None else html.escape(_sentence(evidence.text)),
            ]
        )
    return _html_table(["where", "claim", "verdict", "because"], rows) if rows else "<p>None checked.</p>"


def _said(evidence: Evidence) -> str:
    """The verdict in words that stand alone."""
    return f"holds in {evidence.verdict}" if evidence.kind == "in part" else evidence.verdict


def _experiment(table: _Table, paper: _Paper) -> str:
    experiment = table.experiment
    parts = [f'<h2 id="{table.anchor}">{html.escape(experiment.title)}</h2>']
    for claim, evidence in paper.claims:
        if evidence is not None and claim.is_about(experiment.name):
            parts.append(f"<p>“{html.escape(claim.text)}” <b>{_sentence(_said(evidence))}</b> ")
            parts.append(html.escape(_sentence(evidence.text)) + "</p>")
    if experiment.notes:
        parts.append(f"<p>{_prose(experiment.notes)}</p>")
    image = picture(experiment)
    if image:
        parts.append(f'<img alt="{html.escape(experiment.title)}" src="data:image/png;base64,{image}">')
    remarks = _Remarks(table.entries)
    compared = [e for e in table.entries if e.verdict is not None]
    if compared:
        parts.append(_matrices(table, remarks) if experiment.layout == "matrix" else _list(compared, remarks))
    if len(table.entries) > len(compared) or experiment.layout == "matrix":
        parts.append(_folded(table, remarks))
    if not table.entries and not image:
        parts.append("<p>Not run yet.</p>")
    parts.append(remarks.as_list())
    if any(e.old for e in table.entries):
        parts.append(
            "<p class=muted>† Older than the code that computes it; <code>python -m experiments "
            f"{experiment.id}</code> runs it again.</p>"
        )
    return "".join(parts)


class _Remarks:
    """Reasons and caveats of a table, each said once and named by a letter."""

    def __init__(self, found: list[Entry]) -> None:
        texts = dict.fromkeys(text for e in found for text in (*e.remarks, *e.caveats))
        self._letters = {text: chr(ord("a") + i) for i, text in enumerate(texts)}

    def letters(self, texts: tuple[str, ...]) -> str:
        return f" <small>({', '.join(self._letters[text] for text in texts)})</small>" if texts else ""

    def as_list(self) -> str:
        items = "".join(f"<li>{html.escape(_sentence(text))}</li>" for text in self._letters)
        return f"<ol class=remarks>{items}</ol>" if items else ""


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _list(found: list[Entry], remarks: _Remarks) -> str:
    rows, before = [], None
    for e in found:
        label = [html.escape(e.row.label), e.row.protocol + remarks.letters(e.caveats)]
        # label and protocol only where they change
        shown = label if label != before else ["", ""]
        before = label
        difference = "" if e.difference is None else _difference(e.difference, e.error)
        verdict = ""
        if e.verdict is not None:
            verdict = f'<span class="{_CLASSES[e.verdict]}">{_MARKS[e.verdict]} {e.verdict}</span>'
            verdict += remarks.letters(e.remarks)
        old = "†" if e.old else ""
        rows.append(
            [*shown, html.escape(e.name.replace("_", " ")), _number(e.published, e.published_deviation),
             _number(e.mean, e.deviation) + old, str(e.runs), difference, verdict]
        )  # fmt: skip
    head = ["row", "protocol", "figure", "published", "ours", "runs", "difference ± its error", "verdict"]
    return _html_table(head, rows, numbers=range(3, 7), ruled=True)


def _folded(table: _Table, remarks: _Remarks) -> str:
    text = _list(table.entries, remarks)
    return f"<details><summary>All figures, with deviations and standard errors</summary>{text}</details>"


def _matrices(table: _Table, remarks: _Remarks) -> str:
    """One matrix per quantity and protocol: sets down, methods across; ours, and the published figure in brackets."""
    parts = []
    compared = [e for e in table.entries if e.verdict is not None]
    for name, protocol in dict.fromkeys((e.name, e.row.protocol) for e in compared):
        cells = {(e.row.group, e.row.method): e for e in compared if (e.name, e.row.protocol) == (name, protocol)}
        groups, methods = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
        quoted = {c: by for c, by in table.experiment.quoted.items() if any(name in entry for entry in by.values())}
        rows = []
        for group in groups:
            row = [html.escape(group)]
            row += [_number(by.get(group, {}).get(name)) for by in quoted.values()]
            row += [_cell(cells[group, m]) if (group, m) in cells else "" for m in methods]
            rows.append(row)
        reasons = [
            dict.fromkeys(text for g in groups if (g, m) in cells for text in cells[g, m].remarks) for m in methods
        ]
        head = ["set", *[f"{c} (quoted)" for c in quoted]]
        head += [html.escape(m) + remarks.letters(tuple(texts)) for m, texts in zip(methods, reasons)]
        caveats = remarks.letters(tuple(dict.fromkeys(text for e in cells.values() for text in e.caveats)))
        title = f"<b>{html.escape(quantity(name).title)}, protocol {protocol}, {_runs(cells.values())}</b>{caveats}"
        parts.append(f"<p>{title}: ours, and the published figure in brackets</p>")
        parts.append(_html_table(head, rows, numbers=range(1, len(head))))
    return "".join(parts)


def _runs(found: Iterable[Entry]) -> str:
    """Over how many runs these figures are means."""
    counts = sorted({e.runs for e in found})
    most = f"{counts[-1]} run{'s' if counts[-1] > 1 else ''}"
    return most if len(counts) == 1 else f"{counts[0]} to {most}"


def _cell(e: Entry) -> str:
    if e.verdict is None:
        raise ValueError("a cell stands beside a published figure.")
    old = "†" if e.old else ""
    return (
        f'<span class="{_CLASSES[e.verdict]}" title="{e.verdict}">{e.mean:.1f}{old} {_MARKS[e.verdict]}</span> '
        f"<small>({_number(e.published)})</small>"
    )


# ---------------------------------------------------------------------------------------------------------------- text


def _number(value: float | None, deviation: float | None = None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:.4g}" + (f" ± {deviation:.2g}" if deviation else "")


def _difference(value: float, error: float) -> str:
    # less than rounding
    return ("0" if abs(value) < 1e-9 else f"{value:+.3g}") + (f" ± {error:.2g}" if error else "")


def _prose(text: str) -> str:
    return html.escape(text.strip()).replace("\n\n", "</p><p>")


def _html_table(head: list[str], rows: list[list[str]], numbers: Iterable[int] = (), ruled: bool = False) -> str:
    """Cells are HTML. ``ruled`` draws a line above a row with a first cell."""
    right = set(numbers)

    def cells(tag: str, row: list[str]) -> str:
        return "".join(
            f"<{tag} class=n>{c}</{tag}>" if i in right else f"<{tag}>{c}</{tag}>" for i, c in enumerate(row)
        )

    body = "".join(f"<tr{' class=first' if ruled and row[0] else ''}>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table></div>"
