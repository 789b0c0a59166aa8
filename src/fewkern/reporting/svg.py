"""Matplotlib figures as SVG inside a page, in the colors of the page."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fewkern.arrays.texts import missing_package, printable
from fewkern.plotting.style import ACCENT, CLASSES, QUIET, SAMPLES

__all__ = ["INK", "LINE", "drawing", "figure", "inline_svg"]

# Colors of text and of thin lines in the figure, and the variables of the page that replace all colors.
INK, LINE = "#101418", "#c9d1d8"
_VARIABLES = {
    INK: "--ink",
    "#000000": "--ink",
    LINE: "--line",
    ACCENT: "--accent",
    QUIET: "--quiet",
    SAMPLES: "--soft",
    **{color: f"--class-{k}" for k, color in enumerate(CLASSES)},
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
}


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of all pictures. Letters that the font of the drawing lacks are no matter: the page has its own."""
    try:
        import matplotlib
    except ImportError as error:
        raise missing_package("report: every figure", "matplotlib") from error
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        # very long names: the picture is then smaller than it should be
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        yield


def figure(width: float = 4.6, height: float = 3.2) -> Any:
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
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\sid="|url\(#|xlink:href="#)', rf"\g<1>{name}-", text).replace("xlink:href", "href")
    # no "<" inside: a text of the picture that looks like a style does not end one
    text = re.sub(r'style="[^"<]*"', _in_page_colors, text)
    width, height = (float(re.search(rf'{side}="([\d.]+)pt"', text)[1]) for side in ("width", "height"))  # type: ignore[index]
    said = html.escape(printable(alt, keep="\n\t"))
    head = f'<svg role="img" aria-label="{said}" viewBox="0 0 {width:g} {height:g}" stroke-linejoin="round"'
    return head + ">" + text[text.index(">") + 1 :], round(width * 4 / 3)


def _in_page_colors(style: re.Match[str]) -> str:
    """One attribute ``style`` of a figure with the font and the colors of the page."""
    text = re.sub(r"font-family:[^;\"]*", "font-family: inherit", style[0])
    for color, variable in _VARIABLES.items():
        text = text.replace(color, f"var({variable}, {color})")
    return text
