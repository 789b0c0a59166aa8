"""What a target is."""

import numpy as np
import pandas as pd
import pytest

from fewkern.tables.predicting import target_values
from fewkern.tables.schema import guess_task, resolve_target


@pytest.mark.parametrize(
    ("cells", "task", "note"),
    [
        ([0, 1, 1, 0], "classify", None),
        ([0.0, 1.0, np.nan], "classify", None),
        (np.arange(1000), "regress", None),
        ([0.5, 1.5], "regress", None),
        (["a", "b"], "classify", None),
        ([True, False], "classify", None),
        (["True", "False"], "classify", None),
        (["0.5", "1.5", None], "regress", None),
        (["1", "2", "1"], "classify", None),
        (["01", "02", "01"], "classify", None),
        (["1", "2", "3", "A"] * 5, "classify", None),
        (["1.5", "2.5"] * 10 + ["A"], "classify", None),
        ([str(k / 3) for k in range(30)] + ["?"], "regress", None),
        (
            [0, 1, 2] * 5,
            "classify",
            "3 different whole numbers: taken as classes (the task 'regress' takes",
        ),
        (np.arange(15).repeat(10), "classify", "15 different whole numbers: taken as classes"),  # as many, none is rare
        (
            np.arange(21).repeat(5),
            "regress",
            "21 different whole numbers: taken as a number (the task 'classify'",
        ),
        (
            np.r_[0:15, [0] * 2000],
            "regress",
            "15 different whole numbers, some of them rare, like counts: taken as a",
        ),
    ],
)
def test_guesses(cells, task, note):
    found, said = guess_task("y", pd.Series(cells))
    assert found == task
    assert said is None if note is None else said.startswith(f"target 'y' has {note}")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ([1.0, 0.0, np.nan, 1.0], [1, 0, 1]),
        ([1.0, 0.0, 1.0], [1, 0, 1]),
        (["1.0", "0.0", None, "1.0"], ["1.0", "0.0", "1.0"]),
        (["1", "0", "?", "1"], ["1", "0", "1"]),
        (["1.0", "1", "0", "1"], ["1", "1", "0", "1"]),
        (["TRUE", "FALSE", None], ["TRUE", "FALSE"]),
        (["50%", "20%"], ["50%", "20%"]),
        (["1e3", "2e3"], ["1e3", "2e3"]),
        (["$5", "$6"], ["$5", "$6"]),
        (pd.Series([True, None, False], dtype=object), [True, False]),
        ([" no", "yes ", None], ["no", "yes"]),
        (["True", "False", None], ["True", "False"]),
        ([True, False], [True, False]),
        (pd.array([True, None, False], dtype="boolean"), [True, False]),
        (["01", "1", "01"], ["01", "1", "01"]),
        ([0.5, 1.5], [0.5, 1.5]),
        (pd.Categorical(["a", None, "b"]), ["a", "b"]),
    ],
)
def test_labels(cells, labels):
    found = resolve_target("y", pd.Series(cells), "classify")
    assert found.values.tolist() == labels
    assert [type(value) for value in found.values.tolist()] == [type(label) for label in labels]


def test_rows_without_a_target_are_counted():
    found = resolve_target("y", pd.Series(["a", None, "b", None]), "auto")
    assert found.rows.tolist() == [0, 2]
    assert found.notes[0] == "2 rows without a target were left out"
    number = resolve_target("y", pd.Series(["1.5", None, "2.5", "n/k", *[str(k / 7) for k in range(20)]]), "regress")
    assert number.notes == (
        "column 'y': 1 of 23 cells is not a number ('n/k'); the row was left out",
        "1 row without a target was left out",
    )


def test_a_class_of_one_row_is_said():
    notes = resolve_target("y", pd.Series(["a", "a", "b", "c"]), "classify").notes
    assert notes == ("target 'y': the classes 'b', 'c' have only one row, too few to learn",)


@pytest.mark.parametrize(
    ("cells", "task", "message"),
    [
        (["a", "b"], "regress", "the target 'y' holds text; use the task 'classify'"),
        ([[1], [2], [1]], "auto", "the target 'y' holds lists; choose another target"),
        ([{"a": 1}, None, {"a": 2}], "classify", "the target 'y' holds records"),
        ([10**400 + k for k in range(9)], "auto", "the target 'y' is different in every row: no class can be learned"),
        ([f"n{k}" for k in range(150)], "auto", "has 150 different texts in 150 rows, like names or keys"),
        (["2020-01-01", "2021-01-01"], "auto", "the target 'y' holds dates"),
    ],
)
def test_problems(cells, task, message):
    with pytest.raises(ValueError, match=message):
        resolve_target("y", pd.Series(cells, dtype=object), task)


def test_targets_of_new_rows_have_the_form_of_predictions():
    assert target_values(pd.Series(["1.0", "0", None]), "classify", np.array([0, 1])).tolist()[:2] == [1, 0]
    assert target_values(pd.Series([1, 0]), "classify", np.array(["0", "1"], dtype=object)).tolist() == ["1", "0"]
    assert target_values(pd.Series(["true", None]), "classify", np.array([False, True])).tolist() == [True, None]
    assert target_values(pd.Series(["1.5", "?"]), "regress", None).tolist()[0] == 1.5
    digits, flags = (np.array(labels, dtype=object) for labels in (["0", "1"], ["FALSE", "TRUE"]))
    found = target_values(pd.Series(["1.0", "?", None, "2"]), "classify", digits)
    assert found.tolist() == ["1", None, None, "2"]
    assert target_values(pd.Series([True, False]), "classify", flags).tolist() == ["TRUE", "FALSE"]


def test_a_target_with_decimal_commas_is_read_as_a_feature_is():
    prices = pd.Series([f"1.{k:03},84 €" for k in range(100, 200)])
    found = resolve_target("Miete", prices, "auto")
    assert (found.task, found.values[0]) == ("regress", 1100.84)
    assert found.notes == ("target 'Miete': texts such as '1.100,84 €' were read as numbers with a decimal comma",)
    assert target_values(prices, "regress", None).tolist() == found.values.tolist()


def test_spellings_of_a_class():
    churn = pd.Series(["Yes"] * 5 + ["yes"] * 2 + ["Y", "No", "No", "no", "N"])
    apart = resolve_target("churn", churn, "auto")
    assert len(set(apart.values)) == 6
    assert apart.notes[0] == (
        "target 'churn': 'Yes', 'yes', 'Y' look alike and are kept apart (and 1 more); merge_spellings "
        "(--merge-spellings) joins them"
    )
    joined = resolve_target("churn", churn, "auto", merge=True)
    assert joined.values.tolist() == ["Yes"] * 8 + ["No"] * 4
    assert joined.notes[0] == "target 'churn': 'yes', 'Y' are taken as 'Yes' (and 1 more)"
    new = pd.Series(["TRUE", "n", None, "maybe"])
    assert target_values(new, "classify", ["No", "Yes"], merge=True).tolist() == ["Yes", "No", None, "maybe"]
    assert resolve_target("y", pd.Series(["a", "b", "Ab"] * 3), "auto").notes == ()
