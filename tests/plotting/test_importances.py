"""Bars of feature importances: order, names, and what is left over."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewkern import FeatureVectorDiscriminant
from fewkern.kernels import Laplacian
from fewkern.plotting import ImportancesDisplay


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(60, 3)), columns=["noise", "signal", "price in $ and $"])


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def model():
    return FeatureVectorDiscriminant(max_vectors=6)


def test_names_of_a_frame_and_of_a_pipeline(frame):
    y = (frame["signal"] > 0).to_numpy()
    alone = ImportancesDisplay.from_estimator(model().fit(frame, y))
    behind = ImportancesDisplay.from_estimator(make_pipeline(StandardScaler(), model()).fit(frame, y))
    for display in (alone, behind):
        assert labels(display)[0] == "signal"
        assert sorted(labels(display)) == sorted(frame.columns)
        display.figure_.canvas.draw()  # dollar signs are no mathematics
    widths = [bar.get_width() for bar in alone.ax_.patches]
    assert widths == sorted(widths, reverse=True)
    assert sum(widths) == pytest.approx(1)


def test_names_of_arrays_and_given_ones(frame):
    X, y = frame.to_numpy(), (frame["signal"] > 0).to_numpy()
    fitted = make_pipeline(StandardScaler(), model()).fit(X, y)
    assert labels(ImportancesDisplay.from_estimator(fitted))[0] in ("feature 1", "x1")
    _, ax = pyplot.subplots()
    display = ImportancesDisplay.from_estimator(fitted, feature_names=["a", "b", "c"], ax=ax)
    assert labels(display)[0] == "b"
    assert display.ax_ is ax


def test_many_features_are_added_up():
    display = ImportancesDisplay(np.full(40, 1 / 40), [f"f{j}" for j in range(40)]).plot()
    assert labels(display)[-1] == "20 others"
    assert display.ax_.patches[-1].get_width() == pytest.approx(0.5)


def test_one_feature():
    display = ImportancesDisplay(np.ones(1), ["only"]).plot()
    assert display.ax_.get_xlim()[1] > 1


def test_wrong_number_of_names(frame):
    fitted = model().fit(frame, frame["signal"] > 0)
    with pytest.raises(ValueError, match="the model has 3 features, got 2 names; give one name per feature"):
        ImportancesDisplay.from_estimator(fitted, feature_names=["a", "b"])


def test_a_model_without_importances(frame):
    fitted = FeatureVectorDiscriminant(kernel=Laplacian(), max_vectors=6).fit(frame, frame["signal"] > 0)
    with pytest.raises(AttributeError, match="feature_importances_ needs the derivatives"):
        ImportancesDisplay.from_estimator(fitted)
