import numpy as np
import pandas as pd
import pytest

from fewkern.reporting.formatting import cell, count, label, number, of, percent, plural, text


@pytest.mark.parametrize(
    ("write", "pairs"),
    [
        (number, {12345.6: "12,300", 5002156: "5,000,000", 0.123456: "0.123", -2.5: "-2.5", 0: "0", 1e-7: "1e-07"}),
        (number, {3e15: "3e+15", 0.1 + 0.2: "0.3", 999.9: "1,000", 12: "12"}),
        (number, {np.nan: "not a number", np.inf: "infinite", -np.inf: "minus infinite"}),
        (percent, {0: "0.0%", 1: "100.0%", 0.2567: "25.7%", 0.0025: "0.25%", 1e-5: "<0.01%", 0.99999: ">99.9%"}),
        (cell, {5002156: "5002156", 5002156.25: "5002156", 0.1234567: "0.123457", 2.0: "2", 3e15: "3e+15"}),
        (cell, {None: "–", np.nan: "–", pd.NA: "–", pd.NaT: "–", True: "True", np.int64(7): "7", "": ""}),
        (cell, {"a" * 100: "a" * 59 + "…", "0.98": "0.98", pd.Timestamp("2020-01-02"): "2020-01-02 00:00:00"}),
        (label, {"yes": "'yes'", 3: "3", 4.0: "4", 2.5: "2.5", True: "True", np.str_("a"): "'a'"}),
        (count, {1234567: "1,234,567"}),
    ],
)
def test_how_values_are_written(write, pairs):
    assert {value: write(value) for value in pairs} == pairs


def test_counts_with_words():
    assert of(53, 168) == "53 of 168"
    assert plural(1, "row") == "1 row"
    assert plural(2000, "class", "classes") == "2,000 classes"


def test_controls_are_written_out():
    plain = "tab\tline\n é 東京 −–“…"
    assert text(plain) == plain
    assert cell("a\x1bb") == text("a\x1bb") == r"a\u001bb"
    assert label("a\u202eb") == r"'a\u202eb'"
