"""What columns are."""

import numpy as np
import pandas as pd
import pytest

from fewkern.tables.schema import infer_column, infer_schema

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("age", RNG.integers(18, 80, 50), "number"),
        ("code", ["1", "2", "A"] * 5, "category"),
        ("code", ["1", "2", "3", "4", "5", "6", "7", "8", "9", "A"] * 10, "category"),
        ("answer", ["1", "2", "?"] * 5, "number"),
        ("zip", ["01067", "80331", "20095"] * 4, "category"),
        ("size", [f"{v:.2f}" for v in RNG.normal(size=50)], "number"),
        ("on", ["True", "False"] * 6, "number"),
        ("plan", ["a"] * 12, "constant"),
        ("plan", ["a", None] * 6, "category"),
        ("level", [3, 3, None] * 4, "constant"),
        ("none", [None] * 12, "empty"),
        ("none", ["", " "] * 6, "empty"),
        ("Unnamed: 0", range(12), "index"),
        ("Unnamed: 0", RNG.permutation(12), "index"),
        ("row", range(5, 17), "id"),
        ("customer_id", RNG.permutation(12), "id"),
        ("customerId", RNG.permutation(12), "id"),
        ("serial", range(1000, 1012), "index"),
        ("serial", [*range(11), None], "index"),
        ("year", range(2000, 2012), "number"),
        ("measured", RNG.permutation(12), "number"),
        ("short", [1, 2, 3], "number"),
        ("name", [f"n{i}" for i in range(12)], "names"),
        ("note", [f"n{i // 2}" for i in range(300)], "names"),
        ("kind", [f"n{i % 50}" for i in range(300)], "category"),
        ("day", pd.date_range("2020-01-01", periods=12), "date"),
        ("day", pd.date_range("2020-01-01", periods=12).astype(str), "date"),
        ("same_day", ["2020-01-01"] * 12, "constant"),
    ],
)
def test_kinds(name, cells, kind):
    assert infer_column(name, pd.Series(cells)).kind == kind


SIZES = [f"{v / 7:.3f}" for v in range(100)]


@pytest.mark.parametrize(
    ("cells", "kind", "note"),
    [
        ([*SIZES, "n/k", "?"], "number", "2 of 102 cells are not numbers ('?', 'n/k'), taken as missing"),
        ([*SIZES, *["low"] * 20], "names", "has 101 different texts and was left out"),
        ([*SIZES[:90], *["low"] * 20], "category", None),
        (["1,234.50 €", "3.00 €", "4.00 €"], "number", "texts such as '1,234.50 €' were read as numbers"),
        (["1.234,50", "3,5"], "number", "texts such as '1.234,50' were read as numbers with a decimal comma"),
        (
            [f"{1 + k % 12:02d}/{1 + k % 7:02d}/2024" for k in range(60)],
            "date",
            "holds dates (%m/%d/%Y): elapsed days, weekday; day and month may be swapped: both orders fit, and",
        ),
        (
            [f"called on day {k}, no answer yet" for k in range(30)],
            "names",
            "holds free text and was left out: turn it into numbers first, for example with TfidfVectorizer",
        ),
        ([[k, 1] for k in range(9)], "names", "holds lists and was left out: turn them into columns first"),
    ],
)
def test_what_is_said(cells, kind, note):
    found = infer_column("size", pd.Series(cells))
    assert found.kind == kind
    assert (found.note is None) == (note is None)
    assert note is None or found.note.removeprefix("column 'size'").lstrip(": ").startswith(note)


def frame():
    return pd.DataFrame(
        {
            "nr": range(12),
            "x": RNG.normal(size=12),
            "y": RNG.normal(size=12),
            "word": list("ab") * 6,
            "name": list("abcdefghijkl"),
        }
    )


def test_densities_see_numbers_only():
    found = infer_schema(frame().assign(on=[True, False] * 6), numbers_only=True)
    assert [f.name for f in found.used] == ["x", "y"]
    assert "columns 'word', 'on' are not numeric, as a density needs, and were left out" in found.notes


def test_an_index_is_used_where_there_is_nothing_else():
    assert [f.name for f in infer_schema(pd.DataFrame({"x": range(20)})).used] == ["x"]


def test_many_remarks_are_cut_short():
    wide = pd.DataFrame({f"d{k}": pd.date_range("2020-01-01", periods=12) for k in range(20)})
    assert infer_schema(wide).notes[-1] == "and 12 more columns with such remarks"
    constant = pd.DataFrame({f"c{k}": [1, 1] for k in range(20)} | {"x": [1, 2]})
    assert infer_schema(constant).notes[0].endswith("... (20 in all) are the same in every row and were left out")


def test_spellings_of_a_category():
    cells = pd.Series(["one year", "one year", "one Year", "two-year", "Two Year ", "month"])
    apart = infer_column("contract", cells)
    assert apart.note.startswith("column 'contract': 'one year', 'one Year' look alike and are kept apart (and 1")
    assert len(apart.learn(cells).levels) == 5
    joined = infer_column("contract", cells, merge=True)
    column = joined.learn(cells)
    assert column.levels == ("month", "one year", "two-year")
    assert column.spellings == ("Two Year", "one Year")
    encoded = column.encode(pd.Series(["ONE  YEAR", "Two Year", "week", None]))
    assert encoded.values.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert "a category that the model does not know ('week')" in encoded.remarks[0]


def test_keep_and_drop():
    assert [f.name for f in infer_schema(frame()).used] == ["x", "y", "word"]
    assert [f.name for f in infer_schema(frame(), keep=("nr", "name")).used] == ["nr", "x", "y", "word", "name"]
    assert [f.name for f in infer_schema(frame(), drop=("x",)).used] == ["y", "word"]
    assert "name it in keep to use it" in infer_schema(frame()).notes[0]
