"""Cells of one column: which are missing, how texts become numbers and categories, and which mean the same.

The same functions read a column when a model is fitted and when it predicts, whatever the file made of the cells:
``1``, ``1.0`` and the text ``"1"`` are the same category and the same number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.progress import missing_package

# What people write where a number is missing; pandas already knows "", "NA", "NaN", "null", "None", "n/a".
_MARKS = frozenset({"?", "-", "--", "–", ".", "*", "na", "n/k", "n.a.", "k.a.", "unknown", "missing", "none", "nil"})
_MARKS |= {"#div/0!", "#value!", "#ref!", "#name?", "#num!", "#n/v", "inf", "+inf", "-inf", "infinity", "-infinity"}
_WHOLE = re.compile(r"[-+]?\d+\.0*")
_FLAGS = {"true": 1.0, "false": 0.0}
# Texts that say yes or no, where all texts of a column do.
_TRUTH = dict.fromkeys(("1", "y", "yes", "t", "true", "on", "j", "ja", "oui", "si", "sí"), "yes")
_TRUTH |= dict.fromkeys(("0", "n", "no", "f", "false", "off", "nein", "non"), "no")


def _number_pattern(comma: bool) -> re.Pattern[str]:
    """A number with groups of three digits, a sign or parentheses, and a unit before or after it."""
    point, group = (",", ".") if comma else (r"\.", ",")
    unit = r"(?:[€$£¥₹%]|eur|usd|chf|gbp|jpy)?"
    groups = rf"\d{{1,3}}(?P<group>[{group}'’ \u00a0\u202f])\d{{3}}(?:(?P=group)\d{{3}})*"
    digits = rf"(?P<digits>(?:{groups}|\d+)?(?:{point}\d*)?(?:e[-+]?\d+)?)"
    return re.compile(rf"(?P<open>\()?\s*(?P<sign>[-+−])?\s*{unit}\s*(?P<minus>[-−])?{digits}\s*{unit}\s*\)?")


_PATTERNS = {comma: _number_pattern(comma) for comma in (False, True)}


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column."""

    values: Array
    """NaN where a cell is missing or is not a number."""
    bad: Array
    """Cells that hold something other than a number."""
    loose: Array
    """Texts that are more than a plain number: with a unit, groups of digits, a decimal comma."""


def pandas() -> Any:
    """The package pandas, or an error that says how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise missing_package("a table", "pandas") from error
    return pandas


def is_mark(text: str) -> bool:
    """Whether a text marks a missing value, as ``?`` does."""
    return text.strip().lower() in _MARKS


def only_marks(cells: Iterable[Any]) -> bool:
    """Whether all cells mark missing values."""
    return all(is_mark(str(cell)) for cell in cells)


def mostly_numbers(found: Numbers, column: Any) -> bool:
    """Whether the filled cells are numbers, but for a tenth of them, or but for marks in up to half of them."""
    known, bad = int(np.sum(~np.isnan(found.values))), int(found.bad.sum())
    return known > 0 and (bad <= 0.1 * (known + bad) or (bad <= known and only_marks(column[found.bad])))


def _loose_number(text: str, comma: bool) -> float:
    """The number in a text such as ``1,234.50 €``, ``12.3%``, ``(200)`` or ``true``; NaN if there is none.

    A percentage stays what is written: ``12.3%`` is 12.3.
    """
    lowered = text.strip().lower()
    if lowered in _FLAGS:
        return _FLAGS[lowered]
    found = _PATTERNS[comma].fullmatch(lowered)
    digits = found["digits"] if found else ""
    if found is None or not any(c.isdigit() for c in digits) or (found["sign"] and found["minus"]):
        return np.nan
    if found["group"]:
        digits = digits.replace(found["group"], "")
    value = _plain_number(digits.replace(",", "."))
    if np.isinf(value):
        return np.nan
    negative = bool(found["open"]) or found["minus"] is not None or found["sign"] in ("-", "−")
    return -value if negative else value


def numbers(column: Any, comma: bool = False) -> Numbers:
    """The numbers of a pandas column of any type; ``comma``: texts have a decimal comma.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.tables.cells import numbers
    >>> found = numbers(pd.Series(["1", "1,234.50 €", None, "n/k", "true"]))
    >>> found.values.tolist(), found.bad.tolist()
    ([1.0, 1234.5, nan, nan, 1.0], [False, False, False, True, False])
    >>> numbers(pd.Series(["1.234,5", "3,25"]), comma=True).values.tolist()
    [1234.5, 3.25]
    """
    import pandas as pd

    kind = getattr(column.dtype, "kind", "O")
    none = np.zeros(len(column), dtype=bool)
    if kind in "iufb":
        values = column.to_numpy(dtype=float, na_value=np.nan)
        endless = np.isinf(values)
        return Numbers(np.where(endless, np.nan, values), endless, none)
    if kind == "m":
        return Numbers(np.asarray(column.dt.total_seconds(), dtype=float) / 86400, none, none)
    filled = column.notna().to_numpy(copy=True)
    if kind in "Mc":
        return Numbers(np.full(len(column), np.nan), filled, none)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    values = np.full(len(column), np.nan) if comma else _plain_numbers(column)
    left = np.flatnonzero(filled & np.isnan(values))
    if len(left):
        cells = [str(cell) for cell in column.iloc[left]]
        known = {cell: _loose_number(cell, comma) for cell in set(cells)}
        values[left] = [known[cell] for cell in cells]
        blank = left[[not cell.strip() or cell.strip().lower() == "nan" for cell in cells]]
        filled[blank] = False
        none[left] = [not np.isnan(known[cell]) and cell.strip().lower() not in _FLAGS for cell in cells]
    return Numbers(values, filled & np.isnan(values), none)


def _plain_numbers(column: Any) -> Array:
    """Cells that are numbers, or texts without anything else; NaN for others, and for what no float can hold."""
    import pandas as pd

    try:
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    except (OverflowError, TypeError, ValueError):  # whole numbers beyond 1e308, cells of all kinds
        values = np.array([_plain_number(cell) for cell in column], dtype=float)
    return np.where(np.isinf(values), np.nan, values)


def _plain_number(cell: Any) -> float:
    try:
        return float(cell)
    except (OverflowError, TypeError, ValueError):
        return np.nan


def numbers_as_written(column: Any) -> tuple[Numbers, bool]:
    """The numbers of a column and whether they have decimal commas: whichever reads more of its cells."""
    point = numbers(column)
    if not point.bad.any():
        return point, False
    comma = numbers(column, comma=True)
    return (comma, True) if comma.bad.sum() < point.bad.sum() else (point, False)


def texts(column: Any) -> Array:
    """The cells of a pandas column as texts, None where one is missing.

    A whole number is written without a point, however it is stored: a missing cell elsewhere in the column makes
    floating-point numbers of all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.tables.cells import texts
    >>> texts(pd.Series([1.0, None, 2.5])).tolist(), texts(pd.Series([True, False])).tolist()
    (['1', None, '2.5'], ['True', 'False'])
    """
    if holds_text(column):  # few different texts, each many times
        places, different = factorized(column)
        return np.array([*map(_text, different), None], dtype=object)[places]
    cells = zip(column.astype(object), column.isna())
    return np.array([None if missing else _text(cell) for cell, missing in cells], dtype=object)


def _text(cell: Any) -> str | None:
    cell = int(cell) if isinstance(cell, float) and cell.is_integer() else cell
    return str(cell).strip() or None


def factorized(cells: Any) -> tuple[Array, Array]:
    """The code of every cell (-1: missing), and the distinct values, as object array."""
    import pandas as pd

    places, different = pd.factorize(cells)
    return places, np.asarray(different, dtype=object)


def holds_text(column: Any) -> bool:
    """Whether all filled cells are texts: then equal ones are the same."""
    import pandas as pd

    if isinstance(column.dtype, pd.StringDtype):
        return True
    return bool(column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "string")


def same_category(text: str) -> str:
    """The common form of two spellings of a category: ``1.0`` and ``1`` are one.

    Examples
    --------
    >>> from fewkern.tables.cells import same_category
    >>> same_category("1.0"), same_category("1.5"), same_category("01")
    ('1', '1.5', '01')
    """
    return text.split(".")[0] if _WHOLE.fullmatch(text) else text


def nested(column: Any) -> str | None:
    """The kind of cells that are not scalars: ``lists``, ``records`` or ``arrays``; None for scalars."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") != "O" or isinstance(column.dtype, pd.StringDtype):
        return None
    for cell in column.dropna().head(50):
        for kinds, name in (((list, tuple, set), "lists"), (dict, "records"), (np.ndarray, "arrays")):
            if isinstance(cell, kinds):
                return name
    return None


