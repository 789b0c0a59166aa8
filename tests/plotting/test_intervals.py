"""Pictures of intervals and of novelty, with models that answer what is asked of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import FeatureVectorDiscriminant, FeatureVectorRegressor, FeatureVectorSelector
from fewkern.plotting import IntervalsDisplay, NoveltyDisplay
from tests.plotting.reading import labels, legend, legend_is_outside


class Answers(BaseEstimator):
    """Predicts the first feature; unsure by one; novel by the distance from zero."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]

    def predict_interval(self, X, coverage=0.9):
        return np.stack([self.predict(X) - coverage, self.predict(X) + coverage], axis=1)

    def novelty(self, X):
        return np.minimum(np.abs(np.asarray(X)[:, 0]), 1.0)

    def novelty_threshold(self, false_alarms=0.05):
        return 1 - 10 * false_alarms


X = np.linspace(-1, 1, 50)[:, None]
Y = X[:, 0] + np.where(np.arange(50) < 5, 2.0, 0.1)


def test_intervals_say_how_many_hold_the_value():
    display = IntervalsDisplay.from_estimator(Answers().fit(X), X, Y, coverage=0.8)
    assert legend(display) == [
        "90%: the interval holds the value",
        "10%: the interval misses it",
        "predicted = measured",
    ]
    assert labels(display) == ("measured", "predicted, with intervals for 80%")
    assert legend_is_outside(display)
    (diagonal,) = display.ax_.lines
    np.testing.assert_array_equal(diagonal.get_data(), [[Y.min(), Y.max()]] * 2)
    inside, _, outside, _ = display.ax_.collections
    assert (len(inside.get_segments()), len(outside.get_segments())) == (45, 5)
    assert len(legend(IntervalsDisplay.from_estimator(Answers().fit(X), X, X[:, 0]))) == 2  # all are inside


def test_novelty_of_two_kinds():
    display = NoveltyDisplay.from_estimator(Answers().fit(X), 0.1 * X, X, false_alarms=0.05)
    assert display.threshold == 0.5
    assert legend(display) == [
        "threshold (5% false alarms)",
        "50 samples: 0% above it",
        "50 other samples: 52% above it",
    ]
    assert display.ax_.lines[0].get_xdata()[0] == 0.5
    assert labels(display) == ("novelty: what the kept vectors do not explain of a sample", "share of the samples")
    assert sum(bar.get_height() for bar in display.ax_.patches) == pytest.approx(2)
    assert legend_is_outside(display)


def test_the_models_of_the_package():
    """A regressor in a pipeline, and a classifier: what the picture shows is what they say."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["age", "income"])
    target = frame["age"] ** 2 + 0.1 * rng.normal(size=120)
    model = make_pipeline(StandardScaler(), FeatureVectorRegressor(max_vectors=10)).fit(frame, target)
    display = IntervalsDisplay.from_estimator(model, frame, target, coverage=0.8)
    np.testing.assert_allclose(display.intervals, model[-1].predict_interval(model[0].transform(frame), coverage=0.8))
    seen = NoveltyDisplay.from_estimator(model, frame, frame + 5.0, false_alarms=0.1)
    assert seen.threshold == model[-1].novelty_threshold(0.1)
    assert (seen.novelty["other samples"] > seen.threshold).mean() > 0.9
    classes = FeatureVectorDiscriminant(max_vectors=10).fit(frame, target > 0.5)
    assert (NoveltyDisplay.from_estimator(classes, frame).novelty["samples"] <= 1).all()
    with pytest.raises(ValueError, match="IntervalsDisplay: FeatureVectorDiscriminant has no predict_interval"):
        IntervalsDisplay.from_estimator(classes, frame, target)


def test_models_that_do_not_answer():
    model = FeatureVectorSelector(max_vectors=3).fit(X)
    with pytest.raises(ValueError, match="IntervalsDisplay: FeatureVectorSelector has no predict_interval"):
        IntervalsDisplay.from_estimator(model, X, Y)

    class Several(Answers):
        def predict_interval(self, X, coverage=0.9):
            return np.zeros((len(X), 3, 2))

    with pytest.raises(ValueError, match="the picture shows one target, but the model has 3"):
        IntervalsDisplay.from_estimator(Several().fit(X), X, Y)
