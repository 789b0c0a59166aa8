"""Columns of a table that a model uses, as they were learned: numbers, categories, dates, and how cells are dates.

Each turns cells into features and back, and has remarks on unusual cells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import numpy as np

from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.reporting import formatting
from fewkern.tables.cells import (
    factorized,
    numbers,
    only_marks,
    preferred_spellings,
    same_category,
    spelling_key,
    texts,
)
from fewkern.tables.reading import listed

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
PARTS: dict[str, tuple[float | None, float]]
PARTS = {"day": (None, 0.0), "season": (_YEAR_DAYS, 0.0), "week": (7.0, -3.0), "hour": (1.0, 0.0)}


@dataclass(frozen=True)
class Encoded:
    """Features of the cells of a column, or of the rows of a table."""

    values: Array
    """``(n, number of features)``; missing values are replaced."""
    missing: Array
    """Cells without a usable value: ``(n,)``, or ``(n, number of columns)`` of a table."""
    remarks: tuple[str, ...]
    """Notes on unusual cells."""

    @property
    def gaps(self) -> Array:
        """Rows of a table with a missing cell."""
        return np.asarray(self.missing.any(axis=1))


def bad_cells(name: str, column: Any, bad: Array, what: str) -> str:
    """A sentence that counts cells of the wrong kind and shows some of them."""
    shown = ", ".join(sorted({repr(formatting.text(cell, 40)) for cell in column[bad]})[:3])
    count, filled = int(bad.sum()), int(column.notna().sum())
    verb = f"is not a {what}" if count == 1 else f"are not {what}s"
    return f"column {name!r}: {count:,} of {filled:,} cells {verb} ({shown})"


def _check_range(column: NumberColumn | DateColumn) -> None:
    if not np.all(np.isfinite([column.median, column.low, column.high])):
        raise ValueError(f"{type(column).__name__}: median and range must be finite")


def _remarks(column: NumberColumn | DateColumn, cells: Any, values: Array, bad: Array, room: float) -> tuple[str, ...]:
    """Remarks on an empty column, bad cells, and values more than ``room`` outside the range of the training cells."""
    dates, name = isinstance(column, DateColumn), f"column {column.name!r}"
    low, median, high = (text_of_day(v) if dates else f"{v:g}" for v in (column.low, column.median, column.high))
    if len(values) > 1 and np.isnan(values).all():
        return (f"{name} is empty here: every row gets {'' if dates else 'the median '}{median}",)
    remarks = []
    if bad.any():
        remarks.append(bad_cells(column.name, cells, bad, "date" if dates else "number") + ", taken as missing")
    far = int(np.sum((values < column.low - room) | (values > column.high + room)))
    if far:
        lie = f"{far:,} of {len(values):,} {'dates' if dates else 'rows'} {'lies' if far == 1 else 'lie'}"
        remarks.append(f"{name}: {lie} far outside the range of the fitted rows ({low} to {high})")
    return tuple(remarks)


@storable(check=_check_range)
@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers; a missing one is replaced by the median."""

    name: str
    median: float
    low: float
    high: float
    """The range of the training cells."""
    form: Literal["number", "whole", "flag"] = "number"
    comma: bool = False
    """Texts have a decimal comma."""

    @classmethod
    def learn(cls, name: str, column: Any, comma: bool, flag: bool) -> NumberColumn:
        """Learn from training cells, of which at least one is a number."""
        known = numbers(column, comma).values
        known = known[~np.isnan(known)]
        form: Any = "flag" if flag else "whole" if np.all(known % 1 == 0) else "number"
        return cls(name, float(np.median(known)), float(known.min()), float(known.max()), form, comma)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.name,)

    def encode(self, column: Any) -> Encoded:
        """Features of new cells; raises a ValueError if the column holds text only."""
        found = numbers(column, self.comma)
        missing, bad = np.isnan(found.values), found.bad
        if missing.all() and not only_marks(column[bad]):
            raise ValueError(f"column {self.name!r} was numeric when the model was fitted, but now holds text.")
        remarks = _remarks(self, column, found.values, bad, max(self.high - self.low, abs(self.high), 1e-300))
        return Encoded(np.where(missing, self.median, found.values)[:, None], missing, remarks)

    def cells(self, values: Array) -> list[Any]:
        """Cells whose features are ``values``; a number that is not whole stays one."""
        column = values[:, 0]
        if self.form == "flag" and np.all((column == 0) | (column == 1)):
            return [bool(value) for value in column]
        whole = self.form != "number" and np.all(column % 1 == 0)
        return [int(value) if whole else float(value) for value in column]


def _check_levels(column: CategoryColumn) -> None:
    if not column.levels or len({*column.levels, *column.spellings}) < len(column.levels) + len(column.spellings):
        raise ValueError("CategoryColumn: levels must be different, and at least one")


