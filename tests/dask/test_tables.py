"""Tables that come in parts: the same model for any parts, and the same as in memory where all rows are looked at."""

from dataclasses import replace
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from fewkern import FeatureVectorDiscriminant, TableEncoder, TableModel
from fewkern.arrays import sampling
from fewkern.arrays.partitions import NeedsMemoryError
from fewkern.tables.parts import as_parts, draw_rows, fetch_rows

N, SAMPLE, BLOCK = 800, 200, 128


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, N))
    town = rng.choice(["bern", "graz", "ulm"], N).astype(object)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, N), unit="D")
    side = np.where(u * v + (town == "ulm") > 0.3, "yes", "no").astype(object)
    table = pd.DataFrame({"id": np.arange(N), "u": u, "v": v, "town": town, "day": day, "side": side})
    table.loc[4, "u"] = np.nan
    table.loc[5, "town"] = None
    table.loc[11, "side"] = None
    table["sum"] = table["u"].fillna(0) + table["v"]
    return table


def cut(frame, cuts):
    """The table as a Dask data frame with partitions that end at these rows."""
    edges = [0, *sorted(cuts), len(frame)]
    return dd.from_delayed([dask.delayed(frame.iloc[a:b]) for a, b in pairwise(edges)], meta=frame.iloc[:0])


def quick(**given):
    return TableModel(model="discriminant", max_vectors=8, drop=("sum",), **given)


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(0, N), max_size=4))
def test_the_same_model_for_any_partitions(frame, cuts):
    one, other = (quick().fit(cut(frame, places), "side") for places in ([], cuts))
    np.testing.assert_allclose(one.predict_proba(frame), other.predict_proba(frame), atol=1e-10)
    assert one.notes_ == other.notes_
    assert replace(one.judgement_, verdict="") == replace(other.judgement_, verdict="")
    np.testing.assert_array_equal(one.held_out_.rows, other.held_out_.rows)


