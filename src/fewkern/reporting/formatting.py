"""Numbers, shares, labels and cells as text for readers."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = [
    "about",
    "cell",
    "count",
    "in_hundred",
    "is_missing",
    "label",
    "number",
    "of",
    "percent",
    "plural",
    "printable",
    "signed",
    "text",
]

# Longer texts in a cell are cut: a report shows rows, not documents.
_LONGEST = 60
# Fractions that everybody can picture.
_FRACTIONS = [Fraction(1, q) for q in (20, 10, 8, 6, 5, 4, 3, 2)]
_FRACTIONS += [Fraction(p, q) for p, q in ((2, 5), (3, 5), (2, 3), (3, 4), (4, 5), (9, 10), (19, 20))]
# Controls but tab and newline, marks that turn the direction of text, and halves of surrogate pairs.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(content: str) -> str:
    """Escape characters that a page or a terminal would act upon: ``ESC`` becomes ``\\x1b``.

    Examples
    --------
    >>> from fewkern.reporting.formatting import printable
    >>> printable(chr(27) + "[2Jname")
    '\\\\x1b[2Jname'
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], content)


def count(n: int) -> str:
    """A whole number with separators: ``1,234``."""
    return f"{int(n):,}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun: ``1 row``, ``1,234 rows``."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def of(part: int, whole: int) -> str:
    """A part of a whole: ``53 of 168``."""
    return f"{count(part)} of {count(whole)}"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent; what is not quite nothing or all is not written as such."""
    if 0 < share < 0.5 * 10 ** -(digits + 2):
        return f"<{10**-digits:g}%"
    if 1 > share > 1 - 0.5 * 10 ** -(digits + 2):
        return f">{100 - 10**-digits:g}%"
    return f"{100 * share:.{digits}f}%"


def in_hundred(share: float) -> str:
    """A share as a count of 100, or of 1,000 or 10,000 where 100 are too coarse: ``75 of 100``."""
    if share in (0.0, 1.0):
        return of(round(100 * share), 100)
    rest = min(share, 1 - share)
    whole = 100 if rest >= 0.02 else 1000 if rest >= 0.002 else 10000
    part = min(max(round(share * whole), 1), whole - 1)
    return of(part, whole)


def about(share: float) -> str:
    """A share as the nearest simple fraction: ``about 1 of 3``."""
    if share <= 0:
        return "none"
    if share >= 1:
        return "all"
    if share < 0.035:
        return f"about 1 of {count(round(1 / share))}"
    if share > 0.965:
        return "nearly all"
    nearest = min(_FRACTIONS, key=lambda f: abs(f - share))
    return "about half" if nearest == Fraction(1, 2) else f"about {nearest.numerator} of {nearest.denominator}"


def number(value: float, digits: int = 3) -> str:
    """A number to ``digits`` significant digits, without an exponent where people use none: ``12,300``."""
    value = float(value)
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("infinite" if value > 0 else "minus infinite")
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-4 or size >= 1e12:
        return f"{value:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(size))
    if decimals <= 0:
        return f"{round(value, decimals):,.0f}"
    rounded = f"{value:,.{decimals}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


def signed(value: float) -> str:
    """A number with its sign: ``+12``, ``−0.5``."""
    return ("−" if value < 0 else "+") + number(abs(value))


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty: None, NaN, NaT, NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA of pandas says neither yes nor no
        return True


def text(value: Any, longest: int = _LONGEST) -> str:
    """A text of a table, escaped, and cut where it is long."""
    content = printable(str(value))
    return content if len(content) <= longest else content[: longest - 1] + "…"


def label(value: Any) -> str:
    """A class as it stands in a sentence: numbers as they are, texts in quotes."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)) or (isinstance(value, (float, np.floating)) and float(value).is_integer()):
        return str(int(value))
    return f"{value:g}" if isinstance(value, (float, np.floating)) else f"'{text(value)}'"


def cell(value: Any) -> str:
    """A cell of a table: whole numbers complete, others to six digits, a dash where nothing is."""
    if is_missing(value):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        value = float(value)
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        return f"{value:.6g}" if not 1e6 <= abs(value) < 1e15 else f"{value:.0f}"
    return cell(float(value)) if _is_long_number(value) else text(value)


def _is_long_number(value: Any) -> bool:
    """Whether a text is a number with more digits than anybody reads, as programs write them to files."""
    return isinstance(value, str) and re.fullmatch(r"-?\d*\.\d{7,}(e[+-]?\d+)?", value) is not None
