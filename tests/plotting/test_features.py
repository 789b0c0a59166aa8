"""Pictures of explanations."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern as fk
from fewkern.plotting import SharesDisplay, WaterfallDisplay

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(80, 3)) * [1, 10, 100], columns=["u", "v", "$w$"])
NUMBERS = FRAME["u"] ** 2 + FRAME["v"] / 10
THREE = np.digitize(NUMBERS, [0, 1])


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_a_waterfall_goes_from_the_baseline_to_the_prediction():
    model = make_pipeline(StandardScaler(), fk.KernelRegressor(n_vectors=6)).fit(FRAME, NUMBERS)
    display = WaterfallDisplay.from_estimator(model, FRAME, row=4)
    assert_allclose(display.value, model.predict(FRAME)[4])
    bars = sorted(display.ax_.patches, key=lambda bar: bar.get_y())
    assert_allclose(bars[0].get_x(), display.baseline)
    assert_allclose(bars[-1].get_x() + bars[-1].get_width(), display.value)
    assert np.all(np.diff([abs(bar.get_width()) for bar in bars]) <= 0)
    assert sorted(labels(display)) == sorted(f"{name} = {FRAME[name][4]:.4g}" for name in FRAME)
    plt.close("all")


def test_the_class_that_was_predicted_or_another():
    model = fk.KernelClassifier(n_vectors=6).fit(FRAME, THREE)
    scores = model.decision_function(FRAME)[0]
    display = WaterfallDisplay.from_estimator(model, FRAME)
    assert_allclose(display.value, scores.max())
    assert display.quantity == f"score: {np.argmax(scores)}"
    assert_allclose(WaterfallDisplay.of_row(model, FRAME, output=1).value, scores[1])
    with pytest.raises(ValueError, match=r"output must be one of \[0, 1, 2\], got 3"):
        WaterfallDisplay.of_row(model, FRAME, output=3)
    plt.close("all")


def test_two_classes_and_a_table():
    table = FRAME.assign(kind=np.where(NUMBERS > 1, "big", "small"), color=np.where(FRAME["u"] > 0, "red", "blue"))
    model = fk.TableModel(holdout=0, n_vectors=6).fit(table, "kind")
    display = WaterfallDisplay.from_estimator(model, table, row=2)
    assert display.ax_.get_xlabel() == "score (positive: small)"
    assert f"color = {table['color'][2]}" in labels(display)
    assert set(labels(SharesDisplay.from_estimator(model, table))) == {"u", "v", "$w$", "color"}
    plt.close("all")


def test_a_summary_has_the_mean_size_of_every_share():
    model = fk.KernelClassifier(n_vectors=6).fit(FRAME, THREE)
    display = SharesDisplay.from_estimator(model, FRAME)
    assert_allclose(display.sizes, np.abs(model.explain(FRAME).values).mean(axis=(0, 2)))
    assert_allclose([bar.get_width() for bar in display.ax_.patches], np.sort(display.sizes)[::-1])
    plt.close("all")


def test_many_features_end_in_one_bar():
    shares = RNG.normal(size=30)
    display = WaterfallDisplay(shares, 1.0, [f"f{j}" for j in range(30)]).plot()
    assert labels(display)[-1] == "10 others"
    last = max(display.ax_.patches, key=lambda bar: bar.get_y())
    assert_allclose(last.get_x() + last.get_width(), 1 + shares.sum())
    assert labels(SharesDisplay(np.abs(shares), [f"f{j}" for j in range(30)]).plot())[-1] == "10 others"
    plt.close("all")


def test_errors_say_what_to_do():
    model = fk.KernelRegressor(n_vectors=3).fit(FRAME, NUMBERS)
    with pytest.raises(ValueError, match="there is no row 80; the table has 80 rows, counted from 0"):
        WaterfallDisplay.of_row(model, FRAME, row=80)
    with pytest.raises(ValueError, match="KernelPCA has no method explain"):
        SharesDisplay.from_estimator(KernelPCA(2).fit(FRAME), FRAME)


def test_one_feature():
    X = FRAME[["u"]].to_numpy()
    model = fk.KernelRegressor(n_vectors=3).fit(X, NUMBERS)
    assert labels(SharesDisplay.from_estimator(model, X)) == ["feature 0"]
    assert len(WaterfallDisplay.from_estimator(model, X).ax_.patches) == 1
    plt.close("all")


def test_a_missing_cell_is_called_missing():
    table = FRAME.assign(color=np.where(FRAME["u"] > 0, "red", "blue"), y=NUMBERS)
    table.loc[2, "color"] = None
    model = fk.TableModel(holdout=0, n_vectors=3).fit(table, "y")
    assert "color = missing" in WaterfallDisplay.of_row(model, table, row=2).labels
