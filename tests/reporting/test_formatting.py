import numpy as np
import pandas as pd
import pytest

from fewkern.reporting.formatting import (
    cell,
    count,
    is_missing,
    label,
    number,
    of,
    percent,
    plural,
    text,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (12345.6, "12,300"),
        (5002156, "5,000,000"),
        (0.123456, "0.123"),
        (-2.5, "-2.5"),
        (0, "0"),
        (1e-7, "1e-07"),
        (3e15, "3e+15"),
        (0.1 + 0.2, "0.3"),
        (999.9, "1,000"),
        (float("nan"), "not a number"),
        (float("inf"), "infinite"),
        (-float("inf"), "minus infinite"),
    ],
)
def test_numbers(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0.0%"), (1, "100.0%"), (0.2567, "25.7%"), (0.0025, "0.25%"), (1e-5, "<0.01%"), (0.99999, ">99.9%")],
)
def test_percent(share, words):
    assert percent(share) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (5002156, "5002156"),
        (5002156.0, "5002156"),
        (5002156.25, "5002156"),
        (0.1234567, "0.123457"),
        (None, "–"),
        (np.nan, "–"),
        (pd.NA, "–"),
        (pd.NaT, "–"),
        (True, "True"),
        (np.int64(7), "7"),
        ("a" * 100, "a" * 59 + "…"),
        (pd.Timestamp("2020-01-02"), "2020-01-02 00:00:00"),
    ],
)
def test_cells(value, words):
    assert cell(value) == words


def test_labels_and_counts():
    assert [label(v) for v in ("yes", 3, 3.0, 2.5, True, np.str_("a"))] == ["'yes'", "3", "3", "2.5", "True", "'a'"]
    assert count(1234567) == "1,234,567"
    assert of(53, 168) == "53 of 168"
    assert plural(1, "row") == "1 row"
    assert plural(2000, "class", "classes") == "2,000 classes"
    assert is_missing(pd.NA)
    assert not is_missing("")
    assert text("short") == "short"


def test_controls_are_written_out():
    plain = "tab\tline\n é 東京 −–“…"
    assert text(plain) == plain
    assert cell("a\x1bb") == text("a\x1bb") == r"a\u001bb"
    assert label("a\u202eb") == r"'a\u202eb'"
