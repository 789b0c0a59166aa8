"""Groups, weights, class weights and several targets from the command line."""

import pandas as pd
import pytest

from tests.app.test_commands import fails, run
from tests.tables.test_roles import patients


@pytest.fixture(autouse=True)
def _table():
    patients().assign(w=1.0).to_csv("t.csv", index=False)


def test_groups_weights_and_class_weights():
    asked = ("--groups", "patient", "--weights", "w", "--class-weight", "balanced", "--n-vectors", 3)
    said = run("fit", "t.csv", "--target", "ill", *asked, "--prefer", "sparse", "--out", "m.npz").stdout
    assert "320 of 4 features, in 40 groups" in said
    assert "of 8 groups the model did not see; weighted; 95% CI" in said
    assert "vectors kept           3 " in said
    patients().drop(columns=["patient", "ill"]).to_csv("new.csv", index=False)
    assert run("predict", "m.npz", "new.csv").stdout.startswith("ill\n")


def test_several_targets():
    said = run("fit", "t.csv", "--target", "a", "--target", "b", "--drop", "ill", "--out", "m.npz").stdout
    assert "regress with model kernel, targets a, b" in said
    run("predict", "m.npz", "t.csv", "--interval", 0.9, "--id", "patient", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    assert found.columns.tolist() == ["patient", "a", "b", "low a", "high a", "low b", "high b"]
    assert (found["low a"] < found["a"]).all()
    assert (found["b"] < found["high b"]).all()
    fails("fit", "t.csv", "--target", "a", "--target", "b", "--report", "r.html", match="a report is about one target")
    fails("fit", "t.csv", "--groups", "Patient", match="groups: there is no column 'Patient'; did you mean 'patient'")
