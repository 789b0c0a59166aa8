"""Two predictions of a report, column by column."""

import numpy as np
import pandas as pd
import pytest

from fewkern import FeatureVectorRegressor, KernelRegressor, TableModel, report
from fewkern.reporting.errors import worst_rows
from fewkern.reporting.findings import find
from fewkern.reporting.subject import subject_of
from fewkern.reporting.waterfalls import explained_rows
from tests.reporting.helpers import QUICK

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 2)), columns=["u", "a long name that leaves no room for a picture"])
NUMBERS = X["u"] ** 2 + 0.1 * RNG.normal(size=80)


def test_the_worst_and_a_typical_row():
    model = KernelRegressor(n_vectors=5).fit(X, NUMBERS)
    subject = subject_of(model, X, NUMBERS)
    predictions = find(subject, QUICK).predictions
    found = explained_rows(subject, predictions)
    assert len(found) == 2
    worst = worst_rows(predictions)[0][0]
    assert f"row {worst}, the largest difference" in found[0][1]
    assert "a typical one" in found[1][1]
    assert found[0][0].value == pytest.approx(model.predict(X)[worst])
    assert max(len(label) for label in found[0][0].labels) <= 31


def test_the_page_of_a_table_has_them():
    table = X.assign(kind=np.where(NUMBERS + RNG.normal(size=80) > 1, "big", "small"))
    page = TableModel(n_vectors=5).fit(table, "kind").report(table, settings=QUICK)
    assert "the most confident wrong prediction: from" in page.html
    assert "a typical one: from" in page.html


def test_other_kernels_and_single_columns_have_none():
    model = FeatureVectorRegressor(kernel="polynomial").fit(X, NUMBERS)
    assert "What each column contributes" not in report(model, X, NUMBERS, settings=QUICK).html
    alone = X[["u"]]
    assert (
        "What each column contributes"
        not in report(KernelRegressor(n_vectors=5).fit(alone, NUMBERS), alone, NUMBERS, settings=QUICK).html
    )
