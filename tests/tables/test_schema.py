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


def test_a_number_with_a_few_other_cells_is_a_number():
    cells = [f"{v / 7:.3f}" for v in range(100)]
    few = infer_column("size", pd.Series([*cells, "n/k", "?"]))
    assert few.kind == "number"
    assert few.note == "column 'size': 2 of 102 cells are not numbers ('?', 'n/k'), taken as missing"
    many = infer_column("size", pd.Series([*cells, *["low"] * 20]))
    assert many.kind == "names"  # 101 different texts
    assert infer_column("size", pd.Series([*cells[:90], *["low"] * 20])).kind == "category"


def test_numbers_with_units_and_commas_are_said():
    found = infer_column("price", pd.Series(["1,234.50 €", "3.00 €", "4.00 €"]))
    assert found.note == "column 'price': texts such as '1,234.50 €' were read as numbers"
    comma = infer_column("price", pd.Series(["1.234,50", "3,5", "4,25"]))
    assert comma.kind == "number"
    assert comma.comma
    assert comma.note == "column 'price': texts such as '1.234,50' were read as numbers with a decimal comma"


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


def test_what_to_do_is_said():
    dates = pd.Series([f"{1 + k % 12:02d}/{1 + k % 7:02d}/2024" for k in range(60)])
    assert infer_column("when", dates).note.endswith(
        "; day and month may be swapped: both orders fit, and %m/%d/%Y was used"
    )
    free = infer_column("notes", pd.Series([f"called on day {k}, no answer yet" for k in range(30)]))
    assert (free.kind, free.note) == (
        "names",
        "column 'notes' holds free text and was left out: turn it into numbers first, for example with TfidfVectorizer",
    )
    lists = infer_column("tags", pd.Series([[k, 1] for k in range(9)]))
    assert (lists.kind, lists.note) == (
        "names",
        "column 'tags' holds lists and was left out: turn them into columns first",
    )


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
