"""Pictures of kept vectors (classes, numbers, curves) and of feature importances."""

import numpy as np
import pandas as pd
import pytest
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

X, Y = make_banana(60)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["noise", "signal", "price in $ and $"])
SIGNAL = (FRAME["signal"] > 0).to_numpy()


def small(max_vectors=6):
    return FeatureVectorDiscriminant(max_vectors=max_vectors)


def circles(display):
    return display.ax_.collections[-1].get_offsets()


@pytest.mark.parametrize("classes", [2, 3])
def test_vectors_and_boundary(classes):
    y = Y if classes == 2 else Y + (X[:, 0] > 1)
    model = small().fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    assert display.boundary[2].shape == (200, 200, classes)
    assert legend(display) == [*map(str, range(classes)), f"{model.n_vectors_} vectors kept"]
    assert labels(display) == ("feature 0", "feature 1")
    np.testing.assert_array_equal(circles(display), model.vectors_)
    assert legend_is_outside(display)


def test_a_frame_a_pipeline_and_a_search():
    """Column names at the axes, and no warning about names: a warning is an error here."""
    frame, words = pd.DataFrame(X, columns=["age", "price in $ and $"]), np.array(["no", "yes"])[Y]
    steps = make_pipeline(StandardScaler(), small(4))
    search = GridSearchCV(steps, {"featurevectordiscriminant__prefer": ["balanced", "sparse"]}, cv=2).fit(frame, words)
    display = VectorsDisplay.from_estimator(search, frame, words)
    assert labels(display) == ("age", "price in $ and $")
    display.figure_.canvas.draw()  # dollar signs are no mathematics
    assert legend(display)[:2] == ["no", "yes"]
    scaler, inner = search.best_estimator_
    np.testing.assert_allclose(display.X, X)
    np.testing.assert_allclose(circles(display), scaler.inverse_transform(inner.vectors_))
    xx, yy, values = display.boundary
    some = pd.DataFrame(np.column_stack([xx.ravel(), yy.ravel()])[::997], columns=frame.columns)
    np.testing.assert_allclose(values[:, :, 1].ravel()[::997], inner.decision_function(scaler.transform(some)))


def test_a_class_keeps_its_color_when_others_are_absent():
    display = VectorsDisplay.from_estimator(small(4).fit(X, Y), X[Y == 1], Y[Y == 1])
    assert legend(display)[0] == "1"
    assert to_hex(display.ax_.collections[-2].get_facecolor()[0]) == CLASSES[1]


def test_a_regression_of_two_features_has_a_bar_of_colors():
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
    x, y = make_sinc(60, noise=0.1)
    model = FeatureVectorRegressor(max_vectors=8).fit(x, y)
    display = VectorsDisplay.from_estimator(model, x, y)
    (curve,) = display.ax_.lines
    np.testing.assert_allclose(curve.get_ydata(), model.predict(curve.get_xdata()[:, None]))
    assert labels(display) == ("feature 0", "target")
    assert len(circles(display)) == (np.abs(model.vectors_[:, 0] - x.mean()) < 2 * np.ptp(x)).sum()
    with pytest.raises(ValueError, match="the targets are the second axis; pass y"):
        VectorsDisplay.from_estimator(model, x)


def test_vectors_far_out_do_not_shrink_the_picture():
    model = small(4).fit(X, Y)
    model.vectors_ = np.vstack([model.vectors_, [[500.0, 0.0]]])
    assert VectorsDisplay.from_estimator(model, X, Y).ax_.get_xlim()[1] < 10


def test_other_models():
    density = DensityClassifier().fit(X, Y)
    assert legend(VectorsDisplay.from_estimator(density, X, Y))[-1] == f"{density.n_vectors_} vectors kept"
    short = compress(OneClassSVM(nu=0.2).fit(X), X, n_vectors=5, tolerance=0.5)
    assert VectorsDisplay.from_estimator(short, X).boundary[2].shape[2] == 2


def test_what_cannot_be_drawn():
    for match, model, samples in (
        ("needs samples of two features, got 3; ComponentsDisplay", FeatureVectorSelector().fit(FRAME), FRAME),
        (r"SVC keeps no vectors; fewkern\.compress makes a short model", SVC().fit(X, Y), X),
        ("shows one target, but the model has 2", FeatureVectorRegressor(max_vectors=5).fit(X, X), X),
    ):
        with pytest.raises(ValueError, match=match):
            VectorsDisplay.from_estimator(model, samples, np.asarray(samples)[:, 0])


def test_importances_by_names_of_a_frame_and_of_a_pipeline():
    alone = ImportancesDisplay.from_estimator(small().fit(FRAME, SIGNAL))
    behind = ImportancesDisplay.from_estimator(make_pipeline(StandardScaler(), small()).fit(FRAME, SIGNAL))
    for display in (alone, behind):
        assert bar_names(display)[0] == "signal"
        assert sorted(bar_names(display)) == sorted(FRAME.columns)
        display.figure_.canvas.draw()  # dollar signs are no mathematics
    widths = [bar.get_width() for bar in alone.ax_.patches]
    assert widths == sorted(widths, reverse=True)
    assert sum(widths) == pytest.approx(1)
    assert ImportancesDisplay(np.ones(1), ["only"]).plot().ax_.get_xlim()[1] > 1


def test_importances_by_given_names():
    fitted = make_pipeline(StandardScaler(), small()).fit(FRAME.to_numpy(), SIGNAL)
    assert bar_names(ImportancesDisplay.from_estimator(fitted))[0] in ("feature 1", "x1")
    assert bar_names(ImportancesDisplay.from_estimator(fitted, feature_names=["a", "b", "c"]))[0] == "b"
    with pytest.raises(ValueError, match="the model has 3 features, got 2 names; give one name per feature"):
        ImportancesDisplay.from_estimator(fitted, feature_names=["a", "b"])


def test_a_model_without_importances():
    fitted = FeatureVectorDiscriminant(kernel=Laplacian(), max_vectors=6).fit(FRAME, SIGNAL)
    with pytest.raises(AttributeError, match="feature_importances_ needs the derivatives"):
        ImportancesDisplay.from_estimator(fitted)
