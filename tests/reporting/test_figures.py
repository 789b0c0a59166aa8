"""Figures inside a page, and two predictions column by column."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from fewkern import FeatureVectorRegressor, KernelRegressor, TableModel, report
from fewkern.reporting.figures import INK, drawing, inline_svg, new_axes
from fewkern.reporting.quality import worst_rows
from tests.reporting.helpers import QUICK, Parsed


def drawn(label):
    with drawing():
        ax = new_axes()
        ax.plot([0, 1], [0, 1], color=INK)
        ax.set_xlabel(label)
        return inline_svg(ax.figure, "p", f"about {label}")


@pytest.mark.parametrize(
    "label", ['style="font-family: a', "</text><script>", 'a" onload="x', "$\\frac{", 'url(#a id="b', "&amp;", "東京"]
)
def test_texts_stay_texts(label):
    """Also where the drawing lacks their letters, which is no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg, width = drawn(label)
    page, plain = Parsed(svg), Parsed(drawn("plain")[0])
    assert width == 442  # 4.6 inches
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in plain.elements}
    assert {name for _, attrs in page.elements for name in attrs} == {n for _, attrs in plain.elements for n in attrs}
    assert page.tags("svg")[0]["aria-label"] == f"about {label}"


RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 2)), columns=["u", "a long name that leaves no room for a picture"])
NUMBERS = X["u"] ** 2 + 0.1 * RNG.normal(size=80)


def test_the_worst_and_a_typical_row():
    model = KernelRegressor(n_vectors=5).fit(X, NUMBERS)
    made = report(model, X, NUMBERS, settings=QUICK)
    worst = worst_rows(made.findings.predictions)[0][0]
    said = r"for row (\d+), (.*?): from [\d.]+, the mean over the background, to (\d+\.\d+)"
    first, second = re.findall(said, made.html)[::2]
    assert first[:2] == (str(worst), "the largest difference")
    assert float(first[2]) == pytest.approx(model.predict(X)[worst], rel=1e-3)
    assert second[1] == "a typical one"
    assert "a long name that leaves no ro…" in made.html  # it leaves room for the bars


def test_the_page_of_a_table_has_them():
    table = X.assign(kind=np.where(NUMBERS + RNG.normal(size=80) > 1, "big", "small"))
    page = TableModel(n_vectors=5).fit(table, "kind").report(table, settings=QUICK)
    assert "the most confident wrong prediction: from" in page.html
    assert "a typical one: from" in page.html


@pytest.mark.parametrize(
    ("model", "rows"), [(FeatureVectorRegressor(kernel="polynomial"), X), (KernelRegressor(n_vectors=5), X[["u"]])]
)
def test_other_kernels_and_single_columns_have_none(model, rows):
    page = report(model.fit(rows, NUMBERS), rows, NUMBERS, settings=QUICK)
    assert "What each column contributes" not in page.html
