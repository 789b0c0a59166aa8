"""Cells as numbers, texts and dates."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from fewkern.tables.cells import nested, numbers, same_category, texts
from fewkern.tables.columns import ISO, _far, days, find_format, is_ambiguous, part_values, parts_of, text_of_day

NUMBERS = {
    "12": 12, " -1.5e3 ": -1500, ".5": 0.5, "1,234.50 €": 1234.5, "$1,200": 1200, "-$5": -5, "USD 7.5": 7.5,
    "20.20 €": 20.2, "12.3%": 12.3, "(200)": -200, "−3": -3, "1'234'567": 1234567, "1 234.5": 1234.5, "1 234": 1234,
    "True": 1, "false": 0,
}  # fmt: skip
WITH_COMMAS = {"1.234,50 €": 1234.5, "3,25": 3.25, "1.234": 1234, "7": 7}


def test_texts_that_are_numbers():
    assert numbers(pd.Series(list(NUMBERS))).values.tolist() == list(NUMBERS.values())
    assert numbers(pd.Series(list(WITH_COMMAS)), comma=True).values.tolist() == list(WITH_COMMAS.values())


def test_texts_that_are_no_numbers():
    others = ["n/k", "?", "1,23", "1,2345", "12 34", "1.2.3", "€", "12a", "2020-01-01", "1-2", "--5", "a1"]
    found = numbers(pd.Series([*others, "1"]))
    assert found.bad.tolist() == [True] * len(others) + [False]
    assert np.isnan(found.values[:-1]).all()


@pytest.mark.parametrize(
    "column",
    [
        [1, 2], pd.array([1, None], dtype="Int64"), pd.array([True, None], dtype="boolean"),
        [decimal.Decimal("1.0"), None], [1, "2"], pd.Categorical(["1", "2"]), pd.to_timedelta(["1 day", None]),
        ["1", " ", None, "nan"],
    ],
)  # fmt: skip
def test_numbers_of_columns_of_all_types(column):
    found = numbers(pd.Series(column))
    assert found.values[0] == 1
    assert not found.bad.any()


def test_cells_that_are_no_numbers():
    for cells in ([10**400, 1], ["1e400", "1"], [np.inf, 1.0], ["1" * 400, "1"], ["$1e999", "1"]):
        found = numbers(pd.Series(cells, dtype=None if isinstance(cells[0], float) else object))
        assert np.isnan(found.values[0])
        assert found.values[1] == 1
        assert found.bad.tolist() == [True, False]
    assert numbers(pd.Series([1 + 2j, 3])).bad.tolist() == [True, True]
    assert numbers(pd.Series(pd.to_datetime(["2020-01-01", None]))).bad.tolist() == [True, False]
    mixed = pd.Series([1, "2", 3.5, None, b"x", datetime.date(2020, 1, 1), [1]], dtype=object)
    np.testing.assert_array_equal(numbers(mixed).values, [1, 2, 3.5, *[np.nan] * 4])


@pytest.mark.parametrize(
    ("cells", "kind", "expected"),
    [
        ([1, 2], None, ["1", "2"]),
        ([1.0, np.nan, 2.5], None, ["1", None, "2.5"]),
        ([" a ", "", None, pd.NA, " a", "a"], object, ["a", None, None, None, "a", "a"]),
        ([" a", "a", None, "", "1.0"] * 2, "str", ["a", "a", None, None, "1.0"] * 2),
        ([True, None], "boolean", ["True", None]),
        ([True, 1, 1.0, "1", None], object, ["True", "1", "1", "1", None]),  # equal, and not the same text
        (["\ud800", "b"], object, ["\ud800", "b"]),
    ],
)
def test_texts_of_cells(cells, kind, expected):
    assert texts(pd.Series(cells, dtype=kind)).tolist() == expected


def test_spellings_of_a_whole_number():
    assert [same_category(text) for text in ("1.0", "2.", "1.5", "01.0", "a.0")] == ["1", "2", "1.5", "01", "a.0"]


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["2020-01-31", "2021-12-01"], ISO),
        (["2020-01-31T10:00:00Z", "2021-12-01 11:30"], ISO),
        (["31.01.2020", "1.12.2021"], "%d.%m.%Y"),
        (["01/02/2020", "12/11/2021"], "%m/%d/%Y"),
        (["01/02/2020", *["30/12/2021"] * 30], "%d/%m/%Y"),
        (["01/02/2020", "31/11/2021", "30/12/2021"], None),  # one bad cell of three is too much
        (["2020/01/31", "2021/12/01"], "%Y/%m/%d"),
        (["31.01.2020 08:15", "01.12.2021 23:59"], "%d.%m.%Y %H:%M"),
        (["5 Jan 2020", "17 Mar 2021"], "%d %b %Y"),
        (["Jan 5, 2020", "Mar 17, 2021"], "%b %d, %Y"),
        (["a", "b"], None),
        (["1.5", "2.5"], None),
        (["2020", "2021"], None),
        (["31.02.2020", "32.01.2020"], None),
    ],
)
def test_formats_of_dates(cells, form):
    assert find_format(pd.Series(cells)) == form


def test_days_since_1970():
    expected = [0.0, 18262.5, np.nan]
    for column, form in (
        (["1970-01-01", "2020-01-01 12:00", None], ISO),
        (["01.01.1970 00:00", "01.01.2020 12:00", "soon"], "%d.%m.%Y %H:%M"),
        (pd.to_datetime(["1970-01-01 00:00", "2020-01-01 12:00", None]), ISO),
        (pd.to_datetime(["1970-01-01 00:00+00:00", "2020-01-01 14:00+02:00", None], utc=True), ISO),
    ):
        np.testing.assert_allclose(days(pd.Series(column), form), expected)
    objects = pd.Series([datetime.date(1970, 1, 2), None], dtype=object)
    np.testing.assert_allclose(days(objects, "%d.%m.%Y"), [1.0, np.nan])


def test_parts_of_dates():
    assert parts_of(np.arange(10.0)) == ("day",)
    assert parts_of(np.arange(60.0)) == ("day", "week")
    assert parts_of(np.arange(0, 2000, 7.0)) == ("day", "season")
    assert parts_of(np.arange(1000.0)) == ("day", "season", "week")
    assert parts_of(np.array([3.25, 3.5, np.nan])) == ("hour",)
    assert parts_of(np.array([3.0, 3.0])) == ()
    # 2020-01-06 was a Monday, and a year has about the same place as the next
    np.testing.assert_allclose(part_values(np.array([18267.0, 18267.9]), "week"), [[0, 1], [0, 1]], atol=1e-9)
    year = part_values(np.array([18262.0, 18262 + 365.2425]), "season")
    np.testing.assert_allclose(year[0], year[1], atol=1e-9)
    assert text_of_day(18267.0) == "2020-01-06"
    assert text_of_day(18267.5) == "2020-01-06T12:00:00"


def test_cells_that_are_not_scalars():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    lists, records = pd.ArrowDtype(pa.list_(pa.int64())), pd.ArrowDtype(pa.struct([("a", pa.int64())]))
    for cells, kind, expected in (
        ([[1]], object, "lists"), ([{}], object, "records"), ([np.eye(2)], object, "arrays"),
        ([None, (1,)], object, "lists"), (["a"], object, None), ([[1, 2]] * 3, lists, "lists"),
        ([{"a": 1}] * 3, records, "records"),
    ):  # fmt: skip
        assert nested(pd.Series(cells, dtype=kind)) == expected


@pytest.mark.parametrize(
    ("cell", "form", "day"),
    [
        ("9999-12-31", ISO, 2932896.0),
        ("1600-03-01T12:00:00Z", ISO, -135079.5),
        ("31.12.9999 06:00", "%d.%m.%Y %H:%M", 2932896.25),
        ("2262-01-01 00:00+01:00", ISO, 106651 - 1 / 24),
        ("2261-12-31", ISO, np.nan),
        ("9999-13-31", ISO, np.nan),
        ("someday", "%d.%m.%Y", np.nan),
    ],
)
def test_dates_that_nanoseconds_do_not_reach(cell, form, day):
    """Older versions of pandas have nothing else; the others are theirs."""
    np.testing.assert_allclose(_far(cell, form), day)


def test_dates_of_all_kinds():
    """Beyond the year 2262, where nanoseconds end, with time zones, and as Parquet stores them."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    expected = [0.0, 2932896.0]
    for cells in (["1970-01-01", "9999-12-31"], [datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]):
        np.testing.assert_allclose(days(pd.Series(cells, dtype=object), ISO), expected)
    np.testing.assert_allclose(days(pd.Series(["01.01.1970", "31.12.9999"]), "%d.%m.%Y"), expected)
    near = [datetime.datetime(1970, 1, 1), datetime.datetime(2020, 1, 1, 12), None]
    for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s", tz="Europe/Paris")):
        shift = 0.5 if kind == pa.date32() else 0.0
        found = days(pd.Series(near, dtype=pd.ArrowDtype(pa.timestamp("us"))).astype(pd.ArrowDtype(kind)), ISO)
        hours = 24 * (found - [0, 18262.5 - shift, np.nan])
        assert np.nanmax(np.abs(hours)) <= 2  # Paris is ahead
        assert np.isnan(found[2])
    zones = pd.Series([pd.Timestamp("2020-01-01", tz=zone) for zone in ("UTC", "Asia/Tokyo")], dtype=object)
    np.testing.assert_allclose(days(zones, ISO), [18262.0, 18262.0 - 9 / 24])


def test_an_order_of_day_and_month_that_may_be_the_other():
    assert is_ambiguous(pd.Series(["01/02/2024", "03/04/2024"]), "%m/%d/%Y")
    assert not is_ambiguous(pd.Series(["01/02/2024", "03/14/2024"]), "%m/%d/%Y")
    assert not is_ambiguous(pd.Series(["01.02.2024"]), "%d.%m.%Y")
