"""What may be wrong with a table: every finding planted once, and none in a clean table."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

from fewkern.arrays import sampling
from fewkern.tables.check import check_table
from fewkern.tables.parts import open_tables
from fewkern.tables.resolve import Request


def clean(n=300, seed=0):
    X, y = make_moons(n, noise=0.08, random_state=seed)
    return pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "side": np.where(y == 1, "right", "left")})


def said(table, target="side", **request):
    return check_table(table, target, Request(**request)).findings


def test_a_clean_table_has_no_findings():
    found = check_table(clean(), "side")
    assert found.findings == ()
    assert len(found.suspicious) < 10
    assert list(found.rows.columns) == ["row", "score", "given", "expected", "east", "north", "side"]
    assert sorted(found.rows["row"]) == list(range(1, 301))


def test_wrong_labels_come_first_by_the_number_of_the_row():
    table = clean()
    table.loc[[10, 20], "side"] = table["side"].map({"left": "right", "right": "left"})
    table.loc[5, "side"] = None  # rows keep their numbers
    found = check_table(table, "side")
    assert set(found.rows["row"][:2]) == {11, 21}
    assert (found.rows["given"] != found.rows["expected"])[:2].all()


@pytest.mark.parametrize("groups", ["patient", None])
def test_copies_are_named_and_counted_across_groups(groups):
    table = clean(100).assign(patient=[f"P{k}" for k in np.arange(100) % 20])
    copies = table.iloc[[3, 4, 5]].assign(patient=["P3", "P9", "P9"])
    findings = said(pd.concat([table, copies]), groups=groups)
    assert any(one.startswith("3 rows are copies of others (row 101 of row 4, 102 of 5, 103 of 6)") for one in findings)
    assert any(one.startswith("2 copies are in other groups than their originals") for one in findings)


def test_equal_rows_with_different_classes():
    table = clean(100)
    torn = table.iloc[[7]].assign(side=lambda t: np.where(t["side"] == "left", "right", "left"))
    findings = said(pd.concat([table, torn]))
    assert findings == ("2 rows are equal to others but for 'side': no model can be right about all of them",)


def test_columns_that_say_little_or_everything():
    table = clean().assign(rare=lambda t: (t.index == 9).astype(int), result=lambda t: (t["side"] == "left") * 2.5)
    assert said(table) == (
        "column 'rare' is 0 in 99.7% of the rows: it carries little information",
        "column 'result' alone decides: is it known before 'side' is? If not, drop it",
    )
    numbers = clean().assign(price=lambda t: t["east"] + t["north"] ** 2).drop(columns="side")
    numbers["cents"] = 100 * numbers["price"]
    assert said(numbers, "price") == ("column 'cents' alone decides: is it known before 'price' is? If not, drop it",)


def test_wrong_labels_do_not_hide_a_column_that_knows():
    table = clean().assign(result=lambda t: np.where(t["side"] == "left", "Z1", "Z2"))
    table.loc[[10, 20, 30, 40, 50, 60], "side"] = table["side"].map({"left": "right", "right": "left"})
    assert "column 'result' alone decides: is it known before 'side' is? If not, drop it" in said(table)


def test_one_typing_error_does_not_look_like_time():
    clear = 0
    for seed in range(10):
        rng = np.random.default_rng(7 * seed + 200)
        x = rng.normal(size=(200, 4))
        y = x[:, 0] + np.sin(2 * x[:, 1]) + 0.3 * rng.normal(size=200)
        y[rng.integers(200)] *= 40
        clear += check_table(pd.DataFrame(x, columns=list("abcd")).assign(y=y), "y").errors[-1].clear
    assert clear == 0


def test_errors_of_rows_groups_and_time_stand_side_by_side():
    """A fingerprint of each patient, and a target that turns around: only the first way to hold out is optimistic."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 6)
    marks, sick = rng.normal(size=(60, 3)), rng.random(60) < 0.5
    table = pd.DataFrame(marks[patient] + 0.01 * rng.normal(size=(360, 3)), columns=list("abc"))
    table = table.assign(patient=[f"P{k}" for k in patient], ill=np.where(sick[patient], "yes", "no"))
    found = check_table(table.sample(frac=1, random_state=0), "ill")
    alone, fifths, together, _ = found.errors
    assert alone.value < 0.1
    assert fifths.value < 0.2
    assert together.value > 0.3
    assert together.clear
    assert together.how == "whole groups of 'patient'"
    (optimistic,) = (one for one in found.findings if "held out: the error is" in one)
    assert re.match(r"whole groups of 'patient' .* is \d+\.\d%, but \d\.\d% where .*; expect the larger", optimistic)
    assert check_table(table, "ill", Request(groups="patient")).errors[2].value == pytest.approx(
        together.value, abs=0.1
    )


def test_the_last_fifth_in_time():
    rng = np.random.default_rng(0)
    day = rng.permutation(300)
    x = rng.normal(size=300)
    table = pd.DataFrame({"x": x, "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(day, "D")})
    table["y"] = np.where(day < 240, x, -x) + 0.1 * rng.normal(size=300)
    found = check_table(table, "y")
    *_, last = found.errors
    assert any(re.match(r"the last fifth .* the error is RMSE [\d.]+, but RMSE [\d.]+ ", one) for one in found.findings)
    assert last.how == "the last fifth by 'day'"
    assert last.clear
    assert last.value > 2 * last.beside


def test_a_table_in_files(tmp_path, monkeypatch):
    table = clean()
    table.loc[7, "side"] = None
    for k in range(2):
        table.iloc[150 * k : 150 * (k + 1)].to_csv(tmp_path / f"{k}.csv", index=False)
    parts = open_tables([tmp_path / "0.csv", tmp_path / "1.csv"]).frame
    there, here = check_table(parts, "side"), check_table(table, "side")
    assert there.rows["row"].tolist() == here.rows["row"].tolist()
    assert there.findings == here.findings == ("1 row without a target was left out",)
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 160)
    some = check_table(parts, "side")
    assert some.findings == ("160 of 300 rows were drawn and looked at",)
    drawn = table.iloc[some.rows["row"] - 1].reset_index(drop=True)
    assert some.rows["given"].tolist() == drawn["side"].tolist()


def test_bad_input():
    with pytest.raises(ValueError, match="check: the task must be 'auto', 'classify' or 'regress', got 'density'"):
        check_table(clean(), "side", Request(task="density"))
    with pytest.raises(ValueError, match="check: one target at a time, got 'east', 'north'"):
        check_table(clean().drop(columns="side").assign(more=np.arange(300.0) ** 0.5), ["east", "north"])