@storable(check=_check_levels)
@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories, one 0/1 feature each; a missing or unknown one is all zeros."""

    name: str
    levels: tuple[str, ...]
    merge: bool = False
    """Whether other spellings of a category are the category."""
    spellings: tuple[str, ...] = ()
    """Other spellings that were seen."""

    @classmethod
    def learn(cls, name: str, column: Any, merge: bool = False) -> CategoryColumn:
        """Learn from training cells."""
        words = [word for word in texts(column) if word is not None]
        other = preferred_spellings(words) if merge else {}
        return cls(name, tuple(sorted(set(words) - set(other))), merge, tuple(sorted(other)))

    def places(self, words: Any) -> list[int]:
        """The code of the level of every text, -1 for an unknown one."""
        place = {level: k for k, level in reversed(list(enumerate(self.levels)))}
        alike = {same_category(level): k for level, k in place.items()} | place
        found = [alike.get(word, alike.get(same_category(word), -1)) for word in words]
        if self.merge and -1 in found:
            key = spelling_key(self.levels)
            keys = {key(level): k for level, k in place.items()}
            found = [keys.get(key(word), -1) if k < 0 else k for word, k in zip(words, found)]
        return found

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def encode(self, column: Any) -> Encoded:
        """Features of new cells."""
        places, different = factorized(texts(column))
        codes = dict(zip(different, self.places(different)))
        code = np.array([*codes.values(), -2], dtype=int)[places]  # a missing cell has the place -1
        values = (code[:, None] == np.arange(len(self.levels))[None, :]).astype(float)
        remarks = []
        if len(code) > 1 and np.all(code == -2):
            remarks.append(f"column {self.name!r} is empty here: every row counts as no category")
        unknown = sorted(word for word, k in codes.items() if k == -1)
        if unknown:
            count = int(np.sum(code == -1))
            rows = f"{count:,} of {len(code):,} rows {'has' if count == 1 else 'have'}"
            what = f"a category that the model does not know ({listed(unknown, 3)}), taken as no category"
            remarks.append(f"column {self.name!r}: {rows} {what}")
        return Encoded(values, code < 0, tuple(remarks))

    def cells(self, values: Array) -> list[Any]:
        """Cells whose features are nearest to ``values``; None where no category is nearer than none."""
        best = np.argmax(values, axis=1) if values.shape[1] else np.zeros(len(values), dtype=int)
        return [self.levels[k] if row[k] >= 0.5 else None for k, row in zip(best, values)]


def find_format(column: Any) -> str | None:
    """The way in which nearly all texts of a column are dates, or None.

    Examples
    --------
    >>> import pandas as pd
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
    """Whether the dates can also be read with day and month swapped."""
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
    """The parts of dates that vary: day, hour, season (two years or more), weekday (four weeks or more)."""
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


def _check_parts(column: DateColumn) -> None:
    if not column.parts or not set(column.parts) <= set(PARTS):
        raise ValueError(f"DateColumn: parts must be among {', '.join(PARTS)}")
    if column.form not in FORMATS:
        raise ValueError("DateColumn: form must be a format of dates that fewkern looks for")
    _check_range(column)


@storable(check=_check_parts)
@dataclass(frozen=True)
class DateColumn:
    """A column of dates: the day, and the places in year, week and day where these vary."""

    name: str
    form: str
    """How texts are dates: a format of ``strptime``, or "ISO8601"."""
    parts: tuple[str, ...]
    median: float
    low: float
    high: float
    """The range of the training cells, in days since 1970-01-01."""

    @classmethod
    def learn(cls, name: str, column: Any, form: str, parts: tuple[str, ...] | None = None) -> DateColumn:
        """Learn from training cells; ``parts`` are those that vary enough if not given."""
        values = days(column, form)
        known = values[np.isfinite(values)]
        found = parts_of(values) if parts is None else parts
        return cls(name, form, found, float(np.median(known)), float(known.min()), float(known.max()))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(
            f"{self.name} ({part}{side})"
            for part in self.parts
            for side in (("",) if PARTS[part][0] is None else (" sin", " cos"))
        )

    def encode(self, column: Any) -> Encoded:
        """Features of new cells."""
        values = days(column, self.form)
        missing = np.isnan(values)
        bad = missing & column.notna().to_numpy()
        if bad.any() and bad.sum() == column.notna().sum():
            raise ValueError(
                f"column {self.name!r} held dates ({self.form}) when the model was fitted, but now holds "
                f"{str(column[bad].iloc[0])!r}."
            )
        remarks = _remarks(self, column, values, bad, max(self.high - self.low, 1.0))
        return Encoded(self.split(np.where(missing, self.median, values)), missing, remarks)

    def split(self, values: Array) -> Array:
        """Features of days since 1970-01-01."""
        return np.concatenate([part_values(values, part) for part in self.parts], axis=1)

    def cells(self, values: Array) -> list[Any]:
        """The dates of the first feature, as texts; only the day is looked at where there is one."""
        if self.parts[0] != "day":
            return [None] * len(values)
        exact = "hour" in self.parts
        return [text_of_day(value if exact else np.rint(value)) for value in values[:, 0]]


Column: TypeAlias = NumberColumn | CategoryColumn | DateColumn
