"""Groups, weights, class weights and several targets of a table."""

import numpy as np
import pandas as pd
import pytest

import fewkern
from fewkern import TableModel
from tests.tables.examples import patients


def test_rows_of_a_group_are_held_out_together():
    frame = patients()
    apart = TableModel(max_vectors=10).fit(frame, "ill", groups="patient")
    assert "patient" not in apart.encoder_.columns
    held = set(frame["patient"].iloc[apart.held_out_.rows])
    assert not held & set(frame["patient"].drop(apart.held_out_.rows))
    assert len(held) == apart.judgement_.groups == 8
    assert apart.judgement_.value > 0.25  # there is nothing to learn
    assert apart.facts_.cross_validated > 0.25  # nor for folds of groups
    assert "of 8 groups the model did not see" in dict(apart.summary())["held-out error"]
    assert dict(apart.summary())["rows"] == "320 of 4 features, in 40 groups"
    mixed = TableModel(max_vectors=10).fit(frame.drop(columns="patient"), "ill")
    assert max(mixed.judgement_.value, mixed.facts_.cross_validated) < 0.1
    by_label = TableModel(max_vectors=10).fit(frame.drop(columns="patient"), "ill", groups=frame["patient"])
    np.testing.assert_array_equal(by_label.held_out_.rows, apart.held_out_.rows)


def test_groups_are_split_like_all_rows():
    """Of several draws the one whose classes are most like those of the table."""
    frame = patients(200, 2)
    held = TableModel(model="discriminant", max_vectors=3).fit(frame, "ill", groups="patient").held_out_
    assert np.mean(held.truth == "yes") == pytest.approx(np.mean(frame["ill"] == "yes"), abs=0.03)


def test_rows_without_a_group_or_a_weight():
    frame = patients().assign(weight=1.0)
    frame.loc[[1, 5], "patient"] = None
    frame.loc[[2, 3, 4], "weight"] = np.nan
    model = TableModel(max_vectors=5, holdout=0).fit(frame, "ill", groups="patient", sample_weight="weight")
    assert "2 rows without a 'patient' are groups of their own" in model.notes_
    assert "3 rows without a weight were left out" in model.notes_
    assert model.facts_.rows == 317


def test_weights_count_in_the_fit_and_in_the_error():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, 200), "kind": ["a"] * 100 + ["b"] * 100})
    frame["y"] = np.where(frame["kind"] == "a", frame["x"], -frame["x"]) + 0.01 * rng.normal(size=200)
    frame["w"] = np.where(frame["kind"] == "a", "1", "0")
    model = TableModel(max_vectors=5, drop="kind").fit(frame, "y", sample_weight="w")
    assert model.encoder_.columns == ["x"]
    assert model.judgement_.value < 0.1  # rows of b do not count
    assert "weighted; " in dict(model.summary())["held-out RMSE"]
    assert model.score(frame[frame["kind"] == "a"]) > 0.95
    assert TableModel(max_vectors=5, drop=["kind", "w"]).fit(frame, "y").judgement_.value > 0.4


def test_class_weights(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    frame = pd.DataFrame(
        {"x": x, "z": rng.normal(size=600), "y": np.where(x + rng.normal(size=600) > 2.1, "bad", "ok")}
    )
    plain = TableModel(max_vectors=5).fit(frame, "y")
    fair = TableModel(max_vectors=5, class_weight="balanced").fit(frame, "y")
    assert np.sum(fair.predict(frame) == "bad") > 3 * np.sum(plain.predict(frame) == "bad")
    assert fair.judgement_.baseline == pytest.approx(0.5, abs=0.03)  # every class counts the same
    assert fair.judgement_.weighted
    by_class = TableModel(max_vectors=5, class_weight={"bad": 10.0, "ok": 1.0}).fit(frame, "y")
    again = fewkern.load(by_class.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(frame), by_class.predict(frame))


def test_several_targets(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(-3, 3, 200)})
    frame["sine"], frame["cosine"] = np.sin(frame["x"]), 1000 * np.cos(frame["x"])
    frame.loc[3, "sine"] = None
    model = TableModel(max_vectors=10).fit(frame, ["sine", "cosine"])
    assert model.target_ == model.targets == ("sine", "cosine")
    assert model.predict(frame).shape == (200, 2)
    assert model.score(frame) > 0.95
    assert model.facts_.rows == 199
    assert [round(one.r2) for one in model.judgement_.targets] == [1, 1]
    told = dict(model.summary())
    assert told["task"].endswith("targets sine, cosine")
    assert told["held-out RMSE"].split("(")[1].startswith("in standard deviations of the targets; R² ")
    assert "R² " in told["  of cosine"]
    assert told["baselines"].startswith("always answering the means: ")
    again = fewkern.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.summary() == model.summary()
    assert model.kept().columns.tolist()[-2:] == ["coefficient of sine", "coefficient of cosine"]
    with pytest.raises(ValueError, match=r"a report is about one target, this model has 2 \('sine', 'cosine'\)"):
        model.report(frame)


def test_several_targets_beside_the_table(tmp_path):
    x = np.linspace(-3, 3, 90)
    targets = pd.DataFrame({"sine": np.sin(x), "cosine": np.cos(x)})
    for given, names in ((targets, ("sine", "cosine")), (targets.to_numpy(), ("target 1", "target 2"))):
        model = TableModel(model="fvs", max_vectors=3).fit({"x": x}, given)
        assert model.targets == names
        kept = fewkern.load(model.save(tmp_path / "n")).kept()  # with the targets of rows that are vectors
        assert kept.columns.tolist()[1:4] == ["x", *names]


@pytest.mark.parametrize(
    ("settings", "target", "given", "message"),
    [
        ({}, "ill", {"groups": "Patient"}, "groups: there is no column 'Patient'; did you mean 'patient'"),
        ({}, "ill", {"groups": ["p"] * 3}, "groups: there is no column 'p'"),
        ({}, "ill", {"groups": ["a", "b"]}, "groups: expected one column, got 'a', 'b'"),
        ({}, "ill", {"groups": np.zeros(320)}, "groups: 'groups' is the same in all rows"),
        (
            {},
            "ill",
            {"sample_weight": ["x", *["1"] * 319]},
            r"weights: column 'weights': 1 of 320 cells is not a number",
        ),
        ({}, "ill", {"sample_weight": "a"}, "weights: column 'a' holds negative or infinite numbers"),
        ({}, "ill", {"sample_weight": np.zeros(320)}, "weights: column 'weights' holds no positive number"),
        ({"task": "reduce"}, "ill", {"groups": "patient"}, r"groups: the model 'pca' takes none \(task 'reduce'\)"),
        ({"class_weight": "balanced"}, "a", {}, r"class_weight: the model 'kernel' has no such setting"),
        ({}, ["a", "ill"], {}, "several targets must be numbers, but 'ill' holds classes"),
        ({}, ["a", "a"], {}, "target: a column is named twice"),
        ({}, ["a", "z"], {}, "target: there is no column 'z'"),
    ],
)
def test_problems(settings, target, given, message):
    with pytest.raises(ValueError, match=message):
        TableModel(**settings).fit(patients(), target, **given)
