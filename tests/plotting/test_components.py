"""Pictures of components."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fewkern import FeatureVectorPCA, GraphEmbedding, RecursiveSVM
from fewkern.datasets import make_banana
from fewkern.plotting import AccuracyDisplay, ComponentsDisplay
from tests.plotting.reading import labels, legend, legend_is_outside

X, Y = load_iris(return_X_y=True)


def test_classes_and_kept_vectors():
    model = RecursiveSVM(kernel="gaussian", n_components=2, max_vectors=12).fit(X, Y)
    display = ComponentsDisplay.from_estimator(model, X, Y)
    assert legend(display) == ["0", "1", "2", "12 samples kept"]
    circles = display.ax_.collections[-1].get_offsets()
    np.testing.assert_allclose(circles, model.transform(X)[model.indices_][:, :2])
    assert legend_is_outside(display)
    # other samples have no circles
    assert legend(ComponentsDisplay.from_estimator(model, X[::-1], Y[::-1])) == ["0", "1", "2"]
    assert legend(ComponentsDisplay.from_estimator(model, X[:5], Y[:5])) == ["0"]


def test_shares_of_the_variance_where_all_of_them_are_known():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), FeatureVectorPCA(max_vectors=10)).fit(frame)
    display = ComponentsDisplay.from_estimator(model, frame, Y)
    np.testing.assert_allclose(display.T, model.transform(frame)[:, :2])
    values = model[-1].eigenvalues_ / model[-1].eigenvalues_.sum()
    assert labels(display)[0] == f"component 1 ({100 * values[0]:.0f}% of the variance)"
    for other in (FeatureVectorPCA(n_components=2, max_vectors=10), GraphEmbedding()):
        assert labels(ComponentsDisplay.from_estimator(other.fit(X, Y), X, Y)) == ("component 1", "component 2")


def test_one_component_and_no_classes():
    display = ComponentsDisplay.from_estimator(GraphEmbedding(n_components=1).fit(X, Y), X)
    assert labels(display) == ("component 1", "number of the sample")
    assert display.ax_.get_legend() is None


def test_components_of_many_classes_and_of_numbers(rng):
    T = rng.normal(size=(400, 2))
    many = ComponentsDisplay(T, np.arange(400) % 12).plot()
    assert len({tuple(c.get_facecolor()[0]) + (len(c.get_paths()[0].vertices),) for c in many.ax_.collections}) == 12
    numbers = ComponentsDisplay(T, T[:, 0], kept=np.arange(5)).plot()
    assert len(numbers.figure_.axes) == 2  # with a bar of colors
    assert legend(numbers) == ["5 samples kept"]
    assert legend_is_outside(numbers)


def test_accuracy_rises_with_the_components():
    display = AccuracyDisplay.from_estimator(GraphEmbedding(graph="pca", n_components=4), X, Y, cv=3)
    assert len(display.accuracy) == 4
    assert display.accuracy[-1] > 0.9
    assert labels(display)[0] == "number of components"
    assert legend_is_outside(display)
    # fewer components than were asked for
    assert len(AccuracyDisplay.from_estimator(GraphEmbedding(n_components=5), X, Y, cv=3).accuracy) == 2


def test_accuracy_of_sparse_samples_and_of_frames():
    Z, y = make_banana(80)
    Z = np.column_stack([Z, Z[:, 0] * Z[:, 1]])
    for given, model in (
        (sp.csr_matrix(Z), RecursiveSVM(class_weight="balanced", n_components=2)),
        (Z, GraphEmbedding(recursive=True, n_components=2).set_output(transform="pandas")),
        (pd.DataFrame(Z), make_pipeline(StandardScaler(), GraphEmbedding(recursive=True, n_components=2))),
    ):
        assert len(AccuracyDisplay.from_estimator(model, given, y, cv=3).accuracy) == 2


def test_nothing_to_show():
    with pytest.raises(ValueError, match="expected a transformer, but SVC has no components"):
        ComponentsDisplay.from_estimator(SVC().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="no component"):
        ComponentsDisplay.from_estimator(GraphEmbedding(graph="pca").fit(np.zeros((5, 2))), np.zeros((5, 2)))
    with pytest.raises(ValueError, match="in some fold"):
        AccuracyDisplay.from_estimator(GraphEmbedding(graph="pca"), np.zeros((20, 2)), np.arange(20) % 2)
