"""Numbers, shares, labels and cells as text for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fewkern.arrays.progress import printable

# A table of a page: its head, and rows of text.
Table = tuple[Sequence[str], Sequence[Sequence[str]]]
# Longer texts in a cell are cut: a report shows rows, not documents.
_LONGEST = 60
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def table_of(columns: Sequence[tuple[str, Sequence[str]]]) -> Table:
    """A table of columns with names."""
    return tuple(name for name, _ in columns), list(zip(*(texts for _, texts in columns)))


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
    """A share in percent: ``13.5%``, below one percent ``0.25%``; NaN is a dash.

    What is not quite nothing or all is not written as such.
    """
    if math.isnan(share):
        return "–"
    digits += bool(digits and 0 < share < 0.00995)
    if 0 < share < 0.5 * 10 ** -(digits + 2):
        return f"<{10**-digits:g}%"
    if 1 > share > 1 - 0.5 * 10 ** -(digits + 2):
        return f">{100 - 10**-digits:g}%"
    return f"{100 * share:.{digits}f}%"


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
    except (TypeError, ValueError):  # pandas' NA is neither true nor false
        return True


def text(value: Any, longest: int = _LONGEST) -> str:
    """A text of a table, escaped, and cut where it is long."""
    content = printable(str(value), keep="\n\t")
    return content if len(content) <= longest else content[: longest - 1] + "…"


def label(value: Any) -> str:
    """A class as it stands in a sentence: numbers as they are, texts in quotes."""
    return cell(value) if isinstance(value, _NUMBERS) else f"'{text(value)}'"


def cell(value: Any) -> str:
    """A cell of a table: whole numbers complete, others to six digits, a dash where nothing is."""
    if is_missing(value):
        return "–"
    if not isinstance(value, _NUMBERS):
        return text(value)
    if not isinstance(value, (float, np.floating)):
        return str(value)
    return f"{value:.0f}" if 1e6 <= abs(float(value)) < 1e15 else f"{value:.6g}"
