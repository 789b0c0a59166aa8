"""Tables whose cells keep their types."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fewkern.reporting.rows import TableRows

COLUMNS = {"a": [1.5, None, 3.0], "b": ["x", "y", None], "c": [True, False, True], "d": ["1", "2.5", ""]}


@pytest.fixture(params=["pandas", "polars", "array"])
def rows(request):
    if request.param == "pandas":
        return TableRows.of(pd.DataFrame(COLUMNS, index=["r0", "r1", "r2"]))
    return TableRows.of(
        pl.DataFrame(COLUMNS) if request.param == "polars" else pd.DataFrame(COLUMNS).to_numpy(dtype=object)
    )


def test_rows_and_columns(rows):
    assert len(rows) == 3
    assert rows.names in (("a", "b", "c", "d"), tuple(f"feature {j}" for j in range(4)))
    assert rows.take([2, 0]).values(2).tolist() == [True, True]
    assert len(rows.take([])) == 0
    assert TableRows.of(rows.select([2, 0])).values(0).tolist() == rows.values(2).tolist()
    assert rows.label(1) in ("1", "r1")


def test_a_column_takes_the_cells_of_other_rows(rows):
    changed = rows.replaced(1, rows.cells(1, np.array([1, 1, 0])))
    assert changed.values(1).tolist() == ["y", "y", "x"]
    assert changed.values(2).tolist() == rows.values(2).tolist()
    assert rows.values(1).tolist()[:2] == ["x", "y"]


def test_numbers(rows):
    np.testing.assert_array_equal(rows.numbers(0), [1.5, np.nan, 3.0])
    assert rows.numbers(1) is None
    assert rows.numbers(2) is None
    np.testing.assert_array_equal(rows.numbers(3), [1.0, 2.5, np.nan])  # a table as it stands in a file


def test_types_are_kept():
    frame = pd.DataFrame({"k": pd.Categorical(["u", "v"]), "t": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    rows = TableRows.of(frame)
    changed = rows.replaced(0, rows.cells(0, [1, 1])).replaced(1, rows.cells(1, [0, 0])).data
    assert changed.dtypes.tolist() == frame.dtypes.tolist()
    assert changed["t"].tolist() == [pd.Timestamp("2020-01-01")] * 2