def test_few_rows_are_fitted_as_in_memory(frame, monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", N)
    here, there = quick().fit(frame, "side"), quick().fit(cut(frame, [100, 100, 650]), "side")
    np.testing.assert_array_equal(here.predict_proba(frame), there.predict_proba(frame))
    assert here.notes_ == there.notes_
    assert here.judgement_ == there.judgement_


def test_what_is_said_and_counted(frame):
    model = quick().fit(cut(frame, [300]), "side")
    assert model.notes_[:2] == (
        "column types were inferred from 250 of 800 rows",
        "1 row without a target was left out",
    )
    assert any("'id' holds a different whole number" in note for note in model.notes_)
    assert any("'day' holds dates" in note for note in model.notes_)
    assert len(model.held_out_.rows) == model.judgement_.rows == 50
    assert model.facts_.rows == N - 1 - 50
    kept = model.kept()
    np.testing.assert_allclose(kept["u"].astype(float), frame["u"].iloc[kept["row"]], rtol=1e-9)
    assert kept["side"].tolist() == frame["side"].iloc[kept["row"]].tolist()
    last = TableModel(model="discriminant", max_vectors=3).fit(cut(frame.drop(columns="sum"), [300]))
    assert last.target_ == "side"
    assert last.notes_[0] == "no target given: using the last column, 'side'"


def changed(frame, rows):
    other = frame.copy()
    other.loc[rows, "side"] = np.where(other.loc[rows, "side"] == "yes", "no", "yes")
    return other


def test_all_rows_are_fitted_but_those_held_out(frame):
    model = quick().fit(cut(frame, [300]), "side")
    new = frame.drop(columns="side")
    held = model.held_out_.rows
    moved = frame.assign(u=frame["u"].where(~frame["id"].isin(held), frame["u"] / 2))
    same = quick().fit(cut(moved, [300]), "side")
    np.testing.assert_array_equal(same.held_out_.rows, held)
    np.testing.assert_allclose(same.estimator_.expansion_.coef, model.estimator_.expansion_.coef, atol=1e-10)
    drawn = draw_rows(as_parts(cut(frame, []), "test"), 250, ("side",)).numbers
    others = np.setdiff1d(np.arange(20, N), drawn)
    assert len(others)
    far = quick().fit(cut(changed(frame, others), [300]), "side")
    assert np.abs(far.predict_proba(new) - model.predict_proba(new)).max() > 0.05


@pytest.mark.filterwarnings("ignore::fewkern.tables.encoder.TableWarning")
def test_a_category_outside_of_the_sample_is_unknown(frame):
    drawn = draw_rows(as_parts(cut(frame, []), "test"), 250, ("side",)).numbers
    rare = np.setdiff1d(np.arange(20, N), drawn)[0]
    table = frame.copy()
    table.loc[rare, "town"] = "zug"
    model = quick().fit(cut(table, [300]), "side")
    assert "town=zug" not in model.encoder_.names
    unknown = table.iloc[[rare]].assign(town="never seen")
    np.testing.assert_array_equal(model.predict_proba(table.iloc[[rare]]), model.predict_proba(unknown))


def test_numbers_truth_values_and_whole_numbers_as_targets(frame):
    lazy = cut(frame.assign(flag=frame["u"] > 0, digit=(frame["v"] > 0) * 3), [100, 500])
    number = TableModel(max_vectors=4).fit(lazy.drop(columns="side"), "sum")
    assert number.task_ == "regress"
    assert number.judgement_.r2 > 0.9
    for name, classes in {"flag": [False, True], "digit": [0, 3]}.items():
        model = quick().fit(lazy, name)
        assert model.classes_.tolist() == classes
        assert model.judgement_.value < 0.3
    by_number = quick(keep=()).set_params(drop=()).fit(cut(frame[["u", "side"]].set_axis([0, 1], axis=1), [400]), "1")
    assert list(by_number.feature_names_in_) == ["0"]


def test_predictions_are_lazy_and_of_the_same_kind(frame):
    lazy, here = cut(frame, [0, 300, 300]), frame
    model = quick().fit(lazy, "side")
    labels, shares, sets = model.predict(lazy), model.predict_proba(lazy), model.predict_set(lazy)
    assert isinstance(labels, dd.Series)
    assert isinstance(shares, dd.DataFrame)
    assert list(shares.columns) == list(sets.columns) == ["no", "yes"]
    assert labels.compute().tolist() == model.predict(here).tolist()
    np.testing.assert_allclose(shares.compute(), model.predict_proba(here), atol=1e-12)
    assert shares.compute().index.tolist() == list(range(N))
    regressor = TableModel(max_vectors=4).fit(lazy.drop(columns="side"), "sum")
    assert list(regressor.predict_interval(lazy).compute().columns) == ["low", "high"]
    reducer = TableModel(task="reduce", max_vectors=4).fit(lazy, "side")
    np.testing.assert_allclose(reducer.transform(lazy).compute(), reducer.transform(here), atol=1e-12)


@pytest.mark.filterwarnings("ignore::fewkern.tables.encoder.TableWarning")
def test_densities_of_parts_and_models_that_need_memory(frame):
    lazy = cut(frame, [300])
    density = TableModel(task="density", max_vectors=3, drop=("side", "town")).fit(lazy)
    values = density.score_samples(lazy).compute()
    np.testing.assert_allclose(values, density.score_samples(frame), atol=1e-12)
    assert np.isnan(values[4])
    model = TableModel(task="density", model="parzen", drop=("side", "town")).fit(lazy)
    assert "the model 'parzen' needs its rows in memory: only 250 rows were used" in model.notes_
    assert model.facts_.rows == 249  # one has a gap


def test_a_pipeline(frame):
    table = frame.dropna(subset=["side"]).drop(columns="sum")
    lazy = cut(table, [100, 400])
    made = make_pipeline(TableEncoder(), FeatureVectorDiscriminant(max_vectors=10))
    model = made.fit(lazy.drop(columns="side"), lazy["side"])
    again = made.fit(cut(table, []).drop(columns="side"), cut(table, [7])["side"])
    np.testing.assert_array_equal(model.predict(table), again.predict(table))
    answers = model.predict(lazy)
    assert isinstance(answers, da.Array)
    assert answers.compute().tolist() == model.predict(table).tolist()
    assert model.score(table, table["side"]) > 0.7
    assert not hasattr(model[-1], "feature_names_in_")  # of an array, in memory as well


def test_every_part_is_read_four_times(frame):
    """To count rows, to draw some, to look at all, and for the sums; not once for each of samples and targets."""
    reads = []

    def read(part):
        reads.append(len(part))
        return part

    lazy = cut(frame, [100, 400]).map_partitions(read, meta=frame.iloc[:0])
    quick().fit(lazy, "side")
    assert sorted(reads) == sorted(4 * [100, 300, 400])


def test_rows_are_fetched_by_their_numbers(frame):
    parts = as_parts(cut(frame, [3, 3, 500]), "test", verbose=False)
    assert fetch_rows(parts, [700, 2, 3])["id"].tolist() == [2, 3, 700]
    sparse = frame.copy()
    sparse.loc[sparse.index % 3 > 0, "side"] = None  # so few have a target that rows are drawn again
    drawn = draw_rows(as_parts(cut(sparse, [3, 500]), "test"), 250, ("side",))
    assert len(drawn.numbers) == 250
    assert drawn.frame["id"].tolist() == drawn.numbers.tolist()
    assert drawn.lacking == sparse["side"].isna().sum()


@pytest.mark.parametrize(
    ("spoil", "target", "error", "message"),
    [
        (lambda f: cut(f, [300]), "Side", ValueError, "target: there is no column 'Side'; did you mean 'side'"),
        (lambda f: cut(f, [300]), np.zeros(N), TypeError, "the name of a column, got ndarray; put the values into"),
        (lambda f: da.zeros((N, 3)), "side", TypeError, "expected a Dask data frame, got a Dask Array"),
        (
            lambda f: dd.from_delayed(
                [dask.delayed(f), dask.delayed(f.drop(columns="v"))], meta=f.iloc[:0], verify_meta=False
            ),
            "side",
            ValueError,
            "partition 1: the table lacks the column 'v'",
        ),
        (
            lambda f: cut(f.assign(u=f["u"].astype(object).where(f["id"] != 30, "far")), [30, 31]),
            "side",
            ValueError,
            "partition 1: column 'u' was numeric when the model was fitted, but now holds text",
        ),
        (
            lambda f: cut(f.assign(side=(f["v"] > 0) * 1.0 + 0.5 * (f["id"] == 30)), [300]),
            "side",
            ValueError,
            "partition 0: the target 'side' holds .*5, but was taken as classes that are whole numbers",
        ),
        (lambda f: cut(f.assign(side=None), [300]), "side", ValueError, "has 0 usable rows"),
    ],
)
def test_tables_that_cannot_be_fitted(frame, spoil, target, error, message):
    drawn = draw_rows(as_parts(cut(frame, []), "test"), 250, ("side",)).numbers
    assert 30 not in drawn  # what is wrong there is seen only when all rows are
    model = TableModel(max_vectors=4)
    with pytest.raises(error, match=message):
        model.fit(spoil(frame), target)
    assert not hasattr(model, "estimator_")


def test_what_needs_a_table_in_memory_says_so(frame):
    lazy = cut(frame, [300])
    model = quick().fit(lazy, "side")
    for method in (model.score, model.report):
        with pytest.raises(NeedsMemoryError, match=r"needs a table in memory; pass table.compute\(\)"):
            method(lazy)


def test_weights_of_a_table_in_parts(frame):
    """A row of weight zero, or without a weight, is not fitted, even if a whole part has none that counts."""
    counts = (frame["id"] >= 300) & (frame["id"] % 2 == 1)
    weighted = frame.assign(w=np.where(counts, 1.0, np.where(frame["id"] % 4, 0.0, np.nan)))
    one, other = (
        quick(holdout=0).fit(cut(table, [300]), "side", sample_weight="w")
        for table in (weighted, changed(weighted, ~counts))
    )
    assert "w" not in one.encoder_.columns
    np.testing.assert_allclose(one.predict_proba(frame), other.predict_proba(frame), atol=1e-10)
    with pytest.raises(TypeError, match="weights: of a table that comes in parts it is the name of a column, got list"):
        quick().fit(cut(frame, [300]), "side", sample_weight=[1.0] * N)


def test_groups_of_a_table_in_parts(frame):
    model = quick().fit(cut(frame.assign(g=frame["id"] // 8), [300]), "side", groups="g")
    assert any("groups need all rows in memory: only 250 rows were used" in note for note in model.notes_)
    groups = frame["id"] // 8
    assert model.judgement_.groups == len(set(groups.iloc[model.held_out_.rows]))


def test_several_targets_of_a_table_in_parts(frame):
    table = cut(frame.assign(product=frame["u"] * frame["v"]), [300])
    model = TableModel(max_vectors=8, drop=("side",)).fit(table, ["sum", "product"])
    assert model.predict(frame).shape == (N, 2)
    assert model.facts_.rows == N - 1 - 50  # one row has no product
    later = model.predict(table)
    assert list(later.columns) == ["sum", "product"]
    np.testing.assert_allclose(later.compute(), model.predict(frame))


def test_cells_of_a_part_that_are_missing(frame):
    """Infinite numbers (row 30 is not among those on which the columns are decided); and targets, of which most are."""
    spoiled, gap = (frame.assign(sum=frame["sum"].where(frame["id"] != 30, far)) for far in (np.inf, np.nan))
    one, other = (TableModel(max_vectors=4, drop="side").fit(cut(table, [300]), "sum") for table in (spoiled, gap))
    np.testing.assert_allclose(one.predict(frame), other.predict(frame), rtol=1e-9)
    sparse = frame.drop(columns="side").assign(sum=frame["sum"].where(frame["id"] % 3 == 0))
    assert TableModel(max_vectors=4).fit(cut(sparse, [300]), "sum").score(frame) > 0.8


def test_spellings_in_parts(frame):
    mixed = frame.assign(side=frame["side"].where(frame["id"] % 3 > 0, frame["side"].str.upper()))
    model = quick(merge_spellings=True).fit(cut(mixed, [300]), "side")
    plain = quick().fit(cut(frame, [300]), "side")
    np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(frame), atol=1e-10)
