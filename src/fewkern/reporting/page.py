"""The page: findings and pictures as one self-contained HTML document."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from fewkern.reporting.blocks import code, figures, heat_map, paragraphs, section, subheading, table, tiles
from fewkern.reporting.findings import Findings
from fewkern.reporting.mistakes import Threshold
from fewkern.reporting.pictures import Picture
from fewkern.reporting.quality import ClassQuality, RegressionQuality
from fewkern.reporting.style import CSS
from fewkern.reporting.words import cell, count, number, of, percent, plural, text

__all__ = ["page"]

Pictures = dict[str, tuple[Picture, ...]]
# A larger matrix of confusions cannot be read; the most frequent pairs then stand for it.
_MOST_CLASSES, _MOST_PAIRS = 30, 15
_PARTS = (
    ("good", "How good is it?"),
    ("drivers", "What drives it?"),
    ("errors", "Where does it err?"),
    ("kept", "What does it keep?"),
    ("sure", "How sure is it?"),
    ("use", "How do I use it?"),
    ("remarks", "Remarks"),
)


def page(findings: Findings, pictures: Pictures, title: str, about: tuple[tuple[str, str], ...]) -> str:
    """The whole document; ``about`` are names and values of the footer."""
    blocks = {
        "good": _good(findings),
        "drivers": _drivers(findings, pictures),
        "errors": _errors(findings, pictures),
        "kept": _kept(findings, pictures),
        "sure": _sure(findings, pictures),
        "use": _use(findings),
        "remarks": _remarks(findings),
    }
    titles = dict(_PARTS) | _other_titles(findings.task)
    parts = [section(anchor, titles[anchor], blocks[anchor]) for anchor, _ in _PARTS if blocks[anchor]]
    links = " ".join(f'<a href="#{a}">{escape(titles[a])}</a>' for a, _ in _PARTS if blocks[a])
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in about)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
        f'<header>\n<h1>{escape(title)}</h1>\n<p class="soft">{escape(_subtitle(findings))}</p>\n'
        f"<nav>{links}</nav>\n</header>\n"
        "<main>\n" + "\n".join(parts) + f"\n</main>\n<footer><dl>{facts}</dl></footer>\n</body>\n</html>\n"
    )


def _other_titles(task: str) -> dict[str, str]:
    if task == "density":
        return {"drivers": "What does it look like?", "errors": "Which rows are unusual?"}
    if task == "reduce":
        return {"drivers": "What are the components?", "errors": "Which rows does it lose?"}
    return {}


def _subtitle(found: Findings) -> str:
    what = {
        "classify": f"predicts {found.target}, one of {plural(len(found.classes), 'class', 'classes')}",
        "regress": f"predicts {found.target}, a number",
        "reduce": "describes rows by a few components",
        "density": "says how common a row is",
    }[found.task]
    table = f"{plural(found.columns, 'column')}; looked at with {plural(found.rows, 'row')}"
    return f"A {found.model} that {what}, from {table}."


def _good(found: Findings) -> str:
    first, *rest = found.headline
    return "\n".join(
        (paragraphs([first], "lead"), paragraphs(rest), tiles(_figures(found)), _comparison(found), _per_class(found))
    )


def _figures(found: Findings) -> list[tuple[str, str]]:
    """The numbers that a reader takes away."""
    shown: list[tuple[str, str]] = []
    quality = found.quality
    if isinstance(quality, ClassQuality):
        shown.append((percent(1 - quality.scores[0].value), "right"))
        shown += [(percent(1 - score.value), score.name) for score in quality.scores[1:]]
    elif isinstance(quality, RegressionQuality):
        shown.append((number(quality.scores[0].value), "off on average"))
        shown += [(number(score.value), score.name) for score in quality.scores[1:]]
    elif found.reduction is not None:
        shown += [(percent(max(share, 0.0), 0), f"recovered, {name}") for name, share in found.reduction.carried]
    elif found.density is not None:
        shown.append(
            (number(float(np.exp(min(found.density.gain[0], 500.0)))), "times as probable as under one bell curve")
        )
    if found.kept is not None:
        shown.append((count(found.kept.total), "vectors kept" if found.kept.moved else "rows kept"))
    machine = found.usage.machines[0]
    shown.append((f"{machine.nbytes:,} B", "the model"))
    shown.append((f"{number(machine.microseconds, 2)} µs", "per row"))
    return shown


def _comparison(found: Findings) -> str:
    quality = found.quality
    if isinstance(quality, ClassQuality):
        rows = [
            (s.name, percent(s.value), f"{percent(s.low)} to {percent(s.high)}", v)
            for s, v in zip(quality.scores, ("", *(_VERDICTS[v] for v in quality.verdicts)))
        ]
        blocks = table(("", "wrong", "with 95% confidence", "this model is"), rows, (1, 2))
        if quality.auc is not None:
            auc = f"in {percent(quality.auc, 0)} of all cases (AUC {quality.auc:.2f})"
            blocks += paragraphs([f"Of two rows, one of each class, it ranks the right one higher {auc}."])
        return subheading("Beside simple rules", blocks)
    if isinstance(quality, RegressionQuality):
        lines = zip(quality.scores, quality.rmse, quality.r2, ("", *(_VERDICTS[v] for v in quality.verdicts)))
        rows_ = [
            (
                s.name,
                number(s.value),
                f"{number(s.low)} to {number(s.high)}",
                number(rmse),
                f"{round(r2, 3) + 0.0:.3f}",
                verdict,
            )
            for s, rmse, r2, verdict in lines
        ]
        head = ("", "off on average", "with 95% confidence", "root mean square", "R²", "this model is")
        return subheading("Beside simple rules", table(head, rows_, (1, 2, 3, 4)))
    return ""


_VERDICTS = {"better": "clearly better", "unclear": "perhaps better", "worse": "no better"}


def _per_class(found: Findings) -> str:
    quality = found.quality
    if not isinstance(quality, ClassQuality):
        return ""
    rows = [
        (
            cell(line.label),
            count(line.count),
            f"{of(line.found, line.count)}" if line.count else "–",
            percent(line.recall, 0) if line.count else "–",
            f"{of(line.found, line.called)}" if line.called else "never said",
            percent(line.precision, 0) if line.called else "–",
        )
        for line in quality.classes
    ]
    head = (found.target, "rows", "found", "share found (recall)", "right when said", "share right (precision)")
    return subheading("Class by class", table(head, rows, range(1, 6)))


def _drivers(found: Findings, pictures: Pictures) -> str:
    if found.drivers is not None:
        left = found.drivers.left_out
        more = [f"{plural(left, 'further column')} with a smaller share in the model were not tried."] if left else []
        if found.drivers.unused:
            more.append(f"Not used: {', '.join(map(text, found.drivers.unused))}.")
        return paragraphs((*found.drivers.sentences, *more)) + figures(pictures["drivers"])
    if found.reduction is not None and found.reduction.total:
        return figures(pictures["shape"]) + _components(found)
    return figures(pictures["shape"])


def _components(found: Findings) -> str:
    reduced = found.reduction
    assert reduced is not None
    k = reduced.correlations.shape[1]
    head = ("", *(f"component {c + 1}" for c in range(k)))
    order = sorted(range(len(reduced.columns)), key=lambda j: -float(abs(reduced.correlations[j]).max()))[:20]
    rows = [(reduced.columns[j], *(f"{v:+.2f}" for v in reduced.correlations[j])) for j in order]
    blocks = subheading("How columns and components go together (correlation)", table(head, rows, range(1, k + 1)))
    if reduced.weights is not None:
        rows = [(reduced.columns[j], *(f"{v:+.3g}" for v in reduced.weights[j])) for j in order]
        blocks += subheading("Weights of the columns (a linear map keeps no row)", table(head, rows, range(1, k + 1)))
    return blocks


def _errors(found: Findings, pictures: Pictures) -> str:
    wrong = found.mistakes
    blocks = []
    if wrong.confusion is not None:
        large = len(wrong.confusion.labels) > _MOST_CLASSES
        pairs = wrong.confusion.pairs[:_MOST_PAIRS]
        blocks.append("" if large else subheading("What is taken for what", heat_map(wrong.confusion)))
        if len(wrong.confusion.labels) > 3:
            rows = [(cell(truth), cell(said), count(times)) for truth, said, times in pairs]
            blocks.append(
                subheading(
                    "The most frequent confusions",
                    table(("is", "taken for", "times"), rows[: 15 if large else 5], (2,)),
                )
            )
    if wrong.residuals is not None:
        blocks.append(paragraphs(wrong.residuals.sentences))
    if wrong.calibration is not None:
        blocks.append(paragraphs([wrong.calibration.sentence]))
    blocks.append(figures(pictures["mistakes"]))
    blocks.append(_thresholds(wrong.thresholds, found))
    blocks.append(_worst(found))
    return "\n".join(filter(None, blocks))


def _thresholds(lines: tuple[Threshold, ...], found: Findings) -> str:
    if not lines or (found.mistakes.calibration is None and found.mistakes.curves is None):
        return ""
    name = found.mistakes.curves.of if found.mistakes.curves is not None else "it"
    rows = [
        (
            percent(line.at, 0),
            count(line.called),
            of(line.found, line.count),
            percent(line.found / line.count, 0) if line.count else "–",
            count(line.false_alarms),
            percent(line.found / line.called, 0) if line.called else "–",
        )
        for line in lines
    ]
    head = ("from probability", "called", "found", "share found", "false alarms", "share right")
    return subheading(
        f"If {name} is called from another probability on",
        table(head, rows, range(6)),
    )


def _worst(found: Findings) -> str:
    listing, wrong = found.mistakes.worst_cells, found.mistakes
    if listing is None or not listing.cells:
        return ""
    lead: list[tuple[str, ...]]
    if found.density is not None:
        lead = [(f"{value:.4g}",) for _, value in found.density.lowest]
        head: tuple[str, ...] = ("row", "log density")
        title = "The most unusual rows"
    elif found.reduction is not None:
        lead = [(f"{value:.3g}",) for _, value in found.reduction.worst]
        head, title = ("row", "distance"), "The rows that are recovered worst"
    else:
        sure = "sure by" if found.task == "classify" else "off by"
        lead = [(w.truth, w.predicted, w.how) for w in wrong.worst]
        title = "The surest wrong answers" if found.task == "classify" else "The largest differences"
        head = ("row", f"true {found.target}", "predicted", sure)
    rows = [(name, *start, *cells) for name, start, cells in zip(listing.names, lead, listing.cells)]
    return subheading(title, table((*head, *listing.columns), rows, _number_columns(rows)))


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + number(abs(value))


def _number_columns(rows: list[Any]) -> list[int]:
    """Columns to set to the right: those whose cells are numbers."""

    def is_number(value: str) -> bool:
        try:
            float(value.replace(",", "").replace("−", "-").rstrip("%"))
        except ValueError:
            return value in ("", "–")
        return True

    return [j for j in range(len(rows[0])) if all(is_number(str(row[j])) for row in rows)]


def _kept(found: Findings, pictures: Pictures) -> str:
    keeps = found.kept
    if keeps is None:
        return paragraphs(["The model is a linear map: it keeps one weight per column and component, and no row."])
    density, reduce = found.task == "density", found.task == "reduce"
    named = any(vector.target for vector in keeps.vectors)
    near = any(vector.nearby for vector in keeps.vectors)
    head = [
        "row" if not keeps.moved else "",
        *([found.target] if named else []),
        "stands for" if density else "coefficient",
        *([] if density else ["of" if reduce else "effect" if found.task == "regress" else "speaks"]),
        "nearest rows",
        *(["mostly" if found.task != "regress" else f"mean {found.target}"] if near else []),
        *keeps.columns,
    ]
    rows = [
        (
            v.name,
            *([v.target] if named else []),
            v.meaning if density else _signed(v.coefficient),
            *([] if density else [v.meaning]),
            count(v.nearest),
            *([v.nearby] if near else []),
            *v.cells,
        )
        for v in keeps.vectors
    ]
    left = keeps.total - len(keeps.vectors)
    more = (
        [f"And {plural(left, 'more vector', 'more')}, with smaller {'weights' if density else 'coefficients'}."]
        if left
        else []
    )
    looked = [f"“Nearest rows” counts which of {plural(keeps.asked, 'row')} are most like the vector."]
    return (
        paragraphs(keeps.sentences)
        + figures(pictures["kept"])
        + table(head, rows, _number_columns(rows))
        + paragraphs([*more, *looked], "soft")
        + _examples(found)
    )


def _examples(found: Findings) -> str:
    if not found.examples:
        return ""
    classify = found.task == "classify"
    most = max(len(example.like) for example in found.examples)
    head = ("row", f"true {found.target}", "predicted", *(["sure by"] if classify else []), *["most like"] * most)
    rows = [
        (
            example.name,
            example.truth,
            example.predicted,
            *([example.sure] if classify else []),
            *(f"row {like.name} ({percent(like.likeness, 0)}): {like.meaning}" for like in example.like),
        )
        for example in found.examples
    ]
    said = "The kept rows that a few rows are most like, how like they are, and what each of them speaks for."
    return subheading("Which kept rows is a row like?", paragraphs([said]) + table(head, rows, (0,)))


def _sure(found: Findings, pictures: Pictures) -> str:
    said = found.trust
    sentences = [part.sentence for part in (said.intervals, said.sets, said.novelty) if part is not None]
    blocks = paragraphs(sentences) + figures(pictures["trust"])
    if said.sets is not None:
        rows = [(count(size), count(n)) for size, n in enumerate(said.sets.sizes) if n]
        blocks += table(("classes in the set", "rows"), rows[:10], (0, 1))
    return blocks + paragraphs(said.absent, "soft")


def _use(found: Findings) -> str:
    classify = found.task == "classify"
    machines = found.usage.machines
    judged = any(m.error is not None for m in machines)
    rows = [
        (
            m.name,
            count(m.vectors),
            f"{m.nbytes:,}",
            number(m.microseconds, 2),
            *([("–" if m.error is None else percent(m.error) if classify else number(m.error))] if judged else []),
        )
        for m in machines
    ]
    head = (
        "",
        "vectors",
        "bytes of numbers",
        "µs per row",
        *(["wrong" if classify else "off on average"] if judged else []),
    )
    recipes = "".join(code(recipe.title, recipe.lines) for recipe in found.usage.recipes)
    return (
        f'<div class="recipes">{recipes}</div>'
        + subheading("Size and speed", table(head, rows, range(1, len(head))))
        + paragraphs(found.usage.notes, "soft")
    )


def _remarks(found: Findings) -> str:
    items = "".join(f"<li>{escape(remark)}</li>" for remark in found.remarks)
    return f"<ul>{items}</ul>" if items else ""
