import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError

from fewkern import (
    FeatureVectorClassifier,
    FeatureVectorRegressor,
    FeatureVectorSelector,
    GraphEmbedding,
    RecursiveSVM,
)
from fewkern.datasets import make_banana, make_sinc
from fewkern.kernels import Gaussian
from fewkern.plotting import AccuracyDisplay, ComponentsDisplay, PathDisplay, VectorsDisplay


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def test_path_shows_the_chosen_curve_and_the_chosen_model():
    model = FeatureVectorRegressor(max_vectors=10).fit(*make_sinc(60, noise=0.2))
    display = PathDisplay.from_estimator(model)
    k, r, L = model.trace_.chosen
    assert display.n_vectors == L
    np.testing.assert_array_equal(display.error, model.trace_.error[k, r])
    assert len(display.others) == 8
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"chosen: {L} vectors" in labels
    assert "other widths" in labels


def test_path_of_a_fixed_kernel_on_given_axes():
    _, ax = pyplot.subplots()
    model = FeatureVectorClassifier(max_vectors=5, kernel=Gaussian(0.5), ridge=0.1).fit(*make_banana(50))
    display = PathDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert display.others == []


def test_path_where_some_models_have_no_error():
    model = FeatureVectorRegressor(max_vectors=8, ridge=0.0).fit(*make_sinc(8))
    PathDisplay.from_estimator(model)


def test_path_needs_a_fitted_model():
    with pytest.raises(NotFittedError):
        PathDisplay.from_estimator(FeatureVectorRegressor())


@pytest.mark.parametrize("classes", [2, 3])
def test_vectors_and_boundary(classes):
    X, y = make_banana(90)
    y = y if classes == 2 else np.arange(90) % 3
    model = FeatureVectorClassifier(max_vectors=6).fit(X, y)
    display = VectorsDisplay.from_estimator(model, X, y)
    assert display.boundary[2].shape == (200, 200, classes)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [str(c) for c in range(classes)] + [f"{model.n_vectors_} kept"]


def test_vectors_without_labels_or_classes():
    X, _ = make_banana(50)
    display = VectorsDisplay.from_estimator(FeatureVectorSelector(max_vectors=5).fit(X), X)
    assert display.boundary is None


def test_vectors_need_two_features(rng):
    X = rng.standard_normal((20, 3))
    with pytest.raises(ValueError, match="the picture needs samples of two features, got 3"):
        VectorsDisplay.from_estimator(FeatureVectorSelector(max_vectors=5).fit(X), X)


def test_accuracy_of_sparse_samples_and_of_frames():
    X, y = make_banana(80)
    X = np.column_stack([X, X[:, 0] * X[:, 1]])
    for given, model in (
        (sp.csr_matrix(X), RecursiveSVM(class_weight="balanced", n_components=2)),
        (X, GraphEmbedding(recursive=True, n_components=2).set_output(transform="pandas")),
    ):
        display = AccuracyDisplay.from_estimator(model, given, y, cv=3)
        assert len(display.accuracy) == 2


def test_components_of_many_classes_and_of_numbers(rng):
    T = rng.normal(size=(400, 2))
    many = ComponentsDisplay(T, np.arange(400) % 12).plot()
    assert len({tuple(c.get_facecolor()[0]) + (len(c.get_paths()[0].vertices),) for c in many.ax_.collections}) == 12
    numbers = ComponentsDisplay(T, T[:, 0]).plot()
    assert len(numbers.figure_.axes) == 2  # with a bar of colours
