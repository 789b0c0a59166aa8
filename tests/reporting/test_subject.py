"""Models and rows that belong together, those that do not, and tables whose cells keep their types."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import fewkern
from fewkern.reporting.evaluation import predict_held_out
from fewkern.reporting.rows import TableRows
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, churn_model, churn_table, iris_model, price_model


def test_a_pipeline_and_the_columns_that_it_uses():
    model, frame, y = churn_model()
    subject = subject_of(model, frame, y)
    assert (subject.task, subject.target) == ("classify", "churn")
    assert [subject.rows.names[j] for j in subject.used] == ["age", "noise", "plan"]
    assert [len(f) for f in subject.features.values()] == [1, 1, 2]
    np.testing.assert_allclose(subject.samples, model[:-1].transform(frame))


def test_a_model_of_a_whole_table_finds_its_target():
    model, table = churn_table()
    subject = subject_of(model, table)
    assert subject.target == "churn"
    assert "churn" not in subject.rows.names
    assert subject.truth.tolist() == table["churn"].tolist()
    assert subject.notes == tuple(model.notes_)


def test_rows_without_a_target_are_left_out_and_said():
    model, table = churn_table()
    held = np.sort(model.held_out_.rows)
    others = np.setdiff1d(np.arange(len(table)), held)[:2]
    subject = subject_of(model, table.assign(churn=table["churn"].where(~table.index.isin(others))))
    assert subject.notes[-1] == "2 rows without a target were left out of this report"
    np.testing.assert_array_equal(subject.places, np.setdiff1d(np.arange(len(table)), others))
    # the record of the model means rows of the whole table
    found = predict_held_out(subject, QUICK)
    assert found.how == "held out"
    np.testing.assert_array_equal(np.sort(subject.places[found.positions]), held)


@pytest.mark.parametrize("kind", ["polars", "sparse", "lists", "pandas with more columns", "the best of a search"])
def test_other_kinds_of_rows_and_models(kind):
    model, X, y = iris_model()
    frame = pd.DataFrame(X, columns=list("abcd"))
    given = {
        "polars": pl.DataFrame(X, schema=list("abcd")),
        "sparse": csr_array(X),
        "pandas with more columns": frame.assign(key=np.arange(len(frame)))[["key", *"abcd"]],
    }.get(kind, X.tolist())
    if kind == "pandas with more columns":
        model = fewkern.FeatureVectorDiscriminant(max_vectors=10).fit(frame, y)
    if kind == "the best of a search":
        model = GridSearchCV(fewkern.FeatureVectorDiscriminant(), {"max_vectors": [5, 10]}, cv=2).fit(X, y)
    subject = subject_of(model, given, y)
    assert subject.core is getattr(model, "best_estimator_", model)
    np.testing.assert_array_equal(subject.samples, X)
    expected = model.predict(frame if hasattr(model, "feature_names_in_") else X)
    np.testing.assert_array_equal(subject.predict(subject.samples), expected)


def refused(error, match, *arguments):
    with pytest.raises(error, match=match):
        subject_of(*arguments)


def test_bad_models():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    behind = make_pipeline(StandardScaler(), SVC())
    kernel = fewkern.FeatureVectorDiscriminant(kernel="precomputed", max_vectors=5).fit(X @ X.T, y)
    for error, match, model in (
        (NotFittedError, "report: this KernelClassifier is not fitted; call fit first", fewkern.KernelClassifier()),
        (NotFittedError, "report: this Pipeline is not fitted", make_pipeline(fewkern.SparseKernelFisher())),
        (TypeError, "a fitted model of fewkern, or a pipeline that ends in one, got SVC", SVC().fit(X, y)),
        (TypeError, "got Pipeline, which ends in SVC", behind.fit(X, y)),
        (TypeError, "got str", "model.npz"),
        (TypeError, "got ABCMeta|got type", fewkern.KernelClassifier),
        (ValueError, "fitted to kernel values; a report needs a model of samples", kernel),
    ):
        refused(error, match, model, X @ X.T if model is kernel else X, y)


def test_bad_rows():
    model, X, y = iris_model()
    for match, *rows in (
        (r"X must be a table with rows and columns, got an array of shape \(\)", None, y),
        ("y is None, but this model predicts a target", X),
        ("X has 3 columns, but the model was fitted to 4", X[:, :3], y),
        ("X has no row", X[:0], y[:0]),
        ("X must be a table", X[0], y),
        ("X has 150 rows and y 149 values", X, y[:-1]),
        (r"about one target, got y of shape \(150, 2\)", X, np.stack([y, y], axis=1)),
        ("y has missing values", X, np.where(y == 0, np.nan, y)),
    ):
        refused(ValueError, match, model, *rows)
    model, frame, prices = price_model()
    lacks = r"X lacks the column\(s\) 'area', which the model was fitted to"
    refused(ValueError, lacks, model, frame[["noise"]], prices)
    refused(ValueError, "predicts numbers, but y holds something else", model, frame, ["a"] * len(frame))
    model, table = churn_table()
    refused(ValueError, "X has no column 'churn', which the model predicts", model, table.drop(columns="churn"))
    refused(ValueError, r"X lacks the column\(s\) 'plan'", model, table.drop(columns="plan"))


COLUMNS = {"a": [1.5, None, 3.0], "b": ["x", "y", None], "c": [True, False, True], "d": ["1", "2.5", ""]}


@pytest.mark.parametrize("kind", ["pandas", "array"])
def test_tables_keep_their_cells(kind):
    frame = pd.DataFrame(COLUMNS, index=["r0", "r1", "r2"])
    rows = TableRows.of(frame if kind == "pandas" else frame.to_numpy(dtype=object))
    assert len(rows) == 3
    assert rows.names == (tuple(f"feature {j}" for j in range(4)) if kind == "array" else tuple("abcd"))
    assert rows.label(1) == ("r1" if kind == "pandas" else "1")
    assert rows.take([2, 0]).values(2).tolist() == [True, True]
    assert len(rows.take([])) == 0
    assert TableRows.of(rows.select([2, 0])).values(0).tolist() == rows.values(2).tolist()
    # a column takes the cells of other rows
    changed = rows.replaced(1, rows.cells(1, np.array([1, 1, 0])))
    assert changed.values(1).tolist() == ["y", "y", "x"]
    assert changed.values(2).tolist() == rows.values(2).tolist()
    assert rows.values(1).tolist()[:2] == ["x", "y"]
    # numbers may be written as texts: a table as it stands in a file
    np.testing.assert_array_equal(rows.numbers(0), [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(rows.numbers(3), [1.0, 2.5, np.nan])
    assert rows.numbers(1) is None
    assert rows.numbers(2) is None


def test_types_are_kept():
    frame = pd.DataFrame({"k": pd.Categorical(["u", "v"]), "t": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    rows = TableRows.of(frame)
    changed = rows.replaced(0, rows.cells(0, [1, 1])).replaced(1, rows.cells(1, [0, 0])).data
    assert changed.dtypes.tolist() == frame.dtypes.tolist()
    assert changed["t"].tolist() == [pd.Timestamp("2020-01-01")] * 2
