"""Pictures of predictions: explanations, intervals and novelty."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.decomposition import KernelPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern as fk
from fewkern.plotting import IntervalsDisplay, NoveltyDisplay, SharesDisplay, WaterfallDisplay
from tests.plotting.reading import bar_names, labels, legend, legend_is_outside

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(80, 3)) * [1, 10, 100], columns=["u", "v", "$w$"])
NUMBERS = FRAME["u"] ** 2 + FRAME["v"] / 10
THREE = np.digitize(NUMBERS, [0, 1])


def test_a_waterfall_goes_from_the_baseline_to_the_prediction():
    model = make_pipeline(StandardScaler(), fk.KernelRegressor(n_vectors=6)).fit(FRAME, NUMBERS)
    display = WaterfallDisplay.from_estimator(model, FRAME, row=4)
    assert_allclose(display.value, model.predict(FRAME)[4])
    bars = sorted(display.ax_.patches, key=lambda bar: bar.get_y())
    assert_allclose(bars[0].get_x(), display.baseline)
    assert_allclose(bars[-1].get_x() + bars[-1].get_width(), display.value)
    assert np.all(np.diff([abs(bar.get_width()) for bar in bars]) <= 0)
    assert sorted(bar_names(display)) == sorted(f"{name} = {FRAME[name][4]:.4g}" for name in FRAME)


def test_the_class_that_was_predicted_or_another():
    model = fk.KernelClassifier(n_vectors=6).fit(FRAME, THREE)
    scores = model.decision_function(FRAME)[0]
    display = WaterfallDisplay.from_estimator(model, FRAME)
    assert_allclose(display.value, scores.max())
    assert display.quantity == f"score: {np.argmax(scores)}"
    assert_allclose(WaterfallDisplay.of_row(model, FRAME, output=1).value, scores[1])
    with pytest.raises(ValueError, match=r"output must be one of \[0, 1, 2\], got 3"):
        WaterfallDisplay.of_row(model, FRAME, output=3)
    summary = SharesDisplay.from_estimator(model, FRAME)
    assert_allclose(summary.sizes, np.abs(model.explain(FRAME).values).mean(axis=(0, 2)))
    assert_allclose([bar.get_width() for bar in summary.ax_.patches], np.sort(summary.sizes)[::-1])


def test_two_classes_and_a_table():
    table = FRAME.assign(kind=np.where(NUMBERS > 1, "big", "small"), color=np.where(FRAME["u"] > 0, "red", "blue"))
    table.loc[3, "color"] = None
    model = fk.TableModel(holdout=0, n_vectors=6).fit(table, "kind")
    display = WaterfallDisplay.from_estimator(model, table, row=2)
    assert display.ax_.get_xlabel() == "score (positive: small)"
    assert f"color = {table['color'][2]}" in bar_names(display)
    assert "color = missing" in WaterfallDisplay.of_row(model, table, row=3).labels
    assert set(bar_names(SharesDisplay.from_estimator(model, table))) == {"u", "v", "$w$", "color"}


def test_many_features_end_in_one_bar():
    shares = RNG.normal(size=30)
    display = WaterfallDisplay(shares, 1.0, [f"f{j}" for j in range(30)]).plot()
    assert bar_names(display)[-1] == "10 others"
    last = max(display.ax_.patches, key=lambda bar: bar.get_y())
    assert_allclose(last.get_x() + last.get_width(), 1 + shares.sum())
    assert bar_names(SharesDisplay(np.abs(shares), [f"f{j}" for j in range(30)]).plot())[-1] == "10 others"


def test_one_feature_and_what_cannot_be_explained():
    x = FRAME[["u"]].to_numpy()
    model = fk.KernelRegressor(n_vectors=3).fit(x, NUMBERS)
    assert bar_names(SharesDisplay.from_estimator(model, x)) == ["feature 0"]
    assert len(WaterfallDisplay.from_estimator(model, x).ax_.patches) == 1
    with pytest.raises(ValueError, match="there is no row 80; the table has 80 rows, counted from 0"):
        WaterfallDisplay.of_row(model, x, row=80)
    with pytest.raises(ValueError, match="KernelPCA has no method explain"):
        SharesDisplay.from_estimator(KernelPCA(2).fit(FRAME), FRAME)


class Answers(BaseEstimator):
    """Predicts the first feature; unsure by one, of as many targets as asked for; novel by the distance from zero."""

    def __init__(self, targets=None):
        self.targets = targets

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]

    def predict_interval(self, X, coverage=0.9):
        ends = np.stack([self.predict(X) - coverage, self.predict(X) + coverage], axis=1)
        return ends if self.targets is None else np.stack([ends] * self.targets, axis=1)

    def novelty(self, X):
        return np.minimum(np.abs(np.asarray(X)[:, 0]), 1.0)

    def novelty_threshold(self, false_alarms=0.05):
        return 1 - 10 * false_alarms


LINE = np.linspace(-1, 1, 50)[:, None]
MEASURED = LINE[:, 0] + np.where(np.arange(50) < 5, 2.0, 0.1)


def test_intervals_say_how_many_hold_the_value():
    display = IntervalsDisplay.from_estimator(Answers().fit(LINE), LINE, MEASURED, coverage=0.8)
    words = ["90%: the interval holds the value", "10%: the interval misses it", "predicted = measured"]
    assert legend(display) == words
    assert labels(display) == ("measured", "predicted, with intervals for 80%")
    assert legend_is_outside(display)
    (diagonal,) = display.ax_.lines
    np.testing.assert_array_equal(diagonal.get_data(), [[MEASURED.min(), MEASURED.max()]] * 2)
    inside, _, outside, _ = display.ax_.collections
    assert (len(inside.get_segments()), len(outside.get_segments())) == (45, 5)
    assert len(legend(IntervalsDisplay.from_estimator(Answers().fit(LINE), LINE, LINE[:, 0]))) == 2  # all are inside


def test_novelty_of_two_kinds():
    display = NoveltyDisplay.from_estimator(Answers().fit(LINE), 0.1 * LINE, LINE, false_alarms=0.05)
    assert display.threshold == display.ax_.lines[0].get_xdata()[0] == 0.5
    words = ["threshold (5% false alarms)", "50 samples: 0% above it", "50 other samples: 52% above it"]
    assert legend(display) == words
    assert labels(display) == ("novelty: what the kept vectors do not explain of a sample", "share of the samples")
    assert sum(bar.get_height() for bar in display.ax_.patches) == pytest.approx(2)
    assert legend_is_outside(display)


def test_the_models_of_the_package():
    """A regressor in a pipeline: what the pictures show is what it says."""
    frame = FRAME[["u", "v"]]
    model = make_pipeline(StandardScaler(), fk.FeatureVectorRegressor(max_vectors=10)).fit(frame, NUMBERS)
    display = IntervalsDisplay.from_estimator(model, frame, NUMBERS, coverage=0.8)
    assert_allclose(display.intervals, model[-1].predict_interval(model[0].transform(frame), coverage=0.8))
    seen = NoveltyDisplay.from_estimator(model, frame, frame + 50.0, false_alarms=0.1)
    assert seen.threshold == model[-1].novelty_threshold(0.1)
    assert (seen.novelty["other samples"] > seen.threshold).mean() > 0.9


def test_models_that_do_not_answer():
    for match, model in (
        ("FeatureVectorSelector has no predict_interval", fk.FeatureVectorSelector(max_vectors=3)),
        ("the picture shows one target, but the model has 3", Answers(targets=3)),
    ):
        with pytest.raises(ValueError, match=f"IntervalsDisplay: {match}"):
            IntervalsDisplay.from_estimator(model.fit(LINE), LINE, MEASURED)