def has_leading_zeros(column: Any) -> bool:
    """Whether a text of the column begins with a zero before another digit, as codes do and numbers do not."""
    if getattr(column.dtype, "kind", "O") in "iufbmM":
        return False
    return any(len(cell) > 1 and cell[0] == "0" and cell[1].isdigit() for cell in map(str, column.dropna()))


def _plain(text: str) -> str:
    """Without case, outer punctuation, and differences of spaces, hyphens and underscores."""
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split()).rstrip(" .:;")


def spelling_key(words: Iterable[str]) -> Callable[[str], str]:
    """A function that gives texts of the same meaning the same key, for a column with these texts.

    Examples
    --------
    >>> from fewkern.tables.cells import spelling_key
    >>> [spelling_key(["Y", "yes", "No"])(text) for text in ("Y", "yes", "TRUE", "n")]
    ['yes', 'yes', 'yes', 'no']
    >>> [spelling_key(["Y", "one year"])(text) for text in ("Y", "One  Year")]
    ['y', 'one year']
    """
    if all(_plain(word) in _TRUTH for word in words):
        return lambda text: _TRUTH.get(_plain(text), _plain(text))
    return _plain


def preferred_spellings(words: Any) -> dict[str, str]:
    """The most frequent spelling of every text that has several; of equally frequent ones the first."""
    counts = Counter(word for word in words if word is not None)
    key = spelling_key(counts)
    best: dict[str, str] = {}
    for word, _ in counts.most_common():
        best.setdefault(key(word), word)
    return {word: best[key(word)] for word in counts if best[key(word)] != word}


def note_on_spellings(who: str, names: dict[str, str], merge: bool) -> str | None:
    """A note on the texts of a column that have several spellings; ``names`` are :func:`preferred_spellings`."""
    if not names:
        return None
    word = next(iter(names.values()))
    others = [repr(other) for other, best in names.items() if best == word][:3]
    more = f" (and {len(set(names.values())) - 1:,} more)" if len(set(names.values())) > 1 else ""
    if merge:
        return f"{who}: {', '.join(others)} {'are' if len(others) > 1 else 'is'} taken as {word!r}{more}"
    alike = ", ".join([repr(word), *others])
    return f"{who}: {alike} look alike and are kept apart{more}; merge_spellings (--merge-spellings) joins them"
