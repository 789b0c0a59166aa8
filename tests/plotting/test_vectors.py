"""Pictures of kept vectors (classes, numbers, curves) and of feature importances."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

from fewkern import (
    DensityClassifier,
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    compress,
)
from fewkern.datasets import make_banana, make_sinc
from fewkern.kernels import Laplacian
from fewkern.plotting import ImportancesDisplay, VectorsDisplay
from fewkern.plotting.style import CLASSES
from tests.plotting.reading import bar_names, labels, legend, legend_is_outside


def circles(display):
    return display.ax_.collections[-1].get_offsets()


@pytest.mark.parametrize("classes", [2, 3])
def test_vectors_and_boundary(classes):
    X, y = make_banana(90)
    y = y if classes == 2 else y + (X[:, 0] > 1)
    model = FeatureVectorDiscriminant(max_vectors=6).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    assert display.boundary[2].shape == (200, 200, classes)
    assert legend(display) == [*map(str, range(classes)), f"{model.n_vectors_} vectors kept"]
    assert labels(display) == ("feature 0", "feature 1")
    np.testing.assert_array_equal(circles(display), model.vectors_)
    assert legend_is_outside(display)


def test_a_frame_a_pipeline_and_a_search():
    """Column names at the axes, and no warning about names: a warning is an error here."""
    X, y = make_banana(60)
    frame, words = pd.DataFrame(X, columns=["age", "price in $ and $"]), np.array(["no", "yes"])[y]
    model = FeatureVectorDiscriminant(max_vectors=4)
    alone = VectorsDisplay.from_estimator(model.fit(frame, words), frame, words)
    assert labels(alone) == ("age", "price in $ and $")
    alone.figure_.canvas.draw()  # dollar signs are no mathematics
    assert legend(alone)[:2] == ["no", "yes"]
    steps = make_pipeline(StandardScaler(), FeatureVectorDiscriminant(max_vectors=4))
    search = GridSearchCV(steps, {"featurevectordiscriminant__prefer": ["balanced", "sparse"]}, cv=2).fit(frame, words)
    display = VectorsDisplay.from_estimator(search, frame, words)
    assert labels(display)[0] == "age"
    scaler, inner = search.best_estimator_
    np.testing.assert_allclose(display.X, X)
    np.testing.assert_allclose(circles(display), scaler.inverse_transform(inner.vectors_))
    xx, yy, values = display.boundary
    some = np.column_stack([xx.ravel(), yy.ravel()])[::997]
    np.testing.assert_allclose(
        values[:, :, 1].ravel()[::997],
        inner.decision_function(scaler.transform(pd.DataFrame(some, columns=frame.columns))),
    )


def test_a_class_keeps_its_color_when_others_are_absent():
    X, y = make_banana(60)
    model = FeatureVectorDiscriminant(max_vectors=4).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X[y == 1], y[y == 1])
    assert legend(display)[0] == "1"
    samples = display.ax_.collections[-2]
    assert to_hex(samples.get_facecolor()[0]) == CLASSES[1]


def test_a_regression_of_two_features_has_a_bar_of_colors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 2))
    y = X[:, 0] ** 2 + X[:, 1]
    model = FeatureVectorRegressor(max_vectors=6).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    picture, bar = display.figure_.axes
    assert bar.get_ylabel() == "target"
    assert legend(display) == [f"{model.n_vectors_} vectors kept"]
    np.testing.assert_array_equal(picture.collections[-2].get_array(), y)
    assert legend_is_outside(display)
    assert len(VectorsDisplay.from_estimator(model, X).figure_.axes) == 2


def test_a_regression_of_one_feature_is_a_curve():
    X, y = make_sinc(60, noise=0.1)
    model = FeatureVectorRegressor(max_vectors=8).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    (curve,) = display.ax_.lines
    np.testing.assert_allclose(curve.get_ydata(), model.predict(curve.get_xdata()[:, None]))
    assert labels(display) == ("feature 0", "target")
    inside = np.abs(model.vectors_[:, 0] - X.mean()) < 2 * np.ptp(X)
    assert len(circles(display)) == inside.sum()
    with pytest.raises(ValueError, match="the targets are the second axis; pass y"):
        VectorsDisplay.from_estimator(model, X)


def test_vectors_far_out_do_not_shrink_the_picture():
    X, y = make_banana(60)
    model = FeatureVectorDiscriminant(max_vectors=4).fit(X, y)
    model.vectors_ = np.vstack([model.vectors_, [[500.0, 0.0]]])
    display = VectorsDisplay.from_estimator(model, X, y)
    assert display.ax_.get_xlim()[1] < 10


def test_other_models():
    X, y = make_banana(60)
    density = DensityClassifier().fit(X, y)
    assert legend(VectorsDisplay.from_estimator(density, X, y))[-1] == f"{density.n_vectors_} vectors kept"
    short = compress(OneClassSVM(nu=0.2).fit(X), X, n_vectors=5, tolerance=0.5)
    assert VectorsDisplay.from_estimator(short, X).boundary[2].shape[2] == 2


def test_what_cannot_be_drawn():
    rng = np.random.default_rng(0)
    X, y = make_banana(40)
    with pytest.raises(ValueError, match="needs samples of two features, got 3; ComponentsDisplay"):
        VectorsDisplay.from_estimator(FeatureVectorSelector(max_vectors=5).fit(rng.normal(size=(20, 3))), np.eye(3))
    with pytest.raises(ValueError, match=r"SVC keeps no vectors; fewkern\.compress makes a short model"):
        VectorsDisplay.from_estimator(SVC().fit(X, y), X, y)
    two = FeatureVectorRegressor(max_vectors=5).fit(X, X)
    with pytest.raises(ValueError, match="the picture shows one target, but the model has 2"):
        VectorsDisplay.from_estimator(two, X, X)


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(60, 3)), columns=["noise", "signal", "price in $ and $"])


def small():
    return FeatureVectorDiscriminant(max_vectors=6)


def test_names_of_a_frame_and_of_a_pipeline(frame):
    y = (frame["signal"] > 0).to_numpy()
    alone = ImportancesDisplay.from_estimator(small().fit(frame, y))
    behind = ImportancesDisplay.from_estimator(make_pipeline(StandardScaler(), small()).fit(frame, y))
    for display in (alone, behind):
        assert bar_names(display)[0] == "signal"
        assert sorted(bar_names(display)) == sorted(frame.columns)
        display.figure_.canvas.draw()  # dollar signs are no mathematics
    widths = [bar.get_width() for bar in alone.ax_.patches]
    assert widths == sorted(widths, reverse=True)
    assert sum(widths) == pytest.approx(1)


def test_names_of_arrays_and_given_ones(frame):
    X, y = frame.to_numpy(), (frame["signal"] > 0).to_numpy()
    fitted = make_pipeline(StandardScaler(), small()).fit(X, y)
    assert bar_names(ImportancesDisplay.from_estimator(fitted))[0] in ("feature 1", "x1")
    _, ax = pyplot.subplots()
    display = ImportancesDisplay.from_estimator(fitted, feature_names=["a", "b", "c"], ax=ax)
    assert bar_names(display)[0] == "b"
    assert display.ax_ is ax


def test_one_feature():
    display = ImportancesDisplay(np.ones(1), ["only"]).plot()
    assert display.ax_.get_xlim()[1] > 1


def test_wrong_number_of_names(frame):
    fitted = small().fit(frame, frame["signal"] > 0)
    with pytest.raises(ValueError, match="the model has 3 features, got 2 names; give one name per feature"):
        ImportancesDisplay.from_estimator(fitted, feature_names=["a", "b"])


def test_a_model_without_importances(frame):
    fitted = FeatureVectorDiscriminant(kernel=Laplacian(), max_vectors=6).fit(frame, frame["signal"] > 0)
    with pytest.raises(AttributeError, match="feature_importances_ needs the derivatives"):
        ImportancesDisplay.from_estimator(fitted)
