"""What may be wrong with a table, or with an error that looks too good."""

import numpy as np
import pandas as pd
import pytest

from fewkern import TableModel
from fewkern.tables.resolve import extreme_targets, note_on_rare_class, total_rows
from tests.tables.examples import patients

RNG = np.random.default_rng(0)


def sales(n=200):
    frame = pd.DataFrame({"region": RNG.choice(["N", "S"], n), "units": RNG.integers(1, 80, n)})
    frame["margin"] = 0.1 * frame["units"] + (frame["region"] == "N") + 0.1 * RNG.normal(size=n)
    return frame


def test_extreme_targets_are_named_by_row():
    values = RNG.normal(size=100)
    assert extreme_targets("y", values, np.arange(100)) == []
    assert extreme_targets("y", np.exp(2 * values), np.arange(100)) == []  # a long tail is none
    values[[7, 40]] = 900.0, -1234.5
    (said,) = extreme_targets("y", values, np.arange(100, 200))
    assert said == (
        "target 'y': rows 108 (900), 141 (-1,234) are far from all others: if they are totals or errors, remove them"
    )
    assert extreme_targets("y", np.r_[np.zeros(50), 1.0], np.arange(51)) == []


def test_errors_that_contradict_each_other_are_explained():
    """Two rows of an absurd target are fitted and not held out."""
    frame = sales()
    frame.loc[[17, 90], "margin"] = 50_000.0
    model = TableModel(max_vectors=8).fit(frame, "margin")
    assert not set(model.held_out_.rows) & {17, 90}
    assert any("rows 18 (50,000), 91 (50,000) are far from all others" in note for note in model.notes_)
    assert sum("contradict each other: a few rows decide" in note for note in model.notes_) == 1


@pytest.mark.parametrize("word", ["Total", "GRAND TOTAL:", "Summe", "sum"])
def test_a_total_in_the_last_row_is_left_out(word):
    frame = sales()
    frame.loc[200] = [word, frame["units"].sum(), frame["margin"].sum()]
    assert np.flatnonzero(total_rows(frame)[0]).tolist() == [200]
    model = TableModel(max_vectors=5, holdout=0).fit(frame, "margin")
    assert f"row 201 ({word!r}) looks like a total and was left out" in model.notes_
    assert model.facts_.rows == 200
    assert model.encoder_.names == ["region=N", "region=S", "units"]


def test_subtotals_of_a_value_of_their_column_are_left_out():
    frame = sales()
    frame.loc[200] = ["N total", 1000, 10.0]
    frame.loc[201] = ["Summe S", 1000, 10.0]
    frame.loc[202] = ["Grand Total", 2000, 20.0]
    rows, (said,) = total_rows(frame)
    assert np.flatnonzero(rows).tolist() == [200, 201, 202]
    np.testing.assert_array_equal(total_rows(frame.astype({"region": object}))[0], rows)
    assert said == "rows 201 ('N total'), 202 ('Summe S'), 203 ('Grand Total') look like totals and were left out"
    assert TableModel(max_vectors=5, holdout=0).fit(frame, "margin").facts_.rows == 200
    frame["region"] = [f"{cell} {k % 7}" if k < 200 else cell for k, cell in enumerate(frame["region"])]
    apart = TableModel(max_vectors=5, holdout=0).fit(frame, "margin", groups="region")  # where the word stands
    assert apart.facts_.rows == 202


def test_words_that_are_no_totals():
    frame = sales()
    assert total_rows(frame.head(0))[1] == []
    for rows, word in (([3, 199], "Total"), ([100], "Total"), ([100], "Total Energies"), ([3, 100], "Total N")):
        changed = frame.copy()
        changed.loc[rows, "region"] = word
        assert total_rows(changed)[1] == []


def test_a_column_that_looks_like_a_group():
    """By its name, or by what it does to the target."""

    def said(table, name, found="40 values, each in about 8 rows", **roles):
        notes = TableModel(max_vectors=5, holdout=0).fit(table, "ill", **roles).notes_
        return any(note.startswith(f"column {name!r} has {found}") for note in notes)

    frame = patients()
    assert said(frame, "patient")
    assert not said(frame, "patient", groups="patient")
    assert said(patients(20, 2), "patient", "20 values, each in about 2 rows")
    assert not said(patients(9, 8), "patient", "9 values")
    other = frame.rename(columns={"patient": "code"})
    assert said(other, "code")
    TableModel(task="reduce", max_vectors=3).fit(other.drop(columns="ill"))  # there is no target to look at
    assert not said(other.assign(ill=RNG.choice(["yes", "no"], len(frame))), "code")
    assert said(frame.assign(subject_id=frame.pop("patient").str[1:].astype(int)), "subject_id")


def test_a_column_that_alone_decides_is_named():
    X = RNG.normal(size=(300, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["default"] = np.where(X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=300) > 0, "yes", "no")
    leaking = frame.assign(flag=np.where(frame["default"] == "yes", "late", "paid"))
    said = "column 'flag' alone decides: is it known before 'default' is? If not, drop it"
    assert said in TableModel(max_vectors=5).fit(leaking, "default").notes_
    assert not any("alone decides" in note for note in TableModel(max_vectors=5).fit(frame, "default").notes_)
    numbers = frame.drop(columns="default").assign(y=lambda f: f["a"] * 3, other=lambda f: np.exp(f["a"]))
    assert any("alone decides" in note for note in TableModel(max_vectors=10).fit(numbers, "y").notes_)


def test_rare_classes():
    y = np.array([0] * 990 + [1] * 10)
    (said,) = note_on_rare_class(y, weighted=False)
    assert said.startswith("class 1 is rare (1.0% of the rows): try class_weight 'balanced' (--class-weight balanced)")
    assert note_on_rare_class(y, weighted=True) == []
    assert note_on_rare_class(np.array([0] * 90 + [1] * 10), weighted=False) == []
    assert note_on_rare_class(np.repeat(np.arange(30), 5), weighted=False) == []  # many classes are not rare ones


@pytest.mark.parametrize(("task", "model", "said"), [("classify", "auto", True), ("reduce", "margins", False)])
def test_rare_classes_are_those_of_a_classifier(task, model, said):
    frame = pd.DataFrame({"a": np.arange(300.0), "b": np.arange(300.0) ** 2, "kind": ["x"] * 297 + ["z"] * 3})
    notes = TableModel(task=task, model=model, max_vectors=5, holdout=0).fit(frame, "kind").notes_
    assert any("class 'z' is rare" in note for note in notes) == said
