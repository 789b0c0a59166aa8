import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib import pyplot

from fewkern import (
    FeatureVectorClassifier,
    FeatureVectorSelector,
    GraphEmbedding,
    RecursiveSVM,
)
from fewkern.datasets import make_banana
from fewkern.plotting import AccuracyDisplay, ComponentsDisplay, VectorsDisplay


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


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
