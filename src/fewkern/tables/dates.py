"""Dates of one column, and the numbers that say where in time, season, week and day they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fewkern.arrays.namespace import Array

__all__ = ["FORMATS", "ISO", "PARTS", "days", "find_format", "is_ambiguous", "parts_of", "part_values", "text_of_day"]

ISO = "ISO8601"
_ISO_TEXT = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[-+]\d{2}:?\d{2})?)?")
# What every format has: without it no format need be tried, which takes long for tables of many texts.
_TWO_NUMBERS = re.compile(r"\d\D+\d")
# Month first before day first: where both fit all cells, American dates are more common in such tables.
_DAYS = ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d.%m.%y", "%m/%d/%y"]
_DAYS += ["%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"]
FORMATS = (ISO, *(day + time for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S")))
# A column is one of dates if at least this share of its filled cells are.
_SHARE = 0.95
_YEAR_DAYS = 365.2425
# part -> length of the cycle in days (None: no cycle), and its origin in days after 1970-01-01, a Thursday
PARTS: dict[str, tuple[float | None, float]] = {
    "day": (None, 0.0),
    "season": (_YEAR_DAYS, 0.0),
    "week": (7.0, -3.0),
    "hour": (1.0, 0.0),
}


def find_format(column: Any) -> str | None:
    """The way in which nearly all texts of a column are dates, or None.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewkern.tables.dates import find_format
    >>> find_format(pd.Series(["2020-01-31", "2020-02-01"])), find_format(pd.Series(["31.1.2020", "1.2.2020"]))
    ('ISO8601', '%d.%m.%Y')
    >>> find_format(pd.Series(["12", "34"])) is None
    True
    """
    import pandas as pd

    cells = pd.Series([str(cell).strip() for cell in column.dropna()], dtype=object)
    first = cells.head(50)  # before the whole column
    if not len(first) or not np.mean([_TWO_NUMBERS.search(cell) is not None for cell in first]) >= _SHARE:
        return None
    if np.mean([_ISO_TEXT.fullmatch(cell) is not None for cell in first]) >= _SHARE:
        return ISO if _share(cells, ISO) >= _SHARE else None
    shares = {form: _share(cells, form) for form in FORMATS[1:] if _share(first, form) >= _SHARE}
    best = max(shares, key=shares.__getitem__, default=None)  # the first of equals
    return best if best is not None and shares[best] >= _SHARE else None


def _share(cells: Any, form: str) -> float:
    return float(np.isfinite(_parsed(cells, form)).mean())


def _parsed(cells: Any, form: str) -> Array:
    import pandas as pd

    found = _since_1970(pd.to_datetime(cells, format=form, errors="coerce", utc=True))
    if pd.__version__ < "3":  # it has nanoseconds only
        left = np.flatnonzero(np.isnan(found))
        far = {cell: _far(cell, form) for cell in set(cells.iloc[left])}
        found[left] = [far[cell] for cell in cells.iloc[left]]
    return found


def _far(cell: str, form: str) -> float:
    """Days since 1970-01-01 of a date before 1678 or after 2261; NaN for any other text."""
    try:
        moment = datetime.fromisoformat(cell) if form == ISO else datetime.strptime(cell, form)
    except ValueError:
        return np.nan
    if 1678 <= moment.year <= 2261:
        return np.nan
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400


def _since_1970(column: Any) -> Array:
    """Days, with fractions; microseconds reach the year 9999, where nanoseconds end in 2262."""
    import pandas as pd

    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        moments = pa.array(column.array).cast(pa.timestamp("us")).to_numpy(zero_copy_only=False)
    else:
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        moments = column.to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 86400e6)


def is_ambiguous(column: Any, form: str) -> bool:
    """Whether day and month could as well be the other way round."""
    if "/" not in form or "%d" not in form or "%m" not in form:
        return False
    swapped = form.replace("%d", "\0").replace("%m", "%d").replace("\0", "%m")
    cells = column.dropna().astype(str).str.strip()
    return bool(_share(cells, swapped) >= _share(cells, form))


def days(column: Any, form: str) -> Array:
    """Days since 1970-01-01 of the dates of a pandas column; NaN where a cell is missing or is no date."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") == "M":
        return _since_1970(column)
    filled = column.notna().to_numpy()
    values = np.full(len(column), np.nan)
    if filled.any():
        cells = pd.Series([str(cell).strip() for cell in column[filled]], dtype=object)
        values[filled] = _parsed(cells, form)
        failed = np.isnan(values) & filled
        if form != ISO and failed.any():  # typed elsewhere: a date object is written the ISO way
            rest = pd.Series([str(cell).strip() for cell in column[failed]], dtype=object)
            values[failed] = _parsed(rest, ISO)
    return values


def parts_of(values: Array) -> tuple[str, ...]:
    """What the dates can tell apart: day and hour where they vary, season in two years, weekday in four weeks."""
    known = values[np.isfinite(values)]
    span = float(np.ptp(known)) if len(known) else 0.0
    found = ["day"] if np.ptp(np.floor(known)) > 0 else []
    if span >= 2 * _YEAR_DAYS:
        found.append("season")
    if span >= 28 and len(np.unique(np.floor(known) % 7)) == 7:
        found.append("week")
    if np.ptp(known % 1.0) > 0:
        found.append("hour")
    return tuple(found)


def part_values(values: Array, part: str) -> Array:
    """One column with the days, or two with the place on the circle of a cycle, shape ``(n, 1)`` or ``(n, 2)``."""
    cycle, origin = PARTS[part]
    if cycle is None:
        return values[:, None]
    whole = np.floor(values) if part == "week" else values
    angle = 2 * np.pi * (whole - origin) / cycle
    return np.column_stack([np.sin(angle), np.cos(angle)])


def text_of_day(value: float) -> str:
    """A date as text, with the time where there is one."""
    value = min(max(value, -3.65e8), 3.65e8)  # NumPy writes dates up to a million years from 1970
    moment = np.datetime64(0, "s") + np.timedelta64(round(value * 86400), "s")
    return str(moment).removesuffix("T00:00:00")
