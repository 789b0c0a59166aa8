"""Formulas as MathML, which every current browser draws by itself: no script, no font and no network is needed."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

__all__ = ["setup", "to_mathml"]

logger = logging.getLogger(__name__)

# \Big( ... \Big) before an index or a power: only brackets in one row with what they enclose have its height.
_BRACKETS = re.compile(r"(\\([bB]ig)[lr]?[(\[](?:(?!\\\2).)*\\\2[lr]?[)\]])(?=\s*[_^])", re.DOTALL)
# Names of functions that latex2mathml does not know, and commands that it left as they were.
_NAMES, _LEFT_OVER = re.compile(r"\\(arg)(?![A-Za-z])"), re.compile(r">\s*(\\[A-Za-z]+)")
# A prime as a power: the sign is raised already, as a power it would float above its letter.
_PRIME = re.compile(r"<msup>((?:(?!<msup>|</msup>).)*)<mi>&#x02032;</mi></msup>")


def to_mathml(latex: str, display: str) -> str:
    """A formula as one ``math`` element; ``display`` is "inline" or "block"."""
    latex = _NAMES.sub(r"\\operatorname{\1}", latex.strip())
    text: str = convert(_BRACKETS.sub(r"{\1}", latex), display=display)
    unknown = _LEFT_OVER.search(text)
    if unknown:
        raise ValueError(f"latex2mathml does not know {unknown[1]}")
    text = _PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', text)
    # an accent sits close to its letter; latex2mathml marks the hat as one, and forgets the tilde
    text = text.replace('<mo stretchy="false">&#x0007E;</mo></mover>', "<mo>&#x0007E;</mo></mover>")
    return text.replace("<mover><mi>", '<mover accent="true"><mi>')


def _formula(self: Any, node: nodes.Element, display: str) -> str:
    try:
        return to_mathml(node.astext(), display)
    except Exception as error:  # whatever the parser stumbles on, a build with -W must end here
        logger.warning("cannot convert the formula %r: %r", node.astext(), error, location=node)
        return f"<code>{self.encode(node.astext())}</code>"


def inline(self: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    self.body.append(_formula(self, node, "inline"))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own; a wide one scrolls."""
    self.body.append(f'<div class="formula">{_formula(self, node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Make this the renderer of formulas; Sphinx calls it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
