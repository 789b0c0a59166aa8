"""``fewkern predict``: predictions beside what they are about."""

from pathlib import Path

import numpy as np
import pandas as pd

import fewkern
from tests.app.running import fails, predicted, run
from tests.tables.examples import banana

QUICK = ["--max-vectors", 8, "--holdout", 0]
# a classifier that does not try to move its vectors
FAST = [*QUICK, "--model", "discriminant"]


def test_columns_of_the_table_beside_the_predictions():
    frame = banana().assign(who=[f"n{k}" for k in range(120)])
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "side", "--out", "m.npz", *FAST)
    by_id = predicted("m.npz", "t.csv", "--id", "who")
    assert by_id.columns.tolist() == ["who", "side"]
    assert by_id["who"].tolist() == frame["who"].tolist()
    beside = predicted("m.npz", "t.csv", "--with-input")
    assert beside.columns.tolist() == ["x0", "x1", "side", "who", "predicted side"]
    assert beside["side"].tolist() == frame["side"].tolist()
    fails("predict", "m.npz", "t.csv", "--id", "Who", match=r"--id: there is no column 'Who'; did you mean 'who'\?")
    frame[["x0", "x1"]].to_csv("bare.csv", index=False)
    assert run("predict", "m.npz", "bare.csv").stderr == ""
    frame.assign(x0="?").to_csv("gaps.csv", index=False)
    assert "column 'x0' is empty here" in run("predict", "m.npz", "gaps.csv").stderr
    assert run("predict", "m.npz", "gaps.csv", "--quiet").stderr == ""
    frame.head(0).to_csv("none.csv", index=False)
    assert run("predict", "m.npz", "none.csv").stdout == "side\n"
    shown = run("predict", "m.npz", "none.csv", "--proba", "--with-input").stdout
    assert shown == "x0,x1,side,who,predicted side,p(left),p(right)\n"


def test_no_formula_goes_to_a_spreadsheet():
    frame = banana().rename(columns={"x0": "=1+x0"})
    frame["side"] = frame["side"].map({"left": "=HYPERLINK(1)", "right": "@right"})
    frame["by"] = ["-5", "+1,5", "-2+3|cmd", "\tx"] * 30
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "side", "--out", "m.npz", *FAST)
    found = predicted("m.npz", "t.csv", "--with-input", "--no-formulas")
    assert found.columns.tolist() == ["'=1+x0", "x1", "side", "by", "predicted side"]
    assert set(found["side"]) == {"'=HYPERLINK(1)", "'@right"}
    assert found["by"].tolist()[:4] == ["-5", "+1,5", "'-2+3|cmd", "'\tx"]
    assert set(predicted("m.npz", "t.csv")["side"]) == {"=HYPERLINK(1)", "@right"}
    run("predict", "m.npz", "t.csv", "--id", "=1+x0", "--no-formulas", "--out", "p.tsv")
    assert Path("p.tsv").read_text().startswith("'=1+x0\tside\n-1.1")
    run("check", "t.csv", "--target", "side", "--no-formulas", "--out", "c.csv")
    checked = pd.read_csv("c.csv")
    assert not checked.astype(str).map(lambda cell: cell.startswith(("=", "@"))).any(axis=None)


def test_intervals_sets_and_novelty():
    frame = banana()
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "x1", "--drop", "side", "--out", "r.npz", *QUICK)
    run("fit", "t.csv", "--out", "c.npz", *QUICK)
    fails("predict", "c.npz", "t.csv", "--interval", 0.9, match="--interval: this model gives no intervals")
    fails("predict", "r.npz", "t.csv", "--sets", 0.9, match="--sets: this model gives no sets of classes")
    fails("predict", "r.npz", "t.csv", "--interval", 1.5, match="coverage must be")
    found = predicted("r.npz", "t.csv", "--interval", 0.8, "--novelty")
    assert found.columns.tolist() == ["x1", "low", "high", "novelty", "novel"]
    assert np.mean((found["low"] <= frame["x1"]) & (frame["x1"] <= found["high"])) > 0.7
    regressor = fewkern.load("r.npz")
    assert (found["novel"] == (regressor.novelty(frame) > regressor.estimator_.novelty_threshold())).all()
    sets = predicted("c.npz", "t.csv", "--sets", 0.95)["set"].fillna("")
    assert set(sets) <= {"", "left", "right", "left | right"}
    assert np.mean([side in held.split(" | ") for side, held in zip(frame["side"], sets)]) > 0.9
    frame.assign(x0=1e6).to_csv("far.csv", index=False)
    assert predicted("c.npz", "far.csv", "--novelty")["novel"].all()
