"""Pictures of components."""

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris

from fewkern import GraphEmbedding, RecursiveSVM
from fewkern.plotting import AccuracyDisplay, ComponentsDisplay

matplotlib.use("Agg")


@pytest.fixture
def iris():
    yield load_iris(return_X_y=True)
    matplotlib.pyplot.close("all")


def test_classes_and_kept_vectors(iris):
    X, y = iris
    model = RecursiveSVM(kernel="gaussian", n_components=2, max_vectors=12).fit(X, y)
    display = ComponentsDisplay.from_estimator(model, X, y)
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["0", "1", "2", "12 kept"]
    circles = display.ax_.collections[-1].get_offsets()
    np.testing.assert_allclose(circles, model.transform(X)[model.indices_][:, :2])


def test_one_component_and_no_classes(iris):
    X, y = iris
    model = GraphEmbedding(n_components=1).fit(X, y)
    display = ComponentsDisplay.from_estimator(model, X)
    assert display.ax_.get_ylabel() == "sample"
    assert display.ax_.get_legend() is None


def test_accuracy_rises_with_the_components(iris):
    X, y = iris
    display = AccuracyDisplay.from_estimator(GraphEmbedding(graph="pca", n_components=4), X, y, cv=3)
    assert len(display.accuracy) == 4
    assert display.accuracy[-1] > 0.9
    assert display.ax_.get_xlabel() == "number of components"


def test_nothing_to_show():
    model = GraphEmbedding(graph="pca").fit(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="no component"):
        ComponentsDisplay.from_estimator(model, np.zeros((5, 2)))
    with pytest.raises(ValueError, match="in some fold"):
        AccuracyDisplay.from_estimator(GraphEmbedding(graph="pca"), np.zeros((20, 2)), np.arange(20) % 2)
