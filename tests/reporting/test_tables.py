"""Reports about models of whole tables: each column is encoded once, and read as the model reads it."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import fewkern
from fewkern.reporting.findings import find
from fewkern.reporting.importances import importances
from fewkern.reporting.subject import subject_of
from tests.reporting.helpers import QUICK, churn_table, price_model


@cache
def rents():
    """Prices and dates as people write them, and cells that are not numbers."""
    rng = np.random.default_rng(0)
    n = 200
    price, day = rng.uniform(20, 100, n), rng.integers(0, 900, n)
    age = rng.integers(18, 80, n).astype(object)
    age[::20] = "n/k"
    frame = pd.DataFrame(
        {
            "price": [f"${v:.2f}" for v in price],
            "since": (pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D")).strftime("%d.%m.%Y"),
            "age": age,
            "left": np.where(price + 0.1 * day > 105, "yes", "no"),
        }
    )
    return fewkern.TableModel(max_vectors=8).fit(frame, "left"), frame


def test_the_page_has_the_notes():
    model, frame = rents()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = fewkern.report(model, frame, settings=QUICK)
    assert page.findings.predictions.how == "held out"
    assert "are not numbers (&#39;n/k&#39;), taken as missing" in page.html
    assert ">2021</text>" in page.html  # dates below a curve


def test_features_of_other_rows_are_those_of_changed_cells():
    """Taking the features of other rows is encoding a table with their cells."""
    model, frame = rents()
    subject = subject_of(model, frame)
    rng = np.random.default_rng(1)
    some = rng.choice(200, 50, replace=False)
    others = rng.permutation(some)
    for j in subject.used:
        changed = subject.rows.take(some).replaced(j, subject.rows.cells(j, others))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = model.encoder_.transform(changed.data)
        np.testing.assert_array_equal(subject.with_cells(some, j, others), expected)


def test_features_of_several_columns_are_encoded_again():
    _, X, y = price_model()
    model = make_pipeline(PCA(2), fewkern.FeatureVectorRegressor(max_vectors=10)).fit(X, y)
    subject = subject_of(model, X, y)
    some, others = np.arange(20), np.arange(20)[::-1]
    changed = X.iloc[some].assign(area=X["area"].to_numpy()[others])
    np.testing.assert_allclose(subject.with_cells(some, 0, others), model[:-1].transform(changed))


@pytest.mark.parametrize("as_text", [True, False])
def test_prices_and_dates_are_drawn_as_curves(as_text):
    model, frame = rents()
    if not as_text:
        frame = frame.assign(since=pd.to_datetime(frame["since"], dayfirst=True))
    found = {one.column: one for one in importances(subject_of(model, frame), 0).dependence}
    assert found["price"].kind == "number"
    assert min(found["price"].values) > 19
    assert max(found["price"].values) < 101
    assert found["since"].kind == "date"
    dates = found["since"].values
    assert pd.Timestamp("2020-01-01") <= min(dates) < max(dates) <= pd.Timestamp("2022-06-20")


def test_notes_are_stated_once():
    model, frame = rents()
    note = "column 'age': 10 of 200 cells are not numbers ('n/k'), taken as missing"
    remarks = find(subject_of(model, frame), QUICK).remarks
    assert remarks.count(note) == 1
    assert "the model of this report is fitted to all rows" in remarks[0]
    # what is new about other rows is stated on the page
    other = frame.head(60).assign(age="n/k").astype({"age": object})
    other.loc[0, "age"] = 20
    remarks = find(subject_of(model, other), QUICK).remarks
    assert "column 'age': 59 of 60 cells are not numbers ('n/k'), taken as missing" in remarks


def test_rows_that_the_model_was_not_fitted_to():
    """A table model with many rows is not fitted again to those that it held out."""
    _, frame = rents()
    large = fewkern.TableModel(max_vectors=8).fit(frame, "left")
    large.facts_ = replace(large.facts_, rows=len(frame) - len(large.held_out_.rows))
    found = find(subject_of(large, frame), QUICK)
    assert "which the model was not fitted to" in found.remarks[0]
    assert not found.predictions.seen
    assert "for new rows expect" not in found.uncertainty.sentences[0]


def test_a_report_and_the_summary_are_one_judgement():
    model, frame = churn_table()
    found = find(subject_of(model, frame), QUICK)
    assert found.quality.judgement is model.judgement_
    assert model.judgement_.verdict in found.quality.recommendation


def test_a_missing_cell_has_no_place_on_the_curve():
    model, frame = rents()
    frame = frame.assign(price=frame["price"].where(frame.index > 5), since=frame["since"].where(frame.index > 2))
    subject = subject_of(model, frame)
    assert np.isnat(subject.read(1)).sum() == 3
    numbers = subject.read(0)
    assert np.isnan(numbers[:6]).all()
    assert numbers[6] == pytest.approx(float(frame["price"][6][1:]))
