"""Tables as features, and what is said about them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fewkern import TableEncoder
from fewkern.tables.encoder import TableWarning


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "size": [1.0, np.nan, 3.0, 8.0],
            "colour": pd.Series(["red", "blue", None, "red"], dtype=object),
            "fixed": [2, 2, 2, 2],
            "on": [True, False, True, True],
        }
    )


def plain(encoder, frame):
    return encoder.transform(frame) * encoder.scale_ + encoder.mean_


def test_numbers_are_standardized_and_categories_one_hot(frame):
    encoder = TableEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["size", "colour=blue", "colour=red", "on"]
    X = encoder.transform(frame)
    expected = np.array([[1.0, 0, 1, 1], [3, 1, 0, 0], [3, 0, 0, 1], [8, 0, 1, 1]])  # the median is 3
    np.testing.assert_allclose(X, (expected - expected.mean(axis=0)) / expected.std(axis=0))
    assert encoder.notes_ == (
        "column 'fixed' is the same in every row and was left out",
        "column 'size': 1 missing value replaced by the median 3",
        "column 'colour': 1 missing value counts as no category",
    )


def test_new_rows_use_what_was_learned(frame):
    encoder = TableEncoder().fit(frame)
    # neither a constant column nor one that is not used is asked for
    new = pd.DataFrame({"on": [1], "colour": ["green"], "size": [np.nan], "more": ["ignored"]})
    with pytest.warns(TableWarning, match="column 'colour': 1 of 1 rows has a category that the model does not know"):
        found = plain(encoder, new)
    np.testing.assert_allclose(found, [[3.0, 0, 0, 1]], atol=1e-12)


def test_a_category_is_its_text_however_it_is_stored():
    """A missing cell makes floating-point numbers of whole ones; the codes 1 and 2 stay what they are."""
    encoder = TableEncoder().fit({"code": ["1", "2", "A", "1"]})
    for cells in (["1", "2", None], [1, 2, None], [1.0, 2.0, np.nan], ["1.0", " 2 ", ""]):
        np.testing.assert_array_equal(plain(encoder, {"code": cells}), [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    whole = pd.DataFrame({"code": [1, 2]})
    np.testing.assert_array_equal(plain(encoder, whole), [[1, 0, 0], [0, 1, 0]])
    both = TableEncoder().fit({"code": ["1", "1.0", "B", "1"]})
    np.testing.assert_array_equal(plain(both, {"code": ["1", "1.0"]}), [[1, 0, 0], [0, 1, 0]])


def test_polars_and_dicts_and_arrays(frame):
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    np.testing.assert_array_equal(TableEncoder().fit(pl.from_pandas(frame)).transform(pl.from_pandas(frame)), X)
    np.testing.assert_array_equal(encoder.transform({name: frame[name].tolist() for name in frame}), X)
    numbers = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]])
    assert TableEncoder().fit(numbers).get_feature_names_out().tolist() == ["x0", "x1"]
    named = TableEncoder().fit(pd.DataFrame(numbers, columns=["a", "b"]))
    np.testing.assert_array_equal(named.transform(numbers), named.transform({"b": numbers[:, 1], "a": numbers[:, 0]}))


def test_in_a_pipeline_with_data_frames_out(frame):
    pipeline = make_pipeline(TableEncoder(), LogisticRegression()).set_output(transform="pandas")
    frame.index = [10, 20, 30, 40]
    made = pipeline.fit(frame, [0, 1, 1, 0])[0].transform(frame)
    assert made.columns.tolist() == ["size", "colour=blue", "colour=red", "on"]
    assert made.index.tolist() == [10, 20, 30, 40]
    assert clone(TableEncoder(drop=["a"])).get_params() == TableEncoder(drop=["a"]).get_params()


def test_cells_are_the_way_back(frame):
    table = frame.assign(day=["2020-01-01", "2020-01-05", "2020-03-01", "2021-01-01"], count=[3, 1, 2, 2])
    encoder = TableEncoder().fit(table)
    back = encoder.cells(encoder.transform(table))
    assert back["size"].tolist() == [1, 3, 3, 8]
    assert back["colour"].fillna("none").tolist() == ["red", "blue", "none", "red"]
    for name in ("on", "day", "count"):
        assert back[name].tolist() == table[name].tolist()
    assert encoder.cells(encoder.transform(table) + 1e-4)["day"][0] == "2020-01-01"  # no time where the table has none


@pytest.mark.parametrize(
    ("new", "remark"),
    [
        ({"size": [None, None]}, "column 'size' is empty here: every row gets the median 3"),
        ({"colour": [None, None]}, "column 'colour' is empty here: every row counts as no category"),
        ({"size": [1e9, 2.0]}, r"column 'size': 1 of 2 rows lies far outside the range of the fitted rows \(1 to 8"),
        ({"size": ["n/k", "2"]}, r"column 'size': 1 of 2 cells is not a number \('n/k'\), taken as missing"),
        ({"size": ["?", "?"]}, "column 'size' is empty here"),
    ],
)
def test_what_is_unusual_is_said(frame, new, remark):
    encoder = TableEncoder().fit(frame)
    usual = {"size": [2.0, 3.0], "colour": ["red", "blue"], "on": [True, False]}
    assert encoder.encode(usual).remarks == ()
    with pytest.warns(TableWarning, match=remark):
        encoder.transform({**usual, **new})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[["size"]], r"the table lacks the columns 'colour', 'on' that .* fitted with"),
        (lambda f: f.rename(columns={"size": "Size"}), r"lacks the column 'size'.*; did you mean 'Size'\?"),
        (
            lambda f: f.assign(size=list("abcd")),
            "column 'size' was numeric when the model was fitted, but now holds text",
        ),
    ],
)
def test_tables_that_cannot_be_encoded(frame, change, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(frame).transform(change(frame))


@pytest.mark.parametrize(
    ("given", "change", "message"),
    [
        ({}, lambda f: f[["fixed"]], r"no usable column besides the target \(left out: 'fixed'\)"),
        ({"keep": ["sise"]}, lambda f: f, r"keep: there is no column 'sise'; did you mean 'size'\?"),
        ({}, lambda _: [1, 2, 3], r"expected a table .* got list of 1 dimensions"),
        ({}, lambda f: pd.concat([f, f], axis=1), "several columns named 'colour'"),
    ],
)
def test_tables_that_cannot_be_learned(frame, given, change, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**given).fit(change(frame))
