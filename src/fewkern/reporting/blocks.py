"""Small pieces of HTML; everything that is not a piece itself is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from fewkern.reporting.mistakes import Confusion
from fewkern.reporting.pictures import Picture
from fewkern.reporting.words import cell

__all__ = ["code", "figures", "heat_map", "heading", "paragraphs", "section", "subheading", "table", "tiles"]

# A cell darker than this gets light letters.
_STRONG = 0.55
# Tables with more columns are set in small print on paper.
_WIDE = 10


def section(anchor: str, title: str, *blocks: str) -> str:
    """A part of the page; nothing where it has no content."""
    body = "\n".join(block for block in blocks if block)
    return f'<section id="{anchor}">\n{heading(title)}\n{body}\n</section>' if body else ""


def heading(title: str) -> str:
    """The title of a part."""
    return f"<h2>{escape(title)}</h2>"


def subheading(title: str, *blocks: str) -> str:
    """Blocks below a smaller title; nothing where there are none."""
    body = "\n".join(block for block in blocks if block)
    return f"<h3>{escape(title)}</h3>\n{body}" if body else ""


def paragraphs(sentences: Iterable[str], kind: str = "") -> str:
    """Sentences as one paragraph."""
    text = " ".join(escape(sentence) for sentence in sentences)
    opening = f'<p class="{kind}">' if kind else "<p>"
    return f"{opening}{text}</p>" if text else ""


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """Large figures with a few words each."""
    items = "".join(f"<li><strong>{escape(value)}</strong><span>{escape(words)}</span></li>" for value, words in pairs)
    return f'<ul class="tiles">{items}</ul>' if items else ""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Iterable[int] = (), caption: str = "") -> str:
    """A table that scrolls sideways where it is too wide; columns at the positions ``numbers`` are set to the right."""
    right = set(numbers)

    def line(tag: str, cells: Sequence[Any]) -> str:
        return "".join(
            f"<{tag}{_class(str(value), tag, j in right)}>{escape(str(value))}</{tag}>" for j, value in enumerate(cells)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    if not body:
        return ""
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = f"<thead><tr>{line('th', head)}</tr></thead>"
    opening = '<table class="wide">' if len(head) > _WIDE else "<table>"
    return f'<div class="scroll" tabindex="0">{opening}{said}{top}<tbody>{body}</tbody></table></div>'


def _class(value: str, tag: str, right: bool) -> str:
    if right:
        return ' class="n"'
    return ' class="short"' if tag == "td" and len(value) <= 24 else ""


def heat_map(found: Confusion) -> str:
    """A confusion matrix whose cells are the darker, the larger their share of the row; dots for zeros."""
    names = [escape(cell(name)) for name in found.labels]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    lines = []
    for i, name in enumerate(names):
        total = max(int(found.counts[i].sum()), 1)
        cells = "".join(_heat(int(value), int(value) / total) for value in found.counts[i])
        lines.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    return (
        '<p class="soft">Lines: the true class. Columns: what the model says.</p>'
        f'<div class="scroll" tabindex="0"><table class="heat"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _heat(value: int, share: float) -> str:
    if not value:
        return "<td>·</td>"
    strong = " strong" if share > _STRONG else ""
    return f'<td class="heat{strong}" style="--share: {0.08 + 0.87 * share:.2f}">{value:,}</td>'


def figures(pictures: Iterable[Picture]) -> str:
    """Pictures side by side, as many as there is room for."""
    items = "".join(
        f'<figure style="width: {p.width}px">{p.svg}<figcaption>{escape(p.caption)}</figcaption></figure>'
        for p in pictures
    )
    return f'<div class="figures">{items}</div>' if items else ""


def code(title: str, lines: Iterable[str]) -> str:
    """Lines to copy."""
    return f"<div>{subheading(title, '<pre>' + escape(chr(10).join(lines)) + '</pre>')}</div>"
